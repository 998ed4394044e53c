/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA of a vector: a block out of the middle of a picture goes to another host, row by row, in one
 * transfer; the CPU is free meanwhile. A data interrupt then says how large it is.
 *
 * usage: dma_vector show | dma_vector send NODE
 */
#include <stdint.h>
#include <string.h>

#include "example.h"

#define PICTURE 0x300
#define READY 77 /* the data interrupt's number */
#define WIDTH 1024
#define HEIGHT 512
#define BLOCK 128 /* rows and columns */
#define LEFT 300
#define TOP 200

struct news {
	uint32_t width, height;
};

static void show(sci_desc_t sd)
{
	sci_local_data_interrupt_t ready;
	unsigned number = READY, length = sizeof(struct news);
	sci_local_segment_t local;
	unsigned long sum = 0;
	struct news news;
	sci_error_t error;
	sci_map_t map;
	uint8_t *block;

	block = export_segment(sd, PICTURE, BLOCK * BLOCK, 0, &local, &map);
	SCICreateDataInterrupt(sd, &ready, ADAPTER, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO,
			       &error);
	check(error, "SCICreateDataInterrupt");
	SCIWaitForDataInterrupt(ready, &news, &length, SCI_INFINITE_TIMEOUT, 0, &error);
	check(error, "SCIWaitForDataInterrupt");
	for (unsigned i = 0; i < news.width * news.height; i++)
		sum += block[i];
	printf("%u x %u, sum %lu\n", news.width, news.height, sum);
	SCIRemoveDataInterrupt(ready, 0, &error);
	check(error, "SCIRemoveDataInterrupt");
	remove_segment(local, map);
}

static void tell(sci_desc_t sd, unsigned node)
{
	struct news news = {BLOCK, BLOCK};
	sci_remote_data_interrupt_t ready;
	sci_error_t error;

	do {
		SCIConnectDataInterrupt(sd, &ready, node, ADAPTER, READY, SCI_INFINITE_TIMEOUT, 0,
					&error);
		sched_yield();
	} while (error == SCI_ERR_NO_SUCH_INTNO);
	check(error, "SCIConnectDataInterrupt");
	SCITriggerDataInterrupt(ready, &news, sizeof(news), 0, &error);
	check(error, "SCITriggerDataInterrupt");
	SCIDisconnectDataInterrupt(ready, 0, &error);
	check(error, "SCIDisconnectDataInterrupt");
}

static void send(sci_desc_t sd, unsigned node)
{
	dis_dma_vec_t row[BLOCK];
	sci_remote_segment_t remote;
	sci_local_segment_t local;
	unsigned long sum = 0;
	sci_dma_queue_t queue;
	sci_error_t error;
	uint8_t *picture;
	sci_map_t map;

	picture = export_segment(sd, PICTURE + 1, WIDTH * HEIGHT, 0, &local, &map);
	for (unsigned i = 0; i < WIDTH * HEIGHT; i++)
		picture[i] = (uint8_t)(i * 7 + i / WIDTH);
	remote = connect_segment(sd, node, PICTURE, 0);
	SCICreateDMAQueue(sd, &queue, ADAPTER, 1, 0, &error);
	check(error, "SCICreateDMAQueue");
	for (unsigned y = 0; y < BLOCK; y++)
		row[y] = (dis_dma_vec_t){.size = BLOCK,
					 .local_offset = (TOP + y) * WIDTH + LEFT,
					 .remote_offset = y * BLOCK};
	SCIStartDmaTransferVec(queue, local, remote, BLOCK, row, NULL, NULL, 0, &error);
	check(error, "SCIStartDmaTransferVec");
	/* Something else to do. */
	for (unsigned y = 0; y < BLOCK; y++)
		for (unsigned x = 0; x < BLOCK; x++)
			sum += picture[(TOP + y) * WIDTH + LEFT + x];
	if (SCIWaitForDMAQueue(queue, SCI_INFINITE_TIMEOUT, 0, &error) != SCI_DMAQUEUE_DONE) {
		fprintf(stderr, "the transfer failed\n");
		exit(1);
	}
	tell(sd, node);
	printf("%d x %d, sum %lu\n", BLOCK, BLOCK, sum);
	SCIRemoveDMAQueue(queue, 0, &error);
	check(error, "SCIRemoveDMAQueue");
	disconnect_segment(remote, NULL);
	remove_segment(local, map);
}

int main(int argc, char **argv)
{
	sci_desc_t sd;

	if (argc < 2 || (strcmp(argv[1], "send") == 0) != (argc == 3)) {
		fprintf(stderr, "usage: dma_vector show | dma_vector send NODE\n");
		return 2;
	}
	sd = begin();
	if (argc == 3)
		send(sd, (unsigned)atoi(argv[2]));
	else
		show(sd);
	end(sd);
	return 0;
}
