/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of machines, for views: answers of the socket "room" as words, a name and a number
 * each.
 */
#include <inttypes.h>
#include <stdio.h>

#include "emu/live/live.h"

#define COUNTERS_MOST 48

struct words {
	char *at, *end;
};

static void put(struct words *w, const char *name, uint64_t value)
{
	int n = snprintf(w->at, (size_t)(w->end - w->at), " %s %" PRIu64, name, value);

	if (n > 0 && n < w->end - w->at)
		w->at += n;
	else
		*w->at = '\0'; /* the room is sized for all: see LIVE_ANSWER */
}

static void put_traffic(struct words *w, const struct live *l, const struct sio_topo_host *m,
			unsigned index, const struct emu_ntb_counts *c)
{
	struct sio_pcie_count hosts = {0}; /* what these sent */
	uint64_t messages = 0;

	emu_room_machine_passed(l->room, m->node, index, &hosts, &messages);
	put(w, "rd_req", c->pcie.read_requests + hosts.read_requests);
	put(w, "rd_cpl", c->pcie.completions + hosts.completions);
	put(w, "rd_bytes", c->pcie.read_bytes + hosts.read_bytes);
	put(w, "wr_tlp", c->pcie.write_tlps + hosts.write_tlps);
	put(w, "wr_bytes", c->pcie.write_bytes + hosts.write_bytes);
	put(w, "msg", c->messages + messages);
}

static void put_adapter(struct words *w, const struct live *l, const struct sio_topo_host *m,
			unsigned index)
{
	const struct emu_ntb_adapter *a = emu_ntb_of(l->ntb, m->node, index);
	struct emu_ntb_view v;

	emu_ntb_look(a, &v);
	put(w, "adapter", index);
	put(w, "attached", v.attached);
	put(w, "linked", v.linked);
	put(w, "ready", v.ready);
	put(w, "counted", v.counted);
	/* Of what passes mapped windows nobody knows, so a part of all would be no answer. */
	if (v.counted)
		put_traffic(w, l, m, index, &v.counts);
	put(w, "faults", v.counts.faults);
	put(w, "lut_total", m->adapter[index].lut_entries);
	put(w, "lut_used", v.entries);
	put(w, "requesters_total", m->adapter[index].requesters);
	put(w, "requesters_used", v.requesters);
	put(w, "grants", v.ranges);
	put(w, "doorbells", v.counts.doorbells);
	put(w, "messages", v.counts.mails);
	put(w, "interrupts", v.counts.interrupts);
	put(w, "path_changes", v.counts.changes);
	put(w, "multicast_out", v.counts.group_out);
	put(w, "multicast_in", v.counts.group_in);
	put(w, "exits", v.counts.exits);
	put(w, "stale_reads", v.stale_reads);
	put(w, "starts", v.starts);
}

void live_report_machine(const struct live *l, const struct sio_topo_host *machine,
			 char answer[LIVE_ANSWER])
{
	struct words w = {answer + snprintf(answer, LIVE_ANSWER, "ok"), answer + LIVE_ANSWER};

	for (unsigned i = 0; l->ntb && i < machine->n_adapters; i++)
		put_adapter(&w, l, machine, i);
}

void live_report_device(const struct live *l, const struct sio_topo_device *device,
			char answer[LIVE_ANSWER])
{
	struct words w = {answer + snprintf(answer, LIVE_ANSWER, "ok"), answer + LIVE_ANSWER};
	char name[COUNTERS_MOST][32] = {0};
	uint64_t value[COUNTERS_MOST];
	bool attached = false;
	unsigned n = live_vfio_counters(l, device, &attached, name, value, COUNTERS_MOST);

	put(&w, "attached", attached);
	for (unsigned i = 0; i < n; i++)
		put(&w, name[i], value[i]);
}
