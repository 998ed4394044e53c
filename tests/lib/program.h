/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that clusters begin with, and that end quarantines. */
#ifndef TESTS_LIB_PROGRAM_H
#define TESTS_LIB_PROGRAM_H

struct program_probe {
	unsigned own, count; /* its node; nodes 4, 8 ... of so many hosts */
};

/* Ends when node @own reaches all others. @arg: struct program_probe. */
int program_probe(void *arg);

/* Whoever had the drive of the cluster is dead: says that it writes nowhere, as a manager does. */
int program_settle(void *arg);
/* The same, if the cluster has a drive. */
int program_settle_any(void *arg);

#endif
