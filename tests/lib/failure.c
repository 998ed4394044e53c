/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "failure.h"

#define MOST 32u /* more than STEPS */

static int given_up = -1; /* readable: a program has ended before its time; -1: no such run */
static pid_t test;
static bool fine;

void failure_up(void)
{
	if (!sio_failing_begin || given_up >= 0)
		return;
	given_up = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	test = getpid();
}

static void give_up(void)
{
	uint64_t one = 1;

	if (!fine && write(given_up, &one, sizeof(one)) != sizeof(one))
		abort();
}

void failure_begin(void)
{
	if (given_up < 0)
		return;
	atexit(give_up);
	sio_failing_begin(give_up);
}

void failure_fine(void)
{
	fine = true;
}

int failure_poll(struct pollfd *p, unsigned n, int limit_ms)
{
	struct pollfd all[MOST] = {{.fd = given_up, .events = POLLIN}};
	int rc;

	if (given_up < 0)
		return poll(p, n, limit_ms);
	if (n + 1 > MOST)
		abort();
	memcpy(all + 1, p, n * sizeof(*p));
	rc = poll(all, n + 1, limit_ms);
	memcpy(p, all + 1, n * sizeof(*p));
	if (rc <= 0 || !all[0].revents)
		return rc;
	if (rc > 1) /* what was waited for came, too */
		return rc - 1;
	if (getpid() != test)
		_exit(1); /* not its fault */
	return FAILURE_GIVEN_UP;
}

bool failure_over(void)
{
	uint64_t count;

	return given_up >= 0 && read(given_up, &count, sizeof(count)) == sizeof(count);
}
