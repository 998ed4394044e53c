/* SPDX-License-Identifier: BSD-2-Clause */
/* Vectors of a DMA queue: one transfer, one completion after all of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dma.h"

static int copies_vectors(void *arg)
{
	sci_desc_t sd = api_begin();
	dis_dma_vec_t vec[DIS_DMA_MAX_VECLEN + 1];
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, 0);
	dma_fill(&d, 1, 509);
	for (unsigned i = 0; i <= DIS_DMA_MAX_VECLEN; i++)
		vec[i] = (dis_dma_vec_t){.size = i,
					 .local_offset = i * 300,
					 .remote_offset = i * 511,
					 .flags = 0xdeadbeef};
	SCIStartDmaTransferVec(d.queue, d.local, d.remote, DIS_DMA_MAX_VECLEN, vec, NULL, NULL,
			       SCI_FLAG_DMA_WAIT, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < DIS_DMA_MAX_VECLEN; i++) {
		CHECK(same_bytes(d.peer + i * 511, d.memory + i * 300, i));
		CHECK(get8(d.peer + i * 511 + i) == 0);
	}
	/* The vector is not kept; all ways to say which engine. */
	SCIStartDmaTransferVec(d.queue, d.local, d.remote, 2, vec + 7, NULL, NULL,
			       SCI_FLAG_DMA_READ | SCI_FLAG_DMA_GLOBAL | SCI_FLAG_DMA_SYSDMA |
				       SCI_FLAG_DMA_ADAPTER,
			       &error);
	CHECK_OK(error);
	memset(vec, 0xff, sizeof(vec));
	CHECK(dma_wait(&d, SCI_INFINITE_TIMEOUT, &error) == SCI_DMAQUEUE_DONE);
	/* Many starts, so that ring and numbers wrap. */
	for (unsigned i = 0; i < 3000; i++) {
		vec[0] = vec[1] = (dis_dma_vec_t){.size = 4, .remote_offset = 4 * (i % 64)};
		vec[1].remote_offset += 1024;
		put_bytes(d.memory, &i, 4);
		SCIStartDmaTransferVec(d.queue, d.local, d.remote, 2, vec, NULL, NULL,
				       SCI_FLAG_DMA_WAIT, &error);
		CHECK_OK(error);
		CHECK(same_bytes(d.peer + 4 * (i % 64), &i, 4));
		CHECK(same_bytes(d.peer + 1024 + 4 * (i % 64), &i, 4));
	}
	SCIStartDmaTransferVec(d.queue, d.local, d.remote, DIS_DMA_MAX_VECLEN + 1, vec, NULL, NULL,
			       0, &error);
	CHECK_IS(error, SCI_ERR_MAX_ENTRIES);
	SCIStartDmaTransferVec(d.queue, d.local, d.remote, 0, vec, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIStartDmaTransferVec(d.queue, d.local, d.remote, 1, NULL, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	vec[1] = (dis_dma_vec_t){.size = 8, .remote_offset = DMA_BYTES - 7};
	SCIStartDmaTransferVec(d.queue, d.local, d.remote, 2, vec, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	CHECK(SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_DONE);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void vectors_are_one_transfer(void **state)
{
	dma_pair(state, copies_vectors);
}

/* ---- callbacks ---- */

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
		API_TEST(vectors_are_one_transfer),
		API_TEST(a_vector_calls_back_once),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
