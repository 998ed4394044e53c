/* SPDX-License-Identifier: BSD-2-Clause */
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "protocol.h"

/* The same either way. */
static void req_swap(struct sio_nvme_req *r)
{
	r->magic = le32toh(r->magic);
	r->version = le32toh(r->version);
	r->op = le32toh(r->op);
	r->reply_node = le32toh(r->reply_node);
	r->instance = le64toh(r->instance);
	r->sequence = le64toh(r->sequence);
	r->borrower = le64toh(r->borrower);
	r->reply_interrupt = le32toh(r->reply_interrupt);
	r->vector = le32toh(r->vector);
}

static void admin_swap(struct sio_nvme_wire_admin *a)
{
	a->opcode = le32toh(a->opcode);
	a->flags = le32toh(a->flags);
	a->nsid = le32toh(a->nsid);
	a->cdw2 = le32toh(a->cdw2);
	a->cdw3 = le32toh(a->cdw3);
	for (unsigned i = 0; i < 6; i++)
		a->cdw[i] = le32toh(a->cdw[i]);
	a->bytes = le32toh(a->bytes);
	a->timeout_ms = le32toh(a->timeout_ms);
}

static void create_swap(struct sio_nvme_req *r)
{
	r->create.sq = le64toh(r->create.sq);
	r->create.cq = le64toh(r->create.cq);
	r->create.sq_entries = le32toh(r->create.sq_entries);
	r->create.cq_entries = le32toh(r->create.cq_entries);
	r->create.notify = le32toh(r->create.notify);
	r->create.notice = le32toh(r->create.notice);
	r->create.formats = le32toh(r->create.formats);
	r->create.old_qid = le32toh(r->create.old_qid);
	r->create.old_key = le64toh(r->create.old_key);
	r->create.share = le32toh(r->create.share);
	r->create.share_notice = le32toh(r->create.share_notice);
	r->create.share_depth = le32toh(r->create.share_depth);
	r->create.share_most = le32toh(r->create.share_most);
	r->create.share_over = le32toh(r->create.share_over);
	r->create.cmb = le32toh(r->create.cmb);
	r->create.cq_of = le32toh(r->create.cq_of);
	r->create.share_raises = le32toh(r->create.share_raises);
	r->create.cq_key = le64toh(r->create.cq_key);
}

static void body_swap(struct sio_nvme_req *r, uint32_t op)
{
	switch (op) {
	case SIO_NVME_OP_CREATE:
		create_swap(r);
		break;
	case SIO_NVME_OP_DELETE:
		r->del.qid = le32toh(r->del.qid);
		r->del.flags = le32toh(r->del.flags);
		r->del.key = le64toh(r->del.key);
		r->del.place = le32toh(r->del.place);
		r->del.sequence = le32toh(r->del.sequence);
		break;
	case SIO_NVME_OP_CANCEL:
		r->cancel.sequence = le64toh(r->cancel.sequence);
		break;
	case SIO_NVME_OP_ABORT:
		r->abort.qid = le32toh(r->abort.qid);
		r->abort.cid = le32toh(r->abort.cid);
		r->abort.key = le64toh(r->abort.key);
		break;
	case SIO_NVME_OP_IDENTIFY:
		r->identify.cns = le32toh(r->identify.cns);
		r->identify.nsid = le32toh(r->identify.nsid);
		break;
	case SIO_NVME_OP_PAIRS:
		r->pairs.after = le32toh(r->pairs.after);
		break;
	case SIO_NVME_OP_ADMIN:
		admin_swap(&r->admin);
		break;
	case SIO_NVME_OP_LEASE:
		r->lease.lba = le64toh(r->lease.lba);
		r->lease.blocks = le64toh(r->lease.blocks);
		r->lease.key = le64toh(r->lease.key);
		r->lease.nsid = le32toh(r->lease.nsid);
		r->lease.formats = le32toh(r->lease.formats);
		break;
	case SIO_NVME_OP_JOIN:
		r->join.id = le64toh(r->join.id);
		r->join.key = le64toh(r->join.key);
		break;
	case SIO_NVME_OP_UNLEASE:
		r->unlease.id = le64toh(r->unlease.id);
		r->unlease.key = le64toh(r->unlease.key);
		break;
	case SIO_NVME_OP_LEASES:
		r->leases.after = le64toh(r->leases.after);
		break;
	}
}

size_t sio_nvme_req_data(const struct sio_nvme_req *req)
{
	if (req->op != SIO_NVME_OP_ADMIN || !(req->admin.flags & SIO_NVME_ADMIN_TO_DRIVE))
		return 0;
	return req->admin.bytes;
}

int sio_nvme_req_decode(const void *data, size_t len, struct sio_nvme_req *ret)
{
	struct sio_nvme_req r;

	if (len < sizeof(r))
		return -EPROTO;
	memcpy(&r, data, sizeof(r));
	req_swap(&r);
	if (r.magic != SIO_NVME_REQ_MAGIC || r.borrower == 0 || r.reply_node == 0)
		return -EPROTO;
	body_swap(&r, r.op);
	if (r.op == SIO_NVME_OP_CREATE)
		r.create.program[SIO_NVME_PROGRAM - 1] = '\0';
	if (r.op == SIO_NVME_OP_LEASE)
		r.lease.name[SIO_NVME_PROGRAM - 1] = r.lease.program[SIO_NVME_PROGRAM - 1] = '\0';
	if (len - sizeof(r) != sio_nvme_req_data(&r) || len > SIO_NVME_REQ_LARGEST)
		return -EPROTO;
	*ret = r;
	if (r.version != SIO_NVME_VERSION || (r.vector && r.op != SIO_NVME_OP_CREATE))
		return -EPROTONOSUPPORT;
	return 0;
}

void sio_nvme_req_encode(const struct sio_nvme_req *req, void *data)
{
	struct sio_nvme_req r = *req;

	body_swap(&r, r.op);
	req_swap(&r);
	memcpy(data, &r, sizeof(r));
}

size_t sio_nvme_rep_size(uint32_t op, uint32_t error)
{
	size_t head = sizeof(struct sio_nvme_rep_head);

	if (error)
		return head + SIO_NVME_TEXT;
	if (op == SIO_NVME_OP_CREATE)
		return head + sizeof(struct sio_nvme_rep_pair);
	if (op == SIO_NVME_OP_ENDED)
		return head + sizeof(struct sio_nvme_rep_ended);
	if (op == SIO_NVME_OP_ADMIN)
		return head + sizeof(struct sio_nvme_rep_admin);
	if (op == SIO_NVME_OP_LEASE)
		return head + sizeof(struct sio_nvme_wire_lease);
	if (op == SIO_NVME_OP_IDENTIFY || op == SIO_NVME_OP_PAIRS || op == SIO_NVME_OP_LEASES)
		return head + SIO_NVME_IDENTIFY;
	return head;
}

static void rep_head_swap(struct sio_nvme_rep_head *h)
{
	h->magic = le32toh(h->magic);
	h->version = le32toh(h->version);
	h->op = le32toh(h->op);
	h->error = le32toh(h->error);
	h->instance = le64toh(h->instance);
	h->sequence = le64toh(h->sequence);
	h->reason = le32toh(h->reason);
}

/* The same either way. */
static void pairs_swap(struct sio_nvme_wire_pair *pair)
{
	for (size_t i = 0; i < SIO_NVME_PAIRS_A_REPLY; i++) {
		pair[i].qid = le32toh(pair[i].qid);
		pair[i].node = le32toh(pair[i].node);
		pair[i].borrower = le64toh(pair[i].borrower);
		pair[i].cq_of = le32toh(pair[i].cq_of);
		pair[i].program[SIO_NVME_PROGRAM - 1] = '\0';
	}
}

/* The same either way. */
static void lease_swap(struct sio_nvme_wire_lease *l)
{
	l->id = le64toh(l->id);
	l->lba = le64toh(l->lba);
	l->blocks = le64toh(l->blocks);
	l->nsid = le32toh(l->nsid);
	l->node = le32toh(l->node);
	l->name[SIO_NVME_PROGRAM - 1] = l->program[SIO_NVME_PROGRAM - 1] = '\0';
}

/* The same either way. @h: in the host's byte order. */
static void rep_body_swap(const struct sio_nvme_rep_head *h, struct sio_nvme_rep *rep)
{
	if (h->error)
		return;
	switch (h->op) {
	case SIO_NVME_OP_CREATE:
		rep->create.qid = le32toh(rep->create.qid);
		rep->create.place = le32toh(rep->create.place);
		rep->create.key = le64toh(rep->create.key);
		rep->create.share = le32toh(rep->create.share);
		rep->create.depth = le32toh(rep->create.depth);
		rep->create.most = le32toh(rep->create.most);
		rep->create.cmb = le32toh(rep->create.cmb);
		break;
	case SIO_NVME_OP_ENDED:
		rep->ended.qid = le32toh(rep->ended.qid);
		rep->ended.dead = le32toh(rep->ended.dead);
		rep->ended.key = le64toh(rep->ended.key);
		break;
	case SIO_NVME_OP_PAIRS:
		pairs_swap(rep->pairs);
		break;
	case SIO_NVME_OP_LEASE:
		lease_swap(&rep->lease);
		break;
	case SIO_NVME_OP_LEASES:
		for (size_t i = 0; i < SIO_NVME_LEASES_A_REPLY; i++)
			lease_swap(&rep->leases[i]);
		break;
	case SIO_NVME_OP_ADMIN:
		rep->admin.result = le32toh(rep->admin.result);
		rep->admin.status = le32toh(rep->admin.status);
		break;
	}
}

void sio_nvme_rep_encode(const struct sio_nvme_rep *rep, void *data)
{
	struct sio_nvme_rep r = *rep;

	rep_body_swap(&rep->h, &r);
	rep_head_swap(&r.h);
	memcpy(data, &r, sio_nvme_rep_size(rep->h.op, rep->h.error));
}

int sio_nvme_rep_decode(const void *data, size_t len, struct sio_nvme_rep *ret)
{
	struct sio_nvme_rep_head h;
	size_t body;

	if (len < sizeof(h))
		return -EPROTO;
	memcpy(&h, data, sizeof(h));
	rep_head_swap(&h);
	if (h.magic != SIO_NVME_REP_MAGIC || h.version != SIO_NVME_VERSION ||
	    len != sio_nvme_rep_size(h.op, h.error))
		return -EPROTO;
	body = len - sizeof(h);
	ret->h = h;
	memcpy(ret->data, (const char *)data + sizeof(h), body);
	if (h.error)
		ret->text[SIO_NVME_TEXT - 1] = '\0';
	rep_body_swap(&h, ret);
	return 0;
}

static void meta_swap(struct sio_nvme_meta *m)
{
	m->magic = le32toh(m->magic);
	m->version = le32toh(m->version);
	m->instance = le64toh(m->instance);
	m->node = le32toh(m->node);
	m->interrupt = le32toh(m->interrupt);
	m->generation = le32toh(m->generation);
	m->formats = le32toh(m->formats);
	m->sgls = le32toh(m->sgls);
	m->features = le32toh(m->features);
	m->queue_pairs = le32toh(m->queue_pairs);
	m->max_entries = le32toh(m->max_entries);
	m->max_transfer = le32toh(m->max_transfer);
	m->doorbell_stride = le32toh(m->doorbell_stride);
	m->spec_version = le32toh(m->spec_version);
	m->vendor = le32toh(m->vendor);
	m->namespaces = le32toh(m->namespaces);
}

void sio_nvme_ns_decode(const struct sio_nvme_wire_ns *wire, struct sio_nvme_wire_ns *ret)
{
	ret->id = le32toh(wire->id);
	ret->block_size = le32toh(wire->block_size);
	ret->blocks = le64toh(wire->blocks);
}

/* The same either way. */
static void standby_swap(struct sio_nvme_wire_standby *s)
{
	s->magic = le32toh(s->magic);
	s->version = le32toh(s->version);
	s->node = le32toh(s->node);
	s->reserved = le32toh(s->reserved);
}

void sio_nvme_standby_encode(const struct sio_nvme_wire_standby *standby, void *data)
{
	struct sio_nvme_wire_standby out = *standby;

	out.magic = SIO_NVME_STANDBY_MAGIC;
	standby_swap(&out);
	memcpy(data, &out, sizeof(out));
}

int sio_nvme_standby_decode(const void *data, struct sio_nvme_wire_standby *ret)
{
	memcpy(ret, data, sizeof(*ret));
	standby_swap(ret);
	ret->program[sizeof(ret->program) - 1] = '\0';
	if (ret->magic != SIO_NVME_STANDBY_MAGIC)
		return -EAGAIN;
	if (ret->version != SIO_NVME_VERSION)
		return -EPROTONOSUPPORT;
	return ret->node ? 0 : -EPROTO;
}

void sio_nvme_meta_encode(const struct sio_nvme_meta *meta, void *data)
{
	struct sio_nvme_meta *out = data;

	memcpy(out, meta, sizeof(*out));
	meta_swap(out);
	for (unsigned i = 0; i < SIO_NVME_NAMESPACES; i++)
		sio_nvme_ns_decode(&meta->ns[i], &out->ns[i]);
}

static bool power_of_2(uint32_t v)
{
	return v && !(v & (v - 1));
}

int sio_nvme_meta_decode(const void *data, struct sio_nvme_meta *ret)
{
	memcpy(ret, data, offsetof(struct sio_nvme_meta, ns));
	meta_swap(ret);
	if (ret->magic != SIO_NVME_META_MAGIC)
		return -EAGAIN;
	if (ret->version != SIO_NVME_VERSION)
		return -EPROTONOSUPPORT;
	if (ret->queue_pairs == 0 || ret->queue_pairs > 65535 || ret->max_entries < 2 ||
	    ret->max_entries > 65536 || ret->max_transfer < 4096 || ret->max_transfer % 4096 != 0 ||
	    ret->max_transfer > SIO_NVME_LARGEST || ret->doorbell_stride < 4 ||
	    !power_of_2(ret->doorbell_stride) || ret->doorbell_stride > 4u << 15 ||
	    ret->namespaces > SIO_NVME_NAMESPACES || ret->node == 0)
		return -EPROTO;
	return 0;
}
