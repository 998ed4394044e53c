/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices and memory by hops. The daemon of the end where a path begins knows which links are up.
 */
#include <errno.h>
#include <stdlib.h>

#include "sisci/device/device.h"
#include "sisci/query/query.h"

/* Memory of @node, or a device: 0 for what it is not. */
struct end {
	uint32_t node, fdid;
};

/* Return: 1: *ret has the way; 0: there is none now; -errno. */
static int ask_hops(struct sio_library *lib, struct end from, struct end to,
		    struct smartio_near *ret, struct sio_err *err)
{
	struct sio_msg_hops req = {.from_node = sio_to_le32(from.node),
				   .from_fdid = sio_to_le32(from.fdid),
				   .to_node = sio_to_le32(to.node),
				   .to_fdid = sio_to_le32(to.fdid)};
	struct sio_rep_hops rep;
	int rc = sio_ask(lib, SIO_MSG_HOPS, &req, sizeof(req), &rep, sizeof(rep), err);

	if (rc)
		return rc;
	*ret = (struct smartio_near){.id = to.fdid ? to.fdid : to.node,
				     .hops = sio_from_le32(rep.hops),
				     .adapter = sio_from_le32(rep.adapter),
				     .peer_adapter = sio_from_le32(rep.peer_adapter)};
	return 1;
}

/* It is up to what is found whether there is a way: all that was asked for is known. */
static bool is_no_way(int rc)
{
	return rc == -EHOSTUNREACH || rc == -ENETDOWN || rc == -ENODEV;
}

/* ---- a list in order ---- */

struct list {
	unsigned n, room;
	struct smartio_near *item;
};

static int add(struct list *l, const struct smartio_near *near, struct sio_err *err)
{
	unsigned at;

	if (l->n == l->room) {
		unsigned room = l->room ? 2 * l->room : 16;
		struct smartio_near *item = realloc(l->item, room * sizeof(*item));

		if (!item)
			return sio_no_memory(err, "a list of %u", room);
		l->item = item;
		l->room = room;
	}
	for (at = l->n; at > 0; at--) {
		const struct smartio_near *before = &l->item[at - 1];

		if (before->hops < near->hops ||
		    (before->hops == near->hops && before->id < near->id))
			break;
		l->item[at] = *before;
	}
	l->item[at] = *near;
	l->n++;
	return 0;
}

/* Return: how many there are. */
static unsigned give(struct list *l, struct smartio_near *near, unsigned max)
{
	for (unsigned i = 0; i < l->n && i < max; i++)
		near[i] = l->item[i];
	free(l->item);
	return l->n;
}

static int check_room(const struct smartio_near *near, unsigned max, struct sio_err *err)
{
	return max ? sio_check_pointer(near, "near", err) : 0;
}

/* ---- devices ---- */

static int list_devices(struct sio_library *lib, unsigned node, unsigned class, struct list *l,
			struct sio_err *err)
{
	struct sio_rep_dev_list dev;
	struct smartio_near near;
	uint32_t after = 0;
	int rc;

	while ((rc = sio_device_next(lib, after, &dev, err)) == 0) {
		after = sio_from_le32(dev.fdid);
		if (class && class != sio_from_le32(dev.class_code))
			continue;
		rc = ask_hops(lib, (struct end){.node = node}, (struct end){.fdid = after}, &near,
			      err);
		if (rc == 1)
			rc = add(l, &near, err);
		if (rc < 0 && !is_no_way(rc))
			return rc;
	}
	return rc == -ENODEV ? 0 : rc;
}

/* Is there such a host? From its own memory to itself there always is a way. */
static int find_host(struct sio_library *lib, unsigned node, struct sio_err *err)
{
	struct smartio_near near;
	int rc = ask_hops(lib, (struct end){.node = node}, (struct end){.node = node}, &near, err);

	return rc < 0 ? rc : 0;
}

unsigned int smartio_devices_near(unsigned int node, unsigned int pci_class,
				  struct smartio_near *near, unsigned int max, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct list l = {0};
	unsigned n;
	int rc = err.code;

	if (lib)
		rc = check_room(near, max, &err);
	if (!rc && node == 0)
		node = lib->node;
	if (!rc)
		rc = find_host(lib, node, &err);
	if (!rc)
		rc = list_devices(lib, node, pci_class, &l, &err);
	n = give(&l, near, rc ? 0 : max);
	sio_api_leave(error, rc, &err);
	return rc ? 0 : n;
}

/* ---- memory ---- */

static int list_hosts(struct sio_library *lib, unsigned fdid, struct list *l, struct sio_err *err)
{
	struct sio_msg_list req = {.kind = sio_to_le32(SIO_LIST_NODES)};
	struct smartio_near near;
	struct sio_rep_list rep;
	uint32_t n;
	int rc;

	do {
		rc = sio_ask(lib, SIO_MSG_LIST, &req, sizeof(req), &rep, sizeof(rep), err);
		n = rc ? 0 : sio_from_le32(rep.count);
		if (n > SIO_LIST_ROWS)
			return sio_fail(err, -EPROTO, "smartiod listed %u nodes at once", n);
		for (uint32_t i = 0; i < n; i++) {
			rc = ask_hops(lib, (struct end){.fdid = fdid},
				      (struct end){.node = sio_from_le32(rep.row[i].node)}, &near,
				      err);
			if (rc == 1)
				rc = add(l, &near, err);
			if (rc < 0 && !is_no_way(rc))
				return rc;
			rc = 0;
		}
		if (n)
			req.after = rep.row[n - 1].key;
	} while (n && sio_from_le32(rep.more));
	return rc;
}

static int find_device(struct sio_library *lib, unsigned fdid, struct sio_err *err)
{
	struct sio_rep_dev_list dev;
	int rc = fdid ? sio_device_next(lib, fdid - 1, &dev, err) : -ENODEV;

	if (rc == 0 && sio_from_le32(dev.fdid) != fdid)
		rc = -ENODEV;
	return rc == -ENODEV ? sio_fail(err, rc, "no device of the cluster has id %#x", fdid) : rc;
}

unsigned int smartio_memory_near(unsigned int fdid, struct smartio_near *near, unsigned int max,
				 sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct list l = {0};
	unsigned n;
	int rc = err.code;

	if (lib)
		rc = check_room(near, max, &err);
	if (!rc)
		rc = find_device(lib, fdid, &err);
	if (!rc)
		rc = list_hosts(lib, fdid, &l, &err);
	n = give(&l, near, rc ? 0 : max);
	sio_api_leave(error, rc, &err);
	return rc ? 0 : n;
}

void smartio_device_distance(unsigned int fdid, unsigned int target, struct smartio_near *near,
			     sci_error_t *error)
{
	struct smartio_near found;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_pointer(near, "near", &err);
	if (!rc)
		rc = find_device(lib, fdid, &err);
	if (!rc)
		rc = find_device(lib, target, &err);
	if (!rc)
		rc = ask_hops(lib, (struct end){.fdid = fdid}, (struct end){.fdid = target}, &found,
			      &err);
	if (rc == 1) {
		*near = found;
		rc = 0;
	}
	sio_api_leave(error, rc, &err);
}
