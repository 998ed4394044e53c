/* SPDX-License-Identifier: BSD-2-Clause */
#include "hybrid.h"

#define SLEEP_COSTS 2u /* what it adds to a wait, and as much of the processor's time */

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void forget(struct sio_nvme_hybrid_times *t)
{
	t->slept = t->polled = UINT64_MAX;
}

void sio_nvme_hybrid_start(struct sio_nvme_hybrid *h, uint64_t given_ns)
{
	*h = (struct sio_nvme_hybrid){.given_ns = given_ns};
	forget(&h->now);
	forget(&h->before);
}

static void count(struct sio_nvme_hybrid *h)
{
	if (h->waits++ < SIO_NVME_HYBRID_PERIOD)
		return;
	h->waits = 1;
	h->before = h->now;
	forget(&h->now);
}

static enum sio_nvme_hybrid_way choose(struct sio_nvme_hybrid *h, uint64_t slept, uint64_t polled)
{
	if (h->waits <= SIO_NVME_HYBRID_PROBES || slept == UINT64_MAX)
		return SIO_NVME_HYBRID_SLEEPS;
	if (h->left) {
		h->left--;
		return SIO_NVME_HYBRID_SLEEPS;
	}
	if (h->waits <= 2 * SIO_NVME_HYBRID_PROBES || polled == UINT64_MAX)
		return SIO_NVME_HYBRID_POLLS_LONG;
	return polled < slept ? SIO_NVME_HYBRID_POLLS : SIO_NVME_HYBRID_SLEEPS;
}

uint64_t sio_nvme_hybrid_begin(struct sio_nvme_hybrid *h)
{
	uint64_t slept, polled;

	h->way = SIO_NVME_HYBRID_POLLS;
	if (h->given_ns)
		return h->given_ns;
	count(h);
	slept = lesser(h->now.slept, h->before.slept);
	polled = lesser(h->now.polled, h->before.polled);
	h->way = choose(h, slept, polled);
	if (h->way == SIO_NVME_HYBRID_POLLS)
		return SLEEP_COSTS * (slept - polled);
	/* What comes at all comes about as fast as what was slept for. */
	return h->way == SIO_NVME_HYBRID_POLLS_LONG ? slept : 0;
}

static void in_vain(struct sio_nvme_hybrid *h)
{
	h->rest = h->rest ? 2 * h->rest : 1;
	if (h->rest > SIO_NVME_HYBRID_REST)
		h->rest = SIO_NVME_HYBRID_REST;
	h->left = h->rest;
}

void sio_nvme_hybrid_timeout(struct sio_nvme_hybrid *h)
{
	if (h->way != SIO_NVME_HYBRID_SLEEPS)
		in_vain(h);
}

void sio_nvme_hybrid_end(struct sio_nvme_hybrid *h, bool slept, uint64_t took_ns)
{
	if (h->way == SIO_NVME_HYBRID_SLEEPS) {
		if (slept)
			h->now.slept = lesser(h->now.slept, took_ns);
		return;
	}
	if (!slept) {
		h->now.polled = lesser(h->now.polled, took_ns);
		h->rest = h->left = 0;
		return;
	}
	in_vain(h);
}
