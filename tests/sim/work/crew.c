/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients of drives with several threads: each has a queue of its own that survives, and all have
 * the two paths to the drive, the thread that makes a lost path anew, and the connection to the
 * manager in common. The first thread asks the manager for things meanwhile, and pulls cables.
 */
#include <errno.h>
#include <string.h>

#include "client.h"
#include "model/blocks.h"
#include "run/run.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/nvme.h"
#include "work/drives.h"
#include "work/lease.h"
#include "work/life.h"

#define SEEN_IN 8 /* one seed in so many has crews */
#define MATES 3u
#define DEPTH 3u
#define BLOCK_BYTES 4096u /* of the largest block */
#define CALL_MS 120000u

/* A command of one block. */
struct command {
	bool used, writes;
	uint32_t lba;
	unsigned epoch;
	uint64_t sent, stamp;
};

struct crew {
	struct smartio_nvme *n;
	struct blocks_drive *drive;
	uint32_t block, blocks; /* bytes of a block; it uses so many blocks */
	unsigned working;	/* mates that have not ended */
};

struct mate {
	struct crew *crew;
	smartio_thread_t thread; /* NULL: it was not started */
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	struct command command[DEPTH];
	unsigned in_flight;
};

static bool may_end(const struct crew *c, int rc)
{
	return sim_survivor_may_end(rc) || rc == -ECONNRESET || rc == -ENODEV ||
	       blocks_distrusted(c->drive) ||
	       (rc == -EPROTO && (sim_drives_lossy() || sim_has_fault("doubled") ||
				  sim_has_fault("stray") || sim_has_fault("stop")));
}

/* Return: whether the queue can still be used. */
static bool lives(const struct mate *m, const char *call, int rc)
{
	if (rc >= 0)
		return true;
	if (!may_end(m->crew, rc))
		sim_fail("states", "%s: %s gives %d: %s", sim_self()->name, call, rc,
			 smartio_nvme_error());
	return false;
}

/* ---- commands ---- */
static volatile uint8_t *data_of(const struct mate *m, const struct command *cmd)
{
	return (volatile uint8_t *)smartio_nvme_buffer_data(m->b) +
	       (size_t)(cmd - m->command) * BLOCK_BYTES;
}

static struct command *free_command(struct mate *m)
{
	for (unsigned i = 0; i < DEPTH; i++)
		if (!m->command[i].used)
			return &m->command[i];
	return NULL;
}

static void prepare(struct mate *m, struct command *cmd)
{
	uint64_t data[BLOCK_BYTES / 8];
	struct crew *c = m->crew;

	cmd->epoch = blocks_epoch(c->drive);
	cmd->sent = sim_now();
	if (cmd->writes) {
		cmd->stamp = blocks_write(c->drive, cmd->lba);
		blocks_fill(data, c->block, cmd->stamp, cmd->lba);
	} else {
		blocks_poison(data, c->block);
	}
	sio_copy_to(data_of(m, cmd), data, c->block);
}

static bool submit(struct mate *m)
{
	struct command *cmd = free_command(m);
	struct crew *c = m->crew;
	int rc;

	if (!cmd)
		return true;
	cmd->writes = sim_pick(2);
	cmd->lba = (uint32_t)sim_pick(c->blocks);
	prepare(m, cmd);
	rc = smartio_nvme_submit(m->q, cmd->writes ? SMARTIO_NVME_WRITE : SMARTIO_NVME_READ,
				 cmd->lba, 1, m->b, (size_t)(cmd - m->command) * BLOCK_BYTES, cmd);
	if (rc == 0) {
		cmd->used = true;
		m->in_flight++;
		return true;
	}
	if (cmd->writes)
		blocks_unsent(c->drive, cmd->epoch, cmd->lba, cmd->stamp);
	return rc == -EAGAIN || lives(m, "submit", rc);
}

static void completed(struct mate *m, const struct smartio_nvme_completion *done)
{
	struct command *cmd = done->cookie;
	uint64_t data[BLOCK_BYTES / 8];
	struct crew *c = m->crew;

	if (cmd < m->command || cmd >= m->command + DEPTH || !cmd->used)
		sim_fail("states", "%s: a completion of nothing that was sent", sim_self()->name);
	cmd->used = false;
	m->in_flight--;
	if (done->status == SMARTIO_NVME_UNSURE) {
		if (!cmd->writes)
			sim_fail("states", "%s: a read has an unknown fate", sim_self()->name);
		blocks_unsure(c->drive, cmd->epoch, cmd->lba, cmd->stamp);
	} else if (done->status) {
		if (!sim_drives_lossy() && !blocks_distrusted(c->drive))
			sim_fail("states", "%s: the drive's status is %s", sim_self()->name,
				 smartio_nvme_status_string(done->status));
	} else if (cmd->writes) {
		blocks_written(c->drive, cmd->epoch, cmd->lba, cmd->stamp);
	} else {
		sio_copy_from(data, data_of(m, cmd), c->block);
		blocks_judge(c->drive, cmd->epoch, cmd->lba, data, c->block, cmd->sent,
			     sim_drives_lossy(), sim_self()->name);
	}
}

static bool poll(struct mate *m)
{
	struct smartio_nvme_completion done[DEPTH];
	int n = smartio_nvme_poll(m->q, done, DEPTH);

	for (int i = 0; i < n; i++)
		completed(m, &done[i]);
	if (n == 0)
		sim_sleep(1 + sim_pick(m->in_flight ? 40000 : SIM_MS));
	return lives(m, "poll", n);
}

/* ---- a thread ---- */
static void use_queue(struct mate *m)
{
	const uint64_t until = sim_now() + sim_pick(100 * SIM_MS);
	bool good = true;

	while (good && sim_now() < until && !sim_stopping_programs())
		good = sim_pick(2) ? submit(m) : poll(m);
	while (good && m->in_flight > 0 && !sim_stopping_programs() && sim_pick(50))
		good = poll(m);
}

static bool open_queue(struct mate *m)
{
	const struct smartio_nvme_queue_options o = {.size = sizeof(o),
						     .depth = DEPTH,
						     .flags = SMARTIO_NVME_SURVIVE,
						     .sq_placement = (uint32_t)sim_pick(3),
						     .cq_placement = (uint32_t)sim_pick(3),
						     .survive_ms = 1 + (uint32_t)sim_pick(20000),
						     .wait_ms = (uint32_t)sim_pick(500)};
	int rc;

	memset(m->command, 0, sizeof(m->command));
	m->in_flight = 0;
	sim_call("smartio_nvme_queue_open", 0);
	rc = smartio_nvme_queue_open(m->crew->n, &o, &m->q);
	/* The lender has lost this host, or the drive was formatted since. */
	sim_nvme_called(rc, rc == -EFAULT ? rc : -ESTALE);
	return rc == 0;
}

static void live_with_queue(struct mate *m)
{
	int rc;

	if (!open_queue(m))
		return;
	sim_call("smartio_nvme_buffer_alloc", 0);
	rc = sim_nvme_called(
		smartio_nvme_buffer_alloc(m->crew->n, (size_t)DEPTH * BLOCK_BYTES, &m->b), 0);
	if (rc == 0)
		use_queue(m);
	sim_call("smartio_nvme_queue_close", CALL_MS);
	smartio_nvme_queue_close(m->q);
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
	if (rc)
		return;
	sim_call("smartio_nvme_buffer_free", 0);
	sim_nvme_called(smartio_nvme_buffer_free(m->b), 0);
}

static void mate_main(void *arg)
{
	struct mate *m = arg;

	for (unsigned i = 1 + (unsigned)sim_pick(4); i > 0 && !sim_stopping_programs(); i--) {
		live_with_queue(m);
		sim_sleep(1 + sim_pick(20 * SIM_MS));
	}
	m->crew->working--;
}

/* ---- the first one ---- */
static void ask(struct smartio_nvme *n)
{
	struct smartio_nvme_pair pair[4];

	sim_call("smartio_nvme_get_pairs", 0);
	sim_nvme_called(smartio_nvme_get_pairs(n, pair, 4), 0);
}

static void work(struct crew *c)
{
	struct mate mate[MATES];
	sci_error_t error;

	for (unsigned i = 0; i < MATES; i++) {
		mate[i] = (struct mate){.crew = c};
		c->working++;
		smartio_thread_start(mate_main, &mate[i], &mate[i].thread, &error);
		if (error == SCI_ERR_OK)
			continue;
		mate[i].thread = NULL;
		c->working--;
	}
	while (c->working > 0) {
		sim_sleep(1 + sim_pick(100 * SIM_MS));
		if (sim_pick(4) == 0)
			ask(c->n);
		if (c->n->second && !sim_pulling && sim_pick(8) == 0 && !sim_stopping_programs())
			sim_pull((sim_pick(2) ? c->n : c->n->second)->d.over - 1);
	}
	for (unsigned i = 0; i < MATES; i++)
		if (mate[i].thread)
			smartio_thread_join(mate[i].thread);
}

static bool is_usable(struct crew *c)
{
	struct smartio_nvme_namespace ns;

	if (smartio_nvme_get_namespace(c->n, 0, &ns) || ns.block_size > BLOCK_BYTES || !ns.blocks)
		return false; /* of a malicious manager */
	c->block = ns.block_size;
	c->blocks = ns.blocks < BLOCKS_USED ? (uint32_t)ns.blocks : BLOCKS_USED;
	if (sim_has_workload("leaser"))
		c->blocks = sim_lease_from(c->blocks);
	return c->blocks > 0;
}

static void crew_main(struct sim_proc *p)
{
	const struct smartio_nvme_open_options o = {
		.size = sizeof(o), .wait_ms = 200, .flags = SMARTIO_NVME_MULTIPATH};
	unsigned tries = 1 + (unsigned)sim_pick(20), host, device;
	const char *name = sim_pick_drive(&host, &device)->name;
	struct crew c = {.drive = blocks_drive(host, device)};
	int rc;

	if (!sim_initialize())
		return;
	for (; tries > 0 && !sim_stopping_programs(); tries--) {
		sim_call("smartio_nvme_open", 0);
		rc = sim_pick(4) ? smartio_nvme_open_with(name, &o, &c.n)
				 : smartio_nvme_open(name, &c.n);
		if (sim_nvme_called(rc, 0) == 0) {
			if (is_usable(&c))
				work(&c);
			sim_call("smartio_nvme_close", CALL_MS);
			smartio_nvme_close(c.n);
			sim_called(SCI_ERR_OK, SCI_ERR_OK);
		}
		sim_sleep(sim_pick(300 * SIM_MS));
	}
	sim_terminate(p);
}

static bool seen(unsigned hosts)
{
	(void)hosts;
	return sim_drawn_apart("crew", 0x63726577ull, SEEN_IN);
}

const struct sim_workload sim_work_crew = {
	.name = "crew", .weight = 6, .fits = sim_has_drives, .seen = seen, .main = crew_main};
