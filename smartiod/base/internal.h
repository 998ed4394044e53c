/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside smartiod: what its files do with its objects (objects.h), and the framework for work that
 * waits for answers.
 *
 * Rules that everything here keeps
 *  - One event at a time. An operation of the edge never calls back into the daemon.
 *  - Objects refer to each other by pointer only while one pins the other; across a wait an
 *    operation holds a pin on each object that it uses, and looks at the object's state again when
 *    the answer comes: the session may be gone, the connection lost, the segment removed.
 *  - Giving back (UNMAP, UNGRANT, FREE, releases to peers) needs no memory and no answer: the port
 *    carries out requests in the order they were sent. It therefore can never fail half way.
 *  - A request whose session or asking peer is gone runs on to its next answer and then gives back
 *    what that brought.
 */
#ifndef SMARTIOD_INTERNAL_H
#define SMARTIOD_INTERNAL_H

#include "smartiod/base/objects.h"

/* ---- daemon.c ---- */

void smartiod_log(struct smartiod *d, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
uint64_t smartiod_uid(struct smartiod *d);
/* The text of -EMFILE: which limit it is, and how it is raised. */
const char *smartiod_no_descriptor(struct smartiod *d);
/* Close *fd if it is one, and set it to -1. */
void smartiod_close_fd(struct smartiod *d, int *fd);
/* smartiod_device_start() calls one of these when it has opened the devices, or cannot. */
void smartiod_start_done(struct smartiod *d);
void smartiod_fatal(struct smartiod *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- op.c, op_port.c ---- */

/*
 * A new operation of @size bytes (zeroed, struct smartiod_op first) for a client's request @type,
 * @id (@session NULL: nobody's). NULL: no memory, or too many pending (then *reterr says so).
 */
void *smartiod_op_new(struct smartiod *d, struct smartiod_session *session, const void *request,
		      size_t size, smartiod_step *step, struct sio_err *reterr);
/* The same for a request of peer @node. */
void *smartiod_op_new_peer(struct smartiod *d, uint32_t node, const void *request, size_t size,
			   smartiod_step *step, struct sio_err *reterr);
/* The operation ends; it must not be waiting. What it holds must have been given away. */
void smartiod_op_free(struct smartiod *d, struct smartiod_op *op);
/* Nobody waits for this any more. */
static inline bool smartiod_op_orphan(const struct smartiod_op *op)
{
	return !op->session && !op->asker;
}
/* Reply to who asked (nobody: nothing). @msg is a whole reply; its header is filled here. */
void smartiod_op_reply(struct smartiod *d, struct smartiod_op *op, void *msg, size_t len,
		       const int *fds, unsigned n_fds);
/* A reply that is success alone. */
void smartiod_op_ok(struct smartiod *d, struct smartiod_op *op);
/*
 * A refusal. What ran out is what @op was told last by an answer, or by smartiod_op_note(), if that
 * was @error; else what @error says by itself.
 */
void smartiod_op_error(struct smartiod *d, struct smartiod_op *op, int error, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same with error, reason and text of @err. */
void smartiod_op_fail(struct smartiod *d, struct smartiod_op *op, const struct sio_err *err);
/* Something else failed that @op needs: a refusal with @error that follows is for @reason. */
void smartiod_op_note(struct smartiod_op *op, int error, uint32_t reason);
/* What ran out, in a refusal of @op with @error. */
uint32_t smartiod_op_reason(const struct smartiod_op *op, int error);
/* @op goes on with an answer that it does not wait for. */
void smartiod_op_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a);

/*
 * Send a request to the port; its answer goes to op->step. @req: h.op, h.owner and h.flags are set
 * by the caller, h.size and h.cookie here.
 */
void smartiod_port_ask(struct smartiod *d, struct smartiod_op *op, void *req, size_t len);
/*
 * What somebody is told who wanted a thing of another program: the port says -EPERM when that
 * program has ended, of which it knows before we do.
 */
static inline int smartiod_gone(int error)
{
	return error == -EPERM ? -ENOENT : error;
}
/* With a descriptor, which stays the caller's; -1: without. */
void smartiod_port_ask_fd(struct smartiod *d, struct smartiod_op *op, void *req, size_t len,
			  int fd);
/* The same without waiting: for giving back. A failure is logged. */
void smartiod_port_tell(struct smartiod *d, void *req, size_t len);
/* Shorthands for giving back; id 0 does nothing. */
void smartiod_port_free(struct smartiod *d, uint64_t mem);
void smartiod_port_ungrant(struct smartiod *d, uint64_t grant);
void smartiod_port_unmap(struct smartiod *d, uint64_t map);
void smartiod_port_owner_close(struct smartiod *d, uint64_t owner);

/*
 * Send a request (SIO_PEER_*) to the daemon of @node; its reply goes to op->step. @msg is a whole
 * message; type is set by the caller, the rest of the header here. A peer whose link is up is
 * waited for. On a failure to send nothing waits and the caller goes on.
 * Return: 0; -EHOSTUNREACH: no such node; -ENETDOWN: no link; -ENOMEM.
 */
int smartiod_peer_ask(struct smartiod *d, struct smartiod_op *op, uint32_t node, void *msg,
		      size_t len);
/* The same without a reply. A peer that is not there gets nothing: it forgot us, too. */
void smartiod_peer_tell(struct smartiod *d, uint32_t node, void *msg, size_t len);

/* Wait until smartiod_op_resume() (which calls the step with error 0 and msg NULL). */
void smartiod_op_park(struct smartiod_op *op);
/* Not longer than @ns: then the step gets -ETIMEDOUT. */
void smartiod_op_doze(struct smartiod *d, struct smartiod_op *op, uint64_t ns);
void smartiod_op_resume(struct smartiod *d, struct smartiod_op *op);
/* A descriptor out of an answer: now the caller's; -1: there is none. */
int smartiod_take_fd(const struct smartiod_answer *a, unsigned index);

/* For op_port.c: @op waits for an answer; and has it. */
void smartiod_op_wait(struct smartiod *d, struct smartiod_op *op, enum smartiod_wait wait);
void smartiod_op_wake(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a);

/* For session.c, peer.c, daemon.c. */
void smartiod_op_port_answer(struct smartiod *d, const struct sio_evt *evt, size_t len, int *fds,
			     unsigned n_fds);
void smartiod_op_peer_reply(struct smartiod *d, uint32_t node, const struct sio_msg *msg,
			    size_t len);
void smartiod_op_orphan_session(struct smartiod *d, struct smartiod_session *s);
/* Requests of @node are nobody's; those that wait for it fail with @error. */
void smartiod_op_peer_down(struct smartiod *d, uint32_t node, int error);
/* What waits for it, alone: the connection stays, and late replies are given back. */
void smartiod_op_peer_fail(struct smartiod *d, uint32_t node, int error, const char *text);
void smartiod_op_peer_ready(struct smartiod *d, uint32_t node);
/* Fail what is overdue. Return: when to look again. */
uint64_t smartiod_op_expire(struct smartiod *d, uint64_t now);
void smartiod_arm(struct smartiod *d, uint64_t when);

/* ---- session.c, hello.c ---- */

/*
 * Handlers of client requests. Size and reserved fields are checked, HELLO was answered. Return: 0:
 * replied, or an operation will; -errno: the caller replies with it and @reterr's text.
 */
typedef int smartiod_client_fn(struct smartiod *d, struct smartiod_session *s, const void *msg,
			       struct sio_err *reterr);

smartiod_client_fn smartiod_hello, smartiod_bye;
/* d->refused is from the last SIO_REFUSED_RECENT_S seconds. */
bool smartiod_refused_lately(struct smartiod *d);
struct smartiod_session *smartiod_session_find(struct smartiod *d, uint64_t client);
/* The one of this owner; NULL. */
struct smartiod_session *smartiod_session_by_owner(struct smartiod *d, uint64_t owner);
/* Answer a HELLO; the session is OPEN from now on. */
void smartiod_hello_reply(struct smartiod *d, struct smartiod_session *s, const void *request,
			  const int *fds, unsigned n_fds);
/* Serve a HELLO that proves nothing, of a kind that was checked. */
int smartiod_hello_now(struct smartiod *d, struct smartiod_session *s, const void *request,
		       struct sio_err *reterr);
/* @msg: a whole reply to @request; the header is filled here. */
void smartiod_reply(struct smartiod *d, struct smartiod_session *s, const void *request, void *msg,
		    size_t len, const int *fds, unsigned n_fds);
void smartiod_reply_ok(struct smartiod *d, struct smartiod_session *s, const void *request);
/* An event (SIO_EVM_*) to a client; @s NULL or ending: nothing. The header is filled here. */
void smartiod_event(struct smartiod *d, struct smartiod_session *s, uint32_t type, void *msg,
		    size_t len, const int *fds, unsigned n_fds);
/*
 * From here on: handles of segments whose maker has let go of them, by the numbers of their memory.
 * A session counts up to here, and has told no program of others.
 */
#define SMARTIOD_LET_GO_HANDLES 0xff000000u
/* Give @o a handle. -EMFILE: too many, with a text. */
int smartiod_object_add(struct smartiod_session *s, struct smartiod_object *o,
			enum smartiod_kind kind, struct sio_err *reterr);
/* Take its handle away; nothing if it has none. */
void smartiod_object_remove(struct smartiod_object *o);
/* The object of this kind with this handle; NULL: none, with *reterr EBADF. */
void *smartiod_object_get(struct smartiod_session *s, uint32_t handle, enum smartiod_kind kind,
			  struct sio_err *reterr);
/* Cut a client off for what it sent, and end its session. */
void smartiod_session_cut(struct smartiod *d, struct smartiod_session *s, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void smartiod_session_owner_gone(struct smartiod *d, struct smartiod_session *s);
void smartiod_session_free_all(struct smartiod *d);
/* Of @handle in the objects of a client: 0 for none. */
static inline uint32_t smartiod_handle(const struct smartiod_object *o)
{
	return o->session ? (uint32_t)o->by_handle.key : 0;
}

/* ---- seal.c ---- */

/*
 * What a program has of others, or by a number of its own choice, the port cannot prove. So the
 * replies that bring it have a seal, a MAC under a secret of the session that the port keeps with
 * its owner and no program hears: the next smartiod believes what has the right one. seal.c.
 */
#define SMARTIOD_COOKIE_SESSION (1ULL << 62) /* of an owner's cookie: the rest is the secret */
uint64_t smartiod_new_secret(struct smartiod *d);
uint64_t smartiod_seal(const struct smartiod_session *s, uint32_t type, uint32_t handle,
		       uint64_t key, uint64_t number, uint64_t more);
uint64_t smartiod_siphash(const uint64_t key[2], const uint64_t *words, unsigned n);

/* Of an interrupt: what numbers are numbers of. */
static inline uint64_t smartiod_dint_seal_number(bool plain, uint32_t adapter, uint32_t number)
{
	return (uint64_t)plain << 63 | (uint64_t)adapter << 32 | number;
}

/* ---- segment.c ---- */

smartiod_client_fn smartiod_seg_create, smartiod_seg_prepare, smartiod_seg_available,
	smartiod_seg_unavailable, smartiod_seg_fill;
/* removal.c */
smartiod_client_fn smartiod_seg_remove;
/* segment_share.c */
smartiod_client_fn smartiod_seg_share, smartiod_seg_attach;
/* What a handle of either kind stands for; NULL with *reterr. _ready: with its memory. */
struct smartiod_segment *smartiod_segment_get(struct smartiod_session *s, uint32_t handle,
					      struct sio_err *reterr);
struct smartiod_segment *smartiod_segment_get_ready(struct smartiod_session *s, uint32_t handle,
						    struct sio_err *reterr);
/* A handle that was found goes, if others of its segment stay. Return: whether. */
bool smartiod_segment_let_go(struct smartiod_session *s, uint32_t handle);
/* Has it more than one handle? */
bool smartiod_segment_has_others(const struct smartiod_segment *seg);
/*
 * Is @handle that of the maker, while others have some, and can the port give us the memory? Then
 * that comes first, and answers SEG_REMOVE. -ENOMEM, -EMFILE: nothing is changed.
 */
bool smartiod_segment_can_give(const struct smartiod *d, const struct smartiod_session *s,
			       uint32_t handle, const struct smartiod_segment *seg);
int smartiod_segment_give(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  struct smartiod_segment *seg, struct sio_err *reterr);
/* A handle that was found is not told of the end that follows. */
void smartiod_segment_forget_handle(struct smartiod_session *s, uint32_t handle);
/* The segment ends: its other handles stand for nothing. */
void smartiod_segment_detach_all(struct smartiod *d, struct smartiod_segment *seg);
/* The program of an attachment is gone. */
void smartiod_attachment_drop(struct smartiod *d, struct smartiod_object *o);
struct smartiod_segment *smartiod_segment_by_id(struct smartiod *d, uint32_t id);

/*
 * A segment without memory yet. @s NULL: no client's (device segments: by uid only). @named: gets
 * @id in the host's space of ids, -EEXIST if taken.
 */
int smartiod_segment_new(struct smartiod *d, struct smartiod_session *s, uint64_t owner, bool named,
			 uint32_t id, uint64_t bytes, struct smartiod_segment **ret,
			 struct sio_err *reterr);
/* Its memory came: the answer to an ALLOC. Takes the descriptor. */
void smartiod_segment_ready(struct smartiod_segment *seg, const struct smartiod_answer *a);
/*
 * No new users from now on; those there are, are told (@reason SCI_CB_*) and lose it. Memory
 * and object go when the last one has let go. @owner_gone: the port frees the memory by itself.
 */
void smartiod_segment_end(struct smartiod *d, struct smartiod_segment *seg, uint32_t reason,
			  bool owner_gone);
/*
 * Nobody can find it any more, and its id is free: @event is GIVE, or what leads to KEPT or ENDED.
 * _kept: and its importers, who have it from now on, are told.
 */
void smartiod_segment_leave(struct smartiod *d, struct smartiod_segment *seg,
			    enum smartiod_segment_event event);
void smartiod_segment_kept(struct smartiod *d, struct smartiod_segment *seg,
			   enum smartiod_segment_event event);
/* May it be granted or mapped anew: by its owner, who needs a handle, or by an importer? */
bool smartiod_segment_usable(const struct smartiod_segment *seg, bool by_owner);
struct smartiod_segment *smartiod_segment_by_uid(struct smartiod *d, uint64_t uid);
/* Users. The put may free the segment. */
static inline void smartiod_segment_pin(struct smartiod_segment *seg)
{
	seg->pins++;
}
void smartiod_segment_unpin(struct smartiod *d, struct smartiod_segment *seg);
/* Users may have gone: a removed segment ends. */
void smartiod_segment_check(struct smartiod *d, struct smartiod_segment *seg);
/* Somebody has it, or is about to. What is adrift (adrift.c) is the memory's affair alone. */
static inline bool smartiod_segment_used(const struct smartiod_segment *seg)
{
	return seg->n_refs || seg->n_grants > seg->n_adrift || seg->dma || seg->pins;
}
static inline void smartiod_segment_dma_get(struct smartiod_segment *seg)
{
	seg->dma++;
}
void smartiod_segment_dma_put(struct smartiod *d, struct smartiod_segment *seg);
void smartiod_segment_grant_put(struct smartiod *d, struct smartiod_segment *seg,
				const struct smartiod_grant *grant);
/*
 * A connection comes; the exporter's library is told of it after the importer has its answer. If we
 * are killed between the two it hears of it from the next smartiod; the other way round it would
 * have heard of one that nobody has, which is asked for again.
 */
int smartiod_segment_ref(struct smartiod_segment *seg, uint32_t node, uint32_t adapter,
			 uint64_t connection, struct sio_err *reterr);
void smartiod_segment_connected(struct smartiod *d, struct smartiod_segment *seg, uint32_t node,
				uint32_t adapter);
/* @reason 0: nobody is told. */
void smartiod_segment_unref(struct smartiod *d, struct smartiod_segment *seg, uint32_t node,
			    uint64_t connection, uint32_t reason);
void smartiod_segment_free_all(struct smartiod *d); /* and grants */
void smartiod_segment_refs_free(struct smartiod_segment *seg);
bool smartiod_segment_has_ref(const struct smartiod_segment *seg, uint32_t node,
			      uint64_t connection);
/* A segment that somebody wants to connect to: by its id, or a device's by its uid. */
struct smartiod_wanted {
	uint64_t uid; /* 0: by @id */
	uint32_t id;
	uint32_t device; /* fdid, with a uid */
	uint64_t borrow; /* whose private device segment it is: it ends with its path; 0: none */
};
/*
 * May somebody connect, arriving at @adapter (SIO_ADAPTER_ANY: from this host itself: available
 * anywhere)? NULL with *reterr.
 */
struct smartiod_segment *smartiod_segment_lookup(struct smartiod *d,
						 const struct smartiod_wanted *w, uint32_t adapter,
						 struct sio_err *reterr);
/* Drop the references of a node; the exporter's library gets SCI_CB_LOST. */
void smartiod_segment_node_down(struct smartiod *d, uint32_t node);
/* A path of a node to @adapter changed: SCI_CB_NOT_OPERATIONAL or _OPERATIONAL. */
void smartiod_segment_path(struct smartiod *d, uint32_t node, uint32_t adapter);
/* Take the reference of each importer on @adapter (or SIO_ADAPTER_ANY) away and tell it why. */
void smartiod_segment_cut(struct smartiod *d, struct smartiod_segment *seg, uint32_t adapter,
			  uint32_t reason);
/* Tell the importers on @adapter that they are to leave. */
void smartiod_segment_ask_to_leave(struct smartiod *d, struct smartiod_segment *seg,
				   uint32_t adapter);
/* Tell all importers that it was removed, and is kept for them. */
void smartiod_segment_tell_removed(struct smartiod *d, struct smartiod_segment *seg);

/* ---- export.c: what peers ask an exporter ---- */

/* Handlers of peers' requests and news, as those of clients. */
typedef int smartiod_peer_fn(struct smartiod *d, struct smartiod_peer *p, const void *msg,
			     struct sio_err *reterr);
smartiod_peer_fn smartiod_peer_seg_lookup, smartiod_peer_seg_release, smartiod_peer_seg_grant,
	smartiod_peer_grant_release;
/*
 * Keep books of a grant that the port gave to a node: it is ungranted at GRANT_RELEASE, or when the
 * node is down, unless it goes adrift. @what: node, adapters and purpose; segment or ring: told
 * when it ends; both NULL: nobody is. -ENOMEM, -ENOSPC: nothing kept; the caller ungrants.
 */
int smartiod_grant_keep(struct smartiod *d, uint64_t id, const struct smartiod_grant *what,
			struct sio_err *reterr);
/* The answer to a GRANT, as peers tell it. */
void smartiod_wire_grant(const struct sio_evt_grant *evt, struct sio_wire_grant *ret);
/* The importer's half of a window: MAP of what the exporter granted, hanging on @owner. */
void smartiod_port_ask_map(struct smartiod *d, struct smartiod_op *op, uint64_t owner,
			   uint32_t node, uint32_t adapter, uint32_t peer_adapter,
			   const struct sio_wire_grant *g);
/*
 * What its answer says that it is. An exporter that lies names another grant that it gave us, of an
 * interrupt, or of memory to be read.
 */
bool smartiod_map_triggers(const struct smartiod_answer *a);
bool smartiod_map_is_memory(const struct smartiod_answer *a, uint32_t access);
/* Is there a grant in the peer's answer, and of at least @bytes? */
bool smartiod_grant_holds(const struct sio_wire_grant *g, uint64_t bytes);
/* News to the exporter that a grant of it is no longer mapped. */
void smartiod_grant_release(struct smartiod *d, uint32_t node, uint64_t grant);
/* UNGRANT and forget; 0 or unknown: nothing. */
void smartiod_grant_end(struct smartiod *d, uint64_t id);
/*
 * The ring that grant @id is of is no more: @mem, its memory, goes with the grant. False: there is
 * none.
 */
bool smartiod_grant_take(struct smartiod *d, uint64_t id, uint64_t mem);
/* Is it one to @node, for that path? */
bool smartiod_grant_through(struct smartiod *d, uint64_t id, uint32_t node, uint32_t adapter,
			    uint32_t peer_adapter);
/* Grants of BARs end; those of segments and rings stay, for their importers stay, too. */
void smartiod_grant_path_down(struct smartiod *d, uint32_t node, uint32_t adapter,
			      uint32_t peer_adapter);

/* ---- adrift.c: grants that outlast the connection to their importer ---- */

smartiod_peer_fn smartiod_peer_grant_query;
/* All of @node end, or go adrift. */
void smartiod_grant_node_down(struct smartiod *d, uint32_t node);
/* The last path to it is down: those for devices of it that this host borrows. */
void smartiod_grant_link_lost(struct smartiod *d, uint32_t node);
/* A path to it is, and others are up: those of them that are for this path. */
void smartiod_grant_path_lost(struct smartiod *d, uint32_t node, uint32_t adapter,
			      uint32_t peer_adapter);
bool smartiod_grant_adrift(struct smartiod *d, uint64_t id);
/*
 * End it without its importer's word: with an IOMMU its address goes adrift. Not what is memory.
 */
void smartiod_grant_cut(struct smartiod *d, uint64_t id);
/* The daemons are connected again: which of them has it still? */
void smartiod_adrift_ask(struct smartiod *d, uint32_t node);
/* The host has started anew: nothing that was before is left of windows, devices and grants. */
void smartiod_adrift_new_start(struct smartiod *d, uint32_t node);

/* ---- connect.c, window.c ---- */

smartiod_client_fn smartiod_seg_connect, smartiod_seg_disconnect, smartiod_seg_map,
	smartiod_seg_unmap;
smartiod_peer_fn smartiod_peer_seg_event;
/*
 * Connect for @request of a client: replies struct sio_rep_seg_connect. @adapter SIO_ADAPTER_ANY:
 * whatever path is up.
 */
int smartiod_connect_open(struct smartiod *d, struct smartiod_session *s, const void *request,
			  uint32_t node, const struct smartiod_wanted *w, uint32_t adapter,
			  struct sio_err *reterr);
/* A new connection object with a handle. */
struct smartiod_connection *smartiod_connection_new(struct smartiod *d, struct smartiod_session *s,
						    enum smartiod_route route,
						    struct sio_err *reterr);
/*
 * The client let go of it, or is gone (@reason to the exporter: SCI_CB_DISCONNECT or _LOST).
 * Gives back all; the object stays while pinned.
 */
void smartiod_connection_close(struct smartiod *d, struct smartiod_connection *c, uint32_t reason);
/* Give its window back, if it has one; its grant when the port has unmapped it. */
void smartiod_window_release(struct smartiod *d, struct smartiod_connection *c);
/* Is a window to this grant of @node being made or unmapped, although its connection is lost? */
bool smartiod_window_has(struct smartiod *d, uint32_t node, uint64_t grant);
void smartiod_connection_unpin(struct smartiod *d, struct smartiod_connection *c);
/* Its last user may have gone: then it ends, if it is closed. */
void smartiod_connection_check(struct smartiod *d, struct smartiod_connection *c);
/* It was taken away: tell the library (lost = 1), give back window and grant. */
void smartiod_connection_lost(struct smartiod *d, struct smartiod_connection *c, uint32_t reason);
/* The exporter (@node) says something of the connection with this number. */
void smartiod_connection_event(struct smartiod *d, uint32_t node, uint64_t connection,
			       uint32_t reason, enum sio_segment_loss loss);
void smartiod_connection_free_all(struct smartiod *d);
/* A map with a handle, counted in c->n_maps. */
struct smartiod_map *smartiod_map_new(struct smartiod_session *s, struct smartiod_connection *c,
				      struct sio_err *reterr);
void smartiod_map_drop(struct smartiod *d, struct smartiod_map *m);
void smartiod_connection_node_down(struct smartiod *d, uint32_t node);
/* Its path went down, or is up again: SCI_CB_NOT_OPERATIONAL or _OPERATIONAL. Nothing is lost. */
void smartiod_connection_path(struct smartiod *d, uint32_t node, uint32_t adapter,
			      uint32_t peer_adapter, bool up);

/* ---- peer.c ---- */

#define SIO_ADAPTER_ANY 0xffffffffu

struct smartiod_peer *smartiod_peer_find(struct smartiod *d, uint32_t node);
bool smartiod_peer_link_up(const struct smartiod_peer *p);
/*
 * A path to @node that is up, through @adapter or (SIO_ADAPTER_ANY) the shortest. -ENXIO no such
 * adapter, -EHOSTUNREACH no such node or not joined, -ENETDOWN.
 */
int smartiod_path(struct smartiod *d, uint32_t node, uint32_t adapter, struct sio_path *ret,
		  struct sio_err *reterr);
/* Is this very pair of adapters up? */
bool smartiod_path_up(struct smartiod *d, uint32_t node, uint32_t adapter, uint32_t peer_adapter);
/* As the status page says of it: which start of the peer, and of the way to it. */
uint64_t smartiod_path_start(struct smartiod *d, uint32_t node, uint32_t adapter,
			     uint32_t peer_adapter);
void smartiod_peer_reply(struct smartiod *d, uint32_t node, uint32_t type, uint32_t id, void *msg,
			 size_t len);
void smartiod_peer_reply_error(struct smartiod *d, uint32_t node, uint32_t type, uint32_t id,
			       int error, const struct sio_err *err);
void smartiod_peer_link_event(struct smartiod *d, const struct sio_evt_link *evt);
void smartiod_peer_start(struct smartiod *d);
uint64_t smartiod_peer_retry(struct smartiod *d, uint64_t now);
/* A peer's reply that nobody waits for any more (time-out): give back what it brought. */
void smartiod_peer_late(struct smartiod *d, uint32_t node, const struct sio_msg *msg);

/* ---- link.c: the adapters' own ---- */

smartiod_client_fn smartiod_link_query;
/* What is found is so from now on. */
void smartiod_link_start(struct smartiod *d);
/* Of the event whose peer is this host. */
void smartiod_link_event(struct smartiod *d, const struct sio_evt_link *evt);

/* ---- query.c, list.c ---- */

smartiod_client_fn smartiod_adapter_query, smartiod_node_probe, smartiod_list, smartiod_stats;
smartiod_peer_fn smartiod_peer_stats;

#endif
