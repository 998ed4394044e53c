/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that all files of the model use: its registers, and lines of the log. */
#include <stdarg.h>
#include <stdio.h>

#include "emu/devices/nvme/model.h"
#include "smartio/io.h"

void emu_nvme_log(struct emu_nvme *m, const char *fmt, ...)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "%s: ", m->name);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	m->dev->log(m->dev, text);
}

void emu_nvme_reg_set(struct emu_nvme *m, unsigned word, uint32_t value)
{
	m->reg[word] = value;
	if (m->view)
		sio_write32(m->view + word, value);
	if (m->mirror)
		sio_write32(m->mirror + word, value);
}

uint32_t emu_nvme_cc(const struct emu_nvme *m)
{
	return m->reg[EMU_NVME_WORD(NVME_REG_CC)];
}

bool emu_nvme_is_enabled(const struct emu_nvme *m)
{
	return m->reg[EMU_NVME_WORD(NVME_REG_CSTS)] & 1u << NVME_CSTS_RDY_SHIFT;
}

void emu_nvme_csts_set(struct emu_nvme *m, uint32_t value)
{
	/*
	 * A reader that sees the new status sees what was done before, in queue memory and other
	 * registers: pairs with the reads of registers that follow wait_status(), which stay in
	 * order.
	 */
	sio_to_fabric_barrier();
	emu_nvme_reg_set(m, EMU_NVME_WORD(NVME_REG_CSTS), value);
}

void emu_nvme_fatal(struct emu_nvme *m)
{
	m->running = false;
	m->stats.fatal++;
	emu_nvme_csts_set(m, m->reg[EMU_NVME_WORD(NVME_REG_CSTS)] | 1u << NVME_CSTS_CFS_SHIFT);
}
