/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments and maps, as the files about them share them. */
#ifndef SISCI_SEGMENT_H
#define SISCI_SEGMENT_H

#include "sisci/base/library.h"
#include "sisci/segment/life.h"

extern const struct sio_kind_ops sio_local_segment_kind, sio_remote_segment_kind, sio_mapping_kind;

/*
 * What happened to a segment without a callback, until somebody waits for it; or to one with a
 * callback when there was no memory, until the event thread comes. Under the lock.
 */
#define SIO_SEGMENT_EVENTS 32u
struct sio_segment_event {
	uint32_t reason, node, adapter;
	sci_error_t status;
};
/* Work of the event thread. */
struct sio_task {
	struct sio_task *next;
	struct sio_object
		*object; /* with a reference; of a segment's own task NULL while not queued */
	struct sio_segment_event event; /* not of a segment's own: what was noted there */
};
struct sio_segment_events {
	struct sio_segment_event event[SIO_SEGMENT_EVENTS]; /* a ring */
	unsigned first, n;
	bool overflow; /* the oldest were dropped, which was not reported yet */
	struct sio_task task;
	/* Calls the segment's callback with an event (@arg); NULL: it has none. */
	sci_callback_action_t (*run)(struct sio_object *o, void *arg);
};
struct sio_segment_events *sio_segment_events(struct sio_object *o);
/* -EAGAIN: nothing; -EOVERFLOW: some were dropped, reported once. */
int sio_segment_take(struct sio_segment_events *q, struct sio_segment_event *ret);
/*
 * Under the lock: something happened to segment @o. Queue its callback for the event thread;
 * without one, keep it for who waits.
 */
void sio_segment_happened(struct sio_object *o, unsigned reason, unsigned node, unsigned adapter,
			  sci_error_t status);
/* The status that smartiod's event is passed on with. */
sci_error_t sio_segment_event_status(const struct sio_evm_segment *e);
/* event.c: work for the event thread, as the kinds' table has it. */
struct sio_segment_tasks {
	struct sio_task *first, **end;
};
void sio_segment_tasks_init(void *state);
bool sio_segment_tasks_wait(const void *state);
void sio_segment_tasks_run(struct sio_library *lib);
void sio_segment_tasks_purge(struct sio_library *lib);

struct sio_local_segment {
	struct sio_object o;
	struct sio_segment_events events; /* second, as in a remote one */
	uint32_t segment_id;
	uint64_t bytes, phys_addr;
	int fd; /* the memory; -1: none */
	/* Made EMPTY. Under the lock. */
	enum { SIO_HAS_MEMORY, SIO_EMPTY, SIO_FILLING } memory;
	void *pages; /* of the program, in whose place the memory is; NULL: none */
	size_t pages_bytes;
	bool is_private;
	bool attached;		      /* another program made it */
	uint32_t prepared, available; /* a bit per adapter; under the lock */
	sci_cb_local_segment_t callback;
	void *callback_arg;
};

struct sio_remote_segment {
	struct sio_object o; /* parent: a virtual device, or the device that it is a segment of */
	struct sio_segment_events events;
	uint32_t segment_id, node;
	uint64_t bytes;
	uint32_t
		path; /* place in the status page, from 1; 0: reached without a path we could see */
	uint32_t peer_boot;  /* of the host that it is on; low half */
	uint32_t connection; /* enum sio_connection; written under the lock, read without */
	bool is_bar;
	uint32_t fdid;	      /* of the device that it is a BAR of */
	uint64_t bar_address; /* of a BAR: in the physical map of its host */
	bool exact;	      /* a multicast group whose members have each their own memory */
	unsigned adapter;     /* of ours, that it is connected through */
	sci_cb_remote_segment_t callback;
	void *callback_arg;
};

/* What became of a map, as its watchers see it. */
enum sio_map_state { SIO_MAP_FINE, SIO_MAP_WAS_DOWN, SIO_MAP_DOWN, SIO_MAP_LOST };
/* A word that is set to it: a sequence's. */
struct sio_map_watcher {
	struct sio_map_watcher *next, **prev;
	volatile uint32_t *state;
};

/*
 * Of a map of an exact multicast group: the DMA queue that copies to its members. Threads take
 * turns; the copies are made by copy/group.c.
 */
struct sio_map_copier {
	struct sio_object *queue; /* with a reference; made for the first copy */
	bool busy;		  /* a thread copies. Under the lock */
};

struct sio_mapping {
	struct sio_object o; /* parent: the segment */
	void *base;	     /* whole pages; NULL: unmapped. Under the lock */
	size_t bytes;
	void *pointer; /* what the program got */
	uint64_t offset;
	bool read_only;	  /* it, or a part of it */
	uint64_t address; /* of its first page in this host's physical map; 0: it has none */
	/* As the segment's, which may be gone before a sequence of this map is. */
	uint32_t path, peer_boot;
	struct sio_map_watcher *watchers; /* under the lock */
	uint32_t pages; /* enum sio_map_pages; written under the lock, read without */
	uint32_t cuts;	/* how often its path went down */
	/*
	 * Where a read pushes stores to another host, while mapped; NULL: it needs or bears none.
	 */
	const volatile void *window;
	void *aside;		       /* what they were before; NULL: nothing is kept */
	struct sio_map_copier *copier; /* of an exact group; else NULL */
	bool mirrors;	/* of registers, where the program may mean to write; world->note_store() */
	bool registers; /* the writable view of a device's registers is in it. Under the lock */
	bool words;	/* of a BAR: each copy is counted loads or stores, copy.h */
	struct sio_map_watch
		*watch; /* how its stores wake a device; NULL: there is none. Under the lock */
};

/* While the path is down its pages read as ones. */
static inline bool sio_mapping_is_down(const struct sio_mapping *m)
{
	int pages = __atomic_load_n(&m->pages, __ATOMIC_ACQUIRE);

	return pages == SIO_PAGES_ASIDE || pages == SIO_PAGES_CUT; /* that of one that was down */
}

/* From the pointer that the program got to the end. */
size_t sio_mapping_room(const struct sio_mapping *m);
/*
 * The map of a BAR or of an exact multicast group that [@at, @at + @size) lies in, with a
 * reference. NULL: none, so memcpy() may write there.
 */
struct sio_mapping *sio_mapping_find(struct sio_library *lib, const volatile void *at, size_t size);

/* Under the lock: @m became this; its watchers see it. */
void sio_mapping_tell(struct sio_mapping *m, enum sio_map_state state);

/*
 * copier.c: make the copier of a new map (-ENOMEM); take and give back the turn, which says whether
 * the map is being removed, and was not copied in full; the map is unmapped: no copy is under way,
 * and none will be; free what is left.
 */
int sio_map_copier_open(struct sio_mapping *m, struct sio_err *err);
bool sio_map_copier_take(struct sio_mapping *m);
void sio_map_copier_give(struct sio_mapping *m, bool missed);
void sio_map_copier_close(struct sio_mapping *m);
void sio_map_copier_free(struct sio_mapping *m);

/*
 * watch.c: let stores through a new map, whose pages are as @rep says, wake their device; forget
 * it; and what is left when the pages are gone.
 */
int sio_mapping_watch(struct sio_mapping *m, const struct sio_rep_seg_map *rep,
		      struct sio_err *err);
void sio_mapping_watch_free(struct sio_mapping *m);

/* segment.c: a segment without a handle of smartiod's; NULL: -ENOMEM. */
struct sio_local_segment *sio_local_segment_new(uint32_t id, sci_cb_local_segment_t callback,
						void *arg, unsigned flags, struct sio_err *err);
/*
 * Begin its life, as SCICreateSegment() does, with @size bytes; @parent: NULL: none. Success leaves
 * the caller a reference; on failure it was freed.
 */
int sio_local_segment_create(struct sio_library *lib, struct sio_local_segment *seg,
			     struct sio_object *parent, size_t size, unsigned flags,
			     struct sio_err *err);
/* memory.c: the program's pages are private again. -ENOMEM: not all; try again. */
int sio_local_segment_return_pages(struct sio_local_segment *seg, struct sio_err *err);

/* Under the lock: lose the maps of a segment. For lost(). */
void sio_segment_lose_maps(struct sio_object *segment);
/* Under the lock: the path to it went down, or is up again; maps are as they were before. */
void sio_remote_segment_path(struct sio_object *segment, bool down);
/*
 * Ask smartiod for a connection: @req is a request of type @type answered by sio_rep_seg_connect.
 * @seg is added here, and given back with a reference.
 */
int sio_remote_segment_connect(struct sio_library *lib, struct sio_remote_segment *seg,
			       struct sio_object *parent, uint32_t type, void *req, size_t req_len,
			       struct sio_err *err);
/* The same without waiting (remote_async.c); *ret is set before the first event can come. */
int sio_remote_segment_start(struct sio_library *lib, struct sio_remote_segment *seg,
			     struct sio_object *parent, const struct sio_msg_seg_connect *req,
			     sci_remote_segment_t *ret, struct sio_err *err);
/* Under the lock. False: that changes nothing. */
bool sio_remote_segment_step(struct sio_remote_segment *seg, enum sio_connection_event event);
/* What the reply to a connect says of it. */
void sio_remote_segment_fill(struct sio_remote_segment *seg, const struct sio_rep_seg_connect *rep);
/* -ENOTCONN while it is connecting. */
int sio_remote_segment_check(const struct sio_remote_segment *seg, struct sio_err *err);
struct sio_remote_segment *sio_remote_segment_new(uint32_t segment_id, unsigned flags,
						  sci_cb_remote_segment_t callback, void *arg,
						  struct sio_err *err);
/* @offset and @size within @bytes: 0, else -ERANGE or SCI_ERR_SIZE_ALIGNMENT. */
int sio_check_range(uint64_t offset, uint64_t size, uint64_t bytes, struct sio_err *err);

#endif
