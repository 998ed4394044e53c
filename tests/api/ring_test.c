/* SPDX-License-Identifier: BSD-2-Clause */
/* Data-interrupt rings: against a queue, across every wrap, and with a hostile other end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

#include <cmocka.h>

#include "wire/ring.h"

static uint64_t seed = 0x9e3779b97f4a7c15;

static uint32_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 32);
}

struct pair {
	_Alignas(4096) uint8_t memory[SIO_RING_TOTAL];
	struct sio_ring sender, receiver;
	uint8_t buffer[SIO_RING_MESSAGE];
};

static int setup(void **state)
{
	struct pair *p = aligned_alloc(4096, sizeof(*p));

	if (!p)
		return -1;
	memset(p, 0, sizeof(*p));
	sio_ring_init(&p->sender, p->memory);
	sio_ring_init(&p->receiver, p->memory);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* Both ends, and what is shared, as after @position bytes. */
static void move_to(struct pair *p, uint32_t position)
{
	volatile struct sio_ring_head *head = (void *)p->memory;

	p->sender.tail = p->sender.head = position;
	p->receiver.tail = p->receiver.head = position;
	head->tail = head->head = position;
}

/* The look says what the push does, and changes nothing that the other end sees. */
static void room_is_what_a_push_finds(void **state)
{
	struct pair *p = *state;
	uint32_t len;

	assert_int_equal(sio_ring_room(&p->sender, SIO_RING_MESSAGE), 0);
	assert_int_equal(sio_ring_room(&p->sender, SIO_RING_MESSAGE + 1), -EMSGSIZE);
	while (sio_ring_room(&p->sender, 100) == 0)
		assert_int_equal(sio_ring_push(&p->sender, p->buffer, 100), 0);
	assert_int_equal(sio_ring_room(&p->sender, 100), -ENOSPC);
	assert_int_equal(sio_ring_push(&p->sender, p->buffer, 100), -ENOSPC);
	assert_int_equal(sio_ring_pop(&p->receiver, p->buffer, sizeof(p->buffer), &len), 100);
	assert_int_equal(sio_ring_room(&p->sender, 100), 0);
	assert_int_equal(sio_ring_push(&p->sender, p->buffer, 100), 0);
}

static void messages_come_in_order_with_their_bounds(void **state)
{
	struct pair *p = *state;
	uint32_t len;

	assert_int_equal(sio_ring_pop(&p->receiver, p->buffer, sizeof(p->buffer), &len), -EAGAIN);
	assert_int_equal(sio_ring_push(&p->sender, "one", 3), 0);
	assert_int_equal(sio_ring_push(&p->sender, NULL, 0), 0);
	assert_int_equal(sio_ring_push(&p->sender, "three", 5), 0);
	assert_int_equal(sio_ring_pop(&p->receiver, p->buffer, 2, &len), -EMSGSIZE);
	assert_int_equal(len, 3);
	assert_int_equal(sio_ring_pop(&p->receiver, p->buffer, 3, &len), 3);
	assert_memory_equal(p->buffer, "one", 3);
	assert_int_equal(sio_ring_pop(&p->receiver, NULL, 0, &len), 0);
	assert_int_equal(len, 0);
	assert_int_equal(sio_ring_pop(&p->receiver, p->buffer, sizeof(p->buffer), &len), 5);
	assert_memory_equal(p->buffer, "three", 5);
	assert_int_equal(sio_ring_pop(&p->receiver, p->buffer, sizeof(p->buffer), &len), -EAGAIN);
	assert_int_equal(sio_ring_push(&p->sender, p->buffer, SIO_RING_MESSAGE + 1), -EMSGSIZE);
}

static void a_full_ring_takes_nothing_and_loses_nothing(void **state)
{
	struct pair *p = *state;
	uint32_t sent = 0, len;
	int rc;

	while ((rc = sio_ring_push(&p->sender, &sent, sizeof(sent))) == 0)
		sent++;
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(sent, SIO_RING_BYTES / 8);
	for (uint32_t i = 0; i < sent; i++) {
		uint32_t got;

		assert_int_equal(sio_ring_pop(&p->receiver, &got, sizeof(got), &len), 4);
		assert_int_equal(got, i);
	}
	assert_int_equal(sio_ring_push(&p->sender, &sent, sizeof(sent)), 0);
}

/* An empty ring takes the longest message at every place, also where positions wrap at 2^32. */
static void the_longest_message_fits_everywhere(void **state)
{
	struct pair *p = *state;
	uint8_t message[SIO_RING_MESSAGE];
	uint32_t len;

	memset(message, 0x5a, sizeof(message));
	for (uint32_t at = 0; at < 2 * SIO_RING_BYTES; at += 8) {
		move_to(p, at - SIO_RING_BYTES);
		assert_int_equal(sio_ring_push(&p->sender, message, sizeof(message)), 0);
		assert_int_equal(sio_ring_pop(&p->receiver, p->buffer, sizeof(p->buffer), &len),
				 SIO_RING_MESSAGE);
		assert_memory_equal(p->buffer, message, sizeof(message));
	}
}

#define MODEL 20000

/* Random lengths, pushes and pops against a list of what was sent. */
static void a_ring_is_a_queue(void **state)
{
	static uint32_t lengths[MODEL];
	struct pair *p = *state;
	uint32_t sent = 0, got = 0, len;
	uint8_t message[SIO_RING_MESSAGE];

	move_to(p, (uint32_t)0 - 8 * SIO_RING_BYTES);
	while (got < MODEL) {
		if (sent < MODEL && next_random() % 3) {
			uint32_t n = next_random() % (next_random() % 8 ? 100 : SIO_RING_MESSAGE);

			memset(message, (int)(sent & 0xff), n);
			if (sio_ring_push(&p->sender, message, n) == 0)
				lengths[sent++] = n;
			else
				assert_true(sent > got);
		} else if (got < sent) {
			assert_int_equal(
				sio_ring_pop(&p->receiver, p->buffer, sizeof(p->buffer), &len),
				lengths[got]);
			memset(message, (int)(got & 0xff), len);
			assert_memory_equal(p->buffer, message, len);
			got++;
		} else {
			assert_int_equal(
				sio_ring_pop(&p->receiver, p->buffer, sizeof(p->buffer), &len),
				-EAGAIN);
		}
	}
}

/* Whatever the sender writes, the receiver stays inside the ring and comes to an end. */
static void a_hostile_sender_is_found_out(void **state)
{
	static const struct {
		uint32_t tail, record;
	} cases[] = {
		{4, 0},			       /* not aligned */
		{SIO_RING_BYTES + 8, 0},       /* more than there is */
		{(uint32_t)-8, 0},	       /* behind the head */
		{8, 5},			       /* longer than announced */
		{16384, SIO_RING_MESSAGE + 1}, /* longer than allowed */
		{8, SIO_RING_WRAP},	       /* a jump from the start */
		{8, SIO_RING_WRAP - 1},
	};
	struct pair *p = *state;
	volatile struct sio_ring_head *head = (void *)p->memory;
	uint32_t len;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		move_to(p, 0);
		head->tail = cases[i].tail;
		memcpy(p->memory + SIO_RING_TOTAL - SIO_RING_BYTES, &cases[i].record, 4);
		assert_int_equal(sio_ring_pop(&p->receiver, p->buffer, sizeof(p->buffer), &len),
				 -EPROTO);
	}
	/* A jump with nothing behind it; a record across the end. */
	move_to(p, SIO_RING_BYTES - 8);
	head->tail = SIO_RING_BYTES;
	memset(p->memory + SIO_RING_TOTAL - 8, 0xff, 4);
	assert_int_equal(sio_ring_pop(&p->receiver, p->buffer, sizeof(p->buffer), &len), -EPROTO);
	move_to(p, SIO_RING_BYTES - 8);
	head->tail = SIO_RING_BYTES + 64;
	memset(p->memory + SIO_RING_TOTAL - 8, 0, 4);
	p->memory[SIO_RING_TOTAL - 8] = 20;
	assert_int_equal(sio_ring_pop(&p->receiver, p->buffer, sizeof(p->buffer), &len), -EPROTO);
}

static void garbage_never_leads_outside(void **state)
{
	struct pair *p = *state;
	volatile struct sio_ring_head *head = (void *)p->memory;
	uint32_t len;

	for (unsigned i = 0; i < 2000; i++) {
		for (unsigned j = 0; j < SIO_RING_TOTAL; j += 4 + next_random() % 512 / 4 * 4) {
			uint32_t word = next_random() % 4 ? next_random() % 64 : next_random();

			if (next_random() % 16 == 0)
				word = SIO_RING_WRAP;
			memcpy(p->memory + j, &word, 4);
		}
		move_to(p, next_random() & ~7u);
		head->tail = p->receiver.head + (next_random() % (SIO_RING_BYTES + 64) & ~7u);
		for (unsigned j = 0; j < SIO_RING_BYTES; j++)
			if (sio_ring_pop(&p->receiver, p->buffer, sizeof(p->buffer), &len) < 0)
				break;
	}
}

static void a_hostile_receiver_is_found_out(void **state)
{
	static const uint32_t heads[] = {4, 8, (uint32_t)-8, SIO_RING_BYTES, 0xffffffff};
	struct pair *p = *state;
	volatile struct sio_ring_head *head = (void *)p->memory;
	uint8_t message[SIO_RING_MESSAGE] = {0};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		/* It read up to 64, and then says what cannot be. */
		move_to(p, 64);
		p->sender.tail = 64 + SIO_RING_BYTES;
		head->head = heads[i] + (heads[i] == SIO_RING_BYTES ? 72 : 0);
		assert_int_equal(sio_ring_push(&p->sender, message, 1), -EPROTO);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(messages_come_in_order_with_their_bounds, setup,
						teardown),
		cmocka_unit_test_setup_teardown(room_is_what_a_push_finds, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_ring_takes_nothing_and_loses_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_longest_message_fits_everywhere, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_ring_is_a_queue, setup, teardown),
		cmocka_unit_test_setup_teardown(a_hostile_sender_is_found_out, setup, teardown),
		cmocka_unit_test_setup_teardown(garbage_never_leads_outside, setup, teardown),
		cmocka_unit_test_setup_teardown(a_hostile_receiver_is_found_out, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
