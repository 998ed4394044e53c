/* SPDX-License-Identifier: BSD-2-Clause */
/* The cluster of the API's tests: three hosts, nodes 4, 8, 12; the drive is with node 4. */
#ifndef TESTS_API_TOPOLOGY_H
#define TESTS_API_TOPOLOGY_H

#include "../lib/cluster.h"

#define API_TOPOLOGY                                                                               \
	"cluster: api\n"                                                                           \
	"switches: [sw0]\n"                                                                        \
	"hosts:\n"                                                                                 \
	"  one: {ram: 64M, iommu: on, devices: {nvme0: {type: nvme, size: 16M}}}\n"                \
	"  two: {ram: 64M, iommu: on}\n"                                                           \
	"  three: {ram: 64M, iommu: off}\n"

static inline int topology_up(void **state)
{
	*state = cluster_up(API_TOPOLOGY);
	return *state ? 0 : -1;
}

/* After each test: what it used was given back. */
static inline int topology_audit(void **state)
{
	return cluster_audit(*state);
}

#define API_TEST(name) cmocka_unit_test_teardown(name, topology_audit)

static inline int topology_down(void **state)
{
	return *state ? cluster_down(*state) : 0;
}

#endif
