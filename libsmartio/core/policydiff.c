/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/policydiff.h"

#define TEXT 180

/* ---- rules ---- */

static bool same_people(const struct sio_policy_person *a, unsigned n_a,
			const struct sio_policy_person *b, unsigned n_b)
{
	if (n_a != n_b)
		return false;
	for (unsigned i = 0; i < n_a; i++)
		if (strcmp(a[i].name, b[i].name) != 0 || (!*a[i].name && a[i].id != b[i].id))
			return false;
	return true;
}

static bool same_rule(const struct sio_policy_rule *a, const struct sio_policy_rule *b)
{
	return a->kind == b->kind && a->host == b->host && strcmp(a->device, b->device) == 0 &&
	       a->first == b->first && a->last == b->last && a->has_nodes == b->has_nodes &&
	       a->all_nodes == b->all_nodes && a->n_nodes == b->n_nodes &&
	       (a->n_nodes == 0 || memcmp(a->node, b->node, a->n_nodes * sizeof(*a->node)) == 0) &&
	       a->has_people == b->has_people &&
	       same_people(a->user, a->n_users, b->user, b->n_users) &&
	       same_people(a->group, a->n_groups, b->group, b->n_groups);
}

static void put(char out[TEXT], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(char out[TEXT], const char *fmt, ...)
{
	size_t len = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out + len, TEXT - len, fmt, ap);
	va_end(ap);
}

static void put_people(char out[TEXT], const char *word, const struct sio_policy_person *p,
		       unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		put(out, "%s", i ? ", " : word);
		if (*p[i].name)
			put(out, "%s", p[i].name);
		else
			put(out, "%" PRIu32, p[i].id);
	}
}

/* "device nvme0: nodes 8, 12; users alice" */
static void put_rule(char out[TEXT], const struct sio_policy_rule *r)
{
	if (r->kind == SIO_POLICY_DEVICE)
		put(out, "device %s", *r->device ? r->device : "all");
	else
		put(out, "%s %#" PRIx32 "-%#" PRIx32,
		    r->kind == SIO_POLICY_SEGMENTS ? "segments" : "interrupts", r->first, r->last);
	if (r->host)
		put(out, " of node %" PRIu32, r->host);
	if (r->has_nodes && r->all_nodes)
		put(out, ": all nodes");
	else if (r->has_nodes && r->n_nodes == 0)
		put(out, ": no node");
	for (unsigned i = 0; r->has_nodes && i < r->n_nodes; i++)
		put(out, "%s%" PRIu32, i ? ", " : ": nodes ", r->node[i]);
	put_people(out, "; users ", r->user, r->n_users);
	put_people(out, "; groups ", r->group, r->n_groups);
	if (r->has_people && r->n_users + r->n_groups == 0)
		put(out, "; no program");
}

static void report_rule(const struct sio_policy_rule *r, enum sio_policy_change change,
			sio_policy_report *tell, void *ctx)
{
	char text[TEXT] = "";

	put(text, "line %u: rule is %s: ", r->line,
	    change == SIO_POLICY_CHANGE_RULE ? "new" : "gone");
	put_rule(text, r);
	tell(ctx, change, text);
}

static void put_id(char out[TEXT], uint32_t id)
{
	if (id == SIO_POLICY_NOBODY)
		put(out, "nobody");
	else
		put(out, "%" PRIu32, id);
}

/* Of the same rule: who a name is. */
static void diff_people(const char *word, unsigned line, const struct sio_policy_person *old,
			const struct sio_policy_person *new, unsigned n, sio_policy_report *tell,
			void *ctx)
{
	for (unsigned i = 0; i < n; i++) {
		char text[TEXT] = "";

		if (old[i].id == new[i].id)
			continue;
		put(text, "line %u: %s '%s' is ", line, word, new[i].name);
		put_id(text, new[i].id);
		put(text, " on this machine, was ");
		put_id(text, old[i].id);
		tell(ctx, SIO_POLICY_CHANGE_NAME, text);
	}
}

static unsigned n_rules(const struct sio_policy *p)
{
	return p->n_rules < SIO_POLICY_RULES ? p->n_rules : SIO_POLICY_RULES;
}

static void diff_rules(const struct sio_policy *old, const struct sio_policy *new,
		       sio_policy_report *tell, void *ctx)
{
	bool taken[SIO_POLICY_RULES] = {false}, moved = false;
	unsigned last = 0;

	for (unsigned i = 0; i < n_rules(old); i++) {
		unsigned k = 0;

		while (k < n_rules(new) && (taken[k] || !same_rule(&old->rule[i], &new->rule[k])))
			k++;
		if (k == n_rules(new)) {
			report_rule(&old->rule[i], SIO_POLICY_CHANGE_RULE_GONE, tell, ctx);
			continue;
		}
		diff_people("user", new->rule[k].line, old->rule[i].user, new->rule[k].user,
			    new->rule[k].n_users, tell, ctx);
		diff_people("group", new->rule[k].line, old->rule[i].group, new->rule[k].group,
			    new->rule[k].n_groups, tell, ctx);
		taken[k] = true;
		moved |= k < last;
		last = k;
	}
	for (unsigned k = 0; k < n_rules(new); k++)
		if (!taken[k])
			report_rule(&new->rule[k], SIO_POLICY_CHANGE_RULE, tell, ctx);
	if (moved)
		tell(ctx, SIO_POLICY_CHANGE_ORDER, "the order of the rules is another");
}

/* ---- quotas ---- */

static void put_limit(char out[TEXT], const struct sio_limit *l)
{
	if (l->set)
		put(out, "%" PRIu64, l->most);
	else
		put(out, "without limit");
}

static void diff_quotas(const char *who, const struct sio_limit *old, const struct sio_limit *new,
			sio_policy_report *tell, void *ctx)
{
	for (unsigned q = 0; q < SIO_QUOTAS; q++) {
		char text[TEXT] = "";

		if (old[q].set == new[q].set && (!old[q].set || old[q].most == new[q].most))
			continue;
		put(text, "quotas.%s.%s is ", who, sio_quota_name(q));
		put_limit(text, &new[q]);
		put(text, ", was ");
		put_limit(text, &old[q]);
		tell(ctx, SIO_POLICY_CHANGE_QUOTA, text);
	}
}

void sio_policy_diff(const struct sio_policy *old, const struct sio_policy *new,
		     sio_policy_report *tell, void *ctx)
{
	if (old->open != new->open)
		tell(ctx, SIO_POLICY_CHANGE_ACCESS,
		     new->open ? "access.between_machines is open, was closed"
			       : "access.between_machines is closed, was open");
	diff_rules(old, new, tell, ctx);
	diff_quotas("node", old->node, new->node, tell, ctx);
	diff_quotas("program", old->program, new->program, tell, ctx);
}
