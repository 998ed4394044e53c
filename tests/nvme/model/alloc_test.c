/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that runs out while a drive is made or loses power, and drives larger than usual. */
#include "rig.h"

#include <errno.h>
#include <string.h>

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static unsigned fail_at; /* the allocation that fails, counted down; 0: none */

void *__wrap_calloc(size_t n, size_t size)
{
	if (fail_at && --fail_at == 0)
		return NULL;
	return __real_calloc(n, size);
}

static uint64_t no_time(struct emu_dev *d)
{
	(void)d;
	return 0;
}

/* The leak checker sees what a failure left behind. */
static void each_allocation_fails_once(void **state)
{
	struct emu_dev dev = {.now = no_time};
	struct emu_dev_config config;
	struct sio_topo_device topo;
	unsigned n = 0;
	void *model;
	int r;

	(void)state;
	rig_topo(&topo);
	do {
		struct sio_err err = {0};

		fail_at = ++n;
		model = NULL;
		r = emu_nvme_model.create(&dev, &topo, &config, &model, &err);
		if (r == 0)
			break;
		assert_int_equal(r, -ENOMEM);
		assert_int_equal(err.code, -ENOMEM);
		assert_non_null(strstr(err.text, "nvme0"));
		assert_null(model);
	} while (n < 100);
	fail_at = 0;
	assert_int_equal(r, 0);
	assert_int_equal(n, 7); /* controller, two kinds of queues, active ones, media; then none */
	emu_nvme_model.destroy(model);
	emu_nvme_model.destroy(NULL);
}

static void power_loss_zeroes_media_without_memory(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 4096);

	rig_pair(r, 1, 8);
	memset(rig_at(r, data), 0x5a, 4096);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write, 0, 8, data, 0), NULL), 0);
	fail_at = 1;
	emu_nvme_model.reset(r->model, true);
	assert_int_equal(fail_at, 0);
	rig_enable(r, 32, 32);
	rig_pair(r, 1, 8);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 8, data, 0), NULL), 0);
	for (unsigned i = 0; i < 4096; i++)
		assert_int_equal(*(uint8_t *)rig_at(r, data + i), 0);
}

static void many_queue_pairs_have_many_doorbells_3_1(void **state)
{
	struct sio_topo_device topo;
	struct rig *r;

	(void)state;
	rig_topo(&topo);
	topo.queue_pairs = 65535;
	topo.queue_entries = 65536;
	r = rig_new(&topo);
	assert_int_equal(r->config.pages[1].length, 65536 * 8);
	assert_true(r->config.bar_size[0] >= 4096 + 65536 * 8);
	assert_int_equal(r->config.bar_size[0] & (r->config.bar_size[0] - 1), 0);
	rig_enable(r, 8, 8);
	assert_int_equal(NVME_CAP_MQES(rig_reg64(r, NVME_REG_CAP)), 65535);
	assert_int_equal(rig_do(r, 0, rig_create_cq(r, 65535, 2), NULL), 0);
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, 65535, 2, 65535), NULL), 0);
	r->doorbells[2 * 65535] = 2;
	rig_run(r);
	assert_int_equal(rig_counter(r, "invalid_doorbells"), 1);
	assert_int_equal(rig_counter(r, "queue_pairs"), 1);
	rig_free(r);
}

static void counters_fit_where_they_are_told_to(void **state)
{
	struct rig *r = *state;
	uint64_t value[3] = {0, 0, 77};
	char name[3][32] = {"", "", "mine"};

	assert_int_equal(emu_nvme_model.counters(r->model, name, value, 2), 2);
	assert_string_equal(name[0], "commands_read");
	assert_string_equal(name[2], "mine");
	assert_int_equal(value[2], 77);
}

/* Until the room has pages for it, the model waits. */
static void without_pages_nothing_is_done(void **state)
{
	struct rig *r = *state;
	uint32_t *doorbells = r->doorbells;
	void *model;

	r->doorbells = NULL;
	assert_int_equal(emu_nvme_model.create(&r->dev, &r->topo, &r->config, &model, NULL), 0);
	assert_int_equal(emu_nvme_model.step(model, 10), 0);
	assert_true(emu_nvme_model.idle(model));
	emu_nvme_model.destroy(model);
	r->doorbells = doorbells;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_fails_once),
		rig_test(power_loss_zeroes_media_without_memory),
		cmocka_unit_test(many_queue_pairs_have_many_doorbells_3_1),
		rig_test(counters_fit_where_they_are_told_to),
		rig_test(without_pages_nothing_is_done),
	};

	return cmocka_run_group_tests_name("nvme model: memory", tests, NULL, NULL);
}
