/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of bytes plays a hostile host to the NVMe model: registers, doorbells, queue entries,
 * lists, DMA that fails. For libFuzzer (built with clang), or, with FUZZ_REPLAY, over the files and
 * folders of a corpus named on the command line.
 */
#include "rig.h"

#include <dirent.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUES 4u
#define STEPS 8u

struct input {
	const uint8_t *at;
	size_t left;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the input has not got is zero. */
static void take(struct input *in, void *to, size_t len)
{
	size_t n = len < in->left ? len : in->left;

	memset(to, 0, len);
	memcpy(to, in->at, n);
	in->at += n;
	in->left -= n;
}

static uint8_t take8(struct input *in)
{
	uint8_t v;

	take(in, &v, sizeof(v));
	return v;
}

static uint32_t take32(struct input *in)
{
	uint32_t v;

	take(in, &v, sizeof(v));
	return le32toh(v);
}

static void command(struct rig *r, struct input *in, unsigned qid)
{
	struct emu_nvme_sqe sqe;

	take(in, &sqe, sizeof(sqe));
	/* Addresses near the memory are likelier to mean something. */
	sqe.prp1 = htole64(le64toh(sqe.prp1) + RIG_BASE);
	sqe.prp2 = htole64(le64toh(sqe.prp2) + RIG_BASE);
	if (r->q[qid].sq_size) {
		rig_put(r, qid, sqe);
		rig_ring(r, qid);
	}
}

static void create_pair(struct rig *r, unsigned qid, uint32_t entries)
{
	/* The test's memory is never given back: a pair has its queues once. */
	if (!r->q[0].sq_size || r->q[qid].sq_size)
		return;
	rig_put(r, 0, rig_create_cq(r, qid, entries));
	rig_put(r, 0, rig_create_sq(r, qid, entries, qid));
	rig_ring(r, 0);
}

static void act(struct rig *r, struct input *in)
{
	uint8_t op = take8(in), arg = take8(in);
	uint64_t word;

	switch (op % 11) {
	case 0:
		if (!r->q[0].sq_size)
			rig_configure(r, 2 + arg % 15, 2 + arg / 16);
		break;
	case 1:
		command(r, in, 0);
		break;
	case 2:
		command(r, in, 1 + arg % (QUEUES - 1));
		break;
	case 3:
		r->doorbells[take32(in) % 1024] = arg % 2 ? take32(in) : arg / 2;
		break;
	case 4:
		rig_set_reg(r, take32(in) % 1024 * 4, take32(in));
		break;
	case 5:
		r->fail_read = r->n_reads + 1 + arg;
		break;
	case 6:
		r->fail_write = r->n_writes + 1 + arg;
		break;
	case 7:
		create_pair(r, 1 + arg % (QUEUES - 1), 2 + arg / 4);
		break;
	case 8:
		emu_nvme_model.reset(r->model, arg % 4 == 0);
		break;
	case 9:
		take(in, &word, sizeof(word));
		word = htole64(RIG_BASE + le64toh(word));
		memcpy(r->mem + take32(in) % (RIG_SIZE / 8) * 8, &word, sizeof(word));
		break;
	case 10:
		emu_nvme_model.view_changed(r->model, 0);
		break;
	}
	for (unsigned i = 0; i < STEPS; i++)
		emu_nvme_model.step(r->model, 1 + arg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct rig *r = rig_new(NULL);
	struct emu_nvme_cqe cqe;

	while (in.left > 0) {
		act(r, &in);
		for (unsigned qid = 0; qid < QUEUES; qid++)
			while (r->q[qid].cq_size && rig_take(r, qid, &cqe, true))
				;
	}
	/* Whatever happened, a reset brings back a drive that works. */
	r->fail_read = r->fail_write = 0;
	r->next_page = 0;
	emu_nvme_model.reset(r->model, false);
	rig_enable(r, 4, 4);
	rig_pair(r, 1, 4);
	if (rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 8, rig_alloc(r, 4096), 0), NULL))
		abort();
	rig_free(r);
	return 0;
}
