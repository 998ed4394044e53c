/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of BARs, as all rooms use them: where they lie, which memory a view is of, and whether a
 * view still has its pages. device/bar.c makes views and takes them away.
 */
#include "emu/base/state.h"

uint64_t emu_run_physical(const struct emu_run *run)
{
	return run->device->bar_addr[run->pages->bar] + run->pages->offset;
}

struct emu_mem *emu_bar_mem(const struct emu_bar *b)
{
	if (b->run->pages->kind != EMU_PAGE_REGISTERS)
		return &b->run->mem;
	return b->mirror ? &b->run->mirror : &b->run->view;
}

int emu_bar_check(struct emu_request *rq, const char *what, const struct emu_object *o)
{
	const struct emu_bar *b = (const struct emu_bar *)o;

	if (o->kind != SIO_KIND_BAR || !b->cut)
		return 0;
	return sio_fail(&rq->err, -ENODEV,
			"%s: the pages of %s that BAR view %#" PRIx64 " was of are gone", what,
			b->device->topo->name, o->id);
}
