/* SPDX-License-Identifier: BSD-2-Clause */
/* Create and delete I/O queues (NVMe 1.4, sections 5.3 to 5.6). */
#include <endian.h>

#include "emu/devices/nvme/model.h"

#define CDW11_PC 1u  /* physically contiguous */
#define CDW11_IEN 2u /* interrupts enabled */
#define SQES_LOG2 6u /* what Identify allows for CC.IOSQES */
#define CQES_LOG2 4u

/* What both kinds have in common; *addr and *size are set on success. */
static unsigned check_memory(const struct emu_nvme *m, const struct emu_nvme_sqe *sqe,
			     unsigned entry_log2, uint64_t *addr, uint32_t *size)
{
	uint32_t entries = (le32toh(sqe->cdw10) >> 16) + 1;
	uint64_t prp1 = le64toh(sqe->prp1), last;

	if (entries < 2 || entries > m->queue_entries)
		return EMU_NVME_FAIL_SPECIFIC(QUEUE_SIZE);
	if (!(le32toh(sqe->cdw11) & CDW11_PC)) /* CAP.CQR */
		return EMU_NVME_FAIL(INVALID_FIELD);
	if (prp1 % EMU_NVME_PAGE)
		return EMU_NVME_FAIL(PRP_INVALID_OFFSET);
	if (__builtin_add_overflow(prp1, ((uint64_t)entries << entry_log2) - 1, &last))
		return EMU_NVME_FAIL(INVALID_FIELD);
	*addr = prp1;
	*size = entries;
	return 0;
}

/* 0 is the admin queue's, and past the last pair there is none. */
static bool is_io_queue_id(const struct emu_nvme *m, unsigned id)
{
	return id != 0 && id <= m->queue_pairs;
}

unsigned emu_nvme_create_cq(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	unsigned id = le32toh(sqe->cdw10) & 0xffff, status;
	uint32_t cdw11 = le32toh(sqe->cdw11), size;
	uint64_t addr;

	if (!is_io_queue_id(m, id) || m->cq[id].size)
		return EMU_NVME_FAIL_SPECIFIC(QID_INVALID);
	if (NVME_CC_IOCQES(emu_nvme_cc(m)) != CQES_LOG2)
		return EMU_NVME_FAIL_SPECIFIC(QUEUE_SIZE);
	status = check_memory(m, sqe, CQES_LOG2, &addr, &size);
	if (status)
		return status;
	/* Also of a queue without interrupts; a drive that has no vectors knows the number 0. */
	if (cdw11 >> 16 != 0 && cdw11 >> 16 >= m->vectors)
		return EMU_NVME_FAIL_SPECIFIC(INVALID_VECTOR);
	emu_nvme_cq_init(m, id, addr, size, cdw11 & CDW11_IEN ? cdw11 >> 16 : EMU_NVME_NO_VECTOR);
	m->queues_were_made = true;
	return 0;
}

unsigned emu_nvme_create_sq(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	unsigned id = le32toh(sqe->cdw10) & 0xffff, cq = le32toh(sqe->cdw11) >> 16, status;
	uint64_t addr;
	uint32_t size;

	if (!is_io_queue_id(m, id) || m->sq[id].size || !is_io_queue_id(m, cq))
		return EMU_NVME_FAIL_SPECIFIC(QID_INVALID);
	if (!m->cq[cq].size)
		return EMU_NVME_FAIL_SPECIFIC(CQ_INVALID);
	if (NVME_CC_IOSQES(emu_nvme_cc(m)) != SQES_LOG2)
		return EMU_NVME_FAIL_SPECIFIC(QUEUE_SIZE);
	status = check_memory(m, sqe, SQES_LOG2, &addr, &size);
	if (status)
		return status;
	emu_nvme_sq_init(m, id, addr, size, cq);
	m->queues_were_made = true;
	return 0;
}

unsigned emu_nvme_delete_sq(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	unsigned id = le32toh(sqe->cdw10) & 0xffff;

	if (!is_io_queue_id(m, id) || !m->sq[id].size)
		return EMU_NVME_FAIL_SPECIFIC(QID_INVALID);
	emu_nvme_sq_fini(m, id);
	return 0;
}

unsigned emu_nvme_delete_cq(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	unsigned id = le32toh(sqe->cdw10) & 0xffff;

	if (!is_io_queue_id(m, id) || !m->cq[id].size)
		return EMU_NVME_FAIL_SPECIFIC(QID_INVALID);
	if (m->cq[id].users)
		return EMU_NVME_FAIL_SPECIFIC(INVALID_QUEUE);
	emu_nvme_cq_fini(m, id);
	return 0;
}
