/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/output.h"
#include "view/sample.h"
#include "view/view_machine.h"

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static struct tool_counted *add(struct tool_sample *s, const struct tool_view_host *h,
				enum tool_counters kind)
{
	struct tool_counted *t;

	s->thing = tool_grow(s->thing, s->n + 1, sizeof(*s->thing));
	t = &s->thing[s->n++];
	*t = (struct tool_counted){
		.kind = kind, .node = h->topo->node, .state = tool_host_state_name(h->host->state)};
	t->start.generation = h->host->client.boot_generation;
	memcpy(t->start.boot_id, h->host->client.boot_id, sizeof(t->start.boot_id));
	snprintf(t->name, sizeof(t->name), "%s", h->topo->name);
	snprintf(t->host, sizeof(t->host), "%s", h->topo->name);
	t->presence = h->host->answers			 ? TOOL_PRESENT
		      : h->host->state == TOOL_HOST_DOWN ? TOOL_ABSENT
							 : TOOL_PRESENCE_UNKNOWN;
	return t;
}

static void keep(struct tool_counted *t, const struct sio_rep_stats *rep)
{
	const unsigned room = sizeof(rep->counter) / sizeof(rep->counter[0]);
	unsigned n = sio_from_le32(rep->count);

	n = n < room ? n : room;
	t->known = true;
	t->at = now_ns();
	t->counter = tool_alloc(n, sizeof(*t->counter));
	for (unsigned i = 0; i < n; i++) {
		snprintf(t->counter[i].name, sizeof(t->counter[i].name), "%.32s",
			 rep->counter[i].name);
		t->counter[i].value = sio_from_le64(rep->counter[i].value);
	}
	t->n_counters = n;
}

static int ask(struct tool_view *v, struct tool_view_host *h, struct tool_counted *t,
	       struct sio_err *reterr)
{
	struct sio_rep_stats rep;
	struct sio_err err;

	if (!h->host->answers)
		return 0;
	if (tool_host_counters(h->host, t->kind, t->id, &rep, &err) == 0) {
		keep(t, &rep);
		return 0;
	}
	/* A device that has been pulled out meanwhile is not an error either. */
	if (err.code == -ENODEV || tool_host_lost(v->hosts, h->host, &err))
		return 0;
	*reterr = err;
	return err.code;
}

static int ask_adapter(struct tool_sample *s, struct tool_view *v, struct tool_view_host *h,
		       unsigned index, struct sio_err *reterr)
{
	struct tool_counted *t = add(s, h, TOOL_COUNTERS_ADAPTER);
	enum tool_link_state link = h->adapter[index].link;

	snprintf(t->name, sizeof(t->name), "%s.%u", h->topo->name, index);
	t->id = index;
	t->state = tool_link_state_name(link);
	t->presence = link == TOOL_LINK_UP     ? TOOL_PRESENT
		      : link == TOOL_LINK_DOWN ? TOOL_ABSENT
					       : TOOL_PRESENCE_UNKNOWN;
	return ask(v, h, t, reterr);
}

static int ask_device(struct tool_sample *s, struct tool_view *v, struct tool_view_host *h,
		      const struct tool_view_device *d, struct sio_err *reterr)
{
	struct tool_counted *t = add(s, h, TOOL_COUNTERS_DEVICE);

	snprintf(t->name, sizeof(t->name), "%s", d->topo->name);
	snprintf(t->type, sizeof(t->type), "%s", d->topo->type);
	t->id = d->topo->fdid;
	t->state = tool_device_state_name(d->state);
	t->presence = TOOL_PRESENCE_UNKNOWN;
	if (d->state == TOOL_DEVICE_OUT || d->state == TOOL_DEVICE_HOST_DOWN)
		t->presence = TOOL_ABSENT;
	if (tool_device_is_in(d)) {
		t->presence = TOOL_PRESENT;
		t->borrowers = sio_from_le32(d->info.borrowers);
		t->quarantined = sio_from_le32(d->info.quarantined);
		t->exclusive = sio_from_le32(d->info.exclusive);
	}
	return ask(v, h, t, reterr);
}

static int ask_engine(struct tool_sample *s, struct tool_view *v, struct tool_view_host *h,
		      unsigned index, struct sio_err *reterr)
{
	const struct tool_view_adapter *a = &h->adapter[index];
	struct tool_counted *t;

	if (a->link == TOOL_LINK_UNKNOWN || !(sio_from_le32(a->info.flags) & SIO_ADAPTER_DMA))
		return 0;
	t = add(s, h, TOOL_COUNTERS_ENGINE);
	snprintf(t->name, sizeof(t->name), "%s.%u", h->topo->name, index);
	t->id = index;
	return ask(v, h, t, reterr);
}

static int ask_chassis(struct tool_sample *s, struct tool_view *v, struct tool_view_host *h,
		       unsigned index, struct sio_err *reterr)
{
	struct tool_counted *t = add(s, h, TOOL_COUNTERS_CHASSIS);

	snprintf(t->name, sizeof(t->name), "%s/%s", h->topo->name, h->topo->chassis[index].name);
	t->id = index;
	return ask(v, h, t, reterr);
}

/* Every host's port reports them, so any one is asked. */
static int ask_trunks(struct tool_sample *s, struct tool_view *v, struct sio_err *reterr)
{
	struct tool_view_host *h = v->host;
	int r = 0;

	while (h < v->host + v->n && !h->host->answers)
		h++;
	if (h == v->host + v->n)
		return 0;
	for (unsigned i = 0; r == 0 && i < s->n_trunks; i++) {
		struct tool_counted *t = add(s, h, TOOL_COUNTERS_TRUNK);

		snprintf(t->name, sizeof(t->name), "%s-%s", s->trunk[i].from, s->trunk[i].to);
		t->host[0] = '\0';
		t->node = 0;
		t->id = i;
		t->state = tool_link_state_name(s->trunk[i].up ? TOOL_LINK_UP : TOOL_LINK_DOWN);
		t->presence = s->trunk[i].up ? TOOL_PRESENT : TOOL_ABSENT;
		r = ask(v, h, t, reterr);
	}
	return r;
}

/* ---- who borrows ---- */

static void add_borrower(struct tool_counted *t, const struct tool_view *v, uint32_t node)
{
	const struct sio_topo_host *host = sio_topology_host(v->topology, node);
	char name[SIO_NAME_LEN];

	if (host)
		snprintf(name, sizeof(name), "%s", host->name);
	else
		snprintf(name, sizeof(name), "node %u", node);
	for (unsigned i = 0; i < t->n_by; i++) {
		if (strcmp(t->by[i].host, name) != 0)
			continue;
		t->by[i].n++;
		return;
	}
	t->by = tool_grow(t->by, t->n_by + 1, sizeof(*t->by));
	t->by[t->n_by] = (struct tool_borrower){.n = 1};
	memcpy(t->by[t->n_by++].host, name, sizeof(name));
}

/* @first: index in @s of this host's first device. */
static int ask_borrowers(struct tool_sample *s, unsigned first, struct tool_view *v,
			 struct tool_view_host *h, struct sio_err *reterr)
{
	struct sio_wire_row *row;
	struct sio_err err;
	size_t n;

	if (!h->host->answers || h->topo->n_devices == 0)
		return 0;
	if (tool_client_list(&h->host->client, SIO_LIST_BORROWS, &row, &n, &err) < 0) {
		if (tool_host_lost(v->hosts, h->host, &err))
			return 0;
		*reterr = err;
		return err.code;
	}
	for (size_t i = 0; i < n; i++) {
		if (!(sio_from_le32(row[i].flags) & SIO_ROW_LIVE))
			continue;
		for (unsigned k = first; k < s->n; k++)
			if (s->thing[k].kind == TOOL_COUNTERS_DEVICE &&
			    s->thing[k].id == sio_from_le32(row[i].id))
				add_borrower(&s->thing[k], v, sio_from_le32(row[i].node));
	}
	free(row);
	return 0;
}

/* ---- all of it ---- */

static int ask_host(struct tool_sample *s, struct tool_view *v, struct tool_view_host *h,
		    unsigned flags, struct sio_err *reterr)
{
	unsigned first = s->n;
	int r = ask(v, h, add(s, h, TOOL_COUNTERS_DAEMON), reterr);

	if (r == 0)
		r = ask(v, h, add(s, h, TOOL_COUNTERS_HOST), reterr);
	for (unsigned i = 0; r == 0 && i < h->topo->n_adapters; i++)
		r = ask_adapter(s, v, h, i, reterr);
	for (unsigned i = 0; r == 0 && i < h->topo->n_devices; i++)
		r = ask_device(s, v, h, &h->device[i], reterr);
	if (r == 0 && flags & TOOL_SAMPLE_BORROWERS)
		r = ask_borrowers(s, first, v, h, reterr);
	for (unsigned i = 0; r == 0 && flags & TOOL_SAMPLE_ENGINES && i < h->topo->n_adapters; i++)
		r = ask_engine(s, v, h, i, reterr);
	for (unsigned i = 0; r == 0 && flags & TOOL_SAMPLE_LINKS && i < h->topo->n_chassis; i++)
		r = ask_chassis(s, v, h, i, reterr);
	return r;
}

/* ---- machines ---- */

static struct tool_counted *add_machine(struct tool_sample *s, const struct tool_view_machine *m,
					enum tool_counters kind, const char *state, bool present)
{
	struct tool_counted *t;

	s->thing = tool_grow(s->thing, s->n + 1, sizeof(*s->thing));
	t = &s->thing[s->n++];
	*t = (struct tool_counted){.kind = kind,
				   .machine = true,
				   .node = m->topo->node,
				   .state = state,
				   .known = m->known,
				   .at = m->at,
				   .presence = !m->known ? TOOL_PRESENCE_UNKNOWN
					       : present ? TOOL_PRESENT
							 : TOOL_ABSENT};
	snprintf(t->name, sizeof(t->name), "%s", m->topo->name);
	snprintf(t->host, sizeof(t->host), "%s", m->topo->name);
	return t;
}

static void keep_part(struct tool_counted *t, const struct tool_room_part *p)
{
	t->counter = tool_alloc(p->n, sizeof(*t->counter));
	t->n_counters = p->n;
	memcpy(t->counter, p->counter, p->n * sizeof(*t->counter));
}

static void keep_faults(struct tool_counted *t, const struct tool_view_machine *m)
{
	struct tool_room_part all = {.n = 1, .counter = {{.name = "faults"}}};
	uint64_t value;

	for (unsigned i = 0; i < m->topo->n_adapters; i++)
		if (tool_room_value(&m->adapter[i], "faults", &value))
			all.counter[0].value += value;
	keep_part(t, &all);
}

/* It is all in the view: the machine room has said it at once. */
static void take_machine(struct tool_sample *s, const struct tool_view_machine *m)
{
	struct tool_counted *t =
		add_machine(s, m, TOOL_COUNTERS_MACHINE, tool_machine_name_of_state(m), m->up);

	if (m->known)
		keep_faults(t, m);
	for (unsigned i = 0; i < m->topo->n_adapters; i++) {
		t = add_machine(s, m, TOOL_COUNTERS_ADAPTER,
				tool_link_state_name(tool_machine_link(m, i)),
				m->adapter[i].linked);
		snprintf(t->name, sizeof(t->name), "%s.%u", m->topo->name, i);
		t->id = i;
		t->attached = m->adapter[i].attached;
		t->uncounted = m->known && !m->adapter[i].counted;
		keep_part(t, &m->adapter[i]);
	}
	for (unsigned i = 0; i < m->topo->n_devices; i++) {
		t = add_machine(s, m, TOOL_COUNTERS_DEVICE, tool_machine_device_state(m, i),
				m->device[i].attached);
		snprintf(t->name, sizeof(t->name), "%s", m->topo->device[i].name);
		snprintf(t->type, sizeof(t->type), "%s", m->topo->device[i].type);
		t->id = m->topo->device[i].fdid;
		t->attached = m->device[i].attached;
		keep_part(t, &m->device[i]);
	}
}

static void add_trunks(struct tool_sample *s, const struct tool_view *v)
{
	const struct sio_topology *t = v->topology;

	s->n_trunks = v->room ? t->n_trunks : 0;
	s->trunk = tool_alloc(s->n_trunks, sizeof(*s->trunk));
	for (unsigned i = 0; i < s->n_trunks; i++) {
		struct tool_sampled_trunk *x = &s->trunk[i];

		snprintf(x->from, sizeof(x->from), "%s", t->sw[t->trunk[i].sw[0]].name);
		snprintf(x->to, sizeof(x->to), "%s", t->sw[t->trunk[i].sw[1]].name);
		x->up = !tool_trunk_is_down(v, i);
	}
}

int tool_sample_take(struct tool_view *v, const struct sio_topo_host *only, unsigned flags,
		     struct tool_sample **ret, struct sio_err *reterr)
{
	struct tool_sample *s = tool_alloc(1, sizeof(*s));
	int r = 0;

	snprintf(s->cluster, sizeof(s->cluster), "%s", v->topology->name);
	add_trunks(s, v);
	for (unsigned i = 0; r == 0 && i < v->n; i++)
		if (!only || v->host[i].topo == only)
			r = ask_host(s, v, &v->host[i], flags, reterr);
	for (unsigned i = 0; r == 0 && i < v->n_machines; i++)
		if (!only || v->machine[i].topo == only)
			take_machine(s, &v->machine[i]);
	if (r == 0 && !only && flags & TOOL_SAMPLE_LINKS)
		r = ask_trunks(s, v, reterr);
	if (r < 0) {
		tool_sample_free(s);
		return r;
	}
	*ret = s;
	return 0;
}
