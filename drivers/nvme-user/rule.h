/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules for admin commands of clients. Pure logic: a client may read anything; a command that
 * changes the drive for all must be confirmed; one that destroys what queues and leases work on is
 * refused as long as clients have any; and commands that belong to the manager alone are always
 * refused. Source: NVM Express Base Specification 1.4, section 5.
 */
#ifndef NVME_USER_RULE_H
#define NVME_USER_RULE_H

#include <stdbool.h>

#include "protocol.h"

enum sio_nvme_verdict {
	SIO_NVME_ALLOWED,
	SIO_NVME_CONFIRM, /* allowed to whoever has confirmed it */
	SIO_NVME_ALONE,	  /* the same, while no client has a queue pair or a lease */
	SIO_NVME_VENDOR,  /* the same, of a manager that was told to allow it */
	SIO_NVME_REFUSED
};

/* @ret_why: what the command is, or why it is refused. */
enum sio_nvme_verdict sio_nvme_rule(const struct sio_nvme_wire_admin *c, const char **ret_why);
/*
 * Does the drive transfer no more than the manager's data page, and in the direction that the
 * client has stated? @ret_why: why not.
 */
bool sio_nvme_rule_data(const struct sio_nvme_wire_admin *c, const char **ret_why);
/* May the command change the namespaces? */
bool sio_nvme_rule_changes_namespaces(const struct sio_nvme_wire_admin *c);

#endif
