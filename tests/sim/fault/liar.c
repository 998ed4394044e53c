/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A malicious daemon: that of the cluster's last host. In some of its true messages a byte is
 * changed, and between them it sends whatever a daemon could send: requests for segments,
 * interrupts and devices, notifications, and replies to no request. It remembers the numbers in the
 * replies, so it acquires connections, grants, borrows and DMA mappings, and uses them as it likes.
 * It must not affect other objects. Except for the workloads "guest" and "deceived" no program runs
 * on that host or uses it, so all oracles hold as if it did not exist.
 *
 * It takes no registers and resets no device, because all borrowers of a device trust the owner of
 * its registers.
 */
#include <string.h>

#include "edge/edge.h"
#include "fault/liar.h"
#include "run/run.h"
#include "smartiod/lender/lend.h"
#include "wire/check.h"
#include "wire/peer.h"

#define STANDINGS 16u
#define MUTATED 128u /* one message in so many has a byte changed */
#define MOST_PAUSE (SIM_MS / 2)
#define FORGED 0x80000000u /* in a request's id: its reply is not for the true daemon */

/*
 * The fields of a message behind its header, a letter each.
 *
 * 64 bits: C: number of a connection to a segment or interrupt; U: of a segment; G: of a grant; B:
 * of a borrow; M: of a DMA mapping; R: of a ring; I: an address that a device uses; N: any of
 * these; z: 0; L: a length or an offset; ?: anything.
 *
 * 32 bits: n: a node id; f: a device, most often the one of this standing; d: that one; i: a
 * segment's id; a: an adapter; s: a number up to 63; r: the reason of an event; b: 0 or 1; x:
 * access (read, write); e: an event of a device; 0: 0.
 */
static const struct form {
	uint32_t type;
	unsigned seldom; /* if not 0 only one in so many is sent: it gets the liar disconnected */
	const char *words;
} forms[] = {
	{SIO_PEER_PING, 0, ""},
	{SIO_PEER_SEG_LOOKUP, 0, "Czia00"},
	{SIO_PEER_SEG_LOOKUP, 0, "CUiad0"},
	{SIO_PEER_SEG_RELEASE, 0, "UCr0"},
	{SIO_PEER_SEG_GRANT, 0, "UCzLnxaax0"},
	{SIO_PEER_SEG_GRANT, 0, "UCLLnxaax0"},
	{SIO_PEER_GRANT_RELEASE, 0, "G"},
	{SIO_PEER_SEG_EVENT, 0, "Crb"},
	{SIO_PEER_GRANT_QUERY, 0, "G"},
	{SIO_PEER_DINT_LOOKUP, 0, "Csaab"},
	{SIO_PEER_DINT_RELEASE, 0, "R"},
	{SIO_PEER_DINT_EVENT, 0, "C"},
	{SIO_PEER_STATS, 0, "sf"},
	{SIO_PEER_ADAPTER, 0, "a0"},
	{SIO_PEER_LIST, 0, "s0?"},
	{SIO_PEER_BORROW, 0, "Nf0s0"},
	{SIO_PEER_BORROW, 0, "Nf0s0"},
	{SIO_PEER_RETURN, 8, "Bf000"},
	{SIO_PEER_RELEASE_EXCLUSIVE, 0, "Bf000"},
	{SIO_PEER_BORROW_END, 8, "Bf000"},
	{SIO_PEER_BORROW_LOST, 8, "Bf000"},
	{SIO_PEER_DEV_SEG_CREATE, 0, "BLUfixb"},
	{SIO_PEER_DEV_SEG_LOOKUP, 0, "Bfix0"},
	{SIO_PEER_DEV_SEG_END, 8, "Uf0"},
	{SIO_PEER_BAR_RELEASE, 0, "BNNf0"},
	{SIO_PEER_DMA_MAP, 0, "BUCzLIfna00b"},
	{SIO_PEER_DMA_MAP, 0, "BUCLLzfna000"},
	{SIO_PEER_DMA_UNMAP, 0, "BMf0"},
	{SIO_PEER_SETTLED, 0, "BNfs"},
	{SIO_PEER_HOLD, 0, "BBILf0"},
	{SIO_PEER_UNHOLD, 0, "BNf0"},
	{SIO_PEER_ASSIGN, 0, "BBzLfs"},
	{SIO_PEER_NOTIFY, 0, "Bf000"},
	{SIO_PEER_HOLD_RELEASE, 0, "NBfs"},
	{SIO_PEER_VECTOR, 0, "Bfsnas0"},
	{SIO_PEER_UNVECTOR, 0, "Bfs0000"},
	{SIO_PEER_DEVICE_EVENT, 16, "BNfes0"},
	{SIO_PEER_SEG_LOOKUP | SIO_PEER_REPLY, 0, "CULi0"},
	{SIO_PEER_SEG_GRANT | SIO_PEER_REPLY, 0, "GLLN????"},
	{SIO_PEER_DINT_LOOKUP | SIO_PEER_REPLY, 0, "CRGLLN????GLLN????"},
	{SIO_PEER_DMA_MAP | SIO_PEER_REPLY, 0, "BMILf0"},
	{SIO_PEER_HOLD | SIO_PEER_REPLY, 0, "BNfs"},
};

static struct {
	unsigned lying; /* events */
	uint64_t rng;
	uint32_t next_id;
	struct liar_standing has[STANDINGS]; /* objects that it has acquired, or tries to */
} S;
struct liar_standing *liar_now;

static uint64_t draw(uint64_t n)
{
	return sim_draw(&S.rng) % n;
}

uint64_t liar_draw(uint64_t n)
{
	return draw(n);
}

bool liar_lies(void)
{
	return S.lying > 0;
}

/* ---- what it sends ---- */

/* The number of any object of the kind @what on that host, as if it had been guessed. 0: none. */
static uint64_t look_up(char what, const struct smartiod *d)
{
	uint64_t key = draw(4), far = draw(16), first = 0;
	const struct smartiod_tree *t;

	if (!d)
		return 0;
	t = what == 'C'	  ? key ? &d->connections : &d->dint_links
	    : what == 'U' ? &d->segments
	    : what == 'G' ? &d->grants
	    : what == 'B' ? &d->loans
	    : what == 'M' ? &d->dmas
			  : &d->rings;
	for (const struct smartiod_tree_node *n = smartiod_tree_after(t, 0); n && far > 0;
	     n = smartiod_tree_after(t, n->key), far--)
		first = n->key;
	return first;
}

static uint64_t a_number(char what)
{
	static const char letters[] = "CUGBMRI";
	uint64_t small = draw(64), host = draw(sim_hosts());

	if (what == 'N')
		what = letters[draw(sizeof(letters) - 1)];
	switch (draw(16)) {
	case 0:
		return small;
	case 1: /* of the form that numbers of borrows have */
		return (uint64_t)sim_host_boots((unsigned)host) << 32 | small;
	case 2:
		return sim_draw(&S.rng);
	case 3:
		return S.has[draw(STANDINGS)].number[(unsigned)what];
	case 4:
	case 5:
	case 6:
	case 7:
		return look_up(what, sim_host[liar_now->host].daemon);
	default:
		return liar_now->number[(unsigned)what];
	}
}

static uint64_t a_length(void)
{
	switch (draw(16)) {
	case 0:
		return sim_draw(&S.rng);
	case 1:
		return draw(16) * 4096;
	default:
		return 4096;
	}
}

static uint32_t a_node(void)
{
	switch (draw(8)) {
	case 0:
		return (uint32_t)draw(1000);
	case 1:
		return sim_node((unsigned)draw(sim_hosts()));
	case 2:
		return sim_node(liar_now->host);
	default:
		return sim_node(sim_liar());
	}
}

/* Makes @s be about one of the segments of @d, if there is one. */
static void find_segment(struct liar_standing *s, const struct smartiod *d)
{
	struct smartiod_tree_node *n = NULL;

	for (uint64_t i = draw(8) + 1; d && i > 0; i--)
		n = smartiod_tree_after(&d->segments, n ? n->key : 0);
	if (!n)
		return;
	s->number['U'] = n->key;
	s->id = SMARTIOD_OF(n, struct smartiod_segment, by_uid)->id;
}

/* Makes @s be about something else, of a host that is drawn. */
static void try_anew(struct liar_standing *s)
{
	const struct sio_topo_host *h;

	memset(s, 0, sizeof(*s));
	s->host = (unsigned)draw(sim_liar());
	h = &sim_cluster->topology->host[s->host];
	s->fdid = h->n_devices ? h->device[draw(h->n_devices)].fdid : (uint32_t)draw(0x2000000);
	s->number['C'] = 1 + S.next_id;
	find_segment(s, sim_host[s->host].daemon);
}

static uint64_t word(char what)
{
	switch (what) {
	case 'L':
		return a_length();
	case 'n':
		return a_node();
	case 'f':
		return draw(32) ? liar_now->fdid : (uint32_t)draw(0x2000);
	case 'd':
		return liar_now->fdid;
	case 'i':
		return draw(4) ? liar_now->id : draw(64);
	case 'a':
		return draw(8) == 0;
	case 'b':
		return draw(2);
	case 's':
		return draw(64);
	case 'r':
		return draw(2) ? SCI_CB_DISCONNECT : SCI_CB_LOST;
	case 'x':
		return 1 + draw(3);
	case 'e':
		return draw(8);
	case '?':
		return sim_draw(&S.rng);
	case '0':
	case 'z':
		return 0;
	default:
		return a_number(what);
	}
}

unsigned liar_word_bytes(char letter)
{
	return strchr("nfdiasrbxe0", letter) ? 4 : 8;
}

size_t liar_fill(const char *words, uint8_t *msg)
{
	size_t len = sizeof(struct sio_msg);

	for (const char *w = words; *w; w++) {
		uint64_t v = word(*w);

		for (unsigned i = 0; i < liar_word_bytes(*w); i++)
			msg[len++] = (uint8_t)(v >> 8 * i);
	}
	return len;
}

static void say(void)
{
	const struct form *f = &forms[draw(sizeof(forms) / sizeof(forms[0]))];
	uint8_t msg[512] = {0};
	struct sio_msg *h = (struct sio_msg *)msg;
	uint32_t slot = (uint32_t)draw(STANDINGS);
	size_t len;

	if (f->seldom && draw(f->seldom) > 0)
		return;
	liar_now = &S.has[slot];
	if (!liar_now->fdid || draw(32) == 0)
		try_anew(liar_now);
	len = liar_fill(f->words, msg);
	h->size = sio_to_le32((uint32_t)len);
	h->type = sio_to_le32(f->type);
	if (f->type & SIO_PEER_REPLY)
		h->id = sio_to_le32(1 + (uint32_t)draw(4096));
	else if (!sio_peer_is_notification(f->type))
		h->id = sio_to_le32(FORGED | slot << 24 | (S.next_id++ & 0xffffff));
	sim_did.liar++;
	sim_peer_send(&sim_host[sim_liar()], sim_node(liar_now->host), msg, len);
}

static void go_on(void *arg)
{
	(void)arg;
	if (sim_stopping || !S.lying)
		return;
	if (sim_host_alive(sim_liar()))
		say();
	sim_after(draw(MOST_PAUSE), go_on, NULL);
}

/* ---- what passes between it and others ---- */

/* The numbers at the beginning of a reply to @type, as letters. */
static const char *brought(uint32_t type)
{
	switch (type) {
	case SIO_PEER_SEG_LOOKUP:
		return "CU";
	case SIO_PEER_SEG_GRANT:
		return "G";
	case SIO_PEER_DINT_LOOKUP:
		return "CR";
	case SIO_PEER_BORROW:
	case SIO_PEER_VECTOR:
		return "B";
	case SIO_PEER_DEV_SEG_CREATE:
	case SIO_PEER_DEV_SEG_LOOKUP:
		return "BU";
	case SIO_PEER_DMA_MAP:
		return "BMI";
	case SIO_PEER_HOLD:
		return "BN";
	default:
		return "";
	}
}

/* Are there programs of other hosts that use what this host has? */
static bool has_guests(void)
{
	return sim_has_workload("guest") || sim_has_workload("deceived");
}

static bool hears(unsigned host, uint32_t node, const void *data, size_t len)
{
	const struct sio_msg *h = data;
	const uint8_t *at = (const uint8_t *)data + sizeof(*h);
	uint32_t id = sio_from_le32(h->id), type = SIO_PEER_TYPE(sio_from_le32(h->type));
	struct liar_standing *s = &S.has[id >> 24 & (STANDINGS - 1)];

	if (host != sim_liar())
		return false;
	if (!(sio_from_le32(h->type) & SIO_PEER_REPLY))
		return S.lying && has_guests() && liar_answers(node, data, len);
	if (!(id & FORGED))
		return false;
	sim_trace("a lie of type %u is answered: %u", type, sio_from_le32(h->error));
	for (const char *w = brought(type); *w && !h->error && len >= sizeof(*h) + 24; w++) {
		memcpy(&s->number[(unsigned)*w], at, 8);
		at += 8;
	}
	return true;
}

static void says(unsigned host, void *data, size_t len)
{
	uint8_t *msg = data;
	uint64_t where;

	if (host != sim_liar() || !S.lying)
		return;
	if (has_guests())
		liar_alters(msg, len);
	if (draw(MUTATED) > 0)
		return;
	sim_did.liar++;
	where = draw(len);
	msg[where] ^= (uint8_t)(1 + draw(255));
}

/* ---- the fault ---- */
static void liar_prepare(uint64_t *rng)
{
	sim_has_liar = true;
	S.rng = sim_draw(rng);
	sim_peer_says = says;
	sim_peer_hears = hears;
}

static void liar_begin(struct sim_fault_event *e)
{
	(void)e;
	if (sim_liar() != SIM_NO_LIAR && S.lying++ == 0)
		sim_after(0, go_on, NULL);
}

static void liar_end(struct sim_fault_event *e)
{
	(void)e;
	if (sim_liar() != SIM_NO_LIAR)
		S.lying--;
}

static void boot_when_off(void *arg)
{
	if (sim_host_off(sim_liar()))
		sim_host_boot(sim_liar());
	else
		sim_after(SIM_MS, boot_when_off, arg);
}

/*
 * A crash of the host ends what it has of others. If it is down already, another fault has crashed
 * it and boots it.
 */
static void liar_heal(void)
{
	if (sim_liar() == SIM_NO_LIAR || !sim_host_alive(sim_liar()))
		return;
	sim_host_crash(sim_liar());
	boot_when_off(NULL);
}

const struct sim_fault sim_fault_liar = {
	.name = "liar",
	.did = &sim_did.liar,
	.most = 6,
	.longest = 2 * SIM_SECOND,
	.seldom = 2,
	.prepare = liar_prepare,
	.begin = liar_begin,
	.end = liar_end,
	.heal = liar_heal,
};
