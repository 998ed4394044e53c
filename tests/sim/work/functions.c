/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that each borrow one function of a drive with SR-IOV exclusively, the physical one or a
 * virtual one, and use it beside others that have its siblings, on hosts of their own. They drive
 * its admin queue by hand: the controller that answers is that function's, its data come to the
 * memory that was mapped for this function, and what lies beside them stays. Its registers keep
 * what was stored there while siblings are used and reset; only a reset of the physical function,
 * or the drive's removal, takes it away.
 */
#include "run/run.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "work/drives.h"
#include "work/held.h"
#include "work/life.h"

#define PAGE 4096u
/* The program's memory: the queues, data of the controller, words that nobody writes to. */
#define CQ_AT 2048u
#define DATA_AT PAGE
#define STILL_AT (2 * PAGE)
#define BYTES (3 * PAGE)
#define ENTRIES 8u

/* NVM Express 1.4, sections 3.1, 5.15 */
#define CC 0x14u
#define CSTS 0x1cu
#define AQA 0x24u
#define ASQ 0x28u
#define ACQ 0x30u
#define SQ_TAIL 0x1000u
#define CQ_HEAD 0x1004u
#define CC_ENABLED (1u | 6u << 16 | 4u << 20)
#define READY 1u
#define IDENTIFY 6u
#define IDENTIFY_CONTROLLER 1u
#define CONTROLLER_ID 78u /* in its data */

struct state {
	sci_desc_t sd;
	struct sim_held device;
	struct sim_own own;
	uint32_t n;	/* commands submitted */
	uint32_t still; /* what the words hold that nobody writes to */
	bool runs;
};

static bool is_function(const struct sio_topo_device *d)
{
	return d->physical || d->virtual_functions;
}

static bool fits(unsigned host)
{
	(void)host;
	for (unsigned h = 0; h < sim_hosts() && h != sim_liar(); h++)
		for (unsigned i = 0; i < sim_cluster->topology->host[h].n_devices; i++)
			if (is_function(&sim_cluster->topology->host[h].device[i]))
				return true;
	return false;
}

/* The number of the function in its slot, which is its controller's id. */
static unsigned number_of(const struct sim_held *d)
{
	const struct sio_topo_device *all = sim_cluster->topology->host[d->host].device;

	return d->topo->physical ? d->topo->bdf - all[d->topo->physical - 1].bdf : 0;
}

/* Are the registers and the data as they must be: is nothing lost that a fault may have taken? */
static bool is_judged(const struct state *s)
{
	return !sim_is_lossy() && !sim_has_fault("cut") && !sim_has_fault("delay") &&
	       sim_held_is_sound(&s->device);
}

/* ---- the controller ---- */
static bool awaits(const struct state *s, bool ready)
{
	const volatile uint8_t *csts = s->device.regs + CSTS;
	uint64_t until = sim_now() + SIM_PATIENCE;

	while ((sio_read32(csts) == READY) != ready && sim_now() < until)
		sim_sleep(1 + sim_pick(20000));
	return (sio_read32(csts) == READY) == ready;
}

static void store_address(const struct state *s, unsigned at, uint64_t address)
{
	sio_write32(s->device.regs + at, (uint32_t)address);
	sio_write32(s->device.regs + at + 4, (uint32_t)(address >> 32));
}

static bool start(struct state *s)
{
	sio_write32(s->device.regs + CC, 0);
	if (!awaits(s, false))
		return false;
	for (unsigned i = 0; i < CQ_AT + ENTRIES * 16; i += 4)
		sio_write32(s->own.at + i, 0);
	s->still = (uint32_t)sim_pick(1u << 31);
	for (unsigned i = 0; i < PAGE; i += 4)
		sio_write32(s->own.at + STILL_AT + i, s->still + i);
	sio_write32(s->device.regs + AQA, (ENTRIES - 1) << 16 | (ENTRIES - 1));
	store_address(s, ASQ, s->own.io);
	store_address(s, ACQ, s->own.io + CQ_AT);
	sio_to_fabric_barrier();
	sio_write32(s->device.regs + CC, CC_ENABLED);
	s->n = 0;
	return awaits(s, true);
}

static void have(struct state *s)
{
	struct sim_held *d = &s->device;

	d->topo = sim_pick_device(is_function, &d->host);
	s->runs = sim_held_borrow(s->sd, d, true) && sim_held_registers(d, 2 * PAGE) &&
		  sim_own_make(s->sd, &s->own, d, BYTES) && start(s);
}

/* It stops before anything is unmapped that it may use. */
static void drop(struct state *s)
{
	if (s->device.map && s->own.io) {
		sio_write32(s->device.regs + CC, 0);
		awaits(s, false);
	}
	s->runs = false;
	sim_own_unmap(&s->own, &s->device);
	sim_held_drop(&s->device);
	sim_own_remove(&s->own);
}

/* ---- work ---- */
static void submit_identify(struct state *s)
{
	uint32_t entry[16] = {[0] = IDENTIFY | s->n << 16, [10] = IDENTIFY_CONTROLLER};

	entry[6] = (uint32_t)(s->own.io + DATA_AT);
	entry[7] = (uint32_t)((s->own.io + DATA_AT) >> 32);
	sio_copy_to(s->own.at + s->n % ENTRIES * sizeof(entry), entry, sizeof(entry));
	sio_to_fabric_barrier();
	s->n++;
	sio_write32(s->device.regs + SQ_TAIL, s->n % ENTRIES);
}

/* Waits for the completion of the last command. Return: its status without the phase; -1: none. */
static int completion(struct state *s)
{
	const uint32_t last = s->n - 1, phase = !(last / ENTRIES % 2);
	const volatile uint8_t *at = s->own.at + CQ_AT + last % ENTRIES * 16 + 12;
	uint64_t until = sim_now() + SIM_PATIENCE;
	uint32_t word;

	while (((word = sio_read32(at)) >> 16 & 1) != phase && sim_now() < until)
		sim_sleep(1 + sim_pick(20000));
	if ((word >> 16 & 1) != phase)
		return -1;
	sio_from_fabric_barrier();
	sio_write32(s->device.regs + CQ_HEAD, s->n % ENTRIES);
	return (int)(word >> 17);
}

static void check_registers(const struct state *s)
{
	uint32_t aqa = sio_read32(s->device.regs + AQA);

	if (aqa != ((ENTRIES - 1) << 16 | (ENTRIES - 1)) && is_judged(s))
		sim_fail("functions", "%s: a register of %s, which it has alone, became %#x",
			 sim_self()->name, s->device.topo->name, aqa);
}

static void check_still(const struct state *s)
{
	for (unsigned i = 0; i < PAGE; i += 4) {
		uint32_t word = sio_read32(s->own.at + STILL_AT + i);

		if (word != s->still + i)
			sim_fail("functions", "%s: memory that %s was not told to write became %#x",
				 sim_self()->name, s->device.topo->name, word);
	}
}

static void identify(struct state *s)
{
	int status;

	for (unsigned i = 0; i < PAGE; i += 4)
		sio_write32(s->own.at + DATA_AT + i, UINT32_MAX);
	submit_identify(s);
	status = completion(s);
	if (status == 0 && is_judged(s) &&
	    sio_read32(s->own.at + DATA_AT + CONTROLLER_ID - 2) >> 16 != number_of(&s->device))
		sim_fail("functions", "%s: controller %u answers as %s", sim_self()->name,
			 sio_read32(s->own.at + DATA_AT + CONTROLLER_ID - 2) >> 16,
			 s->device.topo->name);
	if (status > 0 && is_judged(s))
		sim_fail("functions", "%s: %s ends an Identify with status %#x", sim_self()->name,
			 s->device.topo->name, (unsigned)status);
	s->runs = status == 0; /* else it may still be done: the device is given back */
}

/* Of a virtual function it is its own alone; of the physical one it takes all others away. */
static void reset(struct state *s)
{
	sci_error_t e;

	SIM_CALL(smartio_device_reset, (s->device.device, &e), &e, SCI_ERR_NOT_CONNECTED,
		 SCI_ERR_ACCESS, SCI_ERR_TIMEOUT);
	s->runs = false;
}

static void act(void *state)
{
	struct state *s = state;

	if (!s->device.topo) {
		have(s);
		return;
	}
	if (s->runs) {
		check_registers(s);
		check_still(s);
	}
	if (s->runs && sim_pick(30) == 0)
		reset(s);
	else if (!s->runs || sim_pick(30) == 0)
		drop(s);
	else
		identify(s);
}

static void give_back(void *state)
{
	drop(state);
}

static void functions_main(struct sim_proc *p)
{
	static const struct sim_life life = {.acts = 120, .act = act, .tear_down = give_back};
	struct state s = {.sd = NULL};

	if (!sim_live(&life, &s, &s.sd))
		return;
	sim_held_forget(&s.device);
	sim_exit(p);
}

const struct sim_workload sim_work_functions = {
	.name = "functions", .weight = 6, .fits = fits, .named = true, .main = functions_main};
