/* SPDX-License-Identifier: BSD-2-Clause */
/* The device of the bare loop: looks at doorbells, copies, completes. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "bare.h"
#include "worker.h"

struct bare_shared *bare_map(const char *fd_text, const char *clients_text, uint32_t *ret_clients)
{
	uint32_t clients = (uint32_t)strtoul(clients_text, NULL, 10);
	size_t size = sizeof(struct bare_shared) + clients * sizeof(struct bare_client);
	int fd = atoi(fd_text);
	struct stat st;
	void *at;

	if (clients < 1 || clients > 1024)
		bench_fail("%s clients: 1 to 1024 is right", clients_text);
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size < size)
		bench_fail("descriptor %s is not memory of %zu bytes", fd_text, size);
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		bench_fail("the shared memory cannot be mapped");
	*ret_clients = clients;
	return at;
}

/* What the device keeps of a client. */
struct lane {
	struct bare_client *c;
	uint32_t done; /* free-running, of commands and completions */
};

static inline unsigned serve(struct lane *l, const uint8_t *disk)
{
	struct bare_client *c = l->c;
	uint32_t n = __atomic_load_n(&c->doorbell, __ATOMIC_ACQUIRE) - l->done;

	if (n == 0)
		return 0;
	if (n > BARE_BURST)
		n = BARE_BURST;
	for (uint32_t i = 0; i < n; i++, l->done++) {
		const struct bare_command *cmd = &c->sq[l->done % BARE_ENTRIES];
		struct bare_completion *done = &c->cq[l->done % BARE_ENTRIES];
		uint64_t phase = (uint64_t)(~l->done / BARE_ENTRIES & 1) << 63;

		memcpy(c->data + cmd->offset, disk + cmd->place, cmd->length);
		done->result = 0;
		__atomic_store_n(&done->slot_and_phase, cmd->opcode_and_slot >> 16 | phase,
				 __ATOMIC_RELEASE);
	}
	return n;
}

static void run(struct bare_shared *s, struct lane *lane, uint32_t clients, const uint8_t *disk)
{
	uint32_t looks = s->device_looks;

	for (uint32_t empty = 0;;) {
		unsigned work = 0;

		for (uint32_t i = 0; i < clients; i++)
			work += serve(&lane[i], disk);
		if (work) {
			empty = 0;
			continue;
		}
		if (++empty < looks)
			continue;
		/* All clients have taken what they asked for before stop is set. */
		if (__atomic_load_n(&s->stop, __ATOMIC_RELAXED))
			return;
		sched_yield();
	}
}

/* Of huge pages where the kernel has them: reads at random miss the TLB else, a fifth of the time.
 */
static uint64_t *new_disk(void)
{
	void *disk;

	if (posix_memalign(&disk, BARE_HUGE_PAGE, BARE_DISK))
		bench_fail("no memory for a disk of %u bytes", BARE_DISK);
	madvise(disk, BARE_DISK, MADV_HUGEPAGE);
	return disk;
}

int bench_role_bare_device(int argc, char **argv)
{
	struct bench_command command;
	struct bare_shared *s;
	struct lane *lane;
	uint32_t clients;
	uint64_t *disk;

	if (argc != 2)
		bench_fail("FD CLIENTS is right");
	s = bare_map(argv[0], argv[1], &clients);
	lane = calloc(clients, sizeof(*lane));
	disk = new_disk();
	if (!lane)
		bench_fail("no memory for %u clients", clients);
	/* Pages that nobody wrote are all the same one, and in the cache. */
	for (size_t i = 0; i < BARE_DISK / 8; i++)
		disk[i] = i * 0x9e3779b97f4a7c15u;
	for (uint32_t i = 0; i < clients; i++)
		lane[i].c = &s->client[i];
	bench_ready();
	while (bench_next(&command)) {
		struct bench_usage before = bench_usage();

		bench_expect(&command, "serve", 1);
		if (command.arg[0] < 1 || command.arg[0] > clients)
			bench_fail("serve: 1 to %u clients is right", clients);
		run(s, lane, (uint32_t)command.arg[0], (const uint8_t *)disk);
		printf("{\"role\":\"bare-device\"");
		bench_print_usage(before);
		bench_end_answer();
	}
	free(lane);
	free(disk);
	return 0;
}
