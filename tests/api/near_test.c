/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices and memory by hops: what programs are told on every host, against the computed routes
 * (core/route.h), with links that go out; and what the hosts' daemons make of chassis: the way of a
 * borrow, and where access hints put memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/route.h"
#include "topofile/topofile.h"
#include "admin.h"

#define PAGE 4096u
#define HOSTS 4u
#define MOST 16u

/*
 * The lender's second adapter is in the box, deeper than its RAM is far from the borrower's: the
 * shortest way there leads through it.
 */
static const char text[] =
	"cluster: near\n"
	"switches: [left, mid, right]\n"
	"links: [{ from: left, to: mid }, { from: mid, to: right }, { from: left, to: right }]\n"
	"hosts:\n"
	"  lender:\n"
	"    ram: 64M\n"
	"    chassis: { a: {}, b: { in: a }, c: { in: b }, d: { in: c }, box: { in: d }, shelf: { in: box } }\n"
	"    adapters: [{ to: left }, { to: left, in: box }]\n"
	"    devices:\n"
	"      nvme0: { type: nvme, size: 16M, in: box }\n"
	"      mem0: { type: memory, size: 64K, in: box }\n"
	"      mem1: { type: memory, size: 64K, in: shelf }\n"
	"      mem2: { type: memory, size: 64K }\n"
	"  guarded:\n"
	"    ram: 64M\n"
	"    iommu: on\n"
	"    chassis: { box: {} }\n"
	"    adapters: [{ to: right, in: box }]\n"
	"    devices: { mem3: { type: memory, size: 64K, in: box }, nvme1: { type: nvme, size: 16M, in: box } }\n"
	"  borrower: { ram: 64M, adapters: [{ to: left }, { to: right }] }\n"
	"  far: { ram: 64M, adapters: [{ to: mid }] }\n";

struct fixture {
	struct cluster *cluster;
	struct sio_topology *topo;
	struct sio_graph *graph;
	struct sio_routes *routes;
};

static struct fixture F;

static int up(void **state)
{
	struct sio_err err;

	if (sio_topofile_parse("near.yaml", text, strlen(text), &F.topo, &err) < 0 ||
	    sio_graph_new(F.topo, &F.graph) < 0 || sio_routes_new(F.graph, &F.routes) < 0)
		return -1;
	F.cluster = cluster_up(text);
	*state = &F;
	return F.cluster ? 0 : -1;
}

static int down(void **state)
{
	int rc = F.cluster ? cluster_down(F.cluster) : -1;

	(void)state;
	sio_routes_free(F.routes);
	sio_graph_free(F.graph);
	sio_topology_free(F.topo);
	return rc;
}

static int audit(void **state)
{
	(void)state;
	return cluster_audit(F.cluster);
}

/* ---- what programs are told ---- */

struct item {
	unsigned id, end; /* end: number of the graph's node */
	struct sio_route route;
};

/* All that @from reaches of @all, in order. Return: how many. */
static unsigned expect(unsigned from, struct item *all, unsigned n)
{
	unsigned reached = 0;

	for (unsigned i = 0; i < n; i++) {
		struct item x = all[i];
		unsigned at = reached;

		if (sio_routes_find(F.routes, from, x.end, &x.route) < 0)
			continue;
		for (;
		     at > 0 && (all[at - 1].route.hops > x.route.hops ||
				(all[at - 1].route.hops == x.route.hops && all[at - 1].id > x.id));
		     at--)
			all[at] = all[at - 1];
		all[at] = x;
		reached++;
	}
	return reached;
}

static void same(const struct smartio_near *near, const struct item *want)
{
	CHECK(near->id == want->id);
	CHECK(near->hops == want->route.hops);
	CHECK(near->adapter == want->route.adapter); /* SIO_GRAPH_NONE is SMARTIO_NO_ADAPTER */
	CHECK(near->peer_adapter == want->route.peer_adapter);
}

static unsigned all_devices(struct item *ret, const char *type)
{
	unsigned n = 0;

	for (unsigned i = 0; i < F.topo->n_hosts; i++)
		for (unsigned k = 0; k < F.topo->host[i].n_devices; k++)
			if (!type || !strcmp(F.topo->host[i].device[k].type, type))
				ret[n++] = (struct item){.id = F.topo->host[i].device[k].fdid,
							 .end = sio_graph_device(F.graph, i, k)};
	return n;
}

static unsigned all_hosts(struct item *ret)
{
	for (unsigned i = 0; i < F.topo->n_hosts; i++)
		ret[i] = (struct item){.id = F.topo->host[i].node,
				       .end = sio_graph_host(F.graph, i)};
	return F.topo->n_hosts;
}

/* The daemon that knows the ways from there can be asked. */
static bool is_heard(unsigned own, unsigned host)
{
	struct sio_route route;

	return sio_routes_find(F.routes, sio_graph_host(F.graph, own),
			       sio_graph_host(F.graph, host), &route) == 0;
}

/* @arg: the number of the host that it runs on. */
static int told(void *arg)
{
	struct smartio_near near[MOST];
	struct item want[MOST], from[MOST], to[MOST];
	sci_error_t error;
	unsigned n, all, own = *(const unsigned *)arg;
	sci_desc_t sd;

	sd = api_begin();
	for (unsigned i = 0; i < F.topo->n_hosts; i++) {
		if (!is_heard(own, i)) {
			CHECK(smartio_devices_near(F.topo->host[i].node, 0, near, MOST, &error) ==
			      0);
			CHECK_IS(error, SCI_ERR_NO_LINK_ACCESS);
			continue;
		}
		n = expect(sio_graph_host(F.graph, i), want, all_devices(want, NULL));
		CHECK(smartio_devices_near(F.topo->host[i].node, 0, near, MOST, &error) == n);
		CHECK_OK(error);
		for (unsigned k = 0; k < n; k++)
			same(&near[k], &want[k]);
	}
	n = expect(sio_graph_host(F.graph, own), want, all_devices(want, "nvme"));
	CHECK(smartio_devices_near(0, 0x010802, near, 1, &error) == n);
	CHECK_OK(error);
	same(&near[0], &want[0]);
	all = all_devices(from, NULL);
	for (unsigned i = 0; i < all; i++) {
		if (!is_heard(own, F.graph->node[from[i].end].host))
			continue;
		n = expect(from[i].end, want, all_hosts(want));
		CHECK(smartio_memory_near(from[i].id, near, MOST, &error) == n);
		CHECK_OK(error);
		for (unsigned k = 0; k < n; k++)
			same(&near[k], &want[k]);
		all_devices(to, NULL);
		for (unsigned k = 0; k < all; k++) {
			bool joined;

			if (!is_heard(own, F.graph->node[to[k].end].host))
				continue; /* not there, as far as this host knows */
			joined = expect(from[i].end, &to[k], 1);
			smartio_device_distance(from[i].id, to[k].id, &near[0], &error);
			CHECK_IS(error, i == k	  ? SCI_ERR_ILLEGAL_PARAMETER
					: !joined ? SCI_ERR_NO_LINK_ACCESS
						  : SCI_ERR_OK);
			if (i != k && joined)
				same(&near[0], &to[k]);
		}
	}
	api_end(sd);
	return 0;
}

static void on_all_hosts(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		assert_int_equal(cluster_wait(cluster_fork(F.cluster, 4 * (i + 1), told, &i)), 0);
}

static void hops_are_those_of_the_route(void **state)
{
	bool out[SIO_ROUTE_LINKS] = {false};

	(void)state;
	cluster_needs(NEEDS_HOSTS);
	on_all_hosts();
	/* From left to right by way of mid: no path is down, and all that takes it is longer. */
	assert_int_equal(cluster_trunk(F.cluster, "left", "right", false), 0);
	out[2] = true;
	sio_routes_set(F.routes, out);
	on_all_hosts();
	assert_int_equal(cluster_trunk(F.cluster, "mid", "right", false), 0);
	out[1] = true;
	sio_routes_set(F.routes, out);
	on_all_hosts();
	assert_int_equal(cluster_trunk(F.cluster, "left", "right", true), 0);
	assert_int_equal(cluster_trunk(F.cluster, "mid", "right", true), 0);
	out[1] = out[2] = false;
	sio_routes_set(F.routes, out);
	for (unsigned i = 0; i < HOSTS; i++)
		assert_int_equal(cluster_reaches(F.cluster, 4 * (i + 1)), 0);
	on_all_hosts();
}

static int asks_wrongly(void *arg)
{
	struct smartio_near near[1];
	sci_error_t error;
	unsigned fdid;
	sci_desc_t sd;

	(void)arg;
	CHECK(smartio_devices_near(4, 0, near, 1, &error) == 0);
	CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
	sd = api_begin();
	smartio_find_device("nvme0", &fdid, &error);
	CHECK_OK(error);
	CHECK(smartio_devices_near(400, 0, near, 1, &error) == 0);
	CHECK_IS(error, SCI_ERR_NO_SUCH_NODEID);
	CHECK(smartio_devices_near(0, 0, NULL, 0, &error) == 6);
	CHECK_OK(error);
	CHECK(smartio_devices_near(0, 0, NULL, 1, &error) == 0);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(smartio_devices_near(0, 0x123456, near, 1, &error) == 0);
	CHECK_OK(error);
	CHECK(smartio_memory_near(77, near, 1, &error) == 0);
	CHECK_IS(error, SCI_ERR_NO_SUCH_FDID);
	smartio_device_distance(fdid, 0, near, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_FDID);
	smartio_device_distance(fdid, fdid, NULL, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	api_end(sd);
	return 0;
}

static void wrong_questions_are_refused(void **state)
{
	(void)state;
	cluster_needs(NEEDS_HOSTS);
	assert_int_equal(cluster_wait(cluster_fork(F.cluster, 12, asks_wrongly, NULL)), 0);
}

/* ---- what daemons make of it ---- */

struct placing {
	const char *device;
	unsigned hints, flags;
	bool here;
};

static int places(void *arg)
{
	const struct placing *p = arg;
	sci_smartio_device_t device;
	sci_remote_segment_t seg;
	sci_query_map_t q = {.subcommand = SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET};
	sci_desc_t sd = api_begin();
	sci_error_t error;
	unsigned fdid;

	smartio_find_device(p->device, &fdid, &error);
	CHECK_OK(error);
	SCIBorrowDevice(sd, &device, fdid, 0, &error);
	CHECK_OK(error);
	SCICreateDeviceSegment(device, 1, PAGE, SCI_MEMTYPE_PRIVATE, p->hints, p->flags, &error);
	CHECK_OK(error);
	SCIConnectDeviceSegment(device, &seg, 1, SCI_MEMTYPE_PRIVATE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegment(seg, &q.map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	SCIQuery(SCI_Q_MAP, &q, 0, &error);
	CHECK_OK(error);
	CHECK(!!q.data == p->here);
	SCIUnmapSegment(q.map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

#define SQ (SCI_MEMACCESS_DEVICE_READ | SCI_MEMACCESS_HOST_WRITE)
#define CQ (SCI_MEMACCESS_DEVICE_WRITE | SCI_MEMACCESS_HOST_READ)

static void hints_know_of_chassis(void **state)
{
	static const struct placing table[] = {
		{"mem2", SQ, 0, false}, /* a link from its host's memory */
		{"mem2", CQ, 0, true},
		{"mem2", 0, 0, true},
		{"nvme0", SQ, 0, true}, /* six, and five from the borrower's */
		{"nvme0", CQ, 0, true},
		{"nvme0", SQ, SCI_FLAG_DEVICE_SIDE_ONLY, false},
		{"nvme1", SQ, 0, false}, /* two, and the IOMMU sends all by the root */
		{"nvme1", SQ, SCI_FLAG_LOCAL_ONLY, true},
	};

	(void)state;
	cluster_needs(NEEDS_MEMORY);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct placing p = table[i];

		assert_int_equal(cluster_wait(cluster_fork(F.cluster, 12, places, &p)), 0);
	}
}

static int drives(void *arg)
{
	sci_smartio_device_t beside;
	sci_remote_segment_t bar;
	struct admin a;
	sci_ioaddr_t at = 0;
	sci_error_t error;
	unsigned fdid;

	admin_start(&a);
	smartio_find_device(arg, &fdid, &error);
	CHECK_OK(error);
	SCIBorrowDevice(a.sd, &beside, fdid, 0, &error);
	CHECK_OK(error);
	SCIConnectDeviceSegment(beside, &bar, 2, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegmentForDevice(bar, a.device, &at, 0, PAGE, 0, &error);
	CHECK_OK(error);
	step_done(0);
	step_await(1);
	admin_command(&a, 0x06, 0, at, 1);
	admin_await(&a);
	step_done(2);
	step_await(3);
	SCIUnmapRemoteSegmentForDevice(bar, a.device, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(bar, 0, &error);
	CHECK_OK(error);
	SCIReturnDevice(beside, 0, &error);
	CHECK_OK(error);
	admin_stop(&a);
	return 0;
}

/* What was written over the links of chassis @i of these, then of the two adapters. */
static const char *const box[] = {"a", "b", "c", "d", "box", "shelf"};
#define COUNTS 8u

static void count(unsigned long long n[COUNTS])
{
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(cluster_chassis_counter(F.cluster, 4, box[i], "wr_bytes", &n[i]),
				 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(cluster_adapter_counter(F.cluster, 4, i, "wr_bytes", &n[6 + i]),
				 0);
}

/*
 * One Identify of the drive in the box, whose queues are in the borrower's memory: the completion
 * leaves by the adapter in the box, the data go no higher than where the target hangs.
 */
static void what_is_below_one_switch_stays_there(void **state)
{
	static const struct {
		const char *target;
		unsigned long long want[COUNTS];
	} table[] = {
		{"mem0", {0, 0, 0, 0, 0, 0, 0, 16}},
		{"mem1", {0, 0, 0, 0, 0, PAGE, 0, 16}},
		{"mem2", {PAGE, PAGE, PAGE, PAGE, PAGE, 0, 0, 16}},
		{"mem3", {0, 0, 0, 0, 0, 0, 0, PAGE + 16}},
	};

	(void)state;
	cluster_needs(NEEDS_MEMORY);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		unsigned long long before[COUNTS], after[COUNTS];
		char name[8];
		pid_t pid;

		snprintf(name, sizeof(name), "%s", table[i].target);
		steps_reset();
		pid = cluster_fork(F.cluster, 12, drives, name);
		step_await(0);
		count(before);
		step_done(1);
		step_await(2);
		count(after);
		step_done(3);
		assert_int_equal(cluster_wait(pid), 0);
		for (unsigned k = 0; k < COUNTS; k++)
			if (after[k] - before[k] != table[i].want[k])
				fail_msg("%s: count %u grew by %llu, %llu is right",
					 table[i].target, k, after[k] - before[k],
					 table[i].want[k]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(hops_are_those_of_the_route, audit),
		cmocka_unit_test_teardown(wrong_questions_are_refused, audit),
		cmocka_unit_test_teardown(hints_know_of_chassis, audit),
		cmocka_unit_test_teardown(what_is_below_one_switch_stays_there, audit),
	};

	return cmocka_run_group_tests(tests, up, down);
}
