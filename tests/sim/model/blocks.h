/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values that the blocks of the cluster's drives may have. Every write has a stamp of its own,
 * in every word of every block. A block that is read must be, as a whole, one of these:
 *
 *   - the latest write that was acknowledged before the read began,
 *   - any that was acknowledged or in flight during the read,
 *   - any that was sent and never answered: its queue may be dead, and it may be done late, or
 *   never,
 *   - one of unknown outcome whose queue is deleted, which counts as acknowledged at that time, if
 *   it was done.
 *
 * A drive whose host lost its power begins again, with zeros.
 */
#ifndef SIM_BLOCKS_H
#define SIM_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#define BLOCKS_USED 512u /* of each drive, from the first on: programs meet in them */

struct blocks_drive;

/* The drive of that number of that host. */
struct blocks_drive *blocks_drive(unsigned host, unsigned device);
/* The drive's manager is malicious: any contents are accepted from now on. */
void blocks_distrust(struct blocks_drive *d);
bool blocks_distrusted(const struct blocks_drive *d);
/*
 * Counts the starts of the drive's host: an operation that began in another start proves nothing.
 */
unsigned blocks_epoch(struct blocks_drive *d);

/* Records that a write of one block is sent. Return: its stamp. */
uint64_t blocks_write(struct blocks_drive *d, uint32_t block);
/* Fills @len bytes at @data with the stamp, in the form that blocks_judge() checks. */
void blocks_fill(void *data, uint32_t len, uint64_t stamp, uint32_t block);
/* The write was acknowledged. @epoch: when it was sent. */
void blocks_written(struct blocks_drive *d, unsigned epoch, uint32_t block, uint64_t stamp);
/*
 * The outcome of the write is unknown, but it is not done any more from now on: its submission
 * queue is deleted. If it appears later in a block that was overwritten since, it was done too
 * late.
 */
void blocks_unsure(struct blocks_drive *d, unsigned epoch, uint32_t block, uint64_t stamp);
/*
 * Records that a Format of the whole drive is about to be sent, which makes all blocks zeros.
 * Return: its stamp.
 */
uint64_t blocks_format(struct blocks_drive *d);
/*
 * It was done (@done), or was refused; of one of which neither is known this is not called. @since:
 * when it was sent.
 */
void blocks_formatted(struct blocks_drive *d, unsigned epoch, uint64_t stamp, uint64_t since,
		      bool done);
/* Is there a Format that was sent after @since, and done before @until? */
bool blocks_were_formatted(const struct blocks_drive *d, uint64_t since, uint64_t until);
/*
 * From now on another program has the block leased: no write that is without acknowledgement now is
 * done any more.
 */
void blocks_fenced(struct blocks_drive *d, unsigned epoch, uint32_t block);
/* The write was not sent at all. */
void blocks_unsent(struct blocks_drive *d, unsigned epoch, uint32_t block, uint64_t stamp);
/* Poisons the buffer before a read, so that missing bytes are detected. */
void blocks_poison(void *data, uint32_t len);
/*
 * A read that was sent at @since returned @data. @lossy: what the drive sends may be lost on its
 * path, without notification. Fails the run if @data is impossible.
 */
void blocks_judge(struct blocks_drive *d, unsigned epoch, uint32_t block, const void *data,
		  uint32_t len, uint64_t since, bool lossy, const char *who);

#endif
