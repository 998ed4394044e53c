/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of the bare loop. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "bare.h"
#include "loop.h"

struct bare {
	struct bare_client *c;
	uint32_t tail, rung, head; /* free-running */
	uint32_t length, empty, looks;
	const struct bare_shared *s;
	struct bench_loop loop;
};

static inline void submit(void *ctx, uint32_t slot, uint64_t place)
{
	struct bare *b = ctx;

	b->c->sq[b->tail++ % BARE_ENTRIES] = (struct bare_command){
		.opcode_and_slot = slot << 16 | 2,
		.namespace = 1,
		.offset = (uint64_t)slot * b->length,
		.place = place * b->length,
		.length = b->length,
	};
}

static inline int poll(void *ctx, uint32_t *slots, unsigned max)
{
	struct bare *b = ctx;
	unsigned n;

	if (b->tail != b->rung) {
		__atomic_store_n(&b->c->doorbell, b->tail, __ATOMIC_RELEASE);
		b->rung = b->tail;
	}
	for (n = 0; n < max; n++, b->head++) {
		const struct bare_completion *done = &b->c->cq[b->head % BARE_ENTRIES];
		uint64_t word = __atomic_load_n(&done->slot_and_phase, __ATOMIC_ACQUIRE);

		if (word >> 63 != (~b->head / BARE_ENTRIES & 1))
			break;
		slots[n] = (uint32_t)word;
	}
	if (n) {
		b->empty = 0;
	} else if (++b->empty >= b->looks) {
		sched_yield();
	}
	return (int)n;
}

static const struct bench_loop_ops ops = {submit, poll};

static void run(struct bare *b, const struct bench_command *command)
{
	struct bench_usage before = bench_usage();

	bench_expect(command, "run", 5);
	if (command->arg[0] < 1 || command->arg[0] >= BARE_ENTRIES || command->arg[1] % BARE_PAGE ||
	    !command->arg[1] || command->arg[0] * command->arg[1] > BARE_DATA)
		bench_fail("run: depth 1 to %u, size of pages, in all %u bytes are right",
			   BARE_ENTRIES - 1, BARE_DATA);
	b->length = (uint32_t)command->arg[1];
	b->looks = b->s->client_looks;
	bench_loop_init(&b->loop, (uint32_t)command->arg[0], BARE_DISK / b->length);
	b->loop.from = command->arg[2];
	b->loop.until = command->arg[3];
	b->loop.stop = command->arg[4];
	bench_loop_run(&b->loop, b, ops);
	printf("{\"role\":\"bare-client\",");
	bench_print_histogram(&b->loop.h);
	bench_print_usage(before);
	bench_end_answer();
}

int bench_role_bare_client(int argc, char **argv)
{
	struct bench_command command;
	struct bare_shared *s;
	uint32_t clients, index;
	struct bare *b;

	if (argc != 3)
		bench_fail("FD CLIENTS INDEX is right");
	s = bare_map(argv[0], argv[1], &clients);
	index = (uint32_t)strtoul(argv[2], NULL, 10);
	b = calloc(1, sizeof(*b));
	if (!b || index >= clients)
		bench_fail("client %s of %u: no such place, or no memory", argv[2], clients);
	b->s = s;
	b->c = &s->client[index];
	bench_ready();
	while (bench_next(&command))
		run(b, &command);
	free(b);
	return 0;
}
