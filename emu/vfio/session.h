/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One vfio-user connection, the server's end, as a step machine: a message comes in, replies go out
 * through operations that never wait. What is behind it is a PCI function (struct
 * emu_vfio_function_ops). docs/vfio-user.md tells what of the protocol is served.
 */
#ifndef EMU_VFIO_SESSION_H
#define EMU_VFIO_SESSION_H

#include "emu/vfio/memory.h"
#include "emu/vfio/message.h"

#define EMU_VFIO_VECTORS 2048u /* of MSI-X */
#define EMU_VFIO_ASKED 4096u   /* DMA messages that wait for the peer's reply; a power of 2 */
#define EMU_VFIO_LATE 64u      /* accesses that are answered later */
#define EMU_VFIO_LATER 1       /* what read and write return then */

/* A region of the function. */
struct emu_vfio_region {
	uint64_t size;
	uint32_t flags; /* EMU_VFIO_REGION_*; CAPS is ours */
	/* With MMAP: where it may be mapped, of which file. The file stays the function's. */
	int fd;
	uint64_t fd_offset;
	unsigned n_areas; /* 0: the whole of it */
	struct emu_vfio_area area[4];
};

struct emu_vfio_function_ops {
	/* @index is below EMU_VFIO_REGIONS; *ret is zero: size 0: there is none. */
	void (*region)(void *function, unsigned index, struct emu_vfio_region *ret);
	uint32_t (*vectors)(void *function); /* of MSI-X */
	/*
	 * The range is in the region, @len not 0. Return: 0; -errno, which the peer is told;
	 * EMU_VFIO_LATER after emu_vfio_session_later().
	 */
	int (*read)(void *function, unsigned region, uint64_t offset, void *buf, size_t len);
	int (*write)(void *function, unsigned region, uint64_t offset, const void *buf, size_t len);
	void (*reset)(void *function);
};

/* What the edge does for a session. None waits for the peer. */
struct emu_vfio_session_ops {
	struct emu_vfio_memory_ops memory;
	/* Behind what was sent before; @fd (-1: none) goes with it and stays the caller's. */
	void (*send)(void *ctx, const void *message, size_t len, int fd);
	/*
	 * May it be signalled, without ever waiting for whoever has it? That is, is it an eventfd?
	 */
	bool (*is_event)(void *ctx, int fd);
	void (*signal)(void *ctx, int fd); /* an eventfd of the peer's; it may be full */
	void (*close)(void *ctx, int fd);
	void (*log)(void *ctx, const char *text);
};

struct emu_vfio_session;

/* @function and @ctx outlive the session. Return: NULL: no memory. */
struct emu_vfio_session *emu_vfio_session_new(const struct emu_vfio_function_ops *function_ops,
					      void *function,
					      const struct emu_vfio_session_ops *ops, void *ctx);
/*
 * Whoever waits for a DMA message hears -EPIPE. Then the peer's memory and eventfds are given back.
 */
void emu_vfio_session_free(struct emu_vfio_session *s);
/*
 * One whole message, whose head emu_vfio_check_head() has passed. All @fds are the session's.
 * Return: 0; -EPROTO: the connection is of no use any more, the reason was logged.
 */
int emu_vfio_session_take(struct emu_vfio_session *s, const void *message, size_t len,
			  const int *fds, unsigned n_fds);

/*
 * The access whose read or write is being called will be answered by emu_vfio_session_answer(),
 * once; others of the peer's are served meanwhile. Not after the session was freed.
 * Return: a ticket, not negative; -EAGAIN: too many wait.
 */
int emu_vfio_session_later(struct emu_vfio_session *s);
/* It is answered as usual after all: before read or write returns. */
void emu_vfio_session_forgo(struct emu_vfio_session *s, int ticket);
/* @rc: as read and write return it. @data: what was read, of the length that was asked for. */
void emu_vfio_session_answer(struct emu_vfio_session *s, int ticket, int rc, const void *data);

/* Signal the vector's eventfd, if there is one; kept while it is masked. */
void emu_vfio_session_interrupt(struct emu_vfio_session *s, unsigned vector);
struct emu_vfio_memory *emu_vfio_session_memory(struct emu_vfio_session *s);

/* @rc: 0; -EIO: the peer refused; -EPIPE: it is gone. @data: what was read. */
typedef void emu_vfio_done(void *arg, int rc, const void *data, size_t len);
/*
 * Have the peer read or write @len bytes at bus address @address, as the function's access; at most
 * as many as both sides' max_data_xfer_size. @done may be NULL.
 * Return: 0: @done is called once, not before this returns; -EAGAIN: too many wait; -EMSGSIZE;
 * -ENOTCONN: the versions are not agreed upon yet.
 */
int emu_vfio_session_dma_read(struct emu_vfio_session *s, uint64_t address, size_t len,
			      emu_vfio_done *done, void *arg);
int emu_vfio_session_dma_write(struct emu_vfio_session *s, uint64_t address, const void *data,
			       size_t len, emu_vfio_done *done, void *arg);
/* How many the peer has not answered. */
unsigned emu_vfio_session_asked(const struct emu_vfio_session *s);
/* The most bytes of one. */
size_t emu_vfio_session_dma_max(const struct emu_vfio_session *s);

#endif
