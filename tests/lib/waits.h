/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SMARTIO_TESTS_LIB_WAITS_H
#define SMARTIO_TESTS_LIB_WAITS_H

/*
 * Prints to the standard error what each thread of this session's processes (a test, its programs,
 * their daemons) waits in, as far as the kernel tells: what is looked at when one hangs.
 */
void waits_print(void);

#endif
