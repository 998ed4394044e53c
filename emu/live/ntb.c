/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters of machines: the file that holds the RAM of those that are mapped, and the clock. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "emu/live/live.h"

static uint64_t now(void *ctx)
{
	return live_ops.now(ctx);
}

static void set_alarm(void *ctx, uint64_t when)
{
	struct live *l = ctx;
	const struct itimerspec at = {.it_value = {.tv_sec = (time_t)(when / 1000000000u),
						   .tv_nsec = (long)(when % 1000000000u)}};

	if (l->alarm_at && l->alarm_at <= when)
		return;
	l->alarm_at = when;
	timerfd_settime(l->alarm.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void say(void *ctx, const char *text)
{
	(void)ctx;
	live_log("%s", text);
}

/* ---- machines and the room's hosts, towards each other ---- */

static int outward(void *ctx, const struct emu_ntb_outward *x, uint8_t **ret)
{
	const struct emu_inbound in = {.node = x->node,
				       .adapter = x->adapter,
				       .machine = x->machine,
				       .machine_adapter = x->machine_adapter,
				       .address = x->address,
				       .len = x->len,
				       .data = x->data};

	return emu_room_inbound(((struct live *)ctx)->room, &in, ret);
}

static void report_power(void *ctx, uint32_t node, unsigned adapter, uint64_t start)
{
	emu_room_machine(((struct live *)ctx)->room, node, adapter, start);
}

static struct emu_ntb_inward inward(const struct emu_reach *x)
{
	return (struct emu_ntb_inward){.node = x->node,
				       .adapter = x->adapter,
				       .machine = x->machine,
				       .machine_adapter = x->machine_adapter,
				       .address = x->address,
				       .len = x->length};
}

/* The memory at @in, or as much of it as is in one piece. */
static int look(struct live *l, const struct emu_ntb_inward *in, struct emu_reached *ret,
		size_t *ret_part)
{
	bool can_read, can_write;
	int rc = l->ntb ? emu_ntb_host_memory(l->ntb, in, &ret->data, ret_part, &can_read,
					      &can_write)
			: -EACCES;

	if (rc == 0)
		ret->access =
			(can_read ? SIO_ACCESS_READ : 0u) | (can_write ? SIO_ACCESS_WRITE : 0u);
	return rc;
}

/*
 * The file of what begins with @ret's @part bytes. Behind a machine's IOMMU each page is a piece of
 * its own; those that follow one another in the same file are one for whoever maps that.
 */
static int find_file(struct live *l, struct emu_ntb_inward in, size_t part, struct emu_reached *ret)
{
	struct emu_reached next = *ret;
	uint64_t offset, behind;

	ret->fd = live_vfiomem_file(ret->data, &ret->fd_offset);
	behind = ret->fd_offset + part;
	while (ret->fd >= 0 && part < in.len) {
		in.address += part;
		in.len -= part;
		if (look(l, &in, &next, &part) < 0 || (next.access & ret->access) != ret->access ||
		    live_vfiomem_file(next.data, &offset) != ret->fd || offset != behind)
			return -EFAULT;
		behind += part;
	}
	return 0;
}

int live_machine_memory(void *ctx, const struct emu_reach *x, struct emu_reached *ret)
{
	const struct emu_ntb_inward in = inward(x);
	struct live *l = ctx;
	size_t part;
	int rc = look(l, &in, ret, &part);

	ret->fd = -1;
	if (rc == 0 && x->file)
		return find_file(l, in, part, ret);
	return rc == 0 && part < in.len ? -EFAULT : rc;
}

int live_machine_message(void *ctx, const struct emu_reach *x, uint32_t data, bool send)
{
	const struct emu_ntb_inward in = inward(x);
	struct live *l = ctx;

	return l->ntb ? emu_ntb_host_message(l->ntb, &in, data, send) : -EACCES;
}

int live_machine_store(void *ctx, const struct emu_reach *x, const uint32_t *data)
{
	const struct emu_ntb_inward in = inward(x);
	struct live *l = ctx;

	return l->ntb ? emu_ntb_host_store(l->ntb, &in, data) : -EACCES;
}

void live_ntb_host(struct live *l, unsigned host)
{
	if (!l->ntb)
		return;
	live_engines_stop(l);
	emu_ntb_host_power(l->ntb, l->topo->host[host].node, emu_room_start(l->room, host));
	live_engines_go(l);
}

/* ---- cables, which engines of hosts look at ---- */

void live_ntb_link(struct live *l, uint32_t node, unsigned adapter, bool up)
{
	if (!l->ntb)
		return;
	live_engines_stop(l);
	emu_ntb_link(l->ntb, node, adapter, up);
	live_engines_go(l);
}

void live_ntb_outage(struct live *l, bool is_switch, unsigned index, bool in)
{
	if (!l->ntb)
		return;
	live_engines_stop(l);
	(is_switch ? emu_ntb_switch : emu_ntb_trunk)(l->ntb, index, in);
	live_engines_go(l);
}

static const struct emu_ntb_ops ops = {
	.outward = outward, .power = report_power, .now = now, .alarm = set_alarm, .log = say};

/* Sparse: what no machine has touched costs nothing. */
static int open_pool(struct live *l, struct sio_err *reterr)
{
	uint64_t size = emu_ntb_pool_size(l->topo);
	struct stat st;
	int rc, fd;

	if (size == 0)
		return 0;
	rc = live_path(l->pool_path, sizeof(l->pool_path), reterr, "%s/memory", l->state_dir);
	if (rc < 0) {
		l->pool_path[0] = '\0';
		return rc;
	}
	unlink(l->pool_path); /* we hold the directory's lock: what lies there is stale */
	fd = open(l->pool_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	rc = fd < 0 || ftruncate(fd, (off_t)size) < 0 || fstat(fd, &st) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	if (rc < 0)
		return sio_fail(reterr, rc, "%s: %" PRIu64 " bytes of machines' RAM: %s",
				l->pool_path, size, strerror(-rc));
	l->pool_device = st.st_dev;
	l->pool_inode = st.st_ino;
	live_log("%s has the memory of all machines: %" PRIu64 " bytes", l->pool_path, size);
	for (unsigned i = 0; i < l->topo->n_machines; i++)
		if (l->topo->machine[i].mapped)
			live_log("%s: its RAM is %" PRIu64 " bytes at offset %" PRIu64 " of %s",
				 l->topo->machine[i].name, l->topo->machine[i].ram_size,
				 emu_ntb_pool_offset(l->topo, i), l->pool_path);
	return 0;
}

static int open_pools(struct live *l, struct sio_err *reterr)
{
	int rc = live_pools_open(l, live_ops.random(l), reterr);

	for (unsigned i = 0; rc == 0 && i < l->topo->n_hosts; i++) {
		const struct sio_topo_host *h = &l->topo->host[i];

		if (h->pool_size)
			live_log("%s/memory.%s has %" PRIu64 " bytes of RAM of host %s, its pool",
				 l->state_dir, h->name, h->pool_size, h->name);
	}
	return rc;
}

int live_ntb_place(const struct live *l, uint32_t node, int fd, const struct sio_vfio_range *r,
		   uint64_t *offset)
{
	struct stat st;

	if (!l->pool_path[0])
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != l->pool_device || st.st_ino != l->pool_inode)
		return 0;
	return emu_ntb_pool_place(l->topo, node, r->address, r->size, offset);
}

int live_ntb_open(struct live *l, struct sio_err *reterr)
{
	unsigned n = 0;
	int rc;

	for (unsigned i = 0; i < l->topo->n_machines; i++)
		n += l->topo->machine[i].n_adapters;
	if (n == 0)
		return 0;
	l->alarm = (struct live_source){.kind = LIVE_ALARM};
	l->alarm.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (l->alarm.fd < 0)
		return sio_fail(reterr, -errno, "no timer: %s", strerror(errno));
	rc = live_watch(l, &l->alarm, EPOLLIN);
	if (rc < 0)
		return sio_fail(reterr, rc, "epoll: %s", strerror(-rc));
	rc = open_pool(l, reterr);
	if (rc == 0)
		rc = emu_ntb_new(l->topo, &ops, l, &l->ntb, reterr);
	return rc < 0 ? rc : open_pools(l, reterr);
}

void live_ntb_close(struct live *l)
{
	emu_ntb_free(l->ntb);
	l->ntb = NULL;
	live_pools_close(l);
	if (l->pool_path[0])
		unlink(l->pool_path);
	if (l->alarm.fd >= 0)
		close(l->alarm.fd);
}

void live_ntb_event(struct live *l)
{
	uint64_t times;

	if (read(l->alarm.fd, &times, sizeof(times)) != sizeof(times))
		return;
	l->alarm_at = 0;
	emu_ntb_expire(l->ntb);
}
