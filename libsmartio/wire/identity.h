/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The identity in a certificate: a URI among its alternative names, "smartio:CLUSTER/HOST", both
 * names as topology files have them.
 */
#ifndef WIRE_IDENTITY_H
#define WIRE_IDENTITY_H

#include <stddef.h>

#include "core/types.h"

struct sio_identity {
	char cluster[SIO_NAME_LEN], host[SIO_NAME_LEN];
};

#define SIO_IDENTITY_TEXT (sizeof("smartio:") + 2 * SIO_NAME_LEN)
/* The URI. Return: @out, of SIO_IDENTITY_TEXT bytes. */
const char *sio_identity_text(const struct sio_identity *i, char *out);
/* Parses @len bytes of a URI. Return: 0; -EINVAL: not such a URI; *ret is unchanged. */
int sio_identity_parse(const char *uri, size_t len, struct sio_identity *ret);

#endif
