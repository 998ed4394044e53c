/* SPDX-License-Identifier: BSD-2-Clause */
/* The window: where an access leads, whether it is allowed, and how it is carried out. */
#include <errno.h>
#include <string.h>

#include "emu/ntb/inside.h"
#include "smartio/io.h"

/* Where an access ends. */
struct way {
	struct emu_ntb_row *row; /* NULL: nowhere */
	unsigned range;		 /* of the peer */
	uint64_t address;	 /* on its bus */
};

struct access {
	uint64_t offset;
	size_t len;
	const void *data; /* of a write; NULL: a read */
	bool by_device;	  /* of the machine, which cannot wait for an answer */
};

/* What a range that holds the access lets through. */
static uint32_t check_right(const struct emu_ntb_range *r, const struct access *x)
{
	uint32_t message;

	if (r->control & SIO_VNTB_RANGE_MESSAGE) {
		if (!x->data)
			return SIO_VNTB_REASON_RIGHT;
		memcpy(&message, x->data, sizeof(message));
		return message == (uint32_t)r->size ? 0 : SIO_VNTB_REASON_RIGHT;
	}
	if (r->control & (x->data ? SIO_VNTB_RANGE_WRITE : SIO_VNTB_RANGE_READ))
		return 0;
	return SIO_VNTB_REASON_RIGHT;
}

/* Is the range for that peer, and are the bytes from @in on in it? */
static bool holds(const struct emu_ntb_range *r, uint32_t row, uint64_t in, size_t len)
{
	uint64_t size = r->control & SIO_VNTB_RANGE_MESSAGE ? 4 : r->size;

	if (!(r->control & SIO_VNTB_RANGE_VALID) || r->control >> 8 != row)
		return false;
	if (r->control & SIO_VNTB_RANGE_MESSAGE)
		return in == 0 && len == size;
	return len <= size && in <= size - len;
}

/* The exporter's row says where its range lies. */
static uint32_t find_row(const struct emu_ntb_adapter *to, uint64_t address, const struct access *x,
			 struct way *w)
{
	uint64_t in = address & ((1ull << 48) - 1);
	const struct emu_ntb_range *r;

	w->range = (unsigned)(address >> 48);
	w->address = in;
	if (w->range >= SIO_VNTB_MAX_RANGES)
		return SIO_VNTB_REASON_RANGE;
	r = &to->tables.range[w->range];
	if (!holds(r, w->row->self, in, x->len) || __builtin_add_overflow(r->base, in, &w->address))
		return SIO_VNTB_REASON_RANGE;
	return check_right(r, x);
}

/* Any granted range that allows it will do. */
static uint32_t find_range(const struct emu_ntb_adapter *to, const struct access *x, struct way *w)
{
	uint32_t reason = SIO_VNTB_REASON_RANGE;

	for (unsigned i = 0; i < to->tables.n_ranges; i++) {
		const struct emu_ntb_range *r = &to->tables.range[i];

		if (w->address < r->base || !holds(r, w->row->self, w->address - r->base, x->len))
			continue;
		reason = check_right(r, x);
		w->range = i;
		if (!reason)
			break;
	}
	return reason;
}

uint32_t emu_ntb_find_range(const struct emu_ntb_adapter *to, uint32_t self, uint64_t address,
			    size_t len, const void *data, unsigned *ret)
{
	const struct access x = {.len = len, .data = data};
	struct emu_ntb_row row = {.self = self};
	struct way w = {.row = &row, .address = address};
	uint32_t reason = find_range(to, &x, &w);

	*ret = w.range;
	return reason;
}

/* Return: 0: it may; else SIO_VNTB_REASON_*. */
static uint32_t translate(struct emu_ntb_adapter *a, const struct access *x, struct way *ret)
{
	uint64_t size = 1ull << a->entry_shift, in = x->offset & (size - 1);
	const struct emu_ntb_entry *e = &a->tables.entry[x->offset >> a->entry_shift];
	uint32_t row = e->control >> 8;
	uint64_t end;

	*ret = (struct way){0};
	if (!(e->control & SIO_VNTB_LUT_VALID) || row >= a->n_rows || x->len > size - in)
		return SIO_VNTB_REASON_ENTRY;
	ret->row = &a->row[row];
	if (!(ret->row->state & SIO_VNTB_PEER_UP))
		return SIO_VNTB_REASON_LINK;
	if (e->start && e->start != ret->row->peer->start)
		return SIO_VNTB_REASON_START;
	ret->address = e->address + in;
	if (e->control & SIO_VNTB_LUT_RANGE && ret->row->peer->emulated)
		return SIO_VNTB_REASON_RANGE; /* it has no rows */
	if (e->control & SIO_VNTB_LUT_RANGE) {
		/* An offset that grows into the number of the row is outside of any range. */
		if (ret->address >> 48 != e->address >> 48)
			return SIO_VNTB_REASON_RANGE;
		return find_row(ret->row->peer, ret->address, x, ret);
	}
	if (__builtin_add_overflow(e->address, in, &ret->address) ||
	    __builtin_add_overflow(ret->address, x->len - 1, &end))
		return SIO_VNTB_REASON_RANGE;
	/* Such a host looks its grants up when it is accessed. */
	return ret->row->peer->emulated ? 0 : find_range(ret->row->peer, x, ret);
}

/*
 * What no message of the peer's names may still be there: its interrupt controller, or what its
 * IOMMU has to say no to.
 */
enum emu_ntb_end emu_ntb_look_at(const struct emu_ntb_adapter *to, uint64_t address, size_t len,
				 bool write)
{
	const struct sio_vfio_memory *m = sio_vfio_session_memory(to->session);
	const struct sio_vfio_range *first = sio_vfio_memory_at(m, address);
	const struct sio_vfio_range *last = sio_vfio_memory_at(m, address + (len - 1));
	uint64_t end;
	size_t part;

	if (!sio_vfio_config_is_master(&to->space) ||
	    __builtin_add_overflow(address, len - 1, &end))
		return EMU_NTB_NOTHING;
	if ((!first || !first->data) && (!last || !last->data))
		return EMU_NTB_DEVICE;
	for (; len > 0; address += part, len -= part) {
		const struct sio_vfio_range *r =
			sio_vfio_memory_part(m, address, len, write, &part);

		if (!r || !r->data)
			return EMU_NTB_NOTHING;
	}
	return EMU_NTB_MEMORY;
}

/* One access of a processor is one there, too. */
void emu_ntb_copy_in(void *to, const uint8_t *from, size_t len)
{
	uint64_t v64;
	uint32_t v32;
	uint16_t v16;

	if ((uintptr_t)from % len == 0 && len == 8) {
		v64 = sio_read64(from);
		memcpy(to, &v64, len);
	} else if ((uintptr_t)from % len == 0 && len == 4) {
		v32 = sio_read32(from);
		memcpy(to, &v32, len);
	} else if ((uintptr_t)from % len == 0 && len == 2) {
		v16 = sio_read16(from);
		memcpy(to, &v16, len);
	} else {
		sio_copy_from(to, from, len);
	}
}

void emu_ntb_copy_out(uint8_t *to, const void *from, size_t len)
{
	uint64_t v64;
	uint32_t v32;
	uint16_t v16;

	if ((uintptr_t)to % len == 0 && len == 8) {
		memcpy(&v64, from, len);
		sio_write64(to, v64);
	} else if ((uintptr_t)to % len == 0 && len == 4) {
		memcpy(&v32, from, len);
		sio_write32(to, v32);
	} else if ((uintptr_t)to % len == 0 && len == 2) {
		memcpy(&v16, from, len);
		sio_write16(to, v16);
	} else {
		sio_copy_to(to, from, len);
	}
}

void emu_ntb_copy(const struct emu_ntb_adapter *to, uint64_t address, void *buf, const void *data,
		  size_t len)
{
	const struct sio_vfio_memory *m = sio_vfio_session_memory(to->session);
	size_t part;

	for (size_t at = 0; at < len; at += part) {
		const struct sio_vfio_range *r =
			sio_vfio_memory_part(m, address + at, len - at, data != NULL, &part);
		uint8_t *there = r->data + (address + at - r->address);

		if (data)
			emu_ntb_copy_out(there, (const uint8_t *)data + at, part);
		else
			emu_ntb_copy_in((uint8_t *)buf + at, there, part);
	}
}

static struct emu_ntb_access access_of(struct emu_ntb_adapter *a, const struct access *x,
				       const struct way *w, int ticket)
{
	return (struct emu_ntb_access){.from = a,
				       .to = w->row->peer,
				       .row = w->row,
				       .start = a->start,
				       .range = w->range,
				       .read = !x->data,
				       .ticket = ticket,
				       .offset = x->offset,
				       .address = w->address,
				       .len = x->len};
}

static enum emu_ntb_passing kind_of(const struct way *w)
{
	return w->row->peer->tables.range[w->range].control & SIO_VNTB_RANGE_MESSAGE
		       ? EMU_NTB_MESSAGE
		       : EMU_NTB_WRITE;
}

/* By the peer itself. Return: 0; SIO_VNTB_REASON_*. A read that waits has its ticket. */
static uint32_t ask_peer(struct emu_ntb_adapter *a, const struct access *x, const struct way *w,
			 int ticket)
{
	struct emu_ntb_access access;

	if (x->len > sio_vfio_session_dma_max(w->row->peer->session))
		return SIO_VNTB_REASON_PEER;
	access = access_of(a, x, w, ticket);
	if (emu_ntb_send(&access, x->data) < 0)
		return SIO_VNTB_REASON_PEER;
	emu_ntb_count_both(a, w->row->peer, x->data ? kind_of(w) : EMU_NTB_REQUEST, w->address,
			   x->len);
	return 0;
}

/*
 * More is under way than may be. An interrupt message that finds the same one on its way may be one
 * with it, as processors take two that meet for one; lost it must not be.
 */
static uint32_t write_too_many(struct emu_ntb_adapter *a, const struct access *x,
			       const struct way *w)
{
	const struct emu_ntb_access access = access_of(a, x, w, -1);

	if (kind_of(w) != EMU_NTB_MESSAGE || !emu_ntb_join(&access, x->data))
		return SIO_VNTB_REASON_LIMIT;
	emu_ntb_count_both(a, w->row->peer, EMU_NTB_MESSAGE, w->address, x->len);
	return 0;
}

/* Return: 0: it is in @buf; SIO_VFIO_LATER; or -SIO_VNTB_REASON_*. */
static int read_device(struct emu_ntb_adapter *a, const struct access *x, const struct way *w,
		       void *buf)
{
	uint32_t reason;
	int ticket;

	if (emu_ntb_waits(a->ntb, w->row->peer, a)) {
		a->stale_reads++;
		emu_ntb_recall(a, w->row->peer, w->address, buf, x->len);
		return 0;
	}
	if (emu_ntb_is_silent(a->ntb, w->row->peer))
		return -SIO_VNTB_REASON_PEER;
	ticket = w->row->reads < EMU_NTB_READS ? sio_vfio_session_later(a->session) : -1;
	if (ticket < 0)
		return -SIO_VNTB_REASON_LIMIT;
	reason = ask_peer(a, x, w, ticket);
	if (!reason)
		return SIO_VFIO_LATER;
	sio_vfio_session_forgo(a->session, ticket);
	return -(int)reason;
}

/* Return: 0: it is in @buf; SIO_VFIO_LATER; or -SIO_VNTB_REASON_*. */
static int read_there(struct emu_ntb_adapter *a, const struct access *x, const struct way *w,
		      void *buf)
{
	bool message = false;
	uint32_t reason;

	if (w->row->peer->emulated) {
		reason = emu_ntb_outward(w->row, w->address, buf, NULL, x->len, &message);
		if (!reason)
			emu_ntb_count(a, EMU_NTB_READ, w->address, x->len);
		return -(int)reason;
	}
	switch (emu_ntb_look_at(w->row->peer, w->address, x->len, false)) {
	case EMU_NTB_MEMORY:
		emu_ntb_copy(w->row->peer, w->address, buf, NULL, x->len);
		emu_ntb_count_both(a, w->row->peer, EMU_NTB_READ, w->address, x->len);
		return 0;
	case EMU_NTB_DEVICE:
		return x->by_device ? -SIO_VNTB_REASON_PEER : read_device(a, x, w, buf);
	default:
		return -SIO_VNTB_REASON_PEER;
	}
}

/* Return: 0: it is done, or on its way; SIO_VNTB_REASON_*. */
static uint32_t write_there(struct emu_ntb_adapter *a, const struct access *x, const struct way *w)
{
	bool message = false;
	uint32_t reason;

	if (w->row->peer->emulated) {
		reason = emu_ntb_outward(w->row, w->address, NULL, x->data, x->len, &message);
		if (!reason)
			emu_ntb_count(a, message ? EMU_NTB_MESSAGE : EMU_NTB_WRITE, w->address,
				      x->len);
		return reason;
	}
	switch (emu_ntb_look_at(w->row->peer, w->address, x->len, true)) {
	case EMU_NTB_MEMORY:
		emu_ntb_copy(w->row->peer, w->address, NULL, x->data, x->len);
		emu_ntb_count_both(a, w->row->peer, EMU_NTB_WRITE, w->address, x->len);
		return 0;
	case EMU_NTB_DEVICE:
		return w->row->writes < EMU_NTB_WRITES ? ask_peer(a, x, w, -1)
						       : write_too_many(a, x, w);
	default:
		return SIO_VNTB_REASON_PEER;
	}
}

/* The entry leads to a multicast group. No completion comes of what is read there. */
static uint32_t pass_group(struct emu_ntb_adapter *a, const struct access *x,
			   const struct emu_ntb_entry *e)
{
	uint64_t size = 1ull << a->entry_shift, in = x->offset & (size - 1), at;

	if (!a->fixed[SIO_VNTB_GROUPS / 4] || x->len > size - in)
		return SIO_VNTB_REASON_ENTRY;
	if (!x->data)
		return SIO_VNTB_REASON_RIGHT;
	if (__builtin_add_overflow(e->address, in, &at))
		return SIO_VNTB_REASON_RANGE;
	return emu_ntb_group_write(a, e->control >> 8, at, x->offset, x->data, x->len);
}

/* Return: 0; SIO_VFIO_LATER; -SIO_VNTB_REASON_*: it was refused, which both ends are told. */
static int pass(struct emu_ntb_adapter *a, const struct access *x, void *buf)
{
	const uint32_t group = SIO_VNTB_LUT_VALID | SIO_VNTB_LUT_GROUP;
	const struct emu_ntb_entry *e = &a->tables.entry[x->offset >> a->entry_shift];
	struct way w = {0};
	int rc;

	if ((e->control & group) == group)
		rc = -(int)pass_group(a, x, e);
	else if ((rc = -(int)translate(a, x, &w)) == 0)
		rc = x->data ? -(int)write_there(a, x, &w) : read_there(a, x, &w, buf);
	if (rc >= 0)
		return rc;
	emu_ntb_count_refused(a, w.row, !x->data, x->offset, x->len, (uint32_t)-rc);
	emu_ntb_refused(a, w.row, !x->data, x->offset, w.address, x->len, (uint32_t)-rc);
	return rc;
}

int emu_ntb_window_read(struct emu_ntb_adapter *a, uint64_t offset, void *buf, size_t len)
{
	const struct access x = {.offset = offset, .len = len};
	int rc = pass(a, &x, buf);

	if (rc >= 0)
		return rc;
	memset(buf, 0xff, len);
	return 0;
}

void emu_ntb_window_write(struct emu_ntb_adapter *a, uint64_t offset, const void *buf, size_t len)
{
	const struct access x = {.offset = offset, .len = len, .data = buf};

	pass(a, &x, NULL);
}

/* ---- what other functions of the machine do there ---- */

static bool in_window(const struct emu_ntb_adapter *a, uint64_t address, size_t len,
		      uint64_t *ret_offset)
{
	uint64_t base, size = a->topo->window_size;

	if (!a->session || !sio_vfio_config_bar(&a->space, SIO_VNTB_BAR_WINDOW, &base) ||
	    address < base || len > size || address - base > size - len)
		return false;
	*ret_offset = address - base;
	return true;
}

/* Each look-up entry that the bytes lie in has its own way. */
static int pass_pieces(struct emu_ntb_adapter *a, uint64_t offset, uint8_t *buf,
		       const uint8_t *data, size_t len)
{
	uint64_t entry = 1ull << a->entry_shift;
	int rc = 0;

	for (size_t at = 0, n; at < len; at += n) {
		uint64_t left = entry - ((offset + at) & (entry - 1));
		struct access x = {.offset = offset + at, .by_device = true};

		n = len - at < left ? len - at : (size_t)left;
		x.len = n;
		x.data = data ? data + at : NULL;
		if (pass(a, &x, data ? NULL : buf + at) < 0)
			rc = -EFAULT;
		if (rc < 0 && !data)
			break;
	}
	return rc;
}

int emu_ntb_reach(struct emu_ntb *n, uint32_t machine, uint64_t address, void *buf,
		  const void *data, size_t len)
{
	uint64_t offset;

	for (unsigned i = 0; i < n->n_own; i++) {
		struct emu_ntb_adapter *a = n->adapter[i];

		if (a->host->node == machine && in_window(a, address, len, &offset))
			return pass_pieces(a, offset, buf, data, len);
	}
	return -ENXIO;
}
