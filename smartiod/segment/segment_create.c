/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creation of segments: SEG_CREATE, and SEG_FILL and SEG_TAKE for those that were created without
 * memory.
 */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/base/allow.h"
#include "smartiod/segment/group.h"
#include "smartiod/segment/requests.h"

#define CREATE_FLAGS                                                                               \
	(SCI_FLAG_USE_CALLBACK | SCI_FLAG_PRIVATE | SCI_FLAG_AUTO_ID | SCI_FLAG_DMA_GLOBAL |       \
	 SCI_FLAG_EMPTY | SCI_FLAG_BROADCAST | SCI_FLAG_ALLOW_UNICAST | SIO_SEG_IMPORT)
/* What an imported one may have besides. */
#define IMPORT_FLAGS (SCI_FLAG_PRIVATE | SCI_FLAG_AUTO_ID | SIO_SEG_IMPORT)
#define NOT_OF_GROUPS (SCI_FLAG_PRIVATE | SCI_FLAG_AUTO_ID | SCI_FLAG_EMPTY)

static const struct {
	uint32_t flag;
	const char *name;
} unsupported[] = {
	{SCI_FLAG_PHYSICAL, "SCI_FLAG_PHYSICAL"},
};

struct create_op {
	struct smartiod_op op;		  /* fd[0]: what is imported */
	struct smartiod_segment *segment; /* pinned */
	uint64_t offset;		  /* in what is imported */
	uint32_t import;		  /* SIO_IMPORT_*; 0: memory of this host's own */
	bool fills; /* SEG_FILL, SEG_TAKE of a segment that was there before */
};

/* SEG_CREATE and SEG_FILL; without a descriptor for one that is empty. */
static void created(struct smartiod *d, struct smartiod_session *s, const void *request,
		    struct smartiod_segment *seg)
{
	struct sio_rep_seg_create rep = {
		.handle = sio_to_le32(smartiod_handle(&seg->o)),
		.segment_id = sio_to_le32(seg->id),
		.bytes = sio_to_le64(seg->bytes),
		.phys_addr = sio_to_le64(seg->phys),
		.key = sio_to_le64(seg->mem),
		.seal = sio_to_le64(smartiod_seal(s, SIO_MSG_SEG_CREATE, smartiod_handle(&seg->o),
						  seg->mem, seg->id, seg->bytes)),
		.fd_offset = sio_to_le64(seg->fd_offset),
	};

	smartiod_reply(d, s, request, &rep, sizeof(rep), &seg->fd, seg->ready);
}

static void create_failed(struct smartiod *d, struct create_op *c, int error, const char *text)
{
	struct smartiod_segment *seg = c->segment;

	smartiod_op_error(d, &c->op, error, "%" PRIu64 " bytes of %s: %s", seg->bytes,
			  d->host->name, text);
	if (!c->fills) {
		smartiod_segment_end(d, seg, SCI_CB_DISCONNECT, false);
		return;
	}
	smartiod_port_free(d, seg->mem);
	seg->mem = 0;
	seg->ready = false;
	seg->empty = true;
	seg->filled = false;
}

static void create_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct create_op *c = (struct create_op *)op;
	struct smartiod_segment *seg = c->segment;
	struct sio_msg request = {.type = sio_to_le32(op->type), .id = sio_to_le32(op->id)};

	seg->filling = false;
	if (!a->error) {
		smartiod_segment_ready(d, seg, a);
		seg->empty = false;
		seg->filled = c->fills;
	}
	if (seg->state == SMARTIOD_SEGMENT_ENDED)
		smartiod_op_error(d, op, -ECANCELED, "the segment was removed meanwhile");
	else if (a->error)
		create_failed(d, c, a->error, a->text);
	else if (seg->fd < 0)
		create_failed(d, c, -EMFILE, smartiod_no_descriptor(d));
	else if (op->session) /* else its end will end the segment */
		created(d, op->session, &request, seg);
	smartiod_segment_unpin(d, seg);
	smartiod_op_free(d, op);
}

static uint64_t memory_cookie(const struct smartiod *d, const struct smartiod_segment *seg)
{
	/* By its number no host may have it, after a restart neither. */
	if (!smartiod_is_real(d) || seg->is_private)
		return 0;
	return SMARTIOD_COOKIE_SEGMENT | seg->id;
}

/* Its memory: @c goes on with create_step(). */
static void ask_memory(struct smartiod *d, struct create_op *c)
{
	struct smartiod_segment *seg = c->segment;
	struct sio_req_alloc req = {
		.h = {.op = SIO_OP_ALLOC,
		      .flags = c->fills ? 0 : SIO_ALLOC_PART,
		      .owner = seg->owner},
		.size = seg->bytes,
		.highest = SIO_PORT_ANY,
		.access = SIO_ACCESS_READ | SIO_ACCESS_WRITE,
		.user_cookie = memory_cookie(d, seg),
	};

	struct sio_req_import import = {
		.h = {.op = SIO_OP_IMPORT, .owner = seg->owner},
		.kind = c->import,
		.access = SIO_ACCESS_READ | SIO_ACCESS_WRITE,
		.offset = c->offset,
		.length = seg->bytes,
	};

	seg->filling = true;
	smartiod_segment_pin(seg);
	if (seg->broadcast)
		smartiod_group_ask_memory(d, &c->op, seg);
	else if (c->import)
		smartiod_port_ask_fd(d, &c->op, &import, sizeof(import), c->op.fd[0]);
	else
		smartiod_port_ask(d, &c->op, &req, sizeof(req));
}

static int check_flags(uint32_t flags, struct sio_err *reterr)
{
	for (size_t i = 0; i < sizeof(unsupported) / sizeof(unsupported[0]); i++)
		if (flags & unsupported[i].flag)
			return sio_fail(reterr, -EOPNOTSUPP,
					"%s is not supported when a segment is created",
					unsupported[i].name);
	if (flags & ~CREATE_FLAGS)
		return sio_fail(reterr, -EINVAL, "flags %#x do not belong to a segment's creation",
				flags & ~CREATE_FLAGS);
	if (flags & SCI_FLAG_BROADCAST && flags & NOT_OF_GROUPS)
		return sio_fail(reterr, -EINVAL, "flags %#x do not go with SCI_FLAG_BROADCAST",
				flags & NOT_OF_GROUPS);
	if (flags & SCI_FLAG_ALLOW_UNICAST && !(flags & SCI_FLAG_BROADCAST))
		return sio_fail(reterr, -EINVAL,
				"SCI_FLAG_ALLOW_UNICAST goes with SCI_FLAG_BROADCAST");
	return 0;
}

/* Memory of a file of the program's. */
static int check_import(const struct smartiod_session *s, const struct sio_msg_seg_create *m,
			struct sio_err *reterr)
{
	uint32_t flags = sio_from_le32(m->flags);
	uint64_t offset = sio_from_le64(m->offset), bytes = sio_from_le64(m->bytes);

	if (!(flags & SIO_SEG_IMPORT)) {
		if (s->request_fd >= 0 || offset)
			return sio_fail(reterr, -EINVAL,
					"an offset or a descriptor belong to memory that is "
					"imported");
		return 0;
	}
	if (flags & ~IMPORT_FLAGS)
		return sio_fail(reterr, -EINVAL, "flags %#x do not go with imported memory",
				flags & ~IMPORT_FLAGS);
	if (s->request_fd < 0)
		return sio_fail(reterr, -EMFILE, "no descriptor came with the request");
	if (offset % SIO_PAGE_SIZE || bytes % SIO_PAGE_SIZE)
		return sio_fail(reterr, -EINVAL,
				"%#" PRIx64 " bytes at %#" PRIx64 " are not whole pages", bytes,
				offset);
	return 0;
}

/* Rounds them up to pages, as which they take memory, and are charged. */
static int check_bytes(struct smartiod *d, uint64_t *bytes, struct sio_err *reterr)
{
	uint64_t rounded;

	if (*bytes == 0)
		return sio_fail(reterr, -EINVAL, "a segment has at least 1 byte");
	if (__builtin_add_overflow(*bytes, SIO_PAGE_SIZE - 1, &rounded) ||
	    rounded - rounded % SIO_PAGE_SIZE > d->host->ram_size)
		return sio_fail_exhausted(reterr, -ENOSPC, SIO_OUT_OF_RAM,
					  "a segment of %" PRIu64 " bytes; %s has %" PRIu64
					  " bytes of memory",
					  *bytes, d->host->name, d->host->ram_size);
	*bytes = rounded - rounded % SIO_PAGE_SIZE;
	return 0;
}

/* The first id from @id on that is free, and behind the greatest from 0 on. */
static int auto_id(struct smartiod *d, uint32_t *id, struct sio_err *reterr)
{
	uint64_t key = smartiod_tree_gap(&d->segment_ids, (uint64_t)*id + 1);

	if (key - 1 > UINT32_MAX)
		key = smartiod_tree_gap(&d->segment_ids, 1);
	if (key - 1 > UINT32_MAX)
		return sio_fail_exhausted(reterr, -ENOSPC, SIO_OUT_OF_SEGMENT_IDS,
					  "no segment id is free");
	*id = (uint32_t)(key - 1);
	return 0;
}

/* May it have a segment of this id, and of so many bytes? Private ones nobody else sees. */
static int check_policy(struct smartiod *d, const struct smartiod_session *s, uint32_t *id,
			uint64_t bytes, uint32_t flags, struct sio_err *reterr)
{
	struct sio_policy_thing thing = smartiod_thing(d, SIO_POLICY_SEGMENTS, d->node, *id);
	int rc = smartiod_quota_program(d, s, SIO_QUOTA_EXPORTED, bytes, reterr);

	if (rc < 0 || flags & (SCI_FLAG_PRIVATE | SIO_SEG_IMPORT))
		return rc;
	/* An id that nobody has chosen is one that this program may have. */
	for (unsigned i = 0; flags & SCI_FLAG_AUTO_ID && i < d->policy->n_rules; i++) {
		if (sio_policy_program(d->policy, &thing, &s->who, NULL) == 0)
			break;
		*id = sio_policy_rule_of(d->policy, &thing)->last + 1;
		if (auto_id(d, id, reterr) < 0)
			return reterr->code;
		thing.number = *id;
	}
	return smartiod_allow_program(d, s, &thing, reterr);
}

static int create_empty(struct smartiod *d, struct smartiod_session *s, const void *msg,
			uint32_t id, uint64_t bytes, bool is_private, struct sio_err *reterr)
{
	struct smartiod_segment *seg;
	int rc = smartiod_segment_new(d, s, s->owner, true, id, bytes, &seg, reterr);

	if (rc < 0)
		return rc;
	seg->is_private = is_private;
	seg->empty = true;
	created(d, s, msg, seg);
	return 0;
}

static void take_descriptor(struct smartiod_session *s, struct create_op *c)
{
	c->op.fd[0] = s->request_fd;
	s->request_fd = -1;
}

int smartiod_seg_create(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_seg_create *m = msg;
	uint32_t id = sio_from_le32(m->segment_id), flags = sio_from_le32(m->flags);
	bool broadcast = flags & SCI_FLAG_BROADCAST;
	uint64_t bytes = sio_from_le64(m->bytes);
	struct create_op *c;
	int rc = check_flags(flags, reterr);

	if (rc == 0)
		rc = check_import(s, m, reterr);
	if (rc == 0)
		rc = check_bytes(d, &bytes, reterr);
	if (rc == 0 && flags & SCI_FLAG_AUTO_ID)
		rc = auto_id(d, &id, reterr);
	if (rc == 0 && broadcast)
		rc = smartiod_group_check(d, id, reterr);
	if (rc == 0)
		rc = check_policy(d, s, &id, bytes, flags, reterr);
	if (rc < 0)
		return rc;
	if (flags & SCI_FLAG_EMPTY)
		return create_empty(d, s, msg, id, bytes, flags & SCI_FLAG_PRIVATE, reterr);
	c = smartiod_op_new(d, s, msg, sizeof(*c), create_step, reterr);
	if (!c)
		return reterr->code;
	/* A member that allows it is found by its group's number as any segment is. */
	rc = smartiod_segment_new(d, s, s->owner, !broadcast || flags & SCI_FLAG_ALLOW_UNICAST, id,
				  bytes, &c->segment, reterr);
	if (rc < 0) {
		smartiod_op_free(d, &c->op);
		return rc;
	}
	c->segment->imported = flags & SIO_SEG_IMPORT;
	c->segment->is_private = flags & SCI_FLAG_PRIVATE || c->segment->imported;
	c->segment->broadcast = broadcast;
	if (c->segment->imported) {
		c->segment->bytes = bytes;
		c->segment->memory = SIO_MEMORY_FILE;
		c->offset = sio_from_le64(m->offset);
		c->import = SIO_IMPORT_FILE;
		take_descriptor(s, c);
	}
	if (broadcast)
		d->member[id] = c->segment;
	ask_memory(d, c);
	return 0;
}

/*
 * A segment that was made empty gets its memory now. The reply has the handle of who made it,
 * sealed, so that nobody else may ask.
 */
struct filling {
	uint32_t handle, memory, import; /* memory: SIO_MEMORY_*; import, offset: as create_op */
	uint64_t offset;
};

/* Memory of another driver, which the program brought; else it is the port's. */
static bool is_taken(uint32_t memory)
{
	return memory == SIO_MEMORY_GPU || memory == SIO_MEMORY_DMABUF;
}

static int fill(struct smartiod *d, struct smartiod_session *s, const void *msg,
		const struct filling *f, struct sio_err *reterr)
{
	struct smartiod_segment *seg = smartiod_segment_get(s, f->handle, reterr);
	struct create_op *c;

	if (!seg)
		return reterr->code;
	if (seg->o.session != s || smartiod_handle(&seg->o) != f->handle)
		return sio_fail(reterr, -EPERM,
				"segment %#x belongs to another program, which alone can fill it",
				seg->id);
	/* Asked again: the program had no room for the descriptor, or could not use the memory. */
	if (seg->filled && is_taken(seg->memory) == is_taken(f->memory)) {
		seg->memory = f->memory;
		created(d, s, msg, seg);
		return 0;
	}
	if (!seg->empty || seg->filling)
		return sio_fail(
			reterr, -EPERM,
			"segment %#x has its memory already: only one made with SCI_FLAG_EMPTY is "
			"filled, once",
			seg->id);
	c = smartiod_op_new(d, s, msg, sizeof(*c), create_step, reterr);
	if (!c)
		return reterr->code;
	c->segment = seg;
	c->fills = true;
	c->import = f->import;
	c->offset = f->offset;
	seg->memory = f->memory;
	if (f->import)
		take_descriptor(s, c);
	ask_memory(d, c);
	return 0;
}

/* Memory of this host; the library puts it in the place of the program's pages. */
int smartiod_seg_fill(struct smartiod *d, struct smartiod_session *s, const void *msg,
		      struct sio_err *reterr)
{
	const struct sio_msg_handle *m = msg;
	const struct filling f = {.handle = sio_from_le32(m->handle),
				  .memory = sio_from_le32(m->flags)};

	if (f.memory != SIO_MEMORY_PAGES && f.memory != SIO_MEMORY_PINNED)
		return sio_fail(reterr, -EINVAL,
				"memory of kind %u; %d or %d is right for SEG_FILL", f.memory,
				SIO_MEMORY_PAGES, SIO_MEMORY_PINNED);
	return fill(d, s, msg, &f, reterr);
}

/* Memory of a device, or whatever else a driver of this host exports. */
int smartiod_seg_take(struct smartiod *d, struct smartiod_session *s, const void *msg,
		      struct sio_err *reterr)
{
	const struct sio_msg_seg_take *m = msg;
	const struct filling f = {.handle = sio_from_le32(m->handle),
				  .memory = sio_from_le32(m->memory),
				  .import = SIO_IMPORT_DMABUF,
				  .offset = sio_from_le64(m->offset)};

	if (s->request_fd < 0)
		return sio_fail(reterr, -EMFILE, "no descriptor came with the request");
	if (f.memory != SIO_MEMORY_DMABUF && f.memory != SIO_MEMORY_GPU)
		return sio_fail(reterr, -EINVAL,
				"memory of kind %u; %d or %d is right for SEG_TAKE", f.memory,
				SIO_MEMORY_DMABUF, SIO_MEMORY_GPU);
	if (f.offset % SIO_PAGE_SIZE)
		return sio_fail(reterr, -EINVAL, "offset %#" PRIx64 " is not of a whole page",
				f.offset);
	return fill(d, s, msg, &f, reterr);
}
