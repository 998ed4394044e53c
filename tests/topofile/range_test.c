/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What chassis pass on: random hosts with chassis in chassis, devices with virtual functions and
 * adapters behind them, some at addresses that the file gives, some in apertures; and files that
 * take the place of others. Each part is compared with each range, and with each other part of all
 * hosts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topofile/topofile.h"
#include "../core/prng.h"

#define HOSTS 3
#define CHASSIS 5
#define DEVICES 7
#define ADAPTERS 3
#define TEXT 16384
#define M (1ull << 20)

/* ---- a random file ---- */

struct model_host {
	unsigned n_chassis, in[CHASSIS]; /* as in the topology */
	uint64_t aperture[CHASSIS];	 /* in M; 0: not said */
	bool device[DEVICES];
	unsigned device_in[DEVICES], functions[DEVICES];
	uint64_t device_at[DEVICES]; /* in M; 0: not said */
	unsigned n_adapters, adapter_in[ADAPTERS], window[ADAPTERS], entries[ADAPTERS];
	uint64_t adapter_at[ADAPTERS];
};

struct model {
	struct model_host host[HOSTS];
	bool given, odd; /* addresses; windows and apertures that are no powers of 2 */
};

static uint64_t power_above(uint64_t n)
{
	uint64_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

/* What is behind a chassis takes at most, in M; of chassis behind it their apertures. */
static uint64_t need(const struct model_host *h, unsigned chassis)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < DEVICES; i++)
		if (h->device[i] && h->device_in[i] == chassis + 1)
			n += 16 * (1 + h->functions[i]);
	for (unsigned i = 0; i < h->n_adapters; i++)
		if (h->adapter_in[i] == chassis + 1)
			n += h->window[i];
	for (unsigned i = chassis + 1; i < h->n_chassis; i++)
		if (h->in[i] == chassis + 1)
			n += h->aperture[i] ? h->aperture[i] : power_above(need(h, i));
	return n;
}

static void draw_host(const struct model *m, struct model_host *h)
{
	memset(h, 0, sizeof(*h));
	h->n_chassis = (unsigned)prng_below(CHASSIS + 1);
	for (unsigned i = 0; i < h->n_chassis; i++)
		h->in[i] = (unsigned)prng_below(i + 1);
	for (unsigned i = 0; i < DEVICES; i++) {
		h->device[i] = prng_chance(60);
		h->device_in[i] = (unsigned)prng_below(h->n_chassis + 1);
		h->functions[i] = prng_chance(30) ? (unsigned)prng_below(4) : 0;
		if (m->given && prng_chance(25))
			h->device_at[i] = 16 * (1 + prng_below(40));
	}
	h->n_adapters = 1 + (unsigned)prng_below(ADAPTERS);
	for (unsigned i = 0; i < h->n_adapters; i++) {
		h->adapter_in[i] = (unsigned)prng_below(h->n_chassis + 1);
		h->entries[i] = m->odd ? 1 + (unsigned)prng_below(5) : 4;
		h->window[i] = h->entries[i] << prng_below(6);
		if (m->given && prng_chance(15))
			h->adapter_at[i] = (h->window[i] / h->entries[i]) * (1 + prng_below(600));
	}
	for (unsigned i = h->n_chassis; i-- > 0;) {
		uint64_t least = power_above(need(h, i));

		if (prng_chance(50))
			h->aperture[i] =
				m->odd ? 1 + least + prng_below(20) : least << prng_below(3);
	}
}

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

static void put_in(char *text, unsigned in, const char *key, uint64_t at)
{
	if (in)
		put(text, ", in: c%u", in - 1);
	if (at)
		put(text, ", %s: %lluM", key, (unsigned long long)at);
	put(text, " }");
}

static void write_text(const struct model *m, char text[TEXT])
{
	*text = '\0';
	put(text, "cluster: c\nhosts:\n");
	for (unsigned i = 0; i < HOSTS; i++) {
		const struct model_host *h = &m->host[i];

		put(text, "  h%u:\n    ram: 64M\n    chassis:\n", i);
		for (unsigned k = 0; k < h->n_chassis; k++) {
			put(text, "      c%u: { width: 8", k);
			put_in(text, h->in[k], "aperture", h->aperture[k]);
			put(text, "\n");
		}
		if (!h->n_chassis)
			put(text, "      unused:\n");
		put(text, "    adapters:\n");
		for (unsigned k = 0; k < h->n_adapters; k++) {
			put(text, "      - { window: %uM, entries: %u", h->window[k],
			    h->entries[k]);
			put_in(text, h->adapter_in[k], "window_base", h->adapter_at[k]);
			put(text, "\n");
		}
		put(text, "    devices:\n");
		for (unsigned k = 0; k < DEVICES; k++) {
			if (!h->device[k])
				continue;
			put(text, "      d%u-%u: { type: nvme, virtual_functions: %u", i, k,
			    h->functions[k]);
			put_in(text, h->device_in[k], "bar_base", h->device_at[k]);
			put(text, "\n");
		}
		put(text, "      d%u: { type: nvme }\n", i); /* no mapping is empty */
	}
}

/* ---- brute force ---- */

struct part {
	unsigned host, in;
	uint64_t base, size, align;
	bool given;
};

#define PARTS (HOSTS * (1 + ADAPTERS + 8 * (DEVICES + 1)))

static bool is_given(const struct model *m, unsigned host, const struct sio_topo_host *h,
		     const struct sio_topo_device *dev)
{
	const char *name = dev->physical ? h->device[dev->physical - 1].name : dev->name;
	const char *number = strchr(name, '-');

	/* Of virtual functions the file places the physical one alone. */
	return number && !dev->physical && m->host[host].device_at[atoi(number + 1)];
}

static unsigned list(const struct model *m, const struct sio_topology *t, struct part *part)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->n_hosts; i++) {
		const struct sio_topo_host *h = &t->host[i];

		part[n++] = (struct part){i, 0, h->ram_base, h->ram_size, 1 << 30, false};
		for (unsigned k = 0; k < h->n_adapters; k++)
			part[n++] = (struct part){i,
						  h->adapter[k].in,
						  h->adapter[k].window_base,
						  h->adapter[k].window_size,
						  power_above(h->adapter[k].window_size),
						  m->host[i].adapter_at[k] != 0};
		for (unsigned k = 0; k < h->n_devices; k++)
			part[n++] = (struct part){
				i,	h->device[k].in, h->device[k].bar_base,
				16 * M, 16 * M,		 is_given(m, i, h, &h->device[k])};
	}
	assert_true(n <= PARTS);
	return n;
}

static bool apart(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a + a_size <= b || b + b_size <= a;
}

static bool behind(const struct sio_topo_host *h, unsigned in, unsigned chassis)
{
	while (in && in != chassis + 1)
		in = h->chassis[in - 1].in;
	return in != 0;
}

static bool inside(uint64_t base, uint64_t size, const struct sio_topo_chassis *c)
{
	return base >= c->range_base && base + size <= c->range_base + c->range_size;
}

/* Where nothing is given all is at round addresses, and nothing is longer than it must be. */
static void check_size(const struct sio_topo_host *h, unsigned index, const struct part *part,
		       unsigned n, bool fresh)
{
	const struct sio_topo_chassis *c = &h->chassis[index];
	bool given = false, odd = false;
	uint64_t sum = 0, largest = M;

	for (unsigned i = 0; i < n; i++) {
		if (!behind(h, part[i].in, index))
			continue;
		given |= part[i].given;
		sum += part[i].size;
		odd |= part[i].size % part[i].align != 0;
		if (part[i].align > largest)
			largest = part[i].align;
	}
	for (unsigned i = index + 1; i < h->n_chassis; i++)
		odd |= behind(h, i + 1, index);
	if (c->aperture)
		assert_int_equal(c->range_size, c->aperture);
	else if (!odd && !given && fresh) /* no gaps but at its end */
		assert_int_equal(c->range_size, (sum + largest - 1) / largest * largest);
	if (c->range_size && !given && fresh)
		assert_int_equal(c->range_base & ((c->range_size & -c->range_size) - 1), 0);
	assert_true(c->range_base + c->range_size <= 4096 * M * M);
}

static void check_range(const struct sio_topo_host *h, unsigned index, const struct part *part,
			unsigned n, bool fresh)
{
	const struct sio_topo_chassis *c = &h->chassis[index];

	for (unsigned i = 0; i < n; i++) {
		if (behind(h, part[i].in, index))
			assert_true(inside(part[i].base, part[i].size, c));
		else if (c->range_size)
			assert_true(
				apart(part[i].base, part[i].size, c->range_base, c->range_size));
	}
	for (unsigned i = 0; i < h->n_chassis; i++) {
		const struct sio_topo_chassis *o = &h->chassis[i];

		if (!o->range_size || i == index)
			continue;
		if (behind(h, i + 1, index))
			assert_true(inside(o->range_base, o->range_size, c));
		else if (!behind(h, index + 1, i) && c->range_size)
			assert_true(
				apart(o->range_base, o->range_size, c->range_base, c->range_size));
	}
	check_size(h, index, part, n, fresh);
}

/* @fresh: nothing was in force before. */
static void check(const struct model *m, const struct sio_topology *t, bool fresh)
{
	struct part part[PARTS];
	unsigned n = list(m, t, part);

	for (unsigned i = 0; i < n; i++) {
		assert_true(part[i].base >= M);
		if (!part[i].given && !m->given)
			assert_int_equal(part[i].base % part[i].align, 0);
		for (unsigned k = 0; k < i; k++)
			if (part[i].host == part[k].host || !m->given)
				assert_true(apart(part[i].base, part[i].size, part[k].base,
						  part[k].size));
	}
	for (unsigned i = 0; i < t->n_hosts; i++) {
		struct part own[PARTS];
		unsigned n_own = 0;

		for (unsigned k = 0; k < n; k++)
			if (part[k].host == i)
				own[n_own++] = part[k];
		for (unsigned k = 0; k < t->host[i].n_chassis; k++)
			check_range(&t->host[i], k, own, n_own, fresh);
	}
}

/* What the file does not give is not where another host has anything, given or not. */
static void check_other_hosts(const struct model *m, const struct sio_topology *t)
{
	struct part part[PARTS];
	unsigned n = list(m, t, part);

	for (unsigned i = 0; i < n; i++) {
		bool function = false;

		/* The functions of a drive that the file places are where it is. */
		for (unsigned k = 0; k < DEVICES; k++)
			function |= m->host[part[i].host].device_at[k] != 0 &&
				    m->host[part[i].host].functions[k] != 0;
		for (unsigned k = 0; !part[i].given && !function && k < n; k++)
			if (part[k].host != part[i].host)
				assert_true(apart(part[i].base, part[i].size, part[k].base,
						  part[k].size));
	}
}

/* ---- tests ---- */

static struct sio_topology *parse(const char *text, const struct sio_topology *before,
				  struct sio_err *err)
{
	struct sio_topology *t = NULL;

	*err = (struct sio_err){.code = 0};
	if (sio_topofile_parse_next("r.yaml", text, strlen(text), before, &t, err) < 0)
		return NULL;
	return t;
}

static void assert_says(const struct sio_err *err, const char *text)
{
	if (strncmp(err->text, "r.yaml:", 7) != 0 || !strstr(err->text, ": key 'hosts.") ||
	    (!strstr(err->text, "is right") && !strstr(err->text, "are right")))
		fail_msg("%s\n%s", err->text, text);
}

static void draw(struct model *m, bool given, bool odd)
{
	*m = (struct model){.given = given, .odd = odd};
	for (unsigned i = 0; i < HOSTS; i++)
		draw_host(m, &m->host[i]);
}

static void assert_same(const struct sio_topology *a, const struct sio_topology *b)
{
	struct model none = {.given = false};
	struct part x[PARTS], y[PARTS];
	unsigned n = list(&none, a, x);

	assert_int_equal(list(&none, b, y), n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(x[i].base, y[i].base);
}

/* Where the file gives no address, and all sizes are powers of 2, all fits that fits by its sum. */
static void all_fits_that_is_not_given(void **state)
{
	unsigned rounds = prng_start(31, 2000);
	char text[TEXT];
	struct sio_err err;
	struct model m;

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		struct sio_topology *t, *again;

		draw(&m, false, false);
		write_text(&m, text);
		t = parse(text, NULL, &err);
		again = parse(text, NULL, &err);
		if (!t || !again)
			fail_msg("round %u: %s\n%s", i, err.text, text);
		check(&m, t, true);
		check_other_hosts(&m, t);
		assert_same(t, again);
		sio_topology_free(t);
		sio_topology_free(again);
	}
}

/* Either all is as it has to be, or the error says what is not. */
static void around_what_is_given(void **state)
{
	unsigned rounds = prng_start(32, 4000), good = 0, room = 0;
	char text[TEXT];
	struct sio_err err;
	struct model m;

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		struct sio_topology *t;

		draw(&m, i % 4 != 0, i % 2);
		write_text(&m, text);
		t = parse(text, NULL, &err);
		if (!t) {
			assert_says(&err, text);
			room += strstr(err.text, "no room for its") != NULL;
			continue;
		}
		good++;
		check(&m, t, true);
		check_other_hosts(&m, t);
		sio_topology_free(t);
	}
	print_message("# %u good, %u without room\n", good, room);
	assert_true(good > rounds / 10);
	assert_true(room > 0);
}

/* @with_chassis: one in another may have got another aperture, around which the other grows. */
static void assert_kept(const struct sio_topology *before, const struct sio_topology *t,
			bool with_chassis)
{
	for (unsigned i = 0; i < HOSTS; i++) {
		const struct sio_topo_host *was = &before->host[i], *is = &t->host[i];

		assert_int_equal(was->ram_base, is->ram_base);
		for (unsigned k = 0; k < was->n_adapters; k++)
			assert_int_equal(was->adapter[k].window_base, is->adapter[k].window_base);
		for (unsigned k = 0; k < was->n_chassis && k < is->n_chassis; k++) {
			const struct sio_topo_chassis *a = &was->chassis[k], *b = &is->chassis[k];

			if (strcmp(a->name, b->name) != 0 || a->aperture != b->aperture)
				continue;
			if (a->range_size)
				assert_true(inside(a->range_base, a->range_size, b));
			if (a->range_size && (a->aperture || !with_chassis))
				assert_int_equal(a->range_base, b->range_base);
		}
		for (unsigned k = 0; k < was->n_devices; k++)
			for (unsigned j = 0; j < is->n_devices; j++)
				if (strcmp(was->device[k].name, is->device[j].name) == 0)
					assert_int_equal(was->device[k].bar_base,
							 is->device[j].bar_base);
	}
}

static bool is_empty(const struct model_host *h, unsigned chassis)
{
	for (unsigned i = 0; i < h->n_adapters; i++)
		if (h->adapter_in[i] == chassis + 1)
			return false;
	for (unsigned i = chassis + 1; i < h->n_chassis; i++)
		if (h->in[i] == chassis + 1)
			return false;
	return true;
}

/* Chassis come and go, with all devices in them, and apertures are others. */
static void change_chassis(struct model_host *h)
{
	unsigned last = h->n_chassis - 1;

	if (h->n_chassis && prng_chance(25) && is_empty(h, last)) {
		h->n_chassis--;
		for (unsigned i = 0; i < DEVICES; i++)
			if (h->device_in[i] == last + 1) {
				h->device[i] = false;
				h->device_in[i] = (unsigned)prng_below(h->n_chassis + 1);
			}
	} else if (h->n_chassis < CHASSIS && prng_chance(25)) {
		h->in[h->n_chassis] = (unsigned)prng_below(h->n_chassis + 1);
		h->aperture[h->n_chassis++] = prng_chance(50) ? 16ull << prng_below(3) : 0;
		for (unsigned i = 0; i < DEVICES; i++)
			if (!h->device[i] && prng_chance(30))
				h->device_in[i] = h->n_chassis;
	}
	for (unsigned i = 0; i < h->n_chassis; i++)
		if (prng_chance(5))
			h->aperture[i] = prng_chance(70) ? 16ull << prng_below(6) : 0;
}

/* What stays, and what chassis pass on, stays where it is. */
static void assert_stays(unsigned seed, bool with_chassis)
{
	unsigned rounds = prng_start(seed, 1500), kept = 0, refused = 0;
	struct sio_topology *before = NULL;
	char text[TEXT];
	struct sio_err err;
	struct model m, next;

	for (unsigned i = 0; i < rounds; i++) {
		struct sio_topology *t;

		if (i % 15 == 0) {
			sio_topology_free(before);
			draw(&m, false, false);
			write_text(&m, text);
			before = parse(text, NULL, &err);
			assert_non_null(before);
		}
		next = m;
		for (unsigned k = 0; with_chassis && k < HOSTS; k++)
			change_chassis(&next.host[k]);
		for (unsigned k = 0; k < HOSTS * DEVICES; k++)
			next.host[k / DEVICES].device[k % DEVICES] ^= prng_chance(15);
		for (unsigned k = 0; k < HOSTS * DEVICES; k++)
			if (m.host[k / DEVICES].device_in[k % DEVICES] !=
			    next.host[k / DEVICES].device_in[k % DEVICES])
				next.host[k / DEVICES].device[k % DEVICES] &=
					!m.host[k / DEVICES].device[k % DEVICES];
		write_text(&next, text);
		t = parse(text, before, &err);
		if (!t) {
			assert_says(&err, text);
			refused++;
			continue;
		}
		kept++;
		check(&next, t, false);
		check_other_hosts(&next, t);
		assert_kept(before, t, with_chassis);
		sio_topology_free(before);
		before = t;
		m = next;
	}
	sio_topology_free(before);
	print_message("# %u taken, %u refused\n", kept, refused);
	assert_true(kept > rounds / 10);
	assert_true(refused > 0);
}

static void devices_come_and_go(void **state)
{
	(void)state;
	assert_stays(33, false);
}

static void chassis_come_and_go(void **state)
{
	(void)state;
	assert_stays(34, true);
}

static struct sio_topology *take(const char *text, const struct sio_topology *before)
{
	struct sio_err err;
	struct sio_topology *t = parse(text, before, &err);

	if (!t)
		fail_msg("%s\n%s", err.text, text);
	return t;
}

/* With an aperture there is room for more; without, what follows may be in the way. */
static void an_aperture_keeps_room(void **state)
{
	static const char *const text[] = {
		"cluster: c\nhosts:\n  a: { chassis: { box: { aperture: %s }, shelf: },\n"
		"       devices: { d: { type: nvme, in: box }, f: { type: nvme, in: shelf }%s } }\n",
	};
	const char *aperture[] = {"16M", "32M"};
	struct sio_topology *before, *t;
	char first[512], second[512];
	struct sio_err err;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		snprintf(first, sizeof(first), text[0], aperture[i], "");
		snprintf(second, sizeof(second), text[0], aperture[i],
			 ",\n e: { type: nvme, in: box }");
		before = take(first, NULL);
		t = parse(second, before, &err);
		if (i) {
			assert_non_null(t);
			assert_true(inside(t->host[0].device[2].bar_base, 16 * M,
					   &before->host[0].chassis[0]));
		} else {
			assert_null(t);
			assert_non_null(strstr(err.text, "hosts.a.chassis.box.aperture"));
		}
		sio_topology_free(before);
		sio_topology_free(t);
	}
}

/* "%llu" in @more: where the first chassis' range, or the first device, was, and @plus M. */
struct refusal {
	const char *chassis, *devices, *more, *text;
	bool of_device;
	int plus[2];
};

static const struct refusal refusals[] = {
	{"box: {}, shelf: {}",
	 "d: { type: nvme, in: box }, f: { type: nvme, in: shelf }",
	 "e: { type: nvme, in: box }",
	 "key 'hosts.a.devices.e.in': value 'box': no room left for its 16M in chassis 'box', whose "
	 "addresses stay as they are while the cluster runs; an 'aperture' with room for it, from "
	 "the next start on, is right",
	 false,
	 {0}},
	{"box: { aperture: 64M }",
	 "d: { type: nvme, in: box }",
	 "e: { type: nvme, bar_base: %llu }",
	 "that chassis 'box' passes on; an address outside is right",
	 false,
	 {32}},
	{"box: { aperture: 64M }",
	 "d: { type: nvme, in: box }",
	 "e: { type: nvme, in: box, bar_base: %llu }",
	 "key 'hosts.a.chassis.box.aperture': value '64M': too little: what is behind it lies from "
	 "0x",
	 false,
	 {128}},
	{"shelf: {}, box: {}",
	 "d: { type: nvme, in: shelf }",
	 "e: { type: nvme, in: box, bar_base: %llu }, g: { type: nvme, in: box, bar_base: %llu }",
	 "key \'hosts.a.chassis.shelf\': what is behind it lies from 0x180000000 to 0x181000000, "
	 "and hosts.a.chassis.box, which is not, lies there, too; what is in force stays while "
	 "the cluster runs, and addresses beside that are right",
	 false,
	 {-16, 16}},
	{"box: {}",
	 "d: { type: nvme }",
	 "e: { type: nvme, in: box, bar_base: %llu }, g: { type: nvme, in: box, bar_base: %llu }",
	 "and devices.d.bar_base, which is not, lies there, too; what is in force stays while the "
	 "cluster runs, and addresses beside that are right",
	 true,
	 {-16, 16}},
	{"shelf: { aperture: 32M }, box: {}",
	 "d: { type: nvme }",
	 "e: { type: nvme, in: box, bar_base: %llu }, g: { type: nvme, in: box, bar_base: %llu }",
	 "and hosts.a.chassis.box, which is not, lies there, too; what is in force stays while "
	 "the cluster runs, and addresses beside that are right",
	 false,
	 {-16, 32}},
};

static void what_has_no_room_is_refused(void **state)
{
	static const char host[] = "cluster: c\nhosts:\n  a: { chassis: { %s },\n"
				   "       devices: { %s%s%s } }\n";
	char text[1024], more[512];
	struct sio_err err;

	(void)state;
	for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *r = &refusals[i];
		struct sio_topology *before, *t;
		unsigned long long base;

		snprintf(text, sizeof(text), host, r->chassis, r->devices, "", "");
		before = take(text, NULL);
		base = r->of_device ? before->host[0].device[0].bar_base
				    : before->host[0].chassis[0].range_base;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(more, sizeof(more), r->more,
			 base + (unsigned long long)(r->plus[0] * (long long)M),
			 base + (unsigned long long)(r->plus[1] * (long long)M));
#pragma GCC diagnostic pop
		snprintf(text, sizeof(text), host, r->chassis, r->devices, ", ", more);
		t = parse(text, before, &err);
		if (t || !strstr(err.text, r->text))
			fail_msg("%s\n%s", t ? "taken" : err.text, text);
		sio_topology_free(before);
	}
}

/* What is behind a chassis stays where it is when that passes on more, or less, around it. */
static void another_aperture_is_laid_around_what_is_there(void **state)
{
	static const char text[] = "cluster: c\nhosts:\n  a: { chassis: { box: { %s } },\n"
				   "       devices: { d: { type: nvme, in: box }%s } }\n";
	static const struct {
		const char *aperture, *more;
		uint64_t size;
	} next[] = {{"aperture: 32M", "", 32 * M},
		    {"aperture: 128M", ", e: { type: nvme, in: box }", 128 * M},
		    {"aperture: 32M", ", e: { type: nvme, in: box }", 32 * M},
		    {"", "", 32 * M}};
	char file[512];
	struct sio_topology *before;

	(void)state;
	snprintf(file, sizeof(file), text, "aperture: 64M", "");
	before = take(file, NULL);
	for (unsigned i = 0; i < sizeof(next) / sizeof(next[0]); i++) {
		struct sio_topology *t;

		snprintf(file, sizeof(file), text, next[i].aperture, next[i].more);
		t = take(file, before);
		assert_int_equal(t->host[0].ram_base, before->host[0].ram_base);
		assert_int_equal(t->host[0].device[0].bar_base, before->host[0].device[0].bar_base);
		for (unsigned k = 0; k < t->host[0].n_devices; k++)
			assert_true(inside(t->host[0].device[k].bar_base, 16 * M,
					   &t->host[0].chassis[0]));
		if (*next[i].aperture)
			assert_int_equal(t->host[0].chassis[0].range_size, next[i].size);
		sio_topology_free(before);
		before = t;
	}
	sio_topology_free(before);
}

/* Behind another chassis it is somewhere else: nothing is kept for it. */
static void behind_other_bridges_nothing_is_kept(void **state)
{
	static const char text[] = "cluster: c\nhosts:\n  a: { chassis: { top: { aperture: 64M },\n"
				   "       box: { %saperture: 32M } },\n"
				   "       devices: { d: { type: nvme, in: box } } }\n";
	struct sio_topology *t[2];
	char file[512];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		snprintf(file, sizeof(file), text, i ? "in: top, " : "");
		t[i] = take(file, i ? t[0] : NULL);
	}
	assert_int_not_equal(t[1]->host[0].device[0].bar_base, t[0]->host[0].device[0].bar_base);
	assert_true(inside(t[1]->host[0].device[0].bar_base, 16 * M, &t[1]->host[0].chassis[1]));
	assert_true(inside(t[1]->host[0].chassis[1].range_base, 32 * M, &t[1]->host[0].chassis[0]));
	assert_int_equal(t[1]->host[0].chassis[0].range_base, t[0]->host[0].chassis[0].range_base);
	sio_topology_free(t[0]);
	sio_topology_free(t[1]);
}

/*
 * Where the file gives two hosts the same addresses, their chassis pass on the same ones: each has
 * the room of its aperture all the same, in places of its own, and no more than that.
 */
static void the_same_addresses_share_their_room(void **state)
{
	static const char *const more[] = {
		"", "f: { type: nvme, in: box }", "f: { type: nvme, in: box }, g: { type: nvme }",
		"f: { type: nvme, in: box }, g: { type: nvme, in: box }"};
	struct sio_topology *t = NULL;
	char text[1024];
	struct sio_err err;

	(void)state;
	for (unsigned i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		struct sio_topology *next;

		snprintf(text, sizeof(text),
			 "cluster: c\nhosts:\n"
			 "  a: { chassis: { box: { aperture: 32M } },\n"
			 "       devices: { d: { type: nvme, in: box, bar_base: 1G } } }\n"
			 "  b: { chassis: { box: { aperture: 32M } },\n"
			 "       devices: { e: { type: nvme, in: box, bar_base: 1G }%s%s } }\n",
			 *more[i] ? ", " : "", more[i]);
		next = parse(text, t, &err);
		if (i == 3) {
			assert_null(next);
			assert_non_null(strstr(err.text, "hosts.b.chassis.box.aperture"));
			break;
		}
		if (!next)
			fail_msg("%s\n%s", err.text, text);
		for (unsigned host = 0; host < 2; host++) {
			assert_int_equal(next->host[host].chassis[0].range_base, 1024 * M);
			assert_int_equal(next->host[host].chassis[0].range_size, 32 * M);
		}
		if (i)
			assert_int_equal(next->host[1].device[1].bar_base, (1024 + 16) * M);
		sio_topology_free(t);
		t = next;
	}
	sio_topology_free(t);
}

/* Chassis are the same ones by their names, wherever in the file they are. */
static void chassis_in_another_order_keep_their_addresses(void **state)
{
	static const char *const order[] = {"box: { aperture: 64M }, shelf: { in: box }, far: {}",
					    "far: {}, box: { aperture: 64M }, shelf: { in: box }"};
	struct sio_topology *t[2] = {NULL, NULL};
	char text[1024];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		snprintf(
			text, sizeof(text),
			"cluster: c\nhosts:\n  a: { chassis: { %s },\n"
			"       adapters: [ { window: 16M, entries: 4, in: far } ],\n"
			"       devices: { d: { type: nvme, in: shelf }, e: { type: nvme, in: box },\n"
			"                  f: { type: nvme, in: far }, g: { type: nvme } } }\n",
			order[i]);
		t[i] = take(text, t[0]);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(t[0]->host[0].device[i].bar_base,
				 t[1]->host[0].device[i].bar_base);
	assert_int_equal(t[0]->host[0].adapter[0].window_base,
			 t[1]->host[0].adapter[0].window_base);
	for (unsigned i = 0; i < 3; i++) {
		const struct sio_topo_chassis *a = &t[0]->host[0].chassis[i];
		const struct sio_topo_chassis *b = &t[1]->host[0].chassis[(i + 1) % 3];

		assert_string_equal(a->name, b->name);
		assert_int_equal(a->range_base, b->range_base);
		assert_int_equal(a->range_size, b->range_size);
	}
	sio_topology_free(t[0]);
	sio_topology_free(t[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_fits_that_is_not_given),
		cmocka_unit_test(around_what_is_given),
		cmocka_unit_test(devices_come_and_go),
		cmocka_unit_test(chassis_come_and_go),
		cmocka_unit_test(an_aperture_keeps_room),
		cmocka_unit_test(what_has_no_room_is_refused),
		cmocka_unit_test(another_aperture_is_laid_around_what_is_there),
		cmocka_unit_test(behind_other_bridges_nothing_is_kept),
		cmocka_unit_test(the_same_addresses_share_their_room),
		cmocka_unit_test(chassis_in_another_order_keep_their_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
