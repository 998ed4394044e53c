/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * States of limited resources: tables of adapters, queue pairs, memory, descriptors, locked memory.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor_facts.h"
#include "base/output.h"

#define CAP_IPC_LOCK_BIT 14
#define SPARE_FILES 16 /* descriptors that a new client and its segment need, and some more */
#define TIGHT 16       /* used up but for a sixteenth */

/* ---- who uses most ---- */

#define MAX_HOLDERS 64

/* How much each program uses: of the first MAX_HOLDERS ones, which is enough to name one. */
struct holders {
	unsigned n;
	struct {
		uint32_t pid, node;
		uint64_t amount;
	} by[MAX_HOLDERS];
};

static void add_holder(struct holders *h, uint32_t pid, uint32_t node, uint64_t amount)
{
	unsigned i = 0;

	while (i < h->n && h->by[i].pid != pid)
		i++;
	if (!pid || !amount || i == MAX_HOLDERS)
		return;
	if (i == h->n)
		h->by[h->n++].amount = 0;
	h->by[i].pid = pid;
	h->by[i].node = node;
	h->by[i].amount += amount;
}

/* How much a row of a list adds for its program; 0: nothing. */
typedef uint64_t amount_fn(const struct sio_wire_row *row, uint32_t device);

static uint64_t mapped_bytes(const struct sio_wire_row *row, uint32_t device)
{
	(void)device;
	return sio_from_le32(row->refs) && sio_from_le64(row->address) ? sio_from_le64(row->bytes)
								       : 0;
}

static uint64_t segment_bytes(const struct sio_wire_row *row, uint32_t device)
{
	(void)device;
	return sio_from_le64(row->bytes);
}

static uint64_t borrow(const struct sio_wire_row *row, uint32_t device)
{
	(void)device;
	return (sio_from_le32(row->flags) & SIO_ROW_QUARANTINED) == 0;
}

static uint64_t queue_holds(const struct sio_wire_row *row, uint32_t device)
{
	return sio_from_le32(row->id) == device ? sio_from_le32(row->refs) : 0;
}

/* The program that uses most, as text, and in @words the command that ends it. */
struct greediest {
	char pid[16], text[SIO_NAME_LEN + 64];
	struct doctor_words words;
};

static void find_greediest(const struct doctor_cluster *c, struct doctor_host *x, uint32_t list,
			   amount_fn *amount, uint32_t device, struct greediest *ret)
{
	struct holders h = {.n = 0};
	struct sio_wire_row *row = NULL;
	unsigned most = 0;
	size_t n = 0;

	*ret = (struct greediest){.words.cluster = c};
	if (tool_client_list(&x->h.client, list, &row, &n, NULL) < 0)
		n = 0;
	for (size_t i = 0; i < n; i++)
		add_holder(&h, sio_from_le32(row[i].pid), sio_from_le32(row[i].node),
			   amount(&row[i], device));
	free(row);
	for (unsigned i = 1; i < h.n; i++)
		most = h.by[i].amount > h.by[most].amount ? i : most;
	if (!h.n)
		return;
	snprintf(ret->pid, sizeof(ret->pid), "%" PRIu32, h.by[most].pid);
	snprintf(ret->text, sizeof(ret->text), "; process %s has most", ret->pid);
	ret->words.one = ret->pid;
	ret->words.mend = "kill {1}";
}

/* ---- tables of adapters ---- */

typedef void adapter_fn(struct doctor *d, const struct doctor_state *s,
			const struct doctor_cluster *c, struct doctor_host *x, const char *name,
			const struct sio_rep_adapter *a, const struct sio_rep_stats *stats);

static void each_adapter(struct doctor *d, const struct doctor_state *s, adapter_fn *fn)
{
	char name[SIO_NAME_LEN + 16];
	struct sio_rep_adapter a;
	struct sio_rep_stats stats;

	DOCTOR_EACH_CLUSTER (d, c)
		DOCTOR_EACH_HOST (c, x)
			for (unsigned i = 0; x->h.up && i < x->h.topo->n_adapters; i++) {
				if (tool_host_adapter(&x->h, i, &a, NULL) < 0 ||
				    sio_from_le32(a.entries_total) == 0 ||
				    tool_host_counters(&x->h, TOOL_COUNTERS_ADAPTER, i, &stats,
						       NULL) < 0)
					continue;
				snprintf(name, sizeof(name), "%s.%u", x->h.topo->name, i);
				fn(d, s, c, x, name, &a, &stats);
			}
}

static void look_at_entries(struct doctor *d, const struct doctor_state *s,
			    const struct doctor_cluster *c, struct doctor_host *x, const char *name,
			    const struct sio_rep_adapter *a, const struct sio_rep_stats *stats)
{
	struct greediest g;

	(void)stats;
	if (sio_from_le32(a->entries_free))
		return;
	find_greediest(c, x, SIO_LIST_CONNECTIONS, mapped_bytes, 0, &g);
	doctor_found(d, s, &g.words, "%s: all %u entries are in use%s", name,
		     sio_from_le32(a->entries_total), g.text);
}

/* If no entry is free, look_at_entries() reports that instead. */
static void look_at_window(struct doctor *d, const struct doctor_state *s,
			   const struct doctor_cluster *c, struct doctor_host *x, const char *name,
			   const struct sio_rep_adapter *a, const struct sio_rep_stats *stats)
{
	uint32_t total = sio_from_le32(a->entries_total), n = sio_from_le32(a->entries_free);
	char largest[TOOL_SIZE_TEXT], all[TOOL_SIZE_TEXT];
	struct greediest g;
	uint64_t run;

	if (n == 0 || !doctor_counter(stats, "lut_longest_run", &run) || run * TIGHT > total)
		return;
	find_greediest(c, x, SIO_LIST_CONNECTIONS, mapped_bytes, 0, &g);
	doctor_found(d, s, &g.words,
		     "%s: the largest window that can still be made is %s, of %s in all (%u of %u "
		     "entries are free)%s",
		     name, tool_size(run * sio_from_le64(a->entry_size), largest),
		     tool_size(sio_from_le64(a->window_size), all), n, total, g.text);
}

static void look_at_requesters(struct doctor *d, const struct doctor_state *s,
			       const struct doctor_cluster *c, struct doctor_host *x,
			       const char *name, const struct sio_rep_adapter *a,
			       const struct sio_rep_stats *stats)
{
	struct greediest g;

	(void)stats;
	if (sio_from_le32(a->requesters_total) == 0 || sio_from_le32(a->requesters_free))
		return;
	find_greediest(c, x, SIO_LIST_BORROWS, borrow, 0, &g);
	doctor_found(d, s, &g.words, "%s: all %u entries are in use%s", name,
		     sio_from_le32(a->requesters_total), g.text);
}

static void find_entries_full(struct doctor *d, const struct doctor_state *s)
{
	each_adapter(d, s, look_at_entries);
}

static void find_windows_full(struct doctor *d, const struct doctor_state *s)
{
	each_adapter(d, s, look_at_window);
}

static void find_requesters_full(struct doctor *d, const struct doctor_state *s)
{
	each_adapter(d, s, look_at_requesters);
}

/* ---- devices ---- */

static void look_at_pairs(struct doctor *d, const struct doctor_state *s,
			  const struct doctor_cluster *c, struct doctor_host *x,
			  const struct sio_topo_device *dev)
{
	struct sio_rep_stats stats;
	struct greediest g;
	uint64_t used, max;

	if (tool_host_counters(&x->h, TOOL_COUNTERS_DEVICE, dev->fdid, &stats, NULL) < 0 ||
	    !doctor_counter(&stats, "queue_pairs", &used) ||
	    !doctor_counter(&stats, "queue_pairs_max", &max) || !max || used < max)
		return;
	find_greediest(c, x, SIO_LIST_DMA_MAPS, queue_holds, dev->fdid, &g);
	doctor_found(d, s, &g.words, "%s: all %" PRIu64 " I/O queue pairs are in use%s", dev->name,
		     max, g.text);
}

/* The machine room counts queue pairs; those of a real drive only its manager knows. */
static void find_queue_pairs_full(struct doctor *d, const struct doctor_state *s)
{
	DOCTOR_EACH_CLUSTER (d, c)
		DOCTOR_EACH_HOST (c, x)
			for (unsigned i = 0; x->h.up && i < x->h.topo->n_devices; i++)
				look_at_pairs(d, s, c, x, &x->h.topo->device[i]);
}

/* ---- memory of hosts ---- */

static void find_ram_full(struct doctor *d, const struct doctor_state *s)
{
	char left[TOOL_SIZE_TEXT], all[TOOL_SIZE_TEXT];
	struct sio_rep_stats stats;
	struct greediest g;
	uint64_t total, n;

	DOCTOR_EACH_CLUSTER (d, c)
		DOCTOR_EACH_HOST (c, x) {
			if (!x->h.up ||
			    tool_host_counters(&x->h, TOOL_COUNTERS_HOST, 0, &stats, NULL) < 0 ||
			    !doctor_counter(&stats, "ram_total", &total) ||
			    !doctor_counter(&stats, "ram_free", &n) || n * TIGHT > total)
				continue;
			find_greediest(c, x, SIO_LIST_SEGMENTS, segment_bytes, 0, &g);
			doctor_found(d, s, &g.words, "%s: %s of %s are free%s", x->h.topo->name,
				     tool_size(n, left), tool_size(total, all), g.text);
		}
}

/* ---- processes ---- */

struct process {
	pid_t pid;
	char name[SIO_NAME_LEN + 32]; /* "smartiod of client1", "a program of client1" */
	const struct doctor_cluster *cluster;
};

typedef void process_fn(struct doctor *d, const struct doctor_state *s, const struct process *p);

static void each_program(struct doctor *d, const struct doctor_state *s, process_fn *fn,
			 const struct doctor_cluster *c, struct doctor_host *x)
{
	struct process p = {.cluster = c};
	struct sio_wire_row *row = NULL;
	size_t n = 0;

	if (tool_client_list(&x->h.client, SIO_LIST_CLIENTS, &row, &n, NULL) < 0)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		if (sio_from_le64(row[i].owner) == 0)
			continue; /* not counted: this command, and keepers */
		p.pid = (pid_t)sio_from_le32(row[i].pid);
		snprintf(p.name, sizeof(p.name), "a program of %s", x->h.topo->name);
		fn(d, s, &p);
	}
	free(row);
}

/* Calls @fn for the machine room, the daemons, and the programs connected to them. */
static void each_process(struct doctor *d, const struct doctor_state *s, process_fn *fn)
{
	DOCTOR_EACH_CLUSTER (d, c) {
		struct process p = {.pid = c->room_pid, .cluster = c};

		snprintf(p.name, sizeof(p.name), "smartio-emu");
		if (p.pid)
			fn(d, s, &p);
		DOCTOR_EACH_HOST (c, x) {
			p.pid = x->pid;
			snprintf(p.name, sizeof(p.name), "smartiod of %s", x->h.topo->name);
			if (x->pid)
				fn(d, s, &p);
			if (x->h.up)
				each_program(d, s, fn, c, x);
		}
	}
}

static void look_at_files(struct doctor *d, const struct doctor_state *s, const struct process *p)
{
	char pid[16], raise[32];
	struct doctor_words w = {.cluster = p->cluster, .one = pid, .two = raise};
	uint64_t limit = 0;
	char **name;
	ssize_t n = doctor_names(&d->source, &name, "/proc/%d/fd", (int)p->pid);

	doctor_names_free(name, n);
	if (n < 0 || !doctor_limit(&d->source, p->pid, "Max open files", &limit))
		return;
	if ((uint64_t)n + SPARE_FILES < limit)
		return;
	snprintf(pid, sizeof(pid), "%d", (int)p->pid);
	snprintf(raise, sizeof(raise), "%" PRIu64, limit < 2048 ? 4096 : 2 * limit);
	doctor_found(d, s, &w, "%s (process %d) has %zd descriptors open, and may have %" PRIu64,
		     p->name, (int)p->pid, n, limit);
}

static void find_files_full(struct doctor *d, const struct doctor_state *s)
{
	each_process(d, s, look_at_files);
}

static uint64_t kilobytes(const struct doctor *d, pid_t pid, const char *field)
{
	char text[DOCTOR_LINE];

	if (!doctor_field(&d->source, field, text, "/proc/%d/status", (int)pid))
		return 0;
	return strtoull(text, NULL, 10) << 10;
}

static void look_at_locked(struct doctor *d, const struct doctor_state *s, const struct process *p)
{
	uint64_t locked = kilobytes(d, p->pid, "VmLck:"), pinned = kilobytes(d, p->pid, "VmPin:");
	char used[TOOL_SIZE_TEXT], all[TOOL_SIZE_TEXT], caps[DOCTOR_LINE], pid[16], raise[32];
	struct doctor_words w = {.cluster = p->cluster, .one = pid, .two = raise};
	uint64_t limit, most = locked > pinned ? locked : pinned;

	/* A process that may lock any amount of memory is not limited. */
	if (!most || !doctor_limit(&d->source, p->pid, "Max locked memory", &limit) ||
	    !doctor_field(&d->source, "CapEff:", caps, "/proc/%d/status", (int)p->pid) ||
	    strtoull(caps, NULL, 16) >> CAP_IPC_LOCK_BIT & 1)
		return;
	if (limit == UINT64_MAX || most < limit - limit / TIGHT)
		return;
	snprintf(pid, sizeof(pid), "%d", (int)p->pid);
	snprintf(raise, sizeof(raise), "%" PRIu64, 4 * limit);
	doctor_found(d, s, &w, "%s (process %d) has %s locked, and may have %s", p->name,
		     (int)p->pid, tool_size(most, used), tool_size(limit, all));
}

static void find_locked_full(struct doctor *d, const struct doctor_state *s)
{
	each_process(d, s, look_at_locked);
}

/* If no living program has it, it is in quarantine, which other states report. */
#define WHO_HAS "{smartio} doctor --audit"

static const struct doctor_state states[] = {
	{"windows-full", DOCTOR_WARNING, DOCTOR_CLUSTER, "an adapter's window space is used up",
	 "a window needs entries in a row, and maps that came and went left pieces; SCIMapRemoteSegment "
	 "fails with SCI_ERR_HW_NOSPC for larger ones",
	 find_windows_full, WHO_HAS},
	{"entries-full", DOCTOR_BAD, DOCTOR_CLUSTER, "an adapter's look-up entries are used up",
	 "each map of another host's memory takes entries until it is unmapped", find_entries_full,
	 WHO_HAS},
	{"requesters-full", DOCTOR_WARNING, DOCTOR_CLUSTER,
	 "an adapter's requester entries are used up",
	 "each device that sends through the adapter takes one, two are the processors'; one more "
	 "device could reach no other host",
	 find_requesters_full, WHO_HAS},
	{"queue-pairs-full", DOCTOR_WARNING, DOCTOR_CLUSTER, "a drive's queue pairs are used up",
	 "each client has at least one; the next client is refused", find_queue_pairs_full,
	 WHO_HAS},
	{"memory-full", DOCTOR_WARNING, DOCTOR_CLUSTER, "a host's memory for segments is used up",
	 "segments, and what is in quarantine", find_ram_full, WHO_HAS},
	{"descriptors-full", DOCTOR_BAD, DOCTOR_CLUSTER, "a process has no descriptors left",
	 "each segment, connection, map and client takes some; what needs one more fails",
	 find_files_full, "sudo prlimit --pid {1} --nofile={2}:{2}"},
	{"locked-memory-full", DOCTOR_WARNING, DOCTOR_CLUSTER,
	 "a process has locked as much memory as it may",
	 "memory that programs register for real devices stays in place, and counts",
	 find_locked_full, "sudo prlimit --pid {1} --memlock={2}:{2}"},
};

const struct doctor_area doctor_resources_area = {"resources", states,
						  sizeof(states) / sizeof(states[0])};
