/* SPDX-License-Identifier: BSD-2-Clause */
/* Restart: the restoring of segments and connections (restart/). */
#ifndef SMARTIOD_SEGMENT_RESTORE_H
#define SMARTIOD_SEGMENT_RESTORE_H

#include "smartiod/base/session.h"
#include "smartiod/segment/segment.h"

smartiod_restore_fn smartiod_restore_segment, smartiod_restore_attachment,
	smartiod_restore_connection;
/* Notifies a session that a segment or connection of it is lost: the event @type. */
void smartiod_restore_notify_lost(struct smartiod *d, struct smartiod_session *s, uint32_t type,
				  sio_le32 handle);
/* The segment that lies in the port's memory @mem; NULL with *reterr ENOENT. */
struct smartiod_segment *smartiod_segment_by_mem(struct smartiod *d, uint64_t mem,
						 struct sio_err *reterr);
/* Restores a connection of @s to @seg. */
int smartiod_restore_connect(struct smartiod *d, struct smartiod_session *s,
			     struct smartiod_segment *seg, uint32_t adapter,
			     const struct sio_msg_restore *m, struct sio_err *reterr);
/* ---- restore_far.c: connections to other hosts, and their windows ---- */

/*
 * Restores a connection of @s to a segment of @node, which says when the daemons meet what it has.
 * @wanted: what is known of a device segment beyond that; NULL: it is none. NULL with *reterr.
 */
struct smartiod_connection *smartiod_restore_far(struct smartiod *d, struct smartiod_session *s,
						 uint32_t node,
						 const struct smartiod_wanted *wanted,
						 const struct sio_msg_restore *m,
						 struct sio_err *reterr);
/*
 * May something be restored that is shared with @node? -ENOENT: it has ended, with the last path or
 * in the time that the peer had; or the peer has been told already what there is.
 */
int smartiod_restore_peer(struct smartiod *d, uint32_t node, struct sio_err *reterr);
/* The port's map that @m names, as its seal says, is the window of @c again. */
int smartiod_window_again(struct smartiod *d, struct smartiod_session *s,
			  struct smartiod_connection *c, const struct sio_msg_restore *m,
			  struct sio_err *reterr);
/* Nobody claimed window @l, a map: unmaps it, and its grant is released after that. */
void smartiod_window_unclaimed(struct smartiod *d, const struct smartiod_unclaimed *l);
/* Parts of the room's table (base/room.h). */
bool smartiod_window_grant_again(struct smartiod *d, uint32_t node,
				 const struct sio_peer_resume_grant *q);
void smartiod_windows_resumed(struct smartiod *d, uint32_t node);

/*
 * The session has restored all that belongs to segment @o: its handles are notified of connections
 * that came or ended meanwhile.
 */
void smartiod_segment_restored(struct smartiod *d, struct smartiod_object *o);

/*
 * Another host has reported what it has, or is lost. When no host is expected any more, all
 * segments are treated as in smartiod_segment_restored(), and those that were kept for them end.
 */
void smartiod_segments_notify(struct smartiod *d);

/* Is a host expected that has not reported what it has? */
bool smartiod_segments_expected(const struct smartiod *d);
/*
 * No program of this host has claimed memory @l. If it is nobody's, a segment may have been in it
 * that was removed, and that importers of expected hosts have: then that is kept again until these
 * have reported, and takes @l. false: it is no such memory, or there is no memory for that.
 */
bool smartiod_segment_reserve(struct smartiod *d, const struct smartiod_unclaimed *l);

/* ---- for the two files alone ---- */

/*
 * Nobody has a handle of the segment in memory @mem, and whoever reports it was connected to it: it
 * was removed, and is kept again (segment_life.h). NULL with *reterr.
 */
struct smartiod_segment *smartiod_restore_kept(struct smartiod *d, uint64_t mem, uint32_t id,
					       struct sio_err *reterr);
/*
 * @number is that of a segment with memory: an empty one of somebody who says that he had it gives
 * way.
 */
void smartiod_restore_take_number(struct smartiod *d, uint32_t number);
/* What @m says of a segment's state. */
void smartiod_restore_state(struct smartiod *d, struct smartiod_segment *seg,
			    const struct sio_msg_restore *m);

#endif
