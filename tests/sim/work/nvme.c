/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients of drives: each opens a queue pair, has up to its depth of commands in flight, and judges
 * every block that it reads by the model of all blocks (model/blocks.h). Clients write where they
 * like. Askers are the same, and ask their manager for this and that meanwhile (work/asker.c).
 */
#include <errno.h>
#include <string.h>

#include "model/blocks.h"
#include "client.h"
#include "fabric/fabric.h"
#include "work/life.h"
#include "run/run.h"
#include "smartio/io.h"
#include "smartio/nvme.h"
#include "run/run.h"
#include "edge/trouble.h"
#include "run/listener.h"
#include "work/drives.h"

#define DEPTH 6u
#define MOST 8u		  /* blocks of a command */
#define BLOCK_BYTES 4096u /* most */
#define SLOT 32768u
#define STRAY_COMES (20 * SIM_MS)
#define DRAINED (37 * SIM_SECOND) /* a queue that is closed, where its manager answers */
#define SILENCE (31 * SIM_SECOND) /* longer than the driver's own */

struct command {
	enum smartio_nvme_op op; /* of one in flight */
	bool used;
	uint32_t lba, n;
	unsigned epoch;
	uint64_t sent, stamp[MOST];
};

struct client {
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	struct blocks_drive *drive;
	uint32_t block, blocks, depth, in_flight;
	uint64_t size; /* blocks of the namespace; those above are what is used */
	bool interrupts;
	bool asks, strays; /* strays: the drive may complete what nobody asked for */
	unsigned number;   /* of the drive */
	uint64_t patience; /* how long it waits for an answer */
	uint64_t heard;	   /* last completion, or the first command since none was in flight */
	struct command command[DEPTH];
};

/* What a drive sends can vanish on its way while a cable is out, and nobody hears of it. */
static bool lossy(void)
{
	return sim_has_fault("link") || sim_has_fault("between") || sim_has_fault("anew") ||
	       sim_has_fault("crash");
}

/*
 * A drive that answers what nobody asked ends the queue. So does memory that became ones, when the
 * program did not run and so has not heard why.
 */
static bool may_be_dead(const struct client *c, int rc)
{
	return blocks_distrusted(c->drive) || rc == -ECONNRESET || rc == -ENODEV ||
	       (rc == -EPROTO && (lossy() || sim_has_fault("doubled") || sim_has_fault("stray") ||
				  sim_has_fault("stop")));
}

static volatile uint8_t *data_of(const struct client *c, const struct command *cmd)
{
	return (volatile uint8_t *)smartio_nvme_buffer_data(c->b) +
	       (size_t)(cmd - c->command) * SLOT;
}

static struct command *free_command(struct client *c)
{
	for (unsigned i = 0; i < c->depth; i++)
		if (!c->command[i].used)
			return &c->command[i];
	return NULL;
}

static void prepare(struct client *c, struct command *cmd)
{
	uint64_t data[BLOCK_BYTES / 8];

	for (uint32_t i = 0; i < cmd->n; i++) {
		if (cmd->op == SMARTIO_NVME_WRITE) {
			cmd->stamp[i] = blocks_write(c->drive, cmd->lba + i);
			blocks_fill(data, c->block, cmd->stamp[i], cmd->lba + i);
		} else {
			blocks_poison(data, c->block);
		}
		sio_copy_to(data_of(c, cmd) + (size_t)i * c->block, data, c->block);
	}
}

/* Nothing is read or written behind the last block: the drive is not even asked. */
static void submit_behind(struct client *c)
{
	uint32_t n = 1 + (uint32_t)sim_pick(MOST);
	uint64_t lba = c->size - sim_pick(n);
	int rc = smartio_nvme_submit(c->q, sim_pick(2) ? SMARTIO_NVME_READ : SMARTIO_NVME_WRITE,
				     lba, n, c->b, 0, NULL);

	if (rc != -ERANGE && !may_be_dead(c, rc))
		sim_fail("states", "%s: %u blocks at %llu of %llu are asked for: %d",
			 sim_self()->name, n, (unsigned long long)lba, (unsigned long long)c->size,
			 rc);
}

/* Return: whether the queue lives. */
static bool submit(struct client *c)
{
	struct command *cmd = free_command(c);
	uint64_t kind = sim_pick(16);
	int rc;

	if (!cmd)
		return true;
	if (sim_pick(16) == 0)
		submit_behind(c);
	cmd->op = kind == 0  ? SMARTIO_NVME_FLUSH
		  : kind < 8 ? SMARTIO_NVME_READ
			     : SMARTIO_NVME_WRITE;
	cmd->n = cmd->op == SMARTIO_NVME_FLUSH ? 0 : 1 + (uint32_t)sim_pick(MOST);
	cmd->lba = (uint32_t)sim_pick(c->blocks - MOST + 1);
	cmd->epoch = blocks_epoch(c->drive);
	cmd->sent = sim_now();
	prepare(c, cmd);
	rc = smartio_nvme_submit(
		c->q, cmd->op, cmd->op == SMARTIO_NVME_FLUSH ? 0 : cmd->lba, cmd->n,
		cmd->op == SMARTIO_NVME_FLUSH ? NULL : c->b,
		cmd->op == SMARTIO_NVME_FLUSH ? 0 : (size_t)(cmd - c->command) * SLOT, cmd);
	if (rc == 0) {
		cmd->used = true;
		if (c->in_flight++ == 0)
			c->heard = sim_now();
	} else if (!may_be_dead(c, rc)) {
		sim_fail("states", "%s: submit of a free command gives %d: %s", sim_self()->name,
			 rc, smartio_nvme_error());
	}
	return rc == 0;
}

static void judge(struct client *c, const struct command *cmd)
{
	uint64_t data[BLOCK_BYTES / 8];

	for (uint32_t i = 0; i < cmd->n; i++) {
		sio_copy_from(data, data_of(c, cmd) + (size_t)i * c->block, c->block);
		blocks_judge(c->drive, cmd->epoch, cmd->lba + i, data, c->block, cmd->sent, lossy(),
			     sim_self()->name);
	}
}

static void completed(struct client *c, const struct smartio_nvme_completion *done)
{
	struct command *cmd = done->cookie;

	if (cmd < c->command || cmd >= c->command + DEPTH || !cmd->used)
		sim_fail("states", "%s: a completion of nothing that was sent", sim_self()->name);
	cmd->used = false;
	c->in_flight--;
	c->heard = sim_now();
	if (done->status) {
		if (!lossy() && !blocks_distrusted(c->drive))
			sim_fail("states", "%s: the drive's status is %s", sim_self()->name,
				 smartio_nvme_status_string(done->status));
		return;
	}
	if (cmd->op == SMARTIO_NVME_READ)
		judge(c, cmd);
	else if (cmd->op == SMARTIO_NVME_WRITE)
		for (uint32_t i = 0; i < cmd->n; i++)
			blocks_written(c->drive, cmd->epoch, cmd->lba + i, cmd->stamp[i]);
}

/* Who knows that the drive was reset does not write to its doorbells: they may be another's. */
static int look(struct client *c, struct smartio_nvme_completion *done, unsigned max)
{
	const struct smartio_nvme_queue *q = c->q;
	bool knew = *(const volatile uint32_t *)q->generation_word != q->generation;
	struct smartio_nvme_counters before, after;
	int n;

	smartio_nvme_queue_counters(q, &before);
	n = smartio_nvme_poll(c->q, done, max);
	smartio_nvme_queue_counters(q, &after);
	if (knew && (after.doorbells_sq != before.doorbells_sq ||
		     after.doorbells_cq != before.doorbells_cq))
		sim_fail("states", "%s: rings doorbells of a drive that it knows was reset",
			 sim_self()->name);
	return n;
}

/*
 * The drive completes what this client did not ask for, which has nothing in flight and sends
 * nothing before it came. Return: whether the queue lives: not if it came.
 */
static bool stray(struct client *c)
{
	uint64_t until = sim_now() + STRAY_COMES;
	struct smartio_nvme_completion done;
	int n = 0;

	if (!trouble_stray(c->number, smartio_nvme_queue_id(c->q),
			   (uint16_t)(sim_pick(2) ? sim_pick(65536) : 0)))
		return true;
	while ((n = look(c, &done, 1)) == 0 && sim_now() < until)
		sim_sleep(1 + sim_pick(20000));
	if (n > 0)
		completed(c, &done);
	if (n < 0 && !may_be_dead(c, n))
		sim_fail("states", "%s: poll gives %d: %s", sim_self()->name, n,
			 smartio_nvme_error());
	return false;
}

/* Return: whether the queue lives. */
static bool poll(struct client *c)
{
	struct smartio_nvme_completion done[DEPTH];
	uint64_t silent;
	int n = look(c, done, 1 + (unsigned)sim_pick(DEPTH));

	if (n < 0) {
		if (!may_be_dead(c, n))
			sim_fail("states", "%s: poll gives %d: %s", sim_self()->name, n,
				 smartio_nvme_error());
		return false;
	}
	for (int i = 0; i < n; i++)
		completed(c, &done[i]);
	if (n > 0)
		return true;
	if (c->interrupts && sim_pick(2)) {
		sim_call("smartio_nvme_wait", 0);
		n = sim_nvme_called(smartio_nvme_wait(c->q, (uint32_t)sim_pick(20)), 0);
		return n >= 0;
	}
	silent = c->in_flight ? sim_now() - c->heard : 0;
	/* Who has waited for long looks more seldom. */
	sim_sleep(1 + sim_pick(c->in_flight ? 20000 + silent / 16 : 2 * SIM_MS));
	return silent < c->patience;
}

static void use_queue(struct client *c)
{
	uint64_t commands = 10 + sim_pick(sim_pick(8) ? 60 : 600);
	bool lives = true;

	while (lives && commands > 0 && !sim_stopping_programs()) {
		if (c->strays && c->in_flight == 0)
			lives = stray(c);
		if (lives && c->asks && sim_pick(8) == 0)
			sim_ask(c->n, c->q);
		if (!lives)
			break;
		if (sim_pick(3)) {
			lives = submit(c);
			commands--;
			if (sim_pick(4) == 0)
				smartio_nvme_ring(c->q);
		} else {
			lives = poll(c);
		}
	}
	while (lives && c->in_flight > 0 && !sim_stopping_programs() && sim_pick(50))
		lives = poll(c);
}

static int open_queue(struct client *c)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o)};
	struct smartio_nvme_namespace ns, other;
	uint64_t resets;
	int rc = smartio_nvme_get_namespace(c->n, 0, &ns);

	if (rc)
		return rc;
	if (smartio_nvme_get_namespace(c->n, 1, &other) != -ENOENT && !blocks_distrusted(c->drive))
		sim_fail("states", "%s: a manager tells of more namespaces than its drive has",
			 sim_self()->name);
	if (ns.block_size > BLOCK_BYTES || ns.blocks < MOST) /* says a manager that lies */
		return -EINVAL;
	c->block = ns.block_size;
	c->size = ns.blocks;
	c->blocks = ns.blocks < BLOCKS_USED ? (uint32_t)ns.blocks : BLOCKS_USED;
	o.depth = c->depth = 1 + (uint32_t)sim_pick(DEPTH);
	o.sq_placement = (uint32_t)sim_pick(3);
	o.cq_placement = (uint32_t)sim_pick(3);
	c->patience = sim_pick(2) ? SILENCE : SIM_MS << sim_pick(12);
	c->interrupts = sim_pick(4) == 0;
	o.flags = c->interrupts ? SMARTIO_NVME_INTERRUPT : 0;
	o.wait_ms = sim_pick(3) ? 0 : (uint32_t)sim_pick(1500); /* past a look for the manager */
	resets = sim_resets_noted(c->n->d.fdid);
	sim_call("smartio_nvme_queue_open", 0);
	rc = smartio_nvme_queue_open(c->n, &o, &c->q);
	if (rc == 0)
		sim_note_queue(c->n->d.fdid, c->q, resets);
	/*
	 * The manager asked a lender that has lost this host, and will be told so later than we
	 * are.
	 */
	if (rc == -EFAULT && (lossy() || sim_has_fault("cut") || sim_has_fault("delay")))
		return sim_nvme_called(rc, rc);
	/* A drive without interrupts; or of short queues. */
	return sim_nvme_called(rc, rc == -ENOTSUP && c->interrupts ? rc : -EINVAL);
}

/* Waits for what is in flight; but not for ever, though its manager lives. */
static void close_queue(struct client *c)
{
	uint64_t began = sim_now();

	sim_call("smartio_nvme_queue_close", 120000);
	smartio_nvme_queue_close(c->q);
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
	if (sim_now() - began > DRAINED && sim_drives_alone())
		sim_fail("calls", "%s: a queue was closed in %llu ms", sim_self()->name,
			 (unsigned long long)((sim_now() - began) / SIM_MS));
}

static void use_drive(struct client *c)
{
	unsigned queues = 1 + (unsigned)sim_pick(3);
	int rc;

	for (; queues > 0 && !sim_stopping_programs(); queues--) {
		memset(c->command, 0, sizeof(c->command));
		c->in_flight = 0;
		c->b = NULL;
		if (open_queue(c) != 0) {
			/* Once more, with the memory that it had, unless the drive may use that. */
			if (c->asks && sim_pick(4))
				continue;
			return;
		}
		sim_call("smartio_nvme_buffer_alloc", 0);
		rc = sim_nvme_called(smartio_nvme_buffer_alloc(c->n, DEPTH * SLOT, &c->b), 0);
		if (rc == 0)
			use_queue(c);
		close_queue(c);
		if (!c->b)
			return;
		sim_call("smartio_nvme_buffer_free", 0);
		rc = sim_nvme_called(smartio_nvme_buffer_free(c->b), 0);
		if (rc)
			return; /* it goes when the drive is closed */
	}
}

/* Askers come also before their manager, and wait for it. */
static int open_drive(const char *name, struct client *c)
{
	uint32_t wait_ms = c->asks ? (uint32_t)sim_pick(400) : 0;
	int rc;

	sim_call("smartio_nvme_open", 0);
	rc = wait_ms ? smartio_nvme_open_wait(name, wait_ms, &c->n)
		     : smartio_nvme_open(name, &c->n);
	return sim_nvme_called(rc, 0);
}

static void live(struct sim_proc *p, bool asks)
{
	struct client c = {.asks = asks, .strays = sim_has_fault("stray")};
	unsigned tries = 1 + (unsigned)sim_pick(20), host, device;
	const struct sio_topo_device *topo = sim_pick_drive(&host, &device);
	const char *name = topo->name;

	c.number = fabric_device_requester(topo);
	c.drive = blocks_drive(host, device);
	if (!sim_initialize())
		return;
	for (; tries > 0 && !sim_stopping_programs(); tries--) {
		if (open_drive(name, &c) == 0) {
			use_drive(&c);
			sim_call("smartio_nvme_close", 120000);
			smartio_nvme_close(c.n);
			sim_called(SCI_ERR_OK, SCI_ERR_OK);
		}
		sim_sleep(sim_pick(300 * SIM_MS));
	}
	sim_terminate(p);
}

static void nvme_main(struct sim_proc *p)
{
	live(p, false);
}

static void asker_main(struct sim_proc *p)
{
	live(p, true);
}

const struct sim_workload sim_work_asker = {
	.name = "asker", .weight = 4, .fits = sim_has_drives, .main = asker_main};
const struct sim_workload sim_work_nvme = {
	.name = "nvme", .weight = 8, .fits = sim_has_drives, .main = nvme_main};
