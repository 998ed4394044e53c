/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Virtualization (NVMe 1.4, sections 8.5 and 5.22): the physical function's controller is the
 * primary one, and takes those of virtual functions, the secondary ones, offline and online. Each
 * has queues and vectors of its own for good, so there are no flexible resources to assign.
 */
#include <endian.h>
#include <string.h>

#include "emu/devices/nvme/model.h"

_Static_assert(sizeof(struct nvme_primary_ctrl_cap) == EMU_NVME_PAGE, "one page");
_Static_assert(sizeof(struct nvme_secondary_ctrl_list) == EMU_NVME_PAGE, "one page");

unsigned emu_nvme_identify_primary(struct emu_nvme *m)
{
	struct nvme_primary_ctrl_cap *c = (void *)m->page;

	if (!emu_nvme_is_primary(m))
		return EMU_NVME_FAIL(INVALID_FIELD);
	c->cntlid = htole16(m->controller);
	/* CRT, and all numbers of resources of the types that it does not name: 0. */
	return 0;
}

unsigned emu_nvme_identify_secondaries(struct emu_nvme *m, uint32_t first)
{
	struct nvme_secondary_ctrl_list *list = (void *)m->page;

	if (!emu_nvme_is_primary(m))
		return EMU_NVME_FAIL(INVALID_FIELD);
	for (const struct emu_nvme *f = m->next_function; f; f = f->next_function) {
		struct nvme_secondary_ctrl *entry = &list->sc_entry[list->num];

		if (f->controller < first)
			continue;
		entry->scid = htole16(f->controller);
		entry->pcid = htole16(m->controller);
		entry->scs = !f->offline && emu_nvme_is_there(f);
		entry->vfn = htole16(f->controller); /* from 1 on, as their ids */
		list->num++;
	}
	return 0;
}

static struct emu_nvme *find(struct emu_nvme *m, uint32_t id)
{
	struct emu_nvme *f = m->next_function;

	while (f && f->controller != id)
		f = f->next_function;
	return f;
}

/* A controller that is online already goes on as it is. */
static unsigned set_online(struct emu_nvme *f, bool online)
{
	if (online && !emu_nvme_is_there(f))
		return EMU_NVME_FAIL_SPECIFIC(INVALID_SEC_CTRL_STATE);
	if (f->offline != online || !emu_nvme_is_there(f))
		return 0;
	f->offline = !online;
	emu_nvme_function_reset(f);
	return 0;
}

unsigned emu_nvme_virtualization(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	uint32_t cdw10 = le32toh(sqe->cdw10), id = cdw10 >> 16;
	struct emu_nvme *f = find(m, id);

	if (!emu_nvme_is_primary(m))
		return EMU_NVME_FAIL(INVALID_OPCODE);
	if (sqe->nsid != 0)
		return EMU_NVME_FAIL(INVALID_FIELD);
	switch (cdw10 & 0xf) {
	case NVME_VIRT_MGMT_ACT_PRIM_CTRL_FLEX_ALLOC:
		if (id != m->controller)
			return EMU_NVME_FAIL_SPECIFIC(INVALID_CTRL_ID);
		return EMU_NVME_FAIL_SPECIFIC(INVALID_RESOURCE_ID);
	case NVME_VIRT_MGMT_ACT_OFFLINE_SEC_CTRL:
	case NVME_VIRT_MGMT_ACT_ONLINE_SEC_CTRL:
		if (!f)
			return EMU_NVME_FAIL_SPECIFIC(INVALID_CTRL_ID);
		return set_online(f, (cdw10 & 0xf) == NVME_VIRT_MGMT_ACT_ONLINE_SEC_CTRL);
	case NVME_VIRT_MGMT_ACT_ASSIGN_SEC_CTRL:
		if (!f)
			return EMU_NVME_FAIL_SPECIFIC(INVALID_CTRL_ID);
		if (!f->offline && emu_nvme_is_there(f))
			return EMU_NVME_FAIL_SPECIFIC(INVALID_SEC_CTRL_STATE);
		return EMU_NVME_FAIL_SPECIFIC(INVALID_RESOURCE_ID);
	default:
		return EMU_NVME_FAIL(INVALID_FIELD);
	}
}
