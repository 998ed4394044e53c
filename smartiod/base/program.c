/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

#include "smartiod/base/program.h"
#include "smartiod/base/session.h"

static struct smartiod_program *find(struct smartiod *d, uint32_t pid, uint64_t started)
{
	struct smartiod_program *p = d->programs;

	while (p && (p->pid != pid || p->started != started))
		p = p->next;
	return p;
}

static struct smartiod_program *add(struct smartiod *d, uint32_t pid, uint64_t started)
{
	struct smartiod_program *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pid = pid;
	p->started = started;
	p->in = d;
	DL_PREPEND(d->programs, p);
	return p;
}

int smartiod_program_join(struct smartiod *d, struct smartiod_session *s, uint32_t pid,
			  uint64_t started)
{
	struct smartiod_program *p = started ? find(d, pid, started) : NULL;

	if (!p)
		p = add(d, pid, started);
	if (!p)
		return -ENOMEM;
	s->program = p;
	DL_APPEND2(p->sessions, s, prev_of_program, next_of_program);
	return 0;
}

void smartiod_program_leave(struct smartiod_session *s)
{
	struct smartiod_program *p = s->program;

	DL_DELETE2(p->sessions, s, prev_of_program, next_of_program);
	if (p->sessions)
		return;
	smartiod_account_end(&p->account);
	DL_DELETE(p->in->programs, p);
	free(p);
}

bool smartiod_program_stands(const struct smartiod_session *s)
{
	const struct smartiod_session *first = s->program->sessions;

	while (first && (first->kind != SIO_CLIENT_LIBRARY || first->ending))
		first = first->next_of_program;
	return first == s;
}
