/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access control of smartio web: whether a request is answered, by what it asks for, its origin and
 * its token. Pure logic.
 */
#ifndef TOOLS_WEB_ACCESS_H
#define TOOLS_WEB_ACCESS_H

#include <stdbool.h>

#define TOOL_WEB_TOKEN 32 /* hexadecimal digits: 128 bits */

/* The headers that a browser sent; NULL: it did not. */
struct tool_web_request {
	const char *method, *path, *token;
	const char *host;	   /* the header Host; */
	unsigned n_hosts;	   /* how many there were */
	const char *origin, *site; /* Origin, Sec-Fetch-Site: browsers say who asks */
};

enum tool_web_page { TOOL_WEB_HTML, TOOL_WEB_LIVE, TOOL_WEB_PAGES };
extern const char *const tool_web_path[TOOL_WEB_PAGES];

/*
 * Return: 0: @ret_page is requested; otherwise the HTTP status, with the reason in *@ret_why, a
 * constant.
 *
 * A page of another origin may send requests here, also by a name that its owner has directed to
 * this machine (DNS rebinding). The former has no token; the latter is detected by its Host. Ports
 * are not compared: a tunnel may begin at another one.
 */
unsigned tool_web_check(const struct tool_web_request *r, const char token[TOOL_WEB_TOKEN + 1],
			enum tool_web_page *ret_page, const char **ret_why);

/* Compares in constant time, whichever digit differs. @given: NULL: it is wrong. */
bool tool_web_token_is(const char *given, const char token[TOOL_WEB_TOKEN + 1]);

#endif
