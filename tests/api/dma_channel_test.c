/* SPDX-License-Identifier: BSD-2-Clause */
/* DMA channels: requested, assigned to queues, segments prepared for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dma.h"

static sci_error_t request(sci_desc_t sd, sci_dma_channel_t *c, sci_dma_type_t type, unsigned id,
			   unsigned flags)
{
	sci_error_t error;

	SCIRequestDMAChannel(sd, c, 0, type, id, flags, &error);
	return error;
}

static void give_back(sci_dma_channel_t c)
{
	sci_error_t error;

	SCIReturnDMAChannel(c, &error);
	CHECK_OK(error);
}

static void requests(sci_desc_t sd)
{
	static const sci_dma_type_t types[] = {SCI_DMA_TYPE_DONTCARE, SCI_DMA_TYPE_ADAPTER,
					       SCI_DMA_TYPE_GLOBAL, SCI_DMA_TYPE_SYSTEM};
	sci_dma_channel_t a = NULL, b = NULL;
	sci_error_t error;

	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		CHECK_OK(request(sd, &a, types[i], SCI_DMA_CHANNEL_ID_DONTCARE, 0));
		CHECK_OK(request(sd, &b, types[i], SCI_DMA_CHANNEL_ID_DONTCARE, 0));
		give_back(a);
		give_back(b);
	}
	CHECK_OK(request(sd, &a, SCI_DMA_TYPE_ADAPTER, 3, 0));
	CHECK_IS(request(sd, &b, SCI_DMA_TYPE_ADAPTER, 3, 0), SCI_ERR_BUSY);
	CHECK_IS(request(sd, &b, SCI_DMA_TYPE_ADAPTER, 3, SCI_FLAG_DMA_CHANNEL_SHARED),
		 SCI_ERR_BUSY);
	give_back(a);
	CHECK_OK(request(sd, &a, SCI_DMA_TYPE_ADAPTER, 3, SCI_FLAG_DMA_CHANNEL_SHARED));
	CHECK_OK(request(sd, &b, SCI_DMA_TYPE_ADAPTER, 3, SCI_FLAG_DMA_CHANNEL_SHARED));
	give_back(a);
	give_back(b);
	SCIReturnDMAChannel(b, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_IS(request(sd, &a, SCI_DMA_TYPE_TRANSPARENT, 0, 0), SCI_ERR_DMA_NOT_AVAILABLE);
	CHECK_IS(request(sd, &a, (sci_dma_type_t)9, 0, 0), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_IS(request(sd, &a, SCI_DMA_TYPE_ADAPTER, 0, 0x80), SCI_ERR_ILLEGAL_FLAG);
	CHECK_IS(request(sd, NULL, SCI_DMA_TYPE_ADAPTER, 0, 0), SCI_ERR_ILLEGAL_PARAMETER);
	SCIRequestDMAChannel(sd, &a, 2, SCI_DMA_TYPE_ADAPTER, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_ADAPTERNO);
}

static int uses(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_dma_channel_t c = NULL;
	sci_local_segment_t seg = NULL;
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	requests(sd);
	CHECK_OK(request(sd, &c, SCI_DMA_TYPE_SYSTEM, SCI_DMA_CHANNEL_ID_DONTCARE, 0));
	SCIClose(sd, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIAssignDMAChannel(c, d.queue, 0, &error);
	CHECK_OK(error);
	SCIAssignDMAChannel(c, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	/* Instead of SCIPrepareSegment(). */
	SCICreateSegment(sd, &seg, 5, 4096, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareLocalSegmentForDMA(c, seg, 0, &error);
	CHECK_OK(error);
	SCIPrepareRemoteSegmentForDMA(c, d.remote, 0, &error);
	CHECK_OK(error);
	SCIStartDmaTransfer(d.queue, seg, d.remote, 0, 4096, 0, NULL, NULL, SCI_FLAG_DMA_WAIT,
			    &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	dma_start_long(&d, NULL, NULL);
	SCIAssignDMAChannel(c, d.queue, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	SCIAbortDMAQueue(d.queue, 0, &error);
	CHECK_OK(error);
	SCIUnprepareRemoteSegmentForDMA(c, d.remote, 0, &error);
	CHECK_OK(error);
	SCIUnprepareLocalSegmentForDMA(c, seg, 0, &error);
	CHECK_OK(error);
	SCIUnprepareLocalSegmentForDMA(c, (sci_local_segment_t)d.remote, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIPrepareRemoteSegmentForDMA(c, d.remote, 1, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	give_back(c);
	SCIPrepareLocalSegmentForDMA(c, seg, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	api_remove_segment(seg);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void channels_serve_queues(void **state)
{
	dma_pair(state, uses);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(channels_serve_queues),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
