/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that send messages to all: data interrupts made with SCI_FLAG_BROADCAST, and connections
 * to each node that has such an interrupt of a certain number. The messages of a sender arrive in
 * their order, and each is complete.
 */
#include <string.h>

#include "dis/dis_types.h"
#include "edge/cable.h"
#include "work/life.h"
#include "run/run.h"

#define NUMBERS 2u
#define FIRST 40u
#define SENDERS 256u /* of which a receiver knows the last message */
#define FLOOD 600u
#define MAGIC 0x68657261u

struct message {
	uint32_t magic, sender, count, length;
	uint8_t more[200];
};

struct state {
	sci_desc_t sd;
	sci_local_data_interrupt_t own[NUMBERS];
	struct {
		uint32_t sender, count;
	} seen[NUMBERS][SENDERS];
	sci_remote_data_interrupt_t all[NUMBERS];
	uint32_t sender[NUMBERS], count[NUMBERS];
};

static uint32_t last_sender; /* of the whole cluster */

static void make(struct state *s, unsigned n)
{
	unsigned number = FIRST + n;
	sci_error_t e;

	if (s->own[n])
		return;
	SIM_CALL(SCICreateDataInterrupt,
		 (s->sd, &s->own[n], 0, &number, NULL, NULL,
		  SCI_FLAG_FIXED_INTNO | SCI_FLAG_BROADCAST, &e),
		 &e, SCI_ERR_INTNO_USED);
	if (e != SCI_ERR_OK)
		s->own[n] = NULL;
	memset(s->seen[n], 0, sizeof(s->seen[n]));
}

static void end(struct state *s, unsigned n)
{
	sci_error_t e;

	if (s->own[n])
		SIM_CALL(SCIRemoveDataInterrupt, (s->own[n], 0, &e), &e);
	s->own[n] = NULL;
}

static void connect_all(struct state *s, unsigned n)
{
	sci_error_t e;

	if (s->all[n])
		return;
	SIM_CALL(SCIConnectDataInterrupt,
		 (s->sd, &s->all[n], DIS_BROADCAST_NODEID_GROUP_ALL, 0, FIRST + n, 0,
		  SCI_FLAG_BROADCAST, &e),
		 &e, SCI_ERR_NO_SUCH_INTNO, SCI_ERR_CONNECTION_REFUSED);
	if (e != SCI_ERR_OK)
		s->all[n] = NULL;
	s->sender[n] = ++last_sender;
	s->count[n] = 0;
}

static void disconnect(struct state *s, unsigned n)
{
	sci_error_t e;

	if (s->all[n])
		SIM_CALL(SCIDisconnectDataInterrupt, (s->all[n], 0, &e), &e);
	s->all[n] = NULL;
}

static void send(struct state *s, unsigned n)
{
	struct message m = {MAGIC, s->sender[n], 0, 0, {0}};
	sci_error_t e;

	if (!s->all[n])
		return;
	m.length = 16 + (uint32_t)sim_pick(sizeof(m.more));
	m.count = s->count[n] + 1;
	for (uint32_t i = 0; i < m.length - 16; i++)
		m.more[i] = (uint8_t)(m.count + m.sender + i);
	SIM_CALL(SCITriggerDataInterrupt, (s->all[n], &m, m.length, SCI_FLAG_BROADCAST, &e), &e,
		 SCI_ERR_NOT_CONNECTED);
	s->count[n] += e == SCI_ERR_OK;
	sim_did.flood += e == SCI_ERR_NOSPC;
}

/* Programs of some workloads have cables pulled themselves. */
static bool any_cable_pulled(void)
{
	for (unsigned h = 0; h < sim_hosts(); h++)
		for (unsigned a = 0; a < sim_adapters(h); a++)
			if (sim_cable_pulled(h, a))
				return true;
	return false;
}

/*
 * A message that was refused reaches nobody. So where nothing breaks each receiver gets every
 * message that was sent: the numbers have no gaps.
 */
static bool all_come(void)
{
	if (any_cable_pulled())
		return false;
	for (unsigned i = 0; sim_faults[i]; i++)
		if (sim_has_fault(sim_faults[i]->name) &&
		    !sim_list_has("doze,flood,busy,tables", sim_faults[i]->name))
			return false;
	return true;
}

/* The messages of one sender arrive in the order in which they were sent, none of them twice. */
static void judge(struct state *s, unsigned n, const struct message *m, unsigned length)
{
	unsigned at = m->sender % SENDERS;
	bool whole = length >= 16 && m->magic == MAGIC && m->length == length;

	for (uint32_t i = 0; whole && i < length - 16; i++)
		whole = m->more[i] == (uint8_t)(m->count + m->sender + i);
	if (!whole)
		sim_fail("messages", "%s: a message to all of %u bytes is not what was sent",
			 sim_self()->name, length);
	if (s->seen[n][at].sender == m->sender && m->count <= s->seen[n][at].count)
		sim_fail("messages", "%s: message %u of sender %u came after %u", sim_self()->name,
			 m->count, m->sender, s->seen[n][at].count);
	if (all_come() &&
	    m->count != 1 + (s->seen[n][at].sender == m->sender ? s->seen[n][at].count : 0))
		sim_fail("messages", "%s: message %u of sender %u, and one before is missing",
			 sim_self()->name, m->count, m->sender);
	s->seen[n][at].sender = m->sender;
	s->seen[n][at].count = m->count;
}

static void hear(struct state *s, unsigned n)
{
	unsigned timeout = (unsigned)sim_pick(5), most = sim_pick(4) ? 16 : 2 * FLOOD;
	struct message m;

	for (unsigned i = 0; s->own[n] && i < most; i++, timeout = 0) {
		unsigned length = sizeof(m);
		sci_error_t e;

		SIM_CALL(SCIWaitForDataInterrupt, (s->own[n], &m, &length, timeout, 0, &e), &e,
			 SCI_ERR_TIMEOUT);
		if (e != SCI_ERR_OK)
			return;
		judge(s, n, &m, length);
	}
}

static void act(void *state)
{
	unsigned n = (unsigned)sim_pick(NUMBERS);
	struct state *s = state;

	switch (sim_pick(12)) {
	case 0:
	case 1:
		make(s, n);
		break;
	case 2:
		if (sim_pick(4) == 0)
			end(s, n);
		break;
	case 3:
	case 4:
		connect_all(s, n);
		break;
	case 5:
		if (sim_pick(4) == 0)
			disconnect(s, n);
		break;
	case 6:
	case 7:
	case 8:
		hear(s, n);
		break;
	default:
		/*
		 * Sometimes more than a ring holds: what one receiver's ring refuses nobody gets.
		 */
		for (uint64_t more = sim_has_fault("flood") && sim_pick(8) == 0 ? FLOOD : 1; more;
		     more--)
			send(s, n);
	}
}

static void tear_down(void *state)
{
	for (unsigned n = 0; n < NUMBERS; n++) {
		disconnect(state, n);
		end(state, n);
	}
}

static void herald_main(struct sim_proc *p)
{
	struct state s = {0};
	static const struct sim_life life = {.acts = 300, .act = act, .tear_down = tear_down};

	sim_live_and_exit(p, &life, &s, &s.sd);
}

/* A broadcast asks every daemon, so none may be malicious. */
static bool fits(unsigned host)
{
	return sim_adapters(host) && !sim_has_fault("liar");
}

const struct sim_workload sim_work_herald = {
	.name = "herald", .weight = 1, .fits = fits, .main = herald_main};
