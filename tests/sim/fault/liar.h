/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the host that lies share: its words (fault/liar.c), its answers. */
#ifndef SIM_LIAR_H
#define SIM_LIAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What it knows of something of a host: numbers by their letters. */
struct liar_standing {
	unsigned host;
	uint32_t fdid, id;
	uint64_t number[128];
};

/* fault/liar.c. What the next words are about. */
extern struct liar_standing *liar_now;
uint64_t liar_draw(uint64_t n); /* 0 to n - 1 */
bool liar_lies(void);		/* for the time being */
/* Bytes of one word: 4 or 8. */
unsigned liar_word_bytes(char letter);
/* The words of a message, behind its header. Return: its length. */
size_t liar_fill(const char *words, uint8_t *msg);

/*
 * fault/liar_answer.c: programs ask for what it has. It does not hear a request that has been
 * answered.
 */
bool liar_answers(uint32_t node, const void *msg, size_t len);
/* A reply of its daemon: one of its words may become another one. */
void liar_alters(uint8_t *msg, size_t len);

#endif
