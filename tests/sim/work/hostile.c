/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Malicious programs, which send their daemon what they like instead of using the library: requests
 * of any type and content, with right and wrong sizes, with descriptors that no request takes,
 * packets of noise. They leave replies unread, and disconnect at any time. Whatever they do, no
 * other program may notice.
 */
#include <errno.h>
#include <string.h>

#include "run/run.h"
#include "wire/check.h"
#include "wire/client.h"

#define TYPES 0x60 /* of requests, and some beyond */

union packet {
	struct sio_msg h;
	uint32_t word[64];
	unsigned char byte[SIO_WIRE_MAX];
};

/* Numbers that mean something somewhere: small ones, flags, sizes, nodes, extremes. */
static uint32_t number(void)
{
	static const uint32_t likely[] = {
		0, 1, 2, 3, 4, 8, 0x1000, 0x2000, 0x10000, 0x20000, 1u << 31, ~0u, 0xfffffffe};

	switch (sim_pick(4)) {
	case 0:
		return (uint32_t)sim_pick(16);
	case 1:
		return sim_node((unsigned)sim_pick(sim_hosts()));
	case 2:
		return likely[sim_pick(sizeof(likely) / sizeof(likely[0]))];
	default:
		return (uint32_t)sim_pick(0);
	}
}

/*
 * A daemon disconnects a client for most errors of a packet's form. Only one packet in @odd has
 * one, so that the daemon has to examine the contents of the others. True for a type that is such
 * an error: not a request, or not at this time.
 */
static bool is_odd(uint32_t type)
{
	return type == SIO_MSG_HELLO || type == SIO_MSG_RESTORE || type == SIO_MSG_RESTORE_STEP ||
	       sio_client_request_size(type) == 0;
}

static uint32_t some_type(uint64_t odd)
{
	uint32_t type;

	do
		type = 1 + (uint32_t)sim_pick(TYPES);
	while (is_odd(type) && sim_pick(odd) > 0);
	return type;
}

static size_t request(union packet *k, uint32_t id, uint64_t odd)
{
	uint32_t type = some_type(odd);
	size_t len = sio_client_request_size(type);
	bool wide = sim_pick(2); /* upper halves of 64-bit fields are zero more often than not */

	if (len < sizeof(k->h) || len > sizeof(k->word))
		len = sizeof(k->h) + 4 * sim_pick(16);
	memset(k, 0, sizeof(k->word));
	k->h.type = sio_to_le32(type);
	k->h.id = sio_to_le32(id);
	for (size_t i = sizeof(k->h) / 4; i < len / 4; i++)
		if (wide || sim_pick(2))
			k->word[i] = number();
	if (sim_pick(odd) == 0)
		len = sizeof(k->h) + sim_pick(200);
	k->h.size = sio_to_le32(sim_pick(odd) ? (uint32_t)len : number());
	return len;
}

static size_t noise(union packet *k)
{
	size_t len = 1 + sim_pick(sizeof(k->byte) - 1);

	for (size_t i = 0; i < len; i++)
		k->byte[i] = (unsigned char)sim_pick(256);
	return len;
}

static bool greet(struct sio_world *w, int fd)
{
	struct sio_msg_hello hello = {.h = {.size = sio_to_le32(sizeof(hello)),
					    .type = sio_to_le32(SIO_MSG_HELLO),
					    .id = sio_to_le32(1)},
				      .version = sio_to_le32(SIO_CLIENT_VERSION),
				      .pid = sio_to_le32(sim_self()->pid),
				      .kind = sio_to_le32(SIO_CLIENT_LIBRARY)};

	return w->send(w, fd, &hello, sizeof(hello), NULL, 0) > 0;
}

/* Return: whether it is still connected. */
static bool listen_to(struct sio_world *w, int fd, uint64_t deadline)
{
	union packet k;
	int fds[SIO_WIRE_MAX_FDS];
	unsigned n = 0;
	ssize_t len = w->recv(w, fd, &k, sizeof(k), fds, SIO_WIRE_MAX_FDS, &n, deadline);

	for (unsigned i = 0; len > 0 && i < n; i++)
		if (fds[i] >= 0 && sim_pick(2)) /* the others stay open until the end */
			w->close(w, fds[i]);
	return len > 0 || len == -ETIMEDOUT;
}

static bool speak(struct sio_world *w, int fd, uint32_t id, uint64_t odd)
{
	int fds[2] = {-1, -1};
	unsigned n = sim_pick(odd) ? 0 : 1 + (unsigned)sim_pick(2);
	union packet k;
	size_t len;
	bool sent;

	for (unsigned i = 0; i < n; i++) {
		fds[i] = w->event_new(w);
		if (fds[i] < 0)
			n = i;
	}
	len = sim_pick(odd) ? request(&k, id, odd) : noise(&k);
	sent = w->send(w, fd, &k, len, fds, n) > 0;
	for (unsigned i = 0; i < n; i++)
		w->close(w, fds[i]);
	return sent;
}

static void hostile_main(struct sim_proc *p)
{
	struct sio_world *w = &p->world;
	uint64_t acts = 10 + sim_pick(500), odd = sim_pick(4) ? 200 : 10;
	bool reads = sim_pick(4) > 0;
	int fd = w->connect(w);

	if (fd < 0)
		return;
	if (sim_pick(10) && !greet(w, fd))
		return;
	/* A client that sends a request before its HELLO is answered is disconnected. */
	if (sim_pick(10))
		listen_to(w, fd, w->now(w) + SIM_SECOND);
	for (uint32_t id = 2; acts > 0 && !sim_stopping_programs(); acts--, id++) {
		if (!speak(w, fd, sim_pick(odd) ? id : (uint32_t)sim_pick(4), odd))
			break;
		while (reads && sim_pick(4) > 0)
			if (!listen_to(w, fd, 0))
				break;
		sim_sleep(sim_pick(4) ? sim_pick(100000) : sim_pick(20 * SIM_MS));
	}
	if (sim_pick(2))
		w->close(w, fd);
	p->result = 0;
}

const struct sim_workload sim_work_hostile = {.name = "hostile", .weight = 1, .main = hostile_main};
