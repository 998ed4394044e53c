/* SPDX-License-Identifier: BSD-2-Clause */
/* The cluster switches and the links between them, as the file lists them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/timing.h"
#include "topofile/draft.h"
#include "topofile/value.h"

int sio_draft_find_switch(const struct sio_topology *t, const char *name)
{
	for (unsigned i = 0; i < t->n_switches; i++) {
		if (strcmp(t->sw[i].name, name) == 0)
			return (int)i;
	}
	return -1;
}

bool sio_draft_parse_end(struct sio_spot at, unsigned most, char name[SIO_NAME_LEN], int *ret)
{
	const char *text = sio_source_text(at.value);
	const char *dot = text ? strchr(text, '.') : NULL;
	size_t len = text ? (dot ? (size_t)(dot - text) : strlen(text)) : 0;
	uint64_t index = 0;

	if (len == 0 || len >= SIO_NAME_LEN ||
	    (dot && (!sio_value_digits(dot + 1, strlen(dot + 1), &index) || index >= most)))
		return false;
	memcpy(name, text, len);
	name[len] = '\0';
	*ret = dot ? (int)index : -1;
	return true;
}

/* ---- switches ---- */

enum { SWITCH_NAME, SWITCH_PORTS, SWITCH_LANES, SWITCH_LATENCY, SWITCH_FIELDS };
static const struct sio_field switch_field[SWITCH_FIELDS] = {
	[SWITCH_NAME] = {.name = "name",
			 .kind = SIO_VALUE_NAME,
			 .offset = offsetof(struct sio_topo_switch, name)},
	[SWITCH_PORTS] = {.name = "ports",
			  .kind = SIO_VALUE_NUMBER,
			  .offset = offsetof(struct sio_topo_switch, ports),
			  .min = 1,
			  .max = SIO_DRAFT_PORTS},
	[SWITCH_LANES] = {.name = "lanes",
			  .kind = SIO_VALUE_NUMBER,
			  .offset = offsetof(struct sio_topo_switch, lanes),
			  .min = 1,
			  .max = 16,
			  .step = SIO_VALUE_POWER},
	[SWITCH_LATENCY] = {.name = "latency",
			    .kind = SIO_VALUE_NUMBER,
			    .offset = offsetof(struct sio_topo_switch, latency),
			    .max = SIO_DRAFT_LATENCY},
};

/* A name alone, or a mapping that has it. */
static int read_switch(struct sio_draft *d, struct sio_spot at, struct sio_topo_switch *sw)
{
	struct sio_spot spot[SWITCH_FIELDS];
	struct sio_source *s = d->source;
	int rc;

	sw->lanes = 16;
	sw->latency = SIO_TIMING_SWITCH_NS;
	if (at.value->type != YAML_MAPPING_NODE)
		return sio_value_name(s, at, sw->name);
	rc = sio_value_map(s, at, switch_field, SWITCH_FIELDS, sw, spot);
	if (rc < 0)
		return rc;
	if (!spot[SWITCH_NAME].value) {
		sio_source_enter(s, "name", 0);
		return sio_source_fail(s, sio_source_missing(at),
				       "missing; a name such as sw0 is right");
	}
	if (spot[SWITCH_LANES].value && !spot[SWITCH_PORTS].value) {
		sio_source_enter(s, "lanes", 0);
		return sio_source_fail(s, sio_source_key(spot[SWITCH_LANES]),
				       "of each port, and the switch has no 'ports'; both, or "
				       "none, is right");
	}
	return 0;
}

int sio_draft_read_switches(struct sio_draft *d, struct sio_spot at)
{
	struct sio_source *s = d->source;
	size_t mark = sio_source_enter(s, "switches", 0);
	yaml_node_item_t *start, *top;

	if (at.value->type != YAML_SEQUENCE_NODE)
		return sio_source_fail(s, at, "not a list; one such as [sw0] is right");
	start = at.value->data.sequence.items.start;
	top = at.value->data.sequence.items.top;
	if (top - start > SIO_MAX_SWITCHES)
		return sio_source_fail(s, at, "%td switches; at most %d is right", top - start,
				       SIO_MAX_SWITCHES);
	d->t->sw = calloc((size_t)(top - start) + 1, sizeof(*d->t->sw));
	if (!d->t->sw)
		return sio_source_no_memory(s);
	for (yaml_node_item_t *i = start; i < top; i++) {
		struct sio_spot item = sio_source_inside(at, NULL, sio_source_node(s, *i));
		size_t list = sio_source_enter(s, NULL, d->t->n_switches);
		struct sio_topo_switch *sw = &d->t->sw[d->t->n_switches];
		int rc = read_switch(d, item, sw);

		if (rc < 0)
			return rc;
		if (sio_draft_find_switch(d->t, sw->name) >= 0)
			return sio_source_fail(s, item, "given twice; once is right");
		d->t->n_switches++;
		sio_source_leave(s, list);
	}
	sio_source_leave(s, mark);
	return 0;
}

/* ---- links ---- */

enum { LINK_FROM, LINK_TO, LINK_WIDTH, LINK_GENERATION, LINK_FIELDS };
static const struct sio_field link_field[LINK_FIELDS] = {
	[LINK_FROM] = {.name = "from", .kind = SIO_VALUE_NODE},
	[LINK_TO] = {.name = "to", .kind = SIO_VALUE_NODE},
	[LINK_WIDTH] = {.name = "width",
			.kind = SIO_VALUE_NUMBER,
			.offset = offsetof(struct sio_topo_trunk, link_width),
			.min = 1,
			.max = 16,
			.step = SIO_VALUE_POWER},
	[LINK_GENERATION] = {.name = "generation",
			     .kind = SIO_VALUE_NUMBER,
			     .offset = offsetof(struct sio_topo_trunk, link_generation),
			     .min = 1,
			     .max = 6},
};

/* One end of a link: the name of a switch, or SWITCH.PORT. */
static int read_end(struct sio_draft *d, struct sio_topo_trunk *trunk,
		    struct sio_draft_trunk *draft, unsigned end)
{
	struct sio_source *s = d->source;
	size_t mark = sio_source_enter(s, link_field[end].name, 0);
	struct sio_spot at = draft->end_at[end];
	char name[SIO_NAME_LEN];
	int sw;

	if (!at.value)
		return sio_source_fail(s, sio_source_missing(draft->at),
				       "missing; the name of a switch is right");
	if (!sio_draft_parse_end(at, SIO_DRAFT_PORTS, name, &draft->port[end]))
		return sio_source_fail(s, at,
				       "not an end of a link; a switch, or SWITCH.PORT, is right");
	sw = sio_draft_find_switch(d->t, name);
	if (sw < 0)
		return sio_source_fail(s, at,
				       "no switch has this name; one of 'switches' is right (a "
				       "host's adapter says itself where it leads)");
	if (draft->port[end] >= 0 && d->t->sw[sw].ports == 0)
		return sio_source_fail(s, at,
				       "the switch has no numbered ports; its name alone is right");
	trunk->sw[end] = (unsigned)sw;
	sio_source_leave(s, mark);
	return 0;
}

static int read_link(struct sio_draft *d, struct sio_spot at)
{
	struct sio_topo_trunk *trunk = &d->t->trunk[d->t->n_trunks];
	struct sio_draft_trunk *draft = &d->trunk[d->t->n_trunks];
	struct sio_spot spot[LINK_FIELDS];
	int rc;

	*trunk = (struct sio_topo_trunk){.link_width = 8, .link_generation = 3};
	rc = sio_value_map(d->source, at, link_field, LINK_FIELDS, trunk, spot);
	if (rc < 0)
		return rc;
	*draft = (struct sio_draft_trunk){.at = at, .end_at = {spot[LINK_FROM], spot[LINK_TO]}};
	rc = read_end(d, trunk, draft, 0);
	if (rc == 0)
		rc = read_end(d, trunk, draft, 1);
	if (rc == 0 && trunk->sw[0] == trunk->sw[1]) {
		sio_source_enter(d->source, "to", 0);
		return sio_source_fail(d->source, draft->end_at[1],
				       "the switch where the link begins; another one is right");
	}
	if (rc == 0)
		d->t->n_trunks++;
	return rc;
}

int sio_draft_read_links(struct sio_draft *d, struct sio_spot at)
{
	struct sio_source *s = d->source;
	size_t mark = sio_source_enter(s, "links", 0);
	yaml_node_item_t *start, *top;

	if (at.value->type != YAML_SEQUENCE_NODE)
		return sio_source_fail(s, at,
				       "not a list; one such as [{ from: sw0, to: sw1 }] is right");
	start = at.value->data.sequence.items.start;
	top = at.value->data.sequence.items.top;
	if (top - start > SIO_MAX_TRUNKS)
		return sio_source_fail(s, at, "%td links; at most %d is right", top - start,
				       SIO_MAX_TRUNKS);
	d->t->trunk = calloc((size_t)(top - start) + 1, sizeof(*d->t->trunk));
	d->trunk = calloc((size_t)(top - start) + 1, sizeof(*d->trunk));
	if (!d->t->trunk || !d->trunk)
		return sio_source_no_memory(s);
	for (yaml_node_item_t *i = start; i < top; i++) {
		struct sio_spot item = sio_source_inside(at, NULL, sio_source_node(s, *i));
		size_t list = sio_source_enter(s, NULL, d->t->n_trunks);
		int rc = read_link(d, item);

		if (rc < 0)
			return rc;
		sio_source_leave(s, list);
	}
	sio_source_leave(s, mark);
	return 0;
}
