/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything at once, on a kernel that looks for mistakes: programs that map, touch, protect, fork
 * and are killed, while views are closed, owners end, the function is reset, unbound and bound, and
 * the daemon starts again. What counts is what the kernel says, that all is answered, and that
 * nothing is left. usage: shim_stress DEVICE-NODE ROUNDS SEED
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim.h"

#define PROGRAMS 3
#define VIEWS 3
#define STEPS 40

struct round {
	struct port_world *w;
	unsigned seed;
	int ready[2];		 /* a pipe: programs have released the port */
	int owner_fd, fd[VIEWS]; /* registers, doorbells, memory */
	uint64_t owner, id[VIEWS];
	pid_t pid[PROGRAMS];
	char bdf[64];
	bool bound;
};

void port_report(struct port_world *w, const char *what)
{
	(void)w;
	(void)what;
}

/* ---- a program ---- */

static void touch(volatile uint32_t *at, int view, unsigned *seed)
{
	unsigned word = (unsigned)rand_r(seed) % (SHIM_PAGE / 4);

	(void)at[word];
	if (view)
		at[word] = 0; /* of registers only a closed view may be written: else the drive
				 starts */
}

static void disturb(void *at, int fd, int view, unsigned *seed)
{
	int prot = view ? PROT_READ | PROT_WRITE : PROT_READ;
	pid_t pid;

	switch (rand_r(seed) % 6) {
	case 0:
		mprotect(at, SHIM_PAGE, PROT_NONE);
		mprotect(at, SHIM_PAGE, prot);
		break;
	case 1:
		madvise(at, SHIM_PAGE, MADV_DONTNEED);
		break;
	case 2:
		mmap(at, SHIM_PAGE, prot, MAP_SHARED | MAP_FIXED, fd, 0);
		break;
	case 3:
		pid = fork();
		if (pid == 0) {
			touch(at, view, seed);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		break;
	default:
		break;
	}
}

static void program(const struct round *r, unsigned seed)
{
	void *at[VIEWS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	r->w->t->close(r->w->ctx); /* the port is the daemon's */
	if (write(r->ready[1], "", 1) != 1)
		_exit(1);
	for (int i = 0; i < VIEWS; i++)
		at[i] = mmap(NULL, SHIM_PAGE, i ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
			     r->fd[i], 0);
	for (;;) {
		int i = rand_r(&seed) % VIEWS;

		if (at[i] == MAP_FAILED)
			continue;
		for (int k = 0; k < 20; k++)
			touch(at[i], i, &seed);
		disturb(at[i], r->fd[i], i, &seed);
	}
}

/* ---- the daemon ---- */

/* Whatever the answer is: there must be one. */
static int try(struct round *r, struct shim_ask *a)
{
	int rc = shim_ask(r->w, a, -1);

	r->w->n_events = 0;
	return rc;
}

static void make_view(struct round *r, int i, uint64_t offset)
{
	struct shim_ask a;

	shim_good(r->w, &a, i == 2 ? SIO_OP_ALLOC : SIO_OP_BAR, r->owner);
	if (i < 2)
		((struct sio_req_bar *)(void *)&a.req)->offset = offset;
	r->fd[i] = -1;
	if (try(r, &a) == 0) {
		r->id[i] = shim_id(&a);
		r->fd[i] = a.fd[0];
	}
}

static void sysfs(struct round *r, const char *file)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/smartio/%s", file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (write(fd, r->bdf, strlen(r->bdf)) < 0)
		port_failed(r->w, "%s: %s", path, strerror(errno));
	close(fd);
}

static void open_device(struct round *r)
{
	struct shim_ask a;

	shim_good(r->w, &a, SIO_OP_DEVICE_OPEN, 0);
	try(r, &a);
}

/* One thing that may happen at any time. */
static void happen(struct round *r)
{
	struct shim_ask a;
	int i = rand_r(&r->seed) % VIEWS;

	switch (rand_r(&r->seed) % 12) {
	case 0:
		shim_good(r->w, &a, SIO_OP_RESET, 0);
		try(r, &a);
		break;
	case 1: /* not waited for */
		shim_good(r->w, &a, SIO_OP_RESET, 0);
		a.req.req.cookie = ++r->w->cookie;
		r->w->t->send(r->w->ctx, 0, &a.req, a.req.req.size, NULL, 0);
		break;
	case 2:
		sysfs(r, r->bound ? "unbind" : "bind");
		r->bound = !r->bound;
		open_device(r);
		break;
	case 3:
		shim_good(r->w, &a, i == 2 ? SIO_OP_FREE : SIO_OP_BAR_CLOSE, r->owner);
		((struct sio_req_free *)(void *)&a.req)->id = r->id[i];
		try(r, &a);
		break;
	case 4:
		shim_good(r->w, &a, SIO_OP_OWNER_CLOSE, r->owner);
		if (rand_r(&r->seed) % 4 == 0)
			try(r, &a);
		break;
	case 5:
		kill(r->pid[i], SIGKILL);
		break;
	case 6:
		shim_good(r->w, &a, SIO_OP_RESET, 0);
		((struct sio_req_reset *)(void *)&a.req)->kind = SIO_RESET_DONE;
		try(r, &a);
		break;
	case 7:
		r->w->t->reopen(r->w->ctx, 0);
		break;
	case 8:
		shim_good(r->w, &a, SIO_OP_VECTOR, r->owner);
		((struct sio_req_vector *)(void *)&a.req)->irq =
			shim_make(r->w, SIO_OP_IRQ_NEW, 0, NULL);
		try(r, &a);
		break;
	default:
		shim_good(r->w, &a, SIO_OP_DMAMAP, r->owner);
		((struct sio_req_dmamap *)(void *)&a.req)->target = r->id[2];
		try(r, &a);
	}
}

static void end_round(struct round *r)
{
	struct shim_ask a;

	for (int i = 0; i < PROGRAMS; i++)
		kill(r->pid[i], SIGKILL);
	while (wait(NULL) > 0) /* their children, too, which may outlive them for a moment */
		;
	for (int i = 0; i < VIEWS; i++)
		if (r->fd[i] >= 0)
			close(r->fd[i]);
	close(r->owner_fd);
	if (!r->bound)
		sysfs(r, "bind");
	r->bound = true;
	open_device(r);
	shim_good(r->w, &a, SIO_OP_DEVICE_LIST, 0); /* behind all that was not waited for */
	try(r, &a);
	r->w->t->reopen(r->w->ctx, 0);
	port_things_end(r->w); /* looks that nothing is left */
}

static void play(struct round *r)
{
	r->owner_fd = -1;
	r->owner = shim_make(r->w, SIO_OP_OWNER_NEW, 0, &r->owner_fd);
	make_view(r, 0, 0);
	make_view(r, 1, SHIM_PAGE);
	make_view(r, 2, 0);
	for (int i = 0; i < PROGRAMS; i++) {
		unsigned seed = (unsigned)rand_r(&r->seed);

		r->pid[i] = fork();
		if (r->pid[i] == 0)
			program(r, seed);
	}
	for (int i = 0; i < PROGRAMS; i++)
		if (read(r->ready[0], &(char){0}, 1) != 1)
			port_failed(r->w, "a program does not start");
	for (int i = 0; i < STEPS; i++)
		happen(r);
	end_round(r);
}

int main(int argc, char **argv)
{
	struct port_world w = {.t = &port_device, .served = ~0ULL};
	struct round r = {.w = &w, .bound = true};
	struct shim_ask a;
	int rounds = argc == 4 ? atoi(argv[2]) : 0;

	if (rounds <= 0 || pipe(r.ready) < 0 || w.t->open(argv[1], &w.ctx) < 0) {
		fprintf(stderr, "usage: shim_stress DEVICE-NODE ROUNDS SEED\n");
		return 2;
	}
	r.seed = (unsigned)strtoul(argv[3], NULL, 0);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	w.served &= ~(1ULL << SIO_OP_ADAPTER);
	shim_good(&w, &a, SIO_OP_DEVICE_LIST, 0);
	if (shim_expect(&w, &a, -1, 0, "DEVICE_LIST")) {
		w.thing[T_DEVICE] = shim_id(&a);
		snprintf(r.bdf, sizeof(r.bdf), "%s",
			 ((const struct sio_evt_device *)(const void *)&a.answer)->name);
		open_device(&r);
	}
	for (int i = 0; i < rounds && !w.why[0]; i++)
		play(&r);
	printf("seed %s: %s\n", argv[3], w.why[0] ? w.why : "nothing is left");
	w.t->close(w.ctx);
	return w.why[0] != '\0';
}
