/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/devtype.h"
#include "core/policydiff.h"
#include "core/topodiff.h"

struct diff {
	const struct sio_topology *old, *new;
	sio_topo_report *tell;
	void *ctx;
	const char *host, *key; /* of what is being reported */
};

static void say(struct diff *d, enum sio_topo_what what, enum sio_topo_how how, const char *fmt,
		...) __attribute__((format(printf, 4, 5)));
static void say(struct diff *d, enum sio_topo_what what, enum sio_topo_how how, const char *fmt,
		...)
{
	struct sio_topo_change c = {.what = what, .how = how};
	va_list ap;

	snprintf(c.host, sizeof(c.host), "%s", d->host);
	snprintf(c.key, sizeof(c.key), "%s", d->key);
	va_start(ap, fmt);
	vsnprintf(c.text, sizeof(c.text), fmt, ap);
	va_end(ap);
	d->tell(d->ctx, &c);
}

/* ---- members, by tables ---- */

/* U32 as the compiler has unsigned and enums, too. */
enum field_kind { FIELD_U32, FIELD_U64, FIELD_BOOL, FIELD_TEXT };

struct field {
	const char *key; /* as in the file; where that has another form, words of our own */
	enum field_kind kind;
	size_t at;
};

#define FIELD(type, kind, key, member)                                                             \
	{                                                                                          \
		key, FIELD_##kind, offsetof(struct type, member)                                   \
	}

static const struct field cluster_fields[] = {
	FIELD(sio_topology, TEXT, "cluster", name),
	FIELD(sio_topology, U32, "payload", max_payload),
	FIELD(sio_topology, U32, "read_request", max_read_request),
	FIELD(sio_topology, U32, "completion_boundary", read_completion_boundary),
	FIELD(sio_topology, BOOL, "exact multicast", exact_multicast),
	{NULL, 0, 0},
};
static const struct field host_fields[] = {
	FIELD(sio_topo_host, U32, "node", node),
	FIELD(sio_topo_host, BOOL, "iommu", iommu),
	FIELD(sio_topo_host, BOOL, "real host", real),
	FIELD(sio_topo_host, BOOL, "machine", machine),
	FIELD(sio_topo_host, BOOL, "mapped", mapped),
	{NULL, 0, 0},
};
/* Of hosts whose memory the file lays out. */
static const struct field ram_fields[] = {
	FIELD(sio_topo_host, U64, "ram_base", ram_base),
	FIELD(sio_topo_host, U64, "ram", ram_size),
	FIELD(sio_topo_host, U64, "pool", pool_size),
	{NULL, 0, 0},
};
static const struct field adapter_fields[] = {
	FIELD(sio_topo_adapter, U64, "window_base", window_base),
	FIELD(sio_topo_adapter, U64, "window", window_size),
	FIELD(sio_topo_adapter, U32, "entries", lut_entries),
	FIELD(sio_topo_adapter, U32, "requesters", requesters),
	FIELD(sio_topo_adapter, U32, "width", link_width),
	FIELD(sio_topo_adapter, U32, "generation", link_generation),
	FIELD(sio_topo_adapter, U32, "latency", latency),
	FIELD(sio_topo_adapter, U32, "bdf", bdf),
	FIELD(sio_topo_adapter, TEXT, "pci", pci),
	FIELD(sio_topo_adapter, U32, "port", port),
	{NULL, 0, 0},
};
static const struct field chassis_fields[] = {
	FIELD(sio_topo_chassis, U32, "ports", ports),
	FIELD(sio_topo_chassis, U32, "lanes", lanes),
	FIELD(sio_topo_chassis, U32, "width", link_width),
	FIELD(sio_topo_chassis, U32, "generation", link_generation),
	FIELD(sio_topo_chassis, U32, "latency", latency),
	FIELD(sio_topo_chassis, U64, "aperture", aperture),
	{NULL, 0, 0},
};
/* Those of its type beside them. */
static const struct field device_fields[] = {
	FIELD(sio_topo_device, TEXT, "type", type),
	FIELD(sio_topo_device, U32, "slot", slot),
	FIELD(sio_topo_device, U64, "bar_base", bar_base),
	FIELD(sio_topo_device, U32, "dma_bits", dma_bits),
	FIELD(sio_topo_device, U32, "reset", reset),
	FIELD(sio_topo_device, U32, "width", link_width),
	FIELD(sio_topo_device, U32, "generation", link_generation),
	FIELD(sio_topo_device, TEXT, "serial", serial),
	{NULL, 0, 0},
};
static const struct field switch_fields[] = {
	FIELD(sio_topo_switch, U32, "ports", ports),
	FIELD(sio_topo_switch, U32, "lanes", lanes),
	FIELD(sio_topo_switch, U32, "latency", latency),
	{NULL, 0, 0},
};

static uint64_t number(const struct field *f, const void *o)
{
	const char *at = (const char *)o + f->at;
	uint64_t u64;
	uint32_t u32;

	if (f->kind == FIELD_BOOL)
		return *(const bool *)at;
	if (f->kind == FIELD_U64) {
		memcpy(&u64, at, sizeof(u64));
		return u64;
	}
	memcpy(&u32, at, sizeof(u32));
	return u32;
}

/* @name: of the thing, as a text has it. */
static void compare(struct diff *d, enum sio_topo_what what, const char *name,
		    const struct field *f, const void *old, const void *new)
{
	for (; f->key; f++) {
		d->key = f->key;
		if (f->kind == FIELD_TEXT) {
			const char *a = (const char *)old + f->at, *b = (const char *)new + f->at;

			if (strcmp(a, b) != 0)
				say(d, what, SIO_TOPO_CHANGED, "%s: %s is '%s', was '%s'", name,
				    f->key, b, a);
		} else if (number(f, old) != number(f, new)) {
			say(d, what, SIO_TOPO_CHANGED, "%s: %s is %" PRIu64 ", was %" PRIu64, name,
			    f->key, number(f, new), number(f, old));
		}
	}
	d->key = "";
}

static void compare_text(struct diff *d, enum sio_topo_what what, const char *name, const char *key,
			 const char *old, const char *new)
{
	d->key = key;
	if (strcmp(old, new) != 0)
		say(d, what, SIO_TOPO_CHANGED, "%s: %s is %s, was %s", name, key, new, old);
	d->key = "";
}

/* ---- what an adapter leads to ---- */

static unsigned n_members(const struct sio_topology *t)
{
	return t->n_hosts + t->n_machines;
}

#define TO_TEXT (SIO_NAME_LEN + 32)

/* "switch 'sw0'", "host 'b', adapter 1", "nothing" */
static void leads_to(const struct sio_topology *t, const struct sio_topo_adapter *a,
		     char text[TO_TEXT])
{
	snprintf(text, TO_TEXT, "nothing");
	if (a->attach == SIO_ATTACH_SWITCH)
		snprintf(text, TO_TEXT, "switch '%s'", t->sw[a->attach_index].name);
	for (unsigned i = 0; a->attach == SIO_ATTACH_LINK && i < n_members(t); i++) {
		const struct sio_topo_host *h = &t->host[i];

		for (unsigned k = 0; k < h->n_adapters; k++)
			if (&h->adapter[k] != a && h->adapter[k].attach == SIO_ATTACH_LINK &&
			    h->adapter[k].attach_index == a->attach_index)
				snprintf(text, TO_TEXT, "host '%s', adapter %u", h->name, k);
	}
}

static const char *chassis_of(const struct sio_topo_host *h, unsigned in)
{
	return in ? h->chassis[in - 1].name : "a slot of the host";
}

/* ---- hosts ---- */

#define NAME_TEXT (2 * SIO_DEVICE_NAME_LEN + 32)

static void compare_adapter(struct diff *d, const struct sio_topo_host *old,
			    const struct sio_topo_host *new, unsigned i)
{
	const struct sio_topo_adapter *a = &old->adapter[i], *b = &new->adapter[i];
	char name[NAME_TEXT], was[TO_TEXT], is[TO_TEXT];

	snprintf(name, sizeof(name), "host '%s', adapter %u", new->name, i);
	compare(d, SIO_TOPO_ADAPTER, name, adapter_fields, a, b);
	leads_to(d->old, a, was);
	leads_to(d->new, b, is);
	compare_text(d, SIO_TOPO_ADAPTER, name, "to", was, is);
	compare_text(d, SIO_TOPO_ADAPTER, name, "in", chassis_of(old, a->in),
		     chassis_of(new, b->in));
}

static void compare_adapters(struct diff *d, const struct sio_topo_host *old,
			     const struct sio_topo_host *new)
{
	unsigned both = old->n_adapters < new->n_adapters ? old->n_adapters : new->n_adapters;

	for (unsigned i = 0; i < both; i++)
		compare_adapter(d, old, new, i);
	for (unsigned i = both; i < old->n_adapters; i++)
		say(d, SIO_TOPO_ADAPTER, SIO_TOPO_REMOVED, "host '%s', adapter %u is gone",
		    new->name, i);
	for (unsigned i = both; i < new->n_adapters; i++)
		say(d, SIO_TOPO_ADAPTER, SIO_TOPO_ADDED, "host '%s', adapter %u is new", new->name,
		    i);
}

static const struct sio_topo_chassis *chassis(const struct sio_topo_host *h, const char *name)
{
	for (unsigned i = 0; i < h->n_chassis; i++)
		if (strcmp(h->chassis[i].name, name) == 0)
			return &h->chassis[i];
	return NULL;
}

static void compare_all_chassis(struct diff *d, const struct sio_topo_host *old,
				const struct sio_topo_host *new)
{
	char name[NAME_TEXT];

	for (unsigned i = 0; i < old->n_chassis; i++) {
		const struct sio_topo_chassis *a = &old->chassis[i], *b = chassis(new, a->name);

		snprintf(name, sizeof(name), "chassis '%s' of host '%s'", a->name, new->name);
		if (!b) {
			say(d, SIO_TOPO_CHASSIS, SIO_TOPO_REMOVED, "%s is gone", name);
			continue;
		}
		compare(d, SIO_TOPO_CHASSIS, name, chassis_fields, a, b);
		compare_text(d, SIO_TOPO_CHASSIS, name, "in", chassis_of(old, a->in),
			     chassis_of(new, b->in));
	}
	for (unsigned i = 0; i < new->n_chassis; i++)
		if (!chassis(old, new->chassis[i].name))
			say(d, SIO_TOPO_CHASSIS, SIO_TOPO_ADDED, "chassis '%s' of host '%s' is new",
			    new->chassis[i].name, new->name);
}

static const struct sio_topo_device *device(const struct sio_topo_host *h, const char *name)
{
	for (unsigned i = 0; i < h->n_devices; i++)
		if (strcmp(h->device[i].name, name) == 0)
			return &h->device[i];
	return NULL;
}

static uint64_t key_number(const struct sio_devkey *k, const void *o)
{
	const struct field f = {.kind = k->kind == SIO_DEVKEY_SIZE ? FIELD_U64 : FIELD_U32,
				.at = k->kind == SIO_DEVKEY_LIST ? k->count : k->offset};

	return number(&f, o);
}

static const char *key_file(const struct sio_devkey *k, const void *o)
{
	const char *path;

	memcpy(&path, (const char *)o + k->offset, sizeof(path));
	return path ? path : "none";
}

static bool same_value(const struct sio_devkey *k, const void *a, const void *b)
{
	if (k->kind == SIO_DEVKEY_FILE)
		return strcmp(key_file(k, a), key_file(k, b)) == 0;
	return key_number(k, a) == key_number(k, b);
}

/* The elements that both lists have. */
static bool same_items(const struct sio_devkey *list, const void *a, const void *b)
{
	uint64_t n = key_number(list, a), m = key_number(list, b);

	for (uint64_t i = 0; i < n && i < m; i++) {
		size_t at = list->offset + i * list->item_size;

		for (unsigned j = 0; j < list->n_items; j++)
			if (!same_value(&list->item[j], (const char *)a + at, (const char *)b + at))
				return false;
	}
	return true;
}

static void compare_keys(struct diff *d, const char *name, const struct sio_topo_device *a,
			 const struct sio_topo_device *b)
{
	if (!a->keys || a->keys != b->keys)
		return;
	for (const struct sio_devkey *k = a->keys->key; k < a->keys->key + a->keys->n_keys; k++) {
		uint64_t was, is;

		if (k->kind == SIO_DEVKEY_FILE) {
			compare_text(d, SIO_TOPO_DEVICE, name, k->name, key_file(k, a),
				     key_file(k, b));
			continue;
		}
		was = key_number(k, a);
		is = key_number(k, b);
		d->key = k->name;
		if (was != is)
			say(d, SIO_TOPO_DEVICE, SIO_TOPO_CHANGED,
			    "%s: %s is %" PRIu64 ", was %" PRIu64, name, k->name, is, was);
		if (k->kind == SIO_DEVKEY_LIST && !same_items(k, a, b))
			say(d, SIO_TOPO_DEVICE, SIO_TOPO_CHANGED, "%s: %s are others", name,
			    k->name);
	}
	d->key = "";
}

/* Virtual functions are of their physical function's line. */
static void compare_devices(struct diff *d, const struct sio_topo_host *old,
			    const struct sio_topo_host *new)
{
	char name[NAME_TEXT];

	for (unsigned i = 0; i < old->n_devices; i++) {
		const struct sio_topo_device *a = &old->device[i], *b = device(new, a->name);

		snprintf(name, sizeof(name), "device %s/%s", new->name, a->name);
		if (a->physical || (b && b->physical))
			continue;
		if (!b) {
			say(d, SIO_TOPO_DEVICE, SIO_TOPO_REMOVED, "%s is gone", name);
			continue;
		}
		compare(d, SIO_TOPO_DEVICE, name, device_fields, a, b);
		compare_keys(d, name, a, b);
		compare_text(d, SIO_TOPO_DEVICE, name, "in", chassis_of(old, a->in),
			     chassis_of(new, b->in));
	}
	for (unsigned i = 0; i < new->n_devices; i++) {
		const struct sio_topo_device *b = &new->device[i];

		if (!b->physical && !device(old, b->name))
			say(d, SIO_TOPO_DEVICE, SIO_TOPO_ADDED, "device %s/%s is new", new->name,
			    b->name);
	}
}

static const struct sio_topo_host *member(const struct sio_topology *t, const char *name)
{
	for (unsigned i = 0; i < n_members(t); i++)
		if (strcmp(t->host[i].name, name) == 0)
			return &t->host[i];
	return NULL;
}

static void compare_host(struct diff *d, const struct sio_topo_host *old,
			 const struct sio_topo_host *new)
{
	char name[NAME_TEXT];

	snprintf(name, sizeof(name), "host '%s'", new->name);
	compare(d, SIO_TOPO_HOST, name, host_fields, old, new);
	if (!old->real || !new->real)
		compare(d, SIO_TOPO_HOST, name, ram_fields, old, new);
	if (old->address.port != new->address.port || old->address.v6 != new->address.v6 ||
	    memcmp(old->address.ip, new->address.ip, sizeof(old->address.ip)) != 0) {
		d->key = "address";
		say(d, SIO_TOPO_HOST, SIO_TOPO_CHANGED, "%s: address is another", name);
		d->key = "";
	}
	compare_adapters(d, old, new);
	compare_all_chassis(d, old, new);
	compare_devices(d, old, new);
}

static void compare_hosts(struct diff *d)
{
	for (unsigned i = 0; i < n_members(d->old); i++) {
		const struct sio_topo_host *a = &d->old->host[i], *b = member(d->new, a->name);

		if (sio_topology_is_vacant(a))
			continue;
		d->host = a->name;
		if (b)
			compare_host(d, a, b);
		else
			say(d, SIO_TOPO_HOST, SIO_TOPO_REMOVED, "host '%s' is gone", a->name);
	}
	for (unsigned i = 0; i < n_members(d->new); i++) {
		d->host = d->new->host[i].name;
		if (!sio_topology_is_vacant(&d->new->host[i]) && !member(d->old, d->host))
			say(d, SIO_TOPO_HOST, SIO_TOPO_ADDED, "host '%s' is new", d->host);
	}
	d->host = "";
}

/* ---- switches ---- */

static const struct sio_topo_switch *cluster_switch(const struct sio_topology *t, const char *name)
{
	for (unsigned i = 0; i < t->n_switches; i++)
		if (strcmp(t->sw[i].name, name) == 0)
			return &t->sw[i];
	return NULL;
}

static void compare_switches(struct diff *d)
{
	char name[NAME_TEXT];

	for (unsigned i = 0; i < d->old->n_switches; i++) {
		const struct sio_topo_switch *a = &d->old->sw[i];
		const struct sio_topo_switch *b = cluster_switch(d->new, a->name);

		snprintf(name, sizeof(name), "switch '%s'", a->name);
		if (b)
			compare(d, SIO_TOPO_SWITCH, name, switch_fields, a, b);
		else
			say(d, SIO_TOPO_SWITCH, SIO_TOPO_REMOVED, "%s is gone", name);
	}
	for (unsigned i = 0; i < d->new->n_switches; i++)
		if (!cluster_switch(d->old, d->new->sw[i].name))
			say(d, SIO_TOPO_SWITCH, SIO_TOPO_ADDED, "switch '%s' is new",
			    d->new->sw[i].name);
}

#define TRUNK_TEXT (2 * SIO_NAME_LEN + 80)

static void trunk_text(const struct sio_topology *t, unsigned i, char text[TRUNK_TEXT])
{
	const struct sio_topo_trunk *k = &t->trunk[i];

	snprintf(text, TRUNK_TEXT,
		 "from switch '%s', port %u, to '%s', port %u, width %u, generation %u",
		 t->sw[k->sw[0]].name, k->port[0], t->sw[k->sw[1]].name, k->port[1], k->link_width,
		 k->link_generation);
}

static unsigned count_trunk(const struct sio_topology *t, unsigned before, const char *text)
{
	char other[TRUNK_TEXT];
	unsigned n = 0;

	for (unsigned i = 0; i < before; i++) {
		trunk_text(t, i, other);
		n += strcmp(other, text) == 0;
	}
	return n;
}

/* Each that @t has once more than @of has it. */
static void extra_trunks(struct diff *d, const struct sio_topology *t,
			 const struct sio_topology *of, enum sio_topo_how how)
{
	char text[TRUNK_TEXT];

	for (unsigned i = 0; i < t->n_trunks; i++) {
		trunk_text(t, i, text);
		if (count_trunk(t, i, text) >= count_trunk(of, of->n_trunks, text))
			say(d, SIO_TOPO_TRUNK, how, "link %s is %s", text,
			    how == SIO_TOPO_ADDED ? "new" : "gone");
	}
}

bool sio_topology_is_cable(const struct sio_topo_change *c)
{
	static const char *const key[] = {"to", "port", "width", "generation", "latency"};

	if (c->what == SIO_TOPO_SWITCH || c->what == SIO_TOPO_TRUNK)
		return true;
	for (unsigned i = 0; i < sizeof(key) / sizeof(key[0]); i++)
		if (c->what == SIO_TOPO_ADAPTER && c->how == SIO_TOPO_CHANGED &&
		    strcmp(c->key, key[i]) == 0)
			return true;
	return false;
}

bool sio_topology_is_adapter(const struct sio_topo_change *c)
{
	static const char *const key[] = {"window_base", "window", "entries",
					  "requesters",	 "bdf",	   "in"};

	if (c->what != SIO_TOPO_ADAPTER || c->how != SIO_TOPO_CHANGED)
		return c->what == SIO_TOPO_ADAPTER;
	for (unsigned i = 0; i < sizeof(key) / sizeof(key[0]); i++)
		if (strcmp(c->key, key[i]) == 0)
			return true;
	return false;
}

bool sio_topology_is_chassis(const struct sio_topo_change *c)
{
	return c->what == SIO_TOPO_CHASSIS &&
	       (c->how != SIO_TOPO_CHANGED || strcmp(c->key, "in") != 0);
}

/* ---- access and quotas ---- */

static void policy_change(void *ctx, enum sio_policy_change change, const char *text)
{
	static const enum sio_topo_what what[] = {[SIO_POLICY_CHANGE_ACCESS] = SIO_TOPO_ACCESS,
						  [SIO_POLICY_CHANGE_RULE] = SIO_TOPO_RULE,
						  [SIO_POLICY_CHANGE_RULE_GONE] = SIO_TOPO_RULE,
						  [SIO_POLICY_CHANGE_ORDER] = SIO_TOPO_RULE,
						  [SIO_POLICY_CHANGE_NAME] = SIO_TOPO_RULE,
						  [SIO_POLICY_CHANGE_QUOTA] = SIO_TOPO_QUOTA};
	enum sio_topo_how how = change == SIO_POLICY_CHANGE_RULE	? SIO_TOPO_ADDED
				: change == SIO_POLICY_CHANGE_RULE_GONE ? SIO_TOPO_REMOVED
									: SIO_TOPO_CHANGED;

	say(ctx, what[change], how, "%s", text);
}

void sio_topology_diff(const struct sio_topology *old, const struct sio_topology *new,
		       sio_topo_report *tell, void *ctx)
{
	struct diff d = {.old = old, .new = new, .tell = tell, .ctx = ctx, .host = "", .key = ""};

	compare(&d, SIO_TOPO_CLUSTER, "the cluster", cluster_fields, old, new);
	compare_hosts(&d);
	compare_switches(&d);
	extra_trunks(&d, old, new, SIO_TOPO_REMOVED);
	extra_trunks(&d, new, old, SIO_TOPO_ADDED);
	sio_policy_diff(&old->policy, &new->policy, policy_change, &d);
}
