/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/client.h"
#include "base/local.h"
#include "base/output.h"

static int connect_local(struct tool_client *c, struct sio_err *reterr)
{
	return tool_client_open(c, TOOL_LOCAL_STATE, 0, SIO_CLIENT_TOOL, reterr);
}

bool tool_local_runs(void)
{
	struct tool_client c;
	struct sio_err err;

	if (connect_local(&c, &err) < 0)
		return false;
	tool_client_close(&c);
	return true;
}

/* The first device with an id greater than *after; -ENODEV: none. */
static int next_device(struct tool_client *c, uint32_t *after, struct sio_rep_dev_list *ret,
		       struct sio_err *reterr)
{
	struct sio_msg_dev_list req = {.after = sio_to_le32(*after)};
	int r = tool_client_call(c, SIO_MSG_DEV_LIST, &req, sizeof(req), ret, sizeof(*ret), reterr);

	if (r < 0)
		return r;
	ret->name[sizeof(ret->name) - 1] = '\0';
	if (sio_from_le32(ret->fdid) <= *after)
		return sio_fail(reterr, -EPROTO, "smartiod lists its devices out of order");
	*after = sio_from_le32(ret->fdid);
	return 0;
}

/* In a cluster of several hosts a device's name begins with its host's: "host/0000:05:00.0". */
static bool is_ours(const struct tool_client *c, const struct sio_rep_dev_list *rep,
		    const char *place)
{
	const char *slash = strchr(rep->name, '/');

	return sio_from_le32(rep->node) == c->node &&
	       strcmp(slash ? slash + 1 : rep->name, place) == 0;
}

int tool_local_borrowers(const char *place, unsigned *ret)
{
	struct sio_rep_dev_list rep;
	struct tool_client c;
	struct sio_err err;
	uint32_t after = 0;
	int r = connect_local(&c, &err);

	if (r < 0)
		return r;
	while ((r = next_device(&c, &after, &rep, &err)) == 0 && !is_ours(&c, &rep, place))
		;
	if (r == 0)
		*ret = sio_from_le32(rep.borrowers);
	tool_client_close(&c);
	return r;
}

static void add_device(struct sio_topology *t, const struct sio_rep_dev_list *rep)
{
	struct sio_topo_host *host = t->host;
	struct sio_topo_device *dev;

	while (host < t->host + t->n_hosts && host->node != sio_from_le32(rep->node))
		host++;
	if (host == t->host + t->n_hosts)
		return;
	host->device = tool_grow(host->device, host->n_devices + 1, sizeof(*host->device));
	dev = &host->device[host->n_devices++];
	*dev = (struct sio_topo_device){.bdf = sio_from_le32(rep->bdf),
					.slot = sio_from_le32(rep->slot),
					.fdid = sio_from_le32(rep->fdid)};
	snprintf(dev->name, sizeof(dev->name), "%.*s", (int)sizeof(dev->name) - 1, rep->name);
	snprintf(dev->type, sizeof(dev->type), "%s",
		 sio_from_le32(rep->class_code) == 0x010802 ? "nvme" : "device");
}

/* This machine first, then the others of its cluster. */
static int add_hosts(struct tool_client *c, struct sio_topology *t, struct sio_err *reterr)
{
	struct sio_wire_row *row;
	size_t n;
	int r = tool_client_list(c, SIO_LIST_NODES, &row, &n, reterr);

	if (r < 0)
		return r;
	if (n > SIO_MAX_HOSTS)
		n = SIO_MAX_HOSTS;
	t->host = tool_alloc(n + 1, sizeof(*t->host));
	t->n_hosts = 1;
	t->host[0].node = c->node;
	t->host[0].n_adapters = c->n_adapters < SIO_MAX_ADAPTERS ? c->n_adapters : SIO_MAX_ADAPTERS;
	snprintf(t->host[0].name, sizeof(t->host[0].name), "%.*s", (int)sizeof(t->host[0].name) - 1,
		 c->host);
	for (size_t i = 0; i < n; i++) {
		bool own = sio_from_le64(row[i].key) == c->node;
		struct sio_topo_host *h = own ? t->host : &t->host[t->n_hosts++];

		h->node = sio_from_le32(row[i].node);
		h->machine = sio_from_le32(row[i].flags) & SIO_ROW_MACHINE;
		h->real = true;
		/* The cluster's file does not say how much memory other hosts have. */
		h->ram_size = own ? sio_from_le64(row[i].bytes) : 0;
		if (!own)
			h->n_adapters = sio_from_le32(row[i].memory);
		if (h->n_adapters > SIO_MAX_ADAPTERS)
			h->n_adapters = SIO_MAX_ADAPTERS;
		if (!own)
			snprintf(h->name, sizeof(h->name), "%.*s", (int)sizeof(h->name) - 1,
				 row[i].name);
	}
	free(row);
	return 0;
}

int tool_local_topology(struct sio_topology **ret, struct sio_err *reterr)
{
	struct sio_rep_dev_list rep;
	struct sio_topology *t;
	struct tool_client c;
	uint32_t after = 0;
	int r = connect_local(&c, reterr);

	if (r < 0)
		return r;
	t = tool_alloc(1, sizeof(*t));
	snprintf(t->name, sizeof(t->name), "%.*s", (int)sizeof(t->name) - 1, c.cluster);
	r = add_hosts(&c, t, reterr);
	while (r == 0 && (r = next_device(&c, &after, &rep, reterr)) == 0)
		add_device(t, &rep);
	tool_client_close(&c);
	if (r != -ENODEV) {
		sio_topology_free(t);
		return r;
	}
	*ret = t;
	return 0;
}
