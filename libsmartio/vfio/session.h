/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server's end of one vfio-user connection, as a step machine: messages come in, replies go out
 * through operations that never wait. Behind it is a PCI function (struct sio_vfio_function_ops).
 * docs/vfio-user.md says what of the protocol is implemented.
 */
#ifndef VFIO_SESSION_H
#define VFIO_SESSION_H

#include "vfio/memory.h"
#include "vfio/message.h"

#define SIO_VFIO_VECTORS 2048u /* of MSI-X */
#define SIO_VFIO_ASKED 16384u  /* DMA messages that wait for the peer's reply; a power of 2 */
#define SIO_VFIO_LATE 64u      /* accesses that are answered later */
#define SIO_VFIO_LATER 1       /* what read and write return then */

/* A region of the function. */
struct sio_vfio_region {
	uint64_t size;
	uint32_t flags; /* SIO_VFIO_REGION_*; CAPS is ours */
	/* With MMAP: which part may be mapped, of which file. The file stays the function's. */
	int fd;
	uint64_t fd_offset;
	unsigned n_areas; /* 0: the whole of it */
	struct sio_vfio_area area[4];
};

struct sio_vfio_function_ops {
	/* @index is below SIO_VFIO_REGIONS; *ret is zero: size 0: there is none. */
	void (*region)(void *function, unsigned index, struct sio_vfio_region *ret);
	uint32_t (*vectors)(void *function); /* of MSI-X */
	/*
	 * The range is in the region, @len not 0. Return: 0; -errno, which is sent to the peer;
	 * SIO_VFIO_LATER after sio_vfio_session_later().
	 */
	int (*read)(void *function, unsigned region, uint64_t offset, void *buf, size_t len);
	int (*write)(void *function, unsigned region, uint64_t offset, const void *buf, size_t len);
	void (*reset)(void *function);
	/* NULL: the function looks the memory up (sio_vfio_session_memory()) when it needs it. */
	void (*memory_changed)(void *function);
	/*
	 * NULL: the function raises interrupts by sio_vfio_session_interrupt(). Otherwise it
	 * signals eventfds itself: this one is @vector's from now on, and stays the session's; -1:
	 * none.
	 */
	void (*vector_changed)(void *function, unsigned vector, int fd);
	/* Can the peer be asked to give the function up (sio_vfio_session_request())? */
	bool requests;
};

/* Operations of the edge for a session. None waits for the peer. */
struct sio_vfio_session_ops {
	struct sio_vfio_memory_ops memory;
	/* Sends behind what was sent before; @fd (-1: none) goes with it and stays the caller's. */
	void (*send)(void *ctx, const void *message, size_t len, int fd);
	/*
	 * Can the descriptor be signalled without ever waiting for its other users? That is, is it
	 * an eventfd?
	 */
	bool (*is_event)(void *ctx, int fd);
	void (*signal)(void *ctx, int fd); /* an eventfd of the peer's; it may be full */
	void (*close)(void *ctx, int fd);
	void (*log)(void *ctx, const char *text);
};

struct sio_vfio_session;

/* @function and @ctx outlive the session. Return: NULL: no memory. */
struct sio_vfio_session *sio_vfio_session_new(const struct sio_vfio_function_ops *function_ops,
					      void *function,
					      const struct sio_vfio_session_ops *ops, void *ctx);
/*
 * Frees the session. DMA messages that wait for an answer fail with -EPIPE; then the peer's memory
 * and eventfds are released.
 */
void sio_vfio_session_free(struct sio_vfio_session *s);
/*
 * Handles one whole message, whose head sio_vfio_check_head() has passed. All @fds are the
 * session's.
 * Return: 0; -EPROTO: the connection must be closed, the reason was logged.
 */
int sio_vfio_session_take(struct sio_vfio_session *s, const void *message, size_t len,
			  const int *fds, unsigned n_fds);

/*
 * Called inside read or write: this access will be answered by sio_vfio_session_answer(), once;
 * other accesses of the peer are served meanwhile. Not after the session was freed.
 * Return: a ticket, not negative; -EAGAIN: too many wait.
 */
int sio_vfio_session_later(struct sio_vfio_session *s);
/* Withdraws the ticket, before read or write returns: the access is answered as usual. */
void sio_vfio_session_forgo(struct sio_vfio_session *s, int ticket);
/*
 * Answers the access. @rc: as read and write return it. @data: the bytes read, as many as were
 * requested.
 */
void sio_vfio_session_answer(struct sio_vfio_session *s, int ticket, int rc, const void *data);

/*
 * Signals the vector's eventfd, if there is one; the interrupt is kept while the vector is masked.
 */
void sio_vfio_session_interrupt(struct sio_vfio_session *s, unsigned vector);
/*
 * Asks the peer to unplug the function from its machine, if it has an interrupt for that request.
 */
void sio_vfio_session_request(struct sio_vfio_session *s);
struct sio_vfio_memory *sio_vfio_session_memory(struct sio_vfio_session *s);

/*
 * The end of a DMA message. @rc: 0; -EIO: the peer refused; -EPIPE: it is gone. @data: what was
 * read.
 */
typedef void sio_vfio_done(void *arg, int rc, const void *data, size_t len);
/*
 * Has the peer read or write @len bytes at bus address @address, as the function's access; at most
 * as many as both sides' max_data_xfer_size. @done may be NULL.
 * Return: 0: @done is called once, not before this returns; -EAGAIN: too many wait; -EMSGSIZE;
 * -ENOTCONN: the versions are not agreed upon yet.
 */
int sio_vfio_session_dma_read(struct sio_vfio_session *s, uint64_t address, size_t len,
			      sio_vfio_done *done, void *arg);
int sio_vfio_session_dma_write(struct sio_vfio_session *s, uint64_t address, const void *data,
			       size_t len, sio_vfio_done *done, void *arg);
/* How many DMA messages the peer has not answered. */
unsigned sio_vfio_session_asked(const struct sio_vfio_session *s);
/* The most bytes of one DMA message. */
size_t sio_vfio_session_dma_max(const struct sio_vfio_session *s);

#endif
