/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces top_screen.c where there is no ncurses. */
#include <errno.h>

#include "view/top.h"

int tool_top_screen(const struct tool_top *top, int *ret_status, struct sio_err *reterr)
{
	(void)top;
	(void)ret_status;
	return sio_fail(reterr, -EOPNOTSUPP,
			"this smartio was built without ncurses, which draws on terminals; "
			"--batch or --once is right");
}
