/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * To be loaded before all others (LD_PRELOAD), into tests of the API: of what libsmartio.so itself
 * asks of the C library, the n-th call of a kind fails. SMARTIO_FAIL=KIND:N; KIND: memory
 * (allocations), request (messages to smartiod) or system (what makes other system calls). The
 * counting begins in each program of a test by itself (failure.c). What fails is told to stderr.
 *
 * Two things may follow from a failure that are no mistakes, and look as if they were: what is lost
 * faults where there was no memory to have it read as ones, and a program waits without end for
 * what the failure ended. Both are told as such, and the program gives up.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "failure.h"
#include "sisci_api.h"

enum kind { MEMORY, REQUEST, SYSTEM, KINDS };

static const char *const names[KINDS] = {"memory", "request", "system"};
static uintptr_t begin, end;	  /* of the library's code */
static unsigned counted, failing; /* atomic; failing: 0: none */
static enum kind failing_kind;

/* The next one's function of that name. */
#define REAL(name)                                                                                 \
	static __typeof__(&(name)) real;                                                           \
	if (!real)                                                                                 \
	real = (__typeof__(&(name)))dlsym(RTLD_NEXT, #name)

static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	if (!strstr(info->dlpi_name, "libsmartio.so"))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		begin = info->dlpi_addr + p->p_vaddr;
		end = begin + p->p_memsz;
	}
	return 1;
}

static void say(const char *text)
{
	if (write(2, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
}

/* ---- what is lost faults ---- */

/* The library's own, a range each: no access at all, until something else lies there. */
#define TAKEN 64u
static struct {
	uintptr_t at, end;
} taken[TAKEN];
static unsigned n_taken; /* atomic */

int mprotect(void *at, size_t len, int prot)
{
	uintptr_t caller = (uintptr_t)__builtin_return_address(0);
	unsigned n;

	REAL(mprotect);
	if (prot == PROT_NONE && caller >= begin && caller < end) {
		n = __atomic_fetch_add(&n_taken, 1, __ATOMIC_SEQ_CST) % TAKEN;
		taken[n].at = (uintptr_t)at;
		taken[n].end = (uintptr_t)at + len;
	}
	return real(at, len, prot);
}

/* Any other fault happens once more, with the handler that there was. */
static struct sigaction before;
static void (*give_up)(void);

static void on_fault(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr;

	(void)context;
	for (unsigned i = 0; i < TAKEN && info->si_code == SEGV_ACCERR; i++)
		if (at >= taken[i].at && at < taken[i].end) {
			say("failure: a program touched what is lost and cannot read as ones\n");
			give_up();
			_exit(1);
		}
	sigaction(sig, &before, NULL);
}

void sio_failing_begin(void (*ends)(void))
{
	struct sigaction handler = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	const char *what = getenv("SMARTIO_FAIL");
	const char *number = what ? strchr(what, ':') : NULL;

	dl_iterate_phdr(find_library, NULL);
	if (!number || begin == end)
		abort();
	for (unsigned i = 0; i < KINDS; i++)
		if (strlen(names[i]) == (size_t)(number - what) &&
		    !strncmp(what, names[i], (size_t)(number - what)))
			failing_kind = i;
	counted = 0;
	give_up = ends;
	sigaction(SIGSEGV, &handler, &before);
	failing = (unsigned)strtoul(number + 1, NULL, 10);
}

/* Whether the call that comes from @caller is the one. */
static bool fails(enum kind kind, void *caller, const char *name)
{
	unsigned n = __atomic_load_n(&failing, __ATOMIC_RELAXED);
	char text[128];
	int len;

	if (!n || kind != failing_kind || (uintptr_t)caller < begin || (uintptr_t)caller >= end ||
	    __atomic_add_fetch(&counted, 1, __ATOMIC_RELAXED) != n)
		return false;
	len = snprintf(text, sizeof(text), "failing: %s %u of program %d: %s\n", names[kind], n,
		       (int)getpid(), name);
	if (write(2, text, (size_t)len) != len)
		abort();
	return true;
}

#define FAILS(kind, name, error)                                                                   \
	(fails((kind), __builtin_return_address(0), (name)) && ((errno = (error)), true))

/* ---- memory ---- */

/*
 * Until ours is the turn to begin: who begins before us, a sanitizer among them, cannot be asked
 * for memory yet, but asks for some. It is not given back.
 */
static _Alignas(16) char early[1 << 16];
static size_t early_used;

static struct {
	void *(*malloc)(size_t size);
	void *(*calloc)(size_t n, size_t size);
	void *(*realloc)(void *p, size_t size);
	void (*free)(void *p);
} next;

__attribute__((constructor)) static void find_next(void)
{
	next.calloc = (__typeof__(next.calloc))dlsym(RTLD_NEXT, "calloc");
	next.realloc = (__typeof__(next.realloc))dlsym(RTLD_NEXT, "realloc");
	next.free = (__typeof__(next.free))dlsym(RTLD_NEXT, "free");
	next.malloc = (__typeof__(next.malloc))dlsym(RTLD_NEXT, "malloc");
}

static void *take_early(size_t size)
{
	void *p = early + early_used;

	size = (size + 15) & ~(size_t)15;
	if (size > sizeof(early) - early_used)
		return NULL;
	early_used += size;
	return p;
}

static bool is_early(const void *p)
{
	return (uintptr_t)p - (uintptr_t)early < sizeof(early);
}

void *malloc(size_t size)
{
	if (!next.malloc)
		return take_early(size);
	return FAILS(MEMORY, "malloc", ENOMEM) ? NULL : next.malloc(size);
}

void *calloc(size_t n, size_t size)
{
	if (!next.malloc)
		return take_early(n * size); /* small, and zeroes */
	return FAILS(MEMORY, "calloc", ENOMEM) ? NULL : next.calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	size_t rest = (size_t)(early + sizeof(early) - (char *)p);
	void *fresh;

	if (p && is_early(p)) {
		fresh = malloc(size);
		return fresh ? memcpy(fresh, p, size < rest ? size : rest) : NULL;
	}
	if (!next.malloc)
		return take_early(size);
	return FAILS(MEMORY, "realloc", ENOMEM) ? NULL : next.realloc(p, size);
}

void free(void *p)
{
	if (p && !is_early(p))
		next.free(p);
}

/* ---- requests ---- */

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	REAL(sendmsg);
	return FAILS(REQUEST, "sendmsg", ENOBUFS) ? -1 : real(fd, msg, flags);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	REAL(recvmsg);
	return FAILS(REQUEST, "recvmsg", ENOMEM) ? -1 : real(fd, msg, flags);
}

/* ---- what makes system calls ---- */

int socket(int domain, int type, int protocol)
{
	REAL(socket);
	return FAILS(SYSTEM, "socket", EMFILE) ? -1 : real(domain, type, protocol);
}

int eventfd(unsigned int initval, int flags)
{
	REAL(eventfd);
	return FAILS(SYSTEM, "eventfd", EMFILE) ? -1 : real(initval, flags);
}

int memfd_create(const char *name, unsigned int flags)
{
	REAL(memfd_create);
	return FAILS(SYSTEM, "memfd_create", EMFILE) ? -1 : real(name, flags);
}

int open(const char *path, int flags, ...)
{
	unsigned mode = 0;
	va_list ap;

	REAL(open);
	va_start(ap, flags);
	if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) /* O_DIRECTORY is in it */
		mode = va_arg(ap, unsigned);
	va_end(ap);
	return FAILS(SYSTEM, "open", EMFILE) ? -1 : real(path, flags, mode);
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	REAL(mmap);
	return FAILS(SYSTEM, "mmap", ENOMEM) ? MAP_FAILED : real(at, len, prot, flags, fd, offset);
}

int pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	REAL(pthread_create);
	return FAILS(SYSTEM, "pthread_create", EAGAIN) ? EAGAIN : real(ret, attr, fn, arg);
}

/* ---- waits without end ---- */

#define BOUND_MS 20000u
#define SECOND 1000000000ull

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

struct wait {
	const char *name;
	sci_error_t *asked, error;
	unsigned timeout;
	bool endless;
	uint64_t since;
};

static struct wait wait_begin(const char *name, unsigned timeout, sci_error_t *error)
{
	struct wait w = {.name = name, .asked = error, .timeout = timeout, .since = now()};

	w.endless = timeout == SCI_INFINITE_TIMEOUT && __atomic_load_n(&failing, __ATOMIC_RELAXED);
	if (w.endless)
		w.timeout = BOUND_MS;
	return w;
}

/* Whoever finds something when the time is over has not been woken by it. */
static void wait_end(const struct wait *w)
{
	char text[160];

	if (w->asked)
		*w->asked = w->error;
	if (!w->endless || now() - w->since < BOUND_MS * 1000000ull)
		return;
	snprintf(text, sizeof(text),
		 w->error == SCI_ERR_TIMEOUT ? "failure: program %d waits in vain: %s\n"
					     : "failure: nobody woke program %d: %s\n",
		 (int)getpid(), w->name);
	say(text);
	exit(1);
}

sci_segment_cb_reason_t SCIWaitForLocalSegmentEvent(sci_local_segment_t segment,
						    unsigned int *sourceNodeId,
						    unsigned int *localAdapterNo,
						    unsigned int timeout, unsigned int flags,
						    sci_error_t *error)
{
	struct wait w = wait_begin(__func__, timeout, error);
	sci_segment_cb_reason_t reason;

	REAL(SCIWaitForLocalSegmentEvent);
	reason = real(segment, sourceNodeId, localAdapterNo, w.timeout, flags, &w.error);
	wait_end(&w);
	return reason;
}

sci_segment_cb_reason_t SCIWaitForRemoteSegmentEvent(sci_remote_segment_t segment,
						     sci_error_t *status, unsigned int timeout,
						     unsigned int flags, sci_error_t *error)
{
	struct wait w = wait_begin(__func__, timeout, error);
	sci_segment_cb_reason_t reason;

	REAL(SCIWaitForRemoteSegmentEvent);
	reason = real(segment, status, w.timeout, flags, &w.error);
	wait_end(&w);
	return reason;
}

void SCIWaitForInterrupt(sci_local_interrupt_t interrupt, unsigned int timeout, unsigned int flags,
			 sci_error_t *error)
{
	struct wait w = wait_begin(__func__, timeout, error);

	REAL(SCIWaitForInterrupt);
	real(interrupt, w.timeout, flags, &w.error);
	wait_end(&w);
}

void SCIWaitForDataInterrupt(sci_local_data_interrupt_t interrupt, void *data, unsigned int *length,
			     unsigned int timeout, unsigned int flags, sci_error_t *error)
{
	struct wait w = wait_begin(__func__, timeout, error);

	REAL(SCIWaitForDataInterrupt);
	real(interrupt, data, length, w.timeout, flags, &w.error);
	wait_end(&w);
}
