/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients of drives. Each opens a queue pair, has as many commands in flight as the queue is deep,
 * and compares every block that it reads with the model of all blocks (model/blocks.h); all write
 * to the same blocks. Seven workloads are such clients: "nvme"; "asker", which also sends requests
 * to its manager (work/asker.c); "mover", whose queues survive the loss of their pair, and which
 * uses two paths to the drive if there are two; "sharer", a mover that shares its pair with others
 * of its host; "placer", whose data lie in the RAM of a memory device, so that the drive reads and
 * writes there from device to device; "joiner", which has several submission queues that complete
 * in one completion queue; and "leaser", which writes to blocks that it has leased (work/lease.c),
 * and may do all that movers and sharers do.
 */
#include <errno.h>
#include <string.h>

#include "model/blocks.h"
#include "model/leases.h"
#include "client.h"
#include "fabric/fabric.h"
#include "work/life.h"
#include "run/run.h"
#include "smartio/io.h"
#include "smartio/memdev.h"
#include "smartio/nvme.h"
#include "edge/trouble.h"
#include "run/listener.h"
#include "work/drives.h"
#include "work/lease.h"
#include "work/several.h"

#define DEPTH 6u
#define SEEN_IN 8	  /* one seed in so many has movers */
#define MOST 8u		  /* blocks of a command */
#define BLOCK_BYTES 4096u /* of the largest block */
#define SLOT 32768u
#define MEMORY_BYTES (1u << 20) /* of a memory device: run/draw.c */
#define STRAY_COMES (20 * SIM_MS)
#define DRAINED (37 * SIM_SECOND) /* by then a queue is closed, if its manager answers */
#define SILENCE (31 * SIM_SECOND) /* longer than the driver waits for completions */

struct command {
	enum smartio_nvme_op op;
	bool used; /* in flight */
	uint32_t lba, n;
	unsigned epoch;
	const struct smartio_nvme_queue *q; /* in which it was sent */
	uint64_t sent, stamp[MOST];
};

struct client {
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	struct blocks_drive *drive;
	uint32_t block, first, blocks, depth, in_flight; /* it uses @blocks from @first on */
	uint64_t size;	 /* blocks of the namespace, of which @blocks are used */
	uint64_t opened; /* when the queue began to be */
	uint64_t given;	 /* when it was there */
	uint64_t resets; /* that the drive had had then */
	bool interrupts;
	bool moves;  /* its queues survive the loss of their pair */
	bool shares; /* and share it with other programs */
	bool leases; /* it writes to blocks that it has leased */
	bool alone;  /* and its writes are sent again, for nobody else writes there */
	struct sim_lease lease;
	bool places; /* its data lie on a memory device, where there is one */
	bool joins;  /* it has several submission queues, of which @q is the first */
	struct sim_several several;
	/* That device; NULL: the data lie in RAM. When they were placed there; its host. */
	const struct sio_topo_device *on;
	uint64_t placed;
	unsigned at, boots; /* the host, and sim_host_boots() of it when they were placed */
	bool asks, strays;  /* strays: the drive may complete commands that were not sent */
	unsigned number;    /* of the drive */
	uint64_t patience;  /* how long it waits for an answer */
	uint64_t heard;	    /* last completion, or the first command since none was in flight */
	struct command command[DEPTH];
};

/*
 * Is @rc the error of a queue that may have ended? A completion of a command that was not sent ends
 * it. So does memory that reads as ones, if the program was stopped when it was to be notified of
 * the loss.
 */
static bool may_be_dead(const struct client *c, int rc)
{
	if (c->moves && sim_survivor_may_end(rc))
		return true;
	/*
	 * What the drive answers to who pushes its data before a completion are ones then, and when
	 * it has just been pulled out or reset, of which the client is notified a moment later.
	 */
	if (rc == -ENETDOWN && (sim_drives_lossy() || sim_has_fault("stop") ||
				sim_drive_pulled(c->n->d.fdid) > c->opened ||
				sim_resets_noted(c->n->d.fdid) != c->resets))
		return true;
	if (c->leases && rc == -ESTALE)
		return true;
	return blocks_distrusted(c->drive) || rc == -ECONNRESET || rc == -ENODEV ||
	       (rc == -EPROTO && (sim_drives_lossy() || sim_has_fault("doubled") ||
				  sim_has_fault("stray") || sim_has_fault("stop")));
}

static volatile uint8_t *data_of(const struct client *c, const struct command *cmd)
{
	return (volatile uint8_t *)smartio_nvme_buffer_data(c->b) +
	       (size_t)(cmd - c->command) * SLOT;
}

static struct smartio_nvme_queue *any_queue(const struct client *c)
{
	return c->joins ? sim_several_pick(&c->several) : c->q;
}

static struct command *free_command(struct client *c)
{
	for (unsigned i = 0; i < c->depth; i++)
		if (!c->command[i].used)
			return &c->command[i];
	return NULL;
}

/* ---- data on a device ---- */

/*
 * Are the data in the device's RAM what they must be: has the device not been lost since they were
 * placed there, and has the path to it held?
 */
static bool is_sound(const struct client *c)
{
	return !c->on || (!sim_drives_lossy() && sim_drive_pulled(c->on->fdid) < c->placed &&
			  sim_host_boots(c->at) == c->boots);
}

/*
 * Allocates memory for the data. Each range of a device is used once, because the drive may still
 * write to the range of a client that has died.
 */
static int have_buffer(struct client *c)
{
	static struct sim_shares shares;
	size_t place = SIZE_MAX;
	bool never; /* a real host without an IOMMU could not take the memory away */

	if (c->places && sim_pick(8))
		place = (size_t)sim_next_share(&shares) * DEPTH * SLOT;
	c->on = NULL;
	if (place <= MEMORY_BYTES - DEPTH * SLOT) {
		c->on = sim_pick_device(sim_is_memory, &c->at);
		c->placed = sim_now();
		c->boots = sim_host_boots(c->at);
		never = sim_outliving && !sim_cluster->topology->host[c->at].iommu;
		sim_call("smartio_nvme_buffer_on_device", 0);
		return sim_nvme_called(smartio_nvme_buffer_on_device(c->n, c->on->name,
								     SIO_MEMDEV_BAR_RAM, place,
								     DEPTH * SLOT, &c->b),
				       never ? -ENOTSUP : 0);
	}
	sim_call("smartio_nvme_buffer_alloc", 0);
	return sim_nvme_called(smartio_nvme_buffer_alloc(c->n, DEPTH * SLOT, &c->b), 0);
}

/*
 * The doorbell takes another path than the data, which have arrived on the device when the last of
 * them was read back. Return: whether they are what was stored. They are not if the device is lost,
 * or the path to it.
 */
static bool has_arrived(const struct client *c, const struct command *cmd)
{
	uint64_t want[BLOCK_BYTES / 8], found[BLOCK_BYTES / 8];

	if (!c->on || cmd->n == 0)
		return true;
	sio_push_stores(data_of(c, cmd));
	for (uint32_t i = 0; cmd->op == SMARTIO_NVME_WRITE && i < cmd->n; i++) {
		blocks_fill(want, c->block, cmd->stamp[i], cmd->lba + i);
		sio_copy_from(found, data_of(c, cmd) + (size_t)i * c->block, c->block);
		if (memcmp(want, found, c->block) == 0)
			continue;
		if (is_sound(c))
			sim_fail("states", "%s: %s does not hold what was stored there",
				 sim_self()->name, c->on->name);
		return false;
	}
	return true;
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

/* Beyond the last block, in part. */
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

/* Before the first block of the lease, or behind the last one, all or in part. */
static void submit_outside(struct client *c)
{
	uint32_t n = 1 + (uint32_t)sim_pick(MOST);
	uint64_t end = c->first + c->blocks;
	uint64_t lba = sim_pick(2) ? end - sim_pick(n) : c->first - 1 - sim_pick(c->first);
	int rc = smartio_nvme_submit(c->q, sim_pick(2) ? SMARTIO_NVME_READ : SMARTIO_NVME_WRITE,
				     lba, n, c->b, 0, NULL);

	if (rc != -ERANGE && !may_be_dead(c, rc))
		sim_fail("leases", "%s: %u blocks at %llu with a lease of %u + %u: %d",
			 sim_self()->name, n, (unsigned long long)lba, c->first, c->blocks, rc);
}

/* The driver refuses blocks that the queue must not use. */
static void submit_wrongly(struct client *c)
{
	if (c->leases)
		submit_outside(c);
	else
		submit_behind(c);
}

/* Is a command in flight that writes to one of the blocks of @cmd? */
static bool is_written(const struct client *c, const struct command *cmd)
{
	for (unsigned i = 0; i < DEPTH; i++) {
		const struct command *other = &c->command[i];

		if (other->used && other->op == SMARTIO_NVME_WRITE &&
		    other->lba < cmd->lba + cmd->n && cmd->lba < other->lba + other->n)
			return true;
	}
	return false;
}

/* Return: whether the queue can still be used. */
static bool submit(struct client *c)
{
	struct command *cmd = free_command(c);
	struct smartio_nvme_queue *q = any_queue(c);
	uint64_t kind = sim_pick(16);
	int rc;

	if (!cmd)
		return true;
	if (sim_pick(16) == 0)
		submit_wrongly(c);
	cmd->op = kind == 0  ? SMARTIO_NVME_FLUSH
		  : kind < 8 ? SMARTIO_NVME_READ
			     : SMARTIO_NVME_WRITE;
	cmd->n = cmd->op == SMARTIO_NVME_FLUSH ? 0 : 1 + (uint32_t)sim_pick(MOST);
	cmd->lba = c->first + (uint32_t)sim_pick(c->blocks - MOST + 1);
	if (c->alone && cmd->op == SMARTIO_NVME_WRITE && is_written(c, cmd))
		cmd->op = SMARTIO_NVME_READ;
	cmd->epoch = blocks_epoch(c->drive);
	cmd->sent = sim_now();
	prepare(c, cmd);
	if (!has_arrived(c, cmd)) {
		for (uint32_t i = 0; i < cmd->n; i++)
			blocks_unsent(c->drive, cmd->epoch, cmd->lba + i, cmd->stamp[i]);
		return false;
	}
	cmd->q = q;
	rc = smartio_nvme_submit(
		q, cmd->op, cmd->op == SMARTIO_NVME_FLUSH ? 0 : cmd->lba, cmd->n,
		cmd->op == SMARTIO_NVME_FLUSH ? NULL : c->b,
		cmd->op == SMARTIO_NVME_FLUSH ? 0 : (size_t)(cmd - c->command) * SLOT, cmd);
	if (rc == 0) {
		cmd->used = true;
		if (c->in_flight++ == 0)
			c->heard = sim_now();
	} else if (c->moves && rc == -EAGAIN) {
		/* It has lost its pair and does not have another one yet. */
		for (uint32_t i = 0; cmd->op == SMARTIO_NVME_WRITE && i < cmd->n; i++)
			blocks_unsent(c->drive, cmd->epoch, cmd->lba + i, cmd->stamp[i]);
		return true;
	} else if (!may_be_dead(c, rc)) {
		sim_fail("states", "%s: submit of a free command gives %d: %s", sim_self()->name,
			 rc, smartio_nvme_error());
	}
	return rc == 0;
}

static void judge(struct client *c, const struct command *cmd)
{
	uint64_t data[BLOCK_BYTES / 8];

	/* The completion took another path than the data, which are waited for. */
	if (c->on && is_sound(c))
		fabric_path_all(c->at, sim_now());
	for (uint32_t i = 0; i < cmd->n; i++) {
		sio_copy_from(data, data_of(c, cmd) + (size_t)i * c->block, c->block);
		/* The device may be pulled out while it is being read. */
		if (!is_sound(c))
			return;
		blocks_judge(c->drive, cmd->epoch, cmd->lba + i, data, c->block, cmd->sent,
			     sim_drives_lossy(), sim_self()->name);
	}
}

/*
 * A command with an unknown fate. Only writes may have one, because the driver repeats all others,
 * and those, too, where nobody else writes; it gives up on one that was overdue three times. The
 * blocks of the write have the old contents or
 * the new ones, and will not change any more.
 */
static void unsure(struct client *c, const struct command *cmd)
{
	struct smartio_nvme_counters counted;

	smartio_nvme_queue_counters(c->q, &counted);
	if (cmd->op != SMARTIO_NVME_WRITE && counted.overdue >= 3)
		return;
	if (cmd->op != SMARTIO_NVME_WRITE)
		sim_fail("states", "%s: a command that only reads has an unknown fate",
			 sim_self()->name);
	if (c->alone && counted.overdue < 3)
		sim_fail("states",
			 "%s: a write that nobody else can have overwritten has an "
			 "unknown fate",
			 sim_self()->name);
	for (uint32_t i = 0; i < cmd->n; i++)
		blocks_unsure(c->drive, cmd->epoch, cmd->lba + i, cmd->stamp[i]);
}

static void completed(struct client *c, const struct smartio_nvme_completion *done)
{
	struct command *cmd = done->cookie;

	if (cmd < c->command || cmd >= c->command + DEPTH || !cmd->used)
		sim_fail("states", "%s: a completion of nothing that was sent", sim_self()->name);
	if (c->joins && done->queue != smartio_nvme_queue_id(cmd->q))
		sim_fail("states", "%s: a command of queue %u is completed as one of queue %u",
			 sim_self()->name, smartio_nvme_queue_id(cmd->q), done->queue);
	cmd->used = false;
	c->in_flight--;
	c->heard = sim_now();
	if (c->moves && done->status == SMARTIO_NVME_UNSURE) {
		unsure(c, cmd);
		return;
	}
	if (done->status) {
		if (!sim_drives_lossy() && !blocks_distrusted(c->drive) && is_sound(c))
			sim_fail("states", "%s: the drive's status is %s", sim_self()->name,
				 smartio_nvme_status_string(done->status));
		return;
	}
	if (c->leases)
		leases_done(c->lease.held, cmd->sent);
	if (!c->moves && !c->joins && !blocks_distrusted(c->drive) &&
	    blocks_were_formatted(c->drive, c->given, cmd->sent))
		sim_fail("states", "%s: its drive was formatted while it had a queue pair",
			 sim_self()->name);
	if (cmd->op == SMARTIO_NVME_READ)
		judge(c, cmd);
	else if (cmd->op == SMARTIO_NVME_WRITE)
		for (uint32_t i = 0; i < cmd->n; i++)
			blocks_written(c->drive, cmd->epoch, cmd->lba + i, cmd->stamp[i]);
}

/*
 * A client that can know of a reset of the drive does not write to its doorbells, which may be
 * another client's now.
 */
static int look(struct client *c, struct smartio_nvme_completion *done, unsigned max)
{
	struct smartio_nvme_queue *q = any_queue(c);
	bool knew = *(const volatile uint32_t *)q->generation_word != q->generation;
	struct smartio_nvme_counters before, after;
	int n;

	smartio_nvme_queue_counters(q, &before);
	n = smartio_nvme_poll(q, done, max);
	smartio_nvme_queue_counters(q, &after);
	if (knew && !c->moves &&
	    (after.doorbells_sq != before.doorbells_sq ||
	     after.doorbells_cq != before.doorbells_cq))
		sim_fail("states", "%s: rings doorbells of a drive that it knows was reset",
			 sim_self()->name);
	return n;
}

/*
 * The drive completes a command that this client did not send. The client has nothing in flight,
 * and sends nothing until that completion has arrived or is overdue. Return: whether the queue can
 * still be used: not if the drive was made to send it.
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

/* Return: whether the queue can still be used, and has not been silent for too long. */
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
	/* The longer it has waited, the longer it sleeps. */
	sim_sleep(1 + sim_pick(c->in_flight ? 20000 + silent / 16 : 2 * SIM_MS));
	return silent < c->patience;
}

/* Sometimes sleeps, or pulls a cable of one of its two paths for a while. */
static void move(struct client *c)
{
	if (sim_pick(100) == 0)
		sim_sleep(sim_pick(5 * SIM_MS));
	if (c->n->second && !sim_pulling && sim_pick(100) == 0)
		sim_pull((sim_pick(2) ? c->n : c->n->second)->d.over - 1);
}

static bool has_in_flight(void *arg, const struct smartio_nvme_queue *q)
{
	const struct client *c = arg;

	for (unsigned i = 0; i < DEPTH; i++)
		if (c->command[i].used && c->command[i].q == q)
			return true;
	return false;
}

static void use_queue(struct client *c)
{
	uint64_t commands = 10 + sim_pick(sim_pick(8) ? 60 : 600) * (c->moves ? 20 : 1);
	bool lives = true;

	while (lives && commands > 0 && !sim_stopping_programs()) {
		if (c->strays && c->in_flight == 0)
			lives = stray(c);
		if (lives && c->asks && sim_pick(8) == 0)
			sim_ask(c->n, c->q);
		if (!lives)
			break;
		if (c->moves)
			move(c);
		if (c->leases && sim_pick(30) == 0)
			sim_lease_list(c->n, &c->lease);
		if (c->joins && sim_pick(30) == 0)
			sim_several_change(&c->several, has_in_flight, c);
		if (sim_pick(3)) {
			lives = submit(c);
			commands--;
			if (sim_pick(4) == 0)
				smartio_nvme_ring(any_queue(c));
		} else {
			lives = poll(c);
		}
	}
	while (lives && c->in_flight > 0 && !sim_stopping_programs() && sim_pick(50))
		lives = poll(c);
}

/*
 * The time-out of its commands, in ms; 0: none. Drawn from a stream of its own, so that older seeds
 * draw what they always did.
 */
static uint32_t draw_limit(void)
{
	uint64_t drawn = sim_options.seed ^ 0x6c696d6974ull ^ sim_now();

	return sim_draw(&drawn) % 2 ? 0 : 20 + (uint32_t)(sim_draw(&drawn) % 2000);
}

/*
 * Half of those that sleep for completions poll first: for a given time, or as long as they
 * measure. Drawn as above.
 */
static void draw_hybrid(struct smartio_nvme_queue_options *o)
{
	uint64_t drawn = sim_options.seed ^ 0x687962726964ull ^ sim_now();

	if (!(o->flags & SMARTIO_NVME_INTERRUPT) || sim_draw(&drawn) % 2)
		return;
	o->flags |= SMARTIO_NVME_HYBRID;
	o->poll_us = sim_draw(&drawn) % 2 ? 0 : 1 + (uint32_t)(sim_draw(&drawn) % 200);
}

/* The one that it has, or another one. */
static bool have_lease(struct client *c)
{
	if (sim_pick(4) == 0)
		sim_lease_give(&c->lease, false);
	if (!c->lease.l && !sim_lease_take(&c->lease, c->n, c->drive, c->blocks, MOST))
		return false;
	c->first = c->lease.first;
	c->blocks = c->lease.blocks;
	return true;
}

static int open_queue(struct client *c)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o)};
	struct smartio_nvme_namespace ns, other;
	unsigned beside;
	uint64_t resets;
	bool lacks;
	int rc = smartio_nvme_get_namespace(c->n, 0, &ns);

	if (rc)
		return rc;
	if (smartio_nvme_get_namespace(c->n, 1, &other) != -ENOENT && !blocks_distrusted(c->drive))
		sim_fail("states", "%s: a manager reports more namespaces than its drive has",
			 sim_self()->name);
	if (ns.block_size > BLOCK_BYTES || ns.blocks < MOST) /* of a malicious manager */
		return -EINVAL;
	c->block = ns.block_size;
	c->size = ns.blocks;
	c->first = 0;
	c->blocks = ns.blocks < BLOCKS_USED ? (uint32_t)ns.blocks : BLOCKS_USED;
	if (c->leases && !have_lease(c))
		return -EBUSY;
	if (!c->leases && sim_has_workload("leaser"))
		c->blocks = sim_lease_from(c->blocks);
	o.depth = c->depth = 1 + (uint32_t)sim_pick(DEPTH);
	o.sq_placement = (uint32_t)sim_pick(4);
	o.cq_placement = (uint32_t)sim_pick(3);
	c->patience = sim_pick(2) ? SILENCE : SIM_MS << sim_pick(12);
	c->interrupts = sim_pick(4) == 0;
	o.flags = c->interrupts ? SMARTIO_NVME_INTERRUPT : 0;
	draw_hybrid(&o);
	if (c->moves) {
		o.sq_placement %= SMARTIO_NVME_PLACE_CMB; /* queues in the CMB cannot survive */
		o.flags |= SMARTIO_NVME_SURVIVE;
		o.survive_ms = 1 + (uint32_t)sim_pick(20000);
		o.timeout_ms = draw_limit();
	}
	if (c->shares) {
		o.sq_placement = o.cq_placement = 0;
		o.flags |= SMARTIO_NVME_SHARED;
	}
	c->alone = c->leases && c->moves && sim_pick(2);
	o.flags |= c->alone ? SMARTIO_NVME_ALONE : 0;
	o.lease = c->lease.l;
	if (c->places && sim_pick(3) == 0) { /* it may be in use, or on another host */
		o.sq_device = sim_pick_device(sim_is_memory, &beside)->name;
		o.sq_placement = SMARTIO_NVME_PLACE_AUTO;
	}
	if (c->joins)
		o.cq_depth = SIM_SEVERAL * o.depth;
	o.wait_ms = sim_pick(3) ? 0 : (uint32_t)sim_pick(1500); /* for a pair to become free */
	resets = sim_resets_noted(c->n->d.fdid);
	c->opened = sim_now();
	c->resets = resets;
	sim_call("smartio_nvme_queue_open", 0);
	rc = smartio_nvme_queue_open(c->n, &o, &c->q);
	c->given = sim_now();
	if (rc == 0 && !c->moves) /* later pairs of a mover are not reported to oracles */
		sim_note_queue(c->n->d.fdid, c->q, resets);
	if (rc == 0 && c->joins) {
		sim_nvme_called(rc, 0);
		sim_several_open(&c->several, c->n, c->q, c->depth, resets);
		return 0;
	}
	/*
	 * The lender has lost this host, of which the manager knows nothing yet, and refused the
	 * manager's request for this client's memory; or the manager could not send that.
	 */
	if (rc == -EFAULT && (sim_drives_lossy() || sim_has_fault("cut") ||
			      sim_has_fault("delay") || sim_has_fault("scarce")))
		return sim_nvme_called(rc, rc);
	/* The drive may lack interrupts, a CMB, or the device; its queues may be too short. */
	lacks = c->interrupts || o.sq_placement == SMARTIO_NVME_PLACE_CMB || o.sq_device;
	if (c->leases && rc == -ESTALE)
		return sim_nvme_called(rc, rc);
	return sim_nvme_called(rc, rc == -ENOTSUP && lacks ? rc : -EINVAL);
}

/* Waits for what is in flight, but for a limited time, even if its manager lives. */
static void close_one(struct smartio_nvme_queue *q)
{
	uint64_t began = sim_now();

	sim_call("smartio_nvme_queue_close", 120000);
	smartio_nvme_queue_close(q);
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
	if (sim_now() - began > DRAINED && sim_drives_alone())
		sim_fail("calls", "%s: a queue was closed in %llu ms", sim_self()->name,
			 (unsigned long long)((sim_now() - began) / SIM_MS));
}

static void close_queue(struct client *c)
{
	if (c->joins)
		sim_several_close(&c->several, close_one);
	else
		close_one(c->q);
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
			/* Tries again: with the same memory, unless the drive may use that. */
			if (c->asks && sim_pick(4))
				continue;
			return;
		}
		rc = have_buffer(c);
		if (rc == 0)
			use_queue(c);
		close_queue(c);
		if (!c->b)
			return;
		sim_call("smartio_nvme_buffer_free", 0);
		rc = sim_nvme_called(smartio_nvme_buffer_free(c->b), 0);
		if (rc)
			return; /* the buffer is freed when the drive is closed */
	}
}

/* Askers may be started before their manager, and wait for it. */
static int open_drive(const char *name, struct client *c)
{
	uint32_t wait_ms = c->asks ? (uint32_t)sim_pick(400) : 0;
	const struct smartio_nvme_open_options o = {
		.size = sizeof(o), .wait_ms = 200, .flags = SMARTIO_NVME_MULTIPATH};
	int rc;

	sim_call("smartio_nvme_open", 0);
	/* A lease is that of both ways, also without queues that survive. */
	if ((c->moves || c->leases) && sim_pick(4))
		return sim_nvme_called(smartio_nvme_open_with(name, &o, &c->n), 0);
	rc = wait_ms ? smartio_nvme_open_wait(name, wait_ms, &c->n)
		     : smartio_nvme_open(name, &c->n);
	return sim_nvme_called(rc, 0);
}

static void live(struct sim_proc *p, struct client *c)
{
	unsigned tries = 1 + (unsigned)sim_pick(20), host, device;
	/* Those that share meet at one drive. */
	const struct sio_topo_device *topo = c->shares && sim_pick(4)
						     ? sim_first_drive(&host, &device)
						     : sim_pick_drive(&host, &device);
	const char *name = topo->name;

	c->strays = sim_has_fault("stray") && !c->joins && !c->shares && !c->leases;
	c->number = fabric_device_requester(topo);
	c->drive = blocks_drive(host, device);
	if (!sim_initialize())
		return;
	for (; tries > 0 && !sim_stopping_programs(); tries--) {
		if (open_drive(name, c) == 0) {
			use_drive(c);
			sim_lease_give(&c->lease, true);
			sim_call("smartio_nvme_close", 120000);
			smartio_nvme_close(c->n);
			sim_called(SCI_ERR_OK, SCI_ERR_OK);
		}
		sim_sleep(sim_pick(300 * SIM_MS));
	}
	sim_terminate(p);
}

static void nvme_main(struct sim_proc *p)
{
	live(p, &(struct client){.number = 0});
}

static void asker_main(struct sim_proc *p)
{
	live(p, &(struct client){.asks = true});
}

static void mover_main(struct sim_proc *p)
{
	live(p, &(struct client){.moves = true});
}

static void sharer_main(struct sim_proc *p)
{
	live(p, &(struct client){.moves = true, .shares = true});
}

static void placer_main(struct sim_proc *p)
{
	live(p, &(struct client){.places = true});
}

static void joiner_main(struct sim_proc *p)
{
	live(p, &(struct client){.joins = true});
}

static void leaser_main(struct sim_proc *p)
{
	struct client c = {.leases = true};

	c.moves = sim_pick(4);
	c.shares = c.moves && sim_pick(3) == 0;
	live(p, &c);
}

static bool seen(unsigned hosts)
{
	(void)hosts;
	return sim_drawn_apart("mover", 0x6d6f766572ull, SEEN_IN);
}

const struct sim_workload sim_work_leaser = {
	.name = "leaser", .weight = 8, .fits = sim_has_drives, .named = true, .main = leaser_main};
const struct sim_workload sim_work_sharer = {
	.name = "sharer", .weight = 8, .fits = sim_has_drives, .named = true, .main = sharer_main};
const struct sim_workload sim_work_joiner = {
	.name = "joiner", .weight = 8, .fits = sim_has_drives, .named = true, .main = joiner_main};
const struct sim_workload sim_work_placer = {
	.name = "placer", .weight = 8, .fits = sim_has_drives, .named = true, .main = placer_main};
const struct sim_workload sim_work_mover = {
	.name = "mover", .weight = 8, .fits = sim_has_drives, .seen = seen, .main = mover_main};
const struct sim_workload sim_work_asker = {
	.name = "asker", .weight = 4, .fits = sim_has_drives, .main = asker_main};
const struct sim_workload sim_work_nvme = {
	.name = "nvme", .weight = 8, .fits = sim_has_drives, .main = nvme_main};
