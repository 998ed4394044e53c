/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client behind two adapters, and links that go and come while it works: it moves to the other
 * way and home again, no read fails, and no write is done but once. How long nothing came is
 * measured.
 * SMARTIO_TEST_FAILURES: so many of the client's links are pulled.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../lib/cluster.h"
#include "client.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"
#include "serving.h"

enum { LENDER = 4, MANAGER = 8, CLIENT = 12 };
enum { MOVED = SERVING + 1, BORROWED, CUT, LOOKED, JOINED, STANDING, TOOK_OVER };
#define DEPTH 16u
#define BYTES 4096u
#define CELLS 512u
#define MANY 64u     /* completions: it goes on */
#define FAILURES 24u /* without the variable */
#define MOST 4096u

static const char topology[] =
	"cluster: multipath\n"
	"switches: [red, blue]\n"
	"hosts:\n"
	"  lender: {ram: 64M, iommu: on, adapters: [{to: red}, {to: blue}],\n"
	"           devices: {nvme0: {type: nvme, size: 16M, queue_pairs: 6}}}\n"
	"  manager: {ram: 64M, iommu: off, adapters: [{to: red}, {to: blue}]}\n"
	"  client: {ram: 64M, iommu: on, adapters: [{to: red}, {to: blue}]}\n";

/* What the programs tell the test. */
static struct shared {
	unsigned moves;	  /* of the client to another queue pair, and then MANY completions */
	unsigned ending;  /* the client is to end */
	uint64_t longest; /* time without a completion since that was last set to 0 */
	uint64_t reads, writes, unsure, resets;
	struct returns returns; /* of the manager */
	unsigned took_over;	/* a standby did */
	unsigned asked;		/* requests to the manager that were answered */
} * shared;

/* A piece of the drive with one command at most: what it may hold. */
struct cell {
	uint64_t holds, maybe; /* stamps; maybe: of a write of which nobody knows; 0: none */
	uint64_t writing;
	bool busy, writes;
};

struct client {
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	struct cell cell[CELLS];
	unsigned in_flight, slot_of[DEPTH];
	bool slot_busy[DEPTH];
	uint64_t stamps, random, last;
	struct smartio_nvme *leg;
	uint32_t generation;
	unsigned since; /* completions since it moved */
};

static uint64_t *data_of(struct client *c, unsigned slot)
{
	return (uint64_t *)(void *)((uint8_t *)smartio_nvme_buffer_data(c->b) +
				    (size_t)slot * BYTES);
}

static void fill(uint64_t *at, uint64_t value)
{
	for (unsigned i = 0; i < BYTES / 8; i++)
		at[i] = value;
}

static uint64_t draw(struct client *c)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return c->random;
}

/* Return: whether the queue took it. */
static bool send(struct client *c, unsigned slot)
{
	unsigned i = (unsigned)(draw(c) % CELLS);
	struct cell *cell = &c->cell[i];
	int rc;

	if (cell->busy)
		return true;
	/* What is not known is found out before anything is written there. */
	cell->writes = !cell->maybe && draw(c) & 1;
	cell->writing = ++c->stamps;
	fill(data_of(c, slot), cell->writes ? cell->writing : UINT64_MAX);
	rc = smartio_nvme_submit(c->q, cell->writes ? SMARTIO_NVME_WRITE : SMARTIO_NVME_READ,
				 (uint64_t)i * (BYTES / 512), BYTES / 512, c->b,
				 (size_t)slot * BYTES, (void *)(uintptr_t)slot);
	if (rc == -EAGAIN)
		return false;
	OK(rc);
	cell->busy = c->slot_busy[slot] = true;
	c->slot_of[slot] = i;
	c->in_flight++;
	return true;
}

static void judge(struct client *c, unsigned slot, uint32_t status)
{
	struct cell *cell = &c->cell[c->slot_of[slot]];
	const uint64_t *at = data_of(c, slot);

	CHECK(c->slot_busy[slot] && cell->busy);
	c->slot_busy[slot] = cell->busy = false;
	c->in_flight--;
	if (cell->writes) {
		shared->writes++;
		CHECK(status == 0 || status == SMARTIO_NVME_UNSURE);
		shared->unsure += status != 0;
		*(status ? &cell->maybe : &cell->holds) = cell->writing;
		return;
	}
	shared->reads++;
	CHECK(status == 0);
	for (unsigned i = 1; i < BYTES / 8; i++)
		CHECK(at[i] == at[0]);
	/* From now on it is that, whatever a queue of before may still do. */
	CHECK(at[0] == cell->holds || (cell->maybe && at[0] == cell->maybe));
	cell->holds = at[0];
	cell->maybe = 0;
}

static void look(struct client *c, unsigned n)
{
	const uint64_t now = smartio_now_ns();

	if (n && c->last && now - c->last > shared->longest)
		shared->longest = now - c->last;
	if (n)
		c->last = now;
	if (c->q->generation != c->generation && c->q->sq_mem) {
		shared->resets++;
		c->generation = c->q->generation;
		c->since = 0;
	}
	if (c->leg != c->q->leg && c->q->sq_mem) {
		c->leg = c->q->leg;
		c->since = 0;
	}
	if (c->since < MANY && c->since + n >= MANY) {
		__atomic_add_fetch(&shared->moves, 1, __ATOMIC_RELEASE);
		step_done(MOVED);
	}
	c->since += n;
}

static void step(struct client *c)
{
	struct smartio_nvme_completion done[DEPTH];
	int rc;

	for (unsigned slot = 0; slot < DEPTH; slot++)
		if (!c->slot_busy[slot] && !send(c, slot))
			break;
	rc = smartio_nvme_poll(c->q, done, DEPTH);
	OK(rc);
	for (int i = 0; i < rc; i++)
		judge(c, (unsigned)(uintptr_t)done[i].cookie, done[i].status);
	look(c, (unsigned)rc);
}

/* All of it, at the end. */
static void check_all(struct client *c)
{
	static uint64_t all[CELLS * BYTES / 8];

	while (c->in_flight) {
		struct smartio_nvme_completion done[DEPTH];
		int rc = smartio_nvme_poll(c->q, done, DEPTH);

		OK(rc);
		for (int i = 0; i < rc; i++)
			judge(c, (unsigned)(uintptr_t)done[i].cookie, done[i].status);
	}
	OK(smartio_nvme_read(c->q, all, 0, sizeof(all)));
	for (unsigned i = 0; i < CELLS; i++) {
		const uint64_t *at = all + i * (BYTES / 8);

		for (unsigned k = 1; k < BYTES / 8; k++)
			CHECK(at[k] == at[0]);
		CHECK(at[0] == c->cell[i].holds || (c->cell[i].maybe && at[0] == c->cell[i].maybe));
	}
}

static int client(void *arg)
{
	const struct smartio_nvme_open_options oo = {
		.size = sizeof(oo), .wait_ms = 10000, .flags = SMARTIO_NVME_MULTIPATH};
	const struct smartio_nvme_queue_options qo = {
		.size = sizeof(qo), .depth = DEPTH, .flags = SMARTIO_NVME_SURVIVE};
	static struct client c = {.random = 88172645463325252ull};

	(void)arg;
	begin();
	OK(smartio_nvme_open_with("nvme0", &oo, &c.n));
	OK(smartio_nvme_queue_open(c.n, &qo, &c.q));
	OK(smartio_nvme_buffer_alloc(c.n, DEPTH * BYTES, &c.b));
	c.leg = c.q->leg;
	c.generation = c.q->generation;
	while (!__atomic_load_n(&shared->ending, __ATOMIC_ACQUIRE))
		step(&c);
	check_all(&c);
	smartio_nvme_close(c.n);
	SCITerminate();
	return 0;
}

static unsigned moves(void)
{
	return __atomic_load_n(&shared->moves, __ATOMIC_ACQUIRE);
}

static void await_move(unsigned before)
{
	while (moves() == before)
		step_await(MOVED);
}

/* For as long as a move takes, about: what the machine itself does to the client. */
static void let_be(uint64_t *gap)
{
	const uint64_t until = smartio_now_ns() + 5000000;
	sci_error_t ignored;

	shared->longest = 0;
	while (smartio_now_ns() < until)
		smartio_wait_events(NULL, NULL, 5, &ignored);
	*gap = shared->longest;
}

/* A link goes, until it goes on over the other way; then it is back, until it is home again. */
static void pull(struct cluster *c, unsigned node, unsigned adapter, uint64_t *gap, uint64_t *back)
{
	unsigned before = moves();

	shared->longest = 0;
	assert_int_equal(cluster_link(c, node, adapter, false), 0);
	await_move(before);
	*gap = shared->longest;
	before = moves();
	shared->longest = 0;
	assert_int_equal(cluster_link(c, node, adapter, true), 0);
	await_move(before);
	*back = shared->longest;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print_gaps(const char *what, uint64_t *gap, unsigned n)
{
	qsort(gap, n, sizeof(*gap), by_size);
	printf("# %s, %u times: no completion for %.2f (p50), %.2f (p99), %.2f ms (most) "
	       "(measured)\n",
	       what, n, (double)gap[n / 2] / 1e6, (double)gap[(n * 99 + 99) / 100 - 1] / 1e6,
	       (double)gap[n - 1] / 1e6);
}

static unsigned failures(void)
{
	const char *text = getenv("SMARTIO_TEST_FAILURES");
	unsigned n = text ? (unsigned)strtoul(text, NULL, 10) : FAILURES;

	assert_in_range(n, 1, MOST);
	return n;
}

static void start(struct cluster *c, unsigned node, pid_t *m, pid_t *k)
{
	*m = cluster_fork(c, node, manager, NULL);
	step_await(SERVING);
	*k = cluster_fork(c, CLIENT, client, NULL);
	await_move(0);
}

static void end(struct cluster *c, pid_t m, pid_t k)
{
	__atomic_store_n(&shared->ending, 1, __ATOMIC_RELEASE);
	assert_int_equal(cluster_wait(k), 0);
	kill(m, SIGTERM);
	assert_int_equal(cluster_wait(m), 0);
	printf("# %llu reads, %llu writes, of %llu nobody knows; the drive was reset %llu times "
	       "(counted)\n",
	       (unsigned long long)shared->reads, (unsigned long long)shared->writes,
	       (unsigned long long)shared->unsure, (unsigned long long)shared->resets);
	assert_int_equal(cluster_audit(c), 0);
}

/* The manager is with the drive: it loses nothing. */
static void a_client_moves_and_comes_home(void **state)
{
	static uint64_t gap[MOST], back[MOST], calm[MOST];
	const unsigned n = failures();
	pid_t m, k;

	start(*state, LENDER, &m, &k);
	for (unsigned i = 0; i < n; i++) {
		pull(*state, i & 1 ? LENDER : CLIENT, 0, &gap[i], &back[i]);
		let_be(&calm[i]);
	}
	print_gaps("nothing goes", calm, n);
	print_gaps("its way goes", gap, n);
	print_gaps("its way is back", back, n);
	end(*state, m, k);
	assert_int_equal(shared->resets, 0);
}

/* One that is started where another was killed resets the drive. */
static void a_client_survives_its_manager(void **state)
{
	uint64_t gap[4];
	pid_t m, k;

	start(*state, MANAGER, &m, &k);
	for (unsigned i = 0; i < 4; i++) {
		unsigned before = moves();

		shared->longest = 0;
		kill(m, SIGKILL);
		assert_int_equal(cluster_wait(m), 128 + SIGKILL);
		m = cluster_fork(*state, MANAGER, manager, NULL);
		step_await(SERVING);
		await_move(before);
		gap[i] = shared->longest;
	}
	print_gaps("its drive is reset", gap, 4);
	end(*state, m, k);
	assert_in_range(shared->resets, 4, 8);
}

/* ---- a manager with two ways ---- */
/* The manager gives queue pairs, and knows that it gave one before, unless that moves just now. */
static int visitor(void *arg)
{
	const struct smartio_nvme_open_options oo = {.size = sizeof(oo), .wait_ms = 10000};
	struct smartio_nvme_pair pair[4];
	static uint8_t data[BYTES];
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;

	begin();
	OK(smartio_nvme_open_with("nvme0", &oo, &n));
	OK(smartio_nvme_queue_open(n, NULL, &q));
	OK(smartio_nvme_read(q, data, 0, sizeof(data)));
	CHECK(smartio_nvme_get_pairs(n, pair, 4) >= (*(const unsigned *)arg ? 2 : 1));
	OK(smartio_nvme_identify(n, 1, 0, data));
	smartio_nvme_queue_close(q);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

static void a_manager_goes_on_over_its_other_way(void **state)
{
	pid_t m, k;

	start(*state, MANAGER, &m, &k);
	for (unsigned i = 0; i < 5; i++) {
		/* It has come back over adapter 0; of the lender's the client loses one. */
		const unsigned node = i < 4 ? MANAGER : LENDER;
		static unsigned calm;

		assert_int_equal(cluster_link(*state, node, i & 1, false), 0);
		await_return(i + 1);
		calm = i < 4;
		assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT, visitor, &calm)), 0);
		assert_int_equal(cluster_link(*state, node, i & 1, true), 0);
		assert_int_equal(cluster_reaches(*state, MANAGER), 0);
		if (i < 4) /* its queue has had nothing to do with that */
			assert_int_equal(moves(), 1);
	}
	end(*state, m, k);
	assert_int_equal(shared->resets, 0);
	assert_int_equal(shared->returns.kept, 5);
}

/* Whatever it asks the manager for, at any time. */
static int inquirer(void *arg)
{
	static uint8_t data[BYTES];
	struct smartio_nvme_lease *lease;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_pair pair;
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	step_done(BORROWED);
	while (!__atomic_load_n(&shared->ending, __ATOMIC_ACQUIRE)) {
		OK(smartio_nvme_identify(n, 1, 0, data));
		OK(smartio_nvme_queue_open(n, NULL, &q));
		CHECK(smartio_nvme_get_pairs(n, &pair, 1) == 1);
		OK(smartio_nvme_lease_take(n, "asked", 1, 64, 64, &lease));
		OK(smartio_nvme_lease_give(lease));
		smartio_nvme_queue_close(q);
		CHECK(!n->kept);
		__atomic_add_fetch(&shared->asked, 1, __ATOMIC_RELEASE);
	}
	smartio_nvme_close(n);
	/* One that comes in such a moment waits as well. */
	OK(smartio_nvme_open("nvme0", &n));
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* There is no standby; its requests, and those of its pair, wait until the manager is back. */
static void no_request_fails_while_the_manager_comes_back(void **state)
{
	pid_t m = cluster_fork(*state, MANAGER, manager, NULL), k;

	step_await(SERVING);
	k = cluster_fork(*state, CLIENT, inquirer, NULL);
	step_await(BORROWED);
	for (unsigned i = 0; i < 6; i++) {
		unsigned asked = __atomic_load_n(&shared->asked, __ATOMIC_ACQUIRE);
		sci_error_t ignored;

		await_second_path();
		assert_int_equal(cluster_link(*state, MANAGER, i & 1, false), 0);
		await_return(i + 1);
		assert_int_equal(cluster_link(*state, MANAGER, i & 1, true), 0);
		assert_int_equal(cluster_reaches(*state, MANAGER), 0);
		while (__atomic_load_n(&shared->asked, __ATOMIC_ACQUIRE) - asked < 4)
			smartio_wait_events(NULL, NULL, 1, &ignored);
	}
	assert_int_equal(shared->returns.kept, 6);
	end(*state, m, k);
}

static int standby(void *arg)
{
	const struct smartio_nvme_manager_options o = {.size = sizeof(o),
						       .flags = SMARTIO_NVME_STANDBY};
	struct smartio_nvme_manager_status s;
	int rc;

	(void)arg;
	begin();
	OK(smartio_nvme_manager_open("nvme0", &o, &serving));
	signal(SIGTERM, on_term);
	step_done(STANDING);
	while ((rc = smartio_nvme_manager_serve(serving, UINT32_MAX)) > 0) {
		smartio_nvme_manager_get_status(serving, &s);
		__atomic_store_n(&shared->took_over, s.takeovers, __ATOMIC_RELEASE);
		step_done(TOOK_OVER);
	}
	OK(rc);
	smartio_nvme_manager_close(serving);
	SCITerminate();
	return 0;
}

/* It could do no more than reset the drive; and when that manager has died it goes on. */
static void a_standby_lets_it_come_back(void **state)
{
	static unsigned calm = 1;
	pid_t m, k, s;

	start(*state, MANAGER, &m, &k);
	s = cluster_fork(*state, LENDER, standby, NULL);
	step_await(STANDING);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(cluster_link(*state, MANAGER, i & 1, false), 0);
		await_return(i + 1);
		assert_int_equal(cluster_link(*state, MANAGER, i & 1, true), 0);
		assert_int_equal(cluster_reaches(*state, MANAGER), 0);
	}
	assert_int_equal(shared->returns.kept, 4);
	assert_int_equal(shared->took_over, 0);
	kill(m, SIGKILL);
	assert_int_equal(cluster_wait(m), 128 + SIGKILL);
	step_await(TOOK_OVER);
	assert_int_equal(shared->took_over, 1);
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT, visitor, &calm)), 0);
	end(*state, s, k);
	assert_int_equal(moves(), 1);
	assert_int_equal(shared->resets, 0);
}

/* ---- borrows over an adapter ---- */
static void read_version(sci_smartio_device_t device, sci_remote_segment_t *bar, sci_map_t *map)
{
	const volatile uint32_t *at;
	sci_error_t error;

	SCIConnectDeviceSegment(device, bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_OK(error);
	at = SCIMapRemoteSegment(*bar, map, 0, 4096, NULL, SCI_FLAG_READONLY_MAP, &error);
	CHECK_OK(error);
	CHECK(at[2] != 0 && at[2] != UINT32_MAX);
}

static int borrower(void *arg)
{
	sci_smartio_device_t device[2] = {NULL, NULL}, other;
	sci_remote_segment_t bar[2];
	sci_map_t map[2];
	unsigned fdid;
	sci_error_t error;
	sci_desc_t sd = api_begin();

	(void)arg;
	smartio_find_device("nvme0", &fdid, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < 2; i++) {
		smartio_borrow_device_over(sd, &device[i], fdid, i, 0, &error);
		CHECK_OK(error);
		read_version(device[i], &bar[i], &map[i]);
	}
	CHECK(smartio_borrower_id(device[0]) != smartio_borrower_id(device[1]));
	smartio_borrow_device_over(sd, &other, fdid, 2, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_ADAPTERNO);
	smartio_borrow_device_over(sd, &other, fdid, UINT32_MAX, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_ADAPTERNO);
	smartio_borrow_device_over(sd, &other, fdid + 77, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_FDID);
	smartio_borrow_device_over(sd, NULL, fdid, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	step_done(BORROWED);
	step_await(CUT);
	/* That of the link that went is lost, the other is not. */
	while (!smartio_device_lost(device[0]))
		smartio_yield();
	CHECK(!smartio_device_lost(device[1]));
	smartio_borrow_device_over(sd, &other, fdid, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_LINK_ACCESS);
	step_done(LOOKED);
	step_await(JOINED);
	CHECK(!smartio_device_lost(device[1]));
	for (unsigned i = 0; i < 2; i++) {
		SCIUnmapSegment(map[i], 0, &error);
		SCIDisconnectSegment(bar[i], 0, &error);
		SCIReturnDevice(device[i], 0, &error);
		CHECK_OK(error);
	}
	api_end(sd);
	return 0;
}

static void a_borrow_goes_over_its_adapter(void **state)
{
	pid_t b = cluster_fork(*state, CLIENT, borrower, NULL);

	step_await(BORROWED);
	assert_int_equal(cluster_link(*state, CLIENT, 0, false), 0);
	step_done(CUT);
	step_await(LOOKED);
	assert_int_equal(cluster_link(*state, CLIENT, 0, true), 0);
	step_done(JOINED);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_audit(*state), 0);
}

/* Identify, a log, who has what, a lease and its queue, while the first way is away. */
static int asker(void *arg)
{
	const struct smartio_nvme_open_options o = {.size = sizeof(o),
						    .flags = SMARTIO_NVME_MULTIPATH};
	struct smartio_nvme_queue_options qo = {.size = sizeof(qo)};
	static uint8_t data[BYTES], back[BYTES];
	struct smartio_nvme_lease_info info;
	struct smartio_nvme_lease *lease;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_pair pair;
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open_with("nvme0", &o, &n));
	step_done(BORROWED);
	step_await(CUT);
	while (!smartio_device_lost(n->d.handle))
		smartio_yield();
	OK(smartio_nvme_identify(n, 1, 0, data));
	OK(smartio_nvme_get_log(n, 2, 0xffffffff, 0, data, 512));
	OK(smartio_nvme_lease_take(n, "left", 1, 64, 64, &lease));
	qo.lease = lease;
	OK(smartio_nvme_queue_open(n, &qo, &q));
	memset(data, 0x77, sizeof(data));
	OK(smartio_nvme_write(q, data, 64 * 512, sizeof(data)));
	OK(smartio_nvme_read(q, back, 64 * 512, sizeof(back)));
	CHECK(memcmp(data, back, sizeof(data)) == 0);
	CHECK(smartio_nvme_get_pairs(n, &pair, 1) == 1);
	CHECK(smartio_nvme_get_leases(n, &info, 1) == 1);
	step_done(LOOKED);
	step_await(JOINED);
	OK(smartio_nvme_write(q, data, 64 * 512, sizeof(data)));
	smartio_nvme_queue_close(q);
	OK(smartio_nvme_lease_give(lease));
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

static void what_is_asked_goes_over_the_way_that_is_left(void **state)
{
	pid_t m = cluster_fork(*state, MANAGER, manager, NULL), a;

	step_await(SERVING);
	a = cluster_fork(*state, CLIENT, asker, NULL);
	step_await(BORROWED);
	assert_int_equal(cluster_link(*state, CLIENT, 0, false), 0);
	step_done(CUT);
	step_await(LOOKED);
	assert_int_equal(cluster_link(*state, CLIENT, 0, true), 0);
	step_done(JOINED);
	assert_int_equal(cluster_wait(a), 0);
	kill(m, SIGTERM);
	assert_int_equal(cluster_wait(m), 0);
	assert_int_equal(cluster_audit(*state), 0);
}

static int up(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return -1;
	returns = &shared->returns;
	steps_reset();
	*state = cluster_up(topology);
	return *state ? 0 : -1;
}

static int down(void **state)
{
	munmap(shared, sizeof(*shared));
	return cluster_down(*state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_borrow_goes_over_its_adapter, up, down),
		cmocka_unit_test_setup_teardown(what_is_asked_goes_over_the_way_that_is_left, up,
						down),
		cmocka_unit_test_setup_teardown(a_client_moves_and_comes_home, up, down),
		cmocka_unit_test_setup_teardown(a_client_survives_its_manager, up, down),
		cmocka_unit_test_setup_teardown(a_manager_goes_on_over_its_other_way, up, down),
		cmocka_unit_test_setup_teardown(no_request_fails_while_the_manager_comes_back, up,
						down),
		cmocka_unit_test_setup_teardown(a_standby_lets_it_come_back, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
