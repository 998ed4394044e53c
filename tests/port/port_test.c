/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the table against a world and reports by the Test Anything Protocol.
 * usage: port_test room PATH-OF-SMARTIO-EMU
 *        port_test shim DEVICE-NODE   (a drive is bound to smartio.ko, loaded with
 *                                      memory_limit=16777216)
 *        port_test loop DEVICE-NODE   (the same, and smartio_loop.ko is loaded)
 *        port_test vfio fake|kept|STATE-DIR  (a machine that the test is; smartio-vfio, which has
 *                                      a drive, started with --memory-limit 16777216)
 *        port_test failures DEVICE-NODE   (each request while the kernel fails on demand)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port.h"

static unsigned n_done, n_failed;

void port_report(struct port_world *w, const char *what)
{
	n_failed += w->why[0] != '\0';
	printf("%sok %u - %s\n", w->why[0] ? "not " : "", ++n_done, what);
	if (w->why[0])
		printf("# %s\n", w->why);
	fflush(stdout);
	w->why[0] = '\0';
}

/* What a request is answered with, and that a refused one left everything as it was. */
static void expect(struct port_world *w, union port_packet *req, size_t len, int error,
		   int or_error, const char *text, uint32_t reason)
{
	uint64_t before = 0, after = 0;
	long fds_before, fds_after;
	union port_packet answer;
	int rc;

	if (port_digest(w, &before))
		return;
	fds_before = w->t->descriptors(w->ctx);
	rc = port_ask(w, 0, req, len, &answer, NULL);
	if (rc == 1)
		return;
	if (rc != error && rc != or_error && (rc == 0 || port_served(w, req->req.op)))
		port_failed(w, "answered %d (%s), %d is right", rc,
			    rc ? answer.error.text : "success", error);
	else if (rc == error && text && port_served(w, req->req.op) &&
		 !strstr(answer.error.text, text))
		port_failed(w, "the text '%s' lacks '%s'", answer.error.text, text);
	if (rc < 0 &&
	    (answer.error.h.reason != 0) != (rc == -ENOSPC || rc == -ENOMEM || rc == -EMFILE))
		port_failed(w, "answered %d with reason %u", rc, answer.error.h.reason);
	/* There the kernel chooses the address, and this one is above what the device can send. */
	if (w->t->one_host && reason == SIO_OUT_OF_IOVA)
		reason = SIO_OUT_OF_REACH;
	if (rc == error && reason && answer.error.h.reason != reason)
		port_failed(w, "reason %u, %u is right", answer.error.h.reason, reason);
	if (rc == 0 || port_digest(w, &after))
		return;
	fds_after = w->t->descriptors(w->ctx);
	if (before != after)
		port_failed(w, "refused, but something has changed");
	if (fds_before != fds_after)
		port_failed(w, "refused, but %ld descriptors became %ld", fds_before, fds_after);
}

static void run_row(struct port_world *w, const struct port_row *row)
{
	const struct port_other *other = w->otherwise ? w->otherwise(row) : NULL;
	union port_packet req;
	uint64_t value;

	if (port_things_make(w) == 0) {
		port_good(w, row->op, &req);
		value = row->value + (row->thing == T_NUMBER ? 0 : w->thing[row->thing]);
		memcpy((char *)&req + row->offset, &value, row->width);
		expect(w, &req, port_size(row->op), other ? other->error : row->error,
		       other ? other->or_error : row->error, other ? NULL : row->text,
		       other ? 0 : row->reason);
	}
	port_things_end(w);
	port_report(w, row->what);
}

/* What every operation refuses, whatever it does, and before it looks at anything else. */
static void run_form(struct port_world *w, uint32_t op)
{
	static const char *const what[] = {"size in the header", "a byte less",
					   "eight bytes more",	 "h.reserved",
					   "an unknown flag",	 "a longer size"};
	uint32_t size = port_size(op);
	union port_packet req;
	char name[64];

	for (unsigned i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		size_t len = size;

		if (i == 1 && size == sizeof(struct sio_req))
			continue; /* less than a header: run_short() */
		if (port_things_make(w) == 0) {
			port_good(w, op, &req);
			req.req.size -= i == 0;
			len -= i == 1;
			len += i == 2 || i == 5 ? 8 : 0;
			req.req.size += i == 5 ? 8 : 0;
			req.req.reserved = i == 3;
			req.req.flags |= i == 4 ? 1u << 31 : 0;
			expect(w, &req, len, -EINVAL, -EINVAL, NULL, 0);
		}
		port_things_end(w);
		snprintf(name, sizeof(name), "op %u: %s", op, what[i]);
		port_report(w, name);
	}
}

/* Further reserved fields: each lies elsewhere. */
static void run_reserved(struct port_world *w)
{
#define RESERVED(NAME, name, number, answer, flags, zero, files)                                   \
	{#NAME "." #zero, SIO_OP_##NAME, offsetof(struct sio_req_##name, zero), 4, 1, T_NUMBER,    \
	 -EINVAL,	  #zero},
	static const struct port_row row[] = {SIO_PORT_REQUESTS(RESERVED)};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (row[i].offset >= sizeof(struct sio_req))
			run_row(w, &row[i]);
}

static void run_unknown(struct port_world *w)
{
	static const uint32_t op[] = {0, SIO_OP_COUNT, SIO_EV_LINK, UINT32_MAX};

	for (unsigned i = 0; i < sizeof(op) / sizeof(op[0]); i++) {
		union port_packet req = {.req = {.size = sizeof(struct sio_req), .op = op[i]}};
		char name[64];

		expect(w, &req, sizeof(struct sio_req), -EOPNOTSUPP, -EOPNOTSUPP, "operation", 0);
		snprintf(name, sizeof(name), "unknown operation %#x", op[i]);
		port_report(w, name);
	}
}

/* Descriptors that nobody asked for are closed, and the request is refused. */
static void run_descriptors(struct port_world *w)
{
	long before = w->t->descriptors(w->ctx), after;
	int fds[2] = {dup(1), dup(1)}, none[SIO_PORT_MAX_FDS];
	union port_packet req, answer;
	unsigned n;

	port_good(w, SIO_OP_INFO, &req);
	req.req.cookie = ++w->cookie;
	w->t->send(w->ctx, 0, &req, req.req.size, fds, 2);
	close(fds[0]);
	close(fds[1]);
	if (w->t->event(w->ctx, 0, &answer, sizeof(answer), none, &n) < 0 ||
	    port_check_answer(w, &req.req, &answer, n, NULL) != -EINVAL)
		port_failed(w, "a request with descriptors was not refused");
	after = w->t->descriptors(w->ctx);
	if (before != after)
		port_failed(w, "%ld descriptors became %ld", before, after);
	port_report(w, "descriptors that nobody asked for");
}

/* Less than a header, or more than any request: there is nobody to answer, the host is cut off. */
static void run_short(struct port_world *w)
{
	static const size_t len[] = {1, sizeof(struct sio_req) - 1, SIO_PORT_MAX_PACKET + 1};
	static const char zeros[SIO_PORT_MAX_PACKET + 1];

	for (unsigned i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		int fds[SIO_PORT_MAX_FDS];
		union port_packet evt;
		char name[64];
		unsigned n;
		long got;

		snprintf(name, sizeof(name), "a packet of %zu bytes cuts the host off", len[i]);
		got = w->t->send(w->ctx, 1, zeros, len[i], NULL, 0);
		if (w->t->one_host) {
			if (got != -EMSGSIZE)
				port_failed(w, "answered %ld, %d is right", got, -EMSGSIZE);
			port_report(w, name);
			continue;
		}
		do
			got = w->t->event(w->ctx, 1, &evt, sizeof(evt), fds, &n);
		while (got > 0 && evt.evt.cookie == 0);
		if (got != 0)
			port_failed(w, "not cut off (%ld)", got);
		if (w->t->reopen(w->ctx, 1) < 0)
			port_failed(w, "cannot connect again");
		port_report(w, name);
	}
}

static int learn_served(struct port_world *w)
{
	union port_packet req, answer;
	int rc;

	port_good(w, SIO_OP_INFO, &req);
	rc = port_ask(w, 0, &req, req.req.size, &answer, NULL);
	if (rc == 0)
		w->served = ((const struct sio_evt_info *)(const void *)&answer)->served;
	return rc;
}

/* The device that host 0 has, opened for the daemon. */
static int find_device(struct port_world *w)
{
	union port_packet req, answer;
	int rc;

	port_good(w, SIO_OP_DEVICE_LIST, &req);
	rc = port_ask(w, 0, &req, req.req.size, &answer, NULL);
	if (rc)
		return rc;
	w->thing[T_DEVICE] = ((const struct sio_evt_device *)(const void *)&answer)->id;
	port_good(w, SIO_OP_DEVICE_OPEN, &req);
	return port_ask(w, 0, &req, req.req.size, &answer, NULL);
}

/* What an adapter has part in; the rest of the table is as without. */
static void run_adapters(struct port_world *w)
{
	static const uint32_t op[] = {SIO_OP_INFO,    SIO_OP_OWNER_CLOSE,   SIO_OP_FREE,
				      SIO_OP_GIVE,    SIO_OP_ADAPTER,	    SIO_OP_GRANT,
				      SIO_OP_UNGRANT, SIO_OP_MAP,	    SIO_OP_UNMAP,
				      SIO_OP_DMAMAP,  SIO_OP_REQUESTER_ADD, SIO_OP_REQUESTER_DEL,
				      SIO_OP_STATUS,  SIO_OP_VECTOR};

	for (size_t k = 0; k < sizeof(op) / sizeof(op[0]); k++) {
		for (unsigned i = 0; i < port_n_rows; i++)
			if (port_rows[i].op == op[k])
				run_row(w, &port_rows[i]);
		run_form(w, op[k]);
	}
	port_overflow(w);
	port_adapters(w);
}

static void run_all(struct port_world *w)
{
	for (unsigned i = 0; i < port_n_rows; i++)
		run_row(w, &port_rows[i]);
	for (uint32_t op = SIO_OP_INFO; op < SIO_OP_COUNT; op++)
		run_form(w, op);
	run_reserved(w);
	run_unknown(w);
	run_descriptors(w);
	if (port_served(w, SIO_OP_WATCH))
		port_watch(w);
	if (port_served(w, SIO_OP_DMA))
		port_events(w);
	port_overflow(w);
	run_short(w);
	if (w->t == &port_device)
		port_shim(w);
	if (w->t == &port_vfio)
		port_of_vfio(w);
}

int main(int argc, char **argv)
{
	struct port_world w = {.thing[T_NODE0] = 4, .thing[T_NODE1] = 8};
	bool failures = argc == 3 && strcmp(argv[1], "failures") == 0;
	int rc;

	w.loop = argc == 3 && strcmp(argv[1], "loop") == 0;
	if (argc == 3 && strcmp(argv[1], "room") == 0)
		w.t = &port_socket;
	else if (failures || w.loop || (argc == 3 && strcmp(argv[1], "shim") == 0))
		w.t = &port_device;
	else if (argc == 3 && strcmp(argv[1], "vfio") == 0)
		w.t = &port_vfio;
	if (w.t == &port_device || w.t == &port_vfio)
		w.otherwise = w.t == &port_vfio ? port_vfio_otherwise : port_otherwise;
	if (!w.t) {
		fprintf(stderr, "usage: port_test room PATH-OF-SMARTIO-EMU\n"
				"       port_test shim DEVICE-NODE\n"
				"       port_test loop DEVICE-NODE\n"
				"       port_test vfio fake|kept|STATE-DIR\n"
				"       port_test failures DEVICE-NODE\n");
		return 2;
	}
	rc = w.t->open(argv[2], &w.ctx);
	if (rc < 0) {
		printf("Bail out! %s: %s\n", argv[2], strerror(-rc));
		return 1;
	}
	if (learn_served(&w))
		port_failed(&w, "no INFO");
	port_report(&w, "what is served");
	if (find_device(&w))
		port_failed(&w, "host 0 has no device that opens");
	port_report(&w, "a device");
	if (failures)
		port_failures(&w);
	else if (w.loop)
		run_adapters(&w);
	else
		run_all(&w);
	if (w.t->close(w.ctx) != 0)
		port_failed(&w, "it did not end in order, or left something behind");
	port_report(&w, "ends in order");
	printf("1..%u\n", n_done);
	return n_failed != 0;
}
