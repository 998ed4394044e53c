/* SPDX-License-Identifier: BSD-2-Clause */
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <syslog.h>

#include "smartiod/live/live.h"
#include "smartiod/live/names.h"

static void find(struct sio_policy_person *p, bool group, unsigned line)
{
	const struct passwd *user;
	const struct group *of;

	if (!*p->name)
		return;
	p->id = SIO_POLICY_NOBODY;
	if (group) {
		of = getgrnam(p->name);
		if (of)
			p->id = of->gr_gid;
	} else {
		user = getpwnam(p->name);
		if (user)
			p->id = user->pw_uid;
	}
	if (p->id == SIO_POLICY_NOBODY)
		live_log_from(__FILE__, LOG_WARNING,
			      "line %u of the cluster's file allows %s '%s', which this machine "
			      "does not have: it is nobody here",
			      line, group ? "group" : "user", p->name);
}

void live_names_find(struct sio_policy *p)
{
	for (unsigned i = 0; i < p->n_rules; i++) {
		const struct sio_policy_rule *r = &p->rule[i];

		for (unsigned k = 0; k < r->n_users; k++)
			find(&r->user[k], false, r->line);
		for (unsigned k = 0; k < r->n_groups; k++)
			find(&r->group[k], true, r->line);
	}
}
