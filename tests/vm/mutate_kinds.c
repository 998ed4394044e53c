/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mutate.h"
#include "smartio/uapi.h"

#define PIECE (4u << 20) /* what the kernel gives at once */
#define PIECES 128u
#define ID 4 /* word of an answer: the id of what was made */

bool become(uid_t uid)
{
	return setgid(uid) == 0 && setuid(uid) == 0;
}

/* One request; its answer, in words, and the descriptors that came with it. */
static bool ask(int port, void *request, uint64_t *answer, int fd[2])
{
	struct sio_req *h = request;
	struct sio_ioc_packet packet = {
		.data = (uintptr_t)request, .answer = (uintptr_t)answer, .size = h->size};
	const struct sio_evt *e = (const void *)answer;

	h->cookie = 1;
	if (ioctl(port, SIO_IOC_REQUEST, &packet) < 0)
		return false;
	for (uint32_t i = 0; i < packet.n_fds && i < 2; i++)
		fd[i] = packet.fd[i];
	return e->error == 0;
}

/* ---- others ---- */

static struct {
	int fd[PIECES];
	unsigned n;
	pid_t pid;
	int line; /* closed: look, and end */
} others;

static uint64_t pattern(uint64_t i)
{
	return (i + 1) * 0x9e3779b97f4a7c15ull;
}

/* Who holds them: fills them, and looks at them when the line is closed. */
static void hold_others(int line, uid_t uid)
{
	const size_t words = PIECE / 8;
	uint64_t *at[PIECES];
	size_t bad = 0;
	char c = 0;

	if (!become(uid))
		_exit(1);
	for (unsigned p = 0; p < others.n; p++) {
		at[p] = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED, others.fd[p], 0);
		if (at[p] == MAP_FAILED)
			_exit(1);
		for (size_t i = 0; i < words; i++)
			at[p][i] = pattern(p * words + i);
	}
	if (write(line, &c, 1) != 1)
		_exit(1);
	while (read(line, &c, 1) > 0)
		;
	for (unsigned p = 0; p < others.n; p++)
		for (size_t i = 0; i < words; i++)
			bad += at[p][i] != pattern(p * words + i);
	if (bad)
		printf("mutate: %zu words of others have changed\n", bad);
	fflush(stdout);
	_exit(bad ? 1 : 0);
}

static bool new_owner(int port, uint64_t *ret_id, int *ret_fd)
{
	struct sio_req_owner_new req = {.h = {.size = sizeof(req), .op = SIO_OP_OWNER_NEW}};
	uint64_t answer[SIO_PORT_MAX_PACKET / 8];

	if (!ask(port, &req, answer, ret_fd))
		return false;
	*ret_id = answer[ID];
	return true;
}

static bool new_memory(int port, uint64_t owner, uint64_t size, int *ret_fd)
{
	struct sio_req_alloc req = {.h = {.size = sizeof(req), .op = SIO_OP_ALLOC, .owner = owner},
				    .size = size,
				    .highest = SIO_PORT_ANY,
				    .kind = SIO_ALLOC_CONTIGUOUS};
	uint64_t answer[SIO_PORT_MAX_PACKET / 8];

	return ask(port, &req, answer, ret_fd);
}

bool start_others(int port, size_t megabytes, uid_t uid)
{
	int line[2], owner_fd[2];
	uint64_t owner;
	char c;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) < 0)
		return false;
	/* The owners' descriptors stay open: here, and in who holds the memory. */
	for (; others.n < PIECES && others.n * (PIECE >> 20) < megabytes; others.n++)
		if (!new_owner(port, &owner, owner_fd) ||
		    !new_memory(port, owner, PIECE, &others.fd[others.n]))
			return false;
	others.pid = fork();
	if (others.pid == 0) {
		close(line[0]);
		hold_others(line[1], uid);
	}
	close(line[1]);
	others.line = line[0];
	return others.pid > 0 && read(others.line, &c, 1) == 1;
}

bool others_are_well(void)
{
	int status;

	close(others.line);
	return waitpid(others.pid, &status, 0) == others.pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

/* ---- one of each ---- */

enum { OWNER, MEMORY, BAR, INTERRUPT, TRIGGER, PAGES };
static const char *const names[KINDS] = {"owner", "memory", "BAR", "interrupt", "trigger", "pages"};
static unsigned long had[KINDS];

/* The first device, opened whoever has it. */
static uint64_t open_device(int port)
{
	struct sio_req_device_list list = {.h = {.size = sizeof(list), .op = SIO_OP_DEVICE_LIST}};
	struct sio_req_device_open open = {
		.h = {.size = sizeof(open), .op = SIO_OP_DEVICE_OPEN, .flags = SIO_DEVICE_FORCE}};
	uint64_t answer[SIO_PORT_MAX_PACKET / 8];
	int none[2];

	if (!ask(port, &list, answer, none))
		return 0;
	open.device = answer[ID];
	ask(port, &open, answer, none); /* open it may be already */
	return open.device;
}

static int new_bar(int port, uint64_t owner)
{
	struct sio_req_bar req = {.h = {.size = sizeof(req), .op = SIO_OP_BAR, .owner = owner},
				  .device = open_device(port),
				  .access = SIO_ACCESS_READ,
				  .length = 4096};
	uint64_t answer[SIO_PORT_MAX_PACKET / 8];
	int fd[2] = {-1, -1};

	return ask(port, &req, answer, fd) ? fd[0] : -1;
}

static int pin(int port)
{
	static void *page;
	struct sio_ioc_pin req = {.length = 4096, .access = SIO_ACCESS_READ | SIO_ACCESS_WRITE};

	if (!page)
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	req.address = (uintptr_t)page;
	return page == MAP_FAILED ? -1 : ioctl(port, SIO_IOC_PIN, &req);
}

void one_of_each(int port, int fd[KINDS])
{
	struct sio_req_irq_new irq = {.h = {.size = sizeof(irq), .op = SIO_OP_IRQ_NEW}};
	uint64_t answer[SIO_PORT_MAX_PACKET / 8], owner;
	int got[2] = {-1, -1};

	for (unsigned i = 0; i < KINDS; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
	if (!new_owner(port, &owner, got))
		return;
	fd[OWNER] = got[0];
	if (new_memory(port, owner, 65536, got))
		fd[MEMORY] = got[0];
	fd[BAR] = new_bar(port, owner);
	irq.h.owner = owner;
	if (ask(port, &irq, answer, got)) {
		fd[INTERRUPT] = got[0];
		fd[TRIGGER] = got[1];
	}
	fd[PAGES] = pin(port);
	for (unsigned i = 0; i < KINDS; i++)
		had[i] += fd[i] >= 0;
}

bool had_each(char *text, size_t size)
{
	size_t len = 0;
	bool all = true;

	for (unsigned i = 0; i < KINDS; i++) {
		len += (size_t)snprintf(text + len, size - len, "%s%s %lu", i ? ", " : "", names[i],
					had[i]);
		all = all && had[i];
	}
	return all;
}
