/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether an error is a right one: the table of what may be told when an allocation, a request to
 * the port's daemon or a system call has failed. The sheet lets any function say NOSPC, API_NOSPC,
 * HW_NOSPC and SYSTEM; sisci_error.h says which of them means what. The codes of a single function
 * (SCI_ERR_ILLEGAL_ADDRESS, SCI_ERR_NOT_SUPPORTED, ...) blame the caller: he did nothing wrong.
 */
#include "fault.h"

#define AGAIN 3

enum fault_kind fault_failed;

/* ---- what the failure itself is called ---- */

/* Out of memory or descriptors. A library that cannot hear its daemon any more ends the session. */
static const sci_error_t of_memory[] = {SCI_ERR_NOSPC, SCI_ERR_API_NOSPC, SCI_ERR_NO_LINK_ACCESS,
					SCI_ERR_OK};
/* The daemon has gone, whatever the kernel called it. */
static const sci_error_t of_request[] = {SCI_ERR_NO_LINK_ACCESS, SCI_ERR_OK};
/* It was not asked; the connection is as good as before. */
static const sci_error_t of_unsent[] = {SCI_ERR_NOSPC, SCI_ERR_OK};
/* The kernel's error has a code of its own, or none. */
static const sci_error_t of_system[] = {SCI_ERR_NOSPC, SCI_ERR_API_NOSPC, SCI_ERR_SYSTEM,
					SCI_ERR_NO_LINK_ACCESS, SCI_ERR_OK};
static const sci_error_t of_link[] = {SCI_ERR_NO_LINK_ACCESS, SCI_ERR_NO_REMOTE_LINK_ACCESS,
				      SCI_ERR_OK};
/* What a lone machine has not, from the beginning: engines, other hosts. */
static const sci_error_t of_machine[] = {SCI_ERR_DMA_NOT_AVAILABLE, SCI_ERR_NO_SUCH_NODEID,
					 SCI_ERR_OK};
static const sci_error_t of_nothing[] = {SCI_ERR_OK};

static const sci_error_t *const by_failure[] = {
	[FAULT_NONE] = of_nothing,  [FAULT_MEMORY] = of_memory, [FAULT_REQUEST] = of_request,
	[FAULT_SYSTEM] = of_system, [FAULT_LINK] = of_link,	[FAULT_UNSENT] = of_unsent,
};

/* ---- what follows from it, in later calls ---- */

static const sci_error_t makes[] = {SCI_ERR_OK};
static const sci_error_t begins[] = {SCI_ERR_NOT_INITIALIZED, SCI_ERR_OK};
static const sci_error_t publishes[] = {SCI_ERR_SEGMENT_NOT_PREPARED, SCI_ERR_OK};
/* What it looks for was not made, or is lost. */
static const sci_error_t finds[] = {SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_NO_REMOTE_LINK_ACCESS,
				    SCI_ERR_OK};
static const sci_error_t uses[] = {SCI_ERR_NOT_CONNECTED, SCI_ERR_SEGMENT_NOT_CONNECTED,
				   SCI_ERR_TRANSFER_FAILED, SCI_ERR_SEGMENT_NOT_PREPARED,
				   SCI_ERR_OK};
static const sci_error_t waits[] = {SCI_ERR_TIMEOUT, SCI_ERR_NOT_CONNECTED, SCI_ERR_CANCELLED,
				    SCI_ERR_OK};
/* A queue that was not reset, or in which nothing is. */
static const sci_error_t queues[] = {SCI_ERR_ILLEGAL_OPERATION, SCI_ERR_SEGMENT_NOT_PREPARED,
				     SCI_ERR_SEGMENT_NOT_CONNECTED, SCI_ERR_OK};

static const sci_error_t *const by_call[] = {
	[FAULT_MAKES] = makes,	 [FAULT_BEGINS] = begins, [FAULT_PUBLISHES] = publishes,
	[FAULT_FINDS] = finds,	 [FAULT_USES] = uses,	  [FAULT_WAITS] = waits,
	[FAULT_QUEUES] = queues,
};

static bool has(const sci_error_t *list, sci_error_t error)
{
	for (; *list != SCI_ERR_OK; list++)
		if (*list == error)
			return true;
	return false;
}

/* Without a failure only what hangs on others is told: whether somebody serves "far". */
static bool is_right(enum fault_call call, sci_error_t error)
{
	enum fault_kind failed = __atomic_load_n(&fault_failed, __ATOMIC_SEQ_CST);

	if (has(by_failure[failed], error) ||
	    ((fault_link || fault_flaps) && has(of_link, error)) ||
	    (cluster_is_machine() && has(of_machine, error)))
		return true;
	if (call == FAULT_BEGINS && failed != FAULT_REQUEST)
		return false; /* who has no memory has a smartiod all the same */
	if (failed == FAULT_NONE && call != FAULT_FINDS && call != FAULT_WAITS)
		return false;
	return has(by_call[call], error);
}

static void wrong(sci_error_t error, const char *file, int line)
{
	fprintf(stderr, "%s:%d: %s (%#x) is wrong after failure %d; the library says: %s\n", file,
		line, SCIGetErrorString(error), (unsigned)error, (int)fault_failed,
		smartio_last_error());
	exit(1);
}

bool fault_judge(enum fault_call call, sci_error_t error, const char *file, int line)
{
	if (error == SCI_ERR_OK)
		return true;
	if (!smartio_last_error()[0] || !is_right(call, error))
		wrong(error, file, line);
	if ((error == SCI_ERR_NOSPC || error == SCI_ERR_HW_NOSPC) && !smartio_last_exhausted())
		wrong(error, file, line);
	return false;
}

bool fault_judge_status(sci_error_t status, const char *file, int line)
{
	if (status == SCI_ERR_OK)
		return true;
	if (!is_right(FAULT_USES, status)) {
		fprintf(stderr, "%s:%d: a callback is told %s (%#x) after failure %d\n", file, line,
			SCIGetErrorString(status), (unsigned)status, (int)fault_failed);
		exit(1);
	}
	return false;
}

void (*fault_relief)(void);
bool fault_flaps, fault_left;

bool fault_again(sci_error_t error, const char *file, int line)
{
	static __thread unsigned tries;

	if (error == SCI_ERR_OK || (fault_left && error == SCI_ERR_BUSY))
		return false;
	if (__atomic_load_n(&fault_failed, __ATOMIC_SEQ_CST) != FAULT_UNSENT ||
	    error != SCI_ERR_NOSPC)
		wrong(error, file, line);
	if (fault_relief)
		fault_relief();
	else if (++tries == AGAIN) {
		tries = 0;
		fault_left = true;
		return false;
	}
	return true;
}
