/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of the Linux NTB API: what smartio_ntb.ko decides without the kernel. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "windows.h"

#define MIB (1ULL << 20)

/* The first leads to memory at 64 MiB, as smartio_ntb.ko has it; the others are free. */
static struct sio_ntb_windows some(unsigned n)
{
	struct sio_ntb_windows ws = {.n = n};

	for (unsigned i = 0; i < n; i++) {
		ws.window[i].align = 4096;
		ws.window[i].most = 4 * MIB;
	}
	ws.window[0].at.base = 64 * MIB;
	ws.window[0].at.size = 4 * MIB;
	ws.window[0].users = 1;
	return ws;
}

static int take(struct sio_ntb_windows *ws, uint64_t bus, uint64_t length, unsigned *ret)
{
	bool fresh = false;
	int error = sio_ntb_windows_take(ws, bus, length, ret, &fresh);

	return error ? error : fresh;
}

static void what_a_window_leads_to_needs_no_other(void **state)
{
	struct sio_ntb_windows ws = some(2);
	unsigned w = 9;

	(void)state;
	assert_int_equal(take(&ws, 64 * MIB, 4096, &w), 0);
	assert_int_equal(w, 0);
	assert_int_equal(take(&ws, 68 * MIB - 4096, 4096, &w), 0);
	assert_int_equal(w, 0);
	assert_int_equal(take(&ws, 64 * MIB, 4 * MIB, &w), 0);
	assert_int_equal(ws.window[0].users, 4);
	assert_int_equal(ws.window[1].users, 0);
}

static void another_one_leads_elsewhere_while_it_is_needed(void **state)
{
	struct sio_ntb_windows ws = some(2);
	unsigned w = 9;

	(void)state;
	assert_int_equal(take(&ws, 0xfebd0000, 0x4000, &w), 1);
	assert_int_equal(w, 1);
	assert_int_equal(ws.window[1].at.base, 0xfe800000); /* as aligned as it is long */
	assert_int_equal(ws.window[1].at.size, 4 * MIB);
	assert_int_equal(take(&ws, 0xfebd1000, 4096, &w), 0);
	assert_int_equal(take(&ws, 0xfee00000, 4096, &w), -ENOSPC);
	ws.window[1].set = true;
	assert_false(sio_ntb_windows_drop(&ws, 1));
	assert_true(ws.window[1].set);
	assert_true(sio_ntb_windows_drop(&ws, 1));
	assert_false(ws.window[1].set); /* whatever it leads to next is to be set */
	assert_int_equal(ws.window[1].at.size, 0);
	assert_int_equal(take(&ws, 0xfee00000, 4096, &w), 1);
	assert_int_equal(w, 1);
	assert_int_equal(ws.window[1].at.base, 0xfec00000);
}

static void what_no_window_holds_is_told(void **state)
{
	struct sio_ntb_windows ws = some(2);
	unsigned w = 9;

	(void)state;
	assert_int_equal(take(&ws, 0, 4 * MIB + 1, &w), -ERANGE);
	assert_int_equal(take(&ws, UINT64_MAX - 4095, UINT64_MAX, &w), -ERANGE);
	assert_int_equal(take(&ws, 0, 0, &w), -ERANGE);
	/* Over the border of two aligned pieces, if the hardware aligns no finer. */
	assert_int_equal(take(&ws, 8 * MIB - 4096, 8192, &w), 1);
	assert_int_equal(ws.window[1].at.base, 8 * MIB - 4096);
	assert_true(sio_ntb_windows_drop(&ws, 1));
	ws.window[1].align = 4 * MIB;
	ws.window[0].align = 4 * MIB;
	assert_int_equal(take(&ws, 8 * MIB - 4096, 8192, &w), -ERANGE);
}

static struct sio_ntb_header header_of(const struct sio_ntb_windows *ws)
{
	struct sio_ntb_header h = {
		.magic = SIO_NTB_MAGIC, .version = SIO_NTB_VERSION, .boot = 1, .peers = 2};

	h.row[0].port = 3;
	h.row[1].port = 7;
	h.row[1].windows = ws->n;
	for (unsigned i = 0; i < ws->n; i++)
		h.row[1].window[i] = ws->window[i].at;
	return h;
}

static void importers_find_what_was_granted(void **state)
{
	struct sio_ntb_windows ws = some(2);
	struct sio_ntb_header h;
	__u64 at = 0;
	unsigned w;

	(void)state;
	assert_int_equal(take(&ws, 0xfebd0000, 0x4000, &w), 1);
	h = header_of(&ws);
	assert_true(sio_ntb_header_good(&h));
	assert_int_equal(sio_ntb_header_find(&h, 7, 65 * MIB, 4096, &at), 0);
	assert_int_equal(at, MIB);
	assert_int_equal(sio_ntb_header_find(&h, 7, 0xfebd1000, 4096, &at), 1);
	assert_int_equal(at, 0x3d1000);
	assert_int_equal(sio_ntb_header_find(&h, 7, 68 * MIB - 4096, 8192, &at), -ENOENT);
	assert_int_equal(sio_ntb_header_find(&h, 7, 68 * MIB, 4096, &at), -ENOENT);
	assert_int_equal(sio_ntb_header_find(&h, 3, 65 * MIB, 4096, &at), -ENOENT);
	assert_true(sio_ntb_windows_drop(&ws, 1));
	h = header_of(&ws);
	assert_int_equal(sio_ntb_header_find(&h, 7, 0xfebd1000, 4096, &at), -ENOENT);
}

/* A peer writes what it likes; nothing of it leads out of a table. */
static void a_lying_header_is_no_harm(void **state)
{
	struct sio_ntb_windows ws = some(1);
	struct sio_ntb_header h = header_of(&ws);
	__u64 at;

	(void)state;
	h.row[1].windows = UINT32_MAX;
	assert_int_equal(sio_ntb_header_find(&h, 7, 0, 4096, &at), -ENOENT);
	h.peers = SIO_NTB_PEERS + 1;
	assert_false(sio_ntb_header_good(&h));
	h = header_of(&ws);
	h.changes = 1;
	assert_false(sio_ntb_header_good(&h));
	h = header_of(&ws);
	h.boot = 1 << 24;
	assert_false(sio_ntb_header_good(&h));
	memset(&h, 0xff, sizeof(h));
	assert_false(sio_ntb_header_good(&h));
	memset(&h, 0, sizeof(h));
	assert_false(sio_ntb_header_good(&h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_window_leads_to_needs_no_other),
		cmocka_unit_test(another_one_leads_elsewhere_while_it_is_needed),
		cmocka_unit_test(what_no_window_holds_is_told),
		cmocka_unit_test(importers_find_what_was_granted),
		cmocka_unit_test(a_lying_header_is_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
