/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments and mappings: shared by the files of this folder. */
#ifndef SISCI_SEGMENT_H
#define SISCI_SEGMENT_H

#include "sisci/base/library.h"
#include "sisci/segment/life.h"

extern const struct sio_kind_ops sio_local_segment_kind, sio_remote_segment_kind, sio_mapping_kind;

/*
 * Events of a segment without a callback, until a thread waits for them; or of one with a callback
 * when there was no memory, until the event thread runs. Under the lock.
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
/* Takes an event. -EAGAIN: none; -EOVERFLOW: some were dropped, reported once. */
int sio_segment_take(struct sio_segment_events *q, struct sio_segment_event *ret);
/*
 * Under the lock: an event of segment @o. Queues its callback for the event thread; without a
 * callback, keeps it for a thread that waits.
 */
void sio_segment_happened(struct sio_object *o, unsigned reason, unsigned node, unsigned adapter,
			  sci_error_t status);
/* The status that the callback gets for smartiod's event. */
sci_error_t sio_segment_event_status(const struct sio_evm_segment *e);
/* event.c: work of the event thread, for the kinds' table. */
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
	uint64_t fd_offset; /* where it begins in @fd */
	int fd;		    /* the memory; -1: none */
	/* Whether a segment that was made EMPTY has memory. Under the lock. */
	enum { SIO_HAS_MEMORY, SIO_EMPTY, SIO_FILLING } memory;
	uint32_t memory_kind; /* SMARTIO_MEMORY_*, once it was given some; else 0 */
	void *pages;	      /* of the program, in whose place the memory is; NULL: none */
	size_t pages_bytes;
	bool is_private;
	bool attached;		      /* another program made it */
	bool imported;		      /* its memory is a part of a file of the program's */
	uint32_t prepared, available; /* a bit per adapter; under the lock */
	sci_cb_local_segment_t callback;
	void *callback_arg;
};

struct sio_remote_segment {
	struct sio_object o; /* parent: a virtual device, or the device that it is a segment of */
	struct sio_segment_events events;
	uint32_t segment_id, node;
	uint64_t bytes;
	/* place in the status page, from 1; 0: reached without a path we could see */
	uint32_t path;
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

/* What happened to a map, as its watchers see it. */
enum sio_map_state { SIO_MAP_FINE, SIO_MAP_WAS_DOWN, SIO_MAP_DOWN, SIO_MAP_LOST };
/* A word that is set to that state: a sequence's. */
struct sio_map_watcher {
	struct sio_map_watcher *next, **prev;
	volatile uint32_t *state;
};

/*
 * For a map of an exact multicast group: the DMA queue that copies to its members. Threads take
 * turns; copy/group.c makes the copies.
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
	/* The same as the segment's, which may be freed before a sequence of this map is. */
	uint32_t path, peer_boot;
	struct sio_map_watcher *watchers; /* under the lock */
	uint32_t pages; /* enum sio_map_pages; written under the lock, read without */
	uint32_t cuts;	/* how often its path went down */
	/*
	 * An address of the window whose read pushes stores to another host, while mapped; NULL:
	 * none is needed or possible.
	 */
	const volatile void *window;
	void *aside;		       /* what they were before; NULL: nothing is kept */
	struct sio_map_copier *copier; /* of an exact group; else NULL */
	bool mirrors;	/* of registers, where the program may mean to write; world->note_store() */
	bool registers; /* the writable view of a device's registers is in it. Under the lock */
	bool words;	/* of a BAR: each copy is counted loads or stores, copy.h */
	struct sio_map_files *files; /* NULL: they are not kept. Under the lock */
	struct sio_map_watch
		*watch; /* how its stores wake a device; NULL: there is none. Under the lock */
};

/* Is the path down, so that the map's pages read as ones? */
static inline bool sio_mapping_is_down(const struct sio_mapping *m)
{
	int pages = __atomic_load_n(&m->pages, __ATOMIC_ACQUIRE); /* pairs with step() in map.c */

	return pages == SIO_PAGES_ASIDE || pages == SIO_PAGES_CUT; /* that of one that was down */
}

/* file.c: the files of a map's pieces, which smartio_map_file() reports. */
struct sio_map_files *sio_map_files_new(void);
/* Takes the files of writable pieces; a descriptor that it takes is -1 afterwards. */
void sio_map_files_take(struct sio_map_files *f, const struct sio_rep_seg_map *rep, int *fds,
			unsigned n_fds);
void sio_map_files_free(struct sio_map_files *f, struct sio_world *w);

/* The bytes from the pointer that the program got to the end of the map. */
size_t sio_mapping_room(const struct sio_mapping *m);
/*
 * Finds the map of a BAR or of an exact multicast group in which [@at, @at + @size) lies, with a
 * reference. NULL: none, so memcpy() may write there.
 */
struct sio_mapping *sio_mapping_find(struct sio_library *lib, const volatile void *at, size_t size);

/* Under the lock: sets the words of all watchers of @m to its new state. */
void sio_mapping_notify(struct sio_mapping *m, enum sio_map_state state);

/*
 * copier.c, in order: makes the copier of a new map (-ENOMEM); takes the turn, and returns whether
 * the map is being removed; gives it back (@missed: some member did not get all of the copy, which
 * the map's watchers see); the map is unmapped: no copy is under way, and none will follow; frees
 * what is left.
 */
int sio_map_copier_open(struct sio_mapping *m, struct sio_err *err);
bool sio_map_copier_take(struct sio_mapping *m);
void sio_map_copier_give(struct sio_mapping *m, bool missed);
void sio_map_copier_close(struct sio_mapping *m);
void sio_map_copier_free(struct sio_mapping *m);

/*
 * watch.c: lets stores through a new map, whose pages are as @rep says, wake their device; and
 * frees what is left of that when the pages are gone.
 */
int sio_mapping_watch(struct sio_mapping *m, const struct sio_rep_seg_map *rep,
		      struct sio_err *err);
void sio_mapping_watch_free(struct sio_mapping *m);

/* segment.c: makes a segment without a handle of smartiod's; NULL: -ENOMEM. */
struct sio_local_segment *sio_local_segment_new(uint32_t id, sci_cb_local_segment_t callback,
						void *arg, unsigned flags, struct sio_err *err);
/*
 * Begins the life of a segment, as SCICreateSegment() does, with @size bytes; @parent: NULL: none.
 * Success leaves the caller a reference; on failure the segment was freed.
 */
int sio_local_segment_create(struct sio_library *lib, struct sio_local_segment *seg,
			     struct sio_object *parent, size_t size, unsigned flags,
			     struct sio_err *err);
/* memory.c: makes the program's pages private again. -ENOMEM: not all; try again. */
int sio_local_segment_return_pages(struct sio_local_segment *seg, struct sio_err *err);

/*
 * memory.c: gives memory to a segment that was made EMPTY. begin(): one thread does (-EPERM: it has
 * memory); ask_memory(): that of a dma-buf; adopt(): this host's, in the place of the program's
 * pages, -EFAULT and others; both with what listings call it, SMARTIO_MEMORY_*; then memory_kind is
 * set; finish(): done, with or without memory.
 */
int sio_local_segment_begin(struct sio_local_segment *seg, struct sio_err *err);
int sio_local_segment_ask_memory(struct sio_local_segment *seg, int fd, uint64_t offset,
				 unsigned kind, struct sio_err *err);
int sio_local_segment_adopt(struct sio_local_segment *seg, void *address, size_t size,
			    unsigned kind, struct sio_err *err);
void sio_local_segment_finish(struct sio_local_segment *seg);

/* Under the lock: loses the maps of a segment. For lost(). */
void sio_segment_lose_maps(struct sio_object *segment);
/*
 * Under the lock: the path to the segment went down, or is up again; the maps are as before then.
 */
void sio_remote_segment_path(struct sio_object *segment, bool down);
/*
 * Requests a connection from smartiod: @req is a request of type @type answered by
 * sio_rep_seg_connect. @seg is added here, and returned with a reference.
 */
int sio_remote_segment_connect(struct sio_library *lib, struct sio_remote_segment *seg,
			       struct sio_object *parent, uint32_t type, void *req, size_t req_len,
			       struct sio_err *err);
/* The same without waiting (remote_async.c); *ret is set before the first event can arrive. */
int sio_remote_segment_start(struct sio_library *lib, struct sio_remote_segment *seg,
			     struct sio_object *parent, const struct sio_msg_seg_connect *req,
			     sci_remote_segment_t *ret, struct sio_err *err);
/* Under the lock: a transition. False: the event changes nothing. */
bool sio_remote_segment_step(struct sio_remote_segment *seg, enum sio_connection_event event);
/* Fills in what the reply to a connect says of the segment. */
void sio_remote_segment_fill(struct sio_remote_segment *seg, const struct sio_rep_seg_connect *rep);
/* -ENOTCONN while it is connecting. */
int sio_remote_segment_check(const struct sio_remote_segment *seg, struct sio_err *err);
struct sio_remote_segment *sio_remote_segment_new(uint32_t segment_id, unsigned flags,
						  sci_cb_remote_segment_t callback, void *arg,
						  struct sio_err *err);
/* @offset and @size within @bytes: 0, else -ERANGE or SCI_ERR_SIZE_ALIGNMENT. */
int sio_check_range(uint64_t offset, uint64_t size, uint64_t bytes, struct sio_err *err);

#endif
