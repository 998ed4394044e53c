/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which admin commands clients may have the manager give. Pure logic: a client may look at
 * whatever it likes; what changes the drive for all it must confirm; what takes the ground from
 * under others' queues waits until there are none; and what is the manager's own business is
 * refused. Source: NVM Express Base Specification 1.4, section 5.
 */
#ifndef NVME_USER_RULE_H
#define NVME_USER_RULE_H

#include <stdbool.h>

#include "protocol.h"

enum sio_nvme_verdict {
	SIO_NVME_ALLOWED,
	SIO_NVME_CONFIRM, /* allowed to who has confirmed it */
	SIO_NVME_ALONE,	  /* the same, while no client has a queue pair */
	SIO_NVME_VENDOR,  /* the same, of a manager that was told to allow it */
	SIO_NVME_REFUSED
};

/* @ret_why: what the command is, or why it is refused. */
enum sio_nvme_verdict sio_nvme_rule(const struct sio_nvme_wire_admin *c, const char **ret_why);
/*
 * Whether the drive moves no more than the page that the manager has for it, and in the direction
 * that the client has said. @ret_why: why not.
 */
bool sio_nvme_rule_data(const struct sio_nvme_wire_admin *c, const char **ret_why);
/* Whether the namespaces may be others afterwards. */
bool sio_nvme_rule_changes_namespaces(const struct sio_nvme_wire_admin *c);

#endif
