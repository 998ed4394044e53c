/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices that the kernels of machines lend. No file names them: the daemons of the hosts have
 * heard of them from the machines' daemons, and the first that is connected with a machine says
 * what it knows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/output.h"
#include "topofile/types.h"
#include "view/view_machine.h"

#define CLASS_NVME 0x010802u

/* Those that smartio-emu serves to the machine are the file's. */
static bool is_lent(const struct tool_view_machine *m, const struct sio_rep_dev_list *rep)
{
	for (unsigned i = 0; i < m->topo->n_devices; i++)
		if (m->topo->device[i].fdid == sio_from_le32(rep->fdid))
			return false;
	return sio_from_le32(rep->node) == m->topo->node;
}

static void add(struct tool_view_machine *m, const struct sio_rep_dev_list *rep)
{
	unsigned n = m->lent.n_devices;
	struct sio_topo_device *t;
	struct tool_view_device *d;

	m->lent.device = tool_grow(m->lent.device, n + 1, sizeof(*m->lent.device));
	m->lender.device = tool_grow(m->lender.device, n + 1, sizeof(*m->lender.device));
	t = &m->lent.device[n];
	d = &m->lender.device[n];
	*t = (struct sio_topo_device){.bdf = sio_from_le32(rep->bdf),
				      .slot = sio_from_le32(rep->slot),
				      .fdid = sio_from_le32(rep->fdid)};
	snprintf(t->name, sizeof(t->name), "%.*s", (int)sizeof(t->name) - 1, rep->name);
	snprintf(t->type, sizeof(t->type), "%s",
		 sio_from_le32(rep->class_code) == CLASS_NVME ? "nvme" : "device");
	*d = (struct tool_view_device){.state = tool_device_state_of(rep), .info = *rep};
	m->lent.n_devices++;
}

/* False: the host does not answer. */
static bool ask(struct tool_view *v, struct tool_view_host *h, struct tool_view_machine *m)
{
	struct sio_rep_dev_list rep;
	uint32_t after = 0;
	struct sio_err err;
	int r;

	for (;;) {
		struct sio_msg_dev_list req = {.after = sio_to_le32(after)};

		r = tool_client_call(&h->host->client, SIO_MSG_DEV_LIST, &req, sizeof(req), &rep,
				     sizeof(rep), &err);
		if (r < 0)
			break;
		rep.name[sizeof(rep.name) - 1] = '\0';
		if (sio_from_le32(rep.fdid) <= after)
			break;
		after = sio_from_le32(rep.fdid);
		if (is_lent(m, &rep))
			add(m, &rep);
	}
	return r == -ENODEV || !tool_host_lost(v->hosts, h->host, &err);
}

void tool_view_look_at_lent(struct tool_view *v)
{
	for (unsigned i = 0; i < v->n_machines; i++) {
		struct tool_view_machine *m = &v->machine[i];

		m->lent = (struct sio_topo_host){
			.node = m->topo->node, .machine = true, .n_adapters = m->topo->n_adapters};
		snprintf(m->lent.name, sizeof(m->lent.name), "%s", m->topo->name);
		m->daemon = (struct tool_host){.topo = &m->lent,
					       .state = m->known && !m->up ? TOOL_HOST_DOWN
									   : TOOL_HOST_AWAY,
					       .up = m->up,
					       .client.fd = -1};
		m->lender = (struct tool_view_host){
			.host = &m->daemon, .topo = &m->lent, .links_up = m->links_up};
		for (unsigned k = 0; k < v->n && m->lent.n_devices == 0; k++)
			if (v->host[k].host->up)
				ask(v, &v->host[k], m);
		for (unsigned k = 0; k < m->lent.n_devices; k++)
			m->lender.device[k].topo = &m->lent.device[k];
	}
}

void tool_view_forget_lent(struct tool_view_machine *m)
{
	free(m->lent.device);
	free(m->lender.device);
}

bool tool_view_find_lent(const struct tool_view *v, const char *name,
			 const struct tool_view_host **ret_host,
			 const struct tool_view_device **ret)
{
	for (unsigned i = 0; i < v->n_machines; i++) {
		const struct tool_view_host *h = &v->machine[i].lender;

		for (unsigned k = 0; k < h->topo->n_devices; k++) {
			if (!tool_device_is_named(&h->device[k], name))
				continue;
			*ret_host = h;
			*ret = &h->device[k];
			return true;
		}
	}
	return false;
}
