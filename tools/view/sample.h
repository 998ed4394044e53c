/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of a whole cluster at one moment: of daemons, hosts, adapters (of the traffic on
 * their links) and devices, and the state of each. A sample holds no connection: it outlives the
 * view from which it was taken.
 */
#ifndef TOOLS_SAMPLE_H
#define TOOLS_SAMPLE_H

#include "view/view.h"

enum tool_presence {
	TOOL_PRESENCE_UNKNOWN, /* its host does not answer */
	/* a host or daemon answers; a link is up; a device is in its slot, or attached */
	TOOL_PRESENT,
	TOOL_ABSENT,
};

/* Borrowers of a device that are programs of one host. */
struct tool_borrower {
	char host[SIO_NAME_LEN];
	unsigned n;
};

struct tool_counted {
	enum tool_counters kind;
	bool machine;	/* a machine, or something of one */
	bool attached;	/* an adapter or device of a machine: QEMU, or another initiator, has it */
	bool uncounted; /* what passes it is not counted: a window is mapped */
	/*
	 * The name of a host; "HOST.0" of an adapter, "HOST/BOX" of a chassis, "SWITCH-SWITCH" of a
	 * trunk; of a device.
	 */
	char name[2 * SIO_NAME_LEN + 2];
	char host[SIO_NAME_LEN];
	char type[SIO_NAME_LEN]; /* of a device; else "" */
	uint32_t node, id;	 /* id: adapter index or device id; else 0 */
	enum tool_presence presence;
	const char *state;		 /* as listings name it; a constant */
	unsigned borrowers, quarantined; /* of a device that is in */
	bool exclusive;
	struct tool_borrower *by; /* who they are, where it was asked for */
	unsigned n_by;
	/*
	 * The start of its host, as its daemon reports it: counters may begin again with another.
	 */
	struct tool_start {
		uint8_t boot_id[16];
		uint64_t generation;
	} start;
	bool known; /* it told its counters: */
	int64_t at; /* when, in nanoseconds of the caller's clock */
	unsigned n_counters;
	struct tool_counter *counter;
};

struct tool_sampled_trunk {
	char from[SIO_NAME_LEN], to[SIO_NAME_LEN];
	bool up;
};

struct tool_sample {
	char cluster[SIO_NAME_LEN];
	unsigned n, n_trunks;
	/* Host by host: its daemon, itself, its adapters, its devices, ...; machines; trunks. */
	struct tool_counted *thing;
	struct tool_sampled_trunk *trunk; /* links between switches, as the topology has them */
};

/* What to ask for in addition to the counters. */
#define TOOL_SAMPLE_BORROWERS 1u /* of each device, who has it */
#define TOOL_SAMPLE_LINKS 2u	 /* chassis, links between switches */
#define TOOL_SAMPLE_ENGINES 4u	 /* DMA engines of adapters */

/*
 * Asks all hosts of @v, or @only that one. A host that stops answering meanwhile is no error: its
 * values are unknown.
 * Return: 0 and a sample for tool_sample_free(); a daemon's refusal, as -errno with its text.
 */
int tool_sample_take(struct tool_view *v, const struct sio_topo_host *only, unsigned flags,
		     struct tool_sample **ret, struct sio_err *reterr);
/* NULL is fine. */
void tool_sample_free(struct tool_sample *s);

/* Finds the value of a counter by its name. False: @t does not count it. */
bool tool_counted_value(const struct tool_counted *t, const char *name, uint64_t *ret);

#endif
