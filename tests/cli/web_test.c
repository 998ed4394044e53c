/* SPDX-License-Identifier: BSD-2-Clause */
/* Who may read what smartio web serves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "web/access.h"

static const char token[] = "0123456789abcdef0123456789abcdef";

static const struct tool_web_request right = {
	.method = "GET", .path = "/", .token = token, .host = "127.0.0.1:4000", .n_hosts = 1};

static unsigned check(const struct tool_web_request *r)
{
	enum tool_web_page page = TOOL_WEB_PAGES;
	const char *why = NULL;
	unsigned status = tool_web_check(r, token, &page, &why);

	assert_int_equal(status == 0, page != TOOL_WEB_PAGES);
	assert_int_equal(status == 0, why == NULL);
	return status;
}

static void test_tokens(void **state)
{
	char other[sizeof(token)];

	(void)state;
	assert_true(tool_web_token_is(token, token));
	assert_false(tool_web_token_is(NULL, token));
	assert_false(tool_web_token_is("", token));
	assert_false(tool_web_token_is("0123456789abcdef0123456789abcdef0", token));
	for (unsigned i = 0; i < TOOL_WEB_TOKEN; i++) {
		memcpy(other, token, sizeof(other));
		other[i] ^= 1;
		assert_false(tool_web_token_is(other, token));
		other[i] = '\0'; /* shorter */
		assert_false(tool_web_token_is(other, token));
	}
}

static void test_hosts(void **state)
{
	static const char *const good[] = {"127.0.0.1:4000", "127.0.0.1", "localhost",
					   "LocalHost:9", "localhost:"};
	static const char *const bad[] = {"",
					  "evil.example:4000",
					  "127.0.0.1.evil.example",
					  "localhost.evil",
					  "127.0.0.1:4000x",
					  "localhost:1:2",
					  "127.0.0.11:4000",
					  "x127.0.0.1",
					  "[::1]:4000",
					  "127.0.0.1 :4000"};
	struct tool_web_request r = right;

	(void)state;
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		r.host = good[i];
		assert_int_equal(check(&r), 0);
	}
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		r.host = bad[i];
		assert_int_equal(check(&r), 421);
	}
	r = right;
	r.n_hosts = 2;
	assert_int_equal(check(&r), 421);
	r.n_hosts = 0;
	r.host = NULL;
	assert_int_equal(check(&r), 421);
}

static void test_origins(void **state)
{
	static const struct {
		const char *origin, *site;
		unsigned status;
	} row[] = {{"http://127.0.0.1:4000", "same-origin", 0},
		   {NULL, "none", 0},
		   {NULL, "cross-site", 403},
		   {NULL, "same-site", 403}, /* another port of this machine */
		   {NULL, "", 403},
		   {"http://127.0.0.1:4001", NULL, 403},
		   {"https://127.0.0.1:4000", NULL, 403},
		   {"http://evil.example", "same-origin", 403},
		   {"http://", NULL, 403},
		   {"", NULL, 403},
		   {"null", NULL, 403}};
	struct tool_web_request r = right;

	(void)state;
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		r.origin = row[i].origin;
		r.site = row[i].site;
		assert_int_equal(check(&r), row[i].status);
	}
}

static void test_methods_and_paths(void **state)
{
	static const char *const method[] = {"HEAD", "POST", "PUT", "DELETE", "OPTIONS", "get", ""};
	static const char *const path[] = {"", "//", "/live", "/live.json/", "/../", "/index.html"};
	struct tool_web_request r = right;
	enum tool_web_page page;
	const char *why;

	(void)state;
	for (unsigned i = 0; i < sizeof(method) / sizeof(method[0]); i++) {
		r.method = method[i];
		assert_int_equal(check(&r), 405);
	}
	r = right;
	r.path = "/live.json";
	assert_int_equal(tool_web_check(&r, token, &page, &why), 0);
	assert_int_equal(page, TOOL_WEB_LIVE);
	for (unsigned i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
		r.path = path[i];
		r.token = token;
		assert_int_equal(check(&r), 404);
		r.token = "x"; /* what there is is told to nobody who may not read it */
		assert_int_equal(check(&r), 403);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_origins),
		cmocka_unit_test(test_methods_and_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
