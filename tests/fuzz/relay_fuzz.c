/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile emulator of a virtual machine with two devices of one relay (tools/guest): a stream of
 * vfio-user messages, each led by a byte that says to which device it goes and how many descriptors
 * come with it, or that something else happens (enum event). The first byte is the number of the
 * library's call that fails. Checked after each: who reaches what; in the end: all is given back.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "guest/relay.h"
#include "relay_fake.h"

#define DEVICE_1 0x80u /* of the leading byte: to which device */
#define EVENT 0x40u    /* no message, but one of these, in the low bits */
enum event { LOSE, FORCE, LEAVE, CONNECT, EVENTS };

#define NO_SUCH_FD 1000 /* a program that signals one of these signals nothing */

struct guest {
	struct relay relay[FAKE_DEVICES]; /* a session's context is the relay */
	struct relay_machine machine;
};

static long fds;

static void take(void *ctx, const void *message, size_t len, int fd)
{
	struct sio_vfio_header head;

	(void)ctx;
	(void)fd;
	if (len < sizeof(head))
		abort();
	memcpy(&head, message, sizeof(head));
	if (head.size != len || sio_vfio_check_head(&head, NULL) < 0)
		abort();
}

static bool is_event(void *ctx, int fd)
{
	(void)ctx;
	return fd % 2;
}

static void signal_event(void *ctx, int fd)
{
	(void)ctx;
	if (fd % 2 == 0)
		abort();
}

static void close_fd(void *ctx, int fd)
{
	(void)ctx;
	(void)fd;
	fds--;
}

static void say(void *ctx, const char *text)
{
	(void)ctx;
	if (!*text)
		abort();
}

static const struct sio_vfio_session_ops session_ops = {
	.memory = {.map = relay_ram_map, .unmap = relay_ram_unmap},
	.send = take,
	.is_event = is_event,
	.signal = signal_event,
	.close = close_fd,
	.log = say,
};

static void leave(struct relay *r)
{
	if (!r->session)
		return;
	relay_stop(r);
	sio_vfio_session_free(r->session);
	r->session = NULL;
	relay_return(r);
}

static void come(struct relay *r)
{
	struct sio_err err;

	if (r->session || relay_borrow(r, &err) < 0)
		return;
	r->session = sio_vfio_session_new(&relay_function, r, &session_ops, r);
	if (!r->session)
		abort();
}

/* ---- what must hold ---- */

static uint64_t config(const struct relay *r, unsigned at, unsigned bytes)
{
	uint64_t v = 0;

	memcpy(&v, r->space.now + at, bytes);
	return v;
}

/* What is mapped of a BAR lies where the other device's configuration space has it. */
static void check_target(const struct guest *g, unsigned device, const struct fake_map *m)
{
	const struct relay *other;
	unsigned of, bar;
	uint64_t base;

	if (!fake_is_bar(m, &of, &bar))
		return;
	other = &g->relay[of];
	base = config(other, 0x10 + 4 * bar, 8) & ~0xfull;
	if (of == device || !other->session || other->state == RELAY_LOST ||
	    !(config(other, 4, 2) & 2) || m->at - m->offset != base)
		abort();
}

static void check(const struct guest *g)
{
	for (unsigned i = 0; i < FAKE_DEVICES; i++) {
		const struct relay *r = &g->relay[i];
		const struct fake_map *m = fake_device[i].maps;

		if ((r->state == RELAY_IDLE) == fake_device[i].borrowed ||
		    (r->state == RELAY_STOPPED && m))
			abort();
		if (r->state == RELAY_MASTER && !(config(r, 4, 2) & 4))
			abort();
		for (; m; m = m->next)
			check_target(g, i, m);
	}
}

/* ---- the stream ---- */

static void happen(struct guest *g, unsigned device, unsigned event)
{
	struct relay *r = &g->relay[device];

	if (event == LOSE && r->session)
		fake_device[device].lost = true;
	else if (event == FORCE && r->session)
		fake_device[device].forced++;
	else if (event == LEAVE)
		leave(r);
	else if (event == CONNECT)
		come(r);
}

/*
 * One whole message, whose head says how long it is: a size that the stream has not got is as many
 * bytes as there are. Return: bytes used; 0: no more.
 */
static size_t send(struct guest *g, unsigned device, uint8_t lead, const uint8_t *data, size_t size)
{
	struct relay *r = &g->relay[device];
	struct sio_vfio_header head;
	int fd[SIO_VFIO_MAX_FDS];
	unsigned n_fds = (lead & 0x1fu) % (SIO_VFIO_MAX_FDS + 1);
	uint8_t *message;
	size_t len;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, data, sizeof(head));
	if (sio_vfio_check_head(&head, NULL) < 0)
		return 0;
	len = head.size < size ? head.size : size;
	if (!r->session)
		return len;
	message = malloc(len);
	if (!message)
		abort();
	memcpy(message, data, len);
	head.size = (uint32_t)len;
	memcpy(message, &head, sizeof(head));
	for (unsigned i = 0; i < n_fds; i++)
		fd[i] = NO_SUCH_FD + 2 * (int)i + (lead & 0x20 ? 1 : 0);
	fds += n_fds;
	if (sio_vfio_session_take(r->session, message, len, fd, n_fds) < 0)
		leave(r);
	free(message);
	return len;
}

static size_t one(struct guest *g, const uint8_t *data, size_t size)
{
	unsigned device = data[0] & DEVICE_1 ? 1 : 0;
	size_t n = 0;

	if (data[0] & EVENT)
		happen(g, device, (data[0] & 0x3fu) % EVENTS);
	else
		n = send(g, device, data[0], data + 1, size - 1);
	for (unsigned i = 0; i < FAKE_DEVICES; i++)
		if (g->relay[i].session && g->relay[i].state != RELAY_LOST)
			relay_event(&g->relay[i]);
	check(g);
	return data[0] & EVENT ? 1 : n ? n + 1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[FAKE_DEVICES] = {"0", "1"};
	struct guest *g = calloc(1, sizeof(*g));
	size_t n;

	if (!g)
		abort();
	fake_begin();
	g->machine.n = FAKE_DEVICES;
	for (unsigned i = 0; i < FAKE_DEVICES; i++) {
		g->machine.relay[i] = &g->relay[i];
		if (relay_open(&g->relay[i], names[i], NULL) < 0)
			abort();
		g->relay[i].machine = &g->machine;
	}
	for (unsigned i = 0; i < FAKE_DEVICES; i++)
		come(&g->relay[i]);
	if (size > 0) {
		fake_fail(data[0]);
		for (data++, size--; size > 0 && (n = one(g, data, size)) > 0; data += n)
			size -= n;
	}
	for (unsigned i = 0; i < FAKE_DEVICES; i++)
		leave(&g->relay[i]);
	fake_end();
	if (fds != 0)
		abort();
	free(g);
	return 0;
}
