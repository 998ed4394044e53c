/* SPDX-License-Identifier: BSD-2-Clause */
/* All virtual NTBs of a topology: which are joined to each other, and which are up. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/ntb/inside.h"

#define MOST_PATHS (SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS)

/* ---- what others see ---- */

void emu_ntb_clear(struct emu_ntb_adapter *a)
{
	emu_ntb_members_leave(a);
	memset(&a->tables, 0, sizeof(a->tables));
	a->tables.bell_mask = a->tables.message_mask = ~0u;
	a->tables.half_at = ~0u;
	a->start++;
}

bool emu_ntb_joined(const struct emu_ntb_adapter *a, const struct emu_ntb_adapter *peer)
{
	return a->cable && peer->cable && sio_outage_joins(a->ntb->outage, a->topo, peer->topo);
}

bool emu_ntb_reaches(const struct emu_ntb_adapter *a, const struct emu_ntb_adapter *peer)
{
	return a->host == peer->host || emu_ntb_joined(a, peer);
}

static uint32_t state_of(const struct emu_ntb_adapter *a, const struct emu_ntb_adapter *peer)
{
	bool joined = emu_ntb_joined(a, peer);

	if (peer->emulated)
		return peer->on && joined ? SIO_VNTB_PEER_UP | SIO_VNTB_PEER_READY : 0;
	if (!peer->session || !joined)
		return SIO_VNTB_PEER_MACHINE;
	return SIO_VNTB_PEER_MACHINE | SIO_VNTB_PEER_UP |
	       (peer->tables.enable ? SIO_VNTB_PEER_READY : 0);
}

/* Return: whether the row of @a has something new. */
static bool show(struct emu_ntb_adapter *a, struct emu_ntb_row *row)
{
	uint32_t state = state_of(a, row->peer);

	if (state == row->state && row->start == row->peer->start)
		return false;
	/* Whether its driver is ready is no matter of the way there. */
	if ((state ^ row->state) & SIO_VNTB_PEER_UP || row->start != row->peer->start) {
		row->changes++;
		a->counts.changes++;
	}
	row->state = state;
	row->start = row->peer->start;
	return true;
}

void emu_ntb_refresh(struct emu_ntb_adapter *a)
{
	bool changed = false;

	for (unsigned i = 0; i < a->n_rows; i++) {
		struct emu_ntb_adapter *peer = a->row[i].peer;

		changed |= show(a, &a->row[i]);
		if (show(peer, &peer->row[a->row[i].self]))
			emu_ntb_raise(peer, SIO_VNTB_VECTOR_LINK);
	}
	if (changed)
		emu_ntb_raise(a, SIO_VNTB_VECTOR_LINK);
}

void emu_ntb_restart(struct emu_ntb_adapter *a)
{
	emu_ntb_clear(a);
	emu_ntb_refresh(a);
	emu_ntb_report_power(a);
}

void emu_ntb_attach(struct emu_ntb_adapter *a, struct sio_vfio_session *s)
{
	/* Peers first: their reads are answered while what they name is there. */
	if (!s)
		emu_ntb_abandon(a);
	a->session = s;
	sio_vfio_config_reset(&a->space);
	memset(a->msix, 0, sizeof(a->msix));
	memset(a->last, 0, sizeof(a->last));
	emu_ntb_restart(a);
}

int emu_ntb_link(struct emu_ntb *n, uint32_t node, unsigned adapter, bool up)
{
	for (unsigned i = 0; i < n->n; i++) {
		struct emu_ntb_adapter *a = n->adapter[i];

		if (a->host->node != node || a->index != adapter)
			continue;
		a->cable = up;
		emu_ntb_abandon_cut(n);
		emu_ntb_refresh(a);
		return 0;
	}
	return -ENXIO;
}

/* What lies between adapters has changed. */
static void refresh_all(struct emu_ntb *n)
{
	emu_ntb_abandon_cut(n);
	for (unsigned i = 0; i < n->n; i++)
		emu_ntb_refresh(n->adapter[i]);
}

void emu_ntb_switch(struct emu_ntb *n, unsigned index, bool in)
{
	if (sio_outage_switch(n->outage, index, in))
		refresh_all(n);
}

void emu_ntb_trunk(struct emu_ntb *n, unsigned index, bool in)
{
	if (sio_outage_trunk(n->outage, index, in))
		refresh_all(n);
}

void emu_ntb_expire(struct emu_ntb *n)
{
	emu_ntb_expire_accesses(n);
	emu_ntb_power_due(n);
}

/* ---- how they are made ---- */

static void describe(struct emu_ntb_adapter *a)
{
	const struct sio_vfio_config_identity id = {
		.vendor = SIO_VNTB_VENDOR,
		.device = SIO_VNTB_DEVICE,
		.subsys_vendor = SIO_VNTB_VENDOR,
		.subsys_device = SIO_VNTB_DEVICE,
		.class_code = SIO_VNTB_CLASS,
		.bar_size = {[SIO_VNTB_BAR_REGISTERS] = SIO_VNTB_BAR0_SIZE,
			     [SIO_VNTB_BAR_WINDOW] = a->topo->window_size},
		.prefetchable = {[SIO_VNTB_BAR_WINDOW] = true},
		.msix_count = SIO_VNTB_VECTORS,
		.msix_bar = SIO_VNTB_BAR_REGISTERS,
		.msix_table = SIO_VNTB_MSIX_TABLE,
		.msix_pending = SIO_VNTB_MSIX_PENDING,
	};

	sio_vfio_config_init(&a->space, &id);
}

static void set_fixed(struct emu_ntb_adapter *a)
{
	/* Members of a fused group would have one memory, which machines have not. */
	bool exact = a->ntb->topo->exact_multicast;
	const struct {
		unsigned at;
		uint32_t value;
	} fixed[] = {
		{SIO_VNTB_MAGIC, SIO_VNTB_MAGIC_VALUE},
		{SIO_VNTB_VERSION, SIO_VNTB_VERSION_VALUE},
		{SIO_VNTB_NODE, a->host->node},
		{SIO_VNTB_ADAPTER, a->index},
		{SIO_VNTB_PEERS, a->n_rows},
		{SIO_VNTB_ENTRIES, a->topo->lut_entries},
		{SIO_VNTB_ENTRY_SHIFT, a->entry_shift},
		{SIO_VNTB_RANGES, SIO_VNTB_MAX_RANGES},
		{SIO_VNTB_REQUESTERS, a->topo->requesters},
		{SIO_VNTB_PIECES, a->n_pieces},
		{SIO_VNTB_CAPABILITIES, a->host->mapped ? SIO_VNTB_CAP_MAPPED : 0},
		{SIO_VNTB_LINK_WIDTH, a->topo->link_width},
		{SIO_VNTB_LINK_GENERATION, a->topo->link_generation},
		{SIO_VNTB_GROUPS, exact ? SIO_VNTB_MAX_GROUPS : 0},
		{SIO_VNTB_MEMBERS, exact ? SIO_VNTB_MAX_MEMBERS : 0},
	};

	for (unsigned i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		a->fixed[fixed[i].at / 4] = fixed[i].value;
}

struct emu_ntb_adapter *emu_ntb_find(const struct emu_ntb *n, const struct sio_topo_host *host,
				     unsigned index)
{
	for (unsigned i = 0; i < n->n; i++)
		if (n->adapter[i]->host == host && n->adapter[i]->index == index)
			return n->adapter[i];
	return NULL;
}

/* Rows to the adapters of one other host, in their order. */
static int add_rows(struct emu_ntb_adapter *a, const struct sio_topo_host *other,
		    struct sio_err *reterr)
{
	struct sio_path path[MOST_PATHS];
	unsigned n = sio_topology_paths(a->ntb->topo, a->host->node, other->node, path, MOST_PATHS);

	for (unsigned k = 0; k < other->n_adapters; k++) {
		for (unsigned i = 0; i < n; i++) {
			if (path[i].adapter != a->index || path[i].peer_adapter != k)
				continue;
			if (a->n_rows == SIO_VNTB_MAX_PEERS)
				return sio_fail(reterr, -EINVAL,
						"adapter %s is joined to more than %u adapters of "
						"other hosts; at most as many are right",
						a->name, SIO_VNTB_MAX_PEERS);
			a->row[a->n_rows++] = (struct emu_ntb_row){
				.peer = emu_ntb_find(a->ntb, other, k),
				.hops = path[i].hops,
				.state = other->machine ? SIO_VNTB_PEER_MACHINE : 0};
		}
	}
	return 0;
}

static int add_pieces(struct emu_ntb_adapter *a)
{
	const struct sio_topology *topo = a->ntb->topo;

	if (!a->host->mapped)
		return 0;
	a->piece = calloc(a->n_rows + 1, sizeof(*a->piece));
	if (!a->piece)
		return -ENOMEM;
	a->piece[a->n_pieces++] =
		(struct emu_ntb_piece){.row = SIO_VNTB_PIECE_OWN,
				       .size = a->host->ram_size,
				       .offset = emu_ntb_pool_offset(topo, a->machine)};
	for (unsigned i = 0; i < a->n_rows; i++) {
		const struct emu_ntb_adapter *peer = a->row[i].peer;

		if (peer->host->mapped)
			a->piece[a->n_pieces++] = (struct emu_ntb_piece){
				.row = i,
				.size = peer->host->ram_size,
				.offset = emu_ntb_pool_offset(topo, peer->machine)};
		else if (peer->host->pool_size)
			a->piece[a->n_pieces++] =
				(struct emu_ntb_piece){.row = i,
						       .file = peer->host->node,
						       .bus = peer->host->ram_base,
						       .size = peer->host->pool_size};
	}
	return 0;
}

static int join(struct emu_ntb_adapter *a, struct sio_err *reterr)
{
	const struct sio_topology *topo = a->ntb->topo;
	int rc = 0;

	a->row = calloc(SIO_VNTB_MAX_PEERS, sizeof(*a->row));
	if (!a->row)
		return sio_no_memory(reterr, "the peers of an adapter");
	for (unsigned i = 0; rc == 0 && i < topo->n_hosts + topo->n_machines; i++)
		if (&topo->host[i] != a->host && !(a->emulated && i < topo->n_hosts))
			rc = add_rows(a, &topo->host[i], reterr);
	if (rc == 0 && add_pieces(a) < 0)
		rc = sio_no_memory(reterr, "the pieces of a window");
	return rc;
}

/* Each row, where the other end has us. */
static void find_selves(struct emu_ntb_adapter *a)
{
	for (unsigned i = 0; i < a->n_rows; i++) {
		const struct emu_ntb_adapter *peer = a->row[i].peer;

		for (unsigned k = 0; k < peer->n_rows; k++)
			if (peer->row[k].peer == a)
				a->row[i].self = k;
	}
}

/* @host: among hosts and machines. */
static struct emu_ntb_adapter *new_adapter(struct emu_ntb *n, unsigned host, unsigned index)
{
	struct emu_ntb_adapter *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->ntb = n;
	a->host = &n->topo->host[host];
	a->topo = &a->host->adapter[index];
	a->emulated = host < n->topo->n_hosts;
	a->machine = a->emulated ? 0 : host - n->topo->n_hosts;
	a->index = index;
	a->cable = true;
	a->own = (struct emu_ntb_row){.peer = a, .self = EMU_NTB_NOWHERE};
	a->entry_shift = (unsigned)__builtin_ctzll(a->topo->window_size / a->topo->lut_entries);
	snprintf(a->name, sizeof(a->name), "%s.%u", a->host->name, index);
	return a;
}

static int add_adapters(struct emu_ntb *n, unsigned host)
{
	for (unsigned k = 0; k < n->topo->host[host].n_adapters; k++) {
		n->adapter[n->n] = new_adapter(n, host, k);
		if (!n->adapter[n->n])
			return -ENOMEM;
		n->n++;
	}
	return 0;
}

static bool meets_machines(const struct sio_topology *topo, const struct sio_topo_host *host)
{
	struct sio_path path;

	for (unsigned i = 0; i < topo->n_machines; i++)
		if (sio_topology_paths(topo, host->node, topo->machine[i].node, &path, 1))
			return true;
	return false;
}

static int make_all(struct emu_ntb *n, struct sio_err *reterr)
{
	const struct sio_topology *topo = n->topo;
	int rc = 0;

	n->adapter = calloc((size_t)(topo->n_hosts + topo->n_machines) * SIO_MAX_ADAPTERS + 1,
			    sizeof(struct emu_ntb_adapter *));
	if (!n->adapter || sio_outage_new(topo, &n->outage) < 0)
		return sio_no_memory(reterr, "the adapters of machines");
	for (unsigned i = topo->n_hosts; rc == 0 && i < topo->n_hosts + topo->n_machines; i++)
		rc = add_adapters(n, i);
	n->n_own = n->n;
	for (unsigned i = 0; rc == 0 && i < topo->n_hosts; i++)
		if (meets_machines(topo, &topo->host[i]))
			rc = add_adapters(n, i);
	if (rc < 0)
		return sio_no_memory(reterr, "the adapters of hosts");
	for (unsigned i = 0; rc == 0 && i < n->n; i++)
		rc = join(n->adapter[i], reterr);
	for (unsigned i = 0; rc == 0 && i < n->n; i++) {
		find_selves(n->adapter[i]);
		if (n->adapter[i]->emulated)
			continue;
		set_fixed(n->adapter[i]);
		describe(n->adapter[i]);
		emu_ntb_clear(n->adapter[i]);
	}
	return rc;
}

int emu_ntb_new(const struct sio_topology *topo, const struct emu_ntb_ops *ops, void *ctx,
		struct emu_ntb **ret, struct sio_err *reterr)
{
	struct emu_ntb *n = calloc(1, sizeof(*n));
	int rc;

	if (!n)
		return sio_no_memory(reterr, "virtual NTBs");
	n->topo = topo;
	n->pcie = (struct sio_pcie){.max_payload = topo->max_payload,
				    .max_read_request = topo->max_read_request,
				    .read_completion_boundary = topo->read_completion_boundary};
	if (!sio_pcie_valid(&n->pcie)) {
		free(n);
		return sio_fail(reterr, -EINVAL, "the topology's packet sizes are none of PCIe's");
	}
	n->ops = ops;
	n->ctx = ctx;
	rc = make_all(n, reterr);
	if (rc < 0) {
		emu_ntb_free(n);
		return rc;
	}
	for (unsigned i = 0; i < n->n; i++)
		for (unsigned k = 0; k < n->adapter[i]->n_rows; k++)
			n->adapter[i]->row[k].start = n->adapter[i]->row[k].peer->start;
	*ret = n;
	return 0;
}

void emu_ntb_pool_key(struct emu_ntb *n, uint64_t key)
{
	n->pool_key = key;
}

void emu_ntb_free(struct emu_ntb *n)
{
	if (!n)
		return;
	for (unsigned i = 0; i < n->n; i++) {
		free(n->adapter[i]->row);
		free(n->adapter[i]->piece);
		free(n->adapter[i]);
	}
	sio_outage_free(n->outage);
	free(n->adapter);
	free(n);
}

unsigned emu_ntb_adapters(const struct emu_ntb *n)
{
	return n->n_own;
}

const struct emu_ntb_adapter *emu_ntb_of(const struct emu_ntb *n, uint32_t node, unsigned adapter)
{
	for (unsigned i = 0; i < n->n_own; i++)
		if (n->adapter[i]->host->node == node && n->adapter[i]->index == adapter)
			return n->adapter[i];
	return NULL;
}

struct emu_ntb_adapter *emu_ntb_at(struct emu_ntb *n, unsigned index)
{
	return n->adapter[index];
}

uint32_t emu_ntb_node(const struct emu_ntb_adapter *a)
{
	return a->host->node;
}

const char *emu_ntb_name(const struct emu_ntb_adapter *a)
{
	return a->name;
}
