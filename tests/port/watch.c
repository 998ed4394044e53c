/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WATCH with descriptors, most of which are not what they are said to be. A refused one must be
 * closed by the other end, and nothing else may have changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port.h"

#define PAGE 4096

static int fault_fd(void)
{
	return (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
}

static int handshake(int fd)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP |
					     UFFD_FEATURE_WP_HUGETLBFS_SHMEM};

	return ioctl(fd, UFFDIO_API, &api);
}

/* A userfaultfd with @page registered. */
static int registered(void *page)
{
	struct uffdio_register reg = {.range = {.start = (uintptr_t)page, .len = PAGE},
				      .mode = UFFDIO_REGISTER_MODE_WP};
	int fd = fault_fd();

	if (fd >= 0 && (handshake(fd) < 0 || ioctl(fd, UFFDIO_REGISTER, &reg) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* One of a process that is gone. */
static int of_the_dead(void *page)
{
	int pair[2], fd = -1;
	union {
		struct cmsghdr align;
		char data[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = &(char){0}, .iov_len = 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.data,
			   .msg_controllen = sizeof(control.data)};
	struct cmsghdr *c;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		fd = registered(page);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
		_exit(fd < 0 || sendmsg(pair[1], &m, 0) != 1);
	}
	waitpid(pid, NULL, 0);
	if (recvmsg(pair[0], &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == 1 && (c = CMSG_FIRSTHDR(&m)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	close(pair[0]);
	close(pair[1]);
	return fd;
}

/* Ask with @fd (closed here), and look that the room keeps just as many as it should. */
static void ask(struct port_world *w, int fd, uint64_t address, uint64_t length, int error)
{
	uint64_t digest = 0, digest_after = 0;
	int rc = -ETIMEDOUT;
	union port_packet req, answer;
	struct sio_req_watch *m = (void *)&req;
	long before, after;
	unsigned n;

	if (port_digest(w, &digest))
		return;
	before = w->t->descriptors(w->ctx);
	port_good(w, SIO_OP_WATCH, &req);
	m->kind = SIO_WATCH_FAULT;
	m->address = address;
	m->length = length;
	req.req.cookie = ++w->cookie;
	w->t->send(w->ctx, 0, &req, req.req.size, &fd, 1);
	close(fd);
	if (port_await(w, 0, req.req.cookie, &answer, &n) == 0)
		rc = port_check_answer(w, &req.req, &answer, n, NULL);
	if (rc != error)
		port_failed(w, "answered %d (%s), %d is right", rc, rc < 0 ? answer.error.text : "",
			    error);
	if (rc == 0) {
		port_good(w, SIO_OP_UNWATCH, &req);
		((struct sio_req_unwatch *)(void *)&req)->id =
			((const struct sio_evt_watch *)(const void *)&answer)->id;
		if (port_ask(w, 0, &req, req.req.size, &answer, NULL))
			port_failed(w, "it cannot be ended");
	}
	if (port_digest(w, &digest_after))
		return;
	after = w->t->descriptors(w->ctx);
	if (digest != digest_after)
		port_failed(w, "something has changed");
	if (before != after)
		port_failed(w, "%ld descriptors became %ld", before, after);
}

static void ask_row(struct port_world *w, const char *what, int fd, uint64_t address,
		    uint64_t length, int error)
{
	if (fd < 0)
		port_failed(w, "no descriptor to try with: %s", strerror(errno));
	else if (port_things_make(w) == 0)
		ask(w, fd, address, length, error);
	port_things_end(w);
	port_report(w, what);
}

void port_watch(struct port_world *w)
{
	int mem = memfd_create("watched", MFD_CLOEXEC), pipes[2] = {-1, -1}, fd = fault_fd();
	char *page = MAP_FAILED;
	uint64_t at;

	if (mem >= 0 && ftruncate(mem, PAGE) == 0)
		page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	if (page == MAP_FAILED || pipe2(pipes, O_CLOEXEC) < 0) {
		port_failed(w, "no memory or pipe to try with: %s", strerror(errno));
		port_report(w, "WATCH with descriptors");
		return;
	}
	at = (uintptr_t)page;
	ask_row(w, "WATCH of a fault by a pipe", pipes[0], at, PAGE, -EBADF);
	close(pipes[1]);
	ask_row(w, "WATCH of a fault by an eventfd", eventfd(0, EFD_CLOEXEC), at, PAGE, -EBADF);
	ask_row(w, "WATCH of a fault by a memory", mem, at, PAGE, -EBADF);
	ask_row(w, "WATCH of a fault by a file called so",
		open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), at, PAGE, -EBADF);
	if (fd < 0) {
		port_report(w, "WATCH of a fault # SKIP this machine refuses userfaultfd");
		goto unmap;
	}
	ask_row(w, "WATCH by a userfaultfd without its handshake", fd, at, PAGE, -EINVAL);
	fd = fault_fd();
	handshake(fd);
	ask_row(w, "WATCH of pages that are not registered", fd, at, PAGE, -ENOENT);
	ask_row(w, "WATCH of pages beside the registered", registered(page), at + PAGE, PAGE,
		-ENOENT);
	ask_row(w, "WATCH of no address", registered(page), 0, PAGE, -EINVAL);
	ask_row(w, "WATCH of half a page", registered(page), at + 1, PAGE, -EINVAL);
	ask_row(w, "WATCH of an address that wraps", registered(page), ~0xfffULL, PAGE, -EINVAL);
	ask_row(w, "WATCH of the kernel's addresses", registered(page), ~0x1fffULL, PAGE, -EINVAL);
	ask_row(w, "WATCH of more pages than the view has", registered(page), at, 1ULL << 40,
		-EINVAL);
	ask_row(w, "WATCH of a dead process", of_the_dead(page), at, PAGE, -ESRCH);
	ask_row(w, "WATCH by a userfaultfd", registered(page), at, PAGE, 0);
unmap:
	munmap(page, PAGE);
}
