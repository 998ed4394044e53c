/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy.h"

#define LIST_TEXT 72 /* of those who may, in an error: it has to pass through a reply */

void sio_policy_done(struct sio_policy *p)
{
	for (unsigned i = 0; i < p->n_rules; i++) {
		free(p->rule[i].node);
		free(p->rule[i].user);
		free(p->rule[i].group);
	}
	free(p->rule);
	*p = (struct sio_policy){.open = false};
}

/* NAME, or HOST/NAME. */
static bool is_device(const char *rule, const struct sio_policy_thing *thing)
{
	size_t host = strlen(thing->at);

	if (!*rule || strcmp(rule, thing->device) == 0)
		return true;
	return strncmp(rule, thing->at, host) == 0 && rule[host] == '/' &&
	       strcmp(rule + host + 1, thing->device) == 0;
}

static bool is_about(const struct sio_policy_rule *r, const struct sio_policy_thing *thing)
{
	if (r->kind != thing->kind || (r->host && r->host != thing->host))
		return false;
	if (r->kind == SIO_POLICY_DEVICE)
		return is_device(r->device, thing);
	return r->first <= thing->number && thing->number <= r->last;
}

const struct sio_policy_rule *sio_policy_rule_of(const struct sio_policy *p,
						 const struct sio_policy_thing *thing)
{
	for (unsigned i = 0; i < p->n_rules; i++)
		if (is_about(&p->rule[i], thing))
			return &p->rule[i];
	return NULL;
}

static void put(char *out, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void put(char *out, size_t size, const char *fmt, ...)
{
	size_t len = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out + len, size - len, fmt, ap);
	va_end(ap);
}

/* "borrow device nvme0 of lender" */
static void put_deed(char *out, size_t size, const struct sio_policy_thing *t)
{
	size_t host = strlen(t->at);

	if (t->kind == SIO_POLICY_SEGMENTS)
		put(out, size, "have segment %#" PRIx32 " of %s", t->number, t->at);
	else if (t->kind == SIO_POLICY_INTERRUPTS)
		put(out, size, "have interrupt %" PRIu32 " of %s", t->number, t->at);
	else if (strncmp(t->device, t->at, host) == 0 && t->device[host] == '/')
		put(out, size, "borrow device %s", t->device);
	else
		put(out, size, "borrow device %s/%s", t->at, t->device);
}

/* One of a list of those who may; those that find no room are an ellipsis. */
static void put_one(char *list, const char *one, const char *before)
{
	if (strlen(list) + strlen(one) + 12 < LIST_TEXT)
		put(list, LIST_TEXT, "%s%s", *list ? before : "", one);
	else if (strcmp(list + strlen(list) - 3, "...") != 0)
		put(list, LIST_TEXT, ", ...");
}

static void put_people(char *list, const char *word, const struct sio_policy_person *person,
		       unsigned n)
{
	char one[SIO_NAME_LEN + 16];

	for (unsigned i = 0; i < n; i++) {
		if (*person[i].name)
			snprintf(one, sizeof(one), "%s%s", i ? "" : word, person[i].name);
		else
			snprintf(one, sizeof(one), "%s%" PRIu32, i ? "" : word, person[i].id);
		put_one(list, one, ", ");
	}
}

int sio_policy_node(const struct sio_policy *p, const struct sio_policy_thing *thing, uint32_t node,
		    bool apart, struct sio_err *reterr)
{
	const struct sio_policy_rule *r = sio_policy_rule_of(p, thing);
	char deed[96] = "", list[LIST_TEXT] = "", one[24];

	if (node == thing->host)
		return 0;
	if (!r || !r->has_nodes) {
		if (!apart || p->open)
			return 0;
		put_deed(deed, sizeof(deed), thing);
		return sio_fail(reterr, -EACCES,
				"node %" PRIu32 " may not %s: it is on another machine, and the "
				"cluster's file allows no node to ('access')",
				node, deed);
	}
	if (r->all_nodes)
		return 0;
	for (unsigned i = 0; i < r->n_nodes; i++) {
		if (r->node[i] == node)
			return 0;
		snprintf(one, sizeof(one), "%s%" PRIu32, i ? "" : "nodes ", r->node[i]);
		put_one(list, one, ", ");
	}
	put_deed(deed, sizeof(deed), thing);
	return sio_fail(reterr, -EACCES,
			"node %" PRIu32 " may not %s: allowed: %s; see line %u of the cluster's "
			"file",
			node, deed, *list ? list : "no node", r->line);
}

static bool is_member(uint32_t group, const struct sio_policy_person_of *who)
{
	if (group == who->gid)
		return true;
	for (unsigned i = 0; i < who->n_groups; i++)
		if (who->groups[i] == group)
			return true;
	return false;
}

int sio_policy_program(const struct sio_policy *p, const struct sio_policy_thing *thing,
		       const struct sio_policy_person_of *who, struct sio_err *reterr)
{
	const struct sio_policy_rule *r = sio_policy_rule_of(p, thing);
	char deed[96] = "", list[LIST_TEXT] = "";

	if (!r || !r->has_people)
		return 0;
	for (unsigned i = 0; i < r->n_users; i++)
		if (r->user[i].id != SIO_POLICY_NOBODY && r->user[i].id == who->uid)
			return 0;
	for (unsigned i = 0; i < r->n_groups; i++)
		if (r->group[i].id != SIO_POLICY_NOBODY && is_member(r->group[i].id, who))
			return 0;
	put_people(list, "users ", r->user, r->n_users);
	put_people(list, "groups ", r->group, r->n_groups);
	put_deed(deed, sizeof(deed), thing);
	return sio_fail(reterr, -EACCES,
			"user %" PRIu32 " may not %s: allowed: %s; see line %u of the cluster's "
			"file",
			who->uid, deed, *list ? list : "nobody", r->line);
}

const char *sio_quota_name(enum sio_quota quota)
{
	static const char *const name[SIO_QUOTAS] = {
		[SIO_QUOTA_BORROWS] = "borrows",
		[SIO_QUOTA_WINDOWS] = "windows",
		[SIO_QUOTA_DMA] = "dma",
		[SIO_QUOTA_EXPORTED] = "exported",
	};

	return name[quota];
}
