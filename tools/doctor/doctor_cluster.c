/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * States of clusters: daemons that do not run or do not answer, hardware that is unplugged or
 * unreachable.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/doctor_facts.h"
#include "base/local.h"
#include "base/output.h"

#define HERE "this machine's own smartiod"
/* A host can be started again when its daemon has ended. */
#define END_IT "kill -%s %d; tail --pid=%d -s 0.1 -f /dev/null; "

/* Without the machine room, states of hosts and links are only a consequence of that. */
static bool has_hardware(const struct doctor_cluster *c)
{
	return c->topology && c->room == DOCTOR_LIVES;
}

/* ---- the whole cluster ---- */

static void find_no_cluster(struct doctor *d, const struct doctor_state *s)
{
	DOCTOR_EACH_CLUSTER (d, c) {
		const struct doctor_words w = {.one = c->dir};

		if (c->local || !c->readable)
			continue;
		if (c->state == TOOL_STATE_FOREIGN)
			doctor_found(d, s, &w, "%s holds no cluster, but other files", c->dir);
		else if (!c->topology)
			doctor_found(d, s, &w, "%s", c->why.text);
	}
}

static bool any_died(const struct doctor_cluster *c)
{
	DOCTOR_EACH_HOST (c, x)
		if (x->life == DOCTOR_DIED)
			return true;
	return false;
}

/*
 * If only the machine room was killed, it has left its pid file, and its daemons have ended
 * normally. If daemons have left theirs, too, all were killed, or the machine was: find_stale()
 * reports that.
 */
static void find_room_dead(struct doctor *d, const struct doctor_state *s)
{
	char file[PATH_MAX];

	DOCTOR_EACH_CLUSTER (d, c) {
		const struct doctor_words w = {.cluster = c, .one = file};

		if (c->local || !c->topology || c->room == DOCTOR_LIVES)
			continue;
		if (c->state == TOOL_STATE_STALE && (c->room == DOCTOR_ENDED || any_died(c)))
			continue;
		snprintf(file, sizeof(file), "%s/topology.yaml", c->dir);
		doctor_found(d, s, &w,
			     "cluster '%s': smartio-emu %s%s; its last words are in %s/emu.log",
			     c->topology->name, c->room == DOCTOR_DIED ? "has died" : "has ended",
			     c->state == TOOL_STATE_RUNNING ? ", its hosts are about to end" : "",
			     c->dir);
	}
}

static void find_stale(struct doctor *d, const struct doctor_state *s)
{
	DOCTOR_EACH_CLUSTER (d, c) {
		const struct doctor_words w = {
			.cluster = c, .mend = c->hidden ? "{smartio} doctor --clean" : NULL};

		if (c->state != TOOL_STATE_STALE || c->local ||
		    (c->topology && c->room == DOCTOR_DIED && !any_died(c)))
			continue;
		doctor_found(d, s, &w, "%s: files of a cluster of which no process lives", c->dir);
	}
}

/* The sockets of a living daemon, for clients and for peers. */
static void find_socket_missing(struct doctor *d, const struct doctor_state *s)
{
	static const char *const kind[] = {"node", "peer"};
	char path[PATH_MAX], kill[256];
	const struct doctor_source *own = &(const struct doctor_source){.root = ""};

	DOCTOR_EACH_CLUSTER (d, c)
		DOCTOR_EACH_HOST (c, x)
			/*
			 * Daemons with addresses listen there, and not at a socket in the
			 * directory.
			 */
			for (unsigned i = 0; i < (x->h.topo->address.port ? 1 : 2) && !c->local &&
					     x->life == DOCTOR_LIVES;
			     i++) {
				const struct doctor_words w = {
					.cluster = c, .one = x->h.topo->name, .mend = kill};

				if (doctor_exists(own, "%s/%s.%u", c->dir, kind[i],
						  x->h.topo->node))
					continue;
				snprintf(path, sizeof(path), "%.3000s/%s.%u", c->dir, kind[i],
					 x->h.topo->node);
				snprintf(kill, sizeof(kill), END_IT "%s", "TERM", (int)x->pid,
					 (int)x->pid, s->mend);
				doctor_found(d, s, &w, "%s is missing, and smartiod of %s lives",
					     path, x->h.topo->name);
			}
}

/* ---- its hosts ---- */

/* The command that starts this machine's daemon: its service, where a package has installed one. */
static const char *start_of_ours(const struct doctor *d)
{
	static const char *const place[] = {"/usr/lib", "/lib", "/etc"};
	const bool vfio = doctor_by_vfio(d);
	bool service = false;

	for (size_t i = 0; i < sizeof(place) / sizeof(place[0]); i++)
		service |= doctor_exists(&d->source, "%s/systemd/system/smartiod%s.service",
					 place[i], vfio ? "-vfio" : "");
	if (service)
		return vfio ? "sudo systemctl restart smartiod-vfio"
			    : "sudo systemctl restart smartiod";
	return vfio ? "sudo smartiod --vfio" : "sudo smartiod --shim";
}

static void find_daemon_dead(struct doctor *d, const struct doctor_state *s)
{
	DOCTOR_EACH_CLUSTER (d, c) {
		if (c->local) {
			const struct doctor_words w = {.mend = start_of_ours(d)};

			if (c->room != DOCTOR_LIVES && c->why.code != -EACCES &&
			    c->why.code != -EPERM && c->why.code != -EPROTO)
				doctor_found(d, s, &w, HERE ": %s", c->why.text);
			continue;
		}
		DOCTOR_EACH_HOST (c, x) {
			const struct doctor_words w = {.cluster = c, .one = x->h.topo->name};

			if (has_hardware(c) && x->life == DOCTOR_DIED)
				doctor_found(d, s, &w,
					     "%s (node %u) is down: its pid file is there, and no "
					     "smartiod; its last words are in %s/smartiod.%u.log",
					     x->h.topo->name, x->h.topo->node, c->dir,
					     x->h.topo->node);
		}
	}
}

static void find_host_down(struct doctor *d, const struct doctor_state *s)
{
	DOCTOR_EACH_CLUSTER (d, c)
		DOCTOR_EACH_HOST (c, x) {
			const struct doctor_words w = {.cluster = c, .one = x->h.topo->name};

			if (has_hardware(c) && x->life == DOCTOR_ENDED)
				doctor_found(d, s, &w, "%s (node %u): no smartiod, and no pid file",
					     x->h.topo->name, x->h.topo->node);
		}
}

static void find_host_silent(struct doctor *d, const struct doctor_state *s)
{
	char mend[256];

	DOCTOR_EACH_CLUSTER (d, c)
		DOCTOR_EACH_HOST (c, x) {
			const struct doctor_words w = {
				.cluster = c, .one = x->h.topo->name, .mend = mend};

			if (x->life != DOCTOR_LIVES || x->h.up || x->why.code == -EACCES ||
			    x->why.code == -EPERM || x->why.code == -EPROTO || c->local ||
			    x->why.code == -ENOENT)
				continue;
			if (x->stopped)
				snprintf(mend, sizeof(mend), "kill -CONT %d", (int)x->pid);
			else
				snprintf(mend, sizeof(mend), END_IT "%s", "KILL", (int)x->pid,
					 (int)x->pid, s->mend);
			doctor_found(d, s, &w, "%s: %s", x->h.topo->name, x->why.text);
		}
}

/* ---- its links and devices ---- */

static void find_link_down(struct doctor *d, const struct doctor_state *s)
{
	struct sio_rep_adapter a;
	unsigned links = 0;
	bool down = false;
	char name[SIO_NAME_LEN + 16];

	DOCTOR_EACH_CLUSTER (d, c)
		DOCTOR_EACH_HOST (c, x)
			for (unsigned i = 0; x->h.up && i < x->h.topo->n_adapters; i++) {
				const struct doctor_words w = {.cluster = c, .one = name};

				/*
				 * An adapter without look-up entries leads nowhere: this machine
				 * has no NTB.
				 */
				if (tool_host_adapter(&x->h, i, &a, NULL) < 0 ||
				    sio_from_le32(a.entries_total) == 0)
					continue;
				links++;
				if (sio_from_le32(a.link_up))
					continue;
				/* find_switch_down() reports a switch without power. */
				if (c->outage &&
				    !sio_outage_port_in(c->outage, &x->h.topo->adapter[i]))
					continue;
				down = true;
				snprintf(name, sizeof(name), "%s.%u", x->h.topo->name, i);
				doctor_found(d, s, &w, "%s: adapter %u of %s has no link", name, i,
					     x->h.topo->name);
			}
	if (!down)
		doctor_says(d, s, DOCTOR_FINE, "%u links are up", links);
}

/* "sub1", or "sub1.4" where ports have numbers, which distinguish parallel links. */
static const char *end_name(const struct sio_topology *t, const struct sio_topo_trunk *l,
			    unsigned end, char name[SIO_NAME_LEN + 12])
{
	const struct sio_topo_switch *sw = &t->sw[l->sw[end]];

	if (sw->ports)
		snprintf(name, SIO_NAME_LEN + 12, "%s.%u", sw->name, l->port[end]);
	else
		snprintf(name, SIO_NAME_LEN + 12, "%s", sw->name);
	return name;
}

static void find_switch_down(struct doctor *d, const struct doctor_state *s)
{
	char a[SIO_NAME_LEN + 12], b[SIO_NAME_LEN + 12];

	DOCTOR_EACH_CLUSTER (d, c) {
		const struct sio_topology *t = c->topology;

		for (unsigned i = 0; c->outage && i < t->n_switches; i++) {
			const struct doctor_words w = {.cluster = c, .one = t->sw[i].name};

			if (!sio_outage_switch_in(c->outage, i))
				doctor_found(d, s, &w, "switch %s has no power", t->sw[i].name);
		}
		for (unsigned i = 0; c->outage && i < t->n_trunks; i++) {
			const struct doctor_words w = {.cluster = c,
						       .one = end_name(t, &t->trunk[i], 0, a),
						       .two = end_name(t, &t->trunk[i], 1, b),
						       .mend = "{smartio} fault trunk {1} {2} up"};

			if (!sio_outage_trunk_in(c->outage, i))
				doctor_found(d, s, &w, "the link between %s and %s is out", a, b);
		}
	}
}

static void find_device_gone(struct doctor *d, const struct doctor_state *s)
{
	struct sio_rep_dev_list info;
	unsigned devices = 0;
	bool gone = false;

	DOCTOR_EACH_CLUSTER (d, c)
		DOCTOR_EACH_HOST (c, x)
			for (unsigned i = 0; x->h.up && i < x->h.topo->n_devices; i++) {
				const struct sio_topo_device *dev = &x->h.topo->device[i];
				const struct doctor_words w = {.cluster = c, .one = dev->name};

				devices++;
				if (tool_host_device(&x->h, dev->fdid, &info, NULL) != -ENODEV)
					continue;
				gone = true;
				doctor_found(d, s, &w, "%s is not in slot %u of %s", dev->name,
					     dev->slot, x->h.topo->name);
			}
	if (!gone)
		doctor_says(d, s, DOCTOR_FINE, "%u devices are there", devices);
}

/* ---- quarantine ---- */

struct held {
	unsigned borrowers, mappings;
	uint64_t bytes;
	char who[200];	    /* the ended borrowers that left it */
	uint32_t node, pid; /* of the owner of the registers, which can end it; pid 0: nobody */
};

/* Adds up what the ended borrowers of @fdid have left, by the lender's lists. */
static void add_held(const struct doctor_cluster *c, const struct sio_wire_row *row, size_t n,
		     const struct sio_wire_row *dma, size_t n_dma, uint32_t fdid, struct held *ret)
{
	size_t used = 0;

	*ret = (struct held){0};
	for (size_t i = 0; i < n; i++) {
		uint32_t flags = sio_from_le32(row[i].flags), node = sio_from_le32(row[i].node);

		if (sio_from_le32(row[i].id) != fdid)
			continue;
		if (flags & SIO_ROW_QUARANTINED) {
			ret->borrowers++;
			if (used < sizeof(ret->who))
				used += (size_t)snprintf(ret->who + used, sizeof(ret->who) - used,
							 "%sprocess %u of %s", used ? ", " : "",
							 sio_from_le32(row[i].pid),
							 doctor_node_name(c, node));
		} else if (flags & SIO_ROW_REGISTERS) {
			ret->node = node;
			ret->pid = sio_from_le32(row[i].pid);
		}
	}
	for (size_t i = 0; i < n_dma; i++)
		if (sio_from_le32(dma[i].id) == fdid &&
		    sio_from_le32(dma[i].flags) & SIO_ROW_QUARANTINED) {
			ret->mappings++;
			ret->bytes += sio_from_le64(dma[i].bytes);
		}
}

static void report_held(struct doctor *d, const struct doctor_state *s,
			const struct doctor_cluster *c, const struct doctor_host *x,
			const struct sio_topo_device *dev, const struct held *held)
{
	const bool orphaned = s->level == DOCTOR_BAD;
	struct doctor_words w = {.cluster = c, .one = x->h.topo->name, .two = dev->name};
	char size[TOOL_SIZE_TEXT], holder[64] = "nobody", mend[256];

	if (held->borrowers == 0 || orphaned != (held->pid == 0))
		return;
	if (orphaned && strcmp(dev->type, "nvme") != 0)
		w.mend = "{smartio} device reset {2}";
	else if (orphaned && c->local)
		w.mend = "{smartio-nvme} manager --background {2}";
	if (!orphaned) {
		snprintf(holder, sizeof(holder), "process %u of %.32s", held->pid,
			 doctor_node_name(c, held->node));
		w.one = doctor_node_name(c, held->node);
		w.mend = mend;
		if (doctor_is_stopped((pid_t)held->pid))
			snprintf(mend, sizeof(mend), "kill -CONT %u", held->pid);
		else
			snprintf(mend, sizeof(mend), END_IT "%s", "KILL", (int)held->pid,
				 (int)held->pid, s->mend);
	}
	doctor_found(d, s, &w, "%s: %s in %u mapping%s, left by %s; %s has the registers",
		     dev->name, tool_size(held->bytes, size), held->mappings,
		     held->mappings == 1 ? "" : "s", held->who, holder);
}

static void look_at_lender(struct doctor *d, const struct doctor_state *s,
			   const struct doctor_cluster *c, struct doctor_host *x)
{
	struct sio_wire_row *row = NULL, *dma = NULL;
	size_t n = 0, n_dma = 0;
	struct held held;
	struct sio_err err;

	if (tool_client_list(&x->h.client, SIO_LIST_BORROWS, &row, &n, &err) == 0 &&
	    tool_client_list(&x->h.client, SIO_LIST_DMA_MAPS, &dma, &n_dma, &err) == 0)
		for (unsigned i = 0; i < x->h.topo->n_devices; i++) {
			add_held(c, row, n, dma, n_dma, x->h.topo->device[i].fdid, &held);
			report_held(d, s, c, x, &x->h.topo->device[i], &held);
		}
	else
		doctor_says(d, s, DOCTOR_UNKNOWN, "%s: %s", x->h.topo->name, err.text);
	free(row);
	free(dma);
}

static void find_quarantine(struct doctor *d, const struct doctor_state *s)
{
	DOCTOR_EACH_CLUSTER (d, c)
		DOCTOR_EACH_HOST (c, x)
			if (x->h.up)
				look_at_lender(d, s, c, x);
}

/* ---- permission, versions ---- */

static void report_denied(struct doctor *d, const struct doctor_state *s,
			  const struct doctor_cluster *c, const char *what, const char *why)
{
	struct stat st;
	char mend[PATH_MAX + 256], owner[32];
	struct doctor_words w = {.cluster = c, .one = owner, .mend = mend};

	snprintf(owner, sizeof(owner), "#0");
	if (lstat(c->dir, &st) == 0)
		snprintf(owner, sizeof(owner), "#%u", st.st_uid);
	if (lstat(c->dir, &st) == 0 && st.st_uid == geteuid()) {
		w.one = what;
		snprintf(mend, sizeof(mend), "chmod u+rwx {1}");
	} else {
		snprintf(mend, sizeof(mend), "sudo -u {1} {smartio} doctor");
	}
	doctor_found(d, s, &w, "%s: %s; its owner is user %s, we are user %u", what, why, owner + 1,
		     geteuid());
}

static void find_no_permission(struct doctor *d, const struct doctor_state *s)
{
	const struct doctor_words base = {.mend = "export XDG_RUNTIME_DIR=$(mktemp -d)"};
	char dir[PATH_MAX], socket[PATH_MAX];
	struct sio_err err;

	if (tool_state_base(dir, sizeof(dir), &err) < 0)
		doctor_found(d, s, &base, "%s", err.text);
	DOCTOR_EACH_CLUSTER (d, c) {
		if (!c->readable && (c->why.code == -EACCES || c->why.code == -EPERM))
			report_denied(d, s, c, c->dir, strerror(-c->why.code));
		if (c->local && (c->why.code == -EACCES || c->why.code == -EPERM)) {
			const struct doctor_words w = {
				.mend = "sudo usermod -a -G smartio $USER; newgrp smartio"};

			doctor_found(d, s, &w, HERE ": %s", c->why.text);
		}
		DOCTOR_EACH_HOST (c, x)
			if (x->why.code == -EACCES || x->why.code == -EPERM) {
				snprintf(socket, sizeof(socket), "%.3000s/node.%u", c->dir,
					 x->h.topo->node);
				report_denied(d, s, c, socket, strerror(-x->why.code));
			}
	}
}

/*
 * A program whose protocol is older than its daemon's, or that was refused lately for that reason.
 */
static void look_at_programs(struct doctor *d, const struct doctor_state *s,
			     const struct doctor_cluster *c, struct doctor_host *x)
{
	uint64_t newest = 0, refused = 0, spoke = 0, pid = 0;
	struct sio_wire_row *row = NULL;
	struct sio_rep_stats stats;
	struct sio_err err;
	size_t n = 0;
	const struct doctor_words w = {.cluster = c};

	if (tool_host_counters(&x->h, TOOL_COUNTERS_DAEMON, 0, &stats, &err) < 0 ||
	    tool_client_list(&x->h.client, SIO_LIST_CLIENTS, &row, &n, &err) < 0 ||
	    !doctor_counter(&stats, "client_version", &newest))
		return;
	for (size_t i = 0; i < n; i++) {
		uint32_t version = (uint32_t)sio_from_le64(row[i].bytes);

		if (version && version < newest)
			doctor_found(d, s, &w,
				     "%s: process %u speaks version %u of smartiod's protocol, "
				     "smartiod speaks %u",
				     x->h.topo->name, sio_from_le32(row[i].pid), version,
				     (unsigned)newest);
	}
	free(row);
	if (!doctor_counter(&stats, "refused_versions", &refused) || !refused ||
	    !doctor_counter(&stats, "refused_version", &spoke) ||
	    !doctor_counter(&stats, "refused_pid", &pid))
		return;
	doctor_found(d, s, &w,
		     "%s: process %" PRIu64
		     " was refused less than %d minutes ago: it speaks version "
		     "%" PRIu64 ", smartiod %" PRIu64,
		     x->h.topo->name, pid, SIO_REFUSED_RECENT_S / 60, spoke, newest);
}

static void find_library_version(struct doctor *d, const struct doctor_state *s)
{
	DOCTOR_EACH_CLUSTER (d, c) {
		const struct doctor_words w = {.cluster = c};

		if (c->local && c->why.code == -EPROTO)
			doctor_found(d, s, &w, HERE ": %s", c->why.text);
		DOCTOR_EACH_HOST (c, x) {
			if (x->h.up)
				look_at_programs(d, s, c, x);
			else if (x->why.code == -EPROTO)
				doctor_found(d, s, &w, "this command at %s: %s", x->h.topo->name,
					     x->why.text);
		}
	}
}

/* ---- the table ---- */

static const struct doctor_state states[] = {
	{"no-cluster", DOCTOR_BAD, DOCTOR_CLUSTER, "there is no such cluster",
	 "the name or directory is wrong, or it was taken down", find_no_cluster,
	 "{smartio} cluster status"},
	{"room-dead", DOCTOR_BAD, DOCTOR_CLUSTER, "the machine room does not run",
	 "smartio-emu was killed, by a person or for want of memory: a power cut of all hosts",
	 find_room_dead, "{smartio} cluster up {1}"},
	{"stale", DOCTOR_WARNING, DOCTOR_CLUSTER, "stale sockets and files of a cluster",
	 "it was killed, or the machine was, before 'cluster down'", find_stale,
	 "{smartio} cluster down"},
	{"socket-missing", DOCTOR_BAD, DOCTOR_CLUSTER, "a daemon's socket is missing",
	 "somebody removed it; whoever comes now does not find the daemon", find_socket_missing,
	 "{smartio} cluster restart-node {1}"},
	{"daemon-dead", DOCTOR_BAD, DOCTOR_CLUSTER, "a smartiod has died",
	 "it was killed, or crashed: on an emulated cluster a crash of its host", find_daemon_dead,
	 "{smartio} cluster restart-node {1}"},
	{"machine-killed", DOCTOR_BAD, DOCTOR_CLUSTER, "a virtual machine was killed",
	 "its QEMU was, by a person or for want of memory: a power cut of that machine",
	 doctor_find_machine_killed, "{smartio} machine start {1}"},
	{"machine-off", DOCTOR_NOTE, DOCTOR_CLUSTER, "a virtual machine does not run",
	 "nobody has started it, or it was shut down: 'smartio machine start', or a QEMU of your own",
	 doctor_find_machine_off, ""},
	{"machine-mapped", DOCTOR_NOTE, DOCTOR_CLUSTER,
	 "a virtual machine's memory is open to others",
	 "what goes through mapped windows is not checked, neither by what was granted nor by an "
	 "IOMMU: 'window: exact' isolates; docs/virtual-ntb.md",
	 doctor_find_machine_mapped, ""},
	{"host-pooled", DOCTOR_NOTE, DOCTOR_CLUSTER,
	 "segments of an emulated host are open to its programs and to machines",
	 "it is beside machines with mapped windows, for which its segments lie in one file: 'window: "
	 "exact' of these machines isolates; docs/virtual-ntb.md",
	 doctor_find_host_pooled, ""},
	{"host-down", DOCTOR_BAD, DOCTOR_CLUSTER, "a host is down",
	 "its smartiod was ended, or never started", find_host_down,
	 "{smartio} cluster restart-node {1}"},
	{"host-silent", DOCTOR_BAD, DOCTOR_CLUSTER, "a smartiod lives and does not answer",
	 "it is stopped, hangs, or has no descriptors left", find_host_silent,
	 "{smartio} cluster restart-node {1}"},
	{"link-down", DOCTOR_BAD, DOCTOR_CLUSTER, "a link is down",
	 "the cable is pulled ('fault link'), or what is behind it has no power", find_link_down,
	 "{smartio} fault link {1} up"},
	{"machine-unlinked", DOCTOR_BAD, DOCTOR_CLUSTER, "a link of a virtual machine is down",
	 "the cable is pulled ('fault link')", doctor_find_machine_unlinked,
	 "{smartio} fault link {1} up"},
	{"switch-down", DOCTOR_BAD, DOCTOR_CLUSTER,
	 "a cluster switch, or a link between two, is down",
	 "it has no power ('fault switch'), or was pulled out ('fault trunk')", find_switch_down,
	 "{smartio} fault switch {1} up"},
	{"device-gone", DOCTOR_BAD, DOCTOR_CLUSTER, "a device is gone",
	 "it was pulled out of its slot ('fault device')", find_device_gone,
	 "{smartio} fault device {1} in"},
	{"quarantine-orphaned", DOCTOR_BAD, DOCTOR_CLUSTER,
	 "memory is held in quarantine, and nobody is there to end that",
	 "programs ended while the device could still use their memory, and no manager of it lives",
	 find_quarantine, "{smartio} run -n {1} -d -- {smartio-nvme} manager {2}"},
	{"quarantine", DOCTOR_WARNING, DOCTOR_CLUSTER, "memory is held in quarantine",
	 "programs ended while the device could still use their memory, and who has its registers "
	 "has not settled that yet",
	 find_quarantine, "{smartio} run -n {1} -d -- {smartio-nvme} manager {2}"},
	{"no-permission", DOCTOR_BAD, DOCTOR_ANYWHERE, "permission is missing",
	 "a cluster is its user's alone; real devices are their group's", find_no_permission,
	 "chmod u+rwx {1}"},
	{"library-version", DOCTOR_WARNING, DOCTOR_CLUSTER,
	 "a program's library is older than smartiod, or newer",
	 "it was built or started before SmartIO was installed anew, or finds another libsmartio.so",
	 find_library_version, "sudo ldconfig # then start the program again"},
	{"cluster-file", DOCTOR_WARNING, DOCTOR_CLUSTER, "hosts go by different cluster files",
	 "it was changed on one host, or a daemon was not told to read it anew", doctor_find_files,
	 "{smartio} cluster reload"},
	{"waking", DOCTOR_NOTE, DOCTOR_CLUSTER, "how programs wake a sleeping device",
	 "a device model sleeps when it is idle; a page fault, an event or a timer wakes it",
	 doctor_find_waking, ""},
};

const struct doctor_area doctor_cluster_area = {"cluster", states,
						sizeof(states) / sizeof(states[0])};
