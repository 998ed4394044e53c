/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What waits for somebody in the clusters that run. A device's quarantine ends by the word of who
 * holds its registers; while nobody does, it waits for as long as nobody comes.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "doctor.h"
#include "hosts.h"
#include "output.h"
#include "state.h"

struct waiting {
	const struct sio_topo_device *device;
	unsigned borrowers; /* that ended */
};

/* A device of @h whose quarantine nobody can end; else ret->borrowers is 0. */
static int find_waiting(struct tool_host *h, struct waiting *ret, struct sio_err *reterr)
{
	struct sio_wire_row *row;
	size_t n;
	int r = tool_client_list(&h->client, SIO_LIST_BORROWS, &row, &n, reterr);

	if (r < 0)
		return r;
	for (unsigned d = 0; d < h->topo->n_devices && ret->borrowers == 0; d++) {
		unsigned ended = 0, holders = 0;

		for (size_t i = 0; i < n; i++) {
			uint32_t flags = sio_from_le32(row[i].flags);

			if (sio_from_le32(row[i].id) != h->topo->device[d].fdid)
				continue;
			ended += (flags & SIO_ROW_QUARANTINED) != 0;
			holders += (flags & (SIO_ROW_QUARANTINED | SIO_ROW_REGISTERS)) ==
				   SIO_ROW_REGISTERS;
		}
		if (ended && !holders)
			*ret = (struct waiting){&h->topo->device[d], ended};
	}
	free(row);
	return 0;
}

static void tell(struct tool_finding *f, const struct tool_hosts *h, const struct waiting *w)
{
	const struct tool_host *up = h->host;

	while (!up->up)
		up++;
	f->good = false;
	snprintf(f->found, sizeof(f->found),
		 "%s: memory of %u program%s that ended waits for a manager, and none lives",
		 w->device->name, w->borrowers, w->borrowers == 1 ? "" : "s");
	if (strcmp(w->device->type, "nvme") == 0)
		snprintf(f->mend, sizeof(f->mend),
			 "smartio --state %.100s run -n %s -- smartio-nvme manager %s", h->dir,
			 up->topo->name, w->device->name);
	else
		snprintf(f->mend, sizeof(f->mend),
			 "start the program on a host of %.100s that resets %s and settles it",
			 h->dir, w->device->name);
}

/* One cluster; stops at the first thing that waits. */
static void check_cluster(const char *dir, struct tool_finding *f)
{
	struct waiting w = {.borrowers = 0};
	struct tool_hosts *h = NULL;
	struct sio_err err;
	int r = tool_hosts_open_dir(dir, &h, &err);

	for (unsigned i = 0; r == 0 && i < h->n && w.borrowers == 0; i++)
		if (h->host[i].up)
			r = find_waiting(&h->host[i], &w, &err);
	if (w.borrowers) {
		tell(f, h, &w);
	} else if (r < 0) {
		f->good = false;
		snprintf(f->found, sizeof(f->found), "%.190s", err.text);
		snprintf(f->mend, sizeof(f->mend), "smartio --state %.150s cluster status", dir);
	}
	tool_hosts_close(h);
}

/* The cluster that is meant; if none is named, all that run. */
void tool_doctor_quarantine(struct tool_finding *f)
{
	const char *env = getenv("SMARTIO_STATE");
	char dir[PATH_MAX], **names;
	size_t n;

	snprintf(f->found, sizeof(f->found), "nothing waits for a manager");
	if (tool_where.state || tool_where.cluster || (env && *env)) {
		if (tool_state_find(tool_where.state, tool_where.cluster, dir, sizeof(dir), NULL) ==
			    0 &&
		    tool_state_probe(dir) == TOOL_STATE_RUNNING)
			check_cluster(dir, f);
		return;
	}
	if (tool_state_list(&names, &n, TOOL_STATE_RUNNING, false, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (f->good && tool_state_path(names[i], dir, sizeof(dir), NULL) == 0)
			check_cluster(dir, f);
		free(names[i]);
	}
	free(names);
}
