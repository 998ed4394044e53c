/* SPDX-License-Identifier: BSD-2-Clause */
/* The cluster drawn with characters: switches, links, hosts and their devices. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "view/picture.h"
#include "base/local.h"
#include "base/output.h"

struct picture {
	FILE *out;
	const struct sio_topology *t;
	const struct tool_view *v;
	int name_width;
	bool drawn[SIO_MAX_HOSTS];
};

/* The state is the lender's, which knows its device best. */
static const char *device_note(const struct tool_view_device *d, char *text, size_t size)
{
	uint32_t n = sio_from_le32(d->info.borrowers);

	if (d->state == TOOL_DEVICE_FREE)
		return "not lent";
	if (d->state == TOOL_DEVICE_OUT)
		return "OUT of its slot";
	if (d->state == TOOL_DEVICE_HOST_DOWN)
		return "its host is DOWN";
	if (d->state == TOOL_DEVICE_UNKNOWN)
		return "state unknown";
	snprintf(text, size, "lent %u time%s%s", n, n == 1 ? "" : "s",
		 d->state == TOOL_DEVICE_EXCLUSIVE ? ", exclusively" : "");
	return text;
}

/* Of a real drive its manager alone knows these. */
static const char *device_size(const struct sio_topo_device *d, char text[TOOL_SIZE_TEXT + 32])
{
	char size[TOOL_SIZE_TEXT];

	*text = '\0';
	if (d->size)
		snprintf(text, TOOL_SIZE_TEXT + 32, ", %s, %u queue pairs",
			 tool_size(d->size, size), d->queue_pairs);
	return text;
}

static void draw_devices(const struct picture *p, const struct tool_view_host *h, const char *stem)
{
	char size[TOOL_SIZE_TEXT + 32], note[80];

	for (unsigned i = 0; i < h->topo->n_devices; i++) {
		const struct sio_topo_device *d = h->device[i].topo;

		const char *physical = tool_physical_function(h, &h->device[i]);

		fprintf(p->out, "%s%*s  `-- %s: %s%s%s, id %#x, %s\n", stem, p->name_width, "",
			d->name, physical ? "function of " : "", physical ? physical : d->type,
			device_size(d, size), d->fdid,
			device_note(&h->device[i], note, sizeof(note)));
	}
}

/* The state of one adapter's link and its host: the worst of both, in capitals. */
static const char *state_words(const struct tool_view_host *h, unsigned adapter)
{
	if (h->host->state == TOOL_HOST_DOWN)
		return "host DOWN";
	if (h->host->state == TOOL_HOST_SILENT)
		return "host gives NO ANSWER";
	return h->adapter[adapter].link == TOOL_LINK_UP ? "up" : "link DOWN";
}

/* A machine that is off is no trouble: it is started by whoever wants it. */
static const char *machine_words(const struct tool_view_machine *m, unsigned adapter)
{
	if (!m->known)
		return "state unknown";
	if (!m->up)
		return "off";
	return tool_machine_link(m, adapter) == TOOL_LINK_UP ? "up" : "link DOWN";
}

static void draw_machine(const struct picture *p, const struct tool_view_machine *m,
			 unsigned adapter, const char *branch)
{
	const struct sio_topo_adapter *a = &m->topo->adapter[adapter];
	char window[TOOL_SIZE_TEXT];

	fprintf(p->out,
		"%s%-*s  node %-3u  adapter %u of a machine, %s window %s in %u entries, %s\n",
		branch, p->name_width, m->topo->name, m->topo->node, adapter,
		m->topo->mapped ? "mapped" : "exact", tool_size(a->window_size, window),
		a->lut_entries, machine_words(m, adapter));
}

static void draw_host(struct picture *p, unsigned index, unsigned adapter, const char *branch,
		      const char *stem)
{
	const struct sio_topo_host *h = &p->t->host[index];
	const struct tool_view_host *view;
	const struct sio_topo_adapter *a = &h->adapter[adapter];
	char ram[TOOL_SIZE_TEXT], window[TOOL_SIZE_TEXT];

	if (index >= p->v->n) {
		draw_machine(p, &p->v->machine[index - p->v->n], adapter, branch);
		return;
	}
	view = &p->v->host[index];
	fprintf(p->out, "%s%-*s  node %-3u", branch, p->name_width, h->name, h->node);
	if (h->n_adapters > 1)
		fprintf(p->out, "  adapter %u", adapter);
	if (p->drawn[index]) {
		fprintf(p->out, "  (drawn above), %s\n", state_words(view, adapter));
		return;
	}
	p->drawn[index] = true;
	fprintf(p->out,
		"  RAM %s at %#" PRIx64 ", IOMMU %s, NTB x%u gen %u, window %s in %u entries, %s\n",
		tool_size(h->ram_size, ram), h->ram_base, h->iommu ? "on" : "off", a->link_width,
		a->link_generation, tool_size(a->window_size, window), a->lut_entries,
		state_words(view, adapter));
	draw_devices(p, view, stem);
}

/* Draws a switch and its adapters; the adapters of the last switch are drawn without a stem. */
static void draw_switch(struct picture *p, unsigned index)
{
	const struct sio_topology *t = p->t;
	unsigned left = 0;

	for (unsigned i = 0; i < t->n_hosts + t->n_machines; i++)
		for (unsigned a = 0; a < t->host[i].n_adapters; a++)
			left += t->host[i].adapter[a].attach == SIO_ATTACH_SWITCH &&
				t->host[i].adapter[a].attach_index == index;
	fprintf(p->out, "  [%s]%s", t->sw[index].name,
		p->v->outage && !sio_outage_switch_in(p->v->outage, index) ? " DOWN" : "");
	for (unsigned i = 0; i < t->n_trunks; i++) {
		const struct sio_topo_trunk *l = &t->trunk[i];

		if (l->sw[0] == index || l->sw[1] == index)
			fprintf(p->out, "  x%u gen %u to [%s]%s", l->link_width, l->link_generation,
				t->sw[l->sw[l->sw[0] == index]].name,
				tool_trunk_is_down(p->v, i) ? " DOWN" : "");
	}
	fprintf(p->out, "\n");
	for (unsigned i = 0; i < t->n_hosts + t->n_machines; i++) {
		for (unsigned a = 0; a < t->host[i].n_adapters; a++) {
			const struct sio_topo_adapter *ad = &t->host[i].adapter[a];

			if (ad->attach != SIO_ATTACH_SWITCH || ad->attach_index != index)
				continue;
			left--;
			draw_host(p, i, a, left ? "   |-- " : "   `-- ",
				  left ? "   |   " : "       ");
		}
	}
}

static void draw_link(struct picture *p, unsigned index)
{
	const struct sio_topology *t = p->t;
	bool first = true;

	for (unsigned i = 0; i < t->n_hosts + t->n_machines; i++) {
		for (unsigned a = 0; a < t->host[i].n_adapters; a++) {
			const struct sio_topo_adapter *ad = &t->host[i].adapter[a];

			if (ad->attach != SIO_ATTACH_LINK || ad->attach_index != index)
				continue;
			draw_host(p, i, a, first ? "   ,-- " : "   `-- ",
				  first ? "   |   " : "       ");
			first = false;
		}
	}
}

/* No file on a real host says what its cables lead to. */
static const char *place_of(const struct picture *p, const struct tool_view_host *h)
{
	bool real = strcmp(p->v->hosts->dir, TOOL_LOCAL_STATE) == 0;

	return !real ? "joined to nothing" : h->host->up ? "this machine" : "another machine";
}

static void draw_alone(struct picture *p)
{
	for (unsigned i = 0; i < p->t->n_hosts; i++) {
		const struct sio_topo_host *h = &p->t->host[i];

		if (p->drawn[i])
			continue;
		fprintf(p->out, "   %-*s  node %-3u  %s, %s\n", p->name_width, h->name, h->node,
			place_of(p, &p->v->host[i]),
			p->v->host[i].host->state == TOOL_HOST_DOWN	? "DOWN"
			: p->v->host[i].host->state == TOOL_HOST_SILENT ? "NO ANSWER"
									: "up");
		draw_devices(p, &p->v->host[i], "   ");
	}
}

int tool_picture(FILE *out, const struct tool_view *v)
{
	const struct sio_topology *t = v->topology;
	struct picture p = {.out = out, .t = t, .v = v};

	if (!v->room)
		fprintf(out, "  the machine room is DOWN\n");
	for (unsigned i = 0; i < t->n_hosts + t->n_machines; i++) {
		int n = (int)strlen(t->host[i].name);

		if (n > p.name_width)
			p.name_width = n;
	}
	for (unsigned i = 0; i < t->n_switches; i++)
		draw_switch(&p, i);
	for (unsigned i = 0; i < t->n_links; i++)
		draw_link(&p, i);
	draw_alone(&p);
	return ferror(out) ? -EIO : 0;
}
