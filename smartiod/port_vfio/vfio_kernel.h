/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's side: a function bound to vfio-pci, opened by its IOMMU group or by iommufd. */
#ifndef SMARTIOD_VFIO_KERNEL_H
#define SMARTIOD_VFIO_KERNEL_H

#include <pthread.h>

#include "smartiod/port_vfio/vfio_port.h"

#define VFIO_NAME 64
#define VFIO_VECTORS 2048 /* the most that a function can have */

/*
 * What is open of a unit. The first is its own, and the same for all backends; the others are of
 * its IOMMU group, and each unit of the group has copies of them.
 */
enum { VFIO_DEVICE, VFIO_OF_GROUP, VFIO_PARTS = 3 };

struct vfio_backend;

/* Numbers in a group's iommufd. */
struct vfio_tables {
	uint32_t ioas; /* of its address space */
	uint32_t hwpt; /* of the page table of it */
};

/* Each group of functions has an address space of its own, which is nobody else's. */
struct vfio_unit {
	struct vfio_unit *next;
	uint64_t id; /* the port's number */
	char name[VFIO_NAME];
	uint32_t group_number;
	const struct vfio_backend *by;
	char node[VFIO_NAME];	  /* its own, in SIO_VFIO_CDEVS; "": the kernel has none */
	int fd[VFIO_PARTS];	  /* -1: not open */
	struct vfio_tables table; /* iommufd */
	int request;		  /* eventfd: the kernel wants the function back */
	int sink;		  /* eventfd: what comes by vectors that are nobody's */
	bool sinks[VFIO_VECTORS]; /* vectors that were given to it or somebody */
	struct {
		uint64_t offset, size;
		bool mappable;
	} bar[SIO_DEVICE_BARS];
	bool busy;	/* somebody else had it when it was to be opened */
	bool reached;	/* so, because of another function, that somebody else had */
	unsigned tries; /* looks after it was closed, as that comes to be heard a moment before */
	pthread_t thread;
	bool resetting;
	const char *going; /* why it goes when it was reset; NULL: it stays */
	int done;	   /* where the thread writes the result */
};

/* A mapping, of pages of this process. */
struct vfio_pages {
	void *at;
	struct sio_dev_addr iova;
	uint64_t length;
	uint32_t access; /* SIO_ACCESS_* */
};

/* A way to have a function of the kernel, and to map memory for it. */
struct vfio_backend {
	const char *name;
	uint32_t mode;			   /* SIO_IOMMU_*: how devices are reported */
	const char *part[VFIO_PARTS];	   /* names of what is open of a unit; NULL: no more */
	bool (*is_here)(const char *name); /* has this kernel it, for function @name? */
	/*
	 * Sets u->fd and u->table. @partner: one that is open, of the same group and backend, whose
	 * parts of the group u->fd has copies of; NULL: none. -EBUSY: somebody else has it; what is
	 * open the caller closes.
	 */
	int (*open)(struct vfio_unit *u, const struct vfio_unit *partner, struct sio_err *reterr);
	/*
	 * Whatever a program did with the device's descriptor, it reaches what is mapped from now
	 * on. NULL: programs can do nothing to that. 0 or -errno.
	 */
	int (*attach)(const struct vfio_unit *u);
	/* Could it be opened now? */
	bool (*is_free)(const struct vfio_unit *u, const struct vfio_unit *partner);
	/* @ret is empty. */
	int (*space)(const struct vfio_unit *u, struct vfio_space *ret, struct sio_err *reterr);
	/* 0 or -errno. */
	int (*map)(const struct vfio_unit *u, const struct vfio_pages *p);
	int (*unmap)(const struct vfio_unit *u, struct sio_dev_addr iova, uint64_t *length);
	const char *no_space; /* words for -ENOSPC of map */
	/*
	 * Bytes from @offset of BAR @bar of another function on, as @p, whose address is unused.
	 * -EOPNOTSUPP: this kernel does not.
	 */
	int (*map_bar)(const struct vfio_unit *u, const struct vfio_unit *other, uint32_t bar,
		       uint64_t offset, const struct vfio_pages *p);
};

extern const struct vfio_backend vfio_by_group, vfio_by_iommufd;

/* "vfio0"; false: the kernel has none for it, and @ret is "". */
bool vfio_iommufd_node(const char *name, char ret[VFIO_NAME]);

struct vfio_reset_done {
	uint64_t id;
	int error;
};

/*
 * What sysfs reports about the function @name. @by: the backend to open it by; NULL: iommufd where
 * the kernel has it, else its group. Return: false: it is not there, or not bound to vfio-pci.
 */
bool vfio_kernel_look(const char *name, const struct vfio_backend *by, struct sio_evt_device *ret);
/* Of that mode. */
const struct vfio_backend *vfio_backend_of(uint32_t mode);
/* NULL: no such name. */
const struct vfio_backend *vfio_backend_named(const char *name);
/*
 * @partner: an open one of the same group; NULL: none. -EBUSY: another process has it, or its
 * group.
 */
int vfio_kernel_open(struct vfio_unit *u, const struct vfio_unit *partner, struct vfio_space *ret,
		     struct sio_err *reterr);
/* Is the function itself open, here or in a program? */
bool vfio_kernel_is_held(const struct vfio_unit *u);
/* It reads and writes no memory until it is reset: its addresses may be given to others. */
void vfio_kernel_stop(const struct vfio_unit *u);
/* With what an earlier process had open, and u->table; @fd stays the caller's if it fails. */
int vfio_kernel_adopt(struct vfio_unit *u, const int fd[VFIO_PARTS], struct vfio_space *ret,
		      struct sio_err *reterr);
void vfio_kernel_close(struct vfio_unit *u);
int vfio_kernel_map(const struct vfio_unit *u, int fd, const struct sio_req_dmamap *m,
		    struct sio_dev_addr iova, struct sio_err *reterr);
/* From byte @offset of BAR @bar of another one on. -EOPNOTSUPP: not by this backend, or kernel. */
int vfio_kernel_map_bar(const struct vfio_unit *u, const struct vfio_unit *other, uint32_t bar,
			uint64_t offset, const struct sio_req_dmamap *m, struct sio_dev_addr iova,
			struct sio_err *reterr);
int vfio_kernel_unmap(const struct vfio_unit *u, struct sio_dev_addr iova, uint64_t length);
/* Whatever is mapped in there. */
int vfio_kernel_unmap_all(const struct vfio_unit *u, struct sio_dev_addr iova, uint64_t length);
int vfio_kernel_vector(struct vfio_unit *u, uint32_t vector, int fd, struct sio_err *reterr);
/* In a thread of its own; its struct vfio_reset_done comes to u->done. */
int vfio_kernel_reset(struct vfio_unit *u, struct sio_err *reterr);
void vfio_kernel_reset_join(struct vfio_unit *u);

#endif
