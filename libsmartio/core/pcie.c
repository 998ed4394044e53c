/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/pcie.h"

#define BOUNDARY 4096u /* no request crosses a multiple of it */
#define WORD 4u	       /* data travel in whole words */

static bool is_limit(uint32_t value)
{
	return value >= 128 && value <= BOUNDARY && (value & (value - 1)) == 0;
}

bool sio_pcie_valid(const struct sio_pcie *p)
{
	return is_limit(p->max_payload) && is_limit(p->max_read_request) &&
	       (p->read_completion_boundary == 64 || p->read_completion_boundary == 128);
}

/* An access, cut where it crosses 4 KiB: two ends and the whole pages between. */
struct cut {
	uint32_t head_at, head_len; /* offset in its page */
	uint64_t pages;
	uint32_t tail_len;
};

static struct cut cut_at_boundary(uint64_t addr, uint64_t len)
{
	struct cut c = {.head_at = addr % BOUNDARY};
	uint64_t rest;

	c.head_len = BOUNDARY - c.head_at;
	if (len < c.head_len)
		c.head_len = (uint32_t)len;
	rest = len - c.head_len;
	c.pages = rest / BOUNDARY;
	c.tail_len = (uint32_t)(rest % BOUNDARY);
	return c;
}

/* Packets of at most @limit bytes from word-aligned @from to @to: each but the last is full. */
static uint32_t packets(uint32_t from, uint32_t to, uint32_t limit)
{
	return (to - from + limit - 1) / limit;
}

static uint32_t write_packets(const struct sio_pcie *p, uint32_t at, uint32_t len)
{
	return len ? packets(at & ~(WORD - 1), at + len, p->max_payload) : 0;
}

void sio_pcie_write(const struct sio_pcie *p, uint64_t addr, uint64_t len,
		    struct sio_pcie_count *count)
{
	struct cut c = cut_at_boundary(addr, len);

	count->write_tlps += write_packets(p, c.head_at, c.head_len) +
			     c.pages * (BOUNDARY / p->max_payload) +
			     write_packets(p, 0, c.tail_len);
	count->write_bytes += len;
}

/* Completions of one request, from word-aligned @from to @to. */
static uint32_t completions(const struct sio_pcie *p, uint32_t from, uint32_t to)
{
	uint32_t first_end = (from + p->max_payload) & ~(p->read_completion_boundary - 1);

	if (to - from <= p->max_payload)
		return 1;
	return 1 + packets(first_end, to, p->max_payload);
}

/* Requests and completions of what lies within one page, @times over. */
static void read_in_page(const struct sio_pcie *p, uint32_t at, uint32_t len, uint64_t times,
			 struct sio_pcie_count *count)
{
	uint32_t from = at & ~(WORD - 1), to = at + len;

	if (len == 0 || times == 0)
		return;
	while (from < to) {
		uint32_t end = to - from > p->max_read_request ? from + p->max_read_request : to;

		count->read_requests += times;
		count->completions += times * completions(p, from, end);
		from = end;
	}
}

void sio_pcie_read(const struct sio_pcie *p, uint64_t addr, uint64_t len,
		   struct sio_pcie_count *count)
{
	struct cut c = cut_at_boundary(addr, len);

	read_in_page(p, c.head_at, c.head_len, 1, count);
	read_in_page(p, 0, BOUNDARY, c.pages, count);
	read_in_page(p, 0, c.tail_len, 1, count);
	count->read_bytes += len;
}
