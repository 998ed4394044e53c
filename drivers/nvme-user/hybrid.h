/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For how long a wait of a queue polls before it sleeps. Pure logic: no clock, no call.
 *
 * A wait that knows nothing of when its completion comes does best to poll for as long as a sleep
 * costs, and to sleep then: that costs no more than twice what the better of both would have. What
 * a sleep adds to a wait is measured: the shortest of the waits that slept at once, less the
 * shortest of those that polling ended. The drive takes the same time in both, so what is left is
 * the way into the sleep and out of it, most of which the processor spends, too. So a sleep is
 * taken to cost twice that: latency, and processor time. A few waits of each period are spent on
 * measuring: those that poll long may poll for all of a wait in vain.
 */
#ifndef NVME_USER_HYBRID_H
#define NVME_USER_HYBRID_H

#include <stdbool.h>
#include <stdint.h>

#define SIO_NVME_HYBRID_PERIOD                                                                     \
	1024u /* waits, after which what was measured before them is forgotten */
#define SIO_NVME_HYBRID_PROBES 4u /* of them: that sleep at once; as many poll long */
#define SIO_NVME_HYBRID_REST 64u  /* most waits in a row that do not poll because it was in vain */

enum sio_nvme_hybrid_way {
	/* At once. What is measured must be a sleep, so no old interrupt may be left. */
	SIO_NVME_HYBRID_SLEEPS,
	SIO_NVME_HYBRID_POLLS,	    /* first */
	SIO_NVME_HYBRID_POLLS_LONG, /* to measure how long that takes */
};

/* Nanoseconds of the shortest waits; UINT64_MAX: there was none. */
struct sio_nvme_hybrid_times {
	uint64_t slept, polled;
};

struct sio_nvme_hybrid {
	uint64_t given_ns;	      /* how long each wait polls; 0: as long as a sleep costs */
	enum sio_nvme_hybrid_way way; /* of the wait that has begun */
	uint32_t waits;		      /* of this period */
	struct sio_nvme_hybrid_times now, before; /* of this period, and of the one before */
	uint32_t rest,
		left; /* waits that do not poll after one that did in vain; of them to come */
};

/* @given_ns: 0: as long as a sleep costs. */
void sio_nvme_hybrid_start(struct sio_nvme_hybrid *h, uint64_t given_ns);
/* A wait begins, for there is no completion. Return: nanoseconds to poll for; 0: it sleeps. */
uint64_t sio_nvme_hybrid_begin(struct sio_nvme_hybrid *h);
/*
 * The wait has found a completion, after @took_ns in all. @slept: it slept for it. A wait that ends
 * with an error is not reported.
 */
void sio_nvme_hybrid_end(struct sio_nvme_hybrid *h, bool slept, uint64_t took_ns);
/* The wait has found none in its time: if it polled, that was in vain. */
void sio_nvme_hybrid_timeout(struct sio_nvme_hybrid *h);

#endif
