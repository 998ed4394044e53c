/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulator, in which one program more crashes in the way that SIM_CRASH names: linked in
 * between run/run.c and run/prog.c. For failures.py.
 */
#undef NDEBUG
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "run/run.h"

void __real_sim_programs_start(void);
void __wrap_sim_programs_start(void);

/* Frames that nobody may leave out, until the stack ends. */
static unsigned deeper(unsigned n)
{
	volatile char frame[512];

	frame[n % sizeof(frame)] = (char)n;
	return n == UINT32_MAX ? 0 : deeper(n + 1) + (unsigned)frame[(n * 7) % sizeof(frame)];
}

static void crash(struct sim_proc *p)
{
	const char *how = getenv("SIM_CRASH");

	(void)p;
	sim_sleep(SIM_SECOND / 2);
	sim_trace("the crash: %s", how);
	if (strcmp(how, "assert") == 0)
		assert(!"wanted");
	else if (strcmp(how, "bare") == 0)
		*(volatile uint32_t *)sim_pages_new(4096) = 1;
	else if (strcmp(how, "wild") == 0)
		*(volatile uint32_t *)(uintptr_t)strtoul("64", NULL, 10) = 1;
	else if (strcmp(how, "deep") == 0)
		deeper(1);
	abort();
}

void __wrap_sim_programs_start(void)
{
	__real_sim_programs_start();
	sim_proc_new("crash", 0, crash, NULL);
}
