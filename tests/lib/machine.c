/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cluster.h"
#include "pair.h"

#define MACHINE_NODE 4u /* of a smartiod on the kernel module: docs/hardware.md */

bool cluster_is_machine(void)
{
	const char *set = getenv("SMARTIO_TEST_MACHINE");

	return (set && *set) || pair_is();
}

unsigned cluster_node(unsigned node)
{
	if (pair_is())
		return node / PAIR_FIRST % 2 ? PAIR_FIRST : PAIR_SECOND;
	return cluster_is_machine() ? MACHINE_NODE : node;
}

const char *cluster_device(void)
{
	return cluster_is_machine() ? getenv("SMARTIO_TEST_MACHINE") : "nvme0";
}

int cluster_become_user(void)
{
	const char *user = getenv("SMARTIO_TEST_USER"), *group = getenv("SMARTIO_TEST_GROUP");
	gid_t gid;

	if (!cluster_is_machine() || !user || !group)
		return 0;
	gid = (gid_t)strtoul(group, NULL, 10);
	if (setgroups(1, &gid) < 0 || setgid(gid) < 0)
		return -1;
	return setuid((uid_t)strtoul(user, NULL, 10));
}

void cluster_needs(const char *what)
{
	if (!cluster_is_machine())
		return;
	if (pair_is() && (strcmp(what, NEEDS_HOSTS) == 0 || strcmp(what, NEEDS_LINK) == 0 ||
			  strcmp(what, NEEDS_ENGINE) == 0 || strcmp(what, NEEDS_GROUPS) == 0))
		return;
	print_message("[  NEEDS   ] %s\n", what);
	skip();
}

bool cluster_is_vfio(void)
{
	const char *set = getenv("SMARTIO_TEST_WORLD");

	return cluster_is_machine() && set && strcmp(set, "vfio") == 0;
}

void cluster_needs_module(const char *what)
{
	if (cluster_is_vfio())
		cluster_needs(what);
}

void cluster_needs_kernel(const char *what)
{
	(void)what;
}
