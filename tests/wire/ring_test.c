/* SPDX-License-Identifier: BSD-2-Clause */
/* The data-interrupt ring beside a plain queue, and what a hostile other end can write into it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../core/prng.h"
#include "wire/ring.h"

#define QUEUE 8192 /* messages: more than a ring can hold */

static _Alignas(4096) unsigned char memory[SIO_RING_TOTAL];
static struct sio_ring sender, receiver;

static int fresh(void **state)
{
	(void)state;
	memset(memory, 0, sizeof(memory));
	sio_ring_init(&sender, memory);
	sio_ring_init(&receiver, memory);
	return 0;
}

static volatile struct sio_ring_head *shared(void)
{
	return (volatile struct sio_ring_head *)memory;
}

static uint32_t *first_record(void)
{
	return (uint32_t *)(memory + SIO_RING_TOTAL - SIO_RING_BYTES);
}

/* Both ends as if @position bytes had passed. */
static void move_to(uint32_t position)
{
	sender.tail = sender.head = receiver.tail = receiver.head = position;
	shared()->tail = shared()->head = position;
}

static void pattern(unsigned char *data, uint32_t len, uint32_t number)
{
	for (uint32_t i = 0; i < len; i++)
		data[i] = (unsigned char)(number * 31 + i);
}

/*
 * What may be in the ring is known from the messages alone: lengths, in order, from one position.
 */
struct model {
	uint32_t len[QUEUE], first, n, next;
	uint32_t head, tail;
};

static uint32_t bytes(uint32_t len)
{
	return (4 + len + 7) / 8 * 8;
}

static uint32_t skipped(uint32_t position, uint32_t len)
{
	uint32_t left = SIO_RING_BYTES - position % SIO_RING_BYTES;

	return left < bytes(len) ? left : 0;
}

static void push(struct model *m, uint32_t len)
{
	static unsigned char data[SIO_RING_MESSAGE];
	uint32_t need = skipped(m->tail, len) + bytes(len);
	int want = m->tail - m->head + need <= SIO_RING_BYTES ? 0 : -ENOSPC;

	pattern(data, len, m->next);
	assert_int_equal(sio_ring_room(&sender, len), want);
	assert_int_equal(sio_ring_push(&sender, data, len), want);
	if (want < 0)
		return;
	m->tail += need;
	m->len[(m->first + m->n++) % QUEUE] = len;
	m->next++;
}

static void pop(struct model *m)
{
	static unsigned char data[SIO_RING_MESSAGE], want[SIO_RING_MESSAGE];
	uint32_t len = 77, there = m->len[m->first % QUEUE];

	assert_int_equal(sio_ring_is_empty(&receiver), m->n == 0);
	if (m->n == 0) {
		assert_int_equal(sio_ring_pop(&receiver, data, sizeof(data), &len), -EAGAIN);
		return;
	}
	if (there > 0) {
		assert_int_equal(sio_ring_pop(&receiver, data, there - 1, &len), -EMSGSIZE);
		assert_int_equal(len, there);
	}
	assert_true(sio_ring_pop(&receiver, data, there, &len) >= 0);
	assert_int_equal(len, there);
	pattern(want, len, m->next - m->n);
	assert_memory_equal(data, want, len);
	m->head += skipped(m->head, len) + bytes(len);
	m->first++;
	m->n--;
}

static void agrees_with_a_queue(void **state)
{
	unsigned rounds = prng_start(7, 200000);
	static struct model m;

	/* Positions wrap at 2^32: start below it. */
	memset(&m, 0, sizeof(m));
	m.head = m.tail = 0u - 3 * SIO_RING_BYTES - 16;
	fresh(state);
	move_to(m.head);
	for (unsigned i = 0; i < rounds; i++) {
		uint32_t limit = i % 4096 < 2048 ? SIO_RING_MESSAGE : 64;

		if (prng_chance(i % 2048 < 1024 ? 60 : 40))
			push(&m, (uint32_t)prng_below(limit + 1));
		else
			pop(&m);
	}
	while (m.n > 0)
		pop(&m);
	pop(&m);
}

static void long_messages_are_refused(void **state)
{
	static unsigned char data[SIO_RING_MESSAGE + 1];

	(void)state;
	assert_int_equal(sio_ring_room(&sender, SIO_RING_MESSAGE + 1), -EMSGSIZE);
	assert_int_equal(sio_ring_push(&sender, data, SIO_RING_MESSAGE + 1), -EMSGSIZE);
	assert_int_equal(shared()->tail, 0);
}

/* Fill it, so that the sender must read the receiver's word. */
static void a_senders_ring_with_an_impossible_head(void **state)
{
	static unsigned char data[SIO_RING_MESSAGE];
	static const uint32_t bad[] = {
		4,		    /* no record begins there */
		SIO_RING_BYTES + 8, /* past what was sent */
		0u - 8,		    /* before what was freed */
		0x80000000u,
	};

	(void)state;
	while (sio_ring_push(&sender, data, 1000) == 0)
		;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		shared()->head = bad[i];
		assert_int_equal(sio_ring_room(&sender, SIO_RING_MESSAGE), -EPROTO);
		assert_int_equal(sio_ring_push(&sender, data, SIO_RING_MESSAGE), -EPROTO);
	}
	/* It may not go back behind what it said before either. */
	shared()->head = 2016;
	assert_int_equal(sio_ring_push(&sender, data, 1000), 0);
	shared()->head = 1008;
	assert_int_equal(sio_ring_push(&sender, data, 8000), -EPROTO);
}

static void a_receivers_ring_with_an_impossible_tail(void **state)
{
	static const uint32_t bad[] = {4, 12, SIO_RING_BYTES + 8, 0u - 8, 0x80000000u};
	unsigned char data[8];
	uint32_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		shared()->tail = bad[i];
		assert_int_equal(sio_ring_pop(&receiver, data, sizeof(data), &len), -EPROTO);
		assert_false(sio_ring_is_empty(&receiver));
	}
	shared()->tail = 0;
	assert_true(sio_ring_is_empty(&receiver));
}

static void an_impossible_record(void **state)
{
	static const struct {
		uint32_t at, length, tail;
	} bad[] = {
		{0, SIO_RING_MESSAGE + 1, SIO_RING_BYTES}, /* longer than any */
		{0, 0xfffffffeu, SIO_RING_BYTES},	   /* its size wraps */
		{0, 100, 8},				   /* past the tail */
		{SIO_RING_BYTES - 8, 100, 2048},	   /* past the end */
		{0, SIO_RING_WRAP, 8},			   /* a jump from the start */
		{16, SIO_RING_WRAP, 8},			   /* a jump with nothing behind it */
		{SIO_RING_BYTES - 16, SIO_RING_WRAP, 16},  /* the same, up to the end */
	};
	unsigned char data[SIO_RING_MESSAGE];
	uint32_t len;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		fresh(state);
		move_to(bad[i].at);
		first_record()[bad[i].at / 4] = bad[i].length;
		shared()->tail = bad[i].at + bad[i].tail;
		assert_int_equal(sio_ring_pop(&receiver, data, sizeof(data), &len), -EPROTO);
		assert_int_equal(receiver.head, bad[i].at);
	}
	/* A jump to a jump. */
	fresh(state);
	move_to(SIO_RING_BYTES - 16);
	first_record()[(SIO_RING_BYTES - 16) / 4] = SIO_RING_WRAP;
	first_record()[0] = SIO_RING_WRAP;
	shared()->tail = SIO_RING_BYTES + 64;
	assert_int_equal(sio_ring_pop(&receiver, data, sizeof(data), &len), -EPROTO);
}

int main(void)
{
#define FRESH(f) cmocka_unit_test_setup(f, fresh)
	const struct CMUnitTest tests[] = {
		FRESH(agrees_with_a_queue),
		FRESH(long_messages_are_refused),
		FRESH(a_senders_ring_with_an_impossible_head),
		FRESH(a_receivers_ring_with_an_impossible_tail),
		FRESH(an_impossible_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
