/* SPDX-License-Identifier: BSD-2-Clause */
/* Admin commands of clients: what the manager allows, to whom and when, and what comes back. */
#include <nvme/types.h>

#include <endian.h>

#include "client.h"
#include "common.h"
#include "manager.h"
#include "rule.h"
#include "smartio/ext.h"

/* The rule for every opcode and every feature there can be; nothing is allowed by forgetting it. */
static void the_rule_knows_every_opcode(void **state)
{
	static const uint8_t allowed[] = {0x02, 0x06, 0x0a, 0x82, 0x86},
			     confirm[] = {0x14, 0x19, 0x1a}, alone[] = {0x80, 0x81, 0x84};
	const char *why;

	(void)state;
	for (uint32_t op = 0; op <= 0xff; op++) {
		const struct sio_nvme_wire_admin c = {.opcode = op};
		enum sio_nvme_verdict want = op >= 0xc0 ? SIO_NVME_VENDOR : SIO_NVME_REFUSED;

		if (memchr(allowed, (int)op, sizeof(allowed)))
			want = SIO_NVME_ALLOWED;
		if (memchr(confirm, (int)op, sizeof(confirm)))
			want = SIO_NVME_CONFIRM;
		if (memchr(alone, (int)op, sizeof(alone)))
			want = SIO_NVME_ALONE;
		assert_int_equal(sio_nvme_rule(&c, &why), want);
		assert_true(strlen(why) > 5);
	}
	for (uint32_t feature = 0; feature <= 0xff; feature++) {
		static const uint8_t refused[] = {0x00, 0x07, 0x0b, 0x0d, 0x0f, 0x81, 0x82, 0x83};
		const struct sio_nvme_wire_admin c = {.opcode = 0x09, .cdw = {1u << 31 | feature}};
		enum sio_nvme_verdict got = sio_nvme_rule(&c, &why);

		if (memchr(refused, (int)feature, sizeof(refused)))
			assert_int_equal(got, SIO_NVME_REFUSED);
		assert_int_not_equal(got, SIO_NVME_ALLOWED);
		assert_int_equal(got == SIO_NVME_VENDOR, feature >= 0xc0);
	}
}

static void no_command_moves_more_than_its_page(void **state)
{
	const struct {
		struct sio_nvme_wire_admin c;
		bool good;
	} t[] = {
		{{.opcode = 0x02, .bytes = 4096, .cdw = {1023u << 16}}, true},
		{{.opcode = 0x02, .bytes = 4096, .cdw = {1024u << 16}}, false},
		{{.opcode = 0x02, .cdw = {0, 1}}, false},
		{{.opcode = 0x02, .cdw = {0xffff0000, 0xffff}}, false},
		{{.opcode = 0x82, .cdw = {0, 4096}}, true},
		{{.opcode = 0x82, .cdw = {0, 4097}}, false},
		{{.opcode = 0x1a, .cdw = {1024}}, false},
		{{.opcode = 0x86, .cdw = {0, 0, 1024}}, false},
		{{.opcode = 0x86, .cdw = {0, 0, 0xffffffff}}, false},
		{{.opcode = 0xc2, .cdw = {1025}}, false},
		{{.opcode = 0x06, .bytes = 4097}, false},
		{{.opcode = 0x06, .bytes = 4, .flags = SIO_NVME_ADMIN_TO_DRIVE}, false},
		{{.opcode = 0x81, .bytes = 4, .flags = SIO_NVME_ADMIN_TO_DRIVE}, true},
		{{.opcode = 0x81, .bytes = 4}, false},
		{{.opcode = 0x80, .bytes = 4}, false},
		{{.opcode = 0x06, .flags = 4}, false},
		{{.opcode = 0x06, .timeout_ms = 600001}, false},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		const char *why = "";

		assert_int_equal(sio_nvme_rule_data(&t[i].c, &why), t[i].good);
		assert_int_equal(*why == '\0', t[i].good);
	}
}

static int give(struct smartio_nvme *n, uint32_t opcode, uint32_t flags)
{
	const struct smartio_nvme_admin c = {
		.size = sizeof(c), .opcode = opcode, .flags = flags, .nsid = 1};

	return smartio_nvme_admin(n, &c, NULL, NULL);
}

static void what_breaks_others_is_refused(void **state)
{
	static const uint32_t refused[] = {0x00, 0x01, 0x04, 0x05, 0x08,
					   0x0c, 0x0d, 0x10, 0x7c, 0xc0};
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	struct smartio_nvme_admin wrong = {.size = sizeof(wrong), .opcode = 0x100};
	uint8_t data[512];

	(void)state;
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_int_equal(give(n, refused[i], SMARTIO_NVME_CONFIRMED), -EPERM);
		assert_text("the manager of nvme0 refuses admin command 0x");
	}
	assert_int_equal(give(n, 0x04, 0), -EPERM);
	assert_text("queues are the manager's to make and to delete");
	assert_int_equal(smartio_nvme_admin(n, &wrong, NULL, NULL), -EINVAL);
	wrong.opcode = 6, wrong.bytes = 4;
	assert_int_equal(smartio_nvme_admin(n, &wrong, NULL, NULL), -EINVAL);
	wrong.bytes = 5000, wrong.data = data;
	assert_int_equal(smartio_nvme_admin(n, &wrong, NULL, NULL), -EINVAL);
	wrong.bytes = 0, wrong.flags = 8;
	assert_int_equal(smartio_nvme_admin(n, &wrong, NULL, NULL), -EINVAL);
	assert_int_equal(fake_csts(), 1);
	assert_ok(smartio_nvme_read(q, data, 0, sizeof(data)));
	smartio_nvme_close(n);
}

static void logs_and_features(void **state)
{
	struct smartio_nvme *n = client();
	struct nvme_error_log_page error[80];
	struct nvme_smart_log smart;
	uint32_t value = 0;

	(void)state;
	assert_ok(smartio_nvme_get_log(n, NVME_LOG_LID_SMART, NVME_NSID_ALL, 0, &smart,
				       sizeof(smart)));
	assert_int_equal(smart.avail_spare, 100);
	assert_int_equal(smartio_nvme_identify(n, 0x77, 0, error), -EIO);
	/* Two commands, of which the second one begins where the first one ends. */
	assert_ok(smartio_nvme_get_log(n, NVME_LOG_LID_ERROR, NVME_NSID_ALL, 0, error,
				       64 * sizeof(error[0])));
	assert_int_not_equal(le64toh(error[0].error_count), 0);
	assert_int_equal(smartio_nvme_get_log(n, 0x7f, NVME_NSID_ALL, 0, &smart, 512), -EIO);
	assert_text("invalid log page");
	assert_int_equal(smartio_nvme_get_log(n, 2, NVME_NSID_ALL, 0, &smart, 3), -EINVAL);
	assert_ok(smartio_nvme_get_feature(n, NVME_FEAT_FID_NUM_QUEUES, 0, 0, &value));
	assert_int_equal(value, 3 << 16 | 3);
	assert_int_equal(smartio_nvme_set_feature(n, NVME_FEAT_FID_TEMP_THRESH, 0, 300, 0),
			 -EACCES);
	assert_text("must be confirmed: thresholds are all clients'");
	assert_ok(smartio_nvme_set_feature(n, NVME_FEAT_FID_TEMP_THRESH, 0, 350,
					   SMARTIO_NVME_CONFIRMED));
	assert_ok(smartio_nvme_get_feature(n, NVME_FEAT_FID_TEMP_THRESH, 0, 0, &value));
	assert_int_equal(value, 350);
	assert_int_equal(
		smartio_nvme_set_feature(n, NVME_FEAT_FID_NUM_QUEUES, 0, 1, SMARTIO_NVME_CONFIRMED),
		-EPERM);
	smartio_nvme_close(n);
}

static void a_status_can_be_had(void **state)
{
	const struct smartio_nvme_admin c = {.size = sizeof(c), .opcode = 0x06, .cdw10 = 0x77};
	struct smartio_nvme *n = client();
	uint32_t status = 0;

	(void)state;
	assert_ok(smartio_nvme_admin(n, &c, NULL, &status));
	assert_string_equal(smartio_nvme_status_string(status), "invalid field in command");
	assert_int_equal(smartio_nvme_admin(n, &c, NULL, NULL), -EIO);
	assert_text("refused admin command 0x06: invalid field in command");
	smartio_nvme_close(n);
}

static void nobody_is_formatted_under(void **state)
{
	struct smartio_nvme *n = client(), *other = client();
	struct smartio_nvme_queue *q = queue(other, 4);
	struct smartio_nvme_namespace ns;
	static uint8_t data[4096];

	(void)state;
	memset(fake_media(), 0xee, FAKE_BLOCKS * 512);
	assert_int_equal(smartio_nvme_format(n, 1, 1, 0), -EACCES);
	assert_text("must be confirmed: Format NVM destroys the data of all");
	assert_int_equal(smartio_nvme_format(n, 1, 1, SMARTIO_NVME_CONFIRMED), -EBUSY);
	assert_text("clients have queue pairs of nvme0: node 8: 1 (nvme-driver-adm)");
	assert_int_equal(fake_media()[0], 0xee);
	smartio_nvme_queue_close(q);
	assert_ok(smartio_nvme_format(n, 1, 1, SMARTIO_NVME_CONFIRMED));
	assert_int_equal(fake_media()[0], 0);
	assert_ok(smartio_nvme_get_namespace(n, 0, &ns));
	assert_int_equal(ns.block_size, 4096);
	assert_int_equal(ns.blocks, FAKE_BLOCKS / 8);
	q = queue(n, 4);
	assert_int_equal(smartio_nvme_read(q, data, 512, 512), -EINVAL);
	assert_ok(smartio_nvme_write(q, data, 4096, 4096));
	/* Whoever knows the old blocks alone gets no queue pair. */
	assert_int_equal(smartio_nvme_queue_open(other, NULL, &q), -ESTALE);
	assert_text("was formatted since this client opened it");
	smartio_nvme_close(other);
	other = client();
	assert_ok(smartio_nvme_read(queue(other, 4), data, 4096, 4096));
	smartio_nvme_close(other);
	smartio_nvme_close(n);
}

static void vendors_commands_need_a_manager_that_allows_them(void **state)
{
	const struct smartio_nvme_manager_options o = {.size = sizeof(o),
						       .flags = SMARTIO_NVME_ALLOW_VENDOR},
						  wrong = {.size = sizeof(o), .flags = 4};
	struct smartio_nvme *n = client();
	struct smartio_nvme_manager *m;

	(void)state;
	assert_int_equal(give(n, 0xc0, SMARTIO_NVME_CONFIRMED), -EPERM);
	assert_text("which it was not started to allow");
	smartio_nvme_close(n);
	stop_manager();
	assert_int_equal(smartio_nvme_manager_open("nvme0", &wrong, &m), -EINVAL);
	assert_ok(smartio_nvme_manager_open("nvme0", &o, &m));
	fake.manager = m;
	n = client();
	assert_int_equal(give(n, 0xc0, 0), -EACCES);
	assert_int_equal(give(n, 0xc0, SMARTIO_NVME_CONFIRMED), -EIO);
	assert_text("invalid command opcode");
	smartio_nvme_close(n);
}

static void pairs_are_told_with_their_owners(void **state)
{
	struct smartio_nvme *n = client(), *other = client();
	struct smartio_nvme_pair pair[4];

	(void)state;
	assert_int_equal(smartio_nvme_get_pairs(n, pair, 4), 0);
	queue(n, 4);
	queue(other, 4);
	queue(n, 4);
	assert_int_equal(smartio_nvme_get_pairs(other, pair, 4), 3);
	for (unsigned i = 0; i < 3; i++) {
		const struct smartio_nvme *owner = i == 1 ? other : n;

		assert_int_equal(pair[i].id, i + 1);
		assert_int_equal(pair[i].node, FAKE_NODE);
		assert_true(pair[i].borrower == smartio_borrower_id(owner->d.handle));
		assert_string_equal(pair[i].program, "nvme-driver-adm");
	}
	assert_int_equal(smartio_nvme_get_pairs(other, pair, 2), 2);
	smartio_nvme_close(n);
	smartio_nvme_close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rule_knows_every_opcode),
		cmocka_unit_test(no_command_moves_more_than_its_page),
		TEST(what_breaks_others_is_refused),
		TEST(logs_and_features),
		TEST(a_status_can_be_had),
		TEST(nobody_is_formatted_under),
		TEST(vendors_commands_need_a_manager_that_allows_them),
		TEST(pairs_are_told_with_their_owners),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
