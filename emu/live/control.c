/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket "room": what somebody in front of the hardware would do by hand. Each connection sends
 * one packet of words and gets one back, "ok" or why not. The connection that prepares a reload
 * stays, for the next step.
 *
 *   link NODE ADAPTER down|up|again
 *                               pull the cable out of an adapter, or put it back; again: both, and
 *                               the hosts are enumerated anew: no address of before leads anywhere
 *   errors NODE ADAPTER COUNT   have the link of an adapter count errors
 *   delay NODE ADAPTER NS       have transfers of DMA engines over its link take so much longer; 0:
 *                               not any more
 *   host NODE down|move         take a host's power away; or have one that is off find other
 *                               addresses when it starts
 *   switch INDEX down|up        take a cluster switch's power away, or give it back
 *   trunk INDEX down|up         pull a link between two switches out, or put it back
 *   device ID out|in            pull a device out of its slot, or put it back
 *   functions ID N              have a device have N virtual functions, as its host's kernel would
 *   fault ID KIND OPCODE QUEUE AFTER COUNT VALUE
 *                               have a device do something wrong: numbers of struct emu_dev_fault,
 *                               KIND 0: nothing any more
 *   reload check|prepare new|now
 *                               read the cluster's file again, or the one that is to take its place
 *                               (behind its name ".new"); check: say only whether it can be taken
 *                               What is prepared is forgotten when its connection ends
 *   reload commit|drop          put what was prepared in force, or forget it; commit says what came
 *                               and went: "ok host NODE gone NODE new ID out ID ...", as far as
 *                               there is room: hosts, whose daemons are to be started now, and
 *                               were to be stopped before; devices
 *   outage                      which switches and trunks are down: "ok switch 1 trunk 0 trunk 4"
 *   machine NODE                a machine's adapters, each with its state and its counters:
 *                               "ok adapter 0 attached 1 linked 1 ready 1 counted 1 rd_req 7 ..."
 *   served ID                   a machine's device: "ok attached 1 faults 0 ..."
 *
 * Switches and trunks are counted as in the topology. A reload's errors change nothing, but for
 * commit: then a new device is out of its slot.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utlist.h>

#include "emu/devices/model.h"
#include "emu/live/fault.h"
#include "emu/live/live.h"

#define REQUEST_MAX 128

int live_control_open(struct live *l, struct sio_err *reterr)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int rc = live_path(l->control_path, sizeof(l->control_path), reterr, "%s/room",
			   l->state_dir);

	if (rc < 0) {
		l->control_path[0] = '\0';
		return rc;
	}
	memcpy(sa.sun_path, l->control_path, strlen(l->control_path) + 1);
	l->control = (struct live_source){.kind = LIVE_CONTROL};
	l->control.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->control.fd < 0)
		return sio_fail(reterr, -errno, "%s: %s", l->control_path, strerror(errno));
	unlink(l->control_path); /* we hold the directory's lock: what lies there is stale */
	if (bind(l->control.fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    chmod(l->control_path, 0600) < 0 || listen(l->control.fd, LIVE_CALLERS) < 0)
		return sio_fail(reterr, -errno, "%s: %s", l->control_path, strerror(errno));
	rc = live_watch(l, &l->control, EPOLLIN);
	return rc < 0 ? sio_fail(reterr, rc, "%s: %s", l->control_path, strerror(-rc)) : 0;
}

/* Freed at the end of the turn, when no event can name it. */
static void hang_up(struct live *l, struct live_caller *c)
{
	if (l->reloader == c) { /* the command ended between its steps, or this was the last one */
		l->reloader = NULL;
		live_reload_drop(l);
	}
	close(c->source.fd);
	c->source.fd = -1;
	DL_DELETE(l->callers, c);
	l->n_callers--;
	c->next = l->dead_callers;
	l->dead_callers = c;
}

void live_callers_bury(struct live *l)
{
	while (l->dead_callers) {
		struct live_caller *c = l->dead_callers;

		l->dead_callers = c->next;
		free(c);
	}
}

void live_control_close(struct live *l)
{
	while (l->callers)
		hang_up(l, l->callers);
	live_callers_bury(l);
	if (l->control.fd >= 0)
		close(l->control.fd);
	l->control.fd = -1;
	if (l->control_path[0])
		unlink(l->control_path);
}

/* Of those that wait, the one that came first; not whose reload is under way. */
static struct live_caller *oldest(const struct live *l)
{
	return l->callers == l->reloader ? l->callers->next : l->callers;
}

/* Whoever says nothing is not waited for: the one that came first makes room. */
static void take_caller(struct live *l)
{
	struct live_caller *c;
	int fd = accept4(l->control.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return;
	}
	if (l->n_callers == LIVE_CALLERS)
		hang_up(l, oldest(l));
	c->source = (struct live_source){.kind = LIVE_CONTROL, .fd = fd};
	if (live_watch(l, &c->source, EPOLLIN) < 0) {
		close(fd);
		free(c);
		return;
	}
	DL_APPEND(l->callers, c);
	l->n_callers++;
}

static void report_outage(const struct live *l, char answer[LIVE_ANSWER])
{
	size_t at = (size_t)snprintf(answer, LIVE_ANSWER, "ok");

	/* The most that there can be take less than half of the room. */
	for (unsigned i = 0; i < l->topo->n_switches; i++)
		if (!emu_room_switch_in(l->room, i))
			at += (size_t)snprintf(answer + at, LIVE_ANSWER - at, " switch %u", i);
	for (unsigned i = 0; i < l->topo->n_trunks; i++)
		if (!emu_room_trunk_in(l->room, i))
			at += (size_t)snprintf(answer + at, LIVE_ANSWER - at, " trunk %u", i);
}

static int report_machine(const struct live *l, unsigned node, char answer[LIVE_ANSWER],
			  struct sio_err *err)
{
	const struct sio_topo_host *machine = live_machine(l->topo, node);

	if (!machine)
		return sio_fail(err, -EHOSTUNREACH, "no machine of cluster %s has node id %u",
				l->topo->name, node);
	live_report_machine(l, machine, answer);
	return 0;
}

static int report_served(const struct live *l, uint32_t id, char answer[LIVE_ANSWER],
			 struct sio_err *err)
{
	for (unsigned i = 0; i < l->topo->n_machines; i++) {
		const struct sio_topo_host *m = &l->topo->machine[i];

		for (unsigned k = 0; k < m->n_devices; k++) {
			if (m->device[k].fdid != id)
				continue;
			live_report_device(l, &m->device[k], answer);
			return 0;
		}
	}
	return sio_fail(err, -ENODEV, "no device of a machine of cluster %s has id %#" PRIx32,
			l->topo->name, id);
}

/* What changes nothing. @answer is "ok" before. */
static int look(const struct live *l, const char *request, char answer[LIVE_ANSWER],
		struct sio_err *err)
{
	unsigned number;
	int end = 0;

	if (strcmp(request, "outage") == 0) {
		report_outage(l, answer);
		return 0;
	}
	if (sscanf(request, "machine %u%n", &number, &end) == 1 && request[end] == '\0')
		return report_machine(l, number, answer, err);
	end = 0;
	if (sscanf(request, "served %u%n", &number, &end) == 1 && request[end] == '\0')
		return report_served(l, number, answer, err);
	return sio_fail(
		err, -EINVAL,
		"'%s' is not understood; right is 'link NODE ADAPTER down|up|again', "
		"'errors NODE ADAPTER COUNT', 'delay NODE ADAPTER NS', 'host NODE down|move', "
		"'switch INDEX down|up', 'trunk INDEX down|up', 'device ID out|in', "
		"'functions ID N', 'fault ID KIND OPCODE QUEUE AFTER COUNT VALUE', "
		"'reload STEP [FILE]', 'outage', 'machine NODE' or 'served ID'",
		request);
}

/* Who prepared it last has it, until it is in force or dropped, by whomever. */
static int reload(struct live *l, struct live_caller *c, const char *step, const char *file,
		  char answer[LIVE_ANSWER], struct sio_err *err)
{
	int rc = live_reload(l, step, file, answer, err);

	if (rc == 0 && strcmp(step, "prepare") == 0)
		l->reloader = c;
	else if (!l->change)
		l->reloader = NULL;
	return rc;
}

/* @answer is "ok" before. */
static int serve(struct live *l, struct live_caller *c, const char *request,
		 char answer[LIVE_ANSWER], struct sio_err *err)
{
	unsigned node, adapter, id, n;
	char state[8], what[8];
	struct emu_dev_fault f;
	unsigned kind;
	uint64_t ns;
	int end = 0;

	if (sscanf(request, "link %u %u %7s%n", &node, &adapter, state, &end) == 3 &&
	    request[end] == '\0')
		return live_fault_link(l, node, adapter, state, err);
	end = 0;
	if (sscanf(request, "errors %u %u %u%n", &node, &adapter, &n, &end) == 3 &&
	    request[end] == '\0')
		return live_fault_errors(l, node, adapter, n, err);
	end = 0;
	if (sscanf(request, "delay %u %u %" SCNu64 "%n", &node, &adapter, &ns, &end) == 3 &&
	    request[end] == '\0')
		return live_fault_delay(l, node, adapter, ns, err);
	end = 0;
	if (sscanf(request, "host %u %7s%n", &node, state, &end) == 2 && request[end] == '\0')
		return live_fault_host(l, node, state, err);
	end = 0;
	if (sscanf(request, "device %u %7s%n", &id, state, &end) == 2 && request[end] == '\0')
		return live_fault_slot(l, id, state, err);
	end = 0;
	if (sscanf(request, "functions %u %u%n", &id, &n, &end) == 2 && request[end] == '\0')
		return live_fault_functions(l, id, n, err);
	end = 0;
	if (sscanf(request, "fault %u %u %u %u %u %u %" SCNu64 "%n", &id, &kind, &f.opcode,
		   &f.queue, &f.after, &f.count, &f.value, &end) == 7 &&
	    request[end] == '\0') {
		f.kind = (enum emu_dev_fault_kind)kind;
		return live_fault_device(l, id, &f, err);
	}
	n = (unsigned)sscanf(request, "reload %7s %7s", what, state);
	if (n == 1 || n == 2)
		return reload(l, c, what, n == 2 ? state : "", answer, err);
	end = 0;
	if (sscanf(request, "%7s %u %7s%n", what, &id, state, &end) == 3 && request[end] == '\0' &&
	    (strcmp(what, "switch") == 0 || strcmp(what, "trunk") == 0))
		return live_fault_between(l, what, id, state, err);
	return look(l, request, answer, err);
}

void live_control_event(struct live *l, const struct live_source *s)
{
	struct live_caller *c;
	char request[REQUEST_MAX], answer[LIVE_ANSWER] = "ok";
	struct sio_err err;
	ssize_t n;

	if (s == &l->control) {
		take_caller(l);
		return;
	}
	c = (struct live_caller *)((uintptr_t)s - offsetof(struct live_caller, source));
	n = recv(s->fd, request, sizeof(request) - 1, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		request[n] = '\0';
		if (serve(l, c, request, answer, &err) < 0)
			snprintf(answer, sizeof(answer), "%s", err.text);
		/* Whoever does not wait for the answer does not get it. */
		send(s->fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	if (n <= 0 || l->reloader != c)
		hang_up(l, c);
}
