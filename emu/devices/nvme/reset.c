/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resets (NVMe 1.4, section 7.3): of the controller, and of its function; the pages that the
 * controller is seen by, and what registers are after a reset.
 */
#include <string.h>

#include "emu/devices/nvme/model.h"

#define WORDS (EMU_NVME_PAGE / 4)
#define CAP_TO 20u /* times 500 ms: the host may be slow, the model never is */

void emu_nvme_regs_defaults(struct emu_nvme *m)
{
	memset(m->reg, 0, sizeof(m->reg));
	m->reg[EMU_NVME_WORD(NVME_REG_CAP)] = (m->queue_entries - 1) << NVME_CAP_MQES_SHIFT |
					      1u << NVME_CAP_CQR_SHIFT |
					      CAP_TO << NVME_CAP_TO_SHIFT;
	m->reg[EMU_NVME_WORD(NVME_REG_CAP) + 1] = (uint32_t)NVME_CAP_CSS_NVM
						  << (NVME_CAP_CSS_SHIFT - 32);
	m->reg[EMU_NVME_WORD(NVME_REG_VS)] = EMU_NVME_VERSION;
	emu_nvme_cmb_defaults(m);
	/* The others mean nothing then (section 8.5.3). */
	if (m->offline)
		m->reg[EMU_NVME_WORD(NVME_REG_CSTS)] = 1u << NVME_CSTS_CFS_SHIFT;
}

void emu_nvme_regs_publish(struct emu_nvme *m)
{
	for (unsigned i = 0; i < WORDS; i++)
		emu_nvme_reg_set(m, i, m->reg[i]);
}

void emu_nvme_controller_reset(struct emu_nvme *m)
{
	m->running = false;
	m->n_aer = m->n_done = 0;
	memset(m->event, 0, sizeof(m->event));
	m->hot = false;
	emu_nvme_shadow_forget(m);
	emu_nvme_queues_gone(m);
	emu_nvme_features_defaults(m);
	m->stats.resets++;
}

void emu_nvme_attach(struct emu_nvme *m)
{
	m->view = m->dev->view(m->dev, EMU_NVME_RUN_REGISTERS);
	m->mirror = m->dev->mirror(m->dev, EMU_NVME_RUN_REGISTERS);
	m->doorbells = m->dev->view(m->dev, EMU_NVME_RUN_DOORBELLS);
	if (m->cmb.bytes)
		m->cmb.data = (uint8_t *)(uintptr_t)m->dev->view(m->dev, m->cmb.run);
	m->attached = true;
	emu_nvme_regs_publish(m);
}

void emu_nvme_function_reset(struct emu_nvme *m)
{
	emu_nvme_attach(m);
	emu_nvme_controller_reset(m);
	emu_nvme_regs_defaults(m);
	emu_nvme_regs_publish(m);
	/* What the borrower before left there is none of the next one's. */
	if (m->cmb.data)
		emu_dev_zero(m->cmb.data, m->cmb.bytes);
}
