/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 16 programs on 8 hosts do all they can to each other's segments and interrupts, in an order drawn
 * from a seed, while one after the other is killed at a random instant and replaced. Two equal
 * rounds; after each, nothing is left, and the second leaves every daemon as big as it found it.
 *
 * SMARTIO_STRESS_S: seconds of one round; SMARTIO_STRESS_SEED. SMARTIO_EXACT_HEAP: the library that
 * lets daemons count to the byte (tests/lib/exact_heap.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/cluster.h"

#define HOSTS 8u
#define WORKERS 16u
#define OWN 4u	  /* segments, data interrupts and interrupts of one worker */
#define OTHERS 6u /* connections of each kind */
#define PAGE 4096u
#define DEFAULT_S 10
#define AT_ONCE 16u /* programs of one host; more than a round ever has */
#define STUCK_S 60  /* no call takes that long, on whatever machine */

#define TOPOLOGY                                                                                   \
	"cluster: stress\n"                                                                        \
	"switches: [sw0]\n"                                                                        \
	"hosts:\n"                                                                                 \
	"  h1: {ram: 64M, iommu: on}\n"                                                            \
	"  h2: {ram: 64M}\n"                                                                       \
	"  h3: {ram: 64M, iommu: on}\n"                                                            \
	"  h4: {ram: 64M}\n"                                                                       \
	"  h5: {ram: 64M, iommu: on}\n"                                                            \
	"  h6: {ram: 64M}\n"                                                                       \
	"  h7: {ram: 64M, iommu: on}\n"                                                            \
	"  h8: {ram: 64M}\n"

struct random {
	uint64_t state;
};

static unsigned draw(struct random *r, unsigned below)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return (unsigned)(r->state >> 20) % below;
}

static unsigned node_of(unsigned worker)
{
	return 4 * (worker % HOSTS + 1);
}

/* ---- a worker ---- */

struct own {
	sci_local_segment_t segment;
	sci_map_t map;
	volatile uint32_t *memory;
	sci_local_data_interrupt_t dint;
	sci_local_interrupt_t interrupt;
};

struct other {
	sci_remote_segment_t segment;
	sci_map_t map;
	sci_sequence_t sequence;
	volatile uint32_t *memory;
	unsigned owner, index; /* whose it is */
	sci_remote_data_interrupt_t dint;
	sci_remote_interrupt_t interrupt;
};

/* Of all workers; in memory that they share. */
struct count {
	uint64_t calls, good, events, kills; /* atomic */
};

struct worker {
	struct random random;
	unsigned number;
	sci_desc_t sd;
	struct own own[OWN];
	struct other other[OTHERS];
	sci_dma_queue_t queue;
	unsigned pulled; /* the id of the segment that the queue is to bring; 0: none */
	uint32_t read[PAGE / 4];
	struct count *count;
};

/* What may be, when the others do what they like and are killed. */
static bool expected(sci_error_t error)
{
	static const sci_error_t fine[] = {
		SCI_ERR_OK,
		SCI_ERR_BUSY,
		SCI_ERR_NO_SUCH_SEGMENT,
		SCI_ERR_NOT_CONNECTED,
		SCI_ERR_SEGMENTID_USED,
		SCI_ERR_INTNO_USED,
		SCI_ERR_TIMEOUT,
		SCI_ERR_NOSPC,
		SCI_ERR_ILLEGAL_OPERATION,
		SCI_ERR_SEGMENT_NOT_PREPARED,
		SCI_ERR_CONNECTION_REFUSED,
		SCI_ERR_OVERFLOW,
		SCI_ERR_SEGMENT_NOT_CONNECTED,
		SCI_ERR_TRANSFER_FAILED,
		SCI_ERR_CANCELLED,
		SCI_ERR_HW_NOSPC, /* receivers that do not read have only so many senders */
	};

	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		if (error == fine[i])
			return true;
	return false;
}

static bool result(struct worker *w, const char *what, sci_error_t error)
{
	__atomic_add_fetch(&w->count->calls, 1, __ATOMIC_RELAXED);
	if (error == SCI_ERR_OK)
		__atomic_add_fetch(&w->count->good, 1, __ATOMIC_RELAXED);
	if (!expected(error)) {
		fprintf(stderr, "worker %u: %s: %s (%#x): %s\n", w->number, what,
			SCIGetErrorString(error), (unsigned)error, smartio_last_error());
		_exit(1);
	}
	return error == SCI_ERR_OK;
}

static unsigned segment_id(unsigned worker, unsigned index)
{
	return 100 + worker * OWN + index;
}

/* The only values that a segment's page ever holds; ones: it is lost. */
static void check_memory(struct worker *w, volatile uint32_t *p, unsigned owner, unsigned index)
{
	for (unsigned i = 0; i < PAGE / 4; i += 64) {
		uint32_t v = p[i];

		if (v != 0 && v != segment_id(owner, index) && v != 0xffffffff) {
			fprintf(stderr, "worker %u: %#x in segment %#x of worker %u\n", w->number,
				v, segment_id(owner, index), owner);
			_exit(1);
		}
	}
	p[draw(&w->random, PAGE / 256) * 64] = segment_id(owner, index);
}

static sci_callback_action_t on_local(void *arg, sci_local_segment_t segment,
				      sci_segment_cb_reason_t reason, unsigned node,
				      unsigned adapter, sci_error_t status)
{
	struct worker *w = arg;

	(void)segment;
	(void)adapter;
	(void)status;
	if (reason < SCI_CB_CONNECT || reason > SCI_CB_LOST || node % 4 || node > 4 * HOSTS)
		_exit(1);
	__atomic_add_fetch(&w->count->events, 1, __ATOMIC_RELAXED);
	return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t on_message(void *arg, sci_local_data_interrupt_t interrupt, void *data,
					unsigned length, sci_error_t status)
{
	struct worker *w = arg;

	(void)interrupt;
	if (status != SCI_ERR_OK || length < 4 || *(const uint8_t *)data != (uint8_t)length)
		_exit(1);
	__atomic_add_fetch(&w->count->events, 1, __ATOMIC_RELAXED);
	return SCI_CALLBACK_CONTINUE;
}

static void create(struct worker *w, unsigned i)
{
	struct own *o = &w->own[i];
	bool heard = draw(&w->random, 2);
	sci_error_t error;

	SCICreateSegment(w->sd, &o->segment, segment_id(w->number, i),
			 PAGE * (1 + draw(&w->random, 8)), on_local, w,
			 heard ? SCI_FLAG_USE_CALLBACK : 0, &error);
	if (!result(w, "create", error))
		return;
	SCIPrepareSegment(o->segment, 0, 0, &error);
	result(w, "prepare", error);
	SCISetSegmentAvailable(o->segment, 0, 0, &error);
	result(w, "available", error);
}

static void use_own(struct worker *w, unsigned i)
{
	static const unsigned how[] = {0, 0, SCI_FLAG_NOTIFY, SCI_FLAG_FORCE_DISCONNECT};
	struct own *o = &w->own[i];
	sci_error_t error;

	if (!o->segment) {
		create(w, i);
		return;
	}
	switch (draw(&w->random, 6)) {
	case 0:
		if (!o->map) {
			o->memory =
				SCIMapLocalSegment(o->segment, &o->map, 0, PAGE, NULL, 0, &error);
			result(w, "map local", error);
			return;
		}
		check_memory(w, o->memory, w->number, i);
		SCIUnmapSegment(o->map, 0, &error);
		result(w, "unmap local", error);
		o->map = NULL;
		return;
	case 1:
		SCISetSegmentUnavailable(o->segment, 0, how[draw(&w->random, 4)], &error);
		result(w, "unavailable", error);
		return;
	case 2:
		SCISetSegmentAvailable(o->segment, 0, 0, &error);
		result(w, "available", error);
		return;
	case 3:
		SCIWaitForLocalSegmentEvent(o->segment, NULL, NULL, draw(&w->random, 3), 0, &error);
		result(w, "wait", error);
		return;
	default:
		SCIRemoveSegment(o->segment, draw(&w->random, 3) ? SCI_FLAG_FORCE_REMOVE : 0,
				 &error);
		if (result(w, "remove", error)) {
			if (o->map)
				SCIUnmapSegment(o->map, 0, &error);
			memset(o, 0, offsetof(struct own, dint));
		}
		return;
	}
}

static void use_other(struct worker *w, struct other *o)
{
	sci_error_t error;

	if (!o->segment) {
		o->owner = draw(&w->random, WORKERS);
		o->index = draw(&w->random, OWN);
		SCIConnectSegment(w->sd, &o->segment, node_of(o->owner),
				  segment_id(o->owner, o->index), 0, NULL, NULL, 0,
				  draw(&w->random, 4) ? 0 : SCI_FLAG_ASYNCHRONOUS_CONNECT, &error);
		result(w, "connect", error);
	} else if (!o->map && draw(&w->random, 4)) {
		o->memory = SCIMapRemoteSegment(o->segment, &o->map, 0, PAGE, NULL, 0, &error);
		if (result(w, "map", error))
			SCICreateMapSequence(o->map, &o->sequence, 0, &error);
	} else if (o->map && draw(&w->random, 4)) {
		check_memory(w, o->memory, o->owner, o->index);
		SCICheckSequence(o->sequence, 0, &error);
		result(w, "check", error);
	} else {
		if (o->map) {
			SCIRemoveSequence(o->sequence, 0, &error);
			result(w, "remove sequence", error);
			SCIUnmapSegment(o->map, 0, &error);
			result(w, "unmap", error);
			o->map = NULL;
		}
		SCIDisconnectSegment(o->segment, 0, &error);
		if (result(w, "disconnect", error)) /* else the queue is at it */
			memset(o, 0, offsetof(struct other, dint));
	}
}

/* Between memory of the program and a segment of somebody. */
static void transfer(struct worker *w, struct other *o)
{
	unsigned id = segment_id(o->owner, o->index);
	uint32_t words[16];
	sci_error_t error;

	if (draw(&w->random, 2)) {
		for (unsigned i = 0; i < 16; i++)
			words[i] = id;
		SCIStartDmaTransferMem(w->queue, words, o->segment, sizeof(words),
				       draw(&w->random, PAGE / 256) * 256, NULL, NULL, 0, &error);
		result(w, "push", error);
		return;
	}
	SCIStartDmaTransferMem(w->queue, w->read, o->segment, PAGE, 0, NULL, NULL,
			       SCI_FLAG_DMA_READ | (draw(&w->random, 2) ? SCI_FLAG_DMA_WAIT : 0),
			       &error);
	if (result(w, "pull", error))
		w->pulled = id;
}

/* What a page may hold, and nothing else. */
static void check_pulled(struct worker *w)
{
	for (unsigned i = 0; i < PAGE / 4; i += 64) {
		if (w->read[i] && w->read[i] != w->pulled) {
			fprintf(stderr, "worker %u: %#x came from segment %#x\n", w->number,
				w->read[i], w->pulled);
			_exit(1);
		}
	}
}

static void use_queue(struct worker *w, struct other *o)
{
	sci_error_t error;

	if (!w->queue) {
		SCICreateDMAQueue(w->sd, &w->queue, 0, 1, 0, &error);
		result(w, "create queue", error);
		return;
	}
	switch (draw(&w->random, 8)) {
	case 0:
		SCIAbortDMAQueue(w->queue, 0, &error);
		result(w, "abort", error);
		return;
	case 1:
		SCIRemoveDMAQueue(w->queue, 0, &error);
		if (result(w, "remove queue", error)) {
			w->queue = NULL;
			w->pulled = 0;
		}
		return;
	case 2:
		SCIWaitForDMAQueue(w->queue, draw(&w->random, 2), 0, &error);
		result(w, "wait for queue", error);
		return;
	default:
		if (SCIDMAQueueState(w->queue) == SCI_DMAQUEUE_POSTED)
			return;
		if (w->pulled && SCIDMAQueueState(w->queue) == SCI_DMAQUEUE_DONE)
			check_pulled(w);
		w->pulled = 0;
		if (o->segment)
			transfer(w, o);
		return;
	}
}

static void use_own_interrupt(struct worker *w, unsigned i)
{
	struct own *o = &w->own[i];
	unsigned number = segment_id(w->number, i), length = 64;
	uint8_t message[64];
	sci_error_t error;

	if (!o->dint) {
		SCICreateDataInterrupt(w->sd, &o->dint, 0, &number, on_message, w,
				       SCI_FLAG_FIXED_INTNO | (i % 2 ? SCI_FLAG_USE_CALLBACK : 0),
				       &error);
		result(w, "create data interrupt", error);
	} else if (!o->interrupt) {
		SCICreateInterrupt(w->sd, &o->interrupt, 0, &number, NULL, NULL,
				   SCI_FLAG_FIXED_INTNO, &error);
		result(w, "create interrupt", error);
	} else if (i % 2 == 0 && draw(&w->random, 3)) {
		SCIWaitForDataInterrupt(o->dint, message, &length, draw(&w->random, 2), 0, &error);
		if (result(w, "wait for data", error) && message[0] != (uint8_t)length)
			_exit(1);
	} else if (draw(&w->random, 2)) {
		SCIWaitForInterrupt(o->interrupt, draw(&w->random, 2), 0, &error);
		result(w, "wait for interrupt", error);
	} else {
		SCIRemoveInterrupt(o->interrupt, 0, &error);
		if (result(w, "remove interrupt", error))
			o->interrupt = NULL;
		SCIRemoveDataInterrupt(o->dint, 0, &error);
		if (result(w, "remove data interrupt", error))
			o->dint = NULL;
	}
}

static void use_other_interrupt(struct worker *w, struct other *o)
{
	unsigned owner = draw(&w->random, WORKERS), length = 4 + draw(&w->random, 60);
	unsigned number = segment_id(owner, draw(&w->random, OWN));
	uint8_t message[64] = {(uint8_t)length};
	sci_error_t error;

	if (!o->dint) {
		SCIConnectDataInterrupt(w->sd, &o->dint, node_of(owner), 0, number, 0, 0, &error);
		result(w, "connect data interrupt", error);
	} else if (!o->interrupt) {
		SCIConnectInterrupt(w->sd, &o->interrupt, node_of(owner), 0, number, 0, 0, &error);
		result(w, "connect interrupt", error);
	}
	if (o->dint) {
		SCITriggerDataInterrupt(o->dint, message, length, 0, &error);
		result(w, "trigger data", error);
	}
	if (o->interrupt) {
		SCITriggerInterrupt(o->interrupt, 0, &error);
		result(w, "trigger", error);
	}
	if (o->dint && !draw(&w->random, 6)) {
		SCIDisconnectDataInterrupt(o->dint, 0, &error);
		if (result(w, "disconnect data interrupt", error))
			o->dint = NULL;
	}
	if (o->interrupt && !draw(&w->random, 6)) {
		SCIDisconnectInterrupt(o->interrupt, 0, &error);
		if (result(w, "disconnect interrupt", error))
			o->interrupt = NULL;
	}
}

static int work(void *arg)
{
	struct worker w = *(struct worker *)arg;

	alarm(STUCK_S);
	w.sd = api_begin();
	for (uint64_t step = 0;; step++) {
		if (step % 64 == 0)
			alarm(STUCK_S);
		switch (draw(&w.random, 5)) {
		case 0:
			use_own(&w, draw(&w.random, OWN));
			break;
		case 1:
			use_other(&w, &w.other[draw(&w.random, OTHERS)]);
			break;
		case 2:
			use_queue(&w, &w.other[draw(&w.random, OTHERS)]);
			break;
		case 3:
			use_own_interrupt(&w, draw(&w.random, OWN));
			break;
		default:
			use_other_interrupt(&w, &w.other[draw(&w.random, OTHERS)]);
			break;
		}
	}
	return 0;
}

/* ---- a round ---- */

static struct count *count;

static pid_t start(struct cluster *c, struct random *r, unsigned worker)
{
	struct worker w = {.number = worker, .count = count};

	w.random.state = (r->state + worker) * 0x9e3779b97f4a7c15ull | 1;
	draw(r, 2);
	return cluster_fork(c, node_of(worker), work, &w);
}

static bool kill_one(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid)
		return false;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return true;
	fprintf(stderr, "a worker ended by itself: status %#x\n", (unsigned)status);
	return false;
}

static unsigned number_of(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text && *text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static bool one_round(struct cluster *c, unsigned seed, unsigned seconds)
{
	struct random r = {.state = (seed + 1) * 0x9e3779b97f4a7c15ull};
	pid_t pid[WORKERS];
	time_t end = time(NULL) + (time_t)seconds;
	bool good = true;

	for (unsigned i = 0; i < WORKERS; i++)
		pid[i] = start(c, &r, i);
	while (good && time(NULL) < end) {
		const struct timespec pause = {.tv_nsec = 1000 * (1 + draw(&r, 100000))};
		unsigned victim = draw(&r, WORKERS);

		nanosleep(&pause, NULL); /* the instant is the test */
		good = kill_one(pid[victim]);
		count->kills++;
		pid[victim] = start(c, &r, victim);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		good &= kill_one(pid[i]);
	fprintf(stderr, "until now %llu calls, %llu of them good; %llu callbacks; %llu killed\n",
		(unsigned long long)count->calls, (unsigned long long)count->good,
		(unsigned long long)count->events, (unsigned long long)count->kills);
	return good && count->good > WORKERS && count->events;
}

/* What a daemon holds for programs, and its bytes. */
static const char *const live[] = {"clients", "operations",	      "segments",
				   "grants",  "connections",	      "data_interrupts",
				   "rings",   "data_interrupt_links", "heap_bytes"};
#define LIVE (sizeof(live) / sizeof(live[0]))
#define BYTES (LIVE - 1)

static void count_live(const struct cluster *c, long long counts[HOSTS][LIVE])
{
	for (unsigned i = 0; i < HOSTS; i++)
		assert_int_equal(cluster_counters(c, node_of(i), live, LIVE, counts[i]), 0);
}

static void two_rounds_leave_nothing(void **state)
{
	unsigned seed = number_of("SMARTIO_STRESS_SEED", (unsigned)time(NULL));
	unsigned seconds = number_of("SMARTIO_STRESS_S", DEFAULT_S);
	long long before[HOSTS][LIVE], after[HOSTS][LIVE];

	cluster_needs(NEEDS_HOSTS);
	fprintf(stderr, "seed %u, %u s\n", seed, seconds);
	assert_true(one_round(*state, seed, seconds));
	assert_int_equal(cluster_audit(*state), 0);
	count_live(*state, before);
	assert_true(one_round(*state, seed, seconds));
	assert_int_equal(cluster_audit(*state), 0);
	count_live(*state, after);
	for (unsigned i = 0; i < HOSTS; i++) {
#ifndef __SANITIZE_ADDRESS__ /* whose malloc() counts nothing; it tells of leaks by itself */
		assert_true(before[i][BYTES] > 0);
#endif
		for (unsigned k = 0; k < LIVE; k++) {
			if (k == BYTES || after[i][k] != before[i][k])
				fprintf(stderr, "node %u: %s: %lld, then %lld\n", node_of(i),
					live[k], before[i][k], after[i][k]);
			assert_int_equal(after[i][k], before[i][k]);
		}
	}
}

static int hold(void *arg)
{
	int ready = *(int *)arg;

	api_begin();
	return write(ready, "", 1) == 1 && pause();
}

/*
 * The event loop has room for as many sources as there ever were at once, and that hangs on how
 * long the killed linger: so each daemon once has more than a round will bring.
 */
static bool have_many(struct cluster *c, unsigned node)
{
	pid_t pid[AT_ONCE];
	int ready[2];
	bool good;
	char c1;

	if (pipe(ready) < 0)
		return false;
	for (unsigned i = 0; i < AT_ONCE; i++)
		pid[i] = cluster_fork(c, node, hold, &ready[1]);
	close(ready[1]);
	good = true;
	for (unsigned i = 0; i < AT_ONCE; i++)
		good &= read(ready[0], &c1, 1) == 1;
	for (unsigned i = 0; i < AT_ONCE; i++)
		good &= kill_one(pid[i]);
	close(ready[0]);
	return good;
}

static int up(void **state)
{
	const char *exact = getenv("SMARTIO_EXACT_HEAP");

	if (exact)
		setenv("LD_PRELOAD", exact, 1);
	count = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (count == MAP_FAILED)
		return -1;
	*state = cluster_up(TOPOLOGY);
	unsetenv("LD_PRELOAD");
	if (!*state)
		return -1;
	for (unsigned i = 0; i < HOSTS; i++)
		if (!have_many(*state, node_of(i)))
			return -1;
	return 0;
}

static int down(void **state)
{
	return *state ? cluster_down(*state) : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(two_rounds_leave_nothing)};

	return cmocka_run_group_tests(tests, up, down);
}
