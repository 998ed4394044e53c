// SPDX-License-Identifier: GPL-2.0-only
/* What the windows of an NTB lead to: see windows.h. */
#ifdef __KERNEL__
#include <linux/errno.h>
#else
#include <errno.h>
#endif

#include "windows.h"

static bool holds(const struct sio_ntb_range *r, __u64 bus, __u64 length)
{
	return length && length <= r->size && bus >= r->base && bus - r->base <= r->size - length;
}

/* Where a window that leads nowhere yet would have to lead. */
static bool fits(const struct sio_ntb_window *w, __u64 bus, __u64 length, struct sio_ntb_range *ret)
{
	const __u64 unit[] = {w->most, w->align};

	for (unsigned int i = 0; i < 2; i++) {
		*ret = (struct sio_ntb_range){.base = bus & ~(unit[i] - 1), .size = w->most};
		if (holds(ret, bus, length))
			return true;
	}
	return false;
}

int sio_ntb_windows_take(struct sio_ntb_windows *ws, __u64 bus, __u64 length, __u32 *ret,
			 bool *ret_fresh)
{
	int error = -ERANGE;

	*ret_fresh = false;
	for (__u32 i = 0; i < ws->n; i++) {
		if (!ws->window[i].users || !holds(&ws->window[i].at, bus, length))
			continue;
		ws->window[i].users++;
		*ret = i;
		return 0;
	}
	for (__u32 i = 0; i < ws->n; i++) {
		struct sio_ntb_range at;

		if (!fits(&ws->window[i], bus, length, &at))
			continue;
		error = -ENOSPC;
		if (ws->window[i].users)
			continue;
		ws->window[i].at = at;
		ws->window[i].users = 1;
		*ret = i;
		*ret_fresh = true;
		return 0;
	}
	return error;
}

bool sio_ntb_windows_drop(struct sio_ntb_windows *ws, __u32 i)
{
	if (--ws->window[i].users)
		return false;
	ws->window[i].at = (struct sio_ntb_range){};
	ws->window[i].set = false;
	return true;
}

bool sio_ntb_header_good(const struct sio_ntb_header *h)
{
	return h->magic == SIO_NTB_MAGIC && h->version == SIO_NTB_VERSION && !(h->changes & 1) &&
	       h->boot && h->boot < 1 << 24 && h->peers <= SIO_NTB_PEERS;
}

int sio_ntb_header_find(const struct sio_ntb_header *h, __u32 port, __u64 bus, __u64 length,
			__u64 *ret_offset)
{
	for (__u32 i = 0; i < h->peers && i < SIO_NTB_PEERS; i++) {
		const struct sio_ntb_row *row = &h->row[i];

		for (__u32 k = 0; row->port == port && k < row->windows && k < SIO_NTB_WINDOWS;
		     k++) {
			if (!holds(&row->window[k], bus, length))
				continue;
			*ret_offset = bus - row->window[k].base;
			return (int)k;
		}
	}
	return -ENOENT;
}
