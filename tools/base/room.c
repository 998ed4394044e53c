/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/output.h"
#include "base/room.h"

#define ANSWER_MS 10000
#define ANSWER_MAX 8192

static int room_connect(const char *dir, struct sio_err *reterr)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd, r, n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/room", dir);

	if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
		return sio_fail(reterr, -ENAMETOOLONG, "%s: too long for a socket's path", dir);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	r = sio_fail(reterr, -errno, "%s: the machine room does not answer: %s", sa.sun_path,
		     strerror(errno));
	if (fd >= 0)
		close(fd);
	return r;
}

/* @answer: the text after "ok". */
static int ask_by(int fd, const char *dir, const char *request, char answer[ANSWER_MAX],
		  struct sio_err *reterr)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n = -1;
	int r = 0;

	if (send(fd, request, strlen(request), MSG_NOSIGNAL) >= 0 && poll(&p, 1, ANSWER_MS) > 0)
		n = recv(fd, answer, ANSWER_MAX - 1, 0);
	if (n <= 0)
		return sio_fail(reterr, -EIO, "the machine room of %s gave no answer", dir);
	answer[n] = '\0';
	if (strncmp(answer, "ok", 2) == 0)
		memmove(answer, answer + 2, (size_t)n - 1);
	else
		r = sio_fail(reterr, -EINVAL, "%s", answer);
	return r;
}

static int ask(const char *dir, const char *request, char answer[ANSWER_MAX],
	       struct sio_err *reterr)
{
	int fd = room_connect(dir, reterr), r;

	if (fd < 0)
		return fd;
	r = ask_by(fd, dir, request, answer, reterr);
	close(fd);
	return r;
}

int tool_room_ask(const char *dir, const char *request, struct sio_err *reterr)
{
	char answer[ANSWER_MAX];

	return ask(dir, request, answer, reterr);
}

static int read_item(const char **at, struct tool_room_item *ret)
{
	static const char *const word[] = {[TOOL_ROOM_HOST] = "host",
					   [TOOL_ROOM_GONE] = "gone",
					   [TOOL_ROOM_NEW] = "new",
					   [TOOL_ROOM_OUT] = "out"};
	char what[8];
	int end;

	if (sscanf(*at, " %7s %" SCNu32 "%n", what, &ret->number, &end) != 2)
		return -EPROTO;
	for (unsigned i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
		if (strcmp(what, word[i]) != 0)
			continue;
		ret->what = (enum tool_room_what)i;
		*at += end;
		return 0;
	}
	return -EPROTO;
}

int tool_room_prepare(const char *dir, bool next, int *ret_fd, struct sio_err *reterr)
{
	char answer[ANSWER_MAX];
	int fd = room_connect(dir, reterr), r;

	if (fd < 0)
		return fd;
	r = ask_by(fd, dir, next ? "reload prepare new" : "reload prepare now", answer, reterr);
	if (r < 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

int tool_room_commit(int fd, const char *dir, struct tool_room_item **ret, unsigned *ret_n,
		     struct sio_err *reterr)
{
	struct tool_room_item *list = NULL;
	char answer[ANSWER_MAX];
	const char *at = answer;
	unsigned n = 0;
	int r = ask_by(fd, dir, "reload commit", answer, reterr);

	if (r < 0)
		return r;
	while (r == 0 && *at) {
		list = tool_grow(list, n + 1, sizeof(*list));
		r = read_item(&at, &list[n++]);
	}
	if (r < 0) {
		free(list);
		return sio_fail(reterr, r,
				"the machine room of %s says '%.80s', which neither comes nor goes",
				dir, at);
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

static int read_outage(const char *dir, struct sio_outage *o, const struct sio_topology *t,
		       const char *answer, struct sio_err *reterr)
{
	unsigned index;
	char what[8];
	int end;

	for (; *answer; answer += end) {
		if (sscanf(answer, " %7s %u%n", what, &index, &end) != 2)
			break;
		if (strcmp(what, "switch") == 0 && index < t->n_switches)
			sio_outage_switch(o, index, false);
		else if (strcmp(what, "trunk") == 0 && index < t->n_trunks)
			sio_outage_trunk(o, index, false);
		else
			break;
	}
	return *answer ? sio_fail(reterr, -EPROTO,
				  "the machine room of %s says '%s', which is no outage", dir,
				  answer)
		       : 0;
}

int tool_room_outage(const char *dir, const struct sio_topology *t, struct sio_outage **ret,
		     struct sio_err *reterr)
{
	char answer[ANSWER_MAX];
	int r = ask(dir, "outage", answer, reterr);

	if (r < 0)
		return r;
	if (sio_outage_new(t, ret) < 0)
		return sio_no_memory(reterr, "what is down");
	r = read_outage(dir, *ret, t, answer, reterr);
	if (r < 0) {
		sio_outage_free(*ret);
		*ret = NULL;
	}
	return r;
}

/* ---- machines ---- */

/* What is no state is a counter. False: there is no room for it. */
static bool take_word(struct tool_room_part *p, const char *name, uint64_t value)
{
	const struct {
		const char *name;
		bool *state;
	} known[] = {{"attached", &p->attached},
		     {"linked", &p->linked},
		     {"ready", &p->ready},
		     {"counted", &p->counted}};

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(name, known[i].name) != 0)
			continue;
		*known[i].state = value != 0;
		return true;
	}
	if (p->n == TOOL_ROOM_COUNTERS)
		return false;
	snprintf(p->counter[p->n].name, sizeof(p->counter[p->n].name), "%s", name);
	p->counter[p->n++].value = value;
	return true;
}

/* @n parts; where "adapter" introduces them, each has its number. */
static int read_parts(const char *dir, const char *answer, struct tool_room_part *part, unsigned n,
		      struct sio_err *reterr)
{
	const char *rest = answer;
	struct tool_room_part *p = part;
	uint64_t value;
	char name[33];
	int end;

	memset(part, 0, n * sizeof(*part));
	for (; *rest; rest += end) {
		if (sscanf(rest, " %32s %" SCNu64 "%n", name, &value, &end) != 2)
			break;
		if (strcmp(name, "adapter") == 0 && value < n)
			p = &part[value];
		else if (strcmp(name, "adapter") == 0 || !take_word(p, name, value))
			break;
	}
	return *rest ? sio_fail(reterr, -EPROTO,
				"the machine room of %s says '%.80s', which is neither state nor "
				"counter",
				dir, rest)
		     : 0;
}

int tool_room_machine(const char *dir, uint32_t node, struct tool_room_part *ret, unsigned n,
		      struct sio_err *reterr)
{
	char request[32], answer[ANSWER_MAX];
	int r;

	snprintf(request, sizeof(request), "machine %" PRIu32, node);
	r = ask(dir, request, answer, reterr);
	return r < 0 ? r : read_parts(dir, answer, ret, n, reterr);
}

int tool_room_served(const char *dir, uint32_t fdid, struct tool_room_part *ret,
		     struct sio_err *reterr)
{
	char request[32], answer[ANSWER_MAX];
	int r;

	snprintf(request, sizeof(request), "served %" PRIu32, fdid);
	r = ask(dir, request, answer, reterr);
	return r < 0 ? r : read_parts(dir, answer, ret, 1, reterr);
}
