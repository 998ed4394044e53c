/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The audit: which resources of one cluster daemons, machine room and system have, whether they
 * agree, and how many there are. Collecting is separate (audit_collect.c, audit_system.c) from
 * checking (audit_check.c: pure functions of what was collected).
 */
#ifndef TOOLS_AUDIT_H
#define TOOLS_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/types.h"
#include "smartio/uapi.h"
#include "wire/client.h"

#define AUDIT_DEAD 0x80000000u /* beside SIO_ROW_*: the row's process is gone */
#define AUDIT_DAEMON_KINDS (SIO_LIST_DINTS + 1)
#define AUDIT_PORT_KINDS (SIO_KIND_VECTOR + 1)

struct audit_row {
	uint64_t key, owner, bytes, address;
	uint32_t id, node, refs, flags, pid;
	char name[40];
};

struct audit_list {
	struct audit_row *row;
	size_t n;
};

/* The kernel's resources that a process of the cluster has. */
enum {
	AUDIT_SOCKETS,
	AUDIT_MEMFDS,
	AUDIT_PIPES,
	AUDIT_EVENTS,
	AUDIT_FILES,
	AUDIT_MAPS,
	AUDIT_RESOURCES
};
struct audit_process {
	bool runs;
	unsigned count[AUDIT_RESOURCES];
};

/* A device's own counters. */
struct audit_device {
	char name[SIO_DEVICE_NAME_LEN];
	uint32_t fdid;
	uint64_t queue_pairs; /* in use */
	uint64_t fatal;	      /* how often it stopped for good */
};

struct audit_host {
	char name[SIO_NAME_LEN];
	uint32_t node;
	bool up; /* its daemon answers */
	unsigned n_devices, n_adapters;
	uint32_t entries_used[SIO_MAX_ADAPTERS], requesters_used[SIO_MAX_ADAPTERS];
	struct audit_list daemon[AUDIT_DAEMON_KINDS]; /* by SIO_LIST_* */
	struct audit_list port[AUDIT_PORT_KINDS];     /* by SIO_KIND_* */
	struct audit_device *device;		      /* n_devices */
	struct audit_process process;
	bool address; /* its daemon meets others there, and not at a socket */
	bool far;     /* of another machine: its own audit counts it */
	bool port_socket, node_socket, peer_socket;
};

struct audit {
	bool machine; /* one machine with the kernel module: no machine room, no peers */
	struct audit_process room;
	unsigned orphans;   /* programs tied to a host whose keeper is gone */
	unsigned strangers; /* files in the state directory that nobody of the cluster makes */
	unsigned n_hosts;
	struct audit_host host[SIO_MAX_HOSTS];
};

/* The result of the audit. Lines of both kinds are strings that it owns. */
struct audit_report {
	char **problem; /* what does not agree, sorted */
	size_t n_problems;
	struct {
		char *where, *what;
		uint64_t count;
	} * line;
	size_t n_lines;
};

/* Checks and counts. */
void audit_check(const struct audit *a, struct audit_report *r);
void audit_summary(const struct audit *a, struct audit_report *r);
void audit_report_done(struct audit_report *r);

/* Collects all of it; free with audit_free(). */
int audit_collect(struct audit **ret, struct sio_err *reterr);
/* Collects the system's part, for the cluster in @dir: fills room, processes, sockets, orphans. */
void audit_system(struct audit *a, const char *dir);
void audit_free(struct audit *a);

#endif
