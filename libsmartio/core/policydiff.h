/* SPDX-License-Identifier: BSD-2-Clause */
/* The differences between two policies. Pure logic. */
#ifndef CORE_POLICYDIFF_H
#define CORE_POLICYDIFF_H

#include "core/policy.h"

enum sio_policy_change {
	SIO_POLICY_CHANGE_ACCESS, /* between_machines */
	SIO_POLICY_CHANGE_RULE,	  /* there is one more */
	SIO_POLICY_CHANGE_RULE_GONE,
	SIO_POLICY_CHANGE_ORDER, /* of rules that both have: the first counts */
	SIO_POLICY_CHANGE_NAME,	 /* a user or group has another number on this machine now */
	SIO_POLICY_CHANGE_QUOTA,
};

typedef void sio_policy_report(void *ctx, enum sio_policy_change change, const char *text);

/* Two rules are equal if they have the same meaning, in whichever line. */
void sio_policy_diff(const struct sio_policy *old, const struct sio_policy *new,
		     sio_policy_report *tell, void *ctx);

#endif
