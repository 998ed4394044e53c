/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_NVME_COMPARE_SCRIPT_H
#define TESTS_NVME_COMPARE_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

/* Words of one step, as it stands in the file. */
#define STEP_WORDS 24
struct step {
	char text[512];
	char *word[STEP_WORDS];
	unsigned n;
};

/* Carry out one step and print what came of it, behind @name. False: the file is wrong. */
bool step_run(const char *name, unsigned number, const char *text);

/* Split; false: too many words. */
bool step_parse(struct step *s, const char *text);
/* A number, or p7, or p7+16: the bus address of a scratch page. */
bool step_value(const char *text, uint64_t *ret);
/* The value of "key=", or @otherwise. */
bool step_key(const struct step *s, const char *key, uint64_t otherwise, uint64_t *ret);

/* fields.c: of an Identify page that lies at @data, a line for each field. */
bool fields_show(const char *name, unsigned number, unsigned cns, const uint8_t *data);

#endif
