/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "smartiod/live/local.h"

/* Its first word, as far as a host's name may be long. */
static void machine_name(char ret[SIO_NAME_LEN])
{
	char name[256] = "";

	if (gethostname(name, sizeof(name) - 1) < 0)
		name[0] = '\0';
	name[strcspn(name, ".")] = '\0';
	snprintf(ret, SIO_NAME_LEN, "%.*s", SIO_NAME_LEN - 1, *name ? name : "local");
}

uint64_t local_ram(void)
{
	struct sysinfo info;

	return sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : 0;
}

int local_topology(struct sio_topology **ret, struct sio_err *reterr)
{
	struct sio_topology *t = calloc(1, sizeof(*t));

	if (t)
		t->host = calloc(1, sizeof(*t->host));
	if (!t || !t->host) {
		sio_topology_free(t);
		return sio_no_memory(reterr, "the topology of this host");
	}
	strcpy(t->name, "local");
	t->n_hosts = 1;
	machine_name(t->host[0].name);
	t->host[0].node = LOCAL_NODE;
	t->host[0].n_adapters = 1;
	t->host[0].adapter[0].attach = SIO_ATTACH_NONE;
	t->host[0].ram_size = local_ram();
	*ret = t;
	return 0;
}
