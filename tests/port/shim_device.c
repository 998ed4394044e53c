/* SPDX-License-Identifier: BSD-2-Clause */
/* The device goes while it is mapped, and comes back. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim.h"

#define VS 2 /* version register, in words */
#define ONES 0xffffffffu

static int view(struct port_world *w, uint64_t owner, uint32_t access, uint64_t *ret_id)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_BAR, owner);
	((struct sio_req_bar *)(void *)&a.req)->offset = 0;
	((struct sio_req_bar *)(void *)&a.req)->access = access;
	if (!shim_expect(w, &a, -1, 0, "BAR"))
		return -1;
	*ret_id = shim_id(&a);
	return a.fd[0];
}

/* A closed view reads as ones at once, for all who have it; stores go nowhere else. */
static void closed_view(struct port_world *w)
{
	volatile uint32_t *at, *other;
	struct shim_ask a;
	uint64_t id = 0, id2 = 0;
	int fd = view(w, 0, 3, &id), fd2 = view(w, 0, 1, &id2), status = -1;
	pid_t pid;

	at = shim_map(w, fd, SHIM_PAGE, PROT_READ | PROT_WRITE);
	other = shim_map(w, fd2, SHIM_PAGE, PROT_READ);
	if (!at || !other)
		goto out;
	shim_check(w, at[VS] != ONES && other[VS] == at[VS], "registers can be read");
	shim_check(w,
		   mmap(NULL, SHIM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd2, 0) == MAP_FAILED,
		   "a view for reading cannot be written");
	shim_check(w, mprotect((void *)(uintptr_t)other, SHIM_PAGE, PROT_READ | PROT_WRITE) < 0,
		   "nor made so");
	shim_good(w, &a, SIO_OP_BAR_CLOSE, 0);
	((struct sio_req_bar_close *)(void *)&a.req)->id = id;
	shim_expect(w, &a, -1, 0, "BAR_CLOSE");
	shim_check(w, at[VS] == ONES, "a closed view reads as ones");
	at[VS] = 0x1234;
	shim_check(w, at[VS] == 0x1234 && at[VS + 1] == ONES, "a store stays in the view");
	shim_check(w, other[VS] != ONES && other[VS] != 0x1234, "other views are as before");
	pid = fork();
	if (pid == 0) {
		at[0] = 1;
		_exit(at[VS] != 0x1234 || at[1] != ONES);
	}
	waitpid(pid, &status, 0);
	shim_check(w, status == 0, "a child sees the same");
	((struct sio_req_bar_close *)(void *)&a.req)->id = id2;
	shim_expect(w, &a, -1, 0, "BAR_CLOSE");
	shim_check(w, other[VS] == ONES, "a view for reading, too");
	munmap((void *)(uintptr_t)at, SHIM_PAGE);
	munmap((void *)(uintptr_t)other, SHIM_PAGE);
out:
	close(fd);
	close(fd2);
	port_report(w, "a closed view reads as ones");
}

/* After mprotect() to and fro stores still reach the device. */
static void protected_view(struct port_world *w)
{
	uint64_t id;
	int fd = view(w, 0, 3, &id);
	volatile uint32_t *at = shim_map(w, fd, SHIM_PAGE, PROT_READ | PROT_WRITE);

	if (at) {
		at[9] = 0; /* admin queue attributes */
		mprotect((void *)(uintptr_t)at, SHIM_PAGE, PROT_READ);
		shim_check(w, at[9] == 0, "read");
		mprotect((void *)(uintptr_t)at, SHIM_PAGE, PROT_READ | PROT_WRITE);
		at[9] = 0x000f000f;
		shim_check(w, at[9] == 0x000f000f, "a store reaches the drive");
		munmap((void *)(uintptr_t)at, SHIM_PAGE);
	}
	close(fd);
	port_things_end(w);
	port_report(w, "a view that is protected for a while");
}

static void find_again(struct port_world *w)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_DEVICE_LIST, 0);
	if (!shim_expect(w, &a, -1, 0, "DEVICE_LIST"))
		return;
	shim_check(w, shim_id(&a) == w->thing[T_DEVICE], "the place has its number");
	shim_good(w, &a, SIO_OP_BAR, 0);
	shim_expect(w, &a, -1, -EPERM, "BAR of what is not open");
	shim_good(w, &a, SIO_OP_DEVICE_OPEN, 0);
	a.req.req.flags = 0;
	shim_expect(w, &a, -1, 0, "DEVICE_OPEN without force");
}

/* Unbound while an owner has it mapped, and another has died. */
static void gone_device(struct port_world *w, const char *bdf)
{
	uint64_t id, owner, dead, map;
	int fd, owner_fd = -1, dead_fd = -1;
	volatile uint32_t *at, *untouched;
	union port_packet evt;
	struct shim_ask a;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &owner_fd);
	dead = shim_make(w, SIO_OP_OWNER_NEW, 0, &dead_fd);
	fd = view(w, owner, 3, &id);
	at = shim_map(w, fd, SHIM_PAGE, PROT_READ | PROT_WRITE);
	untouched = shim_map(w, fd, SHIM_PAGE, PROT_READ | PROT_WRITE);
	shim_check(w, at[VS] != ONES, "it is there");
	shim_good(w, &a, SIO_OP_DMAMAP, owner);
	((struct sio_req_dmamap *)(void *)&a.req)->target = shim_make(w, SIO_OP_ALLOC, owner, NULL);
	shim_expect(w, &a, -1, 0, "DMAMAP");
	map = shim_id(&a);
	a.req.req.owner = dead;
	((struct sio_req_dmamap *)(void *)&a.req)->target = shim_make(w, SIO_OP_ALLOC, dead, NULL);
	shim_expect(w, &a, -1, 0, "DMAMAP");
	close(dead_fd);
	shim_event(w, SIO_EV_OWNER_GONE, &evt);
	shim_sysfs(w, "bus/pci/drivers/smartio/unbind", bdf);
	shim_check(w, at[VS] == ONES && untouched[VS] == ONES, "it reads as ones");
	at[VS] = 5;
	shim_check(w, at[VS] == 5 && at[VS + 1] == ONES, "a store stays there");
	shim_check(w, untouched[VS] == ONES, "others read ones");
	shim_event(w, SIO_EV_DEVICE_GONE, &evt);
	shim_event(w, SIO_EV_OWNER_END, &evt);
	shim_good(w, &a, SIO_OP_RESET, 0);
	shim_expect(w, &a, -1, -ENODEV, "RESET of what has gone");
	shim_good(w, &a, SIO_OP_BAR, owner);
	shim_expect(w, &a, -1, -ENODEV, "BAR of what has gone");
	shim_good(w, &a, SIO_OP_DMAUNMAP, owner);
	((struct sio_req_dmaunmap *)(void *)&a.req)->id = map;
	shim_expect(w, &a, -1, 0, "DMAUNMAP of what has gone");
	shim_sysfs(w, "bus/pci/drivers/smartio/bind", bdf);
	shim_event(w, SIO_EV_DEVICE_BACK, &evt);
	find_again(w);
	shim_check(w, at[VS] == 5, "the old view stays cut off");
	close(owner_fd);
	shim_event(w, SIO_EV_OWNER_END, &evt);
	shim_check(w, at[VS] == 5, "also without its owner");
	munmap((void *)(uintptr_t)at, SHIM_PAGE);
	munmap((void *)(uintptr_t)untouched, SHIM_PAGE);
	close(fd);
	port_report(w, "the device goes and comes back");
}

/* Requests behind a reset wait for it; the device may go in the middle of it. */
static void reset_races(struct port_world *w, const char *bdf)
{
	uint64_t id, first, second;
	struct shim_ask a, b;
	int fd = view(w, 0, 3, &id);
	volatile uint32_t *at = shim_map(w, fd, SHIM_PAGE, PROT_READ | PROT_WRITE);

	shim_good(w, &a, SIO_OP_RESET, 0);
	first = shim_send(w, &a);
	shim_good(w, &b, SIO_OP_BAR, 0);
	second = shim_send(w, &b);
	shim_check(w, at[VS] != ONES, "who looks during a reset waits");
	if (port_await(w, 0, first, &a.answer, &a.n_fds) == 0)
		shim_check(w, a.answer.evt.error == 0, "the reset is done");
	if (port_await(w, 0, second, &b.answer, &b.n_fds) == 0)
		shim_check(w, b.answer.evt.error == 0, "then the view is made");
	w->t->send(w->ctx, 0, &a.req, a.req.req.size, NULL, 0);
	shim_sysfs(w, "bus/pci/drivers/smartio/unbind", bdf);
	if (port_await(w, 0, first, &a.answer, &a.n_fds) == 0)
		shim_check(w, a.answer.evt.error == 0 || a.answer.evt.error == -ENODEV,
			   "the reset is answered");
	shim_check(w, at[VS] == ONES, "it has gone");
	shim_sysfs(w, "bus/pci/drivers/smartio/bind", bdf);
	munmap((void *)(uintptr_t)at, SHIM_PAGE);
	close(fd);
	shim_good(w, &a, SIO_OP_DEVICE_OPEN, 0);
	shim_expect(w, &a, -1, 0, "DEVICE_OPEN");
	port_things_end(w);
	port_report(w, "resets, and what comes between");
}

/* What ends a view, or the owner of one, does not wait for a reset of its device. */
static void closed_in_reset(struct port_world *w)
{
	uint64_t id = 0, other = 0, owner, reset, first;
	int fd = view(w, 0, 3, &id), owner_fd = -1, fd2;
	volatile uint32_t *at = shim_map(w, fd, SHIM_PAGE, PROT_READ | PROT_WRITE), *at2;
	struct shim_ask a, b;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &owner_fd);
	fd2 = view(w, owner, 3, &other);
	at2 = shim_map(w, fd2, SHIM_PAGE, PROT_READ | PROT_WRITE);
	shim_check(w, at[VS] != ONES && at2[VS] != ONES, "registers can be read");
	shim_good(w, &a, SIO_OP_RESET, 0);
	reset = shim_send(w, &a);
	/* It takes 100 ms, in a thread; that has begun long before these are over. */
	for (unsigned i = 0; i < 20; i++) {
		shim_good(w, &b, SIO_OP_STATUS, 0);
		shim_expect(w, &b, -1, 0, "STATUS");
		shim_close(&b);
	}
	shim_good(w, &b, SIO_OP_BAR_CLOSE, 0);
	((struct sio_req_bar_close *)(void *)&b.req)->id = id;
	first = shim_send(w, &b);
	close(owner_fd); /* the last descriptor of a program that dies */
	if (w->t->event(w->ctx, 0, &b.answer, sizeof(b.answer), b.fd, &b.n_fds) > 0)
		shim_check(w, b.answer.evt.cookie == first && b.answer.evt.error == 0,
			   "the close is answered first");
	if (port_await(w, 0, reset, &a.answer, &a.n_fds) == 0)
		shim_check(w, a.answer.evt.error == 0, "the reset is done");
	shim_check(w, at[VS] == ONES && at2[VS] == ONES, "both read as ones from then on");
	at[VS] = 5;
	shim_check(w, at[VS] == 5, "and a store stays in the view");
	munmap((void *)(uintptr_t)at, SHIM_PAGE);
	munmap((void *)(uintptr_t)at2, SHIM_PAGE);
	close(fd);
	close(fd2);
	port_things_end(w);
	port_report(w, "a view that is closed while its device is reset");
}

void shim_devices(struct port_world *w)
{
	struct shim_ask a;
	char bdf[64];

	shim_good(w, &a, SIO_OP_DEVICE_LIST, 0);
	if (shim_expect(w, &a, -1, 0, "DEVICE_LIST")) {
		snprintf(bdf, sizeof(bdf), "%s",
			 ((const struct sio_evt_device *)(const void *)&a.answer)->name);
		closed_view(w);
		protected_view(w);
		closed_in_reset(w);
		gone_device(w, bdf);
		reset_races(w, bdf);
		return;
	}
	port_report(w, "a device to lose");
}
