/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs: processes of this host that have sessions. All sessions of one share an account, so
 * that a second connection brings no second quota.
 */
#ifndef SMARTIOD_PROGRAM_H
#define SMARTIOD_PROGRAM_H

#include "smartiod/base/state.h"

struct smartiod_session;

struct smartiod_program {
	struct smartiod *in;
	struct smartiod_program *prev, *next; /* in in->programs */
	uint32_t pid;
	uint64_t started; /* tells it from another process of that number; 0: it is not known */
	struct smartiod_session *sessions; /* ascending by client */
	struct smartiod_account account;   /* what all of them have */
};

/*
 * @s, of process @pid that was started at @started, belongs to that process's program from now on;
 * 0: to one of its own. Return: 0; -ENOMEM.
 */
int smartiod_program_join(struct smartiod *d, struct smartiod_session *s, uint32_t pid,
			  uint64_t started);
/* It does no more. With its last session a program ends, and its account. */
void smartiod_program_leave(struct smartiod_session *s);
/* Is @s the session that stands for its program in a list: the first one that lives? */
bool smartiod_program_stands(const struct smartiod_session *s);

#endif
