/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Physical region pages: how a command names its data. Source: NVM Express Base Specification 1.4,
 * section 4.3.
 *
 * A buffer is contiguous for the device, so page k of a transfer lies at page 0 + k * 4096. Each
 * command id has its own list beside the submission queue, never across a page: no list is chained.
 */
#include <endian.h>

#include "client.h"
#include "smartio/io.h"

uint32_t sio_nvme_prp_shift(uint32_t max_transfer)
{
	/* The first page stands in the command; an unaligned transfer touches one page more. */
	uint64_t bytes = 8 * ((uint64_t)max_transfer / SIO_NVME_PAGE);
	uint32_t shift = 3;

	while (1ull << shift < bytes)
		shift++;
	return shift;
}

uint64_t sio_nvme_prp2(struct smartio_nvme_queue *q, uint32_t cid, uint64_t addr, uint64_t bytes)
{
	uint64_t page = (addr | (SIO_NVME_PAGE - 1)) + 1, end = addr + bytes;
	size_t at = (size_t)cid << q->list_shift;
	volatile uint8_t *entry = q->list + at;

	if (end <= page + SIO_NVME_PAGE)
		return page;
	for (; page < end; page += SIO_NVME_PAGE, entry += 8)
		sio_write64(entry, htole64(page));
	return q->list_ioaddr + at;
}

void sio_nvme_prp_pieces(struct smartio_nvme_queue *q, uint32_t cid,
			 const struct smartio_nvme_piece *piece, uint32_t n, uint64_t *ret_prp1,
			 uint64_t *ret_prp2)
{
	const size_t at = (size_t)cid << q->list_shift;
	volatile uint8_t *entry = q->list + at;
	uint64_t first = piece[0].buffer->ioaddr + piece[0].offset, only = 0;
	unsigned listed = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t page = piece[i].buffer->ioaddr + piece[i].offset;
		uint64_t end = page + piece[i].bytes;

		if (i == 0)
			page = (page | (SIO_NVME_PAGE - 1)) + 1;
		for (; page < end; page += SIO_NVME_PAGE, entry += 8, listed++) {
			sio_write64(entry, htole64(page));
			only = page;
		}
	}
	*ret_prp1 = first;
	*ret_prp2 = listed > 1 ? q->list_ioaddr + at : only;
}
