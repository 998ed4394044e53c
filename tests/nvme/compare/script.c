/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The steps of sequences. Whatever a drive may do right or wrong comes out as a line of text; only
 * a wrong file ends the program. sequences.txt says what each step is.
 */
#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "ring.h"
#include "script.h"
#include "smartio/io.h"

#define TURNS 200000u	  /* until a completion must have come */
#define SILENT_TURNS 300u /* in which one that will not come has not */

static const char *sequence;
static unsigned step_number;

__attribute__((format(printf, 1, 2))) static bool say(const char *fmt, ...)
{
	va_list ap;

	printf("%s %u ", sequence, step_number);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	return true;
}

/* More (bit 14 of the status) is not compared: whether it is set is up to the controller. */
static bool show(const uint32_t cqe[4], int cid)
{
	uint32_t status = cqe[3] >> 17;
	char which[32] = "";

	if (cid >= 0 && (cqe[3] & 0xffff) != (uint32_t)cid)
		snprintf(which, sizeof(which), " cid=%#x", cqe[3] & 0xffff);
	return say("status=%x/%02x dnr=%u result=%#x sqid=%u sqhd=%u phase=%u%s", status >> 8 & 7,
		   status & 0xff, status >> 14 & 1, cqe[0], cqe[2] >> 16, cqe[2] & 0xffff,
		   cqe[3] >> 16 & 1, which);
}

static bool fatal(void)
{
	uint32_t csts = bench.drive->read(bench.drive, 0x1c);

	return say("no completion, ready=%u fatal=%u", csts & 1, csts >> 1 & 1);
}

static bool command(const struct ring *r, const uint32_t sqe[16])
{
	uint32_t cqe[4];

	ring_put(r, sqe);
	ring_bell(r);
	if (!ring_take(r, TURNS, cqe))
		return fatal();
	return show(cqe, (int)(le32toh(sqe[0]) >> 16));
}

/* ---- steps ---- */

static bool number(const struct step *s, unsigned word, uint64_t most, uint64_t *ret)
{
	return s->n > word && step_value(s->word[word], ret) && *ret <= most;
}

/* admin OP KEY=VALUE... */
static bool do_admin(const struct step *s)
{
	uint32_t sqe[16];
	struct ring r;

	return ring_entry(s, 1, 0, sqe) && ring_of(0, &r) && command(&r, sqe);
}

/* io QUEUE OP KEY=VALUE... */
static bool do_io(const struct step *s)
{
	uint32_t sqe[16];
	struct ring r;
	uint64_t id;

	return number(s, 1, DRIVE_PAIRS, &id) && ring_of((unsigned)id, &r) &&
	       ring_entry(s, 2, 1, sqe) && command(&r, sqe);
}

/* put QUEUE OP KEY=VALUE... */
static bool do_put(const struct step *s)
{
	uint32_t sqe[16];
	struct ring r;
	uint64_t id;

	if (!number(s, 1, DRIVE_PAIRS, &id) || !ring_of((unsigned)id, &r) ||
	    !ring_entry(s, 2, id ? 1 : 0, sqe))
		return false;
	ring_put(&r, sqe);
	return true;
}

static bool do_ring(const struct step *s)
{
	struct ring r;
	uint64_t id;

	if (!number(s, 1, DRIVE_PAIRS, &id) || !ring_of((unsigned)id, &r))
		return false;
	ring_bell(&r);
	return true;
}

static bool do_take(const struct step *s)
{
	uint32_t cqe[4];
	struct ring r;
	uint64_t id;

	if (!number(s, 1, DRIVE_PAIRS, &id) || !ring_of((unsigned)id, &r))
		return false;
	return ring_take(&r, TURNS, cqe) ? show(cqe, -1) : fatal();
}

static bool do_none(const struct step *s)
{
	uint32_t cqe[4];
	struct ring r;
	uint64_t id;

	if (!number(s, 1, DRIVE_PAIRS, &id) || !ring_of((unsigned)id, &r))
		return false;
	return ring_take(&r, SILENT_TURNS, cqe) ? show(cqe, -1) : say("nothing");
}

/* cq QUEUE ENTRIES [cdw11=...]; sq QUEUE ENTRIES [cdw11=...]: memory of our own, raw commands */
static bool do_make(const struct step *s, bool cq)
{
	uint32_t sqe[16] = {0};
	struct bench_queue *q;
	uint64_t id, entries, cdw11, prp1;
	struct ring r;

	if (!number(s, 1, DRIVE_PAIRS + 1, &id) || !number(s, 2, 65536, &entries) || id == 0 ||
	    entries == 0)
		return false;
	q = &bench.queue[id];
	prp1 = bench_alloc(entries * (cq ? 16 : 64));
	if (!step_key(s, "cdw11", cq ? 1 : id << 16 | 1, &cdw11) || !ring_of(0, &r))
		return false;
	if (cq) {
		q->cq = prp1;
		q->cq_entries = (uint32_t)entries;
		q->head = 0;
		q->phase = 1;
	} else {
		q->sq = prp1;
		q->sq_entries = (uint32_t)entries;
		q->tail = 0;
	}
	sqe[0] = htole32((cq ? 5u : 1u) | (uint32_t)++bench.cid << 16);
	sqe[6] = htole32((uint32_t)prp1);
	sqe[7] = htole32((uint32_t)(prp1 >> 32));
	sqe[10] = htole32((uint32_t)(entries - 1) << 16 | (uint32_t)id);
	sqe[11] = htole32((uint32_t)cdw11);
	return command(&r, sqe);
}

/* pair QUEUE ENTRIES, unpair QUEUE: by the driver */
static bool do_pair(const struct step *s)
{
	uint32_t status[2] = {0xffff, 0xffff};
	struct bench_queue *q;
	uint64_t id, entries;
	int rc;

	if (!number(s, 1, DRIVE_PAIRS + 1, &id) || !number(s, 2, 65536, &entries) || id == 0)
		return false;
	q = &bench.queue[id];
	*q = (struct bench_queue){.cq = bench_alloc(entries * 16),
				  .sq = bench_alloc(entries * 64),
				  .sq_entries = (uint32_t)entries,
				  .cq_entries = (uint32_t)entries,
				  .phase = 1};
	rc = sio_nvme_ctrl_create_cq(&bench.ctrl, (uint32_t)id, q->cq, q->cq_entries, 0,
				     &status[0]);
	if (rc == 0)
		rc = sio_nvme_ctrl_create_sq(&bench.ctrl, (uint32_t)id, q->sq, q->sq_entries,
					     (uint32_t)id, &status[1]);
	return rc ? say("error %d", rc) : say("cq=%x sq=%x", status[0], status[1]);
}

static bool do_unpair(const struct step *s)
{
	uint64_t id;
	int rc;

	if (!number(s, 1, DRIVE_PAIRS + 1, &id))
		return false;
	rc = sio_nvme_ctrl_delete_sq(&bench.ctrl, (uint32_t)id);
	if (rc == 0)
		rc = sio_nvme_ctrl_delete_cq(&bench.ctrl, (uint32_t)id);
	return say("driver=%d", rc);
}

/* queues: what the driver is told of their number */
static bool do_queues(const struct step *s)
{
	uint32_t pairs = 0;
	int rc = sio_nvme_ctrl_queues(&bench.ctrl, &pairs);

	(void)s;
	return say("driver=%d pairs=%u", rc, pairs);
}

/* identify CNS NSID: by the driver, field by field */
static bool do_identify(const struct step *s)
{
	uint64_t cns, nsid;
	uint8_t data[4096];
	uint32_t status = 0;
	int rc;

	if (!number(s, 1, 0xff, &cns) || !number(s, 2, UINT32_MAX, &nsid))
		return false;
	rc = sio_nvme_ctrl_identify(&bench.ctrl, (uint8_t)cns, (uint32_t)nsid, data, &status);
	if (rc || status)
		return say("driver=%d status=%x", rc, status);
	return fields_show(sequence, step_number, (unsigned)cns, data);
}

/* fill PAGE BYTE LEN */
static bool do_fill(const struct step *s)
{
	uint64_t at, byte, len;

	if (!number(s, 1, UINT64_MAX, &at) || !number(s, 2, 0xff, &byte) ||
	    !number(s, 3, PAGES * PAGE, &len) || !bench_at(at))
		return false;
	memset(bench_at(at), (int)byte, len);
	return true;
}

/* count PAGE LEN: bytes that depend on their place */
static bool do_count(const struct step *s)
{
	uint64_t at, len;

	if (!number(s, 1, UINT64_MAX, &at) || !number(s, 2, PAGES * PAGE, &len) || !bench_at(at))
		return false;
	for (uint64_t i = 0; i < len; i++)
		bench_at(at)[i] = (uint8_t)(i * 2654435761u >> 13);
	return true;
}

/* word ADDRESS VALUE: 64 bits */
static bool do_word(const struct step *s)
{
	uint64_t at, value;

	if (!number(s, 1, UINT64_MAX, &at) || !number(s, 2, UINT64_MAX, &value) || !bench_at(at))
		return false;
	value = htole64(value);
	memcpy(bench_at(at), &value, sizeof(value));
	return true;
}

/* list ADDRESS FIRST COUNT: PRP entries for pages one after the other */
static bool do_list(const struct step *s)
{
	uint64_t at, first, n;

	if (!number(s, 1, UINT64_MAX, &at) || !number(s, 2, UINT64_MAX, &first) ||
	    !number(s, 3, 512, &n) || !bench_at(at))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t entry = htole64(first + i * PAGE);

		memcpy(bench_at(at + 8 * i), &entry, sizeof(entry));
	}
	return true;
}

/* show ADDRESS LEN */
static bool do_show(const struct step *s)
{
	uint64_t at, len;
	char text[129];

	if (!number(s, 1, UINT64_MAX, &at) || !number(s, 2, 64, &len) || !bench_at(at))
		return false;
	for (uint64_t i = 0; i < len; i++)
		snprintf(text + 2 * i, 3, "%02x", bench_at(at)[i]);
	return say("%s", text);
}

/* sum ADDRESS LEN: bytes that are not 0, and a checksum of all */
static bool do_sum(const struct step *s)
{
	uint64_t at, len, n = 0, h = 0xcbf29ce484222325u;

	if (!number(s, 1, UINT64_MAX, &at) || !number(s, 2, PAGES * PAGE, &len) || !bench_at(at))
		return false;
	for (uint64_t i = 0; i < len; i++) {
		n += bench_at(at)[i] != 0;
		h = (h ^ bench_at(at)[i]) * 0x100000001b3u;
	}
	return say("%llu of %llu bytes, %016llx", (unsigned long long)n, (unsigned long long)len,
		   (unsigned long long)h);
}

/* doorbell WORD VALUE */
static bool do_doorbell(const struct step *s)
{
	uint64_t word, value;

	if (!number(s, 1, 1023, &word) || !number(s, 2, UINT32_MAX, &value))
		return false;
	/* What was told before is done before. */
	for (unsigned i = 0; i < SILENT_TURNS; i++)
		bench.drive->turn(bench.drive);
	ring_doorbell((uint32_t)word, (uint32_t)value);
	for (unsigned i = 0; i < SILENT_TURNS; i++)
		bench.drive->turn(bench.drive);
	return true;
}

/* reg OFFSET; set OFFSET VALUE */
static bool do_reg(const struct step *s)
{
	uint64_t offset;

	if (!number(s, 1, 0xffc, &offset))
		return false;
	return say("%#010x", bench.drive->read(bench.drive, (uint32_t)offset));
}

static bool do_set(const struct step *s)
{
	uint64_t offset, value;

	if (!number(s, 1, 0xffc, &offset) || !number(s, 2, UINT32_MAX, &value))
		return false;
	bench.drive->write(bench.drive, (uint32_t)offset, (uint32_t)value);
	return true;
}

/* functions N: virtual ones are enabled */
static bool do_functions(const struct step *s)
{
	uint64_t n;

	if (!bench.drive->functions || !number(s, 1, DRIVE_FUNCTIONS, &n))
		return false;
	bench.drive->functions(bench.drive, (unsigned)n);
	return true;
}

/* off, on: by the driver */
static bool do_off(const struct step *s)
{
	(void)s;
	return say("driver=%d", sio_nvme_ctrl_disable(&bench.ctrl));
}

static bool do_on(const struct step *s)
{
	(void)s;
	return say("driver=%d", sio_nvme_ctrl_enable(&bench.ctrl, ADMIN_ENTRIES));
}

/* shutdown: by the driver, and what the status says then */
static bool do_shutdown(const struct step *s)
{
	(void)s;
	sio_nvme_ctrl_shutdown(&bench.ctrl);
	return say("csts=%#x", bench.drive->read(bench.drive, 0x1c) & 0x1f);
}

/* enable CC AQA: with the driver's admin queue memory, whatever CC says; ready, or fatal */
static bool do_enable(const struct step *s)
{
	uint64_t cc, aqa, asq;

	if (!number(s, 1, UINT32_MAX, &cc) || !number(s, 2, UINT32_MAX, &aqa) ||
	    !step_key(s, "asq", bench.ctrl.sq.ioaddr, &asq))
		return false;
	bench.drive->write(bench.drive, 0x24, (uint32_t)aqa);
	bench.drive->write64(bench.drive, 0x28, asq);
	bench.drive->write64(bench.drive, 0x30, bench.ctrl.cq.ioaddr);
	bench.drive->write(bench.drive, 0x14, (uint32_t)cc);
	for (unsigned i = 0; i < SILENT_TURNS; i++)
		bench.drive->turn(bench.drive);
	cc = bench.drive->read(bench.drive, 0x1c);
	return say("ready=%u fatal=%u", (unsigned)cc & 1, (unsigned)cc >> 1 & 1);
}

/* irq: vectors that were raised since the last look */
static bool do_irq(const struct step *s)
{
	uint32_t raised = 0;

	(void)s;
	for (unsigned i = 0; i < SILENT_TURNS; i++)
		bench.drive->turn(bench.drive);
	raised = bench.drive->interrupts(bench.drive);
	return say("vectors=%#x", raised);
}

static bool do_cq(const struct step *s)
{
	return do_make(s, true);
}

static bool do_sq(const struct step *s)
{
	return do_make(s, false);
}

static const struct {
	const char *name;
	bool (*run)(const struct step *s);
} steps[] = {
	{"admin", do_admin},
	{"io", do_io},
	{"put", do_put},
	{"ring", do_ring},
	{"take", do_take},
	{"none", do_none},
	{"cq", do_cq},
	{"sq", do_sq},
	{"pair", do_pair},
	{"unpair", do_unpair},
	{"queues", do_queues},
	{"identify", do_identify},
	{"fill", do_fill},
	{"count", do_count},
	{"word", do_word},
	{"show", do_show},
	{"sum", do_sum},
	{"doorbell", do_doorbell},
	{"reg", do_reg},
	{"set", do_set},
	{"off", do_off},
	{"on", do_on},
	{"shutdown", do_shutdown},
	{"enable", do_enable},
	{"irq", do_irq},
	{"list", do_list},
	{"functions", do_functions},
};

bool step_run(const char *name, unsigned n, const char *text)
{
	struct step s;

	sequence = name;
	step_number = n;
	if (!step_parse(&s, text))
		return false;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (!strcmp(steps[i].name, s.word[0]))
			return steps[i].run(&s);
	return false;
}
