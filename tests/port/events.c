/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event descriptors as a hostile program leaves them: it has taken O_NONBLOCK away, which the
 * world's copy shares, and filled the counter. A transfer that ends then must stop nobody.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "port.h"
#include "smartio/io.h"

#define FULL 0xfffffffffffffffeull
#define PATIENCE_S 60

/* A channel of host 0: its ring, doorbell and completion event. 0; 1: a check failed. */
static int open_channel(struct port_world *w, uint64_t *ret_id, int *fds)
{
	union port_packet req, answer;
	unsigned n = 0;
	long len;

	port_good(w, SIO_OP_DMA, &req);
	req.req.cookie = ++w->cookie;
	if (w->t->send(w->ctx, 0, &req, req.req.size, NULL, 0))
		return port_failed(w, "no channel can be asked for");
	do
		len = w->t->event(w->ctx, 0, &answer, sizeof(answer), fds, &n);
	while (len > 0 && answer.evt.cookie != w->cookie);
	if (len <= 0 || answer.evt.error || n != 3)
		return port_failed(w, "no channel: %s", len > 0 ? answer.error.text : "no answer");
	*ret_id = ((const struct sio_evt_dma *)(const void *)&answer)->id;
	return 0;
}

/* One more transfer, of a slot that leads nowhere: over with an error. 0; 1: it did not end. */
static int transfer(struct port_world *w, struct sio_dma_ring *ring, int doorbell)
{
	uint32_t tail = sio_read32(&ring->tail);
	time_t end = time(NULL) + PATIENCE_S;
	uint64_t one = 1;

	ring->entry[tail % SIO_DMA_ENTRIES] =
		(struct sio_dma_entry){.length = 64, .flags = SIO_DMA_LAST};
	sio_to_fabric_barrier();
	sio_write32(&ring->waiting, 1);
	sio_write32(&ring->tail, tail + 1);
	sio_full_barrier();
	if (write(doorbell, &one, sizeof(one)) != sizeof(one))
		return port_failed(w, "the doorbell: %s", strerror(errno));
	while (sio_read32(&ring->done) != tail + 1)
		if (time(NULL) > end)
			return port_failed(w, "transfer %u did not end", tail);
		else
			sched_yield();
	return 0;
}

static void fill_and_go_on(struct port_world *w, struct sio_dma_ring *ring, uint64_t channel,
			   int doorbell, int finished)
{
	uint64_t full = FULL, count = 0;
	union port_packet req, answer;

	fcntl(finished, F_SETFL, 0);
	if (write(finished, &full, sizeof(full)) != sizeof(full))
		port_failed(w, "the event cannot be filled: %s", strerror(errno));
	/*
	 * The world's thread goes on: to the next transfer, and to whoever asks it for something.
	 */
	for (unsigned i = 0; i < 3; i++)
		if (transfer(w, ring, doorbell))
			return;
	port_good(w, SIO_OP_DMA_FREE, &req);
	((struct sio_req_dma_free *)(void *)&req)->id = channel;
	if (port_ask(w, 0, &req, req.req.size, &answer, NULL))
		port_failed(w, "the channel does not end: %s", answer.error.text);
	if (read(finished, &count, sizeof(count)) != sizeof(count) || count < FULL)
		port_failed(w, "the event says %llu", (unsigned long long)count);
}

void port_events(struct port_world *w)
{
	struct sio_dma_ring *ring = MAP_FAILED;
	int fds[SIO_PORT_MAX_FDS];
	uint64_t channel = 0;

	if (port_things_make(w) == 0 && open_channel(w, &channel, fds) == 0) {
		ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
		if (ring == MAP_FAILED)
			port_failed(w, "the ring: %s", strerror(errno));
		else
			fill_and_go_on(w, ring, channel, fds[1], fds[2]);
		if (ring != MAP_FAILED)
			munmap(ring, sizeof(*ring));
		for (unsigned i = 0; i < 3; i++)
			close(fds[i]);
	}
	port_things_end(w);
	port_report(w, "a full event descriptor that blocks");
}
