/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Physical region pages (NVMe 1.4, section 4.3): the two entries of a command, and lists of them.
 * Data move straight between the caller's bytes and the device's DMA.
 */
#include <endian.h>
#include <string.h>

#include "emu/devices/nvme/model.h"

#define OFFSET(addr) ((addr) & (EMU_NVME_PAGE - 1))

#define COMPARE_FAILED                                                                             \
	((unsigned)NVME_SCT_MEDIA << NVME_SCT_SHIFT | (unsigned)NVME_SC_COMPARE_FAILED)

/* With what the host has, a page at a time. */
static unsigned compare(struct emu_nvme *m, uint64_t addr, const uint8_t *buf, size_t len)
{
	while (len > 0) {
		size_t part = len < sizeof(m->page) ? len : sizeof(m->page);

		if (emu_nvme_read(m, addr, m->page, part))
			return NVME_SC_DATA_XFER_ERROR;
		if (memcmp(m->page, buf, part) != 0)
			return COMPARE_FAILED; /* another time it may be right */
		addr += part;
		buf += part;
		len -= part;
	}
	return 0;
}

/* A write that cannot arrive vanishes: only a read can fail. */
static inline unsigned move(struct emu_nvme *m, enum emu_nvme_direction dir, uint64_t addr,
			    uint8_t *buf, size_t len)
{
	if (dir == EMU_NVME_FROM_HOST)
		return emu_nvme_read(m, addr, buf, len) ? NVME_SC_DATA_XFER_ERROR : 0;
	if (emu_nvme_unlikely(dir == EMU_NVME_COMPARE))
		return compare(m, addr, buf, len);
	if (emu_nvme_unlikely(emu_nvme_write(m, addr, buf, len)))
		m->stats.lost_writes++;
	return 0;
}

unsigned emu_nvme_move(struct emu_nvme *m, enum emu_nvme_direction dir, uint64_t addr, uint8_t *buf,
		       size_t len)
{
	return dir == EMU_NVME_LOOK ? 0 : move(m, dir, addr, buf, len);
}

/* Fetch @n entries of a list into the model's buffer. Data or link, each is a whole page's. */
static unsigned fetch_entries(struct emu_nvme *m, uint64_t addr, size_t n)
{
	if (emu_nvme_read(m, addr, m->prp, n * sizeof(m->prp[0])))
		return NVME_SC_DATA_XFER_ERROR;
	for (size_t i = 0; i < n; i++) {
		m->prp[i] = le64toh(m->prp[i]);
		if (OFFSET(m->prp[i]))
			return EMU_NVME_FAIL(PRP_INVALID_OFFSET);
	}
	return 0;
}

/* Pages that follow one another in both places: they are moved as one. */
struct run {
	uint64_t addr;
	uint8_t *buf;
	size_t len;
};

/* @len bytes at @addr come next: part of the run, or the run is moved and they begin another one.
 */
static unsigned run_extend(struct emu_nvme *m, enum emu_nvme_direction dir, struct run *run,
			   uint64_t addr, size_t len)
{
	struct run done = *run;

	if (addr == run->addr + run->len && addr > run->addr) {
		run->len += len;
		return 0;
	}
	*run = (struct run){.addr = addr, .buf = done.buf + done.len, .len = len};
	return move(m, dir, done.addr, done.buf, done.len);
}

/*
 * All pages, from the list at @addr but for the first. The last entry of a page of the list leads
 * to the next one, at the start of a page, if more data remain than it could name itself: so only
 * the first part can be a link alone, and the walk ends. Nothing is moved before the first part was
 * found right, so that most bad lists move nothing.
 */
static unsigned move_list(struct emu_nvme *m, enum emu_nvme_direction dir, struct run run,
			  uint64_t addr, size_t left)
{
	if (addr & 7)
		return EMU_NVME_FAIL(PRP_INVALID_OFFSET);
	while (left > 0) {
		size_t need = (left + EMU_NVME_PAGE - 1) / EMU_NVME_PAGE;
		size_t here = (EMU_NVME_PAGE - OFFSET(addr)) / sizeof(m->prp[0]);
		bool chained = need > here;
		size_t n = chained ? here : need;
		unsigned status = fetch_entries(m, addr, n);

		for (size_t i = 0; !status && i < n - chained; i++) {
			size_t part = left < EMU_NVME_PAGE ? left : EMU_NVME_PAGE;

			status = run_extend(m, dir, &run, m->prp[i], part);
			left -= part;
		}
		if (status)
			return status;
		addr = m->prp[n - 1];
	}
	return move(m, dir, run.addr, run.buf, run.len);
}

static inline unsigned prp_move(struct emu_nvme *m, enum emu_nvme_direction dir,
				const struct emu_nvme_sqe *sqe, uint8_t *buf, size_t len)
{
	uint64_t prp1 = le64toh(sqe->prp1), prp2;
	size_t first = EMU_NVME_PAGE - OFFSET(prp1);
	struct run run;
	unsigned status;

	if (emu_nvme_unlikely(sqe->flags & EMU_NVME_PSDT))
		return emu_nvme_sgl_move(m, dir, sqe, buf, len);
	if (emu_nvme_unlikely(prp1 & 3))
		return EMU_NVME_FAIL(PRP_INVALID_OFFSET);
	if (len <= first)
		return move(m, dir, prp1, buf, len);
	prp2 = le64toh(sqe->prp2);
	run = (struct run){.addr = prp1, .buf = buf, .len = first};
	if (len - first > EMU_NVME_PAGE)
		return move_list(m, dir, run, prp2, len - first);
	if (OFFSET(prp2))
		return EMU_NVME_FAIL(PRP_INVALID_OFFSET);
	status = run_extend(m, dir, &run, prp2, len - first);
	return status ? status : move(m, dir, run.addr, run.buf, run.len);
}

unsigned emu_nvme_prp_to_host(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, const void *buf,
			      size_t len)
{
	return prp_move(m, EMU_NVME_TO_HOST, sqe, (uint8_t *)(uintptr_t)buf, len);
}

unsigned emu_nvme_prp_from_host(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, void *buf,
				size_t len)
{
	return prp_move(m, EMU_NVME_FROM_HOST, sqe, buf, len);
}

unsigned emu_nvme_prp_compare(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, const void *buf,
			      size_t len)
{
	return prp_move(m, EMU_NVME_COMPARE, sqe, (uint8_t *)(uintptr_t)buf, len);
}
