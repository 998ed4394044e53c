/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts the cluster's programs in the background, and waits until each of them is ready. */
#ifndef TOOLS_START_H
#define TOOLS_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"
#include "base/hint.h"

#define TOOL_START_MS 30000 /* a program that is not ready by then has failed */
#define TOOL_STOP_MS 5000   /* SIGTERM, and after this time SIGKILL */

struct tool_started {
	char name[48], log[4096];
	pid_t pid;
	int pidfd, ready_fd;
};

/*
 * Finds "smartiod" or "smartio-emu": in $SMARTIO_BINDIR, beside this program, in the build tree
 * beside it, where it is installed, in $PATH.
 */
int tool_find_binary(const char *name, char *path, size_t size, struct sio_err *reterr);
/* The same for a hint (hint.h): its name if this command was called by name, otherwise its path. */
const char *tool_hint_program(const char *name, char text[TOOL_HINT_TEXT]);
/*
 * Starts the program @name ("emu", "smartiod.4") of the cluster in @dir. @tied: it gets SIGTERM
 * when this process dies, however it dies.
 */
int tool_start(const char *dir, const char *name, bool tied, struct tool_started *ret,
	       struct sio_err *reterr);
/*
 * Waits until the program is ready. @cancel_fd: readable when the wait is to end with -EINTR; -1:
 * none. On a failure the text has the last line of its log.
 */
int tool_start_wait(struct tool_started *s, int cancel_fd, struct sio_err *reterr);
/* Releases the program, which continues to run. */
void tool_start_release(struct tool_started *s);
/* Ends the program, and waits for that. */
void tool_start_stop(struct tool_started *s);

/*
 * Sends SIGTERM to each process, then SIGKILL to those that are left after TOOL_STOP_MS; waits for
 * all.
 */
void tool_stop_all(const int *pidfds, unsigned n);
/* Waits up to TOOL_STOP_MS until all have ended. Return: whether they have. */
bool tool_wait_all(const int *pidfds, unsigned n);
/* The same for up to @ms. */
bool tool_wait_until(const int *pidfds, unsigned n, int ms);

#endif
