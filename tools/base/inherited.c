/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/inherited.h"

/* The smallest descriptor of @keep that is at least @from; UINT_MAX: none. */
static unsigned next_kept(const int *keep, unsigned n, unsigned from)
{
	unsigned best = UINT_MAX;

	for (unsigned i = 0; i < n; i++)
		if (keep[i] >= 0 && (unsigned)keep[i] >= from && (unsigned)keep[i] < best)
			best = (unsigned)keep[i];
	return best;
}

void tool_close_inherited(int last_std, const int *keep, unsigned n)
{
	int null = open("/dev/null", O_RDWR);
	unsigned from = 3, kept;

	for (int fd = 0; null >= 0 && fd <= last_std; fd++)
		dup2(null, fd);
	for (;;) {
		kept = next_kept(keep, n, from);
		if (kept > from)
			close_range(from, kept == UINT_MAX ? UINT_MAX : kept - 1, 0);
		if (kept == UINT_MAX)
			return;
		from = kept + 1;
	}
}

void tool_leave_terminal(void)
{
	int tty = open("/dev/tty", O_RDWR | O_CLOEXEC);

	setpgid(0, 0);
	if (tty < 0)
		return;
	ioctl(tty, TIOCNOTTY);
	close(tty);
}
