/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * Cluster-wide constants and types that SISCI programs take from the DIS headers. Values marked
 * "own" have no public source.
 */
#ifndef DIS_TYPES_H
#define DIS_TYPES_H

/** The node id that stands for all members of a multicast group. */
#define DIS_BROADCAST_NODEID_GROUP_ALL 252
/** Adapters of one host at most; adapter numbers are 0 to DIS_MAX_NSCIS - 1 (own). */
#define DIS_MAX_NSCIS 4
/** Elements of one DMA vector at most (own). */
#define DIS_DMA_MAX_VECLEN 256

/** Node ids, ended by 0 where there are fewer. */
typedef unsigned int dis_nodeId_list_t[DIS_MAX_NSCIS];

/** What a name look-up found; two names of one type, as clients of either age expect. */
typedef unsigned int dis_virt_adapter_t;
typedef dis_virt_adapter_t dis_adapter_type_t;
/** Their values, and those of SCI_Q_ADAPTER_CARD_TYPE (own). */
#define DIS_ADAPTER_TYPE_UNKNOWN 0
#define DIS_ADAPTER_TYPE_NTB 1

#endif
