/* SPDX-License-Identifier: BSD-2-Clause */
/* STATS: named counters. Names never change, because programs and scripts look for them. */
#include <stdio.h>

#include "emu/machine/requests.h"
#include "emu/machine/room.h"

static void add(struct sio_evt_stats *evt, const char *name, uint64_t value)
{
	struct sio_counter *c;

	if (evt->count == SIO_COUNTER_MAX)
		return;
	c = &evt->counter[evt->count++];
	snprintf(c->name, sizeof(c->name), "%.*s", (int)sizeof(c->name) - 1, name);
	c->value = value;
}

/* What passed, as PCIe counts: docs/emulation.md says where each is counted. */
static void add_count(struct sio_evt_stats *evt, const struct emu_count *c)
{
	add(evt, "rd_req", c->pcie.read_requests);
	add(evt, "rd_cpl", c->pcie.completions);
	add(evt, "rd_bytes", c->pcie.read_bytes);
	add(evt, "wr_tlp", c->pcie.write_tlps);
	add(evt, "wr_bytes", c->pcie.write_bytes);
	add(evt, "msg", c->msg);
	add(evt, "faults", c->faults);
}

static void host_stats(struct emu_host *h, struct sio_evt_stats *evt)
{
	const uint64_t *n = h->n_of_kind;

	add(evt, "ram_total", h->topo->ram_size);
	add(evt, "ram_free", emu_ram_free_bytes(h));
	if (h->pool.size) {
		add(evt, "pool_total", h->pool.size);
		add(evt, "pool_free", sio_range_free_bytes(&h->pool));
	}
	add(evt, "faults", h->faults.count);
	add(evt, "requests", h->requests);
	add(evt, "requests_refused", h->requests_refused);
	add(evt, "events", h->events);
	add(evt, "owners", n[SIO_KIND_OWNER]);
	add(evt, "mems", n[SIO_KIND_MEM]);
	add(evt, "grants", n[SIO_KIND_GRANT]);
	add(evt, "maps", n[SIO_KIND_MAP]);
	add(evt, "requesters", n[SIO_KIND_REQUESTER]);
	add(evt, "devices_open", n[SIO_KIND_DEVICE]);
	add(evt, "bars", n[SIO_KIND_BAR]);
	add(evt, "dmamaps", n[SIO_KIND_DMAMAP]);
	add(evt, "irqs", n[SIO_KIND_IRQ]);
	add(evt, "watches", n[SIO_KIND_WATCH]);
	add(evt, "dma_channels", n[SIO_KIND_DMA]);
	add(evt, "dma_ranges", n[SIO_KIND_DMA_RANGE]);
	add(evt, "vectors", n[SIO_KIND_VECTOR]);
	add(evt, "room_naps", h->room->n_naps);
	add(evt, "room_sleeps", h->room->n_sleeps);
}

/* What devices, programs and its engine sent through it. */
static struct emu_count passed(const struct emu_adapter *a)
{
	struct emu_count all = a->count;

	all.pcie.read_requests += a->dma.read_requests;
	all.pcie.completions += a->dma.completions;
	all.pcie.read_bytes += a->dma.read_bytes;
	all.pcie.write_tlps += a->dma.write_tlps;
	all.pcie.write_bytes += a->dma.write_bytes;
	return all;
}

int emu_room_machine_passed(const struct emu_room *r, uint32_t node, unsigned adapter,
			    struct sio_pcie_count *ret, uint64_t *ret_messages)
{
	const struct sio_topo_host *t = sio_topology_member(r->topo, node);
	struct emu_count all;

	if (!t || !t->machine || adapter >= t->n_adapters)
		return -ENODEV;
	all = passed(&r->host[t - r->topo->host].adapter[adapter]);
	*ret = all.pcie;
	*ret_messages = all.msg;
	return 0;
}

static void adapter_stats(struct emu_adapter *a, struct sio_evt_stats *evt)
{
	struct emu_count all = passed(a);

	add_count(evt, &all);
	add(evt, "lut_total", a->topo->lut_entries);
	add(evt, "lut_used", a->lut.n_used);
	add(evt, "lut_longest_run", sio_lut_longest_run(&a->lut));
	add(evt, "requesters_total", a->topo->requesters);
	add(evt, "requesters_used", a->requesters_used);
}

/* Of an adapter without channels they begin again at 0. */
static void engine_stats(const struct emu_adapter *a, struct sio_evt_stats *evt)
{
	static const struct emu_count none;
	const struct emu_engine *e = a->engine;

	add_count(evt, e ? &e->d.count : &none);
	add(evt, "channels", e ? e->n_channels : 0);
	add(evt, "transfers", e ? e->transfers : 0);
	add(evt, "transfers_failed", e ? e->failed : 0);
	add(evt, "translations_missed", e ? e->d.xlat_misses : 0);
}

static void device_stats(struct emu_device *d, struct sio_evt_stats *evt)
{
	char name[SIO_COUNTER_MAX][SIO_COUNTER_NAME];
	uint64_t value[SIO_COUNTER_MAX];
	unsigned n;

	add_count(evt, &d->count);
	add(evt, "resets", d->generation);
	add(evt, "writable_views", d->writable_views);
	add(evt, "translations_missed", d->xlat_misses);
	add(evt, "wakes_by_fault", d->wakes[SIO_WATCH_FAULT]);
	add(evt, "wakes_by_event", d->wakes[SIO_WATCH_EVENT]);
	memset(name, 0, sizeof(name));
	n = d->model->counters(d->state, name, value, SIO_COUNTER_MAX - evt->count);
	for (unsigned i = 0; i < n; i++)
		add(evt, name[i], value[i]);
}

/* @link: of @n; what passed it, in both directions. */
static int link_stats(struct emu_request *rq, const struct sio_pcie_count *link, unsigned n,
		      const char *what, const struct sio_req_stats *m, struct sio_evt_stats *evt)
{
	const struct sio_pcie_count *c;

	if (m->id >= n)
		return sio_fail(&rq->err, -ENODEV, "STATS: no %s %" PRIu64 "; there are %u", what,
				(uint64_t)m->id, n);
	c = &link[m->id];
	add(evt, "rd_req", c->read_requests);
	add(evt, "rd_cpl", c->completions);
	add(evt, "rd_bytes", c->read_bytes);
	add(evt, "wr_tlp", c->write_tlps);
	add(evt, "wr_bytes", c->write_bytes);
	return 0;
}

int emu_op_stats(struct emu_request *rq, const void *msg)
{
	const struct sio_req_stats *m = msg;
	struct emu_adapter *a = NULL;
	struct sio_evt_stats evt;
	struct emu_device *d = NULL;
	int rc = 0;

	memset(&evt, 0, sizeof(evt));
	switch (m->kind) {
	case SIO_STATS_CHASSIS:
		rc = link_stats(rq, rq->host->chassis, rq->host->topo->n_chassis, "chassis", m,
				&evt);
		break;
	case SIO_STATS_TRUNK:
		rc = link_stats(rq, rq->host->room->trunk, rq->host->room->topo->n_trunks,
				"link between switches", m, &evt);
		break;
	case 0:
		if (m->id != 0)
			return sio_fail(&rq->err, -EINVAL,
					"STATS: id of a host is %#" PRIx64 ", 0 is right",
					(uint64_t)m->id);
		host_stats(rq->host, &evt);
		break;
	case SIO_KIND_ADAPTER:
		rc = emu_adapter_get(rq, m->id > UINT32_MAX ? UINT32_MAX : (unsigned)m->id, &a);
		if (rc < 0)
			return rc;
		adapter_stats(a, &evt);
		break;
	case SIO_KIND_DMA:
		rc = emu_adapter_get(rq, m->id > UINT32_MAX ? UINT32_MAX : (unsigned)m->id, &a);
		if (rc < 0)
			return rc;
		engine_stats(a, &evt);
		break;
	case SIO_KIND_DEVICE:
		d = emu_device_known(rq->host, m->id);
		if (!d)
			return sio_fail(&rq->err, -ENODEV, "STATS: %s has no device %#" PRIx64,
					rq->host->topo->name, (uint64_t)m->id);
		device_stats(d, &evt);
		break;
	default:
		return sio_fail(&rq->err, -EINVAL,
				"STATS: kind %u, 0 (host), %d (adapter), %d (device), %d (DMA "
				"engine of an adapter), %d (chassis) or %d (link between switches) "
				"is right",
				m->kind, SIO_KIND_ADAPTER, SIO_KIND_DEVICE, SIO_KIND_DMA,
				SIO_STATS_CHASSIS, SIO_STATS_TRUNK);
	}
	if (rc < 0)
		return rc;
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
	return 0;
}
