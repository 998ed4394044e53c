/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes and headers of every message, and what the checks refuse. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "wire/check.h"

/* The largest type of any protocol is below this; replies between peers have a bit more. */
#define TYPES 1024u
#define ONE(...) +1

static _Alignas(8) unsigned char packet[SIO_WIRE_MAX + 8];

static struct sio_msg *fill(uint32_t type, size_t len, uint32_t id, uint32_t error)
{
	struct sio_msg *h = (struct sio_msg *)packet;

	memset(packet, 0, sizeof(packet));
	h->size = sio_to_le32((uint32_t)len);
	h->type = sio_to_le32(type);
	h->id = sio_to_le32(id);
	h->error = sio_to_le32(error);
	return h;
}

static void a_header_says_its_size(void **state)
{
	struct sio_wire_header h;
	struct sio_err err;

	(void)state;
	for (size_t len = 0; len <= SIO_WIRE_MAX + 8; len += 4) {
		int want = len >= sizeof(struct sio_msg) && len <= SIO_WIRE_MAX ? 0 : -EPROTO;

		fill(7, len, 3, 5);
		assert_int_equal(sio_wire_header(packet, len, &h, &err), want);
	}
	assert_int_equal(h.type, 7);
	assert_int_equal(h.id, 3);
	assert_int_equal(h.error, 5);
	fill(7, 32, 3, 0);
	assert_int_equal(sio_wire_header(packet, 24, &h, &err), -EPROTO);
	assert_string_equal(err.text, "message 7 says 32 bytes and has 24; the same is right");
}

static void integers_are_little_endian(void **state)
{
	struct sio_msg *h = fill(0x01020304, 16, 0, 0);

	(void)state;
	assert_int_equal(packet[offsetof(struct sio_msg, type)], 0x04);
	assert_int_equal(packet[offsetof(struct sio_msg, type) + 3], 0x01);
	assert_int_equal(sio_from_le32(h->type), 0x01020304);
	assert_true(sio_from_le64(sio_to_le64(0x0102030405060708ULL)) == 0x0102030405060708ULL);
}

static void requests_of_clients(void **state)
{
	struct sio_wire_header h;
	struct sio_err err;
	unsigned known = 0;

	(void)state;
	for (uint32_t type = 0; type < TYPES; type++) {
		size_t size = sio_client_request_size(type);

		if (size == 0) {
			fill(type, 32, 1, 0);
			assert_int_equal(sio_client_check_request(packet, 32, &h, &err), -EPROTO);
			continue;
		}
		known++;
		fill(type, size, 1, 0);
		assert_int_equal(sio_client_check_request(packet, size, &h, &err), 0);
		assert_int_equal(h.type, type);
		fill(type, size + 8, 1, 0);
		assert_int_equal(sio_client_check_request(packet, size + 8, &h, &err), -EPROTO);
		fill(type, size, 0, 0);
		assert_int_equal(sio_client_check_request(packet, size, &h, &err), -EPROTO);
		assert_int_equal(sio_client_check_request(packet, 7, &h, &err), -EPROTO);
		fill(type, size, 1, 1);
		assert_int_equal(sio_client_check_request(packet, size, &h, &err), -EPROTO);
	}
	assert_int_equal(known, 0 SIO_CLIENT_REQUESTS(ONE)); /* no two have one number */
}

/* A field that the list of messages says is 0; at 0: the message has none. */
struct reserved {
	const char *name, *field;
	uint32_t type;
	size_t size, at;
};
#define RESERVED(NAME, type, message, zero)                                                        \
	{#NAME, #zero, type, sizeof(struct message), offsetof(struct message, zero)},
#define IN_REQUEST(NAME, name, number, request, zero, reply, reply_zero)                           \
	RESERVED(NAME, number, request, zero)
#define IN_REPLY(NAME, name, number, request, zero, reply, reply_zero)                             \
	RESERVED(NAME, number, reply, reply_zero)
#define IN_PEER_REPLY(NAME, name, number, request, zero, reply, reply_zero)                        \
	RESERVED(NAME, (number) | SIO_PEER_REPLY, reply, reply_zero)
#define IN_EVENT(NAME, number, event, zero) RESERVED(NAME, number, event, zero)

static int check_request(const struct reserved *r, struct sio_err *err)
{
	struct sio_wire_header h;

	return sio_client_check_request(packet, r->size, &h, err);
}

static int check_reply(const struct reserved *r, struct sio_err *err)
{
	struct sio_wire_header h;

	return sio_client_check_reply(r->type, packet, r->size, &h, err);
}

static int check_event(const struct reserved *r, struct sio_err *err)
{
	struct sio_wire_header h;

	return sio_client_check_event(packet, r->size, &h, err);
}

static int check_peer(const struct reserved *r, struct sio_err *err)
{
	struct sio_wire_header h;

	return sio_peer_check(packet, r->size, &h, err);
}

/*
 * Each bit of it is refused, by a text that names message and field. Return: how many fields there
 * are. That none is missing is the test of the lists (reserved_test.py).
 */
static unsigned refused(const struct reserved *r, size_t n, const char *kind,
			int (*check)(const struct reserved *r, struct sio_err *err), int want)
{
	unsigned fields = 0;
	struct sio_err err;

	for (size_t i = 0; i < n; i++, r++) {
		uint32_t id = check == check_event || sio_peer_is_notification(r->type) ? 0 : 1;

		if (r->at == 0)
			continue;
		fields++;
		for (unsigned bit = 0; bit < 32; bit++) {
			char text[80];

			fill(r->type, r->size, id, 0);
			assert_int_equal(check(r, &err), 0);
			packet[r->at + bit / 8] = (unsigned char)(1u << bit % 8);
			assert_int_equal(check(r, &err), want);
			snprintf(text, sizeof(text), "%s %s: %s is %#x, 0 is right", kind, r->name,
				 r->field, 1u << bit);
			assert_string_equal(err.text, text);
		}
	}
	return fields;
}

static void reserved_fields_are_zero(void **state)
{
#define REFUSED(kind, check, want, ...)                                                            \
	refused((const struct reserved[]){__VA_ARGS__},                                            \
		sizeof((const struct reserved[]){__VA_ARGS__}) / sizeof(struct reserved), kind,    \
		check, want)
	(void)state;
	assert_true(REFUSED("request", check_request, -EINVAL, SIO_CLIENT_REQUESTS(IN_REQUEST)));
	assert_true(REFUSED("reply to", check_reply, -EPROTO, SIO_CLIENT_REQUESTS(IN_REPLY)));
	assert_true(REFUSED("event", check_event, -EPROTO, SIO_CLIENT_EVENTS(IN_EVENT)));
	assert_true(REFUSED("message", check_peer, -EPROTO, SIO_PEER_MESSAGES(IN_REQUEST)));
	assert_true(REFUSED("reply to", check_peer, -EPROTO, SIO_PEER_MESSAGES(IN_PEER_REPLY)));
}

static void replies_to_clients(void **state)
{
#define REPLY(NAME, name, number, request, zero, reply, ...) {number, sizeof(struct reply)},
	static const struct {
		uint32_t type;
		size_t size;
	} replies[] = {SIO_CLIENT_REQUESTS(REPLY)};
	const size_t refusal = sizeof(struct sio_msg_error);
	struct sio_wire_header h;
	struct sio_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		uint32_t type = replies[i].type;
		size_t size = replies[i].size;

		fill(type, size, 1, 0);
		assert_int_equal(sio_client_check_reply(type, packet, size, &h, &err), 0);
		assert_int_equal(sio_client_check_reply(type + 1, packet, size, &h, &err), -EPROTO);
		fill(type, size + 8, 1, 0);
		assert_int_equal(sio_client_check_reply(type, packet, size + 8, &h, &err), -EPROTO);
		fill(type, refusal, 1, EBUSY);
		assert_int_equal(sio_client_check_reply(type, packet, refusal, &h, &err), 0);
		assert_int_equal(h.error, EBUSY);
		assert_int_equal(sio_client_check_reply(type, packet, 24, &h, &err), -EPROTO);
		fill(type, refusal + 8, 1, EBUSY);
		assert_int_equal(sio_client_check_reply(type, packet, refusal + 8, &h, &err),
				 -EPROTO);
		fill(type, refusal, 1, SIO_WIRE_ERRORS);
		assert_int_equal(sio_client_check_reply(type, packet, refusal, &h, &err), -EPROTO);
		fill(type, refusal, 1, EBUSY);
		memset(packet + sizeof(struct sio_msg), 'x', SIO_WIRE_TEXT);
		assert_int_equal(sio_client_check_reply(type, packet, refusal, &h, &err), -EPROTO);
	}
}

static void events_of_clients(void **state)
{
	struct sio_wire_header h;
	struct sio_err err;
	unsigned known = 0;

	(void)state;
	for (uint32_t type = 0; type < TYPES; type++) {
		size_t size = sio_client_event_size(type);

		if (size == 0)
			continue;
		known++;
		fill(type, size, 0, 0);
		assert_int_equal(sio_client_check_event(packet, size, &h, &err), 0);
		fill(type, size, 1, 0);
		assert_int_equal(sio_client_check_event(packet, size, &h, &err), -EPROTO);
		fill(type, size, 0, EIO);
		assert_int_equal(sio_client_check_event(packet, size, &h, &err), -EPROTO);
		fill(type, size + 4, 0, 0);
		assert_int_equal(sio_client_check_event(packet, size + 4, &h, &err), -EPROTO);
		assert_int_equal(sio_client_check_event(packet, size, &h, &err), -EPROTO);
	}
	assert_int_equal(known, 0 SIO_CLIENT_EVENTS(ONE));
}

/* So often does a library do something. */
static void how_often_a_segment_event_happened(void **state)
{
	const uint32_t types[] = {SIO_EVM_SEGMENT_LOCAL, SIO_EVM_SEGMENT_REMOTE};
	struct sio_evm_segment *evm = (void *)packet;
	struct sio_wire_header h;
	struct sio_err err;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		fill(types[i], sizeof(*evm), 0, 0);
		evm->count = sio_to_le32(SIO_EVM_TIMES);
		assert_int_equal(sio_client_check_event(packet, sizeof(*evm), &h, &err), 0);
		evm->count = sio_to_le32(SIO_EVM_TIMES + 1);
		assert_int_equal(sio_client_check_event(packet, sizeof(*evm), &h, &err), -EPROTO);
		assert_non_null(strstr(err.text, "257 times"));
	}
}

static void a_reply_to_a_request_that_nobody_knows(void **state)
{
	struct sio_wire_header h;
	struct sio_err err;
	uint32_t type = 0;

	(void)state;
	while (sio_client_request_size(type) != 0)
		type++;
	fill(type, sizeof(struct sio_msg), 1, 0);
	assert_int_equal(sio_client_check_reply(type, packet, sizeof(struct sio_msg), &h, &err),
			 -EPROTO);
}

static void messages_of_peers(void **state)
{
	struct sio_wire_header h;
	struct sio_err err;
	unsigned known = 0;

	(void)state;
	for (uint32_t type = 0; type < TYPES; type++) {
		size_t size = sio_peer_size(type), reply = sio_peer_size(type | SIO_PEER_REPLY);
		int news = sio_peer_is_notification(type);

		assert_int_equal(news, size != 0 && reply == 0);
		if (size == 0)
			continue;
		known++;
		assert_in_range(size, sizeof(struct sio_msg), SIO_WIRE_MAX);
		fill(type, size, news ? 0 : 1, 0);
		assert_int_equal(sio_peer_check(packet, size, &h, &err), 0);
		fill(type, size, news ? 1 : 0, 0);
		assert_int_equal(sio_peer_check(packet, size, &h, &err), -EPROTO);
		fill(type, size + 8, news ? 0 : 1, 0);
		assert_int_equal(sio_peer_check(packet, size + 8, &h, &err), -EPROTO);
		fill(type | SIO_PEER_REPLY, news ? size : reply, 1, 0);
		assert_int_equal(sio_peer_check(packet, news ? size : reply, &h, &err),
				 news ? -EPROTO : 0);
		fill(type | SIO_PEER_REPLY, sizeof(struct sio_msg_error), 1, ENOENT);
		assert_int_equal(sio_peer_check(packet, sizeof(struct sio_msg_error), &h, &err),
				 news ? -EPROTO : 0);
		memset(packet + sizeof(struct sio_msg), 'x', SIO_WIRE_TEXT);
		assert_int_equal(sio_peer_check(packet, sizeof(struct sio_msg_error), &h, &err),
				 -EPROTO);
		fill(type, size, news ? 0 : 1, EIO);
		assert_int_equal(sio_peer_check(packet, size, &h, &err), -EPROTO);
		assert_int_equal(sio_peer_check(packet, size - 1, &h, &err), -EPROTO);
	}
	assert_int_equal(known, 0 SIO_PEER_MESSAGES(ONE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_says_its_size),
		cmocka_unit_test(integers_are_little_endian),
		cmocka_unit_test(requests_of_clients),
		cmocka_unit_test(reserved_fields_are_zero),
		cmocka_unit_test(replies_to_clients),
		cmocka_unit_test(a_reply_to_a_request_that_nobody_knows),
		cmocka_unit_test(events_of_clients),
		cmocka_unit_test(how_often_a_segment_event_happened),
		cmocka_unit_test(messages_of_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
