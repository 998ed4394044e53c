/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes and headers of every message, and what the checks refuse. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "wire/check.h"

/* The largest type of any protocol is below this; replies between peers have a bit more. */
#define TYPES 1024u

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
	assert_string_equal(err.text, "message 7 says 32 bytes and has 24");
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
	assert_int_equal(known, 48);
}

/* Every request field that is named reserved, by its place. */
static void reserved_fields_are_zero(void **state)
{
#define RESERVED(TYPE, type)                                                                       \
	{                                                                                          \
		SIO_MSG_##TYPE, sizeof(type), offsetof(type, reserved)                             \
	}
	static const struct {
		uint32_t type;
		size_t size, at;
	} fields[] = {
		RESERVED(ADAPTER, struct sio_msg_adapter),
		RESERVED(LINK, struct sio_msg_adapter),
		RESERVED(SEG_PREPARE, struct sio_msg_seg_adapter),
		RESERVED(SEG_AVAILABLE, struct sio_msg_seg_adapter),
		RESERVED(SEG_UNAVAILABLE, struct sio_msg_seg_adapter),
		RESERVED(DINT_CREATE, struct sio_msg_dint_create),
		RESERVED(DEV_LIST, struct sio_msg_dev_list),
		RESERVED(DEV_SEG_CREATE, struct sio_msg_dev_seg_create),
		RESERVED(DMA_MAP, struct sio_msg_dma_map),
		RESERVED(DEV_HOLD, struct sio_msg_dev_hold),
		RESERVED(DEV_UNHOLD, struct sio_msg_dev_unhold),
		RESERVED(DEV_VECTOR, struct sio_msg_dev_vector),
		RESERVED(DEV_UNVECTOR, struct sio_msg_dev_vector),
		RESERVED(QUEUE_ATTACH, struct sio_msg_queue_attach),
		RESERVED(LIST, struct sio_msg_list),
	};
	struct sio_wire_header h;
	struct sio_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		for (unsigned bit = 0; bit < 32; bit++) {
			fill(fields[i].type, fields[i].size, 1, 0);
			packet[fields[i].at + bit / 8] = (unsigned char)(1u << bit % 8);
			assert_int_equal(sio_client_check_request(packet, fields[i].size, &h, &err),
					 -EINVAL);
		}
	}
}

static void replies_to_clients(void **state)
{
	struct sio_wire_header h;
	struct sio_err err;

	(void)state;
	for (uint32_t type = 0; type < TYPES; type++) {
		size_t size = sio_client_reply_size(type);

		assert_int_equal(size == 0, sio_client_request_size(type) == 0);
		if (size == 0)
			continue;
		fill(type, size, 1, 0);
		assert_int_equal(sio_client_check_reply(type, packet, size, &h, &err), 0);
		assert_int_equal(sio_client_check_reply(type + 1, packet, size, &h, &err), -EPROTO);
		fill(type, size + 8, 1, 0);
		assert_int_equal(sio_client_check_reply(type, packet, size + 8, &h, &err), -EPROTO);
		fill(type, sizeof(struct sio_msg_error), 1, EBUSY);
		assert_int_equal(sio_client_check_reply(type, packet, sizeof(struct sio_msg_error),
							&h, &err),
				 0);
		assert_int_equal(h.error, EBUSY);
		assert_int_equal(sio_client_check_reply(type, packet, 24, &h, &err), -EPROTO);
		fill(type, sizeof(struct sio_msg_error) + 8, 1, EBUSY);
		assert_int_equal(sio_client_check_reply(type, packet,
							sizeof(struct sio_msg_error) + 8, &h, &err),
				 -EPROTO);
		fill(type, sizeof(struct sio_msg_error), 1, EBUSY);
		memset(packet + sizeof(struct sio_msg), 'x', SIO_WIRE_TEXT);
		assert_int_equal(sio_client_check_reply(type, packet, sizeof(struct sio_msg_error),
							&h, &err),
				 -EPROTO);
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
	assert_int_equal(known, 6);
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
		int news = sio_peer_is_news(type);

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
	assert_int_equal(known, 34);
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
