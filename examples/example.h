/* SPDX-License-Identifier: BSD-2-Clause */
/* What the examples share: every call's error is looked at, and connecting is tried again. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "sisci_api.h"

#define ADAPTER 0

static inline void check(sci_error_t error, const char *what)
{
	if (error == SCI_ERR_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, SCIGetErrorString(error));
	exit(1);
}

/* A call whose last argument is the error; what fails ends the program, by its name. */
#define CALL(function, ...)                                                                        \
	do {                                                                                       \
		sci_error_t error_;                                                                \
		function(__VA_ARGS__, &error_);                                                    \
		check(error_, #function);                                                          \
	} while (0)

static inline sci_desc_t begin(void)
{
	sci_error_t error;
	sci_desc_t sd;

	SCIInitialize(0, &error);
	check(error, "SCIInitialize");
	SCIOpen(&sd, 0, &error);
	check(error, "SCIOpen");
	return sd;
}

static inline void end(sci_desc_t sd)
{
	sci_error_t error;

	SCIClose(sd, 0, &error);
	check(error, "SCIClose");
	SCITerminate();
}

/* Memory of this host that others can connect to by @id; @flags: of SCICreateSegment(). */
static inline void *export_segment(sci_desc_t sd, unsigned id, size_t bytes, unsigned flags,
				   sci_local_segment_t *ret, sci_map_t *ret_map)
{
	sci_error_t error;
	void *memory;

	SCICreateSegment(sd, ret, id, bytes, NULL, NULL, flags, &error);
	check(error, "SCICreateSegment");
	SCIPrepareSegment(*ret, ADAPTER, 0, &error);
	check(error, "SCIPrepareSegment");
	memory = SCIMapLocalSegment(*ret, ret_map, 0, bytes, NULL, 0, &error);
	check(error, "SCIMapLocalSegment");
	SCISetSegmentAvailable(*ret, ADAPTER, 0, &error);
	check(error, "SCISetSegmentAvailable");
	return memory;
}

/* Removing is refused while others are connected: they leave when they are done. */
static inline void remove_segment(sci_local_segment_t segment, sci_map_t map)
{
	sci_error_t error;

	SCIUnmapSegment(map, 0, &error);
	check(error, "SCIUnmapSegment");
	do {
		SCIRemoveSegment(segment, 0, &error);
	} while (error == SCI_ERR_BUSY);
	check(error, "SCIRemoveSegment");
}

/* A call to SCIConnectSegment() never waits for the segment: that is for the program to do. */
static inline sci_remote_segment_t connect_segment(sci_desc_t sd, unsigned node, unsigned id,
						   unsigned flags)
{
	sci_remote_segment_t segment;
	sci_error_t error;

	do {
		SCIConnectSegment(sd, &segment, node, id, ADAPTER, NULL, NULL, SCI_INFINITE_TIMEOUT,
				  flags, &error);
		sched_yield();
	} while (error == SCI_ERR_NO_SUCH_SEGMENT);
	check(error, "SCIConnectSegment");
	return segment;
}

static inline volatile void *map_remote(sci_remote_segment_t segment, size_t bytes, sci_map_t *ret)
{
	volatile void *memory;
	sci_error_t error;

	memory = SCIMapRemoteSegment(segment, ret, 0, bytes, NULL, 0, &error);
	check(error, "SCIMapRemoteSegment");
	return memory;
}

static inline void disconnect_segment(sci_remote_segment_t segment, sci_map_t map)
{
	sci_error_t error;

	if (map) {
		SCIUnmapSegment(map, 0, &error);
		check(error, "SCIUnmapSegment");
	}
	SCIDisconnectSegment(segment, 0, &error);
	check(error, "SCIDisconnectSegment");
}

#endif
