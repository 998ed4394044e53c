/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients that lie, on a live cluster: about who they are and where their queues lie. They speak
 * the manager's protocol themselves, take memory away under live queues, die, and ring doorbells
 * that are not theirs. The drive goes on for everybody else, and nothing is left.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../lib/cluster.h"
#include "client.h"
#include "smartio/io.h"
#include "smartio/memdev.h"
#include "smartio/nvme.h"
#include "serving.h"

enum { LENDER = 4, MANAGER = 8, CLIENT1 = 12, CLIENT2 = 16 };
enum { RUNNING = SERVING + 1, LIED };
#define PAIRS 6
#define ENTRIES 16
#define PAGE 4096
#define WAIT_MS 60000

static const char topology[] =
	"cluster: liars\n"
	"switches: [sw0]\n"
	"hosts:\n"
	"  lender:\n"
	"    ram: 64M\n"
	"    iommu: on\n"
	"    devices: {nvme0: {type: nvme, size: 16M, queue_pairs: 6}, beside: {type: memory, size: 1M}}\n"
	"  manager: {ram: 64M, iommu: off}\n"
	"  client1: {ram: 64M, iommu: on, devices: {here: {type: memory, size: 1M}}}\n"
	"  client2: {ram: 64M, iommu: off}\n";

/* ---- honest programs ---- */

static volatile sig_atomic_t ending;

static void on_end(int sig)
{
	(void)sig;
	ending = 1;
}

/* Reads what it wrote, until SIGTERM: whatever the others do, no error may come. */
static int bystander(void *arg)
{
	uint8_t out[PAGE], in[PAGE];
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;

	(void)arg;
	signal(SIGTERM, on_end);
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(smartio_nvme_queue_open(n, NULL, &q));
	CHECK(smartio_nvme_queue_id(q) == 1);
	for (unsigned i = 0; !ending; i++) {
		memset(out, (int)i, sizeof(out));
		OK(smartio_nvme_write(q, out, 0, sizeof(out)));
		OK(smartio_nvme_read(q, in, 0, sizeof(in)));
		CHECK(memcmp(in, out, sizeof(in)) == 0);
		if (i == 0)
			step_done(RUNNING);
	}
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* All pairs but the bystander's, at once, each in use. */
static int the_others(void *arg)
{
	struct smartio_nvme_queue *q[PAIRS];
	struct smartio_nvme *n;
	uint8_t data[512];

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	for (unsigned i = 1; i < PAIRS; i++)
		OK(smartio_nvme_queue_open(n, NULL, &q[i]));
	for (unsigned i = 1; i < PAIRS; i++)
		OK(smartio_nvme_read(q[i], data, 512 * i, sizeof(data)));
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* ---- liars ---- */

/* Say it to the manager as it is. The reply, decoded. */
static struct sio_nvme_rep tell(struct smartio_nvme *n, struct sio_nvme_req *req)
{
	static uint8_t message[8192];
	sci_remote_data_interrupt_t to;
	struct sio_nvme_rep rep;
	unsigned len = sizeof(message);
	sci_error_t error;

	req->magic = SIO_NVME_REQ_MAGIC;
	req->version = SIO_NVME_VERSION;
	SCIGetLocalNodeId(0, &req->reply_node, 0, &error);
	CHECK_OK(error);
	req->instance = n->meta.instance;
	req->reply_interrupt = n->reply_number;
	sio_nvme_req_encode(req, message);
	SCIConnectDataInterrupt(n->d.sd, &to, n->meta.node, 0, n->meta.interrupt,
				SCI_INFINITE_TIMEOUT, 0, &error);
	CHECK_OK(error);
	SCITriggerDataInterrupt(to, message, sizeof(*req), 0, &error);
	CHECK_OK(error);
	SCIWaitForDataInterrupt(n->reply, message, &len, WAIT_MS, 0, &error);
	CHECK_OK(error);
	CHECK(sio_nvme_rep_decode(message, len, &rep) == 0);
	SCIDisconnectDataInterrupt(to, 0, &error);
	CHECK_OK(error);
	return rep;
}

static struct sio_nvme_rep create(struct smartio_nvme *n, uint64_t borrower, uint64_t sq,
				  uint64_t cq)
{
	struct sio_nvme_req req = {
		.op = SIO_NVME_OP_CREATE,
		.borrower = borrower,
		.create = {.sq = sq, .cq = cq, .sq_entries = ENTRIES, .cq_entries = ENTRIES}};

	return tell(n, &req);
}

static void refused(struct smartio_nvme *n, uint64_t borrower, uint64_t sq, uint64_t cq,
		    uint64_t wrong)
{
	struct sio_nvme_rep rep = create(n, borrower, sq, cq);
	char text[128];

	snprintf(text, sizeof(text),
		 "queue memory at %#" PRIx64 " is not mapped for borrower %" PRIu64, wrong,
		 borrower);
	if (rep.h.error != EFAULT || strcmp(rep.text, text) != 0) {
		fprintf(stderr, "expected %s, got error %u: %s\n", text, rep.h.error,
			rep.h.error ? rep.text : "none");
		exit(1);
	}
}

static void ring_all_but_the_bystanders(struct smartio_nvme *n)
{
	for (uint32_t qid = 2; qid <= PAIRS; qid++)
		sio_write32(
			(volatile uint32_t *)(n->doorbells->at + 2 * qid * n->meta.doorbell_stride),
			1);
}

/* Says all that is not true, then dies with what it has mapped. */
static int liar(void *arg)
{
	struct smartio_nvme_buffer *b, *ob;
	struct smartio_nvme *n, *other;
	uint64_t me, it;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(smartio_nvme_open("nvme0", &other));
	OK(smartio_nvme_buffer_alloc(n, 2 * PAGE, &b));
	OK(smartio_nvme_buffer_alloc(other, 2 * PAGE, &ob));
	me = smartio_borrower_id(n->d.handle);
	it = smartio_borrower_id(other->d.handle);
	refused(n, me + 1000000, b->ioaddr, b->ioaddr + PAGE, b->ioaddr);
	refused(n, 1, b->ioaddr, b->ioaddr + PAGE, b->ioaddr);
	refused(n, it, b->ioaddr, b->ioaddr + PAGE, b->ioaddr);
	refused(n, it, ob->ioaddr, b->ioaddr, b->ioaddr);
	refused(n, me, ob->ioaddr, ob->ioaddr + PAGE, ob->ioaddr);
	refused(n, me, b->ioaddr, 0x7ffffffff000, 0x7ffffffff000);
	refused(n, me, b->ioaddr + 2 * PAGE, b->ioaddr, b->ioaddr + 2 * PAGE);
	ring_all_but_the_bystanders(n);
	step_done(LIED);
	kill(getpid(), SIGKILL);
	return 1;
}

/* Makes queues as it should, then takes their memory away as far as it can, and dies. */
static int thief(void *arg)
{
	struct smartio_nvme_buffer *b;
	struct sio_nvme_req req = {.op = SIO_NVME_OP_DELETE};
	struct sio_nvme_rep rep;
	struct smartio_nvme *n;
	sci_error_t error;

	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(smartio_nvme_buffer_alloc(n, 2 * PAGE, &b));
	req.borrower = smartio_borrower_id(n->d.handle);
	rep = create(n, req.borrower, b->ioaddr, b->ioaddr + PAGE);
	CHECK(rep.h.error == 0 && rep.create.qid > 1);
	SCIUnmapLocalSegmentForDevice(b->mem.local, n->d.adapter, n->d.handle, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	CHECK(strstr(smartio_last_error(), "a queue of the device lies in"));
	SCISetSegmentUnavailable(b->mem.local, n->d.adapter, 0, &error);
	b->mem.available = false;
	SCIUnmapSegment(b->mem.map, 0, &error);
	CHECK_OK(error);
	b->mem.map = NULL;
	SCIRemoveSegment(b->mem.local, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIReturnDevice(n->d.handle, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	ring_all_but_the_bystanders(n);
	step_done(LIED);
	if (arg) {
		kill(getpid(), SIGKILL);
		return 1;
	}
	/* This one thinks better of it: with the queue gone, all can be given back. */
	req.del.qid = rep.create.qid;
	req.del.key = rep.create.key;
	CHECK(tell(n, &req).h.error == 0);
	OK(smartio_nvme_buffer_free(b));
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* The manager asks the lender; the reply says why. False: the drive has such a queue now. */
static bool not_in_a_bar(const struct sio_nvme_rep *rep)
{
	if (rep->h.error == ENOTSUP && strstr(rep->text, "lies in a BAR of another device"))
		return true;
	fprintf(stderr, "a queue in a BAR: error %u: %s\n", rep->h.error,
		rep->h.error ? rep->text : "none");
	return false;
}

/*
 * Wants its queues where no lender keeps memory for them: in a device of another host's, in the
 * doorbells of one beside the drive. It dies with both mapped for the drive.
 */
static int tenant(void *arg)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .sq_device = "here"};
	struct smartio_nvme_buffer *b, *ram, *bell;
	struct smartio_nvme_queue *q;
	struct sio_nvme_rep rep;
	struct smartio_nvme *n;
	uint64_t me;
	int rc;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	do { /* the one before may be on his way out */
		rc = smartio_nvme_queue_open(n, &o, &q);
	} while (rc != 0 && strstr(smartio_nvme_error(), "cannot be borrowed"));
	if (rc == 0) /* let it be seen what comes of that */
		ring_all_but_the_bystanders(n);
	CHECK(rc == -ENOTSUP);
	CHECK(strstr(smartio_nvme_error(), "lies in a BAR of another device"));
	OK(smartio_nvme_buffer_alloc(n, 2 * PAGE, &b));
	OK(smartio_nvme_buffer_on_device(n, "here", SIO_MEMDEV_BAR_RAM, 0, 2 * PAGE, &ram));
	OK(smartio_nvme_buffer_on_device(n, "beside", SIO_MEMDEV_BAR_REGISTERS, SIO_MEMDEV_DOORBELL,
					 PAGE, &bell));
	me = smartio_borrower_id(n->d.handle);
	rep = create(n, me, ram->ioaddr, b->ioaddr);
	CHECK(not_in_a_bar(&rep));
	rep = create(n, me, b->ioaddr, ram->ioaddr + PAGE);
	CHECK(not_in_a_bar(&rep));
	rep = create(n, me, bell->ioaddr, b->ioaddr);
	CHECK(not_in_a_bar(&rep));
	refused(n, me, b->ioaddr, ram->ioaddr + 2 * PAGE, ram->ioaddr + 2 * PAGE);
	ring_all_but_the_bystanders(n);
	kill(getpid(), SIGKILL);
	return 1;
}

/* Rings what is not its. */
static int ringer(void *arg)
{
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	ring_all_but_the_bystanders(n);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* ---- tests ---- */

struct liars {
	struct cluster *c;
	pid_t manager, bystander;
};

static int up(void **state)
{
	static struct liars t;

	steps_reset();
	t.c = cluster_up(topology);
	if (!t.c)
		return -1;
	t.manager = cluster_fork(t.c, MANAGER, manager, NULL);
	step_await(SERVING);
	t.bystander = cluster_fork(t.c, CLIENT2, bystander, NULL);
	step_await(RUNNING);
	*state = &t;
	return 0;
}

/* Whatever was said: every pair can be had, the drive never stopped, and the audit finds nothing.
 */
static int down(void **state)
{
	struct liars *t = *state;
	int rc;

	rc = cluster_wait(cluster_fork(t->c, CLIENT1, ringer, NULL));
	if (rc == 0)
		rc = cluster_wait(cluster_fork(t->c, CLIENT1, the_others, NULL));
	if (rc == 0 && cluster_count(t->c, "lender: nvme0 fatal errors") != 0)
		rc = fprintf(stderr, "the drive went to fatal status\n");
	kill(t->bystander, SIGTERM);
	rc |= cluster_wait(t->bystander);
	kill(t->manager, SIGTERM);
	rc |= cluster_wait(t->manager);
	rc |= cluster_down(t->c);
	return rc ? -1 : 0;
}

static void lies_are_refused(void **state)
{
	static const unsigned node[] = {CLIENT1, LENDER, MANAGER};
	struct liars *t = *state;

	for (unsigned i = 0; i < 3; i++) {
		pid_t pid = cluster_fork(t->c, node[i], liar, NULL);

		step_await(LIED);
		assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
		assert_int_equal(cluster_wait(cluster_fork(t->c, CLIENT1, ringer, NULL)), 0);
	}
}

static void live_queues_keep_their_memory(void **state)
{
	static unsigned dies;
	struct liars *t = *state;

	assert_int_equal(cluster_wait(cluster_fork(t->c, CLIENT1, thief, NULL)), 0);
	step_await(LIED);
	assert_int_equal(cluster_wait(cluster_fork(t->c, LENDER, thief, NULL)), 0);
	step_await(LIED);
	for (unsigned i = 0; i < 3; i++) {
		pid_t pid = cluster_fork(t->c, i & 1 ? LENDER : CLIENT1, thief, &dies);

		step_await(LIED);
		assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
		assert_int_equal(cluster_wait(cluster_fork(t->c, CLIENT2, ringer, NULL)), 0);
	}
}

/* Such pages are cut at once when who borrowed them dies: no queue may lie there then. */
static void no_queue_lies_where_nobody_keeps_it(void **state)
{
	static const unsigned node[] = {CLIENT1, LENDER, MANAGER};
	struct liars *t = *state;

	for (unsigned i = 0; i < 3; i++) {
		pid_t pid = cluster_fork(t->c, node[i], tenant, NULL);

		assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
		assert_int_equal(cluster_wait(cluster_fork(t->c, CLIENT2, ringer, NULL)), 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lies_are_refused),
		TEST(live_queues_keep_their_memory),
		TEST(no_queue_lies_where_nobody_keeps_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
