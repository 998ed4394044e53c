/* SPDX-License-Identifier: BSD-2-Clause */
/* Right requests among the wrong ones: memory of other owners, and a descriptor of each kind. */
#ifndef TESTS_VM_MUTATE_H
#define TESTS_VM_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define KINDS 6 /* owner, memory, BAR, interrupt, trigger, pages */

/* This process, as a member of the group: user and group id in one. */
bool become(uid_t uid);
/*
 * Owners with memory, made before the first wrong request; another process, @uid's, holds all of it
 */
bool start_others(int port, size_t megabytes, uid_t uid);
/* It has looked, found all as it was, and has ended. */
bool others_are_well(void);
/*
 * A fresh descriptor of each kind, as far as the state that wrong requests left allows it; -1:
 * none.
 * @fd: the former ones, which are closed; at first -1 all.
 */
void one_of_each(int port, int fd[KINDS]);
/* How often there was one; "owner 30, memory 30, ...". False: never, of some kind. */
bool had_each(char *text, size_t size);

#endif
