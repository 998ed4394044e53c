/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio fault: what somebody in front of the hardware might do. The machine room does it. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/command.h"
#include "base/output.h"
#include "base/state.h"

#define ANSWER_MS 10000

static int room_connect(const char *dir, struct sio_err *reterr)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd, n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/room", dir);

	if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
		return sio_fail(reterr, -ENAMETOOLONG, "%s: too long for a socket's path", dir);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	sio_fail(reterr, -errno, "%s: the machine room does not answer: %s", sa.sun_path,
		 strerror(errno));
	if (fd >= 0)
		close(fd);
	return reterr->code;
}

/* Ask the machine room for what @request says. */
static int room_ask(const char *dir, const char *request, struct sio_err *reterr)
{
	struct pollfd p = {.fd = room_connect(dir, reterr), .events = POLLIN};
	char answer[512];
	ssize_t n = -1;
	int r = 0;

	if (p.fd < 0)
		return p.fd;
	if (send(p.fd, request, strlen(request), MSG_NOSIGNAL) >= 0 && poll(&p, 1, ANSWER_MS) > 0)
		n = recv(p.fd, answer, sizeof(answer) - 1, 0);
	if (n <= 0) {
		r = sio_fail(reterr, -EIO, "the machine room of %s gave no answer", dir);
	} else {
		answer[n] = '\0';
		if (strcmp(answer, "ok") != 0)
			r = sio_fail(reterr, -EINVAL, "%s", answer);
	}
	close(p.fd);
	return r;
}

/* A virtual machine, which is joined by a cable as hosts are. NULL: none has that name or id. */
static const struct sio_topo_host *find_machine(const struct sio_topology *t, const char *word)
{
	char *end;
	unsigned long node = strtoul(word, &end, 10);

	for (unsigned i = 0; i < t->n_machines; i++)
		if (strcmp(t->machine[i].name, word) == 0 ||
		    (*word && !*end && node == t->machine[i].node))
			return &t->machine[i];
	return NULL;
}

/* "HOST" or "HOST.ADAPTER", where HOST is a name or a node id. */
static int parse_adapter(const struct sio_topology *t, const char *word,
			 const struct sio_topo_host **ret_host, unsigned *ret_adapter,
			 struct sio_err *reterr)
{
	const char *dot = strrchr(word, '.');
	char name[SIO_NAME_LEN + 1], *end = NULL;
	int r = 0;

	*ret_adapter = 0;
	if (dot) {
		*ret_adapter = (unsigned)strtoul(dot + 1, &end, 10);
		if (dot[1] < '0' || dot[1] > '9' || *end)
			return sio_fail(reterr, -EINVAL,
					"'%s': after the dot the number of an adapter is right",
					word);
	}
	snprintf(name, sizeof(name), "%.*s", (int)(dot ? (size_t)(dot - word) : strlen(word)),
		 word);
	*ret_host = find_machine(t, name);
	if (!*ret_host)
		r = tool_find_host(t, name, ret_host, reterr);
	if (r == 0 && *ret_adapter >= (*ret_host)->n_adapters)
		r = sio_fail(reterr, -ENXIO, "host '%s' has no adapter %u; it has %u from 0 on",
			     (*ret_host)->name, *ret_adapter, (*ret_host)->n_adapters);
	return r;
}

/* A name of the topology file, or an id such as 0x401. */
static int parse_device(const struct sio_topology *t, const char *word,
			const struct sio_topo_device **ret, struct sio_err *reterr)
{
	char *end;
	unsigned long id = strtoul(word, &end, 0);

	for (unsigned i = 0; i < t->n_hosts; i++)
		for (unsigned k = 0; k < t->host[i].n_devices; k++) {
			const struct sio_topo_device *d = &t->host[i].device[k];

			if (strcmp(d->name, word) != 0 && (!*word || *end || id != d->fdid))
				continue;
			*ret = d;
			return 0;
		}
	return sio_fail(reterr, -ENODEV, "cluster '%s' has no device '%s'", t->name, word);
}

/* What the room is asked for, of @words: the thing, and what is done to it. */
struct request {
	char text[64];
	struct json_object *done; /* with --json: what it will have been */
};
typedef int fill_request(const struct sio_topology *t, char **words, struct request *ret,
			 struct sio_err *reterr);

static int fill_link(const struct sio_topology *t, char **words, struct request *ret,
		     struct sio_err *reterr)
{
	const struct sio_topo_host *host = NULL;
	unsigned adapter = 0;
	int r = parse_adapter(t, words[0], &host, &adapter, reterr);

	if (r < 0)
		return r;
	snprintf(ret->text, sizeof(ret->text), "link %u %u %s", host->node, adapter, words[1]);
	tool_json_string(ret->done, "host", host->name);
	tool_json_number(ret->done, "node", host->node);
	tool_json_number(ret->done, "adapter", adapter);
	tool_json_string(ret->done, "link", words[1]);
	return 0;
}

static int fill_device(const struct sio_topology *t, char **words, struct request *ret,
		       struct sio_err *reterr)
{
	const struct sio_topo_device *d = NULL;
	int r = parse_device(t, words[0], &d, reterr);

	if (r < 0)
		return r;
	snprintf(ret->text, sizeof(ret->text), "device %u %s", d->fdid, words[1]);
	tool_json_string(ret->done, "name", d->name);
	tool_json_number(ret->done, "id", d->fdid);
	tool_json_string(ret->done, "slot", words[1]);
	return 0;
}

static int do_fault(const struct tool_command *self, int argc, char **argv, const char *bad,
		    const char *good, fill_request *fill, const char *schema)
{
	struct sio_topology *t = NULL;
	struct request request;
	char dir[PATH_MAX];
	struct sio_err err;
	int r, first, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	if (strcmp(argv[first + 1], bad) != 0 && strcmp(argv[first + 1], good) != 0)
		return tool_usage(self->name, "'%s': '%s' or '%s' is right", argv[first + 1], bad,
				  good);
	request.done = tool_json_object();
	r = tool_find_cluster(dir, sizeof(dir), &t, &err);
	if (r == 0)
		r = fill(t, argv + first, &request, &err);
	if (r == 0)
		r = room_ask(dir, request.text, &err);
	sio_topology_free(t);
	if (r == 0 && tool_where.json)
		return tool_json_print(schema, request.done);
	json_object_put(request.done);
	return r < 0 ? tool_fail(&err) : 0;
}

static int fault_link(const struct tool_command *self, int argc, char **argv)
{
	return do_fault(self, argc, argv, "down", "up", fill_link, "fault-link");
}

static int fault_device(const struct tool_command *self, int argc, char **argv)
{
	return do_fault(self, argc, argv, "out", "in", fill_device, "fault-device");
}

const struct tool_command tool_fault_link_command = {
	.name = "fault link",
	.summary = "Pull the cable out of an adapter, or put it back",
	.help = "Of an emulated cluster; adapter 0 is meant where none is named. Programs connected through it\n"
		"get SCI_CB_NOT_OPERATIONAL, and their mappings read as all ones; they get SCI_CB_OPERATIONAL\n"
		"when it is back, and all is as it was. Hosts that lend each other devices take the end of their\n"
		"last link for the other's end.\n",
	.schemas = "fault-link",
	.words = {{"HOST[.ADAPTER]", TOOL_LINKS}, {"down|up", TOOL_CHOICES}},
	.run = fault_link};

const struct tool_command tool_fault_device_command = {
	.name = "fault device",
	.summary = "Pull a device out of its slot, or put it back",
	.help = "Of an emulated cluster. DEVICE is a name of the topology file, or an id such as 0x401. Who\n"
		"uses it gets an error and reads ones where its registers were; it comes back with what its\n"
		"media hold, for whoever borrows it then.\n",
	.schemas = "fault-device",
	.words = {{"DEVICE", TOOL_DEVICES}, {"out|in", TOOL_CHOICES}},
	.run = fault_device};
