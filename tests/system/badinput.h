/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that asks for what it cannot have, and checks what it is told. */
#ifndef BADINPUT_H
#define BADINPUT_H

#include "sisci_api.h"
#include "smartio/ext.h"

/* How many checks failed so far; each said so on stderr. */
extern unsigned bad_failures;

/*
 * Check that the call just made gave @want, and that its explanation is one line that holds each
 * of the words (const char *, NULL ends them). For SCI_ERR_OK there is nothing to explain.
 */
void bad_expect(int line, sci_error_t got, sci_error_t want, ...) __attribute__((sentinel));
#define EXPECT(got, ...) bad_expect(__LINE__, got, __VA_ARGS__, NULL)
#define FINE(got) bad_expect(__LINE__, got, SCI_ERR_OK, NULL)

void bad_check(int line, int holds, const char *what);
#define CHECK(holds) bad_check(__LINE__, holds, #holds)

/* Say a line on stdout, then wait for one on stdin; 0 when there is none. */
int bad_tell_and_wait(const char *line);

/* The cases; each ends with nothing left open but the library. @argument: or NULL. */
void bad_segments(const char *argument);
void bad_nodes(const char *argument);
void bad_devices(const char *argument);
void bad_exclusive(const char *argument);
void bad_in_use(const char *argument);
void bad_namespace(const char *argument);
void bad_files(const char *argument);
void bad_many_files(const char *argument);
void bad_fill_daemon(const char *argument);
void bad_gone_waiting(const char *argument);
void bad_gone_asking(const char *argument);
void bad_gone_nvme(const char *argument);
/* This one is called before SCIInitialize(), for its children initialise themselves. */
void bad_clients(const char *argument);
/* So is this one: no smartiod is where SMARTIO_SOCKET says. */
void bad_nobody(const char *argument);

#endif
