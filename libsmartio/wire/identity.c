/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "wire/identity.h"

#define SCHEME "smartio:"

const char *sio_identity_text(const struct sio_identity *i, char *out)
{
	snprintf(out, SIO_IDENTITY_TEXT, SCHEME "%s/%s", i->cluster, i->host);
	return out;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* As a topology file may have it. */
static bool is_name(const char *text, size_t len)
{
	if (len == 0 || len >= SIO_NAME_LEN || !is_letter(*text))
		return false;
	for (size_t i = 1; i < len; i++)
		if (!is_letter(text[i]) && (text[i] < '0' || text[i] > '9') && text[i] != '-' &&
		    text[i] != '_')
			return false;
	return true;
}

int sio_identity_parse(const char *uri, size_t len, struct sio_identity *ret)
{
	const size_t scheme = strlen(SCHEME);
	struct sio_identity i = {.cluster = ""};
	const char *slash;

	if (len < scheme || memcmp(uri, SCHEME, scheme) != 0)
		return -EINVAL;
	uri += scheme;
	len -= scheme;
	slash = memchr(uri, '/', len);
	if (!slash || !is_name(uri, (size_t)(slash - uri)) ||
	    !is_name(slash + 1, len - 1 - (size_t)(slash - uri)))
		return -EINVAL;
	memcpy(i.cluster, uri, (size_t)(slash - uri));
	memcpy(i.host, slash + 1, len - 1 - (size_t)(slash - uri));
	*ret = i;
	return 0;
}
