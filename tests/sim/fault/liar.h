/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the malicious host: its messages (fault/liar.c), its answers. */
#ifndef SIM_LIAR_H
#define SIM_LIAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the malicious daemon knows of an object of a host: numbers by their letters. */
struct liar_standing {
	unsigned host;
	uint32_t fdid, id;
	uint64_t number[128];
};

/* fault/liar.c. The object that the next words are about. */
extern struct liar_standing *liar_now;
uint64_t liar_draw(uint64_t n); /* 0 to n - 1 */
bool liar_lies(void);		/* for the time being */
/* The size of one word in bytes: 4 or 8. */
unsigned liar_word_bytes(char letter);
/* Fills in the words of a message, behind its header. Return: its length. */
size_t liar_fill(const char *words, uint8_t *msg);

/*
 * fault/liar_answer.c: answers programs' requests for what the malicious host has. Its daemon does
 * not receive a request that has been answered.
 */
bool liar_answers(uint32_t node, const void *msg, size_t len);
/* May change one word in a reply of its daemon. */
void liar_alters(uint8_t *msg, size_t len);

#endif
