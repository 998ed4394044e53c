/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hardware port of a machine whose kernel has vfio-pci and an IOMMU, and no module of SmartIO:
 * the logic without system calls. It answers the requests of smartio/uapi.h from a table of
 * objects, and reaches the machine by a table of operations. Not thread-safe; never entered from
 * its own operations.
 */
#ifndef SMARTIOD_VFIO_PORT_H
#define SMARTIOD_VFIO_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/types.h"
#include "smartio/uapi.h"
#include "smartiod/port_vfio/vfio_record.h"

#define VFIO_HOLES 16

struct vfio_port;

/* I/O addresses and interrupts that a device was found to have when it was opened. */
struct vfio_space {
	uint64_t lowest, highest;
	uint32_t vectors; /* of its table's, from 0 on; device_again leaves it as it is */
	unsigned n_holes;
	struct {
		uint64_t base, size;
	} hole[VFIO_HOLES]; /* in there, and not to be used */
};

/*
 * A range of addresses that the device has, of its kernel's list; @s is empty (highest 0) at first.
 * They come in ascending order: what lies between two of them is a hole. (vfio_space.c)
 */
void vfio_space_add(struct vfio_space *s, uint64_t start, uint64_t end);

/* The world. All return 0 or -errno, with a text where there is a @reterr. */
struct vfio_ops {
	/*
	 * A descriptor whose last close is the end of owner @id: vfio_port_owner_hup(). The caller
	 * closes it when it was sent; owner_free() ends the watch.
	 */
	int (*owner_new)(void *ctx, uint64_t id, int *ret_fd);
	void (*owner_free)(void *ctx, uint64_t id);
	/* Zeroed memory of whole pages, which nobody can make shorter. @huge: of huge pages. */
	int (*memory_new)(void *ctx, uint64_t size, bool huge, int *ret_fd, struct sio_err *reterr);
	/* Another's memory: is @fd of @kind (SIO_IMPORT_*)? Keeps a copy of its own. */
	int (*memory_take)(void *ctx, int fd, uint32_t kind, int *ret_fd, uint64_t *ret_size,
			   struct sio_err *reterr);
	int (*irq_new)(void *ctx, int *ret_fd);
	/* What came to eventfd @from goes to @to (-1: is forgotten), as one. */
	void (*irq_move)(void *ctx, int from, int to);
	/* The empty status page. */
	int (*status_new)(void *ctx, int *ret_fd, uint64_t *ret_size);
	void (*close)(void *ctx, int fd);
	/* Two descriptors of the same file have the same. -EBADF: it is of no kind that we make. */
	int (*identity)(void *ctx, int fd, uint64_t ret[2]);

	int (*device_open)(void *ctx, uint64_t id, struct vfio_space *ret, struct sio_err *reterr);
	void (*device_close)(void *ctx, uint64_t id);
	/* Where bytes of a BAR are in the device's descriptor. */
	int (*bar)(void *ctx, uint64_t id, const struct sio_req_bar *m, int *ret_fd,
		   uint64_t *ret_offset, struct sio_err *reterr);
	int (*map)(void *ctx, uint64_t id, int fd, const struct sio_req_dmamap *m,
		   struct sio_dev_addr iova, struct sio_err *reterr);
	/* A BAR of device @of, from byte @offset of BAR @bar on. */
	int (*map_bar)(void *ctx, uint64_t id, uint64_t of, uint32_t bar, uint64_t offset,
		       const struct sio_req_dmamap *m, struct sio_dev_addr iova,
		       struct sio_err *reterr);
	void (*unmap)(void *ctx, uint64_t id, struct sio_dev_addr iova, uint64_t length);
	/* @fd -1: nothing comes any more when it returns. */
	int (*vector)(void *ctx, uint64_t id, uint32_t vector, int fd, struct sio_err *reterr);
	/* Begin a function reset: vfio_port_reset_done() follows. */
	int (*reset)(void *ctx, uint64_t id, struct sio_err *reterr);
	int (*config)(void *ctx, const char *name, const struct sio_req_config *m, uint32_t *ret,
		      struct sio_err *reterr);
	uint64_t (*interrupts)(void *ctx, const char *name);

	/*
	 * What is found again by the next process, before anybody hears of it: @fd: of memory, an
	 * interrupt, a masked vector; else -1. @keep NULL: nothing is kept.
	 */
	void (*keep_head)(void *ctx, const struct vfio_head *h);
	void (*keep_device)(void *ctx, const struct vfio_device_record *r);
	void (*keep)(void *ctx, const struct vfio_record *r, int fd);
	void (*forget)(void *ctx, uint64_t id);
	/* An owner, and a device that was open, as they were before; @fd: of the owner. */
	int (*owner_again)(void *ctx, uint64_t id, int fd);
	int (*device_again)(void *ctx, const struct sio_evt_device *info, struct vfio_space *ret,
			    struct sio_err *reterr);
	/* Vector @vector goes where it was sent before. */
	void (*vector_again)(void *ctx, uint64_t id, uint32_t vector);
	/* Nothing that is kept is mapped there: what is, is nobody's. */
	void (*unmap_rest)(void *ctx, uint64_t id, struct sio_dev_addr iova, uint64_t length);

	/* To the daemon, if there is one. -ENOBUFS: it does not read, and this is an event. */
	int (*send)(void *ctx, const void *evt, size_t len, const int *fds, unsigned n_fds);
};

struct vfio_start {
	uint64_t boot_generation;
	uint8_t boot_id[16];
	uint64_t ram_total;
	uint64_t memory_limit; /* of ALLOC and IMPORT */
};

int vfio_port_new(const struct vfio_ops *ops, void *ctx, const struct vfio_start *start,
		  struct vfio_port **ret);
/*
 * Goes on with what an earlier process kept, before anything else is done with @p. What is in use
 * and lost its descriptor is ended. -ENOMEM.
 */
int vfio_port_restore(struct vfio_port *p, const struct vfio_kept *k);
/* The machine is left as it is: whoever kept its descriptors elsewhere can go on. */
void vfio_port_free(struct vfio_port *p);

/*
 * A request, with descriptors, which stay the caller's. Return: 0: there will be an answer;
 * -EMSGSIZE: it is no request.
 */
int vfio_port_request(struct vfio_port *p, const void *req, size_t len, const int *fds,
		      unsigned n_fds);
/* The last descriptor of an owner was closed. */
void vfio_port_owner_hup(struct vfio_port *p, uint64_t id);
/*
 * A function that is ours is there (again); @info as of DEVICE_LIST, but for what the port knows.
 * Return: its number, also of one that was known; 0: no memory.
 */
uint64_t vfio_port_device_here(struct vfio_port *p, const struct sio_evt_device *info);
/* It was taken from us, or pulled out. */
void vfio_port_device_gone(struct vfio_port *p, uint64_t id);
void vfio_port_reset_done(struct vfio_port *p, uint64_t id, int error);
/* The daemon reads again; or another one has come, who has missed all and asks. */
void vfio_port_drained(struct vfio_port *p);
void vfio_port_connected(struct vfio_port *p);
/* Does a program's owner live? Else whoever comes may begin again. */
bool vfio_port_in_use(const struct vfio_port *p);

#endif
