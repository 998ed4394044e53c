/* SPDX-License-Identifier: BSD-2-Clause */
/* Vectors of a DMA queue with a callback: one completion, after all of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dma.h"

#define ELEMENTS 3u
#define ROUNDS 5u

struct run {
	struct dma d;
	unsigned calls;
};

static dis_dma_vec_t element(unsigned i)
{
	return (dis_dma_vec_t){
		.size = 1000, .local_offset = i * 5000, .remote_offset = i * 7000 + 3};
}

static void post(struct run *r, sci_cb_dma_t callback)
{
	dis_dma_vec_t vec[ELEMENTS];
	sci_error_t error;

	for (unsigned i = 0; i < ELEMENTS; i++)
		vec[i] = element(i);
	SCIStartDmaTransferVec(r->d.queue, r->d.local, r->d.remote, ELEMENTS, vec, callback, r,
			       SCI_FLAG_USE_CALLBACK, &error);
	CHECK_OK(error);
}

/* All has arrived, and the queue is not busy any more: the next one starts here. */
static sci_callback_action_t arrived(void *arg, sci_dma_queue_t queue, sci_error_t status)
{
	struct run *r = arg;

	CHECK(queue == r->d.queue);
	CHECK_OK(status);
	CHECK(SCIDMAQueueState(queue) == SCI_DMAQUEUE_DONE);
	for (unsigned i = 0; i < ELEMENTS; i++) {
		dis_dma_vec_t e = element(i);

		CHECK(same_bytes(r->d.peer + e.remote_offset, r->d.memory + e.local_offset,
				 e.size));
	}
	if (++r->calls < ROUNDS) {
		dma_fill(&r->d, 3 + r->calls, 601);
		post(r, arrived);
	} else {
		step_done(1);
	}
	return SCI_CALLBACK_CONTINUE;
}

static int calls_back(void *arg)
{
	static struct run r;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	(void)arg;
	dma_make(&r.d, sd, 8, DMA_READY);
	r.calls = 0;
	dma_fill(&r.d, 3, 601);
	/* It wants one. */
	SCIStartDmaTransferVec(r.d.queue, r.d.local, r.d.remote, 1, &(dis_dma_vec_t){.size = 8},
			       NULL, NULL, SCI_FLAG_USE_CALLBACK, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(SCIDMAQueueState(r.d.queue) == SCI_DMAQUEUE_IDLE);
	post(&r, arrived);
	step_await(1);
	CHECK(r.calls == ROUNDS);
	dma_end(&r.d);
	api_end(sd);
	return 0;
}

static void a_vector_calls_back_once(void **state)
{
	dma_pair(state, calls_back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(a_vector_calls_back_once),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
