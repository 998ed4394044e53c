/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that every test's cluster begins with. */
#ifndef TESTS_LIB_PROGRAM_H
#define TESTS_LIB_PROGRAM_H

struct program_probe {
	unsigned own, count; /* its node; nodes 4, 8 ... of so many hosts */
};

/* Ends when node @own reaches all others. @arg: struct program_probe. */
int program_probe(void *arg);

/* Whoever had the drive of the cluster, if it has one, is dead: says that it writes nowhere. */
int program_settle(void *arg);

#endif
