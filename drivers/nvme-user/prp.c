/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Physical region pages: how a command names its data; and scatter gather lists, for pieces that
 * those cannot name. Source: NVM Express Base Specification 1.4, sections 4.3 and 4.4.
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

bool sio_nvme_prp_fits(const struct smartio_nvme_piece *piece, uint32_t i, uint32_t n)
{
	const struct smartio_nvme_piece *p = &piece[i];

	return p->offset % (i == 0 ? 4 : SIO_NVME_PAGE) == 0 &&
	       (i + 1 == n || (p->offset + p->bytes) % SIO_NVME_PAGE == 0);
}

static void prp_pieces(struct smartio_nvme_queue *q, uint32_t cid,
		       const struct smartio_nvme_piece *piece, uint32_t n, uint64_t *ret_prp1,
		       uint64_t *ret_prp2)
{
	const size_t at = (size_t)cid << q->list_shift;
	volatile uint8_t *entry = q->list + at;
	uint64_t first = sio_nvme_reach(q, piece[0].buffer) + piece[0].offset, only = 0;
	unsigned listed = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t page = sio_nvme_reach(q, piece[i].buffer) + piece[i].offset;
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

#define SGL_SEGMENT_LAST (0x30ull << 56) /* a descriptor's type, in its second word; data: 0 */
#define SGL_COMMAND (1u << 14)		 /* PSDT 01b, in dword 0 */

/* One segment, where the PRP list would be. */
static void sgl_pieces(struct smartio_nvme_queue *q, uint32_t cid,
		       const struct smartio_nvme_piece *piece, uint32_t n, uint64_t *ret_prp1,
		       uint64_t *ret_prp2)
{
	const size_t at = (size_t)cid << q->list_shift;
	volatile uint8_t *entry = q->list + at;

	for (uint32_t i = 0; i < n; i++, entry += 16) {
		sio_write64(entry, htole64(sio_nvme_reach(q, piece[i].buffer) + piece[i].offset));
		sio_write64(entry + 8, htole64(piece[i].bytes));
	}
	*ret_prp1 = q->list_ioaddr + at;
	*ret_prp2 = n * 16 | SGL_SEGMENT_LAST;
}

uint32_t sio_nvme_name_pieces(struct smartio_nvme_queue *q, uint32_t cid,
			      const struct smartio_nvme_piece *piece, uint32_t n,
			      uint64_t *ret_prp1, uint64_t *ret_prp2)
{
	for (uint32_t i = 0; i < n; i++) {
		if (sio_nvme_prp_fits(piece, i, n))
			continue;
		sgl_pieces(q, cid, piece, n, ret_prp1, ret_prp2);
		return SGL_COMMAND;
	}
	prp_pieces(q, cid, piece, n, ret_prp1, ret_prp2);
	return 0;
}
