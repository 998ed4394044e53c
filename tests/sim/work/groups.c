/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of programs in multicast groups (work/groups.h). */
#include "work/groups.h"
#include "dis/dis_types.h"

sci_local_segment_t sim_join(sci_desc_t sd, unsigned g, size_t bytes)
{
	sci_local_segment_t member;
	sci_error_t e;

	SIM_CALL(SCICreateSegment, (sd, &member, g, bytes, NULL, NULL, SCI_FLAG_BROADCAST, &e), &e,
		 SCI_ERR_SEGMENTID_USED);
	return e == SCI_ERR_OK ? member : NULL;
}

bool sim_show_member(sci_local_segment_t member)
{
	sci_error_t e;

	SIM_CALL(SCIPrepareSegment, (member, 0, SCI_FLAG_BROADCAST, &e), &e);
	if (e == SCI_ERR_OK)
		SIM_CALL(SCISetSegmentAvailable, (member, 0, 0, &e), &e);
	return e == SCI_ERR_OK;
}

volatile uint32_t *sim_map_member(sci_local_segment_t member, size_t bytes, sci_map_t *ret_map)
{
	volatile uint32_t *at;
	sci_error_t e;

	sim_call("SCIMapLocalSegment", 0);
	at = SCIMapLocalSegment(member, ret_map, 0, bytes, NULL, 0, &e);
	if (sim_called(e, SCI_ERR_OK) != SCI_ERR_OK)
		*ret_map = NULL;
	return at;
}

void sim_leave(sci_local_segment_t member, sci_map_t map)
{
	sci_error_t e;

	if (map)
		SIM_CALL(SCIUnmapSegment, (map, 0, &e), &e);
	SIM_END(SCIRemoveSegment, (member, 0, &e), &e);
}

sci_remote_segment_t sim_reach(sci_desc_t sd, unsigned g, size_t bytes, unsigned flags,
			       sci_map_t *ret_map, volatile uint32_t **ret_at)
{
	sci_remote_segment_t all;
	sci_error_t e;

	SIM_CALL(SCIConnectSegment,
		 (sd, &all, DIS_BROADCAST_NODEID_GROUP_ALL, g, 0, NULL, NULL, SCI_INFINITE_TIMEOUT,
		  SCI_FLAG_BROADCAST, &e),
		 &e, SCI_ERR_NO_SUCH_SEGMENT);
	if (e != SCI_ERR_OK)
		return NULL;
	sim_call("SCIMapRemoteSegment", 0);
	*ret_at = SCIMapRemoteSegment(all, ret_map, 0, bytes, NULL, SCI_FLAG_BROADCAST | flags, &e);
	if (sim_called(e, SCI_ERR_NOT_CONNECTED, SCI_ERR_OK) != SCI_ERR_OK)
		*ret_map = NULL;
	return all;
}

void sim_drop_group(sci_remote_segment_t all, sci_map_t map)
{
	sci_error_t e;

	if (map)
		SIM_CALL(SCIUnmapSegment, (map, 0, &e), &e);
	SIM_END(SCIDisconnectSegment, (all, 0, &e), &e);
}
