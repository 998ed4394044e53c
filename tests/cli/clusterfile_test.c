/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another host's file, as its daemon says it: which may say anything. It is read within what was
 * allocated for it, the reader comes to an end, and what is printed of it is plain text.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clusterfile.h"
#include "base/output.h"

static struct {
	const char *text;
	size_t len, part;
	size_t grows;  /* after the first part it says that there is so much more */
	bool restless; /* another file each time */
} theirs;
static unsigned calls;

void *tool_alloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	assert_non_null(p);
	return p;
}

int tool_client_call(struct tool_client *c, uint32_t type, void *req, size_t req_size, void *rep,
		     size_t rep_size, struct sio_err *reterr)
{
	const struct sio_msg_file *m = req;
	struct sio_rep_file *r = rep;
	bool other = m->node != 0;
	const char *text = other ? theirs.text : "ours\n";
	size_t len = other ? theirs.len : 5, offset = sio_from_le32(m->offset);
	size_t part = other && theirs.part ? theirs.part : sizeof(r->bytes);
	size_t n = offset + part < len ? part : offset < len ? len - offset : 0;

	(void)c;
	(void)reterr;
	assert_int_equal(type, SIO_MSG_FILE);
	assert_true(req_size == sizeof(*m) && rep_size == sizeof(*r));
	assert_true(++calls < 1000);
	memset(r, 0, sizeof(*r));
	if (n)
		memcpy(r->bytes, text + offset, n);
	r->total = sio_to_le32((uint32_t)len);
	r->sum = sio_to_le64(other ? 2 : 1);
	if (other && theirs.restless)
		r->sum = sio_to_le64(calls);
	if (other && theirs.grows && offset) {
		r->total = sio_to_le32((uint32_t)(len + theirs.grows));
		n = sizeof(r->bytes);
	}
	r->count = sio_to_le32((uint32_t)n);
	return 0;
}

static struct {
	unsigned n;
	char last[TOOL_FILE_LINE + 1];
} told;

static void tell(void *ctx, bool mine, unsigned line, const char *text)
{
	(void)ctx;
	(void)line;
	told.n++;
	assert_true(strlen(text) <= TOOL_FILE_LINE);
	if (!mine)
		strcpy(told.last, text);
}

static int compare(const char *text, size_t len, unsigned *ret_n)
{
	struct tool_client c = {.fd = -1};
	struct sio_err err;

	memset(&told, 0, sizeof(told));
	calls = 0;
	theirs.text = text;
	theirs.len = len;
	return tool_file_compare(&c, 8, tell, NULL, ret_n, &err);
}

static void a_file_of_several_parts(void **state)
{
	unsigned n;

	(void)state;
	memset(&theirs, 0, sizeof(theirs));
	theirs.part = 2;
	assert_int_equal(compare("theirs\nours\n", 12, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(told.last, "theirs");
}

/* Its first part says how long it is, the next ones that it is longer. */
static void a_file_that_grows_as_it_is_read(void **state)
{
	unsigned n;

	(void)state;
	memset(&theirs, 0, sizeof(theirs));
	theirs.part = 1;
	theirs.grows = 1 << 19;
	assert_true(compare("xy", 2, &n) < 0);
}

static void a_file_that_is_never_the_same(void **state)
{
	unsigned n;

	(void)state;
	memset(&theirs, 0, sizeof(theirs));
	theirs.part = 1;
	theirs.restless = true;
	assert_int_equal(compare("xyz", 3, &n), -EAGAIN);
	assert_true(calls < 50);
}

static void what_is_shown_is_plain_text(void **state)
{
	static char much[3 * 400 + 4000];
	unsigned n;

	(void)state;
	memset(&theirs, 0, sizeof(theirs));
	assert_int_equal(compare("\tz\033]0;x\007\x7f\xc2\x9b\0y\r", 14, &n), 0);
	assert_string_equal(told.last, " z?]0;x????"
				       "?y?");
	for (unsigned i = 0; i < 400; i++)
		memcpy(much + 2 * i, "x\n", 2);
	memset(much + 800, 'l', sizeof(much) - 800);
	assert_int_equal(compare(much, sizeof(much), &n), 0);
	assert_int_equal(n, 402); /* of ours one */
	assert_int_equal(told.n, TOOL_FILE_LINES);
	assert_int_equal(compare(much + 800, 3000, &n), 0);
	assert_int_equal(strlen(told.last), TOOL_FILE_LINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_of_several_parts),
		cmocka_unit_test(a_file_that_grows_as_it_is_read),
		cmocka_unit_test(a_file_that_is_never_the_same),
		cmocka_unit_test(what_is_shown_is_plain_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
