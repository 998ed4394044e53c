/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scatter gather lists (NVMe 1.4, section 4.4): data blocks of any address and length, in segments
 * that lead to one another. Each list is walked twice, so that one that is wrong moves nothing; a
 * host that changes it between is checked again. A list is as long as the data, to the byte.
 */
#include <endian.h>
#include <string.h>

#include "emu/devices/nvme/model.h"

#define CHUNK 256u /* descriptors that are fetched at once */
/* Of one list: more is a host's mistake, or a chain without end. */
#define DESCRIPTORS_MOST 65536u
#define DESCRIPTORS_PER_UNIT 64u /* of work */

enum { DATA_BLOCK = 0x0, BIT_BUCKET = 0x1, SEGMENT = 0x2, LAST_SEGMENT = 0x3 };

struct descriptor {
	__le64 addr;
	__le32 len;
	uint8_t reserved[3], type; /* type 7:4, subtype 3:0 */
};
_Static_assert(sizeof(struct descriptor) == 16, "NVMe 1.4, figure 114");
_Static_assert(CHUNK * sizeof(struct descriptor) == EMU_NVME_PAGE, "a chunk fits in m->prp");

struct walk {
	enum emu_nvme_direction dir;
	uint8_t *buf;
	size_t left;
	unsigned descriptors;
};

static bool is_segment(const struct descriptor *d)
{
	return d->type == SEGMENT << 4 || d->type == LAST_SEGMENT << 4;
}

static unsigned take_block(struct emu_nvme *m, struct walk *w, const struct descriptor *d)
{
	uint64_t addr = le64toh(d->addr);
	uint32_t len = le32toh(d->len);
	unsigned status;

	if (is_segment(d)) /* not the last descriptor of its segment */
		return EMU_NVME_FAIL(SGL_INVALID_COUNT);
	if (d->type != DATA_BLOCK << 4)
		return EMU_NVME_FAIL(SGL_INVALID_TYPE);
	if (len > w->left || addr > UINT64_MAX - len)
		return EMU_NVME_FAIL(SGL_INVALID_DATA);
	status = len ? emu_nvme_move(m, w->dir, addr, w->buf, len) : 0;
	w->buf += len;
	w->left -= len;
	return status;
}

/* @n descriptors of a segment, which @ends with the last of them. @next: a segment that follows. */
static unsigned take_chunk(struct emu_nvme *m, struct walk *w, uint64_t addr, uint32_t n, bool ends,
			   struct descriptor *next)
{
	struct descriptor *d = (struct descriptor *)m->prp;
	unsigned status = 0;

	next->type = DATA_BLOCK << 4;
	w->descriptors += n;
	if (w->descriptors > DESCRIPTORS_MOST)
		return EMU_NVME_FAIL(SGL_INVALID_COUNT);
	m->pages += (n + DESCRIPTORS_PER_UNIT - 1) / DESCRIPTORS_PER_UNIT;
	if (emu_nvme_read(m, addr, d, n * sizeof(*d)))
		return NVME_SC_DATA_XFER_ERROR;
	for (uint32_t i = 0; !status && i < n; i++) {
		if (ends && i + 1 == n && is_segment(&d[i]))
			*next = d[i];
		else
			status = take_block(m, w, &d[i]);
	}
	return status;
}

/* All descriptors of the segment that @s describes; @next as above. */
static unsigned take_segment(struct emu_nvme *m, struct walk *w, const struct descriptor *s,
			     struct descriptor *next)
{
	uint32_t len = le32toh(s->len), n = len / (uint32_t)sizeof(*s);
	uint64_t addr = le64toh(s->addr);
	unsigned status = 0;

	if (len == 0 || len % sizeof(*s))
		return EMU_NVME_FAIL(SGL_INVALID_LAST);
	if (addr > UINT64_MAX - len)
		return EMU_NVME_FAIL(SGL_INVALID_DATA);
	while (!status && n > 0) {
		uint32_t part = n < CHUNK ? n : CHUNK;

		status = take_chunk(m, w, addr, part, part == n, next);
		addr += part * sizeof(*s);
		n -= part;
	}
	/* Nothing follows the last one. */
	if (!status && is_segment(next) && s->type == LAST_SEGMENT << 4)
		return EMU_NVME_FAIL(SGL_INVALID_LAST);
	return status;
}

static unsigned walk(struct emu_nvme *m, struct walk w, const struct emu_nvme_sqe *sqe)
{
	struct descriptor d, next;
	unsigned status = 0;

	/* It stands where the PRP entries do. */
	memcpy(&d, (const char *)sqe + offsetof(struct emu_nvme_sqe, prp1), sizeof(d));
	if (!is_segment(&d)) {
		status = take_block(m, &w, &d);
	} else {
		while (!status && is_segment(&d)) {
			status = take_segment(m, &w, &d, &next);
			d = next;
		}
	}
	if (status)
		return status;
	return w.left ? EMU_NVME_FAIL(SGL_INVALID_DATA) : 0;
}

unsigned emu_nvme_sgl_move(struct emu_nvme *m, enum emu_nvme_direction dir,
			   const struct emu_nvme_sqe *sqe, uint8_t *buf, size_t len)
{
	struct walk w = {.dir = EMU_NVME_LOOK, .buf = buf, .left = len};
	unsigned status = walk(m, w, sqe);

	w.dir = dir;
	return status ? status : walk(m, w, sqe);
}
