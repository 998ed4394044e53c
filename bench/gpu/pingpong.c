/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round trips between two that count (the paper's section 7.1.4): each writes the next number, 4
 * bytes, to the other's memory, and waits for the other's. One kernel, in the common subset of C
 * and CUDA, is what GPUs, models and processors run. docs/gpu.md.
 */
#include <getopt.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "smartio/gpu.h"

#define ROUNDS 100000u
#define PATIENCE_MS 600000u
#define SEGMENT_ID 0x67700000u /* of who begins; the next: of who answers */
#define OTHER_LINE 128u

static uint64_t rounds = ROUNDS;
static const char *raw_path;
static bool gpu_memory;

/* ---- what came out ---- */

static int by_value(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void keep_raw(const uint32_t *ticks)
{
	FILE *f = raw_path ? fopen(raw_path, "w") : NULL;

	if (!raw_path)
		return;
	for (uint64_t i = 0; f && i < rounds; i++)
		fprintf(f, "%u\n", ticks[i]);
	if (!f || fclose(f)) {
		fprintf(stderr, "%s: cannot be written\n", raw_path);
		exit(1);
	}
}

/* One row: what it was, and the ticks of a round trip, with as many a millisecond as @khz. */
static void report(const char *label, const char *device, uint32_t khz, uint32_t *ticks)
{
	static const unsigned per_mille[] = {0, 10, 250, 500, 750, 990, 999};

	keep_raw(ticks);
	qsort(ticks, rounds, sizeof(*ticks), by_value);
	printf("label,device,rounds,ticks_per_ms,least,p1,p25,median,p75,p99,p99.9,most\n%s,%s,"
	       "%llu,%u",
	       label, device, (unsigned long long)rounds, khz);
	for (size_t i = 0; i < sizeof(per_mille) / sizeof(per_mille[0]); i++)
		printf(",%u", ticks[rounds * per_mille[i] / 1000]);
	printf(",%u\n", ticks[rounds - 1]);
}

static uint32_t *room(void)
{
	uint32_t *ticks = malloc(rounds * sizeof(*ticks));

	if (ticks)
		return ticks;
	fprintf(stderr, "no memory for %llu round trips\n", (unsigned long long)rounds);
	exit(1);
}

/* ---- one side ---- */

static struct smartio_gpu_run *play(int device, uint64_t own, uint64_t other, bool begins,
				    uint64_t ticks)
{
	const uint64_t argument[6] = {own, other, rounds, begins, ticks};
	struct smartio_gpu_run *run;

	must_gpu(smartio_gpu_start(device, SIO_ACCEL_PING_PONG, argument, &run), "ping-pong");
	return run;
}

static void await(struct smartio_gpu_run *run)
{
	uint64_t result;

	must_gpu(smartio_gpu_wait(run, PATIENCE_MS, &result), "ping-pong");
	if (result == rounds)
		return;
	fprintf(stderr, "ping-pong: %llu round trips of %llu\n", (unsigned long long)result,
		(unsigned long long)rounds);
	exit(1);
}

/* The row of who began, and wrote its ticks to @at of its own memory. */
static void tell(const char *label, int device, uint64_t at)
{
	struct smartio_gpu_info info;
	uint32_t *ticks = room();

	must_gpu(smartio_gpu_get_info(device, &info), "device");
	must_gpu(smartio_gpu_read(device, ticks, at, rounds * sizeof(*ticks)), "ticks");
	report(label, info.name, info.clock_khz, ticks);
	free(ticks);
}

/* ---- two in this process ---- */

/* Memory of each, whose first word is that which the other counts in. */
static void pair(int a, int b)
{
	const size_t bytes = whole_pages(PAGE + rounds * 4);
	struct smartio_gpu_run *first, *second;
	uint64_t mine, other;

	if ((a == SMARTIO_GPU_HERE) != (b == SMARTIO_GPU_HERE)) {
		fprintf(stderr, "pair: two GPUs, or cpu twice; 'segment' joins one of each\n");
		exit(2);
	}
	must_gpu(smartio_gpu_reach(a, b), "first");
	must_gpu(smartio_gpu_reach(b, a), "second");
	must_gpu(smartio_gpu_alloc(a, bytes, &mine), "first");
	must_gpu(smartio_gpu_alloc(b, PAGE, &other), "second");
	second = play(b, other, mine, false, 0);
	first = play(a, mine, other, true, mine + PAGE);
	await(first);
	await(second);
	tell(a == SMARTIO_GPU_HERE ? "two threads of processors"
	     : a == b		   ? "one GPU; two kernels of one process"
				   : "two GPUs",
	     a, mine + PAGE);
	smartio_gpu_free(a, mine, bytes);
	smartio_gpu_free(b, other, PAGE);
}

/* ---- two processes on one GPU ---- */

static void pass(int fd, void *what, size_t bytes, bool sends)
{
	ssize_t n = sends ? write(fd, what, bytes) : read(fd, what, bytes);

	if (n == (ssize_t)bytes)
		return;
	fprintf(stderr, "the other process has ended\n");
	exit(1);
}

/* Its own memory goes to the other; the other's is what it writes to. CUDA bears no fork. */
static uint64_t exchange(int device, uint64_t own, int to, int from)
{
	struct smartio_gpu_handle handle;
	uint64_t other;

	must_gpu(smartio_gpu_share(device, own, &handle), "handle");
	pass(to, &handle, sizeof(handle), true);
	pass(from, &handle, sizeof(handle), false);
	must_gpu(smartio_gpu_open(device, &handle, &other), "the other's memory");
	return other;
}

static void side_of_two(const char *name, bool begins, int to, int from)
{
	const int device = device_of(name);
	uint64_t own, other;

	must_gpu(smartio_gpu_alloc(device, whole_pages(PAGE + rounds * 4), &own), "memory");
	other = exchange(device, own, to, from);
	await(play(device, own, other, begins, begins ? own + PAGE : 0));
	if (begins)
		tell("one GPU; two processes (they take turns unless MPS runs)", device,
		     own + PAGE);
}

static void processes(const char *name)
{
	int there[2], back[2], status = 0;
	pid_t child;

	if (strcmp(name, "cpu") == 0) {
		fprintf(stderr, "processes: the number of a GPU is right\n");
		exit(2);
	}
	if (pipe(there) || pipe(back)) {
		perror("pipe");
		exit(1);
	}
	signal(SIGPIPE, SIG_IGN);
	child = fork();
	if (child < 0) {
		perror("fork");
		exit(1);
	}
	close(child ? there[0] : there[1]);
	close(child ? back[1] : back[0]);
	side_of_two(name, child != 0, child ? there[1] : back[1], child ? back[0] : there[0]);
	if (child == 0)
		exit(0);
	if (waitpid(child, &status, 0) < 0 || status) {
		fprintf(stderr, "the other process failed\n");
		exit(1);
	}
}

/* ---- segments ---- */

struct segment {
	sci_local_segment_t local;
	sci_map_t map;
	void *at;     /* NULL: a GPU's memory */
	uint64_t own; /* as the device reaches it */
	size_t bytes;
};

/* The word, and ticks behind it, in memory of the host; of a GPU that its driver exports. */
static void make_segment(struct segment *s, sci_desc_t sd, int device, unsigned id)
{
	const bool gpu = gpu_memory && device != SMARTIO_GPU_HERE;
	sci_error_t error;

	s->bytes = whole_pages(PAGE + rounds * 4);
	SCICreateSegment(sd, &s->local, id, s->bytes, NULL, NULL, gpu ? SCI_FLAG_EMPTY : 0, &error);
	must_sci(error, "segment");
	if (gpu) {
		must_gpu(smartio_gpu_alloc(device, s->bytes, &s->own), "memory");
		SCIAttachPhysicalMemory(0, (void *)(uintptr_t)s->own, 0, s->bytes, s->local,
					SCI_FLAG_CUDA_BUFFER, &error);
		must_sci(error, "memory of the GPU as a segment");
		return;
	}
	s->at = SCIMapLocalSegment(s->local, &s->map, 0, s->bytes, NULL, 0, &error);
	must_sci(error, "segment");
	must_gpu(smartio_gpu_register(device, s->at, s->bytes, 0, &s->own), "segment");
}

static void publish(const struct segment *s)
{
	sci_error_t error;

	SCIPrepareSegment(s->local, 0, 0, &error);
	must_sci(error, "prepare");
	SCISetSegmentAvailable(s->local, 0, 0, &error);
	must_sci(error, "available");
}

/* A GPU, and a processor of this host, by one segment. */
static void with_segment(const char *name)
{
	sci_desc_t sd = begin_sisci();
	const int device = device_of(name);
	struct smartio_gpu_run *first, *second;
	struct segment s = {0};

	gpu_memory = false; /* a processor has no pointer to that */
	make_segment(&s, sd, device, SEGMENT_ID);
	second = play(SMARTIO_GPU_HERE, (uintptr_t)s.at + OTHER_LINE, (uintptr_t)s.at, false, 0);
	first = play(device, s.own, s.own + OTHER_LINE, true, s.own + PAGE);
	await(first);
	await(second);
	tell(device == SMARTIO_GPU_HERE ? "two threads of processors; a segment"
					: "a GPU and a processor; a segment",
	     device, s.own + PAGE);
	must_gpu(smartio_gpu_unregister(device, s.at), "segment");
}

static uint64_t reach_far(sci_desc_t sd, int device, unsigned node, unsigned id, size_t bytes)
{
	sci_remote_segment_t far;
	sci_error_t error;
	uint64_t there;
	sci_map_t map;
	void *at;

	do { /* until the other program is there: each try waits for its daemon */
		SCIConnectSegment(sd, &far, node, id, 0, NULL, NULL, 1000, 0, &error);
		smartio_yield();
	} while (error == SCI_ERR_NO_SUCH_SEGMENT || error == SCI_ERR_TIMEOUT);
	must_sci(error, "the other's segment");
	at = (void *)(uintptr_t)SCIMapRemoteSegment(far, &map, 0, bytes, NULL, 0, &error);
	must_sci(error, "window");
	/* A window of hardware is no memory; that of an emulated cluster is. */
	if (device == SMARTIO_GPU_HERE ||
	    smartio_gpu_register(device, at, bytes, SMARTIO_GPU_IO, &there))
		must_gpu(smartio_gpu_register(device, at, bytes, 0, &there), "window");
	return there;
}

/* Of two programs on two hosts; each counts in a segment of its own host. */
static void with_host(const char *name, const char *node, bool begins)
{
	sci_desc_t sd = begin_sisci();
	const int device = device_of(name);
	struct segment s = {0};
	uint64_t there;

	make_segment(&s, sd, device, SEGMENT_ID + !begins);
	publish(&s);
	there = reach_far(sd, device, (unsigned)number(node, UINT_MAX), SEGMENT_ID + begins, PAGE);
	await(play(device, s.own, there, begins, begins ? s.own + PAGE : 0));
	if (begins)
		tell(device == SMARTIO_GPU_HERE ? "two hosts; segments; this side: a processor"
		     : gpu_memory		? "two hosts; segments; this side: a GPU's memory"
				  : "two hosts; segments; this side: a GPU; host memory",
		     device, s.own + PAGE);
}

/* ---- models ---- */

static void must_accel(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, smartio_accel_error());
	exit(1);
}

static void count(struct smartio_accel *a, struct smartio_accel *other, bool begins,
		  struct smartio_accel_queue **ret)
{
	const uint64_t word = smartio_accel_local(0);
	uint64_t far;

	must_accel(smartio_accel_reach(a, other, &far), "reach");
	must_accel(smartio_accel_queue_open(a, SMARTIO_ACCEL_UNIT, 0, 0, ret), "queue");
	must_accel(smartio_accel_submit(*ret, SIO_ACCEL_PING_PONG,
					(uint64_t[6]){word, far, rounds, begins,
						      begins ? smartio_accel_local(PAGE) : 0}),
		   "submit");
	smartio_accel_ring(*ret);
}

static void models(const char *name, const char *other_name)
{
	struct smartio_accel *a, *other;
	struct smartio_accel_queue *first, *second;
	struct smartio_accel_info info;
	struct sio_accel_completion c, d;
	const volatile uint8_t *memory;
	uint32_t *ticks = room();

	begin_sisci();
	must_accel(smartio_accel_open(name, 0, &a), name);
	must_accel(smartio_accel_open(other_name, 0, &other), other_name);
	smartio_accel_get_info(a, &info);
	if (info.memory_bytes < PAGE + rounds * 4) {
		fprintf(stderr, "%s has %llu bytes of memory, for %llu round trips at most\n", name,
			(unsigned long long)info.memory_bytes,
			(unsigned long long)(info.memory_bytes - PAGE) / 4);
		exit(1);
	}
	count(other, a, false, &second);
	count(a, other, true, &first);
	must_accel(smartio_accel_wait(first, PATIENCE_MS, &c), "ping-pong");
	must_accel(smartio_accel_wait(second, PATIENCE_MS, &d), "ping-pong");
	if (c.status != SIO_ACCEL_OK || d.status != SIO_ACCEL_OK) {
		fprintf(stderr, "ping-pong: %s, %s\n", smartio_accel_status_string(c.status),
			smartio_accel_status_string(d.status));
		exit(1);
	}
	memory = (const volatile uint8_t *)smartio_accel_memory(a) + PAGE;
	for (uint64_t i = 0; i < rounds; i++)
		ticks[i] = sio_read32(memory + 4 * i);
	report("two models of accelerators (time of this software)", name, 1000000, ticks);
	free(ticks);
	smartio_accel_close(a);
	smartio_accel_close(other);
}

/* ---- which ---- */

static const char usage[] =
	"usage: gpu-pingpong [--rounds N] [--raw FILE] [--gpu-memory] WHICH\n"
	"\n"
	"WHICH:\n"
	"  pair A B             two GPUs (numbers), one twice, or cpu twice\n"
	"  processes A          two processes on GPU A\n"
	"  segment A            GPU A (or cpu) and a processor, by a segment of this host\n"
	"  begin A NODE         GPU A (or cpu) and another host's, where 'answer' runs\n"
	"  answer A NODE        the other side of that; NODE is where 'begin' runs\n"
	"  models NAME OTHER    two emulated accelerators\n"
	"\n"
	"--rounds N      round trips, 100000 if left out\n"
	"--raw FILE      the ticks of each, a line each\n"
	"--gpu-memory    begin, answer: count in memory of the GPU (real hosts alone)\n"
	"\n"
	"Prints a row of CSV: what it was, and a round trip in ticks: of a GPU clock cycles, else ns.\n";

static int wrong_usage(void)
{
	fputs(usage, stderr);
	return 2;
}

static int run(char **arg, int n)
{
	const char *which = n ? arg[0] : "";

	if (n == 3 && strcmp(which, "pair") == 0)
		pair(device_of(arg[1]), device_of(arg[2]));
	else if (n == 2 && strcmp(which, "processes") == 0)
		processes(arg[1]);
	else if (n == 2 && strcmp(which, "segment") == 0)
		with_segment(arg[1]);
	else if (n == 3 && (strcmp(which, "begin") == 0 || strcmp(which, "answer") == 0))
		with_host(arg[1], arg[2], strcmp(which, "begin") == 0);
	else if (n == 3 && strcmp(which, "models") == 0)
		models(arg[1], arg[2]);
	else
		return wrong_usage();
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"rounds", required_argument, NULL, 'n'},
						{"raw", required_argument, NULL, 'r'},
						{"gpu-memory", no_argument, NULL, 'm'},
						{"help", no_argument, NULL, 'h'},
						{NULL, 0, NULL, 0}};

	for (int o; (o = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
		if (o == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (o == 'n')
			rounds = number(optarg, 100000000);
		else if (o == 'r')
			raw_path = optarg;
		else if (o == 'm')
			gpu_memory = true;
		else
			return wrong_usage();
	}
	if (rounds == 0) {
		fprintf(stderr, "--rounds 0: 1 at least is right\n");
		return 2;
	}
	return run(argv + optind, argc - optind);
}
