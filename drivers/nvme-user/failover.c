/* SPDX-License-Identifier: BSD-2-Clause */
#include "failover.h"
#include "smartio/nvme.h"

static const struct step {
	bool possible;
	enum sio_nvme_life next;
	enum sio_nvme_life_act act;
} steps[SIO_NVME_LIVES][SIO_NVME_LIFE_EVENTS] = {
	[SIO_NVME_HOME] = {[SIO_NVME_LOST] = {true, SIO_NVME_DEAD, SIO_NVME_RENEW}},
	[SIO_NVME_AWAY] = {[SIO_NVME_LOST] = {true, SIO_NVME_DEAD, SIO_NVME_RENEW},
			   [SIO_NVME_HOME_IS_BACK] = {true, SIO_NVME_DRAIN, SIO_NVME_STOP}},
	/* Drained, the pair is alive still; but the way home begins with its deletion. */
	[SIO_NVME_DRAIN] = {[SIO_NVME_LOST] = {true, SIO_NVME_DEAD, SIO_NVME_RENEW},
			    [SIO_NVME_STAYS] = {true, SIO_NVME_AWAY, SIO_NVME_RESUME},
			    [SIO_NVME_DRAINED] = {true, SIO_NVME_DEAD, SIO_NVME_RENEW}},
	/* Lost once more: the pair that was just made, or the way of a manager's answer. */
	[SIO_NVME_DEAD] = {[SIO_NVME_LOST] = {true, SIO_NVME_DEAD, SIO_NVME_RENEW},
			   [SIO_NVME_MADE_HOME] = {true, SIO_NVME_HOME, SIO_NVME_SETTLE},
			   [SIO_NVME_MADE_AWAY] = {true, SIO_NVME_AWAY, SIO_NVME_SETTLE},
			   [SIO_NVME_GIVE_UP] = {true, SIO_NVME_OVER, SIO_NVME_END}},
	[SIO_NVME_OVER] = {[SIO_NVME_LOST] = {true, SIO_NVME_OVER, SIO_NVME_NOTHING}},
};

bool sio_nvme_life_next(enum sio_nvme_life state, enum sio_nvme_life_event event,
			enum sio_nvme_life *ret, enum sio_nvme_life_act *ret_act)
{
	const struct step *s = &steps[state][event];

	if (!s->possible)
		return false;
	*ret = s->next;
	*ret_act = s->act;
	return true;
}

/*
 * What only reads may be done twice. What writes may not, where others write, too: the first time
 * may have been done, then overwritten, and the second time would undo that.
 */
static bool only_reads(uint32_t op)
{
	return op == SMARTIO_NVME_READ || op == SMARTIO_NVME_FLUSH || op == SMARTIO_NVME_COMPARE ||
	       op == SMARTIO_NVME_VERIFY;
}

enum sio_nvme_fate sio_nvme_fate(uint32_t op, bool rung, bool alone)
{
	return !rung || alone || only_reads(op) ? SIO_NVME_AGAIN : SIO_NVME_REPORT;
}
