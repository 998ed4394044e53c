/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio-vfio's loop: one daemon's connection, owners' pipes, functions that come and go. */
#ifndef SMARTIOD_VFIO_LIVE_H
#define SMARTIOD_VFIO_LIVE_H

#include "smartiod/port_vfio/vfio_kernel.h"
#include "smartiod/port_vfio/vfio_record.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* What the loop waits for. */
enum vfio_source_kind {
	VFIO_LISTENER,
	VFIO_DAEMON,
	VFIO_OWNER,   /* the last descriptor of an owner was closed */
	VFIO_REQUEST, /* the kernel wants a function back */
	VFIO_NOTES,   /* functions were added or removed, groups were closed */
	VFIO_UEVENTS, /* the kernel has bound a driver, or unbound one */
	VFIO_RESET,
	VFIO_SIGNAL
};

struct vfio_source {
	enum vfio_source_kind kind;
	int fd;
	uint64_t id; /* owner: its number and inode; request: of the device */
	uint64_t inode;
	UT_hash_handle hh;
};

struct vfio_packet;
struct vfio_store;

struct vfio_live {
	const char *state;
	struct vfio_port *port;
	int epoll, lock;
	struct vfio_source listener, daemon, notes, uevents, resets, signals;
	int notes_watch, reset_write;
	const struct vfio_backend *by; /* of all devices; NULL: of each as the kernel has it */
	bool had_daemon, drained, end;
	bool activated;			   /* the listener is systemd's */
	struct vfio_store *store;	   /* NULL: nothing is kept */
	struct vfio_packet *first, **last; /* to the daemon, who does not read */
	unsigned queued;
	struct vfio_source *owners; /* by number */
	struct vfio_unit *units;
	struct vfio_source *requests; /* by device */
};

extern const struct vfio_ops vfio_live_ops;

void vfio_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int vfio_live_watch(struct vfio_live *l, struct vfio_source *s, uint32_t events);
void vfio_live_unwatch(struct vfio_live *l, struct vfio_source *s);

/* Hear of nodes that are closed: vfio_units_freed(). */
void vfio_watch_nodes(struct vfio_live *l);

/* ---- vfio_units.c ---- */

/* Look which functions are ours: those with a note, and with vfio-pci. */
void vfio_units_look(struct vfio_live *l);
/* @node, of a group or a device, was closed just now: somebody else may have had it. */
void vfio_units_freed(struct vfio_live *l, const char *node);
/* Milliseconds until units_retry() is wanted; -1: it is not. */
int vfio_units_wait(const struct vfio_live *l);
void vfio_units_retry(struct vfio_live *l);
/* The kernel wants it back. */
void vfio_unit_wanted(struct vfio_live *l, uint64_t id);
/* Its thread has ended; it goes if that was wanted meanwhile. */
void vfio_unit_was_reset(struct vfio_live *l, struct vfio_unit *u);
struct vfio_unit *vfio_unit_find(const struct vfio_live *l, uint64_t id);
/* Another one of its group that is open; NULL: none. */
struct vfio_unit *vfio_unit_partner(const struct vfio_live *l, const struct vfio_unit *u);
void vfio_units_free(struct vfio_live *l);
/* One that was open when an earlier process ended, with what it had open. */
int vfio_unit_again(struct vfio_live *l, const struct sio_evt_device *info, struct vfio_space *ret,
		    struct sio_err *reterr);

/* ---- vfio_reach.c ---- */

/* Before @u's container maps a BAR of @target. 0 or -errno. */
int vfio_reach_note(const struct vfio_live *l, const struct vfio_unit *u,
		    const struct vfio_unit *target, struct sio_err *reterr);
/* Has somebody a function, named in @ret, whose mappings may reach @u, and are not ours? */
bool vfio_reach_left(const struct vfio_live *l, const struct vfio_unit *u, char ret[VFIO_NAME]);
/* It was opened: what its container mapped before has gone, and nothing reaches it. */
void vfio_reach_opened(const struct vfio_live *l, const struct vfio_unit *u);
/* Nothing of ours reaches it any more. */
void vfio_reach_gone(const struct vfio_live *l, const struct vfio_unit *u);

/* ---- vfio_store.c ---- */

/* What earlier processes kept goes on, and what comes is kept. */
int vfio_store_open(struct vfio_live *l);
/* What is closed from now on is the next process's. */
void vfio_store_close(struct vfio_live *l);
/* Operations of the port. */
void vfio_store_keep_head(void *ctx, const struct vfio_head *h);
void vfio_store_keep_device(void *ctx, const struct vfio_device_record *r);
void vfio_store_keep(void *ctx, const struct vfio_record *r, int fd);
void vfio_store_forget(void *ctx, uint64_t id);
/* What is open of a device. */
void vfio_store_device(struct vfio_live *l, const struct vfio_unit *u);
void vfio_store_device_closed(struct vfio_live *l, const struct vfio_unit *u);
/* What was, by u->by, to @ret and u->table: all of it, or nothing (-ENOENT). */
int vfio_store_take_device(struct vfio_live *l, struct vfio_unit *u, int ret[VFIO_PARTS]);

/* ---- vfio_socket.c ---- */

int vfio_socket_open(struct vfio_live *l);
void vfio_socket_accept(struct vfio_live *l);
void vfio_socket_event(struct vfio_live *l, uint32_t events);
/* As the operation send. */
int vfio_socket_send(struct vfio_live *l, const void *evt, size_t len, const int *fds,
		     unsigned n_fds);
/*
 * Nobody can connect any more. false: somebody did before, and is served now.
 */
bool vfio_socket_close(struct vfio_live *l);

#endif
