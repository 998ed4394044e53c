/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "web/access.h"

const char *const tool_web_path[TOOL_WEB_PAGES] = {
	[TOOL_WEB_HTML] = "/",
	[TOOL_WEB_LIVE] = "/live.json",
};

bool tool_web_token_is(const char *given, const char token[TOOL_WEB_TOKEN + 1])
{
	unsigned char differs = 0;

	if (!given || strlen(given) != TOOL_WEB_TOKEN)
		return false;
	for (unsigned i = 0; i < TOOL_WEB_TOKEN; i++)
		differs |= (unsigned char)(given[i] ^ token[i]);
	return differs == 0;
}

/* "localhost" or "127.0.0.1", with or without ":PORT". */
static bool is_this_machine(const char *host)
{
	static const char *const name[] = {"localhost", "127.0.0.1"};

	for (unsigned i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		size_t len = strlen(name[i]);
		const char *rest = host + len;

		if (strncasecmp(host, name[i], len) != 0)
			continue;
		if (*rest == ':')
			rest++;
		else if (*rest)
			continue;
		while (isdigit((unsigned char)*rest))
			rest++;
		if (*rest == '\0')
			return true;
	}
	return false;
}

/*
 * Does the request come from a page of another origin? Programs without pages send neither header.
 */
static bool is_of_another_origin(const struct tool_web_request *r)
{
	static const char scheme[] = "http://";

	if (r->site && strcmp(r->site, "same-origin") != 0 && strcmp(r->site, "none") != 0)
		return true;
	return r->origin && (strncmp(r->origin, scheme, strlen(scheme)) != 0 ||
			     strcasecmp(r->origin + strlen(scheme), r->host) != 0);
}

unsigned tool_web_check(const struct tool_web_request *r, const char token[TOOL_WEB_TOKEN + 1],
			enum tool_web_page *ret_page, const char **ret_why)
{
	if (strcmp(r->method, "GET") != 0) {
		*ret_why = "GET is all that is answered";
		return 405;
	}
	if (r->n_hosts != 1 || !is_this_machine(r->host)) {
		*ret_why = "this is localhost or 127.0.0.1, and has no other name";
		return 421;
	}
	if (is_of_another_origin(r)) {
		*ret_why = "a page of another origin may not read this";
		return 403;
	}
	if (!tool_web_token_is(r->token, token)) {
		*ret_why = "the token is missing or wrong; the right address is the first line "
			   "that smartio web printed";
		return 403;
	}
	for (unsigned i = 0; i < TOOL_WEB_PAGES; i++) {
		if (strcmp(r->path, tool_web_path[i]) != 0)
			continue;
		*ret_page = (enum tool_web_page)i;
		return 0;
	}
	*ret_why = "/ and /live.json are all that there is";
	return 404;
}
