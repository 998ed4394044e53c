/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of smartio.ko alone share. */
#ifndef TESTS_PORT_SHIM_H
#define TESTS_PORT_SHIM_H

#include "port.h"

#define SHIM_PAGE 4096u

/* A request and its answer, side by side; descriptors of the answer stay open here. */
struct shim_ask {
	union port_packet req, answer;
	int fd[SIO_PORT_MAX_FDS];
	unsigned n_fds;
};

/* A good request of @op for @owner. */
void shim_good(struct port_world *w, struct shim_ask *a, uint32_t op, uint64_t owner);
/* Ask, and await no answer. Return: the request's cookie, for port_await(). */
uint64_t shim_send(struct port_world *w, struct shim_ask *a);
/* Ask, with @fd (-1: none) beside it. Return: 0 or -errno of the answer; 1: see w->why. */
int shim_ask(struct port_world *w, struct shim_ask *a, int fd);
/* The answer must be @error, else w->why says what @what was answered with. True: it was. */
bool shim_expect(struct port_world *w, struct shim_ask *a, int fd, int error, const char *what);
/* Does an IOMMU translate for the first device? */
bool shim_is_translated(struct port_world *w);
void shim_close(struct shim_ask *a);
/* The first 64-bit field behind the header of the answer. */
uint64_t shim_id(const struct shim_ask *a);
/* Make something that must work: its id; its first descriptor in *ret_fd (may be NULL). */
uint64_t shim_make(struct port_world *w, uint32_t op, uint64_t owner, int *ret_fd);
/* How many objects of @kind there are. */
uint32_t shim_count(struct port_world *w, uint32_t kind);
/* Wait for news of @op; false: none came. */
bool shim_event(struct port_world *w, uint32_t op, union port_packet *ret);
void *shim_map(struct port_world *w, int fd, size_t size, int prot);
/* false, and w->why, unless @ok. */
bool shim_check(struct port_world *w, bool ok, const char *what);

/* An NVMe drive at work, with the least of a driver (shim_nvme.c). */
struct shim_drive {
	volatile uint8_t *regs, *bells;
	char *mem; /* one page each: submission, completion, data */
	uint64_t iova;
	unsigned tail;
	int regs_fd, bells_fd, mem_fd, irq_fd, trigger_fd;
};
bool shim_drive_open(struct port_world *w, struct shim_drive *d, uint64_t owner, uint64_t *ret_irq);
bool shim_drive_start(struct port_world *w, struct shim_drive *d);
/* Identify controller, to an address of the drive's. At most 15 of them from start to stop. */
void shim_drive_identify(struct shim_drive *d, uint64_t data);
/* Has the @n-th command since the start ended, with success? Waits for it. */
bool shim_drive_completed(const struct shim_drive *d, unsigned n);
void shim_drive_stop(struct shim_drive *d);
void shim_drive_close(struct shim_drive *d);
/* Write to a file below /sys. */
void shim_sysfs(struct port_world *w, const char *file, const char *text);

void shim_memory(struct port_world *w);	 /* shim_memory.c */
void shim_owners(struct port_world *w);	 /* shim_life.c */
void shim_devices(struct port_world *w); /* shim_device.c */
void shim_nvme(struct port_world *w);	 /* shim_nvme.c */
void shim_domain(struct port_world *w);	 /* shim_domain.c */
void shim_dmabuf(struct port_world *w);	 /* shim_dmabuf.c */
void shim_granted(struct port_world *w); /* shim_granted.c: where there are adapters */
void shim_pair(struct port_world *w);	 /* shim_pair.c */
void shim_pair_vfio(struct port_world *w);

#endif
