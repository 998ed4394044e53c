/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of RELOAD: what the cluster's file says next, and the calls. */
#ifndef TESTS_SMARTIOD_RELOAD_H
#define TESTS_SMARTIOD_RELOAD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "smartiod/daemon/dispatch.h"
#include "wire/client.h"

static struct fake_device fake;

/* ---- the file ---- */

/* What the next one says. */
static struct {
	struct sio_policy_rule rule;
	bool has_rule, is_wrong, has_more_ram;
	unsigned borrows, hosts; /* hosts: the first so many; 0: all */
	unsigned first;		 /* and of these from this one on */
	unsigned adapters;	 /* of each host, each at a switch of its own; 0: as before */
	bool moved;		 /* cables lead elsewhere */
	bool apart;		 /* the first host is at a switch of its own */
	bool other_window;	 /* the first host's adapter has one of another size */
	bool no_switch;		 /* there is one less */
	bool other_slot;	 /* the first host's adapter is in another one */
	bool no_device;		 /* the first host's is not listed */
	bool device_differs, device_renamed;
	bool boxes, other_box; /* the first host has chassis; in another order, one elsewhere */
	bool other_node;       /* the last host's is one that nobody has */
	bool renamed;	       /* the last host's node id is that of another one */
	bool far;	       /* the second host is on a machine of its own */
} next;

static inline void *copy(const void *p, size_t n, size_t size)
{
	void *q = calloc(n + 1, size);

	assert_non_null(q);
	if (n)
		memcpy(q, p, n * size);
	return q;
}

/* Switches stay: those without adapters are no difference to the hosts. */
static inline void set_adapters(struct sio_topo_host *h, unsigned n)
{
	for (unsigned i = h->n_adapters; i < n; i++) {
		h->adapter[i] = h->adapter[0];
		h->adapter[i].attach_index = i;
	}
	h->n_adapters = n;
}

static inline struct sio_topology *read_file(struct world *w, uint32_t uid, bool other,
					     struct sio_err *err)
{
	struct sio_topology *t = copy(w->topology, 1, sizeof(*t));

	assert_false(other);
	t->host = copy(t->host, t->n_hosts, sizeof(*t->host));
	for (unsigned i = 0; i < t->n_hosts; i++)
		t->host[i].device =
			copy(t->host[i].device, t->host[i].n_devices, sizeof(*t->host[i].device));
	while (next.hosts && t->n_hosts > next.hosts)
		free(t->host[--t->n_hosts].device);
	if (next.first) {
		free(t->host[0].device);
		memmove(t->host, t->host + 1, --t->n_hosts * sizeof(*t->host));
	}
	if (next.no_device)
		t->host[0].n_devices = 0;
	if (next.device_differs)
		t->host[0].device[0].dma_bits++;
	if (next.device_renamed)
		strcpy(t->host[0].device[0].name, "of the same id");
	if (next.boxes) {
		static const char *const name[] = {"near", "far"};

		t->host[0].n_chassis = 2;
		t->host[0].chassis = copy(NULL, 0, 2 * sizeof(*t->host[0].chassis));
		for (unsigned i = 0; i < 2; i++)
			strcpy(t->host[0].chassis[i].name, name[i ^ next.other_box]);
		t->host[0].chassis[1].in = next.other_box;
	}
	t->sw = copy(t->sw, t->n_switches, sizeof(*t->sw));
	for (unsigned i = 0; next.adapters && i < t->n_hosts; i++)
		set_adapters(&t->host[i], next.adapters);
	for (unsigned i = 0; next.moved && i < t->n_hosts; i++)
		t->host[i].adapter[0].link_width = 4;
	if (next.apart) {
		t->host[0].adapter[0].attach_index = t->n_switches;
		strcpy(t->sw[t->n_switches++].name, "its own");
	}
	if (next.other_window)
		t->host[0].adapter[0].window_size *= 2;
	if (next.no_switch)
		t->n_switches--;
	if (next.other_slot)
		strcpy(t->host[0].adapter[0].pci, "0000:07:00.0");
	if (next.other_node)
		t->host[t->n_hosts - 1].node += 4;
	if (next.renamed)
		strcpy(t->host[t->n_hosts - 1].name, "another");
	if (next.far)
		t->host[1].address.ip[3]++;
	t->policy = (struct sio_policy){.n_rules = next.has_rule};
	t->policy.rule = copy(&next.rule, next.has_rule, sizeof(next.rule));
	if (next.has_rule) {
		struct sio_policy_rule *r = t->policy.rule;

		r->node = copy(r->node, r->n_nodes, sizeof(*r->node));
		r->user = copy(r->user, r->n_users, sizeof(*r->user));
	}
	if (next.borrows)
		t->policy.node[SIO_QUOTA_BORROWS] = (struct sio_limit){true, next.borrows};
	if (next.has_more_ram)
		t->host[1].ram_size *= 2;
	if (uid != 0 || next.is_wrong) {
		sio_topology_free(t);
		sio_fail(err, uid ? -EPERM : -EINVAL, "%s", uid ? "not he" : "line 7");
		return NULL;
	}
	return t;
}

/* ---- calls ---- */

struct done {
	unsigned lines, count[SIO_RELOAD_KINDS];
	bool applied;
};

static inline int reload(struct world *w, struct world_client *c, uint32_t flags, struct done *ret)
{
	struct sio_msg_reload msg = {.flags = sio_to_le32(flags)};
	const struct world_message *m = world_call(w, c, SIO_MSG_RELOAD, &msg, sizeof(msg));
	const struct sio_rep_reload *rep;

	*ret = (struct done){.lines = 0};
	assert_non_null(m);
	if (m->error)
		return (int)m->error;
	rep = (const void *)m->data;
	ret->lines = sio_from_le32(rep->lines);
	ret->applied = sio_from_le32(rep->applied);
	for (unsigned i = 0; i < SIO_RELOAD_KINDS; i++)
		ret->count[i] = sio_from_le32(rep->count[i]);
	return 0;
}

/* NULL: it is none. */
static inline const char *line(struct world *w, struct world_client *c, unsigned i, uint32_t *kind)
{
	struct sio_msg_reload_line msg = {.index = sio_to_le32(i)};
	const struct world_message *m = world_call(w, c, SIO_MSG_RELOAD_LINE, &msg, sizeof(msg));
	const struct sio_rep_reload_line *rep = (const void *)m->data;

	if (m->error)
		return NULL;
	*kind = sio_from_le32(rep->kind);
	return rep->text;
}

static inline const struct sio_rep_file *file(struct world *w, struct world_client *c,
					      uint32_t node, uint32_t offset, uint32_t *ret_error)
{
	struct sio_msg_file msg = {.node = sio_to_le32(node), .offset = sio_to_le32(offset)};
	const struct world_message *m = world_call(w, c, SIO_MSG_FILE, &msg, sizeof(msg));

	*ret_error = m->error;
	return (const void *)m->data;
}

#endif
