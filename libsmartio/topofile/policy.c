/* SPDX-License-Identifier: BSD-2-Clause */
/* Access rules ("access") and quotas ("quotas"): docs/policy.md. */
#include <stdlib.h>
#include <string.h>

#include "topofile/draft.h"
#include "topofile/value.h"

/* ---- access ---- */

enum {
	RULE_DEVICE,
	RULE_SEGMENTS,
	RULE_INTERRUPTS,
	RULE_HOST,
	RULE_NODES,
	RULE_USERS,
	RULE_GROUPS,
	RULE_FIELDS
};
static const struct sio_field rule_field[RULE_FIELDS] = {
	[RULE_DEVICE] = {.name = "device", .kind = SIO_VALUE_NODE},
	[RULE_SEGMENTS] = {.name = "segments", .kind = SIO_VALUE_NODE},
	[RULE_INTERRUPTS] = {.name = "interrupts", .kind = SIO_VALUE_NODE},
	[RULE_HOST] = {.name = "host", .kind = SIO_VALUE_NODE},
	[RULE_NODES] = {.name = "nodes", .kind = SIO_VALUE_NODE},
	[RULE_USERS] = {.name = "users", .kind = SIO_VALUE_NODE},
	[RULE_GROUPS] = {.name = "groups", .kind = SIO_VALUE_NODE},
};

static bool is_word(const yaml_node_t *node, const char *word)
{
	const char *text = sio_source_text(node);

	return text && strcmp(text, word) == 0;
}

/* Calls @read for each item of a list of at most @most; *ret_n: how many there are. */
static int read_list(struct sio_draft *d, struct sio_spot at, unsigned most, const char *right,
		     int (*read)(struct sio_draft *d, struct sio_spot item, void *out, unsigned n),
		     void *out, unsigned *ret_n)
{
	struct sio_source *s = d->source;

	*ret_n = 0;
	if (at.value->type != YAML_SEQUENCE_NODE)
		return sio_source_fail(s, at, "not a list; %s is right", right);
	for (yaml_node_item_t *i = at.value->data.sequence.items.start;
	     i < at.value->data.sequence.items.top; i++) {
		struct sio_spot item = sio_source_inside(at, NULL, sio_source_node(s, *i));
		size_t mark = sio_source_enter(s, NULL, *ret_n);
		int rc;

		if (*ret_n == most)
			return sio_source_fail(s, item, "one too many; at most %u is right", most);
		rc = read(d, item, out, (*ret_n)++);
		if (rc < 0)
			return rc;
		sio_source_leave(s, mark);
	}
	return 0;
}

/* Memory for the items of a list; a list without any needs none. */
static void *list_memory(struct sio_spot at, size_t size)
{
	long n = at.value->type == YAML_SEQUENCE_NODE
			 ? at.value->data.sequence.items.top - at.value->data.sequence.items.start
			 : 0;

	return calloc((size_t)n + 1, size);
}

/* A host's name, or its node id. */
static int read_node(struct sio_draft *d, struct sio_spot at, void *out, unsigned n)
{
	const char *text = sio_source_text(at.value);
	const struct sio_topo_host *h = text ? sio_topology_host_by_name(d->t, text) : NULL;
	uint64_t id;

	if (!h && text && sio_value_digits(text, strlen(text), &id) && id <= SIO_MAX_NODE)
		h = sio_topology_host(d->t, (uint32_t)id);
	if (!h)
		return sio_source_fail(d->source, at,
				       "no host of the cluster; the name of one, or its node id, "
				       "is right");
	((uint32_t *)out)[n] = h->node;
	return 0;
}

static int read_nodes(struct sio_draft *d, struct sio_spot at, struct sio_policy_rule *r)
{
	r->has_nodes = true;
	if (is_word(at.value, "all")) {
		r->all_nodes = true;
		return 0;
	}
	r->node = list_memory(at, sizeof(*r->node));
	if (!r->node)
		return sio_source_no_memory(d->source);
	return read_list(d, at, SIO_MAX_HOSTS, "all, or one such as [client, 12]", read_node,
			 r->node, &r->n_nodes);
}

/* A user's or group's name, or its number. */
static int read_person(struct sio_draft *d, struct sio_spot at, void *out, unsigned n)
{
	struct sio_policy_person *p = (struct sio_policy_person *)out + n;
	const char *text = sio_source_text(at.value);
	size_t len = text ? strlen(text) : 0;
	uint64_t id;

	p->id = SIO_POLICY_NOBODY;
	if (text && sio_value_digits(text, len, &id) && id < SIO_POLICY_NOBODY) {
		p->id = (uint32_t)id;
		return 0;
	}
	if (len == 0 || len >= sizeof(p->name) || (text[0] >= '0' && text[0] <= '9') ||
	    strcspn(text, " \t\n:,/") != len || text[0] == '-')
		return sio_source_fail(d->source, at,
				       "neither a name of at most 31 characters nor a number; "
				       "one of them is right");
	memcpy(p->name, text, len + 1);
	return 0;
}

static int read_people(struct sio_draft *d, struct sio_spot at, struct sio_policy_rule *r,
		       struct sio_policy_person **ret, unsigned *ret_n)
{
	r->has_people = true;
	*ret = list_memory(at, sizeof(**ret));
	if (!*ret)
		return sio_source_no_memory(d->source);
	return read_list(d, at, SIO_POLICY_PEOPLE, "one such as [alice, 1000]", read_person, *ret,
			 ret_n);
}

/*
 * Devices of emulated hosts are in the file; those of a real host have names as HOST/0000:05:00.0.
 */
static int read_device(struct sio_draft *d, struct sio_spot at, struct sio_policy_rule *r)
{
	const char *text = sio_source_text(at.value), *name = text ? strchr(text, '/') : NULL;
	const struct sio_topo_host *h = NULL;
	char host[SIO_NAME_LEN] = "";
	size_t line;

	if (is_word(at.value, "all"))
		return 0;
	if (!text || strlen(text) >= sizeof(r->device))
		return sio_source_fail(d->source, at,
				       "not a device; all, or the name of one, "
				       "is right");
	if (name && (size_t)(name - text) < sizeof(host)) {
		memcpy(host, text, (size_t)(name - text));
		h = sio_topology_host_by_name(d->t, host);
	}
	if (name ? !h || (!h->real && !h->machine && sio_draft_find_device(d, name + 1, &line) != h)
		 : !sio_draft_find_device(d, text, &line))
		return sio_source_fail(d->source, at,
				       "no device of the cluster; the name of one in the file, or "
				       "HOST/PLACE of a real host's, is right");
	memcpy(r->device, text, strlen(text) + 1);
	return 0;
}

/* Decimal, or hexadecimal behind 0x, as programs write segment ids. False: neither. */
static bool parse_number(const char *text, size_t len, uint32_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t value = 0;

	if (len <= 2 || text[0] != '0' || text[1] != 'x') {
		if (!sio_value_digits(text, len, &value) || value > UINT32_MAX)
			return false;
		*ret = (uint32_t)value;
		return true;
	}
	for (size_t i = 2; i < len; i++) {
		const char *at =
			strchr(digits, text[i] >= 'A' && text[i] <= 'F' ? text[i] + 32 : text[i]);

		if (!at || !*at || len > 10)
			return false;
		value = value * 16 + (uint64_t)(at - digits);
	}
	*ret = (uint32_t)value;
	return true;
}

static int read_range(struct sio_draft *d, struct sio_spot at, struct sio_policy_rule *r)
{
	const char *text = sio_source_text(at.value), *dash = text ? strchr(text, '-') : NULL;
	size_t len = text ? strlen(text) : 0, first = dash ? (size_t)(dash - text) : len;

	r->last = UINT32_MAX;
	if (is_word(at.value, "all"))
		return 0;
	if (!text || !parse_number(text, first, &r->first) ||
	    !parse_number(dash ? dash + 1 : text, dash ? len - first - 1 : len, &r->last) ||
	    r->first > r->last)
		return sio_source_fail(d->source, at,
				       "not a range; all, a number, or two such as 16-31 or "
				       "0x10-0x1f is right");
	return 0;
}

/* What the rule is about: one of three keys. */
static int read_thing(struct sio_draft *d, struct sio_spot at, const struct sio_spot *spot,
		      struct sio_policy_rule *r)
{
	int key = -1, rc;
	size_t mark;

	for (int i = RULE_DEVICE; i <= RULE_INTERRUPTS; i++) {
		if (!spot[i].value)
			continue;
		if (key >= 0) {
			sio_source_enter(d->source, rule_field[i].name, 0);
			return sio_source_fail(d->source, sio_source_key(spot[i]),
					       "beside '%s'; one of them is right",
					       rule_field[key].name);
		}
		key = i;
	}
	if (key < 0)
		return sio_source_fail(d->source, sio_source_missing(at),
				       "about nothing; one with 'device', 'segments' or "
				       "'interrupts' is right");
	r->kind = (enum sio_policy_kind)(key - RULE_DEVICE + SIO_POLICY_DEVICE);
	mark = sio_source_enter(d->source, rule_field[key].name, 0);
	rc = key == RULE_DEVICE ? read_device(d, spot[key], r) : read_range(d, spot[key], r);
	if (rc == 0)
		sio_source_leave(d->source, mark);
	return rc;
}

static int read_who(struct sio_draft *d, const struct sio_spot *spot, struct sio_policy_rule *r)
{
	int rc = 0;

	for (int i = RULE_HOST; rc == 0 && i < RULE_FIELDS; i++) {
		size_t mark = sio_source_enter(d->source, rule_field[i].name, 0);

		if (!spot[i].value)
			rc = 0;
		else if (i == RULE_HOST)
			rc = read_node(d, spot[i], &r->host, 0);
		else if (i == RULE_NODES)
			rc = read_nodes(d, spot[i], r);
		else if (i == RULE_USERS)
			rc = read_people(d, spot[i], r, &r->user, &r->n_users);
		else
			rc = read_people(d, spot[i], r, &r->group, &r->n_groups);
		if (rc == 0)
			sio_source_leave(d->source, mark);
	}
	return rc;
}

static int read_rule(struct sio_draft *d, struct sio_spot at, void *out, unsigned n)
{
	struct sio_policy *p = out;
	struct sio_policy_rule *r = &p->rule[n];
	struct sio_spot spot[RULE_FIELDS];
	int rc = sio_value_map(d->source, at, rule_field, RULE_FIELDS, r, spot);

	if (rc < 0)
		return rc;
	p->n_rules++; /* from now on its lists are freed */
	r->line = at.at.line;
	rc = read_thing(d, at, spot, r);
	if (rc == 0)
		rc = read_who(d, spot, r);
	if (rc < 0)
		return rc;
	if (!r->has_nodes && !r->has_people)
		return sio_source_fail(d->source, sio_source_missing(at),
				       "names nobody; one with 'nodes', 'users' or "
				       "'groups' is right");
	return 0;
}

enum { ACCESS_BETWEEN, ACCESS_RULES, ACCESS_FIELDS };
static const struct sio_field access_field[ACCESS_FIELDS] = {
	[ACCESS_BETWEEN] = {.name = "between_machines", .kind = SIO_VALUE_NODE},
	[ACCESS_RULES] = {.name = "rules", .kind = SIO_VALUE_NODE},
};

static int read_access(struct sio_draft *d, struct sio_spot at)
{
	struct sio_policy *p = &d->t->policy;
	struct sio_spot spot[ACCESS_FIELDS];
	size_t mark = sio_source_enter(d->source, "access", 0), inner;
	int rc = sio_value_map(d->source, at, access_field, ACCESS_FIELDS, p, spot);
	unsigned n;

	if (rc < 0)
		return rc;
	if (spot[ACCESS_BETWEEN].value) {
		inner = sio_source_enter(d->source, "between_machines", 0);
		p->open = is_word(spot[ACCESS_BETWEEN].value, "open");
		if (!p->open && !is_word(spot[ACCESS_BETWEEN].value, "closed"))
			return sio_source_fail(d->source, spot[ACCESS_BETWEEN],
					       "open or closed is right");
		sio_source_leave(d->source, inner);
	}
	if (spot[ACCESS_RULES].value) {
		inner = sio_source_enter(d->source, "rules", 0);
		p->rule = list_memory(spot[ACCESS_RULES], sizeof(*p->rule));
		if (!p->rule)
			return sio_source_no_memory(d->source);
		rc = read_list(d, spot[ACCESS_RULES], SIO_POLICY_RULES,
			       "one such as [{ device: nvme0, nodes: [client] }]", read_rule, p,
			       &n);
		if (rc < 0)
			return rc;
		sio_source_leave(d->source, inner);
	}
	sio_source_leave(d->source, mark);
	return 0;
}

/* ---- quotas ---- */

#define NUMBER(key, index)                                                                         \
	{                                                                                          \
		.name = key, .kind = SIO_VALUE_NUMBER, .offset = (index) * sizeof(uint32_t),       \
		.max = 1u << 20                                                                    \
	}
#define BYTES(key, index)                                                                          \
	{                                                                                          \
		.name = key, .kind = SIO_VALUE_SIZE,                                               \
		.offset = offsetof(struct limits, bytes) + (index) * sizeof(uint64_t),             \
		.max = SIO_DRAFT_LARGEST                                                           \
	}

struct limits {
	uint32_t number[2];
	uint64_t bytes[2];
};
/* In the order of enum sio_quota. */
static const struct sio_field limit_field[SIO_QUOTAS] = {
	[SIO_QUOTA_BORROWS] = NUMBER("borrows", 0),
	[SIO_QUOTA_WINDOWS] = NUMBER("windows", 1),
	[SIO_QUOTA_DMA] = BYTES("dma", 0),
	[SIO_QUOTA_EXPORTED] = BYTES("exported", 1),
};

static int read_limits(struct sio_draft *d, const char *key, struct sio_spot at,
		       struct sio_limit *out)
{
	struct sio_spot spot[SIO_QUOTAS];
	struct limits l = {.number = {0}};
	size_t mark = sio_source_enter(d->source, key, 0);
	int rc = sio_value_map(d->source, at, limit_field, SIO_QUOTAS, &l, spot);

	if (rc < 0)
		return rc;
	for (unsigned i = 0; i < SIO_QUOTAS; i++)
		if (spot[i].value)
			out[i] = (struct sio_limit){true, sio_quota_is_bytes(i)
								  ? l.bytes[i - SIO_QUOTA_DMA]
								  : l.number[i]};
	sio_source_leave(d->source, mark);
	return 0;
}

enum { QUOTAS_NODE, QUOTAS_PROGRAM, QUOTAS_FIELDS };
static const struct sio_field quotas_field[QUOTAS_FIELDS] = {
	[QUOTAS_NODE] = {.name = "node", .kind = SIO_VALUE_NODE},
	[QUOTAS_PROGRAM] = {.name = "program", .kind = SIO_VALUE_NODE},
};

static int read_quotas(struct sio_draft *d, struct sio_spot at)
{
	struct sio_policy *p = &d->t->policy;
	struct sio_spot spot[QUOTAS_FIELDS];
	size_t mark = sio_source_enter(d->source, "quotas", 0);
	int rc = sio_value_map(d->source, at, quotas_field, QUOTAS_FIELDS, p, spot);

	if (rc == 0 && spot[QUOTAS_NODE].value)
		rc = read_limits(d, "node", spot[QUOTAS_NODE], p->node);
	if (rc == 0 && spot[QUOTAS_PROGRAM].value)
		rc = read_limits(d, "program", spot[QUOTAS_PROGRAM], p->program);
	if (rc == 0)
		sio_source_leave(d->source, mark);
	return rc;
}

int sio_draft_read_policy(struct sio_draft *d, struct sio_spot access, struct sio_spot quotas)
{
	int rc = access.value ? read_access(d, access) : 0;

	return rc == 0 && quotas.value ? read_quotas(d, quotas) : rc;
}
