/* SPDX-License-Identifier: BSD-2-Clause */
/* The live edge of the machine room: sockets, memory files, one loop. Not part of lib_emu. */
#ifndef EMU_LIVE_H
#define EMU_LIVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "core/err.h"
#include "core/topology.h"
#include "eventfd/eventfd.h"
#include "emu/devices/store.h"
#include "emu/live/vfiomem.h"
#include "emu/machine/pace.h"
#include "emu/machine/room.h"
#include "emu/ntb/ntb.h"

#define LIVE_PATH_MAX 107 /* bytes of a socket's path */
#define LIVE_VFIO_FDS 52  /* of a machine's device beside its interrupts: messages on their way */
#define LIVE_CALLERS 8	  /* of the socket "room" at a time */

/* The kinds of descriptors that epoll events are about. */
enum live_kind {
	LIVE_LISTENER,
	LIVE_PORT,
	LIVE_OWNER,
	LIVE_SIGNAL,
	LIVE_WATCH,
	LIVE_ENGINES,
	LIVE_CONTROL,
	LIVE_VFIO_LISTENER, /* host: the index of the device or adapter */
	LIVE_VFIO,
	LIVE_ALARM,
	LIVE_STORE
};

struct live_source {
	enum live_kind kind;
	unsigned host;
	int fd;
};

/* An event that its daemon has not read yet. */
struct live_packet {
	struct live_packet *prev, *next;
	size_t len;
	int fds[SIO_PORT_MAX_FDS];
	unsigned n_fds;
	unsigned char data[];
};

/* The pool of an emulated host. */
struct live_pool {
	uint32_t node;
	int fd; /* -1: none */
	char path[LIVE_PATH_MAX + 1];
};

struct live_key {
	uint64_t id;
	uint64_t host;
};

struct live_owner {
	struct live_source source;
	struct live_key key;
	UT_hash_handle hh;
	struct live_owner *next_dead;
};

struct live_watch {
	struct live_source source;
	struct live_key key;
	UT_hash_handle hh;
	struct live_watch *next_dead;
	uint32_t kind; /* SIO_WATCH_* */
	bool armed;    /* FAULT: the pages are protected */
	uint64_t address, length;
};

struct live_port {
	struct live_source listener, socket;
	char path[LIVE_PATH_MAX + 1];
	struct live_packet *queue;
	unsigned n_queued;
	unsigned single; /* turns that take one request */
	bool cut;	 /* to be closed as soon as the room has returned */
};

/* A client of the socket "room": one request, one answer; who prepares a reload has one more. */
struct live_caller {
	struct live_caller *prev, *next;
	struct live_source source;
};

struct live {
	struct sio_topology *topo;
	uint32_t moved; /* node id of a host whose addresses are not the file's; 0: none */
	const char *topology_path;
	/* What the next file changes, between two requests of a reload; NULL: nothing. */
	struct sio_topology *next;
	struct emu_change *change;
	bool serving; /* hosts have devices: nobody waits for a file of a drive */
	uint64_t own_fds,
		max_fds;    /* descriptors of the room's own, but for devices; of the process */
	unsigned own_hosts; /* that @own_fds counts */
	struct emu_room *room;
	struct live_port *port;
	struct live_owner *owners;
	struct live_owner *dead; /* freed when no event of this turn can name them */
	struct live_watch *watches;
	struct live_watch *dead_watches; /* likewise */
	unsigned n_watches, n_armed;
	bool woken; /* a watch has fired */
	struct emu_pace pace;
	struct live_engine *engine; /* of each host */
	pthread_rwlock_t engines_lock;
	unsigned engines_stops; /* by the room's thread, one in another */
	bool engines_end;
	struct live_source engines_report;
	int epoll, random_fd;
	struct sio_eventfd events;
	struct live_source signal;
	int spare_fd; /* to turn callers away when there is no other */
	bool stop;
	const char *state_dir;
	struct live_source control;		    /* the listener */
	struct live_caller *callers, *dead_callers; /* likewise */
	unsigned n_callers;
	struct live_caller *reloader; /* who had @change prepared; NULL: nobody */
	char control_path[LIVE_PATH_MAX + 1];
	struct live_vfio *vfio; /* devices and adapters of machines */
	unsigned n_vfios;
	struct emu_ntb *ntb;		   /* what joins machines; NULL: none has an adapter */
	char pool_path[LIVE_PATH_MAX + 1]; /* memory of mapped machines; empty: there are none */
	dev_t pool_device;
	ino_t pool_inode;
	struct live_pool *pool; /* of emulated hosts */
	unsigned n_pools;
	struct live_source alarm;
	uint64_t alarm_at;	  /* 0: it is not set */
	struct live_store *store; /* NULL: no drive has a file */
	int pid_fd;
	char pid_path[LIVE_PATH_MAX + 1];
};

/* ops.c */
extern const struct emu_ops live_ops;
void live_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void live_owners_bury(struct live *l);
int live_watch(struct live *l, struct live_source *s, uint32_t events);
bool live_is_event(void *ctx, int fd);

/* port.c */
int live_ports_open(struct live *l, struct sio_err *reterr);
/* What there is one of for each host, as long as that is: hosts come and go. */
unsigned live_max_hosts(const struct live *l);
/*
 * The port of a host that is to come, @node, has its name; nobody can connect to it before
 * live_port_open(). The host is off when live_port_close() returns.
 */
int live_port_prepare(struct live *l, unsigned host, uint32_t node, struct sio_err *reterr);
int live_port_open(struct live *l, unsigned host, struct sio_err *reterr);
void live_port_close(struct live *l, unsigned host);
/* The host is off, as when its daemon's connection ends. It may be off already. */
void live_port_cut(struct live *l, unsigned host);
void live_ports_close(struct live *l);
void live_port_event(struct live *l, const struct live_source *s, uint32_t events);
void live_ports_cut(struct live *l);
/* No descriptor is left to accept with: accepts with the spare one, and refuses the caller. */
void live_turn_away(struct live *l, int listener, const char *name);
int live_send(void *ctx, unsigned host, const void *evt, size_t len, const int *fds,
	      unsigned n_fds);

#define LIVE_ANSWER 8192 /* of the socket "room" */
/* reload.c: "check", "prepare", "commit", "drop": see control.c. */
int live_reload(struct live *l, const char *step, const char *file, char answer[LIVE_ANSWER],
		struct sio_err *reterr);
void live_reload_drop(struct live *l);
/* Hosts share the descriptors that the room does not need itself. */
void live_share_descriptors(struct live *l);

/* control.c: faults on demand (smartio fault). */
int live_control_open(struct live *l, struct sio_err *reterr);
void live_control_close(struct live *l);
void live_control_event(struct live *l, const struct live_source *s);
void live_callers_bury(struct live *l);

/* state.c: this program's part of the state directory. */
int live_state_lock(struct live *l, struct sio_err *reterr);
void live_state_unlock(struct live *l);
int live_path(char *path, size_t size, struct sio_err *reterr, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* watch.c */
int live_watch_new(void *ctx, unsigned host, uint64_t watch, uint32_t kind, int fd,
		   uint64_t address, uint64_t length);
void live_watch_free(void *ctx, unsigned host, uint64_t watch);
void live_watch_event(struct live *l, const struct live_source *s, uint32_t events);
/* Protects all pages that are not protected; removes the protection of one watch's pages. */
void live_watches_arm(struct live *l);
void live_watches_calm(struct live *l);
/* Lets stores that wait in a fault try again: one whose event did not come faults once more. */
void live_watches_retry(struct live *l);
void live_watches_bury(struct live *l);
void live_watches_close(struct live *l);

/* engine.c */
int live_engines_open(struct live *l, struct sio_err *reterr);
/* Stops all engines; the room's channels may still exist. */
void live_engines_end(struct live *l);
void live_engines_close(struct live *l);
void live_engines_event(struct live *l);
/* The descriptors of one that may start later. */
int live_engine_open(struct live *l, unsigned host);
/* Of a host that goes, which has no channels any more: it has ended, and may be opened again. */
void live_engine_close(struct live *l, unsigned host);
int live_engine_start(void *ctx, unsigned host);
int live_engine_watch(void *ctx, unsigned host, int fd);
void live_engine_unwatch(void *ctx, unsigned host, int fd);
void live_engines_stop(void *ctx);
void live_engines_go(void *ctx);
void live_engine_report(void *ctx);

/* pool.c: makes the pools of emulated hosts, which machines know by @key; removes them. */
int live_pools_open(struct live *l, uint64_t key, struct sio_err *reterr);
void live_pools_close(struct live *l);

/* ntb.c: adapters of machines: the file with their RAM, and the clock. */
int live_ntb_open(struct live *l, struct sio_err *reterr);
void live_ntb_close(struct live *l);
void live_ntb_event(struct live *l);
/*
 * Where a range of a machine's bus lies in the file that its QEMU describes it with: *offset, as
 * QEMU says it, is changed. Return: 0; -ERANGE: nobody can tell; -errno.
 */
int live_ntb_place(const struct live *l, uint32_t node, int fd, const struct sio_vfio_range *r,
		   uint64_t *offset);
int live_machine_memory(void *ctx, const struct emu_reach *x, struct emu_reached *ret);
int live_machine_message(void *ctx, const struct emu_reach *x, uint32_t data, bool send);
int live_machine_store(void *ctx, const struct emu_reach *x, const uint32_t *data);
/* A host of the room is on, or off: informs the machines. */
void live_ntb_host(struct live *l, unsigned host);
/* As emu_ntb_link(); as emu_ntb_switch() or emu_ntb_trunk(). */
void live_ntb_link(struct live *l, uint32_t node, unsigned adapter, bool up);
void live_ntb_outage(struct live *l, bool is_switch, unsigned index, bool in);

/* vfio.c: devices and adapters of machines, served to clients of vfio-user. */
int live_vfios_open(struct live *l, struct sio_err *reterr);
void live_vfios_close(struct live *l);
void live_vfio_event(struct live *l, const struct live_source *s, uint32_t events);
void live_vfios_cut(struct live *l);
unsigned live_vfios_step(struct live *l, unsigned budget);
bool live_vfios_busy(const struct live *l);
/* Counters of a machine's device, and whether a peer has it. Return: how many, at most @max. */
unsigned live_vfio_counters(const struct live *l, const struct sio_topo_device *device,
			    bool *ret_attached, char (*name)[32], uint64_t *value, unsigned max);

/*
 * report.c: answers about a machine's adapters, and one of its devices. Four adapters of 22 words,
 * or a device's COUNTERS_MOST, with numbers of 20 digits, take less than LIVE_ANSWER.
 */
void live_report_machine(const struct live *l, const struct sio_topo_host *machine,
			 char answer[LIVE_ANSWER]);
void live_report_device(const struct live *l, const struct sio_topo_device *device,
			char answer[LIVE_ANSWER]);

/* store.c, or store_none.c without liburing: files that back drives, an emu_store. */
struct emu_store *live_store(void *ctx);
/* From now on the loop is woken by what ends. */
int live_store_watch(struct live *l, struct sio_err *reterr);
void live_store_event(struct live *l);
void live_store_close(struct live *l);

/* loop.c */
int live_loop_open(struct live *l, struct sio_err *reterr);
void live_loop_close(struct live *l);
void live_loop_run(struct live *l);

#endif
