/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to the machine room of an emulated cluster, which has the role of its operator. */
#ifndef TOOLS_ROOM_H
#define TOOLS_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/outage.h"

/* Sends @request to the room of the cluster in @dir. Return: 0; or the reason why not. */
int tool_room_ask(const char *dir, const char *request, struct sio_err *reterr);
/* What came or went by a reload: @number is a node id, or a device's id. */
enum tool_room_what { TOOL_ROOM_HOST, TOOL_ROOM_GONE, TOOL_ROOM_NEW, TOOL_ROOM_OUT };
struct tool_room_item {
	enum tool_room_what what; /* a host comes, or goes; a device does */
	uint32_t number;
};
/*
 * Has it prepare the file that is to take its place, or else the one in force. *ret_fd: for
 * tool_room_commit(); closed, and so at the end of this process, it forgets what was prepared.
 */
int tool_room_prepare(const char *dir, bool next, int *ret_fd, struct sio_err *reterr);
/*
 * Has it put in force what was prepared by connection @fd of the room of @dir. *ret_n: of *ret,
 * which the caller frees.
 */
int tool_room_commit(int fd, const char *dir, struct tool_room_item **ret, unsigned *ret_n,
		     struct sio_err *reterr);
/*
 * Which cluster switches and links between them are down. @t outlives what is returned, which
 * sio_outage_free() frees.
 */
int tool_room_outage(const char *dir, const struct sio_topology *t, struct sio_outage **ret,
		     struct sio_err *reterr);

struct tool_counter {
	char name[33];
	uint64_t value;
};

/* An adapter of a machine, or a device of its own, as the room sees it. */
#define TOOL_ROOM_COUNTERS 49
struct tool_room_part {
	bool attached; /* to the machine's QEMU, or to another initiator of vfio-user */
	bool linked, ready, counted; /* an adapter's: as struct emu_ntb_view says */
	unsigned n;
	struct tool_counter counter[TOOL_ROOM_COUNTERS];
};
/* Asks for the @n adapters of the machine with id @node. */
int tool_room_machine(const char *dir, uint32_t node, struct tool_room_part *ret, unsigned n,
		      struct sio_err *reterr);
/* Asks for one of the devices that a machine has for itself. */
int tool_room_served(const char *dir, uint32_t fdid, struct tool_room_part *ret,
		     struct sio_err *reterr);

#endif
