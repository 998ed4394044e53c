/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "memory_world.h"

void memory_hold(struct world *w, struct world_client *c, struct memory_holder *h)
{
	uint32_t access[4];

	memset(h, 0, sizeof(*h));
	call_borrow(w, c, FDID, 0, &h->b);
	call_dev_seg_connect(w, c, h->b.handle, 0, SCI_MEMTYPE_BAR, &h->bar, NULL);
	call_bar_map(w, c, h->bar, 0, &h->map, access);
	call_dev_seg_connect(w, c, h->b.handle, 2, SCI_MEMTYPE_BAR, &h->memory, NULL);
}

static void maybe_cut(struct world *w, void *arg)
{
	struct memory_run *r = arg;

	if (r->left == 0 || --r->left)
		return;
	switch (r->cut) {
	case MEMORY_KILL:
		world_kill(w, r->c);
		break;
	case MEMORY_CRASH_BORROWER:
		world_crash(w, r->host);
		break;
	case MEMORY_CRASH_LENDER:
		world_crash(w, 0);
		break;
	case MEMORY_LINK_DOWN:
		world_link(w, 0, r->host, false);
		break;
	case MEMORY_CUT_OFF:
		world_cut(w, 0, r->host);
		break;
	case MEMORY_PULL_OUT:
		fake_device_move(w, false);
		break;
	case MEMORY_CUTS:
		break;
	}
}

void memory_start(struct memory_run *r, unsigned host, uint64_t seed)
{
	*r = (struct memory_run){.host = host, .w = world_new(3, seed)};
	fake_device_add(r->w, &r->fake);
	r->fake.cmb = 4 * PAGE;
	world_start(r->w);
	r->c = world_client(r->w, host, SIO_CLIENT_LIBRARY);
}

void memory_end(struct memory_run *r)
{
	struct world *w = r->w;

	for (unsigned i = 0; i < w->n_clients; i++)
		world_kill(w, &w->client[i]);
	world_run(w);
	for (unsigned i = 0; i < w->n_hosts; i++)
		if (!w->host[i].daemon)
			world_boot(w, i);
	if (r->host)
		world_link(w, 0, r->host, true);
	fake_device_move(w, true);
	world_pass(w, 100000000);
	call_last_reset(w, FDID);
	assert_nothing_left(w);
	if (!r->refused) /* what the port does not free is left in use */
		assert_int_equal(r->fake.bad, 0);
	assert_int_equal(w->wild, 0);
	world_free(w);
}

/* Return: it had as many events. */
static bool cut_at(enum memory_cut cut, unsigned host, uint64_t n, uint64_t seed, memory_play *play,
		   unsigned whole)
{
	struct memory_run r;
	unsigned done;
	bool happened;

	memory_start(&r, host, seed);
	r.cut = cut;
	r.left = n;
	r.w->before_step = maybe_cut;
	r.w->before_arg = &r;
	done = play(r.w, r.c);
	happened = r.left == 0;
	if (!happened)
		assert_int_equal(done, whole);
	r.left = 0;
	memory_end(&r);
	return happened;
}

void memory_cut_everywhere(enum memory_cut cut, memory_play *play, unsigned whole)
{
	for (unsigned host = cut == MEMORY_LINK_DOWN || cut == MEMORY_CUT_OFF; host < 2; host++)
		for (uint64_t seed = 0; seed < 2; seed++) {
			uint64_t n = 1;

			while (cut_at(cut, host, n, seed, play, whole))
				n++;
			assert_true(n > 30);
		}
}

void memory_refuse_everywhere(memory_play *play)
{
	for (unsigned host = 0; host < 2; host++) {
		uint64_t n = 0, last;
		struct memory_run r;

		do {
			memory_start(&r, host, 0);
			r.w->fail_at = r.w->requests + ++n;
			last = r.w->fail_at;
			play(r.w, r.c);
			last = r.w->requests - (last - n);
			r.w->fail_at = 0;
			r.refused = true;
			memory_end(&r);
		} while (n <= last);
		assert_true(n > 15);
	}
}
