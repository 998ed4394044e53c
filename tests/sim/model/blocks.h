/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the blocks of the cluster's drives may hold. Every write has a stamp of its own, in every
 * word of every block. A block read must be, whole, one of those that may be there:
 *
 *   - the latest write that was acknowledged before the read began,
 *   - any that was acknowledged or under way while the read was,
 *   - any that was sent and never answered: its queue may be dead, and it may still come, or never.
 *
 * A drive whose host lost its power begins anew, with zeros.
 */
#ifndef SIM_BLOCKS_H
#define SIM_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#define BLOCKS_USED 512u /* of each drive, from the first on: programs meet in them */

struct blocks_drive;

/* The drive of that number of that host. */
struct blocks_drive *blocks_drive(unsigned host, unsigned device);
/* Its manager lies: whatever they hold from now on is no mistake. */
void blocks_distrust(struct blocks_drive *d);
bool blocks_distrusted(const struct blocks_drive *d);
/* Counts the starts of its host: what began in another one says nothing. */
unsigned blocks_epoch(struct blocks_drive *d);

/* A write of one block is sent. Return: its stamp. */
uint64_t blocks_write(struct blocks_drive *d, uint32_t block);
/* Fill @len bytes at @data with the stamp, as blocks_judge() wants to see it. */
void blocks_fill(void *data, uint32_t len, uint64_t stamp, uint32_t block);
/* It was acknowledged. @epoch: when it was sent. */
void blocks_written(struct blocks_drive *d, unsigned epoch, uint32_t block, uint64_t stamp);
/* Before a read: what does not arrive is seen. */
void blocks_poison(void *data, uint32_t len);
/*
 * A read that was sent at @since brought @data. @lossy: what the drive sends may be lost on its
 * way, and nobody is told. Fails the run if that cannot be.
 */
void blocks_judge(struct blocks_drive *d, unsigned epoch, uint32_t block, const void *data,
		  uint32_t len, uint64_t since, bool lossy, const char *who);

#endif
