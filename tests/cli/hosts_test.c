/* SPDX-License-Identifier: BSD-2-Clause */
/* What other machines' daemons answer, by way of ours: refusals, and lists that do not end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/command.h"
#include "base/hosts.h"

#define OTHER 8

#define SILENT 2 /* of three */

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

static void reply(int fd, struct sio_msg *h, size_t len, uint32_t type, sio_le32 id, uint32_t error)
{
	*h = (struct sio_msg){.size = sio_to_le32((uint32_t)len),
			      .type = sio_to_le32(type),
			      .id = id,
			      .error = sio_to_le32(error)};
	assert_int_equal(send(fd, h, len, MSG_NOSIGNAL), len);
}

/* Answers when it has been asked about all three, and of the last one alone what it was asked. */
static void answer_when_asked_about_all(int listener)
{
	struct sio_rep_hello welcome = {.node = sio_to_le32(4)};
	struct sio_msg_error no = {.text = "it does not answer"};
	struct sio_rep_list rows = {.count = sio_to_le32(1)};
	struct sio_msg_hello hello;
	struct sio_msg_list req[SILENT + 1];
	int fd[SILENT + 1];

	for (int i = 0; i <= SILENT; i++) {
		fd[i] = accept(listener, NULL, NULL);
		assert_true(fd[i] >= 0);
		assert_int_equal(recv(fd[i], &hello, sizeof(hello), 0), sizeof(hello));
		reply(fd[i], &welcome.h, sizeof(welcome), SIO_MSG_HELLO, hello.h.id, 0);
		assert_int_equal(recv(fd[i], &req[i], sizeof(req[i]), 0), sizeof(req[i]));
	}
	for (int i = 0; i < SILENT; i++)
		reply(fd[i], &no.h, sizeof(no), SIO_MSG_LIST, req[i].h.id, ETIMEDOUT);
	rows.row[0].node = req[SILENT].node;
	rows.row[0].bytes = sio_to_le64(12345);
	reply(fd[SILENT], &rows.h, sizeof(rows), SIO_MSG_LIST, req[SILENT].h.id, 0);
}

/* Whoever does not answer is waited for once, however many they are. */
static void all_are_asked_at_once(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	static struct sio_topology t;
	static struct tool_hosts h;
	char dir[] = "/tmp/hosts_test.XXXXXX";
	int fd, status;
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/local", dir);
	snprintf(h.dir, sizeof(h.dir), "%s", dir);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 8), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		answer_when_asked_about_all(fd);
		_exit(0);
	}
	h.topology = &t;
	t.host = calloc(SILENT + 1, sizeof(*t.host));
	t.n_hosts = h.n = SILENT + 1;
	for (unsigned i = 0; i < h.n; i++) {
		t.host[i] = (struct sio_topo_host){.name = "b", .node = 8 + i, .real = true};
		h.host[i] = (struct tool_host){
			.topo = &t.host[i], .client.fd = -1, .state = TOOL_HOST_AWAY};
	}
	tool_hosts_ask_others(&h);
	for (unsigned i = 0; i < SILENT; i++) {
		assert_int_equal(h.host[i].state, TOOL_HOST_SILENT);
		assert_false(h.host[i].answers);
		assert_int_equal(h.host[i].why.code, -ETIMEDOUT);
	}
	assert_true(h.host[SILENT].answers);
	assert_int_equal(t.host[SILENT].ram_size, 12345);
	assert_int_equal(h.host[SILENT].client.of, 8 + SILENT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	tool_client_close(&h.host[SILENT].client);
	free(t.host);
	close(fd);
	unlink(a.sun_path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_without_end),
		cmocka_unit_test(refusals_of_another_machine),
		cmocka_unit_test(all_are_asked_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
