/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that takes the place of another one while the cluster runs: what stays keeps its slot and
 * its addresses, however many devices come and go before it and in whichever order the file lists
 * them; what a file gives goes before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/topodiff.h"
#include "topofile/topofile.h"
#include "../core/prng.h"

#define HOSTS 3
#define DEVICES 8
#define TEXT 4096

static struct sio_topology *parse(const char *text, const struct sio_topology *before)
{
	struct sio_topology *t = NULL;
	struct sio_err err = {0};

	if (sio_topofile_parse_next("next.yaml", text, strlen(text), before, &t, &err) < 0)
		fail_msg("%s\n%s", err.text, text);
	return t;
}

static const struct sio_topo_device *device(const struct sio_topology *t, const char *name)
{
	for (unsigned i = 0; i < t->n_hosts; i++)
		for (unsigned k = 0; k < t->host[i].n_devices; k++)
			if (strcmp(t->host[i].device[k].name, name) == 0)
				return &t->host[i].device[k];
	fail_msg("no device %s", name);
	return NULL;
}

static void assert_same_place(const struct sio_topo_device *a, const struct sio_topo_device *b)
{
	assert_int_equal(a->slot, b->slot);
	assert_int_equal(a->bdf, b->bdf);
	assert_int_equal(a->bar_base, b->bar_base);
}

static const char before_text[] = "cluster: c\n"
				  "hosts:\n"
				  "  a: { devices: { d1: { type: nvme }, d2: { type: nvme } } }\n"
				  "  b: { devices: { e1: { type: nvme } } }\n";

static void what_stays_keeps_its_place(void **state)
{
	static const char text[] =
		"cluster: c\n"
		"hosts:\n"
		"  a: { devices: { d0: { type: nvme, virtual_functions: 3 }, d2: { type: nvme } } }\n"
		"  b: { devices: { f0: { type: memory, size: 4M }, e1: { type: nvme } } }\n";
	struct sio_topology *before = parse(before_text, NULL), *fresh = parse(text, NULL),
			    *t = parse(text, before);

	(void)state;
	/* Else nothing would be shown. */
	assert_int_not_equal(device(fresh, "e1")->bar_base, device(before, "e1")->bar_base);
	assert_int_not_equal(device(fresh, "e1")->slot, device(before, "e1")->slot);
	assert_same_place(device(t, "d2"), device(before, "d2"));
	assert_same_place(device(t, "e1"), device(before, "e1"));
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(t->host[i].ram_base, before->host[i].ram_base);
		assert_int_equal(t->host[i].adapter[0].window_base,
				 before->host[i].adapter[0].window_base);
	}
	assert_int_equal(device(t, "d0")->slot, device(before, "d1")->slot); /* the lowest free */
	assert_int_equal(device(t, "f0")->slot, 2);
	sio_topology_free(before);
	sio_topology_free(fresh);
	sio_topology_free(t);
}

static void what_the_file_gives_goes_before(void **state)
{
	struct sio_topology *before = parse(before_text, NULL), *t;
	char text[TEXT];

	(void)state;
	snprintf(text, sizeof(text),
		 "cluster: c\n"
		 "hosts:\n"
		 "  a: { devices: { new: { type: nvme, slot: 2, bar_base: %llu },\n"
		 "                  d1: { type: nvme }, d2: { type: nvme } } }\n"
		 "  b: { devices: { e1: { type: nvme } } }\n",
		 (unsigned long long)device(before, "d2")->bar_base);
	t = parse(text, before);
	assert_int_equal(device(t, "new")->slot, 2);
	assert_int_equal(device(t, "d2")->slot, 3);
	assert_int_equal(device(t, "new")->bar_base, device(before, "d2")->bar_base);
	assert_int_not_equal(device(t, "d2")->bar_base, device(before, "d2")->bar_base);
	assert_same_place(device(t, "d1"), device(before, "d1"));
	assert_same_place(device(t, "e1"), device(before, "e1"));
	sio_topology_free(before);
	sio_topology_free(t);
}

/* ---- at random ---- */

/* Which devices each host has; 0: none, else 1 more than its virtual functions. */
struct model {
	unsigned device[HOSTS][DEVICES];
};

static void put(char *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(char *out, const char *fmt, ...)
{
	size_t len = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out + len, TEXT - len, fmt, ap);
	va_end(ap);
	assert_true(strlen(out) < TEXT - 1);
}

/* Devices in any order. */
static void write_text(const struct model *m, char text[TEXT])
{
	*text = '\0';
	put(text, "cluster: c\nhosts:\n");
	for (unsigned i = 0; i < HOSTS; i++) {
		unsigned first = (unsigned)prng_below(DEVICES);

		put(text, "  h%u: { ram: 64M, devices: {", i);
		for (unsigned k = 0; k < DEVICES; k++) {
			unsigned at = (first + k * 3) % DEVICES, has = m->device[i][at];

			if (has)
				put(text, " d%u-%u: { type: nvme, virtual_functions: %u },", i, at,
				    has - 1);
		}
		put(text, " } }\n");
	}
}

struct told {
	unsigned added, removed;
};

static void tell(void *ctx, const struct sio_topo_change *c)
{
	struct told *t = ctx;

	if (c->what != SIO_TOPO_DEVICE || c->how == SIO_TOPO_CHANGED)
		fail_msg("%s", c->text);
	if (c->how == SIO_TOPO_ADDED)
		t->added++;
	else
		t->removed++;
}

static void change(struct model *m, struct told *want)
{
	for (unsigned i = 0; i < HOSTS; i++)
		for (unsigned k = 0; k < DEVICES; k++) {
			unsigned *has = &m->device[i][k];

			if (prng_below(3))
				continue;
			want->removed += *has != 0;
			want->added += *has == 0;
			*has = *has ? 0 : 1 + (unsigned)prng_below(3);
		}
}

static void assert_apart(const struct sio_topology *t)
{
	uint64_t base[HOSTS * DEVICES * 4], size[HOSTS * DEVICES * 4];
	unsigned n = 0;

	for (unsigned i = 0; i < t->n_hosts; i++) {
		base[n] = t->host[i].ram_base;
		size[n++] = t->host[i].ram_size;
		base[n] = t->host[i].adapter[0].window_base;
		size[n++] = t->host[i].adapter[0].window_size;
		for (unsigned k = 0; k < t->host[i].n_devices; k++) {
			base[n] = t->host[i].device[k].bar_base;
			size[n++] = sio_topology_bar_space(&t->host[i].device[k]);
		}
	}
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < i; k++)
			assert_true(base[i] >= base[k] + size[k] || base[k] >= base[i] + size[i]);
}

static void only_what_comes_and_goes_is_a_difference(void **state)
{
	struct model m = {0};
	char text[TEXT];
	struct sio_topology *before, *t;
	unsigned rounds = prng_start(23, 300);

	(void)state;
	write_text(&m, text);
	before = parse(text, NULL);
	for (unsigned step = 0; step < rounds; step++) {
		struct told want = {0}, told = {0};

		change(&m, &want);
		write_text(&m, text);
		t = parse(text, before);
		sio_topology_diff(before, t, tell, &told);
		assert_int_equal(told.added, want.added);
		assert_int_equal(told.removed, want.removed);
		assert_apart(t);
		sio_topology_free(before);
		before = t;
	}
	sio_topology_free(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_stays_keeps_its_place),
		cmocka_unit_test(what_the_file_gives_goes_before),
		cmocka_unit_test(only_what_comes_and_goes_is_a_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
