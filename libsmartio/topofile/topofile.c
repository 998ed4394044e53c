/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a topology file as a whole: YAML, the top-level keys, hosts, and what follows from all of
 * them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smartio/vntb.h"
#include "topofile/draft.h"
#include "topofile/topofile.h"
#include "topofile/value.h"

#define LARGEST_FILE (256u << 10)
#define DEEPEST 32 /* mappings and lists within each other */

enum {
	KEY_CLUSTER,
	KEY_HOSTS,
	KEY_SWITCHES,
	KEY_PAYLOAD,
	KEY_REQUEST,
	KEY_BOUNDARY,
	KEY_MULTICAST,
	KEY_LINKS,
	KEY_APART,
	KEY_ACCESS,
	KEY_QUOTAS,
	KEYS
};
static const struct sio_field root_field[KEYS] = {
	[KEY_CLUSTER] = {.name = "cluster",
			 .kind = SIO_VALUE_NAME,
			 .offset = offsetof(struct sio_topology, name)},
	[KEY_HOSTS] = {.name = "hosts", .kind = SIO_VALUE_NODE},
	[KEY_SWITCHES] = {.name = "switches", .kind = SIO_VALUE_NODE},
	[KEY_PAYLOAD] = {.name = "payload",
			 .kind = SIO_VALUE_NUMBER,
			 .offset = offsetof(struct sio_topology, max_payload),
			 .min = 128,
			 .max = 4096,
			 .step = SIO_VALUE_POWER},
	[KEY_REQUEST] = {.name = "read_request",
			 .kind = SIO_VALUE_NUMBER,
			 .offset = offsetof(struct sio_topology, max_read_request),
			 .min = 128,
			 .max = 4096,
			 .step = SIO_VALUE_POWER},
	[KEY_BOUNDARY] = {.name = "completion_boundary",
			  .kind = SIO_VALUE_NUMBER,
			  .offset = offsetof(struct sio_topology, read_completion_boundary),
			  .min = 64,
			  .max = 128,
			  .step = SIO_VALUE_POWER},
	[KEY_MULTICAST] = {.name = "multicast", .kind = SIO_VALUE_NODE},
	[KEY_LINKS] = {.name = "links", .kind = SIO_VALUE_NODE},
	[KEY_APART] = {.name = "apart",
		       .kind = SIO_VALUE_FLAG,
		       .offset = offsetof(struct sio_topology, apart)},
	[KEY_ACCESS] = {.name = "access", .kind = SIO_VALUE_NODE},
	[KEY_QUOTAS] = {.name = "quotas", .kind = SIO_VALUE_NODE},
};

static int read_multicast(struct sio_draft *d, struct sio_spot at)
{
	struct sio_source *s = d->source;
	size_t mark = sio_source_enter(s, "multicast", 0);
	char word[SIO_NAME_LEN];
	int rc = sio_value_name(s, at, word);

	if (rc < 0)
		return rc;
	if (strcmp(word, "fused") != 0 && strcmp(word, "exact") != 0)
		return sio_source_fail(s, at, "fused or exact is right");
	d->t->exact_multicast = strcmp(word, "exact") == 0;
	sio_source_leave(s, mark);
	return 0;
}

static int read_hosts(struct sio_draft *d, struct sio_spot at)
{
	struct sio_source *s = d->source;
	size_t mark = sio_source_enter(s, "hosts", 0);
	yaml_node_pair_t *start, *top;

	if (at.value->type != YAML_MAPPING_NODE)
		return sio_source_fail(
			s, at, "not a mapping; one with a host's name as each key is right");
	start = at.value->data.mapping.pairs.start;
	top = at.value->data.mapping.pairs.top;
	if (start == top)
		return sio_source_fail(s, at, "no hosts; at least one is right");
	d->max_hosts = top - start > SIO_MAX_HOSTS ? SIO_MAX_HOSTS : (unsigned)(top - start);
	d->t->host = calloc(d->max_hosts, sizeof(*d->t->host));
	d->host = calloc(d->max_hosts, sizeof(*d->host));
	if (!d->t->host || !d->host)
		return sio_source_no_memory(s);
	for (yaml_node_pair_t *p = start; p < top; p++) {
		int rc = sio_draft_add_host(d, sio_source_node(s, p->key),
					    sio_source_node(s, p->value));

		if (rc < 0)
			return rc;
	}
	sio_source_leave(s, mark);
	return 0;
}

/* Hosts ascending by node; the draft's halves move along. Few of them, mostly in order. */
static void sort_hosts(struct sio_draft *d)
{
	for (unsigned i = 1; i < d->t->n_hosts; i++) {
		struct sio_topo_host host = d->t->host[i];
		struct sio_draft_host draft = d->host[i];
		unsigned at = i;

		for (; at > 0 && d->t->host[at - 1].node > host.node; at--) {
			d->t->host[at] = d->t->host[at - 1];
			d->host[at] = d->host[at - 1];
		}
		d->t->host[at] = host;
		d->host[at] = draft;
	}
}

static int check_serial(struct sio_draft *d, unsigned host, unsigned index)
{
	const struct sio_topo_host *h = &d->t->host[host];
	const char *serial = h->device[index].serial;
	struct sio_spot at = d->host[host].device[index].serial_at;
	char path[SIO_DRAFT_PATH];

	if (h->device[index].physical) /* has that of its physical function */
		return 0;
	if (!at.value)
		at = sio_source_missing(d->host[host].device[index].at);
	for (unsigned i = 0; i <= host; i++) {
		unsigned n = i < host ? d->t->host[i].n_devices : index;

		for (unsigned j = 0; j < n; j++) {
			if (strcmp(d->t->host[i].device[j].serial, serial) != 0)
				continue;
			return sio_source_fail_at(
				d->source, at, sio_draft_device_path(h, index, "serial", path),
				"'%s' is the serial number of '%s', too (line %u); one of its own is "
				"right",
				serial, d->t->host[i].device[j].name,
				d->host[i].device[j].at.key.line);
		}
	}
	return 0;
}

/* Device ids are made of names, of which two in thousands may make the same. */
static int check_id(struct sio_draft *d, unsigned host, unsigned index)
{
	const struct sio_topo_host *h = &d->t->host[host];
	char path[SIO_DRAFT_PATH];

	snprintf(path, sizeof(path), "hosts.%s.devices.%s", h->name, h->device[index].name);
	for (unsigned i = 0; i < index; i++)
		if (h->device[i].fdid == h->device[index].fdid)
			return sio_source_fail_at(
				d->source, sio_source_key(d->host[host].device[index].at), path,
				"its name gives device '%s' the device id of '%s', %#" PRIx32
				"; another name is right",
				h->device[index].name, h->device[i].name, h->device[i].fdid);
	return 0;
}

/* What follows from the node: device ids, and serial numbers where the file has none. */
static int number_devices(struct sio_draft *d)
{
	int rc = 0;

	for (unsigned i = 0; i < d->t->n_hosts; i++) {
		struct sio_topo_host *h = &d->t->host[i];

		for (unsigned j = 0; rc == 0 && j < h->n_devices; j++) {
			struct sio_topo_device *dev = &h->device[j];

			dev->fdid = sio_topology_fdid(h->node, sio_topology_number(dev->name));
			rc = check_id(d, i, j);
			if (dev->physical)
				memcpy(dev->serial, h->device[dev->physical - 1].serial,
				       sizeof(dev->serial));
			if (!dev->serial[0])
				snprintf(dev->serial, sizeof(dev->serial), "SIO%08" PRIX32,
					 dev->fdid);
			if (rc == 0)
				rc = check_serial(d, i, j);
		}
	}
	return rc;
}

/* A machine beside an emulated host: their daemons speak TLS. */
static int check_beside(struct sio_draft *d, const struct sio_topo_host *machine,
			const struct sio_draft_host *draft)
{
	for (unsigned i = 0; i < d->t->n_hosts; i++) {
		const struct sio_topo_host *h = &d->t->host[i];
		char path[SIO_DRAFT_PATH];
		struct sio_path way;
		struct sio_spot at;

		if (h->machine || machine->address.port ||
		    !sio_topology_paths(d->t, machine->node, h->node, &way, 1))
			continue;
		at = draft->adapter[way.adapter].to_at;
		if (!at.value)
			at = sio_source_missing(draft->adapter[way.adapter].at);
		return sio_source_fail_at(
			d->source, at, sio_draft_adapter_path(machine, way.adapter, "to", path),
			"joins a machine to host '%s', which is emulated: an 'address' of each, or "
			"a switch with machines alone, is right",
			h->name);
	}
	return 0;
}

/*
 * A virtual NTB has so many rows for adapters that it is joined to: a machine's has one for each,
 * an emulated host's for those of machines.
 */
static int check_peers(struct sio_draft *d, const struct sio_topo_host *h,
		       const struct sio_draft_host *draft)
{
	struct sio_path way[SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS];
	unsigned peers[SIO_MAX_ADAPTERS] = {0}, n;
	char path[SIO_DRAFT_PATH];
	struct sio_spot at;

	for (unsigned i = 0; i < d->t->n_hosts; i++) {
		const struct sio_topo_host *other = &d->t->host[i];

		if (!h->machine && !other->machine)
			continue;
		n = sio_topology_paths(d->t, h->node, other->node, way,
				       SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS);
		for (unsigned k = 0; k < n; k++)
			peers[way[k].adapter]++;
	}
	for (unsigned k = 0; k < h->n_adapters; k++) {
		if (peers[k] <= SIO_VNTB_MAX_PEERS)
			continue;
		at = draft->adapter[k].to_at;
		if (!at.value)
			at = sio_source_missing(draft->adapter[k].at);
		return sio_source_fail_at(
			d->source, at, sio_draft_adapter_path(h, k, "to", path),
			"joins it to %u adapters of %s; %d at most are right, by more switches or "
			"cables",
			peers[k], h->machine ? "other hosts" : "machines", SIO_VNTB_MAX_PEERS);
	}
	return 0;
}

static int check_machines(struct sio_draft *d)
{
	bool any = false;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < d->t->n_hosts; i++) {
		if (!d->t->host[i].machine)
			continue;
		any = true;
		rc = check_beside(d, &d->t->host[i], &d->host[i]);
	}
	for (unsigned i = 0; any && rc == 0 && i < d->t->n_hosts; i++)
		rc = check_peers(d, &d->t->host[i], &d->host[i]);
	return rc;
}

/*
 * Machines behind the hosts, both in their order: whoever speaks of hosts means those of the
 * fabric.
 */
static void part_machines(struct sio_topology *t)
{
	unsigned n = t->n_hosts, hosts = 0;

	for (unsigned i = 0; i < n; i++) {
		struct sio_topo_host host = t->host[i];

		if (host.machine)
			continue;
		memmove(&t->host[hosts + 1], &t->host[hosts], (i - hosts) * sizeof(host));
		t->host[hosts++] = host;
	}
	t->n_hosts = hosts;
	t->n_machines = n - hosts;
	t->machine = &t->host[hosts];
}

static int build(struct sio_draft *d, yaml_node_t *root)
{
	struct sio_source *s = d->source;
	struct sio_spot at = sio_source_spot(NULL, root), spot[KEYS];
	int rc;

	if (root->type != YAML_MAPPING_NODE)
		return sio_source_fail(s, at,
				       "the file is not a mapping; one with 'cluster' and "
				       "'hosts' is right");
	rc = sio_value_map(s, at, root_field, KEYS, d->t, spot);
	if (rc < 0)
		return rc;
	at = sio_source_missing(at);
	if (!spot[KEY_CLUSTER].value)
		return sio_source_fail_at(s, at, "cluster",
					  "missing; a name such as demo is right");
	if (!spot[KEY_HOSTS].value)
		return sio_source_fail_at(s, at, "hosts",
					  "missing; a mapping with a host's name as "
					  "each key is right");
	d->no_switches = !spot[KEY_SWITCHES].value;
	if (!d->no_switches)
		rc = sio_draft_read_switches(d, spot[KEY_SWITCHES]);
	if (rc == 0 && spot[KEY_LINKS].value)
		rc = sio_draft_read_links(d, spot[KEY_LINKS]);
	if (rc == 0 && spot[KEY_MULTICAST].value)
		rc = read_multicast(d, spot[KEY_MULTICAST]);
	if (rc == 0)
		rc = read_hosts(d, spot[KEY_HOSTS]);
	if (rc == 0)
		rc = sio_draft_check_addresses(d);
	if (rc == 0)
		rc = sio_draft_join(d);
	if (rc == 0)
		rc = sio_topology_measure(d->t) < 0 ? sio_source_no_memory(s) : check_machines(d);
	if (rc == 0)
		rc = sio_draft_give_pools(d);
	if (rc == 0)
		rc = sio_draft_number_ports(d);
	if (rc < 0)
		return rc;
	sort_hosts(d);
	rc = sio_draft_lay_out(d);
	if (rc == 0)
		rc = sio_draft_check_apart(d);
	if (rc == 0)
		rc = number_devices(d);
	if (rc == 0)
		rc = sio_draft_read_policy(d, spot[KEY_ACCESS], spot[KEY_QUOTAS]);
	if (rc == 0)
		part_machines(d->t);
	return rc;
}

static int build_topology(struct sio_source *s, yaml_node_t *root,
			  const struct sio_topology *before, struct sio_topology **ret)
{
	struct sio_draft d = {.source = s, .before = before};
	int rc;

	d.t = calloc(1, sizeof(*d.t));
	if (!d.t)
		return sio_source_no_memory(s);
	d.t->max_payload = 256;
	d.t->max_read_request = 512;
	d.t->read_completion_boundary = 64;
	rc = build(&d, root);
	free(d.host);
	free(d.trunk);
	if (rc < 0)
		sio_topology_free(d.t);
	else
		*ret = d.t;
	return rc;
}

/* The place of the byte at @offset. */
static struct sio_place place_of(const char *text, size_t offset)
{
	struct sio_place at = {1, 1};

	for (size_t i = 0; i < offset; i++) {
		if (text[i] == '\n')
			at = (struct sio_place){at.line + 1, 1};
		else /* a character's first byte */
			at.column += ((unsigned char)text[i] & 0xc0) != 0x80;
	}
	return at;
}

/* What libyaml says, with the place, and with the usual reasons. */
static int fail_yaml(struct sio_source *s, const yaml_parser_t *p, const char *text, size_t len)
{
	struct sio_spot at = {.at = sio_source_place(p->problem_mark)};
	const char *problem = p->problem ? p->problem : "unknown error";
	const char *line = text, *end = text + len;

	if (p->error == YAML_MEMORY_ERROR)
		return sio_source_no_memory(s);
	if (p->error == YAML_READER_ERROR) { /* it knows only the byte */
		at.at = place_of(text, p->problem_offset < len ? p->problem_offset : len);
		return sio_source_fail_at(s, at, "", "not text: %s; UTF-8 is right", problem);
	}
	/*
	 * Of a file that ends too early libyaml names a line after the last: it is the end that
	 * lacks.
	 */
	for (unsigned n = 1; n < at.at.line; n++) {
		const char *next = memchr(line, '\n', (size_t)(end - line));

		if (!next || next + 1 == end)
			at.at = place_of(text, (size_t)((next ? next : end) - text));
		else
			line = next + 1;
	}
	while (line < end && *line == ' ')
		line++;
	if (line < end && *line == '\t') {
		at.at = place_of(text, (size_t)(line - text));
		return sio_source_fail_at(s, at, "",
					  "the line is indented with a tab; spaces are right");
	}
	return sio_source_fail_at(s, at, "",
				  "not YAML: %s%s%s; docs/topology.md shows what is right", problem,
				  p->context ? " " : "", p->context ? p->context : "");
}

/* A second document would be silently ignored. */
static int check_end(struct sio_source *s, yaml_parser_t *parser, const char *text, size_t len)
{
	yaml_document_t second;
	struct sio_spot at;
	bool more;

	if (!yaml_parser_load(parser, &second))
		return fail_yaml(s, parser, text, len);
	at = (struct sio_spot){.at = sio_source_place(second.start_mark)};
	more = yaml_document_get_root_node(&second);
	yaml_document_delete(&second);
	if (!more)
		return 0;
	return sio_source_fail_at(s, at, "", "a second document begins; one per file is right");
}

/* libyaml takes minutes for brackets within brackets; no topology needs many. */
static int check_depth(struct sio_source *s, const char *text, size_t len)
{
	struct sio_spot at = {0};
	yaml_parser_t parser;
	unsigned depth = 0;
	bool more = true;

	if (!yaml_parser_initialize(&parser))
		return sio_source_no_memory(s);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	while (more && depth <= DEEPEST) {
		yaml_event_t event;

		/* What is wrong with it is told by the second reading. */
		if (!yaml_parser_parse(&parser, &event))
			break;
		at.at = sio_source_place(event.start_mark);
		more = event.type != YAML_STREAM_END_EVENT;
		if (event.type == YAML_SEQUENCE_START_EVENT ||
		    event.type == YAML_MAPPING_START_EVENT)
			depth++;
		if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT)
			depth--;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	if (depth <= DEEPEST)
		return 0;
	return sio_source_fail_at(s, at, "",
				  "more than %d lists and mappings within each other; "
				  "fewer are right",
				  DEEPEST);
}

static int parse(struct sio_source *s, yaml_parser_t *parser, const char *text, size_t len,
		 const struct sio_topology *before, struct sio_topology **ret)
{
	struct sio_topology *t = NULL;
	yaml_document_t doc;
	yaml_node_t *root;
	int rc;

	yaml_parser_set_input_string(parser, (const unsigned char *)text, len);
	if (!yaml_parser_load(parser, &doc))
		return fail_yaml(s, parser, text, len);
	s->doc = &doc;
	root = yaml_document_get_root_node(&doc);
	if (root)
		rc = build_topology(s, root, before, &t);
	else
		rc = sio_source_fail_at(
			s, (struct sio_spot){.at = {1, 1}}, "",
			"the file is empty; a mapping with 'cluster' and 'hosts' is "
			"right");
	yaml_document_delete(&doc);
	if (rc == 0 && root)
		rc = check_end(s, parser, text, len);
	if (rc < 0)
		sio_topology_free(t);
	else
		*ret = t;
	return rc;
}

int sio_topofile_parse(const char *name, const char *text, size_t len, struct sio_topology **ret,
		       struct sio_err *reterr)
{
	return sio_topofile_parse_next(name, text, len, NULL, ret, reterr);
}

int sio_topofile_parse_next(const char *name, const char *text, size_t len,
			    const struct sio_topology *before, struct sio_topology **ret,
			    struct sio_err *reterr)
{
	struct sio_source s = {.name = name, .reterr = reterr};
	yaml_parser_t parser;
	int rc;

	if (len > LARGEST_FILE)
		return sio_fail(reterr, -EINVAL, "%s: larger than 256K; less is right",
				sio_source_name(name));
	rc = check_depth(&s, text, len);
	if (rc < 0)
		return rc;
	if (!yaml_parser_initialize(&parser))
		return sio_source_no_memory(&s);
	rc = parse(&s, &parser, text, len, before, ret);
	yaml_parser_delete(&parser);
	return rc;
}

int sio_topofile_read(const char *path, struct sio_topology **ret, struct sio_err *reterr)
{
	return sio_topofile_read_next(path, NULL, ret, reterr);
}

int sio_topofile_read_next(const char *path, const struct sio_topology *before,
			   struct sio_topology **ret, struct sio_err *reterr)
{
	char *text = malloc(LARGEST_FILE + 1);
	FILE *file = fopen(path, "re");
	size_t len = 0;
	int rc;

	if (!file || !text) {
		rc = file ? -ENOMEM : -errno;
		goto out;
	}
	len = fread(text, 1, LARGEST_FILE + 1, file);
	rc = ferror(file) ? -errno : 0;
out:
	if (file)
		fclose(file);
	if (rc < 0)
		sio_fail(reterr, rc, "%s: cannot be read: %s", sio_source_name(path),
			 strerror(-rc));
	else
		rc = sio_topofile_parse_next(path, text, len, before, ret, reterr);
	free(text);
	return rc;
}
