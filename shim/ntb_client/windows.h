/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the windows of an NTB lead to, and what a host publishes about them for its peers. There is
 * no kernel code in it, so that tests run it. An NTB's window is one contiguous range of the
 * exporter's bus: whatever is granted must lie in one of the few that there are.
 */
#ifndef SHIM_NTB_WINDOWS_H
#define SHIM_NTB_WINDOWS_H

#include <linux/types.h>
#ifndef __KERNEL__
#include <stdbool.h>
#endif

#define SIO_NTB_WINDOWS 4 /* to each peer, as many as are used */
#define SIO_NTB_PEERS 32
#define SIO_NTB_MAGIC 0x42544e4f4954524dULL
#define SIO_NTB_VERSION 1

/* Where one leads; size 0: nowhere. */
struct sio_ntb_range {
	__u64 base, size;
};

/* What an exporter's first window begins with. Peers find their row by their own port. */
struct sio_ntb_header {
	__u64 magic;
	__u32 version, node, adapter, peers;
	__u64 boot;
	__u32 changes; /* odd: it is just being changed */
	__u32 reserved;
	struct sio_ntb_row {
		__u32 port, windows;
		struct sio_ntb_range window[SIO_NTB_WINDOWS];
	} row[SIO_NTB_PEERS];
};

/* Where bells lie: behind the header, one word for each interrupt that peers may ring. */
#define SIO_NTB_PAGE 4096
#define SIO_NTB_BELLS (SIO_NTB_PAGE / 4)

/* The exporter's side of the windows to one peer. */
struct sio_ntb_windows {
	__u32 n;
	struct sio_ntb_window {
		struct sio_ntb_range at; /* where it leads */
		__u64 align;		 /* what its base must be a multiple of */
		__u64 most;		 /* bytes of it at most: a power of 2 */
		__u32 users;
		bool set; /* the hardware has @at, as far as is known */
	} window[SIO_NTB_WINDOWS];
};

/*
 * One of the windows is to lead to @length bytes at @bus. *ret: which; *ret_fresh: it leads there
 * only from now on, by window[*ret].at. Return: 0; -ENOSPC: all lead elsewhere; -ERANGE: none
 * could, it is too long or crosses what they are aligned to.
 */
int sio_ntb_windows_take(struct sio_ntb_windows *ws, __u64 bus, __u64 length, __u32 *ret,
			 bool *ret_fresh);
/* Return: nobody needs it any more; it leads nowhere from now on. */
bool sio_ntb_windows_drop(struct sio_ntb_windows *ws, __u32 i);

/* Whether it is one, complete, of a version that we know. */
bool sio_ntb_header_good(const struct sio_ntb_header *h);
/*
 * The importer's side: through which window @length bytes at the exporter's @bus are reached, and
 * at which byte of it. @port: the importer's. Return: the window; -ENOENT: through none.
 */
int sio_ntb_header_find(const struct sio_ntb_header *h, __u32 port, __u64 bus, __u64 length,
			__u64 *ret_offset);

#endif
