/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol between `smartio run` and the agent in a virtual machine: messages of one program,
 * on a stream of its own. The client sends RUN, then INPUT, as much as was TAKEN of it, and
 * SIGNALs; the agent answers STARTED or FAILED, then OUTPUT and ERRORS, and ENDED at last. A stream
 * that ends before that ends the program.
 */
#ifndef TOOLS_MACHINE_STREAM_H
#define TOOLS_MACHINE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	STREAM_RUN = 1, /* words of the command line, a NUL behind each */
	STREAM_INPUT,	/* of its standard input; at most STREAM_WINDOW bytes that are not TAKEN */
	STREAM_INPUT_END, /* there is no more */
	STREAM_SIGNAL,	  /* two numbers: the signal; 1: to its process group, as a terminal does */
	STREAM_STARTED,	  /* number: its process */
	STREAM_FAILED,	  /* number: errno */
	STREAM_OUTPUT,
	STREAM_ERRORS,
	STREAM_TAKEN, /* number: bytes of the input */
	STREAM_ENDED, /* number: exit status, 128 + signal */
};

#define STREAM_DATA 65536   /* most bytes of a message */
#define STREAM_CHUNK 16384  /* bytes of output in one message */
#define STREAM_WINDOW 32768 /* as above */

struct stream_msg {
	uint32_t kind, len;
	const uint8_t *data; /* until the next call */
};

/* One end. It never blocks: queued messages are sent as the other end takes them. */
struct stream {
	int fd; /* does not block */
	size_t in_len, in_used, out_len, out_sent;
	uint8_t in[STREAM_DATA + 8], out[2 * (STREAM_DATA + 8)];
};

void stream_init(struct stream *s, int fd);
/* Can a message of STREAM_CHUNK bytes be queued? */
bool stream_has_room(const struct stream *s);
/* Queues a message. False: there is no room, or it is too long. */
bool stream_put(struct stream *s, uint32_t kind, const void *data, size_t len);
bool stream_put_numbers(struct stream *s, uint32_t kind, uint32_t a, uint32_t b);
bool stream_pending(const struct stream *s);
/* Sends what can be sent now. False: the other end is gone. */
bool stream_send(struct stream *s);
/* Drops the queued messages. */
void stream_forget(struct stream *s);
/* Receives what has arrived. False: the other end is gone. */
bool stream_receive(struct stream *s);
/* The next whole message. 1: there is one; 0: not yet; -1: the bytes are no message. */
int stream_next(struct stream *s, struct stream_msg *ret);
/* The number at @index of a message; 0 behind its end. */
uint32_t stream_number(const struct stream_msg *m, unsigned index);

#endif
