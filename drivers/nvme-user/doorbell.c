/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's mappings of the doorbells: one for each generation of the drive. A reset takes them
 * away, so that no client rings the doorbell of a queue that has the number of its own former
 * queue.
 */
#include <errno.h>
#include <stdlib.h>

#include "client.h"
#include "error.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define DOORBELLS 0x1000u
#define NOTIFY_MS 1000u /* until we are notified of a reset that the manager has been notified of */
#define TRIES 8u	/* to map them between two resets */

static uint32_t generation(const struct smartio_nvme *n)
{
	/* pairs with device_lost() and happened() in libsmartio */
	return __atomic_load_n(n->generation, __ATOMIC_ACQUIRE);
}

static size_t bytes(const struct smartio_nvme *n)
{
	size_t size = (2 * (size_t)n->n_pairs + 2) * n->stride;

	return (size + SIO_NVME_PAGE - 1) & ~(size_t)(SIO_NVME_PAGE - 1);
}

void sio_nvme_doorbells_put(struct sio_nvme_doorbells *b)
{
	sci_error_t err;

	if (!b || --b->users)
		return;
	SCIUnmapSegment(b->map, 0, &err);
	free(b);
}

/*
 * The lender reports a reset before it maps what there is afterwards: so if we have heard of none,
 * there was none between.
 */
static int map_once(struct smartio_nvme *n, struct sio_nvme_doorbells *b)
{
	sci_error_t err;

	b->generation = generation(n);
	b->at = SCIMapRemoteSegment(n->bar, &b->map, DOORBELLS, bytes(n), NULL,
				    SCI_FLAG_IO_MAP_IOSPACE, &err);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s: cannot map its doorbells", n->d.name);
	if (generation(n) == b->generation)
		return 0;
	SCIUnmapSegment(b->map, 0, &err);
	return sio_nvme_fail(-ECONNRESET, "%s was reset while its doorbells were mapped",
			     n->d.name);
}

static int map_doorbells(struct smartio_nvme *n)
{
	struct sio_nvme_doorbells *b = calloc(1, sizeof(*b));
	int rc = -ECONNRESET;

	if (!b)
		return sio_nvme_no_memory("doorbells");
	for (unsigned i = 0; i < TRIES && rc == -ECONNRESET; i++)
		rc = map_once(n, b);
	if (rc) {
		free(b);
		return rc;
	}
	b->sleeps = smartio_map_sleep_word(b->map);
	b->users = 1;
	sio_nvme_doorbells_put(n->doorbells);
	n->doorbells = b;
	return 0;
}

int sio_nvme_doorbells_open(struct smartio_nvme *n)
{
	sci_error_t err;
	size_t bar;

	SCIConnectDeviceSegment(n->d.handle, &n->bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &err);
	if (err != SCI_ERR_OK) {
		n->bar = NULL;
		return sio_nvme_fail_sci(err, "%s: cannot connect BAR 0", n->d.name);
	}
	bar = SCIGetRemoteSegmentSize(n->bar);
	if (bar < DOORBELLS || bar - DOORBELLS < bytes(n))
		return sio_nvme_fail(-EPROTO,
				     "%s: BAR 0 has %zu bytes, too few for the doorbells "
				     "of %u queue pairs",
				     n->d.name, bar, n->n_pairs);
	return map_doorbells(n);
}

void sio_nvme_doorbells_close(struct smartio_nvme *n)
{
	sci_error_t err;

	sio_nvme_doorbells_put(n->doorbells);
	n->doorbells = NULL;
	if (n->bar)
		SIO_NVME_UNTIL_FREE(err, SCIDisconnectSegment(n->bar, 0, &err));
	n->bar = NULL;
}

/* The manager that made the queue knew of a reset: so shall we. */
static int wait_until_notified(const struct smartio_nvme_queue *q)
{
	const struct smartio_nvme *n = q->leg;
	uint64_t deadline = sio_nvme_deadline(NOTIFY_MS);
	unsigned pauses = 0;

	while ((int32_t)(q->generation - generation(n)) > 0 && !smartio_device_lost(n->d.handle)) {
		if (smartio_now_ns() >= deadline)
			return sio_nvme_fail(-ETIMEDOUT, "%s: its lender does not report the reset",
					     n->d.name);
		sio_nvme_pause(&pauses);
	}
	return 0;
}

int sio_nvme_doorbells_take(struct smartio_nvme_queue *q)
{
	struct smartio_nvme *n = q->leg;
	struct sio_nvme_doorbells *b;
	int rc = wait_until_notified(q);

	if (rc == 0 && n->doorbells->generation != generation(n))
		rc = map_doorbells(n);
	if (rc)
		return rc;
	b = q->doorbells = n->doorbells;
	b->users++;
	if (b->generation != q->generation) {
		q->error = -ECONNRESET;
		q->free = NULL;
	}
	/* Generations are even. So rings that must look, and only they, take the long way. */
	q->plain = q->generation | (b->sleeps || q->limit || q->pushes);
	/* Of what is mapped, whatever this manager says. */
	q->sq_doorbell = (volatile uint32_t *)(b->at + 2 * q->id * n->stride);
	q->cq_doorbell = (volatile uint32_t *)(b->at + (2 * q->id + 1) * n->stride);
	if (q->share) {
		q->plain |= 1;
		q->share->sq_doorbell = q->sq_doorbell;
		q->share->cq_doorbell = q->cq_doorbell;
		q->cq_doorbell = &q->share->nobell;
	}
	return 0;
}
