/* SPDX-License-Identifier: BSD-2-Clause */
/* What other machines' daemons answer, by way of ours: refusals, and lists that do not end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/command.h"
#include "base/hosts.h"

#define OTHER 8

/* Of the command line, which there is none. */
struct tool_where tool_where;

void tool_name_topology(struct sio_topology *t, const char *dir)
{
	(void)t;
	(void)dir;
}

/* Answers each LIST by a full page, and that there is more, until the other end is closed. */
static void answer(int fd)
{
	struct sio_rep_list rep = {.count = sio_to_le32(SIO_LIST_ROWS), .more = sio_to_le32(1)};
	struct sio_msg_list req;

	while (recv(fd, &req, sizeof(req), 0) == sizeof(req)) {
		for (uint32_t i = 0; i < SIO_LIST_ROWS; i++)
			rep.row[i].key = sio_to_le64(sio_from_le64(req.after) + i + 1);
		rep.h = (struct sio_msg){.size = sio_to_le32(sizeof(rep)),
					 .type = sio_to_le32(SIO_MSG_LIST),
					 .id = req.h.id};
		if (send(fd, &rep, sizeof(rep), MSG_NOSIGNAL) < 0)
			break;
	}
}

static void a_list_without_end(void **state)
{
	struct tool_client c = {.of = OTHER};
	struct sio_wire_row *row;
	struct sio_err err;
	int sv[2], status;
	size_t n;
	pid_t pid;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(sv[0]);
		answer(sv[1]);
		_exit(0);
	}
	close(sv[1]);
	c.fd = sv[0];
	assert_int_equal(tool_client_list(&c, SIO_LIST_NODES, &row, &n, &err), -EPROTO);
	assert_non_null(strstr(err.text, "rows"));
	tool_client_close(&c);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Whatever it is that another machine refuses, the others are shown, and it is named. */
static void refusals_of_another_machine(void **state)
{
	static const int errors[] = {EPROTO, EINVAL, ENOMEM, EMFILE, ENETDOWN, ETIMEDOUT, ENODEV};
	struct sio_topo_host topo = {.name = "b", .node = OTHER, .real = true};
	static struct tool_hosts hosts;
	struct sio_err err;

	(void)state;
	strcpy(hosts.dir, "/nowhere");
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct tool_host host = {
			.topo = &topo, .client.fd = -1, .state = TOOL_HOST_AWAY, .answers = true};

		sio_fail(&err, -errors[i], "so\033 it is");
		assert_true(tool_host_lost(&hosts, &host, &err));
		assert_int_equal(host.state, TOOL_HOST_SILENT);
		assert_false(host.answers);
		assert_int_equal(host.why.code, -errors[i]);
		assert_string_equal(host.why.text, "host 'b' cannot be asked: so? it is");
	}
	/* Of this machine's daemon a refusal is no loss. */
	{
		struct tool_host own = {.topo = &topo, .client.fd = -1, .state = TOOL_HOST_UP};

		sio_fail(&err, -EPROTO, "so it is");
		assert_false(tool_host_lost(&hosts, &own, &err));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_without_end),
		cmocka_unit_test(refusals_of_another_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
