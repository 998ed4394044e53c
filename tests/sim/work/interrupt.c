/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that make interrupts and data interrupts, connect to those of others, trigger them, and
 * wait. Each message has the number of its connection, and its own number there: messages arrive in
 * order, none of them twice, and, where nothing breaks, all of them.
 */
#include <string.h>

#include "work/life.h"
#include "run/run.h"
#include "smartio/ext.h"
#include "work/drives.h"

#define OWN 2
#define OTHERS 3
#define NUMBERS 4 /* of interrupts of a host, for each kind; its programs compete for them */
#define SENDERS 64
#define NVME_REPLY 0x504e4953u
#define NVME_REQUEST 0x514e4953u
#define MAGIC 0x6d657373u
#define PLAINS 512u
#define ARRIVES (10 * SIM_MS) /* a trigger that was sent has arrived by then */
#define FLOOD 1000u	      /* messages: a ring holds about half as many */

struct message {
	uint32_t magic, node; /* the receiver's */
	uint64_t connection, count;
	uint8_t more[200];
};

/* What all programs know of a plain interrupt: triggers sent to it, and waits that had one. */
struct plain {
	uint64_t id; /* in the order of creation */
	unsigned host, number;
	bool shared, counting, removed;
	uint64_t sent_before; /* triggers of that number that had begun when it was created */
	uint64_t waits;	      /* waits that a trigger ended */
	uint64_t last_wait;   /* when the last of them returned */
	/*
	 * Triggers through connections that certainly lead to it: how many calls have returned,
	 * when the last one did, and when the latest of them began.
	 */
	uint64_t done, done_at, begun_at;
};

struct own {
	sci_local_interrupt_t plain;
	uint64_t known; /* its struct plain */
	sci_local_data_interrupt_t data;
	uint64_t connection[SENDERS], count[SENDERS];
	unsigned n;
};

struct other {
	sci_remote_interrupt_t plain;
	uint64_t known; /* the struct plain that it leads to; 0: not known */
	unsigned plain_host, number;
	bool may_be_ours; /* it may lead to an interrupt that this workload made */
	sci_remote_data_interrupt_t data;
	uint64_t connection, count;
	unsigned host;
};

struct state {
	sci_desc_t sd;
	struct own own[OWN];
	struct other other[OTHERS];
};

static uint64_t last_connection; /* of the cluster */

/* Can nothing be lost between two hosts? Then nothing may be missing. */
static bool lossless(void)
{
	return !sim_has_pullers() && !sim_has_fault("link") && !sim_has_fault("between") &&
	       !sim_has_fault("anew") && !sim_has_fault("crash") && !sim_has_fault("cut") &&
	       !sim_has_fault("delay");
}

/* ---- what is known of plain interrupts ---- */
static struct plain plains[PLAINS]; /* the latest, by @id modulo PLAINS */
static uint64_t n_plains;
static uint64_t sent[SIM_HOSTS][NUMBERS + 1]; /* triggers that have begun */

/* NULL: its entry has been used again. */
static struct plain *known(uint64_t id)
{
	return id && n_plains - id < PLAINS ? &plains[id % PLAINS] : NULL;
}

/*
 * The interrupt that has this number of @host; 0: none, or several, because it is shared. As long
 * as an interrupt that is not shared exists nobody else gets its number, so it is the latest.
 */
static uint64_t latest(unsigned host, unsigned number)
{
	for (uint64_t id = n_plains; known(id); id--) {
		const struct plain *k = known(id);

		if (k->host == host && k->number == number)
			return k->shared || k->removed ? 0 : id;
	}
	return 0;
}

/*
 * Does a connection to @host over @adapter lead to the interrupts of adapter 0, where this workload
 * makes them? Each adapter has numbers of its own: those of another one are a driver's.
 */
static bool leads_to_ours(unsigned host, unsigned adapter)
{
	return sim_adapters_behind(adapter, host) == 1u << 0;
}

/* Each trigger ends one wait at most; two that meet, where they are not counted, end one wait. */
static void had_trigger(struct own *o)
{
	struct plain *k = known(o->known);

	if (!k)
		return;
	k->last_wait = sim_now();
	if (++k->waits > sent[k->host][k->number] - k->sent_before && !sim_has_fault("liar"))
		sim_fail("states", "%s: %llu waits for interrupt %u had a trigger, %llu were sent",
			 sim_self()->name, (unsigned long long)k->waits, k->number,
			 (unsigned long long)(sent[k->host][k->number] - k->sent_before));
}

/* A wait that began at @since has timed out. */
static void had_none(const struct own *o, uint64_t since)
{
	const struct plain *k = known(o->known);

	if (!k || k->shared || k->done == 0 || k->done_at + ARRIVES > since || !lossless())
		return;
	if (k->counting ? k->done > k->waits : k->begun_at > k->last_wait)
		sim_fail("states",
			 "%s: interrupt %u was triggered (%llu times), and a wait is late",
			 sim_self()->name, k->number, (unsigned long long)k->done);
}

/* ---- receiving ---- */
static void create_plain(struct state *s, struct own *o)
{
	unsigned number = 1 + (unsigned)sim_pick(NUMBERS);
	unsigned flags = SCI_FLAG_FIXED_INTNO, host = sim_self()->host;
	uint64_t before = sent[host][number];
	sci_error_t e;

	if (o->plain)
		return;
	flags |= sim_pick(2) ? SCI_FLAG_COUNTING_INT : 0;
	flags |= sim_pick(4) == 0 ? SCI_FLAG_SHARED_INT : 0;
	SIM_CALL(SCICreateInterrupt, (s->sd, &o->plain, 0, &number, NULL, NULL, flags, &e), &e,
		 SCI_ERR_INTNO_USED);
	if (e != SCI_ERR_OK) {
		o->plain = NULL;
		return;
	}
	o->known = ++n_plains;
	plains[o->known % PLAINS] = (struct plain){.id = o->known,
						   .host = host,
						   .number = number,
						   .shared = flags & SCI_FLAG_SHARED_INT,
						   .counting = flags & SCI_FLAG_COUNTING_INT,
						   .sent_before = before};
}

static void remove_plain(struct own *o)
{
	sci_error_t e;

	if (!o->plain)
		return;
	if (known(o->known))
		known(o->known)->removed = true;
	SIM_END(SCIRemoveInterrupt, (o->plain, 0, &e), &e, SCI_ERR_BUSY);
	if (e != SCI_ERR_BUSY)
		o->plain = NULL;
}

static void create_data(struct state *s, struct own *o)
{
	unsigned number = 1 + (unsigned)sim_pick(NUMBERS);
	sci_error_t e;

	if (o->data)
		return;
	o->n = 0;
	SIM_CALL(SCICreateDataInterrupt,
		 (s->sd, &o->data, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &e), &e,
		 SCI_ERR_INTNO_USED);
	if (e != SCI_ERR_OK)
		o->data = NULL;
}

static void remove_data(struct own *o)
{
	sci_error_t e;

	if (o->data)
		SIM_CALL(SCIRemoveDataInterrupt, (o->data, 0, &e), &e);
	o->data = NULL;
}

/* May managers be stopped, or wait for a drive that does not answer? */
static bool managers_may_be_slow(void)
{
	return sim_has_fault("stop") || sim_has_fault("fatal") || sim_drives_fail();
}

/*
 * Is it a message between the manager of a drive and a client, of which one has ended and whose
 * number this program has now, or whose number a malicious manager has made up?
 */
static bool is_a_drives(const struct message *m)
{
	/* A reply to a client that has ended, perhaps as it could not ask further. */
	if (m->magic == NVME_REPLY)
		return managers_may_be_slow() || sim_has_fault("scarce");
	/* A request to a number that the manager made up. */
	return m->magic == NVME_REQUEST && sim_wild.lies;
}

static void check_message(struct own *o, const struct message *m, unsigned length)
{
	const char *name = sim_self()->name;
	unsigned i;

	if (is_a_drives(m))
		return;
	if (length < 24 || length > sizeof(*m) || m->magic != MAGIC ||
	    m->node != sim_node(sim_self()->host))
		sim_fail("messages", "%s: a message of %u bytes begins with %#x, to node %u", name,
			 length, m->magic, m->node);
	for (unsigned k = 24; k < length; k++)
		if (m->more[k - 24] != (uint8_t)(m->count + k))
			sim_fail("messages", "%s: byte %u of a message is wrong", name, k);
	for (i = 0; i < o->n && o->connection[i] != m->connection; i++)
		;
	if (i == o->n) {
		if (o->n == SENDERS)
			return;
		o->connection[o->n++] = m->connection;
		o->count[i] = m->count;
		if (m->count != 1 && lossless())
			sim_fail("messages", "%s: the first message of connection %llu is %llu",
				 name, (unsigned long long)m->connection,
				 (unsigned long long)m->count);
		return;
	}
	if (m->count <= o->count[i] || (m->count != o->count[i] + 1 && lossless()))
		sim_fail("messages", "%s: message %llu of connection %llu comes after %llu", name,
			 (unsigned long long)m->count, (unsigned long long)m->connection,
			 (unsigned long long)o->count[i]);
	o->count[i] = m->count;
}

static void wait_data(struct own *o)
{
	unsigned timeout = sim_pick(2) ? 0 : (unsigned)sim_pick(50), length;
	/* After a flood all messages are read, so that a missing one is noticed. */
	bool all = sim_has_fault("flood") && sim_pick(4) == 0;
	union {
		struct message m;
		/* Room for a manager's reply to a client that had the number before. */
		uint8_t room[4352];
	} got;
	sci_error_t e;

	do {
		if (!o->data)
			return;
		length = sizeof(got);
		sim_call("SCIWaitForDataInterrupt", timeout + 1000);
		SCIWaitForDataInterrupt(o->data, &got, &length, timeout, 0, &e);
		sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_CANCELLED, SCI_ERR_OK);
		if (e == SCI_ERR_OK)
			check_message(o, &got.m, length);
	} while (e == SCI_ERR_OK && (all || sim_pick(8) > 0));
}

static void wait_plain(struct own *o)
{
	unsigned timeout = sim_pick(2) ? 0 : (unsigned)sim_pick(50);
	uint64_t since = sim_now();
	sci_error_t e;

	if (!o->plain)
		return;
	sim_call("SCIWaitForInterrupt", timeout + 1000);
	SCIWaitForInterrupt(o->plain, timeout, 0, &e);
	sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_CANCELLED, SCI_ERR_OK);
	if (e == SCI_ERR_OK)
		had_trigger(o);
	else if (e == SCI_ERR_TIMEOUT)
		had_none(o, since);
}

/* ---- sending ---- */
static void connect_plain(struct state *s, struct other *o)
{
	unsigned host = sim_pick_host(), number = 1 + (unsigned)sim_pick(NUMBERS);
	unsigned adapter = sim_pick_adapter(host);
	uint64_t who = latest(host, number);
	sci_error_t e;

	if (o->plain)
		return;
	SIM_CALL(SCIConnectInterrupt, (s->sd, &o->plain, sim_node(host), adapter, number, 0, 0, &e),
		 &e, SCI_ERR_NO_SUCH_INTNO, SCI_ERR_CONNECTION_REFUSED);
	if (e != SCI_ERR_OK)
		o->plain = NULL;
	o->plain_host = host;
	o->number = number;
	o->may_be_ours = sim_adapters_behind(adapter, host) & 1u << 0;
	o->known = latest(host, number) == who && leads_to_ours(host, adapter) ? who : 0;
}

static void connect_data(struct state *s, struct other *o)
{
	unsigned number = 1 + (unsigned)sim_pick(NUMBERS), adapter;
	sci_error_t e;

	if (o->data)
		return;
	o->host = sim_pick_host();
	adapter = sim_pick_adapter(o->host);
	SIM_CALL(SCIConnectDataInterrupt,
		 (s->sd, &o->data, sim_node(o->host), adapter, number, 0, 0, &e), &e,
		 SCI_ERR_NO_SUCH_INTNO, SCI_ERR_CONNECTION_REFUSED);
	if (e != SCI_ERR_OK)
		o->data = NULL;
	o->connection = ++last_connection;
	o->count = 0;
}

static sci_error_t send_message(struct other *o, unsigned length)
{
	struct message m = {MAGIC, sim_node(o->host), o->connection, o->count + 1, {0}};
	sci_error_t e;

	for (unsigned k = 24; k < length; k++)
		m.more[k - 24] = (uint8_t)(m.count + k);
	SIM_CALL(SCITriggerDataInterrupt, (o->data, &m, length, 0, &e), &e, SCI_ERR_NOT_CONNECTED);
	if (e == SCI_ERR_OK)
		o->count++;
	return e;
}

/* Sends messages of any length until the ring is full for each of them. */
static void flood(struct other *o)
{
	sci_error_t e = SCI_ERR_OK;
	unsigned refused = 0;

	for (unsigned n = 0; n < FLOOD && refused < 8; n++) {
		e = send_message(o, 24 + (unsigned)sim_pick(200));
		if (e != SCI_ERR_OK && e != SCI_ERR_NOSPC)
			break;
		refused += e == SCI_ERR_NOSPC;
	}
	sim_did.flood += refused > 0;
}

static void trigger_data(struct other *o)
{
	unsigned length = 24 + (unsigned)sim_pick(200), n = 1 + (unsigned)sim_pick(8);

	if (o->data && sim_has_fault("flood") && sim_pick(4) == 0)
		flood(o);
	while (o->data && n-- > 0)
		if (send_message(o, length) != SCI_ERR_OK)
			break;
}

/* All programs here write to rings by the library, which must find none of their data invalid. */
static void on_log(const char *text)
{
	if (strstr(text, "invalid data into its ring") && lossless() && !sim_has_fault("liar"))
		sim_fail("messages", "%s: %s", sim_self()->name, text);
}

static void trigger_plain(struct other *o)
{
	struct plain *k = known(o->known);
	uint64_t begin = sim_now();
	sci_error_t e;

	if (!o->plain)
		return;
	sent[o->plain_host][o->number] += o->may_be_ours;
	SIM_CALL(SCITriggerInterrupt, (o->plain, 0, &e), &e, SCI_ERR_NOT_CONNECTED);
	if (e != SCI_ERR_OK || !k || k->id != o->known)
		return;
	k->done++;
	k->done_at = sim_now();
	if (begin > k->begun_at)
		k->begun_at = begin;
}

static void disconnect(struct other *o, bool data)
{
	sci_error_t e;

	if (data && o->data) {
		SIM_CALL(SCIDisconnectDataInterrupt, (o->data, 0, &e), &e);
		o->data = NULL;
	}
	if (!data && o->plain) {
		SIM_CALL(SCIDisconnectInterrupt, (o->plain, 0, &e), &e);
		o->plain = NULL;
	}
}

/* ---- the program ---- */
static void act(void *state)
{
	struct state *s = state;
	struct own *own = &s->own[sim_pick(OWN)];
	struct other *other = &s->other[sim_pick(OTHERS)];

	switch (sim_pick(16)) {
	case 0:
		create_plain(s, own);
		break;
	case 1:
		create_data(s, own);
		break;
	case 2:
		remove_plain(own);
		break;
	case 3:
		if (sim_pick(2))
			remove_data(own);
		break;
	case 4:
	case 5:
		connect_plain(s, other);
		break;
	case 6:
	case 7:
		connect_data(s, other);
		break;
	case 8:
		disconnect(other, sim_pick(2));
		break;
	case 9:
	case 10:
		trigger_plain(other);
		break;
	case 11:
		wait_plain(own);
		break;
	case 12:
	case 13:
		wait_data(own);
		break;
	default:
		trigger_data(other);
	}
}

static void tear_down(void *state)
{
	struct state *s = state;

	for (unsigned i = 0; i < OTHERS; i++) {
		disconnect(&s->other[i], true);
		disconnect(&s->other[i], false);
	}
	/* What others are still connected to is removed by SCITerminate(). */
	for (unsigned i = 0; i < OWN; i++) {
		remove_data(&s->own[i]);
		remove_plain(&s->own[i]);
	}
}

static void interrupt_main(struct sim_proc *p)
{
	struct state s = {0};
	static const struct sim_life life = {
		.acts = 300, .act = act, .tear_down = tear_down, .close_may = SCI_ERR_BUSY};

	sim_on_log = on_log;
	sim_live_and_exit(p, &life, &s, &s.sd);
}

const struct sim_workload sim_work_interrupt = {
	.name = "interrupt", .weight = 3, .main = interrupt_main};
