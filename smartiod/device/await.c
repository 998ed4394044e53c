/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that wait for a device: until its host announces it, or until it can be borrowed. Each
 * waits in one request, which is answered when a change of the device, or of a path to its host,
 * makes it true, or when its time is over. Of other hosts' devices the announcements of their
 * lenders tell, so no message is sent for it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "smartiod/base/peer.h"
#include "smartiod/device/device.h"

#define FOREVER UINT32_MAX

struct smartiod_await {
	struct smartiod_op op;
	struct smartiod_await *next; /* in d->awaits */
	uint32_t fdid, want;
	uint32_t found; /* the device that it waited for; 0: not yet */
	char name[SIO_AWAIT_NAME];
};

static bool is_meant(const struct smartiod_await *w, const struct smartiod_device *dev)
{
	return dev->fdid == w->fdid || (w->name[0] && !strcmp(dev->topo->name, w->name));
}

static bool is_reached(struct smartiod *d, const struct smartiod_device *dev)
{
	struct sio_path path;
	struct sio_err err;

	return dev->node == d->node ||
	       smartiod_path_between(d, dev->node, SIO_ADAPTER_ANY, SIO_ADAPTER_ANY, &d->hops,
				     &dev->hops, &path, &err) == 0;
}

/* Why the device is not as @want says; NULL: it is. */
static const char *why_not(struct smartiod *d, struct smartiod_device *dev, uint32_t want)
{
	struct sio_rep_dev_list info;

	if (!dev->present)
		return "its host does not offer it now";
	if (want == SIO_AWAIT_THERE)
		return NULL;
	if (!is_reached(d, dev))
		return "no path to its host is up";
	smartiod_device_info(d, dev, &info);
	if (sio_from_le32(info.exclusive))
		return "somebody has borrowed it exclusively";
	return want == SIO_AWAIT_EXCLUSIVE && sio_from_le32(info.borrowers)
		       ? "somebody has borrowed it"
		       : NULL;
}

/* The first that @w means and that is as it wants it; NULL, and *ret_why: why not. */
static struct smartiod_device *find(struct smartiod *d, const struct smartiod_await *w,
				    const char **ret_why)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	*ret_why = "no host has announced it";
	while ((n = smartiod_tree_after(&d->devices, key))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		key = n->key;
		if (!is_meant(w, dev))
			continue;
		*ret_why = why_not(d, dev, w->want);
		if (!*ret_why)
			return dev;
	}
	return NULL;
}

static void reply_found(struct smartiod *d, struct smartiod_await *w)
{
	struct sio_rep_dev_await rep = {.fdid = sio_to_le32(w->found)};

	smartiod_op_reply(d, &w->op, &rep, sizeof(rep), NULL, 0);
}

static void reply_late(struct smartiod *d, struct smartiod_await *w)
{
	char id[16];
	const char *why;

	find(d, w, &why);
	snprintf(id, sizeof(id), "%#" PRIx32, w->fdid);
	smartiod_op_error(d, &w->op, -ETIMEDOUT, "device %s was waited for in vain: %s",
			  w->name[0] ? w->name : id, why ? why : "its time was over");
}

/* The device is as it is wanted, or the time is over, or the program has ended. */
static void await_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_await *w = (struct smartiod_await *)op, **at = &d->awaits;

	(void)a;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (w->found)
		reply_found(d, w);
	else if (op->session)
		reply_late(d, w);
	smartiod_op_free(d, op);
}

static int check(const struct sio_msg_dev_await *m, struct sio_err *reterr)
{
	if (sio_from_le32(m->want) >= SIO_AWAITS)
		return sio_fail(reterr, -EINVAL, "state %u of a device; 0 to %d are known",
				sio_from_le32(m->want), SIO_AWAITS - 1);
	if (!memchr(m->name, 0, sizeof(m->name)))
		return sio_fail(reterr, -EINVAL, "the name of the device has no end");
	if (!m->name[0] && !sio_from_le32(m->fdid))
		return sio_fail(reterr, -EINVAL, "neither name nor id of a device is given");
	return 0;
}

int smartiod_dev_await(struct smartiod *d, struct smartiod_session *s, const void *msg,
		       struct sio_err *reterr)
{
	const struct sio_msg_dev_await *m = msg;
	uint32_t timeout_ms = sio_from_le32(m->timeout_ms);
	const struct smartiod_device *dev;
	struct smartiod_await *w;
	const char *why;

	if (check(m, reterr) < 0)
		return reterr->code;
	w = smartiod_op_new(d, s, msg, sizeof(*w), await_step, reterr);
	if (!w)
		return reterr->code;
	w->fdid = sio_from_le32(m->fdid);
	w->want = sio_from_le32(m->want);
	memcpy(w->name, m->name, sizeof(w->name));
	w->next = d->awaits;
	d->awaits = w;
	dev = find(d, w, &why);
	w->found = dev ? dev->fdid : 0;
	if (dev || timeout_ms == 0)
		await_step(d, &w->op, NULL);
	else if (timeout_ms == FOREVER)
		smartiod_op_park(&w->op);
	else
		smartiod_op_doze(d, &w->op, timeout_ms * 1000000ull);
	return 0;
}

void smartiod_device_changed(struct smartiod *d, struct smartiod_device *dev)
{
	struct smartiod_await *w, *next;

	for (w = d->awaits; w; w = next) {
		next = w->next;
		if (!is_meant(w, dev) || why_not(d, dev, w->want))
			continue;
		w->found = dev->fdid;
		smartiod_op_resume(d, &w->op);
	}
}

void smartiod_devices_changed(struct smartiod *d, uint32_t node)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while (d->awaits && (n = smartiod_tree_after(&d->devices, key))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		key = n->key;
		if (dev->node == node)
			smartiod_device_changed(d, dev);
	}
}
