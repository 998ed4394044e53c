/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A kernel drives a queue pair of an NVMe drive by itself (the paper's section 6.4): it builds
 * commands, rings the doorbells and polls completions. The drive may be of any host; queues and
 * data lie in memory of hosts, which the GPU reaches as pages of this program. docs/gpu.md.
 */
#include <getopt.h>

#include "common.h"
#include "smartio/gpu.h"
#include "smartio/nvmeraw.h"

#define DEPTH 31u
#define PATIENCE_MS 60000u
#define MOST_BYTES (64u << 20)

static uint64_t commands = 1024, block = PAGE, first;
static bool writes;

struct drive {
	struct smartio_nvme *nvme;
	struct smartio_nvme_queue *plain, *given;
	struct smartio_nvme_raw raw;
	struct smartio_nvme_buffer *data;
	sci_map_t bells;
	void *bell_pages;
	uint64_t bells_at; /* as the device reaches them, and so on */
	struct sio_accel_nvme_job *job;
	uint64_t job_at, data_at;
};

static void must_nvme(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, smartio_nvme_error());
	exit(1);
}

/* Pages of this program, for the device, too. */
static uint64_t let_reach(int device, const volatile void *at, size_t bytes, unsigned flags,
			  const char *what)
{
	uint64_t there;

	must_gpu(smartio_gpu_register(device, (void *)(uintptr_t)at, bytes, flags, &there), what);
	return there;
}

static uint64_t map_queue(int device, sci_remote_segment_t queue, size_t bytes, const char *what)
{
	sci_error_t error;
	sci_map_t map;
	volatile void *at =
		SCIMapRemoteSegment(queue, &map, 0, whole_pages(bytes), NULL, 0, &error);

	must_sci(error, what);
	return let_reach(device, at, whole_pages(bytes), 0, what);
}

/* A GPU's stores there wake no model: it is to look by itself. */
static void map_doorbells(int device, struct drive *d)
{
	sci_error_t error;
	volatile void *at = SCIMapRemoteSegment(d->raw.bar, &d->bells, PAGE, PAGE, NULL,
						SCI_FLAG_IO_MAP_IOSPACE, &error);

	must_sci(error, "doorbells");
	smartio_map_keep_awake(d->bells, &error);
	must_sci(error, "doorbells");
	d->bell_pages = (void *)(uintptr_t)at;
	/* Of hardware they are a device's, of an emulated cluster memory. */
	if (smartio_gpu_register(device, d->bell_pages, PAGE, SMARTIO_GPU_IO, &d->bells_at))
		d->bells_at = let_reach(device, at, PAGE, 0, "doorbells");
}

static void open_drive(int device, const char *name, struct drive *d)
{
	const struct smartio_nvme_queue_options options = {.size = sizeof(options), .depth = DEPTH};
	const size_t bytes = whole_pages(commands * block);

	begin_sisci();
	must_nvme(smartio_nvme_open_wait(name, PATIENCE_MS, &d->nvme), name);
	must_nvme(smartio_nvme_queue_open(d->nvme, NULL, &d->plain), "queue");
	must_nvme(smartio_nvme_queue_open(d->nvme, &options, &d->given), "queue for the kernel");
	d->raw.size = sizeof(d->raw);
	must_nvme(smartio_nvme_queue_hand_over(d->given, &d->raw), "queue for the kernel");
	must_nvme(smartio_nvme_buffer_alloc(d->nvme, bytes, &d->data), "data");
	d->data_at = let_reach(device, smartio_nvme_buffer_data(d->data), bytes, 0, "data");
	map_doorbells(device, d);
	d->job = aligned_alloc(PAGE, PAGE);
	if (!d->job) {
		fprintf(stderr, "no memory\n");
		exit(1);
	}
	d->job_at = let_reach(device, d->job, PAGE, 0, "job");
	*d->job = (struct sio_accel_nvme_job){
		.sq = map_queue(device, d->raw.sq, d->raw.entries * 64, "submission queue"),
		.cq = map_queue(device, d->raw.cq, d->raw.entries * 16, "completion queue"),
		.entries = d->raw.entries,
		.sq_doorbell = d->bells_at + d->raw.sq_doorbell - PAGE,
		.cq_doorbell = d->bells_at + d->raw.cq_doorbell - PAGE,
		.data = smartio_nvme_buffer_address(d->data),
		.bytes = block,
		.lba = d->raw.first + first,
		.blocks = block / d->raw.block_size,
		.commands = commands,
		.namespace_id = d->raw.namespace_id,
		.depth = DEPTH,
	};
	if (d->job->blocks == 0 || d->job->lba + d->job->blocks * commands > d->raw.blocks) {
		fprintf(stderr,
			"%llu commands of %llu bytes from block %llu on: the drive has %llu "
			"blocks of %u bytes\n",
			(unsigned long long)commands, (unsigned long long)block,
			(unsigned long long)first, (unsigned long long)d->raw.blocks,
			d->raw.block_size);
		exit(1);
	}
}

static uint64_t run(int device, unsigned kernel, const uint64_t argument[6])
{
	struct smartio_gpu_run *r;
	uint64_t result;

	must_gpu(smartio_gpu_start(device, kernel, argument, &r), "kernel");
	must_gpu(smartio_gpu_wait(r, PATIENCE_MS, &result), "kernel");
	return result;
}

/* The whole of the data, by the kernel. Return: nanoseconds. */
static uint64_t transfer(int device, struct drive *d, uint64_t opcode)
{
	const uint64_t before = smartio_now_ns();

	d->job->opcode = opcode;
	run(device, SIO_ACCEL_NVME, (uint64_t[6]){d->job_at});
	return smartio_now_ns() - before;
}

/* As the kernel CHECKSUM: of the words that the driver reads by itself. */
static uint64_t expected(struct drive *d)
{
	const uint64_t from = first * d->raw.block_size;
	uint32_t *words = malloc(block);
	uint64_t sum = 0, n = 0;

	for (uint64_t i = 0; words && i < commands; i++) {
		must_nvme(smartio_nvme_read(d->plain, words, from + i * block, block), "read");
		for (uint64_t word = 0; word < block / 4; word++, n++)
			sum += words[word] * (2 * n + 1);
	}
	free(words);
	return sum;
}

static void report(const char *what, const char *device, uint64_t ns)
{
	printf("%s,%s,%llu,%llu,%.3f,%.0f\n", what, device, (unsigned long long)commands,
	       (unsigned long long)block, (double)ns / 1e6, 1e9 * (double)commands / (double)ns);
}

static void work(int device, struct drive *d)
{
	const uint64_t bytes = commands * block;
	struct smartio_gpu_info info;
	uint64_t ns, sum;

	must_gpu(smartio_gpu_get_info(device, &info), "device");
	printf("what,device,commands,bytes,ms,commands_per_s\n");
	if (writes) {
		/* By the device, so that what is written has been its own. */
		run(device, SIO_ACCEL_FILL, (uint64_t[6]){d->data_at, bytes, 0x5a17c0de});
		report("write", info.name, transfer(device, d, SMARTIO_NVME_WRITE));
		run(device, SIO_ACCEL_FILL, (uint64_t[6]){d->data_at, bytes, 0});
	}
	ns = transfer(device, d, SMARTIO_NVME_READ);
	sum = run(device, SIO_ACCEL_CHECKSUM, (uint64_t[6]){d->data_at, bytes});
	if (sum != expected(d)) {
		fprintf(stderr, "what the kernel read is not what lies on the drive\n");
		exit(1);
	}
	report("read", info.name, ns);
}

static const char usage[] =
	"usage: gpu-nvme [--commands N] [--bytes B] [--first BLOCK] [--write] A DRIVE\n"
	"\n"
	"GPU A (a number; cpu: a processor of this host) reads B bytes of DRIVE by each of N commands,\n"
	"of a queue pair that a kernel drives by itself; what it read is compared with what the driver\n"
	"reads. A manager of the drive must be at work (smartio-nvme manager).\n"
	"\n"
	"--commands N   1024 if left out\n"
	"--bytes B      of a command: a power of 2 from 512 to 8192, 4096 if left out\n"
	"--first BLOCK  0 if left out\n"
	"--write        write first: WHAT LIES THERE IS LOST\n";

static int wrong_usage(void)
{
	fputs(usage, stderr);
	return 2;
}

static void check_sizes(void)
{
	if (block >= 512 && block <= 2 * PAGE && (block & (block - 1)) == 0 && commands > 0 &&
	    commands <= MOST_BYTES / block)
		return;
	fprintf(stderr,
		"%llu commands of %llu bytes: a power of 2 from 512 to 8192, and %u bytes in "
		"all at most, are right\n",
		(unsigned long long)commands, (unsigned long long)block, MOST_BYTES);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"commands", required_argument, NULL, 'n'}, {"bytes", required_argument, NULL, 'b'},
		{"first", required_argument, NULL, 'f'},    {"write", no_argument, NULL, 'w'},
		{"help", no_argument, NULL, 'h'},	    {NULL, 0, NULL, 0}};
	struct drive d = {0};
	int device;

	for (int o; (o = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
		if (o == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (o == 'w')
			writes = true;
		else if (o == '?')
			return wrong_usage();
		else
			*(o == 'n'   ? &commands
			  : o == 'b' ? &block
				     : &first) = number(optarg, UINT64_MAX >> 1);
	}
	if (argc - optind != 2)
		return wrong_usage();
	check_sizes();
	device = device_of(argv[optind]);
	open_drive(device, argv[optind + 1], &d);
	work(device, &d);
	smartio_nvme_queue_close(d.given);
	smartio_nvme_queue_close(d.plain);
	must_nvme(smartio_nvme_buffer_free(d.data), "data");
	smartio_nvme_close(d.nvme);
	return 0;
}
