/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything at once, on 35 of the 60 hosts (examples/topologies/sixty-hosts.yaml): 31 clients have
 * all queue pairs of one drive, 30 write and read, and one reads what the others write. Commands
 * have 512 B to 1 MiB, the largest that the drive takes, at random offsets. Clients are killed and
 * replaced, cables pulled and put back, managers killed, with standbys that take over. The lender
 * and every fifth host have a second adapter, at a switch that the file does not have, and clients
 * there use both; none of these may ever see an error. Most clients sleep until an interrupt comes.
 *
 * No block may be wrong, and no acknowledged write be lost: each writer leases its blocks, so that
 * who comes after one that was killed writes there only when that one's queue is deleted. In the
 * end another client reads all of it; and what checks is checked, by blocks that are made wrong.
 * SIO_INTEGRITY_S=N: that goes on for N seconds.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "integrity.h"
#include "program.h"
#include "smartio/ext.h"

#define WRITERS 30u
#define CLIENTS (WRITERS + 1) /* the last one reads */
#define MANAGERS 3u
enum {
	LENDER = 4,
	FIRST = 8,
	LAST = FIRST + 4 * (CLIENTS - 1),
	MANAGER1 = LAST + 4,
	MANAGER2 = LAST + 8,
	JUDGE = LAST + 12
};
enum { SERVING, STANDING, TOOK_OVER, OPENED, WORKED };

#define DEPTH 3u
#define LARGEST (1u << 20)
#define SIZES 12u /* powers of two: 512 B to 1 MiB */
#define TRIES 8u  /* for blocks that no other command has */
#define SECONDS 10u
#define GIVE_UP_NS 50000000000ull

/* What a program of the test is, and has done. */
struct record {
	uint32_t me;
	bool two_ways, alone, sleeps;
	uint32_t epoch;	 /* the last one of the test's in which it has completed a command */
	uint32_t number; /* of its last write */
	uint64_t done[SIZES + 1], unsure, sessions;
	struct known known[PART];
};

static struct common {
	uint32_t epoch;
	struct record of[CLIENTS];
} * common;

static void may_be_over(void)
{
	sci_error_t ignored;

	smartio_wait_events(NULL, NULL, 1, &ignored);
}

/* ---- managers ---- */
static struct smartio_nvme_manager *serving;

static void on_term(int sig)
{
	(void)sig;
	smartio_nvme_manager_stop(serving);
}

/* Serves, or stands by until it does. */
static int manager(void *arg)
{
	struct smartio_nvme_manager_options o = {.size = sizeof(o), .flags = SMARTIO_NVME_STANDBY};
	struct smartio_nvme_manager_status s;
	bool stood_by;
	int rc;

	(void)arg;
	begin();
	OK(smartio_nvme_manager_open("nvme0", &o, &serving));
	signal(SIGTERM, on_term);
	smartio_nvme_manager_get_status(serving, &s);
	stood_by = !s.serves;
	step_done(stood_by ? STANDING : SERVING);
	while ((rc = smartio_nvme_manager_serve(serving, UINT32_MAX)) > 0) {
		smartio_nvme_manager_get_status(serving, &s);
		if (stood_by && s.serves)
			step_done(TOOK_OVER);
		stood_by = !s.serves;
	}
	if (rc < 0)
		fprintf(stderr, "the manager ends: %d: %s\n", rc, smartio_nvme_error());
	smartio_nvme_manager_close(serving);
	SCITerminate();
	return rc ? 2 : 0;
}

/* ---- clients ---- */
enum slot_state { FREE, READY, FLYING };

struct slot {
	enum slot_state state;
	bool write;
	uint32_t writer, number;	/* whose blocks; of a write */
	uint32_t first, blocks;		/* within that one's part */
	uint32_t from[LARGEST / BLOCK]; /* of another's blocks: what was acknowledged before */
};

struct client {
	struct record *r;
	struct smartio_nvme *n;
	struct smartio_nvme_lease *lease;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	struct slot slot[DEPTH];
	uint64_t random;
};

static volatile sig_atomic_t ending;

static void on_end(int sig)
{
	(void)sig;
	ending = 1;
}

static unsigned pick(uint64_t *random, unsigned n)
{
	*random = *random * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)((*random >> 33) % n);
}

static bool is_writer(const struct client *c)
{
	return c->r->me < WRITERS;
}

static uint64_t block_of(uint32_t writer, uint32_t block)
{
	return (uint64_t)writer * PART + block;
}

/* Return: 0; what a client may hear while cables are pulled and managers change. */
static int open_queue(struct client *c)
{
	const struct smartio_nvme_open_options oo = {
		.size = sizeof(oo),
		.wait_ms = 1000,
		.flags = c->r->two_ways ? SMARTIO_NVME_MULTIPATH : 0};
	struct smartio_nvme_queue_options qo = {
		.size = sizeof(qo),
		.depth = DEPTH,
		.wait_ms = UINT32_MAX,
		.survive_ms = 60000,
		.flags = SMARTIO_NVME_SURVIVE | (c->r->alone ? SMARTIO_NVME_ALONE : 0) |
			 (c->r->sleeps ? SMARTIO_NVME_INTERRUPT : 0)};
	char name[16];
	int rc;

	snprintf(name, sizeof(name), "part%u", c->r->me);
	rc = smartio_nvme_open_with("nvme0", &oo, &c->n);
	if (rc == 0 && is_writer(c))
		rc = smartio_nvme_lease_take(c->n, name, 1, block_of(c->r->me, 0), PART, &c->lease);
	qo.lease = c->lease;
	if (rc == 0)
		rc = smartio_nvme_queue_open(c->n, &qo, &c->q);
	if (rc == 0)
		rc = smartio_nvme_buffer_alloc(c->n, DEPTH * LARGEST, &c->b);
	return rc;
}

static void close_queue(struct client *c)
{
	smartio_nvme_close(c->n);
	c->n = NULL;
	c->lease = NULL;
	c->q = NULL;
	c->b = NULL;
	memset(c->slot, 0, sizeof(c->slot));
}

static bool is_lost(int rc)
{
	return rc == -ECONNRESET || rc == -ENETDOWN || rc == -ENODEV || rc == -ESTALE;
}

static uint8_t *data_of(const struct client *c, const struct slot *s)
{
	return (uint8_t *)smartio_nvme_buffer_data(c->b) + (size_t)(s - c->slot) * LARGEST;
}

/* What the one before has left, and what became of what was in flight. Return: 0, an error */
static int look_at_all(struct client *c)
{
	static uint8_t all[PART * BLOCK];
	int rc = smartio_nvme_read(c->q, all, block_of(c->r->me, 0) * BLOCK, sizeof(all));

	if (rc == 0)
		CHECK(settle_blocks(all, block_of(c->r->me, 0), c->r->me, c->r->known, PART) == 0);
	return rc;
}

static bool is_free(const struct client *c, const struct slot *s)
{
	for (const struct slot *o = c->slot; o < c->slot + DEPTH; o++)
		if (o != s && o->state != FREE && (o->write || s->write) &&
		    o->writer == s->writer && o->first < s->first + s->blocks &&
		    s->first < o->first + o->blocks)
			return false;
	return true;
}

static void prepare(struct client *c, struct slot *s)
{
	const unsigned a = pick(&c->random, SIZES), b = pick(&c->random, SIZES);
	const unsigned size = a < b ? a : b;
	struct known *k;

	s->writer = is_writer(c) ? c->r->me : pick(&c->random, WRITERS);
	s->write = is_writer(c) && pick(&c->random, 2);
	s->blocks = (1u << size) + pick(&c->random, 1u << size);
	if (s->blocks > LARGEST / BLOCK || pick(&c->random, 2))
		s->blocks = 1u << size;
	s->first = pick(&c->random, PART - s->blocks + 1);
	if (!is_free(c, s))
		return;
	k = &common->of[s->writer].known[s->first];
	s->state = READY;
	for (uint32_t i = 0; !s->write && i < s->blocks; i++)
		s->from[i] = load_number(&k[i].acked);
	if (!s->write)
		return;
	s->number = ++c->r->number;
	for (uint32_t i = 0; i < s->blocks; i++)
		stamp_block(data_of(c, s) + (size_t)i * BLOCK, block_of(s->writer, s->first + i),
			    s->writer, s->number);
	note_sent(k, s->blocks, s->number);
}

/* Return: 0; an error of the queue */
static int send_all(struct client *c)
{
	for (struct slot *s = c->slot; s < c->slot + DEPTH; s++) {
		int rc;

		for (unsigned i = 0; s->state == FREE && !ending && i < TRIES; i++)
			prepare(c, s);
		if (s->state != READY)
			continue;
		rc = smartio_nvme_submit(c->q, s->write ? SMARTIO_NVME_WRITE : SMARTIO_NVME_READ,
					 block_of(s->writer, s->first), s->blocks, c->b,
					 (size_t)(s - c->slot) * LARGEST, s);
		if (rc == -EAGAIN) /* it moves to another pair just now */
			return 0;
		if (rc)
			return rc;
		s->state = FLYING;
	}
	return 0;
}

/* Blocks of another client, which writes on: what was acknowledged before is there, or later. */
static void check_others(const struct client *c, const struct slot *s)
{
	const struct known *k = &common->of[s->writer].known[s->first];

	for (uint32_t i = 0; i < s->blocks; i++)
		CHECK(check_block(data_of(c, s) + (size_t)i * BLOCK,
				  block_of(s->writer, s->first + i), s->writer, s->from[i],
				  load_number(&k[i].sent)) >= 0);
}

static void judge(struct client *c, struct slot *s, uint32_t status)
{
	struct known *k = &common->of[s->writer].known[s->first];

	CHECK(s->state == FLYING);
	s->state = FREE;
	if (status == SMARTIO_NVME_UNSURE && s->write && !c->r->alone) {
		c->r->unsure++;
		return;
	}
	if (status) {
		fprintf(stderr, "client %u: %s\n", c->r->me, smartio_nvme_status_string(status));
		exit(1);
	}
	if (s->write)
		note_acked(k, s->blocks, s->number);
	else if (is_writer(c))
		CHECK(settle_blocks(data_of(c, s), block_of(s->writer, s->first), s->writer, k,
				    s->blocks) == 0);
	else
		check_others(c, s);
	c->r->done[31 - __builtin_clz(s->blocks)]++;
}

static bool in_flight(const struct client *c)
{
	for (const struct slot *s = c->slot; s < c->slot + DEPTH; s++)
		if (s->state != FREE)
			return true;
	return false;
}

/* Until the queue is lost, or the test ends. Return: 0; the error of the queue */
static int work(struct client *c)
{
	struct smartio_nvme_completion done[DEPTH];
	int rc = is_writer(c) ? look_at_all(c) : 0;

	c->r->sessions++;
	while (rc == 0 && (!ending || in_flight(c))) {
		const uint32_t epoch = load_number(&common->epoch);
		int n;

		rc = send_all(c);
		n = rc ? 0 : smartio_nvme_poll(c->q, done, DEPTH);
		for (int i = 0; i < n; i++)
			judge(c, done[i].cookie, done[i].status);
		if (n > 0 && c->r->epoch != epoch) {
			c->r->epoch = epoch;
			step_done(WORKED);
		}
		if (n == 0 && rc == 0 && c->r->sleeps)
			n = smartio_nvme_wait(c->q, 100);
		if (n < 0)
			rc = n;
	}
	return rc;
}

static void give_up(const struct client *c, const char *what, int rc)
{
	fprintf(stderr, "client %u: %s: %d: %s\n", c->r->me, what, rc, smartio_nvme_error());
	exit(1);
}

static int client(void *arg)
{
	static struct client c;
	uint64_t since;
	int rc;

	c.r = arg;
	signal(SIGTERM, on_end);
	c.random = ((uint64_t)c.r->number << 32) + c.r->me;
	begin();
	step_done(OPENED);
	since = smartio_now_ns();
	while (!ending) {
		rc = open_queue(&c);
		if (rc == 0) {
			rc = work(&c);
			if (rc && (!is_lost(rc) || c.r->two_ways))
				give_up(&c, "work", rc);
			since = smartio_now_ns();
		} else if (smartio_now_ns() - since > GIVE_UP_NS) {
			give_up(&c, "open", rc);
		}
		close_queue(&c);
		if (rc)
			may_be_over();
	}
	SCITerminate();
	return 0;
}

/* ---- what looks at all of it in the end ---- */
static void open_judge(struct client *c)
{
	OK(smartio_nvme_open("nvme0", &c->n));
	OK(smartio_nvme_queue_open(c->n, NULL, &c->q));
}

/* Return: how many blocks are wrong, of all */
static int judge_all(void *arg)
{
	static uint8_t all[PART * BLOCK];
	struct client c = {0};
	unsigned wrong = 0;

	(void)arg;
	begin();
	open_judge(&c);
	for (unsigned i = 0; i < WRITERS; i++) {
		OK(smartio_nvme_read(c.q, all, block_of(i, 0) * BLOCK, sizeof(all)));
		wrong += settle_blocks(all, block_of(i, 0), i, common->of[i].known, PART);
	}
	smartio_nvme_close(c.n);
	SCITerminate();
	return wrong > 100 ? 100 : (int)wrong;
}

#define MADE_WRONG 4

static uint32_t find_written(const struct record *r, uint32_t from)
{
	for (uint32_t i = from; i < PART; i++)
		if (r->known[i].acked)
			return i;
	fail_msg("writer %u has written nothing", r->me);
	return 0;
}

/* An older write, another block, another writer's, and one byte: all as it might go wrong. */
static int make_wrong(void *arg)
{
	const struct record *r = &common->of[0];
	uint32_t at = 0;
	uint8_t data[BLOCK];
	struct client c = {0};

	(void)arg;
	begin();
	open_judge(&c);
	for (unsigned i = 0; i < MADE_WRONG; i++, at++) {
		at = find_written(r, at);
		stamp_block(data, block_of(r->me, i == 1 ? at + 1 : at), i == 2 ? 1 : r->me,
			    r->known[at].acked - (i == 0));
		if (r->known[at].acked == 1 && i == 0)
			memset(data, 0, sizeof(data));
		if (i == 3)
			data[BLOCK - 1] ^= 1;
		OK(smartio_nvme_write(c.q, data, block_of(r->me, at) * BLOCK, BLOCK));
	}
	smartio_nvme_close(c.n);
	SCITerminate();
	return 0;
}

/* ---- the test ---- */
static const unsigned manager_node[MANAGERS] = {MANAGER1, MANAGER2, LENDER};

static struct storm {
	struct cluster *c;
	pid_t client[CLIENTS], serves, stands;
	unsigned next; /* manager's host */
	uint64_t random;
	unsigned kills, links, managers;
} storm;

static bool has_two(unsigned node)
{
	return node == LENDER || (node < MANAGER1 && node / 4 % 5 == 2);
}

/* The example with a second switch, and cables to it. */
static char *read_topology(void)
{
	static const char one[] = "width: 8 }]", two[] = "width: 8 }, { to: second, width: 8 }]";
	FILE *f = fopen(getenv("SMARTIO_TEST_SIXTY"), "r");
	char *text = calloc(1, 65536), *to = text, line[256], rest[256];
	unsigned node = 0;

	assert_non_null(f);
	assert_non_null(text);
	while (fgets(line, sizeof(line), f)) {
		const char *number = strstr(line, "node: ");
		char *at = strstr(line, one);

		if (number)
			node = (unsigned)strtoul(number + 6, NULL, 10);
		if (at && has_two(node)) {
			strcpy(rest, at + strlen(one));
			*at = '\0';
			to = stpcpy(stpcpy(to, line), two);
			strcpy(line, rest);
		}
		to = stpcpy(to, line);
		if (strcmp(line, "switches:\n") == 0)
			to = stpcpy(to, "  - { name: second, ports: 24, lanes: 8 }\n");
	}
	fclose(f);
	return text;
}

static void pause_some(struct storm *s)
{
	const struct timespec some = {.tv_nsec = pick(&s->random, 5000000)};

	nanosleep(&some, NULL); /* wherever everybody is then */
}

static unsigned node_of(unsigned client)
{
	return FIRST + 4 * client;
}

static void start_client(struct storm *s, unsigned i)
{
	struct record *r = &common->of[i];

	r->me = i;
	r->two_ways = has_two(node_of(i));
	r->alone = i % 4 < 2;
	r->sleeps = i % 16 != 5;
	r->epoch = common->epoch;
	s->client[i] = cluster_fork(s->c, node_of(i), client, r);
	step_await(OPENED);
}

static void stand_by(struct storm *s)
{
	s->stands = cluster_fork(s->c, manager_node[s->next++ % MANAGERS], manager, NULL);
	step_await(STANDING);
}

static void await_all(void)
{
	__atomic_add_fetch(&common->epoch, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < CLIENTS; i++)
		step_await(WORKED);
}

static void kill_one(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
}

/* A cable of a client's host or, now and then, the lender's second one. */
static void choose_cable(struct storm *s, unsigned *node, unsigned *adapter)
{
	*node = pick(&s->random, 6) ? node_of(pick(&s->random, CLIENTS)) : LENDER;
	*adapter = *node == LENDER || (has_two(*node) && pick(&s->random, 2));
}

/* All of it in one another's midst. */
static void once(struct storm *s, unsigned n)
{
	const unsigned victim = pick(&s->random, CLIENTS);
	const bool new_manager = n % 3 == 0;
	unsigned node, adapter;

	choose_cable(s, &node, &adapter);
	assert_int_equal(cluster_link(s->c, node, adapter, false), 0);
	pause_some(s);
	kill_one(s->client[victim]);
	if (new_manager) {
		pause_some(s);
		kill_one(s->serves);
	}
	pause_some(s);
	assert_int_equal(cluster_link(s->c, node, adapter, true), 0);
	start_client(s, victim);
	if (new_manager) {
		step_await(TOOK_OVER);
		s->serves = s->stands;
		stand_by(s);
	}
	s->kills++;
	s->links++;
	s->managers += new_manager;
	await_all();
}

static unsigned seconds(void)
{
	const char *text = getenv("SIO_INTEGRITY_S");

	return text ? (unsigned)strtoul(text, NULL, 0) : SECONDS;
}

static void report(const struct storm *s)
{
	uint64_t done[SIZES] = {0}, all = 0, unsure = 0, sessions = 0;

	for (unsigned i = 0; i < CLIENTS; i++) {
		for (unsigned k = 0; k < SIZES; k++)
			done[k] += common->of[i].done[k];
		unsure += common->of[i].unsure;
		sessions += common->of[i].sessions;
	}
	for (unsigned k = 0; k < SIZES; k++) {
		assert_true(done[k]);
		all += done[k];
	}
	printf("# %llu commands (%llu of 512 B, %llu of 1 MiB), of %llu writes nobody knows; "
	       "%u clients killed, %u cables pulled, %u managers killed; the drive was opened %llu times (counted)\n",
	       (unsigned long long)all, (unsigned long long)done[0],
	       (unsigned long long)done[SIZES - 1], (unsigned long long)unsure, s->kills, s->links,
	       s->managers, (unsigned long long)sessions);
}

static void no_block_is_wrong(void **state)
{
	struct storm *s = &storm;
	char *topology = read_topology();
	uint64_t end;

	*state = s->c = cluster_up_first(topology, JUDGE / 4);
	assert_non_null(s->c);
	s->random = smartio_now_ns();
	s->serves = cluster_fork(s->c, manager_node[s->next++ % MANAGERS], manager, NULL);
	step_await(SERVING);
	stand_by(s);
	for (unsigned i = 0; i < CLIENTS; i++)
		start_client(s, i);
	await_all();
	end = smartio_now_ns() + seconds() * 1000000000ull;
	for (unsigned n = 0; n == 0 || smartio_now_ns() < end; n++)
		once(s, n);
	for (unsigned i = 0; i < CLIENTS; i++)
		kill(s->client[i], SIGTERM);
	for (unsigned i = 0; i < CLIENTS; i++)
		assert_int_equal(cluster_wait(s->client[i]), 0);
	report(s);
	assert_int_equal(cluster_wait(cluster_fork(s->c, JUDGE, judge_all, NULL)), 0);
	assert_int_equal(cluster_wait(cluster_fork(s->c, JUDGE, make_wrong, NULL)), 0);
	assert_int_equal(cluster_wait(cluster_fork(s->c, JUDGE, judge_all, NULL)), MADE_WRONG);
	kill(s->stands, SIGTERM);
	assert_int_equal(cluster_wait(s->stands), 0);
	kill(s->serves, SIGTERM);
	assert_int_equal(cluster_wait(s->serves), 0);
	assert_int_equal(cluster_down(s->c), 0);
	free(topology);
}

static int up(void **state)
{
	(void)state;
	common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	steps_reset();
	return common == MAP_FAILED ? -1 : 0;
}

static int down(void **state)
{
	(void)state;
	return munmap(common, sizeof(*common));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_block_is_wrong, up, down)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
