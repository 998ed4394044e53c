/* SPDX-License-Identifier: BSD-2-Clause */
/* What memory held before its last stores: a processor may have loaded early. */
#include <string.h>

#include "fabric/fabric.h"

#define RECORDS 2048u /* of the whole cluster: some microseconds under load */

struct record {
	const struct fabric_mem *mem;
	uint64_t memory, offset, at;
	uint32_t len;
	uint8_t before[FABRIC_LINE];
};

static struct record record[RECORDS];
static uint64_t n_records, lost_until; /* nothing is known of times before */

void fabric_past_start(void)
{
	memset(record, 0, sizeof(record));
	n_records = lost_until = 0;
}

/* Called before the store. @len: a line at most. */
void fabric_past_add(const struct fabric_mem *m, uint64_t offset, size_t len, uint64_t at)
{
	struct record *r = &record[n_records++ % RECORDS];

	if (r->mem)
		lost_until = r->at;
	r->mem = m;
	r->memory = m->number;
	r->offset = offset;
	r->len = (uint32_t)len;
	r->at = at;
	fabric_mem_get(m, offset, r->before, len);
}

void fabric_past_read(const struct fabric_mem *m, uint64_t offset, void *buf, size_t len,
		      uint64_t when)
{
	fabric_mem_get(m, offset, buf, len);
	if (when < lost_until)
		return;
	for (uint64_t i = n_records; i > 0 && i + RECORDS > n_records; i--) {
		const struct record *r = &record[(i - 1) % RECORDS];
		uint64_t from, to;

		if (r->at <= when)
			break;
		if (r->mem != m || r->memory != m->number)
			continue;
		from = r->offset > offset ? r->offset : offset;
		to = r->offset + r->len < offset + len ? r->offset + r->len : offset + len;
		if (from < to)
			memcpy((uint8_t *)buf + (from - offset), r->before + (from - r->offset),
			       to - from);
	}
}
