/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The register page (NVMe 1.4, section 3.1) and the handshakes of enable, disable and shutdown.
 *
 * The page is plain memory that the owner of the registers writes to and the model polls. m->reg
 * holds what each register is; a word of the page that differs was written by the owner, and is
 * taken (CC, AQA, ASQ, ACQ, interrupt masks) or put right (all others).
 */
#include "emu/devices/nvme/model.h"
#include "smartio/io.h"

#define WORDS (EMU_NVME_PAGE / 4)
#define SCRUB_FIRST 24u /* words looked at each time: all registers but those of the PMR */
#define SCRUB_SLICE 16u /* and so many of the rest, in turn */

static bool take_word(struct emu_nvme *m, unsigned word)
{
	uint32_t value = sio_read32(m->view + word);

	if (value == m->reg[word])
		return false;
	m->reg[word] = value;
	if (m->mirror)
		sio_write32(m->mirror + word, value);
	return true;
}

/* CMBMSC, of a drive that has such memory; of another it is a register that is not there. */
static void take_cmb_control(struct emu_nvme *m)
{
	unsigned low = EMU_NVME_WORD(NVME_REG_CMBMSC);
	bool changed;

	if (!m->cmb.bytes)
		return;
	/* The lower half, written last, enables it: pairs with sio_nvme_ctrl_use_cmb(). */
	changed = take_word(m, low);
	sio_from_fabric_barrier();
	if (take_word(m, low + 1) || changed)
		emu_nvme_cmb_control(m);
}

static uint64_t reg64(const struct emu_nvme *m, unsigned offset)
{
	return (uint64_t)m->reg[EMU_NVME_WORD(offset) + 1] << 32 | m->reg[EMU_NVME_WORD(offset)];
}

static void take_admin_registers(struct emu_nvme *m)
{
	for (unsigned word = EMU_NVME_WORD(NVME_REG_AQA); word < EMU_NVME_WORD(NVME_REG_CMBLOC);
	     word++)
		take_word(m, word);
	take_cmb_control(m);
}

/* What is wrong with the configuration that the host wants to enable; NULL: nothing. */
static const char *enable_error(const struct emu_nvme *m, uint32_t cc)
{
	uint32_t aqa = m->reg[EMU_NVME_WORD(NVME_REG_AQA)];

	if (NVME_CC_CSS(cc) != NVME_CC_CSS_NVM)
		return "CC.CSS names a command set that CAP.CSS does not (0, NVM, is right)";
	if (NVME_CC_MPS(cc) != 0)
		return "CC.MPS is beyond CAP.MPSMAX (0, 4 KiB pages, is right)";
	if (NVME_CC_AMS(cc) != NVME_CC_AMS_RR)
		return "CC.AMS names an arbitration that CAP.AMS does not (0, round robin, is right)";
	if (NVME_AQA_ASQS(aqa) == 0 || NVME_AQA_ACQS(aqa) == 0)
		return "AQA gives an admin queue less than 2 entries";
	if (reg64(m, NVME_REG_ASQ) % EMU_NVME_PAGE || reg64(m, NVME_REG_ACQ) % EMU_NVME_PAGE)
		return "ASQ or ACQ is not at a page boundary";
	return NULL;
}

static void enable(struct emu_nvme *m, uint32_t cc)
{
	const char *error;
	uint32_t aqa;

	/* AQA, ASQ and ACQ were written before CC: pairs with sio_nvme_ctrl_enable(). */
	sio_from_fabric_barrier();
	take_admin_registers(m);
	error = enable_error(m, cc);
	if (error) {
		emu_nvme_log(m, "cannot be enabled: %s", error);
		emu_nvme_fatal(m);
		return;
	}
	emu_nvme_doorbells_zero(m);
	aqa = m->reg[EMU_NVME_WORD(NVME_REG_AQA)];
	emu_nvme_cq_init(m, 0, reg64(m, NVME_REG_ACQ), NVME_AQA_ACQS(aqa) + 1, 0);
	emu_nvme_sq_init(m, 0, reg64(m, NVME_REG_ASQ), NVME_AQA_ASQS(aqa) + 1, 0);
	m->running = true;
	emu_nvme_csts_set(m, 1u << NVME_CSTS_RDY_SHIFT);
}

static void set_shutdown(struct emu_nvme *m, uint32_t state)
{
	uint32_t csts = m->reg[EMU_NVME_WORD(NVME_REG_CSTS)];

	csts &= ~((uint32_t)NVME_CSTS_SHST_MASK << NVME_CSTS_SHST_SHIFT);
	emu_nvme_csts_set(m, csts | state << NVME_CSTS_SHST_SHIFT);
}

/* On memory nothing is in flight between two steps, and nothing is cached: done at once. */
void emu_nvme_shutdown_done(struct emu_nvme *m)
{
	set_shutdown(m, NVME_CSTS_SHST_CMPLT);
}

static void cc_changed(struct emu_nvme *m, uint32_t cc)
{
	uint32_t old = emu_nvme_cc(m);

	emu_nvme_reg_set(m, EMU_NVME_WORD(NVME_REG_CC), cc);
	if (m->offline)
		return;
	if (NVME_CC_EN(old) && !NVME_CC_EN(cc)) {
		emu_nvme_controller_reset(m);
		/* All registers but the admin queue's have their defaults again (section 3.1.5). */
		emu_nvme_reg_set(m, EMU_NVME_WORD(NVME_REG_CC), 0);
		emu_nvme_reg_set(m, EMU_NVME_WORD(NVME_REG_INTMS), 0);
		emu_nvme_reg_set(m, EMU_NVME_WORD(NVME_REG_INTMC), 0);
		emu_nvme_csts_set(m, 0);
		return;
	}
	if (!NVME_CC_EN(old) && NVME_CC_EN(cc))
		enable(m, cc);
	if (NVME_CC_SHN(cc) != NVME_CC_SHN_NONE && NVME_CC_SHN(old) == NVME_CC_SHN_NONE) {
		m->running = false;
		if (emu_nvme_files_shutdown(m))
			set_shutdown(m, NVME_CSTS_SHST_OCCUR);
		else
			emu_nvme_shutdown_done(m);
	}
}

bool emu_nvme_regs_poll(struct emu_nvme *m)
{
	uint32_t cc;

	if (!m->view)
		return false;
	cc = sio_read32(m->view + EMU_NVME_WORD(NVME_REG_CC));
	if (emu_nvme_likely(cc == emu_nvme_cc(m)))
		return false;
	cc_changed(m, cc);
	return true;
}

/* Both registers read as the mask; ones written to the first set bits, to the second clear them. */
static void poll_interrupt_mask(struct emu_nvme *m)
{
	uint32_t mask = m->reg[EMU_NVME_WORD(NVME_REG_INTMS)], new_mask = mask;
	uint32_t set = sio_read32(m->view + EMU_NVME_WORD(NVME_REG_INTMS));
	uint32_t clear = sio_read32(m->view + EMU_NVME_WORD(NVME_REG_INTMC));

	if (set != mask)
		new_mask |= set;
	if (clear != mask)
		new_mask &= ~clear;
	if (set != mask || clear != mask) {
		emu_nvme_reg_set(m, EMU_NVME_WORD(NVME_REG_INTMS), new_mask);
		emu_nvme_reg_set(m, EMU_NVME_WORD(NVME_REG_INTMC), new_mask);
	}
}

static void put_right(struct emu_nvme *m, unsigned word)
{
	if (sio_read32(m->view + word) != m->reg[word])
		sio_write32(m->view + word, m->reg[word]);
}

static void scrub_word(struct emu_nvme *m, unsigned word)
{
	switch (word) {
	case EMU_NVME_WORD(NVME_REG_CC): /* taken by emu_nvme_regs_poll() */
	case EMU_NVME_WORD(NVME_REG_INTMS):
	case EMU_NVME_WORD(NVME_REG_INTMC):
		break;
	case EMU_NVME_WORD(NVME_REG_AQA):
	case EMU_NVME_WORD(NVME_REG_ASQ):
	case EMU_NVME_WORD(NVME_REG_ASQ) + 1:
	case EMU_NVME_WORD(NVME_REG_ACQ):
	case EMU_NVME_WORD(NVME_REG_ACQ) + 1:
		take_word(m, word);
		break;
	case EMU_NVME_WORD(NVME_REG_CMBMSC):
	case EMU_NVME_WORD(NVME_REG_CMBMSC) + 1:
		if (m->cmb.bytes) {
			take_cmb_control(m);
			break;
		}
		put_right(m, word);
		break;
	default:
		put_right(m, word);
	}
}

void emu_nvme_regs_scrub(struct emu_nvme *m)
{
	if (!m->view)
		return;
	poll_interrupt_mask(m);
	for (unsigned word = 0; word < SCRUB_FIRST; word++)
		scrub_word(m, word);
	for (unsigned i = 0; i < SCRUB_SLICE; i++) {
		if (m->register_next < SCRUB_FIRST || m->register_next >= WORDS)
			m->register_next = SCRUB_FIRST;
		scrub_word(m, m->register_next++);
	}
}

unsigned emu_nvme_regs_slices(void)
{
	return (WORDS - SCRUB_FIRST + SCRUB_SLICE - 1) / SCRUB_SLICE;
}

void emu_nvme_regs_skip(struct emu_nvme *m, uint64_t n)
{
	unsigned rest = m->register_next < SCRUB_FIRST ? 0 : m->register_next - SCRUB_FIRST;

	if (m->view)
		m->register_next =
			SCRUB_FIRST + (unsigned)((rest + n * SCRUB_SLICE) % (WORDS - SCRUB_FIRST));
}
