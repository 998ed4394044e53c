/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs as members of multicast groups, and as those that write to one. */
#ifndef TESTS_API_MEMBER_H
#define TESTS_API_MEMBER_H

#include <stddef.h>
#include <stdint.h>

#include "../lib/cluster.h"

struct member {
	sci_local_segment_t seg;
	sci_map_t map;
	volatile uint8_t *memory;
};

/* @flags: of SCICreateSegment(), besides SCI_FLAG_BROADCAST. */
static inline void member_join(struct member *m, sci_desc_t sd, unsigned group, size_t bytes,
			       unsigned flags)
{
	sci_error_t error;

	SCICreateSegment(sd, &m->seg, group, bytes, NULL, NULL, SCI_FLAG_BROADCAST | flags, &error);
	CHECK_OK(error);
	SCIPrepareSegment(m->seg, 0, SCI_FLAG_BROADCAST, &error);
	CHECK_OK(error);
	m->memory = SCIMapLocalSegment(m->seg, &m->map, 0, bytes, NULL, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(m->seg, 0, 0, &error);
	CHECK_OK(error);
}

static inline void member_leave(struct member *m)
{
	sci_error_t error;

	SCIUnmapSegment(m->map, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(m->seg, 0, &error);
	CHECK_OK(error);
}

/* Connect to all members. Return: the error of that. */
static inline sci_error_t group_reach(sci_desc_t sd, unsigned group, sci_remote_segment_t *ret)
{
	sci_error_t error;

	SCIConnectSegment(sd, ret, DIS_BROADCAST_NODEID_GROUP_ALL, group, 0, NULL, NULL,
			  SCI_INFINITE_TIMEOUT, SCI_FLAG_BROADCAST, &error);
	return error;
}

#endif
