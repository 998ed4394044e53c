/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine room as a whole: its creation and end, the power of its hosts, their cables, and a
 * turn of its devices and engines. Engines that run beside the room stand still while anything
 * changes.
 */
#include "emu/machine/layout.h"
#include "emu/machine/requests.h"
#include "emu/machine/room.h"

/* Engines stand still between these two. */
static void stop_engines(struct emu_room *r)
{
	if (r->ops->engines_stop)
		r->ops->engines_stop(r->ctx);
}

static void run_engines(struct emu_room *r)
{
	if (r->ops->engines_go)
		r->ops->engines_go(r->ctx);
}

void emu_room_drained(struct emu_room *r, unsigned host)
{
	struct emu_host *h = &r->host[host];
	struct sio_evt_overflow evt;

	if (!h->overflow)
		return;
	h->overflow = false;
	memset(&evt, 0, sizeof(evt));
	emu_event(h, &evt, sizeof(evt), SIO_EV_OVERFLOW);
	emu_log(r, "%s: events were dropped, for its daemon did not read them", h->topo->name);
	emu_links_report_again(h);
}

void emu_host_done(struct emu_host *h)
{
	for (unsigned i = 0; i < SIO_MAX_ADAPTERS; i++)
		emu_adapter_done(&h->adapter[i]);
	h->n_adapters = 0;
	emu_inward_done(&h->inward);
	emu_paths_done(h);
}

static void host_free(struct emu_host *h)
{
	/* The virtual functions of a drive are behind it. */
	for (unsigned i = h->n_devices; i-- > 0;)
		emu_device_free(h->device[i]);
	free(h->device);
	emu_host_done(h);
}

/*
 * What continues when a host goes and another one of its node id comes: whoever has something of
 * the one takes nothing for the other's.
 */
static void forget(struct emu_host *h)
{
	uint64_t boot_generation = h->boot_generation, last_id = h->last_id;
	uint32_t last_number = h->last_number;

	memset(h, 0, sizeof(*h));
	h->boot_generation = boot_generation;
	h->last_id = last_id ? last_id : EMU_FIRST_ID;
	h->last_number = last_number;
}

int emu_host_init(struct emu_host *h, struct emu_room *r, unsigned index,
		  const struct sio_topo_host *topo, struct sio_err *reterr)
{
	int rc = 0;

	forget(h);
	h->room = r;
	h->topo = topo;
	h->index = index;
	h->machine = topo->machine;
	h->daemon.o.host = h;
	h->daemon.o.kind = SIO_KIND_OWNER;
	h->daemon.o.state = SIO_STATE_LIVE;
	while (rc == 0 && h->n_adapters < topo->n_adapters) {
		unsigned i = h->n_adapters++;

		rc = emu_adapter_init(&h->adapter[i], h, i, &topo->adapter[i], reterr);
	}
	return rc == 0 ? emu_paths_init(h, reterr) : rc;
}

static int host_new(struct emu_room *r, unsigned index, struct sio_err *reterr)
{
	const struct sio_topo_host *topo = &r->topo->host[index];
	struct emu_host *h = &r->host[index];
	int rc = emu_host_init(h, r, index, topo, reterr);

	if (rc < 0 || h->machine) /* its devices are its own */
		return rc;
	h->device = calloc(topo->n_devices ? topo->n_devices : 1, sizeof(*h->device));
	if (!h->device)
		return sio_fail(reterr, -ENOMEM,
				"host %s: no memory for its devices: " SIO_MORE_MEMORY, topo->name);
	while (h->n_devices < topo->n_devices) {
		const struct sio_topo_device *t = &topo->device[h->n_devices];

		rc = emu_device_new(h, t->physical ? h->device[t->physical - 1] : NULL, t,
				    emu_models, &h->device[h->n_devices], reterr);
		if (rc < 0)
			return rc;
		h->n_devices++;
	}
	return 0;
}

static int collect_devices(struct emu_room *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->n_hosts; i++)
		n += r->host[i].n_devices;
	r->device = calloc(n ? n : 1, sizeof(struct emu_device *));
	if (!r->device)
		return -ENOMEM;
	for (unsigned i = 0; i < r->n_hosts; i++)
		for (unsigned k = 0; k < r->host[i].n_devices; k++)
			r->device[r->n_devices++] = r->host[i].device[k];
	return 0;
}

static bool topology_fits(const struct sio_topology *t, struct sio_err *reterr)
{
	const struct sio_pcie pcie = {.max_payload = t->max_payload,
				      .max_read_request = t->max_read_request,
				      .read_completion_boundary = t->read_completion_boundary};

	if (sio_pcie_valid(&pcie))
		return true;
	sio_fail(reterr, -EINVAL,
		 "payload %u, read request %u, completion boundary %u: powers of 2 "
		 "from 128 to 4096, and 64 or 128, are right",
		 t->max_payload, t->max_read_request, t->read_completion_boundary);
	return false;
}

void emu_room_descriptors(struct emu_room *r, uint64_t n)
{
	unsigned hosts = 0;

	for (unsigned i = 0; i < r->n_hosts; i++)
		hosts += !sio_topology_is_vacant(r->host[i].topo);
	r->descriptors = hosts ? n / hosts : n;
}

int emu_links_new(const struct sio_topology *t, struct emu_links *ret)
{
	struct emu_links l = {.n = t->n_trunks};

	for (unsigned i = 0; i < t->n_hosts; i++)
		l.n += t->host[i].n_chassis;
	l.link = calloc(l.n + 1, sizeof(*l.link));
	if (!l.link)
		return -ENOMEM;
	*ret = l;
	return 0;
}

void emu_links_place(struct emu_room *r)
{
	const struct sio_topology *t = r->topo;
	struct sio_pcie_count *next = r->links.link;

	for (unsigned i = 0; i < t->n_hosts; i++) {
		r->host[i].chassis = next;
		next += t->host[i].n_chassis;
	}
	r->trunk = next;
}

int emu_room_new(const struct sio_topology *t, const struct emu_ops *ops, void *ctx,
		 struct emu_room **ret, struct sio_err *reterr)
{
	struct emu_room *r = calloc(1, sizeof(*r));
	int rc = -ENOMEM;

	if (!r)
		return sio_no_memory(reterr, "the machine room");
	if (!topology_fits(t, reterr)) {
		free(r);
		return -EINVAL;
	}
	r->topo = t;
	r->ops = ops;
	r->ctx = ctx;
	r->operations = emu_operations;
	r->kinds = emu_kinds;
	r->gen = 1;
	r->descriptors = UINT64_MAX;
	r->pcie = (struct sio_pcie){.max_payload = t->max_payload,
				    .max_read_request = t->max_read_request,
				    .read_completion_boundary = t->read_completion_boundary};
	sio_pcie_read(&r->pcie, 0, EMU_PAGE, &r->page_read);
	sio_pcie_write(&r->pcie, 0, EMU_PAGE, &r->page_write);
	/* Machines are behind the hosts: there nobody comes or goes. */
	r->max_hosts = emu_grows(r) ? SIO_MAX_HOSTS : t->n_hosts;
	r->host = calloc(r->max_hosts + t->n_machines + 1u, sizeof(*r->host));
	r->check = emu_check_new();
	if (!r->host || !r->check || sio_outage_new(t, &r->outage) < 0 ||
	    emu_links_new(t, &r->links) < 0) {
		sio_no_memory(reterr, "the machine room");
		goto free_room;
	}
	while (r->n_hosts < t->n_hosts) {
		rc = host_new(r, r->n_hosts++, reterr);
		if (rc < 0)
			goto free_room;
	}
	while (r->n_machines < t->n_machines) {
		rc = host_new(r, t->n_hosts + r->n_machines++, reterr);
		if (rc < 0)
			goto free_room;
	}
	emu_links_place(r);
	for (unsigned i = 0; i < r->n_hosts + r->n_machines; i++)
		emu_paths_follow(&r->host[i]);
	rc = collect_devices(r);
	if (rc < 0) {
		sio_fail(reterr, rc, "out of memory for the machine room: " SIO_MORE_MEMORY);
		goto free_room;
	}
	*ret = r;
	return 0;

free_room:
	emu_room_free(r);
	return rc;
}

void emu_room_free(struct emu_room *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < r->n_hosts; i++)
		if (r->host[i].up)
			emu_room_host_down(r, i);
	for (unsigned i = 0; i < r->n_hosts + r->n_machines; i++)
		host_free(&r->host[i]);
	emu_removed_bury(r);
	emu_check_free(r->check);
	sio_outage_free(r->outage);
	free(r->links.link);
	free(r->device);
	free(r->host);
	free(r);
}

static void power_off(struct emu_host *h)
{
	emu_objects_clear(h);
	for (unsigned i = 0; i < h->n_devices; i++)
		emu_device_power_off(h->device[i]);
	for (unsigned i = 0; i < h->n_adapters; i++) {
		emu_engine_power_off(&h->adapter[i]);
		emu_adapter_power_off(&h->adapter[i]);
	}
	emu_adapters_bury(h);
	emu_status_free(h);
	sio_addrmap_done(&h->map);
	emu_ram_power_off(h);
	memset(&h->map, 0, sizeof(h->map));
	emu_invalidate(h->room);
}

static int power_on(struct emu_host *h, struct sio_err *err)
{
	struct emu_room *r = h->room;
	int rc;

	for (unsigned i = 0; i < sizeof(h->boot_id); i += 8) {
		uint64_t word = r->ops->random(r->ctx);

		memcpy(h->boot_id + i, &word, sizeof(word));
	}
	sio_addrmap_init(&h->map, h->topo->name);
	rc = emu_ram_power_on(h, err);
	for (unsigned i = 0; rc == 0 && i < h->n_adapters; i++) {
		rc = emu_adapter_power_on(&h->adapter[i], err);
		if (rc == 0)
			rc = emu_adapter_place(&h->adapter[i], err);
	}
	if (rc == 0) {
		rc = emu_status_new(h);
		if (rc < 0)
			sio_fail(err, rc, "no memory for the status page: " SIO_MORE_MEMORY);
	}
	for (unsigned i = 0; rc == 0 && i < h->n_devices; i++)
		rc = emu_device_power_on(h->device[i], err);
	return rc;
}

static int host_up(struct emu_room *r, unsigned host)
{
	struct emu_host *h = &r->host[host];
	struct sio_err err = {0};
	int rc;

	if (h->up)
		return -EBUSY;
	rc = power_on(h, &err);
	if (rc < 0) {
		power_off(h);
		emu_log(r, "host %s cannot start: %s", h->topo->name, err.text);
		return rc;
	}
	h->boot_generation++;
	h->up = true;
	h->overflow = false;
	r->watch_dirty = true;
	emu_paths_update(r);
	return 0;
}

int emu_room_host_up(struct emu_room *r, unsigned host)
{
	int rc;

	stop_engines(r);
	rc = host_up(r, host);
	run_engines(r);
	return rc;
}

/*
 * First the status pages of all, this host's own too, then the devices, whose reset ends what they
 * do to others; then everything that the host held. What peers have mapped of it stays in their
 * tables and faults: the entries carry the number of the start that is over now.
 */
void emu_room_host_down(struct emu_room *r, unsigned host)
{
	struct emu_host *h = &r->host[host];

	if (!h->up)
		return;
	stop_engines(r);
	h->up = false;
	r->watch_dirty = true;
	emu_paths_update(r);
	power_off(h);
	emu_removed_bury(r);
	run_engines(r);
}

int emu_room_link(struct emu_room *r, unsigned host, unsigned adapter, bool up)
{
	struct emu_adapter *a;
	bool before;

	if (host >= r->n_hosts + r->n_machines || adapter >= r->host[host].topo->n_adapters)
		return -ENODEV;
	a = &r->host[host].adapter[adapter];
	stop_engines(r);
	before = emu_adapter_linked(a);
	a->cable = up;
	emu_paths_update(r);
	if (a->host->up && emu_adapter_linked(a) != before)
		emu_link_report(a);
	run_engines(r);
	return 0;
}

int emu_room_machine(struct emu_room *r, uint32_t node, unsigned adapter, uint64_t start)
{
	const struct sio_topo_host *t = sio_topology_member(r->topo, node);
	struct emu_adapter *a;

	if (!t || !t->machine || adapter >= t->n_adapters)
		return -ENODEV;
	a = &r->host[t - r->topo->host].adapter[adapter];
	stop_engines(r);
	if (a->start != start) { /* what is of the old one ends before the new one is there */
		a->start = 0;
		emu_paths_update(r);
	}
	a->start = start;
	emu_paths_update(r);
	run_engines(r);
	return 0;
}

uint64_t emu_room_start(const struct emu_room *r, unsigned host)
{
	return r->host[host].up ? r->host[host].boot_generation : 0;
}

int emu_room_inbound(struct emu_room *r, const struct emu_inbound *x, uint8_t **ret)
{
	return emu_machine_inbound(r, x, ret);
}

/* Hosts whose links end at a switch, @index, without power hear of it, as they do of a cable. */
static void report_to_those_at(struct emu_room *r, unsigned index)
{
	for (unsigned i = 0; i < r->n_hosts; i++) {
		struct emu_host *h = &r->host[i];

		for (unsigned k = 0; h->up && k < h->topo->n_adapters; k++) {
			const struct sio_topo_adapter *t = h->adapter[k].topo;

			if (t->attach == SIO_ATTACH_SWITCH && t->attach_index == index &&
			    h->adapter[k].cable)
				emu_link_report(&h->adapter[k]);
		}
	}
}

int emu_room_switch(struct emu_room *r, unsigned index, bool in)
{
	if (index >= r->topo->n_switches)
		return -ENODEV;
	stop_engines(r);
	if (sio_outage_switch(r->outage, index, in)) {
		emu_paths_update(r);
		report_to_those_at(r, index);
	}
	run_engines(r);
	return 0;
}

int emu_room_trunk(struct emu_room *r, unsigned index, bool in)
{
	if (index >= r->topo->n_trunks)
		return -ENODEV;
	stop_engines(r);
	if (sio_outage_trunk(r->outage, index, in))
		emu_paths_update(r);
	run_engines(r);
	return 0;
}

bool emu_room_switch_in(const struct emu_room *r, unsigned index)
{
	return sio_outage_switch_in(r->outage, index);
}

bool emu_room_trunk_in(const struct emu_room *r, unsigned index)
{
	return sio_outage_trunk_in(r->outage, index);
}

int emu_room_link_turn(struct emu_room *r, unsigned host, unsigned adapter)
{
	if (host >= r->n_hosts || adapter >= r->host[host].topo->n_adapters)
		return -ENODEV;
	if (r->host[host].adapter[adapter].cable)
		return -EBUSY;
	stop_engines(r);
	emu_paths_turn(&r->host[host], adapter);
	emu_invalidate(r);
	run_engines(r);
	return 0;
}

int emu_room_link_errors(struct emu_room *r, unsigned host, unsigned adapter, uint32_t n)
{
	if (host >= r->n_hosts || adapter >= r->host[host].topo->n_adapters)
		return -ENODEV;
	stop_engines(r);
	emu_paths_errors(&r->host[host], adapter, n);
	run_engines(r);
	return 0;
}

int emu_room_link_delay(struct emu_room *r, unsigned host, unsigned adapter, uint64_t ns)
{
	if (host >= r->n_hosts || adapter >= r->host[host].topo->n_adapters)
		return -ENODEV;
	stop_engines(r);
	r->host[host].adapter[adapter].delay_ns = ns;
	r->delays |= ns != 0;
	run_engines(r);
	return 0;
}

int emu_room_host_move(struct emu_room *r, struct sio_topology *own, unsigned host,
		       struct sio_err *reterr)
{
	int rc;

	if (host >= r->n_hosts)
		return sio_fail(reterr, -ENODEV, "no such host");
	if (r->host[host].up)
		return sio_fail(reterr, -EBUSY,
				"host %s is up, and only its next start can find other addresses",
				own->host[host].name);
	if (r->n_machines)
		return sio_fail(reterr, -EOPNOTSUPP,
				"hosts of clusters with machines keep their addresses: their "
				"pools are files of these places");
	stop_engines(r);
	rc = emu_layout_move(&own->host[host], reterr);
	run_engines(r);
	return rc;
}

/* The edge has no threads for them. */
static unsigned step_engines(struct emu_room *r)
{
	unsigned work = 0;

	for (unsigned i = 0; i < r->n_hosts; i++)
		if (r->host[i].n_of_kind[SIO_KIND_DMA])
			work += emu_engines_step(&r->host[i]);
	emu_room_engines_collect(r);
	return work;
}

unsigned emu_room_step(struct emu_room *r, unsigned budget)
{
	unsigned work = 0;

	for (unsigned i = 0; i < r->n_devices; i++) {
		struct emu_device *d = r->device[i];

		if (d->host->up && !emu_device_is_out(d))
			work += d->model->step(d->state, budget);
	}
	if (r->stores)
		work += emu_stores_step(r);
	return work + (r->ops->engine_start ? 0 : step_engines(r));
}

void emu_room_check_every(struct emu_room *r, uint32_t n)
{
	r->check_mask = n - 1;
}

bool emu_room_busy(const struct emu_room *r)
{
	for (unsigned i = 0; i < r->n_devices; i++) {
		struct emu_device *d = r->device[i];

		if (d->host->up && !emu_device_is_out(d) && !d->model->idle(d->state))
			return true;
	}
	return false;
}

bool emu_room_watched(const struct emu_room *r)
{
	return r->writable_views != 0 || r->stores;
}

int emu_room_prepare(struct emu_room *r, const struct sio_topology *next, bool try,
		     struct emu_change **ret, struct sio_err *reterr)
{
	int rc;

	stop_engines(r);
	rc = emu_change_new(r, next, try, ret, reterr);
	run_engines(r);
	return rc;
}

void emu_room_drop(struct emu_room *r, struct emu_change *c)
{
	if (!c)
		return;
	stop_engines(r);
	emu_change_drop(r, c);
	run_engines(r);
}

int emu_room_commit(struct emu_room *r, struct sio_topology *own, struct sio_topology *next,
		    struct emu_change *c, struct sio_err *reterr)
{
	int rc;

	for (unsigned i = 0; i < r->n_hosts; i++)
		if (r->host[i].up && emu_change_removes(c, i))
			emu_room_host_down(r, i);
	stop_engines(r);
	rc = emu_change_apply(r, own, next, c, reterr);
	run_engines(r);
	return rc;
}

/* ---- requests and owners ---- */

void emu_room_request(struct emu_room *r, unsigned host, const void *req, size_t len, int *fds,
		      unsigned n_fds)
{
	stop_engines(r);
	emu_request_serve(&r->host[host], req, len, fds, n_fds);
	run_engines(r);
}

void emu_room_owner_hup(struct emu_room *r, unsigned host, uint64_t owner)
{
	stop_engines(r);
	emu_owner_hup(&r->host[host], owner);
	run_engines(r);
}

void emu_room_each(struct emu_room *r, unsigned host,
		   void (*fn)(void *arg, const struct sio_list_entry *e), void *arg)
{
	struct emu_object *o, *tmp;
	struct sio_list_entry e;

	HASH_ITER (hh, r->host[host].objects, o, tmp) {
		emu_object_row(o, &e);
		fn(arg, &e);
	}
}

/* ---- slots ---- */

int emu_room_device(struct emu_room *r, unsigned host, unsigned device, bool in)
{
	struct sio_err err = {0};
	struct emu_device *d;
	int rc;

	if (host >= r->n_hosts || device >= r->host[host].n_devices)
		return -ENODEV;
	d = r->host[host].device[device];
	stop_engines(r);
	rc = emu_slot_set(d, in, &err);
	run_engines(r);
	if (rc < 0 && rc != -EALREADY)
		emu_log(r, "%s cannot be %s: %s", d->topo->name, in ? "put back" : "pulled out",
			err.text);
	return rc;
}

int emu_room_functions(struct emu_room *r, unsigned host, unsigned device, unsigned n,
		       struct sio_err *reterr)
{
	int rc;

	if (host >= r->n_hosts || device >= r->host[host].n_devices)
		return sio_fail(reterr, -ENODEV, "no such device");
	stop_engines(r);
	rc = emu_config_enable(r->host[host].device[device], n, reterr);
	run_engines(r);
	return rc;
}

int emu_room_fault(struct emu_room *r, unsigned host, unsigned device,
		   const struct emu_dev_fault *f, struct sio_err *reterr)
{
	struct emu_device *d;

	if (host >= r->n_hosts || device >= r->host[host].n_devices)
		return sio_fail(reterr, -ENODEV, "no such device");
	d = r->host[host].device[device];
	if (!d->model->fault)
		return sio_fail(
			reterr, -EOPNOTSUPP,
			"%s: no faults can be injected into devices of type '%s', only into "
			"drives",
			d->topo->name, d->model->type);
	return d->model->fault(d->state, f, reterr);
}

/* ---- sleeping ---- */

bool emu_room_naps(struct emu_room *r)
{
	return r->stores || emu_watches_nap(r);
}

void emu_room_doze(struct emu_room *r, bool asleep)
{
	emu_watches_doze(r, asleep);
}

void emu_room_watch_fired(struct emu_room *r, unsigned host, uint64_t watch)
{
	emu_watch_fired(&r->host[host], watch);
}

void emu_room_watch_broken(struct emu_room *r, unsigned host, uint64_t watch)
{
	emu_watch_broken(&r->host[host], watch);
}

void emu_room_rested(struct emu_room *r, bool nap)
{
	if (nap)
		r->n_naps++;
	else
		r->n_sleeps++;
}

/* ---- engines beside the room ---- */

unsigned emu_room_engine_step(struct emu_room *r, unsigned host)
{
	return emu_engines_step(&r->host[host]);
}

uint64_t emu_room_engine_due(const struct emu_room *r, unsigned host)
{
	return emu_engines_due(&r->host[host]);
}

void emu_room_engine_doze(struct emu_room *r, unsigned host, bool asleep)
{
	emu_engines_doze(&r->host[host], asleep);
}

void emu_room_engines_collect(struct emu_room *r)
{
	stop_engines(r);
	emu_engines_collect(r);
	run_engines(r);
}
