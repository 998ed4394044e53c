/* SPDX-License-Identifier: BSD-2-Clause */
/* Owners of smartio.ko and their ends; a daemon that starts again. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim.h"

static void owner_op(struct port_world *w, uint32_t op, uint64_t owner, uint32_t flags, int error)
{
	struct shim_ask a;

	shim_good(w, &a, op, owner);
	a.req.req.flags = flags;
	shim_expect(w, &a, -1, error, "about an owner");
	shim_close(&a);
}

/* Memory of @owner, mapped for the drive. */
static uint64_t give_to_drive(struct port_world *w, uint64_t owner)
{
	struct shim_ask a;
	uint64_t mem = shim_make(w, SIO_OP_ALLOC, owner, NULL);

	shim_good(w, &a, SIO_OP_DMAMAP, owner);
	((struct sio_req_dmamap *)(void *)&a.req)->target = mem;
	shim_expect(w, &a, -1, 0, "DMAMAP");
	return shim_id(&a);
}

static uint64_t settled(struct port_world *w, uint64_t owner)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_SETTLE, owner);
	if (!shim_expect(w, &a, -1, 0, "SETTLE"))
		return 0;
	return ((const struct sio_evt_settle *)(const void *)&a.answer)->dmamaps;
}

/* Whoever is killed leaves what the drive may reach; a word, a reset, or nobody else, ends it. */
static void death(struct port_world *w, bool by_reset)
{
	uint32_t mems = shim_count(w, SIO_KIND_MEM), maps = shim_count(w, SIO_KIND_DMAMAP);
	union port_packet evt;
	struct shim_ask a;
	uint64_t owner;
	int fd = -1;
	pid_t pid;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);
	give_to_drive(w, owner);
	shim_make(w, SIO_OP_ALLOC, owner, NULL);
	shim_make(w, SIO_OP_BAR, owner, NULL);
	shim_make(w, SIO_OP_IRQ_NEW, owner, NULL);
	pid = fork(); /* it has a copy, as a program has */
	if (pid == 0)
		for (;;)
			pause();
	close(fd);
	shim_check(w, shim_count(w, SIO_KIND_MEM) == mems + 2, "it lives while a copy is open");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	shim_event(w, SIO_EV_OWNER_GONE, &evt);
	shim_check(w, shim_count(w, SIO_KIND_MEM) == mems + 1, "memory of the drive stays");
	shim_check(w, shim_count(w, SIO_KIND_DMAMAP) == maps + 1, "and its mapping");
	shim_check(w, shim_count(w, SIO_KIND_BAR) == 0, "views do not");
	shim_check(w, shim_count(w, SIO_KIND_IRQ) == 0, "interrupts do not");
	if (by_reset) {
		shim_good(w, &a, SIO_OP_RESET, 0);
		if (shim_expect(w, &a, -1, 0, "RESET"))
			shim_check(w, ((const struct sio_evt_reset *)(void *)&a.answer)->freed == 1,
				   "a reset ends the quarantine");
	} else {
		shim_check(w, settled(w, owner) == 1, "a word ends the quarantine");
	}
	shim_event(w, SIO_EV_OWNER_END, &evt);
	shim_check(w, shim_count(w, SIO_KIND_MEM) == mems, "nothing is left");
	owner_op(w, SIO_OP_OWNER_CLOSE, owner, 0, -ENOENT);
	port_report(w, by_reset ? "a death, and a reset" : "a death, and a word");
}

/* Memory that was given to the daemon outlives who had it. */
static void given(struct port_world *w)
{
	uint32_t mems = shim_count(w, SIO_KIND_MEM);
	union port_packet evt;
	struct shim_ask a;
	uint64_t owner, mem;
	char *at;
	int fd = -1, mem_fd = -1;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);
	mem = shim_make(w, SIO_OP_ALLOC, owner, &mem_fd);
	shim_make(w, SIO_OP_ALLOC, owner, NULL);
	at = shim_map(w, mem_fd, SHIM_PAGE, PROT_READ | PROT_WRITE);
	shim_good(w, &a, SIO_OP_GIVE, owner);
	((struct sio_req_give *)(void *)&a.req)->id = mem;
	shim_expect(w, &a, -1, 0, "GIVE");
	shim_expect(w, &a, -1, -EPERM, "GIVE once more");
	if (at)
		*at = 0x77;
	close(fd);
	shim_event(w, SIO_EV_OWNER_GONE, &evt);
	shim_event(w, SIO_EV_OWNER_END, &evt);
	shim_check(w, shim_count(w, SIO_KIND_MEM) == mems + 1, "what was given stays, and no more");
	shim_check(w, at && *at == 0x77, "nobody who has it mapped notices");
	shim_good(w, &a, SIO_OP_REOPEN, 0);
	((struct sio_req_reopen *)(void *)&a.req)->kind = SIO_KIND_MEM;
	((struct sio_req_reopen *)(void *)&a.req)->id = mem;
	shim_expect(w, &a, -1, 0, "REOPEN");
	shim_close(&a);
	shim_good(w, &a, SIO_OP_FREE, 0);
	((struct sio_req_free *)(void *)&a.req)->id = mem;
	shim_expect(w, &a, -1, 0, "FREE by the daemon");
	shim_check(w, shim_count(w, SIO_KIND_MEM) == mems, "nothing is left");
	if (at)
		munmap(at, SHIM_PAGE);
	close(mem_fd);
	port_report(w, "memory that is given");
}

/* An owner in the list; kind 0: it is not there. */
static struct sio_list_entry listed(struct port_world *w, uint64_t owner)
{
	const struct sio_evt_list *evt;
	struct sio_req_list *r;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_LIST, 0);
	r = (void *)&a.req;
	r->kind = SIO_KIND_OWNER;
	r->after = owner - 1;
	evt = (const void *)&a.answer;
	if (!shim_expect(w, &a, -1, 0, "LIST") || evt->count == 0 || evt->entry[0].id != owner)
		return (struct sio_list_entry){.kind = 0};
	return evt->entry[0];
}

static void children(struct port_world *w)
{
	struct sio_list_entry e;
	uint64_t parent, child, grandchild, mems = shim_count(w, SIO_KIND_MEM);
	int fd = -1;
	union port_packet evt;
	struct shim_ask a;

	parent = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);
	shim_good(w, &a, SIO_OP_OWNER_NEW, parent);
	a.req.req.flags = SIO_OWNER_CHILD;
	shim_expect(w, &a, -1, 0, "a child");
	shim_check(w, a.n_fds == 0, "a child has no descriptor");
	child = shim_id(&a);
	a.req.req.owner = child;
	shim_expect(w, &a, -1, 0, "a grandchild");
	grandchild = shim_id(&a);
	shim_make(w, SIO_OP_ALLOC, grandchild, NULL);
	give_to_drive(w, child);
	owner_op(w, SIO_OP_OWNER_CLOSE, parent, 0, 0);
	shim_check(w, shim_count(w, SIO_KIND_MEM) == mems + 1,
		   "all of the family's has gone but what the drive may reach");
	shim_event(w, SIO_EV_OWNER_END, &evt);
	shim_event(w, SIO_EV_OWNER_END, &evt);
	shim_check(w, listed(w, parent).kind == 0, "the parent has gone");
	e = listed(w, child);
	shim_check(w, e.state == SIO_STATE_QUARANTINED && e.owner == parent,
		   "a child in quarantine still tells whose it was");
	shim_check(w, settled(w, child) == 1, "a word ends it");
	shim_event(w, SIO_EV_OWNER_END, &evt);
	owner_op(w, SIO_OP_OWNER_NEW, child, SIO_OWNER_CHILD, -ENOENT);
	close(fd);
	port_report(w, "owners have children");
}

static uint64_t identify(struct port_world *w, int fd, int error)
{
	const struct sio_evt_identify *evt;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_IDENTIFY, 0);
	evt = (const void *)&a.answer;
	return shim_expect(w, &a, fd, error, "IDENTIFY") && !error && evt->state == SIO_STATE_LIVE
		       ? evt->id
		       : 0;
}

/* Everything that programs hold is still there, and the next daemon finds it. */
static void restart(struct port_world *w)
{
	uint64_t owner, mem, before = 0, after = 0;
	int owner_fd = -1, mem_fd = -1, wrong = dup(1);
	struct sio_req_reopen *r;
	struct shim_ask a;
	char *old, *again;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &owner_fd);
	mem = shim_make(w, SIO_OP_ALLOC, owner, &mem_fd);
	give_to_drive(w, owner);
	old = shim_map(w, mem_fd, SHIM_PAGE, PROT_READ | PROT_WRITE);
	strcpy(old, "as it was");
	port_digest(w, &before);
	shim_good(w, &a, SIO_OP_ALLOC, owner); /* an answer that nobody reads */
	if (w->t->reopen(w->ctx, 0) < 0)
		port_failed(w, "cannot be opened again: %s", strerror(errno));
	port_digest(w, &after);
	shim_check(w, before == after, "LIST tells the same");
	shim_check(w, identify(w, owner_fd, 0) == owner, "the owner proves itself");
	shim_check(w, identify(w, mem_fd, 0) == mem, "and the memory");
	identify(w, wrong, -EBADF);
	identify(w, -1, -EBADF);
	shim_good(w, &a, SIO_OP_REOPEN, 0);
	r = (void *)&a.req;
	r->kind = SIO_KIND_OWNER;
	r->id = owner;
	shim_expect(w, &a, -1, -EINVAL, "REOPEN of an owner");
	r->kind = SIO_KIND_BAR;
	shim_expect(w, &a, -1, -ENOENT, "REOPEN of no view");
	r->kind = SIO_KIND_MEM;
	r->id = mem;
	if (shim_expect(w, &a, -1, 0, "REOPEN of memory")) {
		again = shim_map(w, a.fd[0], SHIM_PAGE, PROT_READ);
		shim_check(w, again && strcmp(again, "as it was") == 0, "it is that memory");
		munmap(again, SHIM_PAGE);
		shim_close(&a);
	}
	owner_op(w, SIO_OP_OWNER_CLOSE, owner, 0, 0);
	/* To VFIO its descriptor is any pipe's then. */
	shim_check(w, identify(w, owner_fd, w->t == &port_vfio ? -EBADF : 0) == 0,
		   "an ended owner proves nothing");
	shim_good(w, &a, SIO_OP_REOPEN, 0);
	r->kind = SIO_KIND_MEM;
	r->id = mem;
	shim_expect(w, &a, -1, -ENOENT, "REOPEN of what has gone");
	munmap(old, SHIM_PAGE);
	close(owner_fd);
	close(mem_fd);
	close(wrong);
	port_report(w, "a daemon that starts again");
}

/* An owner whose descriptor nobody read ends; what was asked for has happened. */
static void unread(struct port_world *w)
{
	uint32_t owners = shim_count(w, SIO_KIND_OWNER), mems = shim_count(w, SIO_KIND_MEM);
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_OWNER_NEW, 0);
	w->t->send(w->ctx, 0, &a.req, a.req.req.size, NULL, 0);
	shim_good(w, &a, SIO_OP_ALLOC, 0);
	w->t->send(w->ctx, 0, &a.req, a.req.req.size, NULL, 0);
	w->t->reopen(w->ctx, 0);
	shim_check(w, shim_count(w, SIO_KIND_OWNER) == owners, "the owner has ended");
	shim_check(w, shim_count(w, SIO_KIND_MEM) == mems + 1, "the memory is there");
	port_things_end(w);
	port_report(w, "answers that nobody read");
}

static int remove_module(void)
{
	return syscall(SYS_delete_module, "smartio", O_NONBLOCK) < 0 ? errno : 0;
}

/* While anything is open or mapped the module stays, and works on. */
static void module_stays(struct port_world *w)
{
	int fd = -1;
	char *at;

	shim_check(w, remove_module() == EAGAIN, "the port is open");
	shim_make(w, SIO_OP_ALLOC, 0, &fd);
	at = shim_map(w, fd, SHIM_PAGE, PROT_READ | PROT_WRITE);
	close(fd);
	if (w->t->reopen(w->ctx, 0) < 0)
		port_failed(w, "cannot be opened again");
	shim_check(w, remove_module() == EAGAIN, "memory is mapped");
	at[0] = 1;
	munmap(at, SHIM_PAGE);
	port_things_end(w);
	port_report(w, "the module stays while it is used");
}

void shim_owners(struct port_world *w)
{
	death(w, false);
	death(w, true);
	given(w);
	children(w);
	restart(w);
	unread(w);
	if (w->t == &port_device)
		module_stays(w);
}
