/* SPDX-License-Identifier: BSD-2-Clause */
#include <signal.h>
#include <sys/signalfd.h>

#include "base/forward.h"

static const int forwarded[] = {SIGINT,	 SIGTERM, SIGHUP,  SIGQUIT,
				SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

int tool_forward_open(bool children)
{
	struct sigaction old;
	sigset_t set;

	sigemptyset(&set);
	for (unsigned i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		if (sigaction(forwarded[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaddset(&set, forwarded[i]);
	if (children)
		sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}
