// SPDX-License-Identifier: BSD-2-Clause
/*
 * A plugin of QEMU that counts the instructions which a machine executes for each read of a
 * disk, and in each call of chosen functions, with all that these call. bench.py says where
 * the functions lie, because it learns that from the machine; the machine says when, by
 * instructions that do nothing (mark.h).
 *
 * The machine uses one processor: of several in one thread QEMU 11.1 does not say which
 * executes, but which was the first to execute the same.
 */
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mark.h"
#include "qemu_plugin.h"

enum { MAX_PLACES = 64, MAX_RANGES = 1024 };

/*
 * A kind of call begins where its function does, and ends where its callers go on. Two have a
 * meaning: the reader waits, and a device's interrupt is served.
 */
enum { WAIT, INTERRUPT, N_KINDS = 16, BEAT = N_KINDS };

/* Instructions that QEMU translates as one, and executes from the first on. */
struct run {
	uint64_t vaddr, instructions;
	unsigned since;	       /* the list of places by which the others were decided */
	uint32_t begins, ends; /* kinds, a bit for each */
};

struct samples {
	uint64_t *value;
	size_t n, room;
};

static struct {
	uint64_t vaddr;
	unsigned kind;
} places[MAX_PLACES];
static struct {
	uint64_t first, behind;
	unsigned kind;
} ranges[MAX_RANGES];
static unsigned n_places, n_ranges, since = 1;

static uint64_t executed;
static uint32_t inside;		 /* kinds of calls, a bit for each */
static uint64_t before[N_KINDS]; /* what had been executed when the call began */

/* A read: all until the next one; its own: without what is no interrupt while the reader waits. */
static struct {
	bool begun;
	bool waited; /* else its interrupt was faster than the reader: another path */
	uint64_t all, own;
} read_now;

static struct samples reads, own_reads, calls[N_KINDS];
static const char *control_path, *out_path;
static void *runs; /* of tsearch() */

/* Nobody could go on without memory, and QEMU has no word for a plugin that fails. */
static void *or_abort(void *p)
{
	if (!p)
		abort();
	return p;
}

static void add(struct samples *s, uint64_t value)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->value = or_abort(reallocarray(s->value, s->room, sizeof(*s->value)));
	}
	s->value[s->n++] = value;
}

static void decide(struct run *r)
{
	r->since = since;
	r->begins = r->ends = 0;
	for (unsigned i = 0; i < n_ranges; i++)
		if (r->vaddr >= ranges[i].first && r->vaddr < ranges[i].behind)
			r->ends |= 1U << ranges[i].kind;
	for (unsigned i = 0; i < n_places; i++)
		if (r->vaddr == places[i].vaddr)
			r->begins |= 1U << places[i].kind;
}

static void end_calls(uint32_t mask)
{
	for (unsigned i = 0; i < N_KINDS; i++)
		if (mask & 1U << i)
			add(&calls[i], executed - before[i]);
	inside &= ~mask;
}

static void begin_calls(uint32_t mask)
{
	for (unsigned i = 0; i < N_KINDS; i++)
		if (mask & 1U << i)
			before[i] = executed;
	inside |= mask;
}

static void next_read(void)
{
	if (read_now.begun && read_now.waited) {
		add(&reads, read_now.all);
		add(&own_reads, read_now.own);
	}
	memset(&read_now, 0, sizeof(read_now));
	read_now.begun = true;
}

static void execute(unsigned cpu, void *data)
{
	struct run *r = data;

	(void)cpu;
	if (r->since != since)
		decide(r);
	if (r->ends & inside)
		end_calls(r->ends & inside);
	if (r->begins & 1U << BEAT)
		next_read();
	if (r->begins & ~inside & ~(1U << BEAT))
		begin_calls(r->begins & ~inside & ~(1U << BEAT));
	executed += r->instructions;
	read_now.all += r->instructions;
	if (inside & 1U << WAIT)
		read_now.waited = true;
	if (inside & 1U << INTERRUPT || !(inside & 1U << WAIT))
		read_now.own += r->instructions;
}

static void forget(void)
{
	reads.n = own_reads.n = 0;
	for (unsigned i = 0; i < N_KINDS; i++)
		calls[i].n = 0;
	inside = 0;
	read_now.begun = false;
}

/* «read ADDRESS», «begin KIND ADDRESS», «end KIND FIRST BEHIND». Return: understood. */
static bool read_line(const char *line)
{
	uint64_t first, behind;
	unsigned kind = BEAT;

	if (sscanf(line, "end %u %" SCNx64 " %" SCNx64, &kind, &first, &behind) == 3) {
		if (kind >= N_KINDS || n_ranges == MAX_RANGES)
			return false;
		ranges[n_ranges].first = first;
		ranges[n_ranges].behind = behind;
		ranges[n_ranges++].kind = kind;
		return true;
	}
	if (sscanf(line, "read %" SCNx64, &first) != 1 &&
	    (sscanf(line, "begin %u %" SCNx64, &kind, &first) != 2 || kind >= N_KINDS))
		return false;
	if (n_places == MAX_PLACES)
		return false;
	places[n_places].vaddr = first;
	places[n_places++].kind = kind;
	return true;
}

static void read_control(void)
{
	FILE *f = fopen(control_path, "r");
	char line[128];

	n_places = n_ranges = 0;
	since++;
	forget();
	if (!f) {
		fprintf(stderr, "insns: %s: %s\n", control_path, strerror(errno));
		return;
	}
	while (fgets(line, sizeof(line), f))
		if (!read_line(line))
			fprintf(stderr, "insns: %s: not understood, or too much: %s", control_path,
				line);
	fclose(f);
}

static void write_samples(FILE *f, const char *name, const struct samples *s)
{
	fprintf(f, "%s", name);
	for (size_t i = 0; i < s->n; i++)
		fprintf(f, " %" PRIu64, s->value[i]);
	fputc('\n', f);
}

static void write_counts(void)
{
	FILE *f = fopen(out_path, "w");
	char name[16];

	if (!f) {
		fprintf(stderr, "insns: %s: %s\n", out_path, strerror(errno));
		return;
	}
	write_samples(f, "all", &reads);
	write_samples(f, "own", &own_reads);
	for (unsigned i = 0; i < N_KINDS; i++) {
		snprintf(name, sizeof(name), "%u", i);
		write_samples(f, name, &calls[i]);
	}
	fclose(f);
	forget();
}

static void marked(unsigned cpu, void *data)
{
	(void)cpu;
	if ((uintptr_t)data == MARK_BEGIN)
		read_control();
	else
		write_counts();
}

static int compare(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return (x->instructions > y->instructions) - (x->instructions < y->instructions);
}

/* The same for every translation of the same instructions: QEMU translates them again and again. */
static struct run *find_run(uint64_t vaddr, uint64_t instructions)
{
	struct run wanted = {.vaddr = vaddr, .instructions = instructions};
	struct run **found = tfind(&wanted, &runs, compare);
	struct run *r;

	if (found)
		return *found;
	r = or_abort(malloc(sizeof(*r)));
	*r = wanted;
	or_abort(tsearch(r, &runs, compare));
	return r;
}

static void translate(struct qemu_plugin_tb *tb, void *data)
{
	size_t n = qemu_plugin_tb_n_insns(tb);

	(void)data;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, execute, QEMU_PLUGIN_CB_NO_REGS,
					     find_run(qemu_plugin_tb_vaddr(tb), n));
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t bytes[MARK_SIZE];
		uint32_t number;

		if (qemu_plugin_insn_data(insn, bytes, sizeof(bytes)) != sizeof(bytes) ||
		    memcmp(bytes, (uint8_t[]){MARK_BYTES}, 3) != 0)
			continue;
		memcpy(&number, bytes + 3, sizeof(number));
		if (number == MARK_BEGIN || number == MARK_END)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, marked, QEMU_PLUGIN_CB_NO_REGS,
							       (void *)(uintptr_t)number);
	}
}

/* What QEMU looks for in a plugin. */
__attribute__((visibility("default"))) int qemu_plugin_version = QEMU_PLUGIN_API;
__attribute__((visibility("default"))) int
qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv);

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "control=", 8) == 0)
			control_path = or_abort(strdup(argv[i] + 8));
		else if (strncmp(argv[i], "out=", 4) == 0)
			out_path = or_abort(strdup(argv[i] + 4));
	}
	if (!control_path || !out_path) {
		fprintf(stderr, "insns: control=FILE and out=FILE are wanted\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate, NULL);
	return 0;
}
