/* SPDX-License-Identifier: BSD-2-Clause */
/* The malicious daemon: its messages (fault/liar.c) and its replies (fault/liar_answer.c). */
#ifndef SIM_LIAR_H
#define SIM_LIAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What it knows of an object of a host: numbers, by the letters of fault/liar.c. */
struct liar_standing {
	unsigned host;
	uint32_t fdid, id;
	uint64_t number[128];
};

/* fault/liar.c. The object that the next message is about. */
extern struct liar_standing *liar_now;
uint64_t liar_draw(uint64_t n); /* 0 to n - 1 */
bool liar_lies(void);		/* does the fault act now? */
/* The size of the field @letter in bytes: 4 or 8. */
unsigned liar_word_bytes(char letter);
/* Fills in the fields @words of a message, behind its header. Return: the message's length. */
size_t liar_fill(const char *words, uint8_t *msg);

/*
 * fault/liar_answer.c: may reply to a request for what the malicious host has. True: the host's
 * true daemon is not to receive the request.
 */
bool liar_answers(uint32_t node, const void *msg, size_t len);
/* May change a field in a reply of the true daemon. */
void liar_alters(uint8_t *msg, size_t len);

#endif
