/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Emulated hosts beside machines. Their hardware is emulated elsewhere; here their adapters have
 * rows in the machines' tables of peers, and nothing else. What a machine sends to such a host is
 * handed on; what the host sends is looked up in the machine's granted ranges, as that of any peer.
 */
#include <errno.h>
#include <string.h>

#include "emu/ntb/inside.h"

uint32_t emu_ntb_outward(const struct emu_ntb_row *row, uint64_t address, void *buf,
			 const void *data, size_t len, bool *ret_message)
{
	const struct emu_ntb_adapter *to = row->peer;
	const struct emu_ntb_adapter *from = to->row[row->self].peer;
	const struct emu_ntb_outward x = {.machine = from->host->node,
					  .machine_adapter = from->index,
					  .node = to->host->node,
					  .adapter = to->index,
					  .address = address,
					  .len = len,
					  .data = data};
	struct emu_ntb *n = to->ntb;
	uint8_t *there = NULL;
	int rc = n->ops->outward ? n->ops->outward(n->ctx, &x, &there) : -EACCES;

	if (rc < 0)
		return rc == -EPERM ? SIO_VNTB_REASON_RIGHT : SIO_VNTB_REASON_RANGE;
	*ret_message = rc > 0;
	if (rc > 0)
		return 0;
	if (data)
		emu_ntb_copy_out(there, data, len);
	else
		emu_ntb_copy_in(buf, there, len);
	return 0;
}

void emu_ntb_host_power(struct emu_ntb *n, uint32_t node, uint64_t start)
{
	for (unsigned i = n->n_own; i < n->n; i++) {
		struct emu_ntb_adapter *a = n->adapter[i];

		if (a->host->node != node)
			continue;
		a->on = start != 0;
		if (start)
			a->start = start;
		emu_ntb_refresh(a);
	}
}

void emu_ntb_report_power(struct emu_ntb_adapter *a)
{
	struct emu_ntb_power *p = &a->power;
	struct emu_ntb *n = a->ntb;

	if (!n->ops->power)
		return;
	if (p->told)
		n->ops->power(n->ctx, a->host->node, a->index, 0);
	p->told = 0;
	p->waits = a->session != NULL;
	emu_ntb_power_due(n);
}

void emu_ntb_power_due(struct emu_ntb *n)
{
	uint64_t now = n->ops->now(n->ctx);

	for (unsigned i = 0; i < n->n_own; i++) {
		struct emu_ntb_adapter *a = n->adapter[i];
		struct emu_ntb_power *p = &a->power;

		if (!p->waits)
			continue;
		if (now < p->next_on) {
			n->ops->alarm(n->ctx, p->next_on);
			continue;
		}
		p->waits = false;
		p->told = a->start;
		p->next_on = now + EMU_NTB_STARTS_NS;
		n->ops->power(n->ctx, a->host->node, a->index, a->start);
	}
}

/* The row of @x's host that leads to the machine's adapter, if both are there and joined. */
static struct emu_ntb_row *find_row(const struct emu_ntb *n, const struct emu_ntb_inward *x)
{
	const struct sio_topo_host *host = sio_topology_host(n->topo, x->node);
	struct emu_ntb_adapter *a = host ? emu_ntb_find(n, host, x->adapter) : NULL;

	for (unsigned i = 0; a && i < a->n_rows; i++) {
		const struct emu_ntb_adapter *peer = a->row[i].peer;

		if (peer->host->node == x->machine && peer->index == x->machine_adapter)
			return peer->session && emu_ntb_joined(a, peer) ? &a->row[i] : NULL;
	}
	return NULL;
}

int emu_ntb_host_memory(struct emu_ntb *n, const struct emu_ntb_inward *x, uint8_t **ret,
			size_t *ret_part, bool *ret_read, bool *ret_write)
{
	const uint8_t none[4] = {0}; /* a write's, if it were a message */
	const struct emu_ntb_row *row = find_row(n, x);
	const struct sio_vfio_range *r;
	unsigned range;

	if (!row || x->len == 0 || x->len > SIZE_MAX)
		return -EACCES;
	*ret_read = emu_ntb_find_range(row->peer, row->self, x->address, x->len, NULL, &range) == 0;
	*ret_write = x->len > sizeof(none) && emu_ntb_find_range(row->peer, row->self, x->address,
								 x->len, none, &range) == 0;
	if (!*ret_read && !*ret_write)
		return -EACCES;
	/* As any access of the function's, it needs the bus master bit. */
	r = sio_vfio_memory_part(sio_vfio_session_memory(row->peer->session), x->address, x->len,
				 *ret_write, ret_part);
	if (!r || !r->data || !sio_vfio_config_is_master(&row->peer->space))
		return -EFAULT;
	*ret_read = *ret_read && r->can_read;
	*ret = r->data + (x->address - r->address);
	return 0;
}

/* Of 4 bytes, by the host of @row's adapter. */
static struct emu_ntb_access access_of(struct emu_ntb_row *row, unsigned range, uint64_t address)
{
	struct emu_ntb_adapter *from = row->peer->row[row->self].peer;

	return (struct emu_ntb_access){.from = from,
				       .to = row->peer,
				       .row = row,
				       .start = from->start,
				       .range = range,
				       .ticket = -1,
				       .address = address,
				       .len = sizeof(uint32_t)};
}

static int dispatch(const struct emu_ntb_row *row, const struct emu_ntb_access *access,
		    const uint32_t *data)
{
	int rc = row->writes < EMU_NTB_WRITES ? emu_ntb_send(access, data) : -EAGAIN;

	return rc == -EAGAIN ? -EBUSY : rc;
}

int emu_ntb_host_message(struct emu_ntb *n, const struct emu_ntb_inward *x, uint32_t data,
			 bool send)
{
	struct emu_ntb_row *row = find_row(n, x);
	struct emu_ntb_access access;
	unsigned range;

	if (!row || x->len != sizeof(data) ||
	    emu_ntb_find_range(row->peer, row->self, x->address, sizeof(data), &data, &range))
		return -EACCES;
	if (!(row->peer->tables.range[range].control & SIO_VNTB_RANGE_MESSAGE))
		return -EACCES;
	if (!send)
		return 0;
	if (!sio_vfio_config_is_master(&row->peer->space))
		return -EFAULT;
	access = access_of(row, range, x->address);
	/* One that meets the same one on its way is one with it: it is never lost. */
	if (emu_ntb_join(&access, &data))
		return 0;
	return dispatch(row, &access, &data);
}

int emu_ntb_host_store(struct emu_ntb *n, const struct emu_ntb_inward *x, const uint32_t *data)
{
	const uint32_t none = 0;
	struct emu_ntb_row *row = find_row(n, x);
	struct emu_ntb_access access;
	unsigned range;

	if (!row || x->len == 0 || x->len > SIZE_MAX ||
	    emu_ntb_find_range(row->peer, row->self, x->address, x->len, &none, &range) ||
	    row->peer->tables.range[range].control & SIO_VNTB_RANGE_MESSAGE)
		return -EACCES;
	if (!data)
		return 0;
	if (x->len != sizeof(*data))
		return -EINVAL;
	if (!sio_vfio_config_is_master(&row->peer->space))
		return -EFAULT;
	access = access_of(row, range, x->address);
	return dispatch(row, &access, data);
}
