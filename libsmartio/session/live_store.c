/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stores to read-only pages. The processor refuses such a store, and the program gets SIGSEGV, as
 * without this file; but first the library logs what the page is. The handler is installed only in
 * programs that have such pages, and passes all other faults on to the handler that was there
 * before. A handler that the program sets later replaces this one, so nothing is logged then.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session/live.h"

#define PLACES 64 /* ranges at once; a store to a range beyond that is not logged */

/* The handler reads it at any time in any thread: @at is 0 while the other fields are written. */
static struct place {
	uintptr_t at, end;
	uint64_t offset; /* of @at, in the object that the text names */
	bool said;
	char text[192];
} place[PLACES];

static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction before;

/* A signal handler may not call printf(). Return: the end of the digits. */
static char *put_hex(char *to, uint64_t value)
{
	unsigned digits = 1;

	while (digits < 16 && value >> 4 * digits)
		digits++;
	for (unsigned i = digits; i > 0; value >>= 4)
		to[--i] = "0123456789abcdef"[value & 15];
	return to + digits;
}

static void say(struct place *p, uintptr_t address)
{
	char line[sizeof(p->text) + 64];
	char *end = stpcpy(line, "libsmartio: store to offset 0x");

	end = put_hex(end, address - p->at + p->offset);
	end = stpcpy(end, " of ");
	end = stpcpy(end, p->text);
	*end++ = '\n';
	if (write(STDERR_FILENO, line, (size_t)(end - line)) < 0)
		return; /* there is nobody to report a failed write to */
}

static void look_up(uintptr_t address)
{
	for (unsigned i = 0; i < PLACES; i++) {
		/* pairs with the release in sio_live_note_store() */
		uintptr_t at = __atomic_load_n(&place[i].at, __ATOMIC_ACQUIRE);

		if (at && address >= at && address < place[i].end &&
		    !__atomic_exchange_n(&place[i].said, true, __ATOMIC_RELAXED))
			say(&place[i], address);
	}
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	if (info->si_code == SEGV_ACCERR)
		look_up((uintptr_t)info->si_addr);
	errno = saved;
	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(sig, info, context);
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(sig);
	} else if (info->si_code > 0 || before.sa_handler == SIG_DFL) {
		/*
		 * A fault occurs again when the handler returns; a signal that was sent has to be
		 * sent again.
		 */
		sigaction(sig, &before, NULL);
		if (info->si_code <= 0)
			raise(sig);
	}
}

static void install(void)
{
	struct sigaction ours = {.sa_sigaction = on_fault};

	if (sigaction(SIGSEGV, NULL, &before) < 0)
		return;
	ours.sa_mask = before.sa_mask;
	ours.sa_flags = (before.sa_flags & (SA_NODEFER | SA_RESTART | SA_RESETHAND)) | SA_SIGINFO |
			SA_ONSTACK;
	sigaction(SIGSEGV, &ours, NULL);
}

void sio_live_note_store(struct sio_world *w, const void *at, size_t len, uint64_t offset,
			 const char *text)
{
	(void)w;
	pthread_once(&once, install);
	pthread_mutex_lock(&change);
	for (unsigned i = 0; i < PLACES; i++) {
		struct place *p = &place[i];

		if (p->at)
			continue;
		p->end = (uintptr_t)at + len;
		p->offset = offset;
		p->said = false;
		snprintf(p->text, sizeof(p->text), "%s", text);
		/*
		 * Published last, so whoever sees @at sees the other fields; pairs with the load in
		 * look_up().
		 */
		__atomic_store_n(&p->at, (uintptr_t)at, __ATOMIC_RELEASE);
		break;
	}
	pthread_mutex_unlock(&change);
}

/* In a child of fork(): it has none of these maps, and a thread that it lacks may hold the lock. */
void sio_live_stores_after_fork(void)
{
	pthread_mutex_init(&change, NULL);
	for (unsigned i = 0; i < PLACES; i++)
		__atomic_store_n(&place[i].at, 0, __ATOMIC_RELAXED);
}

void sio_live_forget_stores(struct sio_world *w, const void *at, size_t len)
{
	(void)w;
	pthread_mutex_lock(&change);
	for (unsigned i = 0; i < PLACES; i++)
		if (place[i].at >= (uintptr_t)at && place[i].at - (uintptr_t)at < len)
			__atomic_store_n(&place[i].at, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&change);
}
