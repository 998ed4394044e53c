/* SPDX-License-Identifier: BSD-2-Clause */
/* The vfio-user server without a socket: messages in, messages out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <linux/pci_regs.h>

#include "vfio/config.h"
#include "vfio/session.h"

#define RAM 0x100000u
#define RAM_BYTES 0x4000u
#define RAM_FD 1000
#define EVENT_FD 2000 /* and above: eventfds */
#define BAR_BYTES 0x1000u

/* A peer, its server, and a function with a BAR of plain memory. */
struct world {
	struct sio_vfio_session *s;
	uint8_t ram[RAM_BYTES], bar[BAR_BYTES];
	unsigned n_mapped, n_closed, n_resets, n_done;
	unsigned signals[8];
	int done_rc, sent_fd;
	uint8_t done_data[64];
	bool mappable;
	uint16_t id;
	size_t n_out; /* the last message out */
	unsigned n_sent;
	uint8_t out[SIO_VFIO_MAX_MESSAGE], in[SIO_VFIO_MAX_MESSAGE];
};

static int map(void *ctx, int fd, uint64_t offset, const struct sio_vfio_range *range, void **ret)
{
	struct world *w = ctx;

	assert_int_equal(fd, RAM_FD);
	if (offset > RAM_BYTES || range->size > RAM_BYTES - offset)
		return -EINVAL;
	w->n_mapped++;
	*ret = w->ram + offset;
	return 0;
}

static void unmap(void *ctx, void *data, uint64_t size)
{
	(void)data;
	(void)size;
	((struct world *)ctx)->n_mapped--;
}

static void send_message(void *ctx, const void *message, size_t len, int fd)
{
	struct world *w = ctx;

	memcpy(w->out, message, len);
	w->n_out = len;
	w->n_sent++;
	w->sent_fd = fd;
}

static bool is_event(void *ctx, int fd)
{
	(void)ctx;
	return fd >= EVENT_FD;
}

static void signal_event(void *ctx, int fd)
{
	((struct world *)ctx)->signals[fd - EVENT_FD]++;
}

static void close_fd(void *ctx, int fd)
{
	(void)fd;
	((struct world *)ctx)->n_closed++;
}

static void log_nothing(void *ctx, const char *text)
{
	(void)ctx;
	assert_true(strlen(text) > 10);
}

static const struct sio_vfio_session_ops ops = {.memory = {map, unmap},
						.send = send_message,
						.is_event = is_event,
						.signal = signal_event,
						.close = close_fd,
						.log = log_nothing};

static void region(void *function, unsigned index, struct sio_vfio_region *ret)
{
	struct world *w = function;

	if (index != 0)
		return;
	ret->size = BAR_BYTES;
	ret->flags = SIO_VFIO_REGION_READABLE | SIO_VFIO_REGION_WRITABLE;
	if (!w->mappable)
		return;
	ret->flags |= SIO_VFIO_REGION_MMAP;
	ret->fd = 77;
	ret->fd_offset = 0x2000;
}

static uint32_t vectors(void *function)
{
	(void)function;
	return 4;
}

static int bar_read(void *function, unsigned index, uint64_t offset, void *buf, size_t len)
{
	struct world *w = function;

	(void)index;
	memcpy(buf, w->bar + offset, len);
	return 0;
}

static int bar_write(void *function, unsigned index, uint64_t offset, const void *buf, size_t len)
{
	struct world *w = function;

	(void)index;
	memcpy(w->bar + offset, buf, len);
	return 0;
}

static void reset(void *function)
{
	((struct world *)function)->n_resets++;
}

static const struct sio_vfio_function_ops function_ops = {region, vectors, bar_read, bar_write,
							  reset};

/* A message; what came before it is forgotten. Return: of the session. */
static int tell(struct world *w, unsigned command, uint32_t flags, const void *body, size_t len,
		const int *fds, unsigned n_fds)
{
	struct sio_vfio_header head = {.id = ++w->id,
				       .command = (uint16_t)command,
				       .size = (uint32_t)(sizeof(head) + len),
				       .flags = flags};

	memcpy(w->in, &head, sizeof(head));
	if (len)
		memcpy(w->in + sizeof(head), body, len);
	w->n_out = 0;
	w->sent_fd = -1;
	return sio_vfio_session_take(w->s, w->in, head.size, fds, n_fds);
}

/* The reply to the last message. Return: its error. */
static unsigned replied(const struct world *w)
{
	struct sio_vfio_header head;

	assert_true(w->n_out >= sizeof(head));
	memcpy(&head, w->out, sizeof(head));
	assert_int_equal(head.id, w->id);
	assert_int_equal(head.size, w->n_out);
	assert_true(head.flags & SIO_VFIO_REPLY);
	assert_int_equal(!!(head.flags & SIO_VFIO_ERROR), head.error != 0);
	return head.error;
}

static const void *reply_body(const struct world *w)
{
	return w->out + sizeof(struct sio_vfio_header);
}

static unsigned ask(struct world *w, unsigned command, const void *body, size_t len)
{
	assert_int_equal(tell(w, command, 0, body, len, NULL, 0), 0);
	return replied(w);
}

static struct world *fresh(void)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->s = sio_vfio_session_new(&function_ops, w, &ops, w);
	assert_non_null(w->s);
	return w;
}

static struct world *ready(void)
{
	struct world *w = fresh();
	static const char hello[] =
		"\0\0\0\0{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":32}}";

	assert_int_equal(ask(w, SIO_VFIO_VERSION, hello, sizeof(hello)), 0);
	return w;
}

static void done_with(struct world *w)
{
	sio_vfio_session_free(w->s);
	assert_int_equal(w->n_mapped, 0);
	free(w);
}

static unsigned map_at(struct world *w, uint64_t address, uint64_t size, uint64_t offset, bool fd)
{
	const struct sio_vfio_dma_map m = {
		.argsz = sizeof(m), .flags = 3, .offset = offset, .address = address, .size = size};
	const int fds[] = {RAM_FD};

	assert_int_equal(tell(w, SIO_VFIO_DMA_MAP, 0, &m, sizeof(m), fds, fd), 0);
	return replied(w);
}

static unsigned unmap_at(struct world *w, uint64_t address, uint64_t size, uint32_t flags)
{
	const struct sio_vfio_dma_unmap m = {
		.argsz = sizeof(m), .flags = flags, .address = address, .size = size};

	return ask(w, SIO_VFIO_DMA_UNMAP, &m, sizeof(m));
}

static void versions_come_first_and_once(void **state)
{
	struct world *w = fresh();
	static const uint8_t other[4] = {1};
	static const char *const bad[] = {"{", "[]", "{\"capabilities\":3}",
					  "{\"capabilities\":{\"max_data_xfer_size\":\"x\"}}"};
	uint8_t text[128] = {0};

	(void)state;
	assert_int_equal(tell(w, SIO_VFIO_RESET, 0, NULL, 0, NULL, 0), -EPROTO);
	assert_int_equal(replied(w), EINVAL);
	assert_int_equal(ask(w, SIO_VFIO_VERSION, other, 4), EINVAL);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		strcpy((char *)text + 4, bad[i]);
		assert_int_equal(ask(w, SIO_VFIO_VERSION, text, 5 + strlen(bad[i])), EINVAL);
	}
	/* Without its NUL. */
	assert_int_equal(ask(w, SIO_VFIO_VERSION, text, 4 + strlen(bad[3])), EINVAL);
	assert_int_equal(ask(w, SIO_VFIO_VERSION, text, 4), 0);
	assert_non_null(strstr((const char *)reply_body(w) + 4, "max_data_xfer_size\":65536"));
	assert_int_equal(tell(w, SIO_VFIO_VERSION, 0, text, 4, NULL, 0), -EPROTO);
	done_with(w);
}

static void memory_is_what_was_mapped(void **state)
{
	struct world *w = ready();
	struct sio_vfio_memory *m = sio_vfio_session_memory(w->s);
	const struct sio_vfio_range *r;
	size_t part;

	(void)state;
	/* A reply that tells of an error, to what nobody asked, is no DMA_MAP of everything. */
	tell(w, SIO_VFIO_DMA_MAP, SIO_VFIO_REPLY | SIO_VFIO_ERROR, NULL, 0, NULL, 0);
	assert_null(sio_vfio_memory_at(m, RAM));
	assert_int_equal(map_at(w, RAM, 0x2000, 0, true), 0);
	assert_int_equal(map_at(w, RAM + 0x2000, 0x1000, 0x3000, true), 0);
	assert_int_equal(w->n_closed, 2); /* the descriptors */
	assert_int_equal(map_at(w, RAM + 0x8000, 0x1000, 0, false), 0);
	/* Overlaps at either end, around, within; behind its file; nothing at all. */
	assert_int_equal(map_at(w, RAM - 0x1000, 0x1001, 0, true), EEXIST);
	assert_int_equal(map_at(w, RAM + 0x2fff, 1, 0, true), EEXIST);
	assert_int_equal(map_at(w, 0, UINT64_MAX, 0, false), EEXIST);
	assert_int_equal(map_at(w, RAM + 8, 8, 0, true), EEXIST);
	assert_int_equal(map_at(w, 0, 0x1000, RAM_BYTES, true), EINVAL);
	assert_int_equal(map_at(w, 0, 0, 0, true), EINVAL);
	assert_int_equal(map_at(w, UINT64_MAX, 2, 0, true), EINVAL);
	/* More than a machine may have of the process's address space. */
	assert_int_equal(map_at(w, 1ull << 50, SIO_VFIO_MAX_MAPPED - 0x2fff, 0, true), ENOSPC);
	assert_int_equal(w->n_mapped, 2);

	r = sio_vfio_memory_part(m, RAM + 0x1fff, 16, true, &part);
	assert_ptr_equal(r->data, w->ram);
	assert_int_equal(part, 1);
	r = sio_vfio_memory_part(m, RAM + 0x2000, 16, true, &part);
	assert_ptr_equal(r->data, w->ram + 0x3000);
	assert_int_equal(part, 16);
	assert_null(sio_vfio_memory_part(m, RAM - 1, 16, true, &part));
	assert_null(sio_vfio_memory_at(m, RAM + 0x3000));
	r = sio_vfio_memory_at(m, RAM + 0x8fff);
	assert_null(r->data);
	assert_null(sio_vfio_memory_at(m, RAM + 0x9000));

	assert_int_equal(unmap_at(w, RAM, 0x1000, 0), EINVAL);
	assert_int_equal(unmap_at(w, RAM + 0x1000, 0x2000, 0), EINVAL);
	assert_int_equal(unmap_at(w, RAM - 0x1000, 0x1000, 0), ENOENT);
	assert_int_equal(unmap_at(w, RAM, 0x3000, 0), 0);
	assert_int_equal(w->n_mapped, 0);
	assert_non_null(sio_vfio_memory_at(m, RAM + 0x8000));
	assert_int_equal(unmap_at(w, 1, 1, SIO_VFIO_UNMAP_ALL), EINVAL);
	assert_int_equal(unmap_at(w, 0, 0, SIO_VFIO_UNMAP_ALL), 0);
	assert_null(sio_vfio_memory_at(m, RAM + 0x8000));
	/* What is left goes with the session. */
	assert_int_equal(map_at(w, 0, RAM_BYTES, 0, true), 0);
	done_with(w);
}

static void ranges_are_bounded(void **state)
{
	struct world *w = ready();

	(void)state;
	/* From the top down: each is put before all others. */
	for (unsigned i = SIO_VFIO_MAX_MAPS; i > 0; i--)
		assert_int_equal(map_at(w, i * 0x1000ull, 0x1000, 0, false), 0);
	assert_int_equal(map_at(w, 0, 0x1000, 0, false), ENOSPC);
	for (unsigned i = 1; i <= SIO_VFIO_MAX_MAPS; i++)
		assert_int_equal(
			sio_vfio_memory_at(sio_vfio_session_memory(w->s), i * 0x1000ull)->address,
			i * 0x1000ull);
	done_with(w);
}

static void regions_are_told_and_accessed(void **state)
{
	struct world *w = ready();
	struct sio_vfio_region_info info = {.argsz = sizeof(info)};
	struct {
		struct sio_vfio_access a;
		uint32_t data;
	} access = {{.offset = BAR_BYTES - 4, .region = 0, .count = 4}, 0x12345678};
	struct sio_vfio_sparse cap;
	struct sio_vfio_area area;

	(void)state;
	assert_int_equal(ask(w, SIO_VFIO_GET_REGION_INFO, &info, sizeof(info)), 0);
	memcpy(&info, reply_body(w), sizeof(info));
	assert_int_equal(info.size, BAR_BYTES);
	assert_int_equal(info.flags, 3);
	info.index = SIO_VFIO_REGIONS;
	assert_int_equal(ask(w, SIO_VFIO_GET_REGION_INFO, &info, sizeof(info)), EINVAL);

	assert_int_equal(ask(w, SIO_VFIO_REGION_WRITE, &access, sizeof(access.a) + 4), 0);
	assert_memory_equal(w->bar + BAR_BYTES - 4, &access.data, 4);
	assert_int_equal(ask(w, SIO_VFIO_REGION_READ, &access.a, sizeof(access.a)), 0);
	assert_memory_equal((const uint8_t *)reply_body(w) + sizeof(access.a), &access.data, 4);
	/* Posted: it is done, nobody is told. */
	access.data = 7;
	assert_int_equal(tell(w, SIO_VFIO_REGION_WRITE, SIO_VFIO_NO_REPLY, &access,
			      sizeof(access.a) + 4, NULL, 0),
			 0);
	assert_int_equal(w->n_out, 0);
	assert_int_equal(w->bar[BAR_BYTES - 4], 7);
	access.a.offset++;
	assert_int_equal(ask(w, SIO_VFIO_REGION_READ, &access.a, sizeof(access.a)), EINVAL);
	assert_int_equal(ask(w, SIO_VFIO_REGION_WRITE, &access, sizeof(access.a) + 4), EINVAL);
	access.a.offset = UINT64_MAX - 1;
	assert_int_equal(ask(w, SIO_VFIO_REGION_READ, &access.a, sizeof(access.a)), EINVAL);
	access.a.offset = 0;
	access.a.region = 1;
	assert_int_equal(ask(w, SIO_VFIO_REGION_READ, &access.a, sizeof(access.a)), EINVAL);
	access.a.region = 0;
	assert_int_equal(ask(w, SIO_VFIO_REGION_WRITE, &access, sizeof(access.a) + 3), EINVAL);
	access.a.count = SIO_VFIO_MAX_DATA + 1;
	assert_int_equal(ask(w, SIO_VFIO_REGION_READ, &access.a, sizeof(access.a)), EINVAL);

	/* One that may be mapped: the first answer tells what the second needs. */
	w->mappable = true;
	info = (struct sio_vfio_region_info){.argsz = sizeof(info)};
	assert_int_equal(ask(w, SIO_VFIO_GET_REGION_INFO, &info, sizeof(info)), 0);
	memcpy(&info, reply_body(w), sizeof(info));
	assert_int_equal(info.argsz, 64);
	assert_int_equal(info.flags, 0xf);
	assert_int_equal(info.cap_offset, 32);
	assert_int_equal(w->sent_fd, -1);
	assert_int_equal(ask(w, SIO_VFIO_GET_REGION_INFO, &info, sizeof(info)), 0);
	assert_int_equal(w->sent_fd, 77);
	memcpy(&cap, (const uint8_t *)reply_body(w) + 32, sizeof(cap));
	memcpy(&area, (const uint8_t *)reply_body(w) + 48, sizeof(area));
	assert_int_equal(cap.id, 1);
	assert_int_equal(cap.n_areas, 1);
	assert_int_equal(area.size, BAR_BYTES);
	done_with(w);
}

static unsigned set_irqs(struct world *w, uint32_t flags, uint32_t start, uint32_t count,
			 const int *fds, unsigned n_fds)
{
	const struct sio_vfio_irq_set set = {.argsz = sizeof(set),
					     .flags = flags,
					     .index = SIO_VFIO_MSIX,
					     .start = start,
					     .count = count};

	assert_int_equal(tell(w, SIO_VFIO_SET_IRQS, 0, &set, sizeof(set), fds, n_fds), 0);
	return replied(w);
}

#define EVENTFD (SIO_VFIO_SET_EVENTFD | SIO_VFIO_SET_TRIGGER)

static void interrupts_reach_their_eventfds(void **state)
{
	struct world *w = ready();
	const int fds[] = {EVENT_FD, EVENT_FD + 1, EVENT_FD + 2};
	const int pipe[] = {3};

	(void)state;
	sio_vfio_session_interrupt(w->s, 0); /* nobody wants it */
	assert_int_equal(set_irqs(w, EVENTFD, 1, 2, fds, 2), 0);
	assert_int_equal(w->n_closed, 0);
	for (unsigned i = 0; i < 5; i++)
		sio_vfio_session_interrupt(w->s, i);
	assert_int_equal(w->signals[0], 1);
	assert_int_equal(w->signals[1], 1);
	/* Masked: kept, and told once. */
	assert_int_equal(set_irqs(w, SIO_VFIO_SET_NONE | SIO_VFIO_SET_MASK, 1, 1, NULL, 0), 0);
	sio_vfio_session_interrupt(w->s, 1);
	sio_vfio_session_interrupt(w->s, 1);
	assert_int_equal(w->signals[0], 1);
	assert_int_equal(set_irqs(w, SIO_VFIO_SET_NONE | SIO_VFIO_SET_UNMASK, 1, 1, NULL, 0), 0);
	assert_int_equal(w->signals[0], 2);
	/* By the peer itself; another eventfd; none. */
	assert_int_equal(set_irqs(w, SIO_VFIO_SET_NONE | SIO_VFIO_SET_TRIGGER, 2, 1, NULL, 0), 0);
	assert_int_equal(w->signals[1], 2);
	assert_int_equal(set_irqs(w, EVENTFD, 1, 1, fds + 2, 1), 0);
	assert_int_equal(w->n_closed, 1);
	sio_vfio_session_interrupt(w->s, 1);
	assert_int_equal(w->signals[2], 1);
	assert_int_equal(set_irqs(w, EVENTFD, 1, 1, NULL, 0), 0);
	sio_vfio_session_interrupt(w->s, 1);
	assert_int_equal(w->signals[2], 1);
	/* Refused: what is no eventfd, too few, vectors that there are not, two actions. */
	assert_int_equal(set_irqs(w, EVENTFD, 0, 1, pipe, 1), EINVAL);
	assert_int_equal(set_irqs(w, EVENTFD, 0, 2, fds, 1), EINVAL);
	assert_int_equal(set_irqs(w, EVENTFD, 4, 1, fds, 1), EINVAL);
	assert_int_equal(set_irqs(w, EVENTFD, UINT32_MAX, 2, fds, 2), EINVAL);
	assert_int_equal(set_irqs(w, EVENTFD | SIO_VFIO_SET_MASK, 0, 1, fds, 1), EINVAL);
	assert_int_equal(w->n_closed, 2 + 1 + 1 + 1 + 2 + 1);
	assert_int_equal(set_irqs(w, SIO_VFIO_SET_NONE | SIO_VFIO_SET_TRIGGER, 0, 0, NULL, 0), 0);
	sio_vfio_session_interrupt(w->s, 2);
	assert_int_equal(w->signals[1], 2);
	assert_int_equal(ask(w, SIO_VFIO_RESET, NULL, 0), 0);
	assert_int_equal(w->n_resets, 1);
	assert_int_equal(ask(w, SIO_VFIO_GET_REGION_IO_FDS, NULL, 0), EOPNOTSUPP);
	done_with(w);
}

static void done(void *arg, int rc, const void *data, size_t len)
{
	struct world *w = arg;

	w->n_done++;
	w->done_rc = rc;
	if (data)
		memcpy(w->done_data, data, len);
}

/* The peer's reply to the message that came out last. */
static int answer(struct world *w, uint32_t flags, uint64_t count, const char *data)
{
	struct {
		struct sio_vfio_header head;
		struct sio_vfio_dma dma;
		char data[32];
	} m;
	size_t len = data ? strlen(data) : 0;

	memcpy(&m, w->out, sizeof(m.head) + sizeof(m.dma));
	m.head.flags = SIO_VFIO_REPLY | flags;
	m.head.size = (uint32_t)(sizeof(m.head) + sizeof(m.dma) + len);
	m.dma.count = count;
	if (data)
		memcpy(m.data, data, len);
	return sio_vfio_session_take(w->s, &m, m.head.size, NULL, 0);
}

static void the_peer_does_what_is_no_memory(void **state)
{
	struct world *w = fresh();

	(void)state;
	assert_int_equal(sio_vfio_session_dma_read(w->s, 1, 8, done, w), -ENOTCONN);
	done_with(w);
	w = ready();
	assert_int_equal(sio_vfio_session_dma_max(w->s), 32);
	assert_int_equal(sio_vfio_session_dma_read(w->s, 1, 33, done, w), -EMSGSIZE);
	assert_int_equal(sio_vfio_session_dma_read(w->s, 0xf000, 4, done, w), 0);
	assert_int_equal(w->n_done, 0);
	assert_int_equal(answer(w, 0, 4, "abcd"), 0);
	assert_int_equal(w->n_done, 1);
	assert_memory_equal(w->done_data, "abcd", 4);
	assert_int_equal(answer(w, 0, 4, "abcd"), -EPROTO); /* a second time */
	assert_int_equal(sio_vfio_session_dma_write(w->s, 0xf000, "efgh", 4, done, w), 0);
	assert_memory_equal(w->out + 32, "efgh", 4);
	assert_int_equal(answer(w, SIO_VFIO_ERROR, 4, NULL), 0);
	assert_int_equal(w->done_rc, -EIO);
	assert_int_equal(sio_vfio_session_dma_read(w->s, 0xf000, 4, done, w), 0);
	assert_int_equal(answer(w, 0, 3, "abc"), -EPROTO); /* of other bytes than asked for */
	for (unsigned i = 1; i < SIO_VFIO_ASKED; i++)
		assert_int_equal(sio_vfio_session_dma_write(w->s, 0xf000, "x", 1, done, w), 0);
	assert_int_equal(sio_vfio_session_dma_write(w->s, 0xf000, "x", 1, done, w), -EAGAIN);
	w->n_done = 0;
	sio_vfio_session_free(w->s);
	assert_int_equal(w->n_done, SIO_VFIO_ASKED);
	assert_int_equal(w->done_rc, -EPIPE);
	free(w);
}

static void heads_are_not_believed(void **state)
{
	struct sio_vfio_header head = {.command = SIO_VFIO_RESET, .size = 16};
	struct world *w = ready();

	(void)state;
	assert_int_equal(sio_vfio_check_head(&head, NULL), 0);
	head.size = 15;
	assert_int_equal(sio_vfio_check_head(&head, NULL), -EPROTO);
	head.size = SIO_VFIO_MAX_MESSAGE + 1;
	assert_int_equal(sio_vfio_check_head(&head, NULL), -EPROTO);
	head.size = 16;
	head.flags = 2;
	assert_int_equal(sio_vfio_check_head(&head, NULL), -EPROTO);
	head.flags = 0x80000000;
	assert_int_equal(sio_vfio_check_head(&head, NULL), -EPROTO);
	assert_int_equal(ask(w, 99, NULL, 0), EOPNOTSUPP);
	assert_int_equal(ask(w, SIO_VFIO_DMA_READ, w->bar, 16), EINVAL);
	assert_int_equal(ask(w, SIO_VFIO_GET_INFO, w->bar, 15), EINVAL);
	assert_int_equal(ask(w, SIO_VFIO_GET_INFO, w->bar, 17), EINVAL);
	assert_int_equal(tell(w, SIO_VFIO_RESET, SIO_VFIO_REPLY, NULL, 0, NULL, 0), -EPROTO);
	done_with(w);
}

static void config_space_is_an_endpoints(void **state)
{
	const struct sio_vfio_config_identity id = {.vendor = 0x1234,
						    .device = 0x5678,
						    .class_code = 0x010802,
						    .bar_size = {0x4000, 0, 1ull << 33},
						    .msix_count = 5,
						    .msix_table = 0x2000,
						    .msix_pending = 0x2050};
	static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	static struct sio_vfio_config c;
	uint8_t cap, found = 0;
	uint64_t word;

	(void)state;
	sio_vfio_config_init(&c, &id);
	assert_int_equal(c.now[PCI_VENDOR_ID], 0x34);
	assert_int_equal(c.now[PCI_CLASS_DEVICE + 1], 0x01);
	/* All of it is written to with ones: only what a driver may set is set. */
	assert_false(sio_vfio_config_is_master(&c));
	for (unsigned i = 0; i < 0x80; i += 8)
		sio_vfio_config_write(&c, i, ones, 8);
	assert_true(sio_vfio_config_is_master(&c));
	assert_int_equal(c.now[PCI_VENDOR_ID], 0x34);
	memcpy(&word, c.now + PCI_BASE_ADDRESS_0, 8);
	assert_int_equal(word, ~0x3fffull | PCI_BASE_ADDRESS_MEM_TYPE_64);
	memcpy(&word, c.now + PCI_BASE_ADDRESS_2, 8);
	assert_int_equal(word, ~((1ull << 33) - 1) | PCI_BASE_ADDRESS_MEM_TYPE_64);
	for (cap = c.now[PCI_CAPABILITY_LIST]; cap; cap = c.now[cap + 1]) {
		found |= c.now[cap] == PCI_CAP_ID_MSIX ? 1 : c.now[cap] == PCI_CAP_ID_EXP ? 2 : 4;
		if (c.now[cap] == PCI_CAP_ID_MSIX) {
			assert_int_equal(c.now[cap + 2] | c.now[cap + 3] << 8, 0xc004);
			assert_int_equal(c.now[cap + 8] | c.now[cap + 9] << 8, 0x2050);
		}
	}
	assert_int_equal(found, 3);
	/* A function level reset is the one bit, however it is written. */
	assert_false(sio_vfio_config_write(&c, c.pcie + PCI_EXP_DEVCTL, "\xff\x7f", 2));
	assert_true(sio_vfio_config_write(&c, c.pcie + PCI_EXP_DEVCTL, "\0\x80", 2));
	assert_true(sio_vfio_config_write(&c, c.pcie + PCI_EXP_DEVCTL + 1, "\x80", 1));
	assert_int_equal(c.now[c.pcie + PCI_EXP_DEVCTL + 1] & 0x80, 0);
	sio_vfio_config_reset(&c);
	assert_false(sio_vfio_config_is_master(&c));
}

/* As those of older network cards: the upper half of a BAR has no place where the next one is. */
static void bars_beside_each_other_are_of_32_bits(void **state)
{
	const struct sio_vfio_config_identity id = {
		.bar_size = {0x20000, 0x10000, 0, 0x4000, 0, 0x1000}};
	const uint64_t is[] = {0xfffe0000, 0xffffffffffff0000, 0, 0xffffffffffffc000,
			       0,	   0xfffff000};
	const uint32_t word[] = {0xfffe0000, 0xffff0004, 0xffffffff,
				 0xffffc004, 0xffffffff, 0xfffff000};
	static struct sio_vfio_config c;
	uint64_t base;
	uint32_t got;

	(void)state;
	sio_vfio_config_init(&c, &id);
	for (size_t i = 0; i < 6; i++) {
		sio_vfio_config_write(&c, PCI_BASE_ADDRESS_0 + 4 * i, "\xff\xff\xff\xff", 4);
		sio_vfio_config_read(&c, PCI_BASE_ADDRESS_0 + 4 * i, &got, 4);
		assert_int_equal(got, word[i]);
	}
	sio_vfio_config_write(&c, PCI_COMMAND, "\2", 1);
	for (unsigned i = 0; i < 6; i++) {
		if (!id.bar_size[i])
			continue;
		assert_true(sio_vfio_config_bar(&c, i, &base));
		assert_int_equal(base, is[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_come_first_and_once),
		cmocka_unit_test(memory_is_what_was_mapped),
		cmocka_unit_test(ranges_are_bounded),
		cmocka_unit_test(regions_are_told_and_accessed),
		cmocka_unit_test(interrupts_reach_their_eventfds),
		cmocka_unit_test(the_peer_does_what_is_no_memory),
		cmocka_unit_test(heads_are_not_believed),
		cmocka_unit_test(config_space_is_an_endpoints),
		cmocka_unit_test(bars_beside_each_other_are_of_32_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
