/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "core/err.h"
#include "smartio/uapi.h"

static void keeps_number_and_text(void **state)
{
	struct sio_err err = {0};

	(void)state;
	assert_int_equal(sio_fail(&err, -ENOSPC, "%s: %u entries", "adapter 0", 3), -ENOSPC);
	assert_int_equal(err.code, -ENOSPC);
	assert_string_equal(err.text, "adapter 0: 3 entries");
	assert_int_equal(sio_fail_prefix(&err, "host %d", 8), -ENOSPC);
	assert_string_equal(err.text, "host 8: adapter 0: 3 entries");
}

static void works_without_a_place_for_the_text(void **state)
{
	(void)state;
	assert_int_equal(sio_fail(NULL, -EINVAL, "%d", 1), -EINVAL);
	assert_true(sio_fail_prefix(NULL, "x") < 0);
}

static void cuts_what_is_too_long(void **state)
{
	struct sio_err err = {0};
	char text[2 * SIO_ERR_TEXT];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	sio_fail(&err, -EIO, "%s", text);
	assert_int_equal(strlen(err.text), SIO_ERR_TEXT - 1);
	assert_int_equal(sio_fail_prefix(&err, "bb"), -EIO);
	assert_int_equal(strlen(err.text), SIO_ERR_TEXT - 1);
	assert_memory_equal(err.text, "bb: aaa", 7);
	assert_int_equal(err.text[SIO_ERR_TEXT - 2], 'a');
	for (size_t len = SIO_ERR_TEXT - 4; len < SIO_ERR_TEXT + 4; len++) {
		sio_fail(&err, -EIO, "cc");
		assert_int_equal(sio_fail_prefix(&err, "%.*s", (int)len, text), -EIO);
		assert_in_range(strlen(err.text), SIO_ERR_TEXT - 4, SIO_ERR_TEXT - 1);
	}
}

/* For what there was none, and what to do about it. */
static void says_what_to_do_without_memory(void **state)
{
	struct sio_err err = {0};

	(void)state;
	assert_int_equal(sio_no_memory(&err, "%u copies", 3), -ENOMEM);
	assert_int_equal(err.code, -ENOMEM);
	assert_int_equal(err.reason, SIO_OUT_OF_MEMORY);
	assert_string_equal(err.text, "no memory for 3 copies: free some on the host, or raise the "
				      "process's limit (ulimit -v, memory.max)");
	assert_int_equal(sio_no_memory(NULL, "a map"), -ENOMEM);
}

static void names_what_ran_out(void **state)
{
	struct sio_err err;

	(void)state;
	for (unsigned i = 1; i < SIO_OUT_OF_COUNT; i++) {
		assert_true(strlen(sio_reason_name(i)) > 3);
		for (unsigned k = 1; k < i; k++)
			assert_string_not_equal(sio_reason_name(i), sio_reason_name(k));
	}
	assert_string_equal(sio_reason_name(SIO_OUT_OF_NOTHING), "");
	assert_string_equal(sio_reason_name(SIO_OUT_OF_COUNT), "");
	assert_string_equal(sio_reason_name(UINT32_MAX), "");

	sio_fail_exhausted(&err, -ENOSPC, SIO_OUT_OF_WATCHES, "%d of %d", 5, 5);
	assert_int_equal(err.reason, SIO_OUT_OF_WATCHES);
	assert_int_equal(sio_fail_prefix(&err, "here"), -ENOSPC);
	assert_int_equal(err.reason, SIO_OUT_OF_WATCHES);
	assert_int_equal(sio_err_reason(&err, -ENOSPC), SIO_OUT_OF_WATCHES);
	assert_int_equal(sio_err_reason(&err, -EMFILE), SIO_OUT_OF_DESCRIPTORS);
	assert_int_equal(sio_err_reason(&err, -EINVAL), SIO_OUT_OF_NOTHING);
	sio_fail(&err, -ENOMEM, "x");
	assert_int_equal(err.reason, SIO_OUT_OF_MEMORY);
	sio_fail(&err, -EBUSY, "%s again", err.text);
	assert_int_equal(err.reason, SIO_OUT_OF_NOTHING);
	assert_string_equal(err.text, "x again");
	assert_int_equal(sio_fail_exhausted(NULL, -ENOSPC, 1, "x"), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_number_and_text),
		cmocka_unit_test(works_without_a_place_for_the_text),
		cmocka_unit_test(cuts_what_is_too_long),
		cmocka_unit_test(says_what_to_do_without_memory),
		cmocka_unit_test(names_what_ran_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
