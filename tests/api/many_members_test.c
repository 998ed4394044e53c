/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The paper's largest cluster (7.4.2): 60 hosts under seven switches, a drive with one of them. One
 * Identify, asked for by another, is in the memory of all 59 others by one operation; how often its
 * packets crossed a link is counted and held against the routes, and against 59 operations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "core/route.h"
#include "topofile/topofile.h"
#include "admin.h"
#include "member.h"

#define PAGE 4096u
#define GROUP 7u
#define IDENTIFY 0x06
#define SUBS 6u
#define HOSTS_OF_SUB 10u
#define MEMBERS (SUBS * HOSTS_OF_SUB - 1)
#define LENDER 4u
#define DRIVER 100u /* at another switch than the lender */

enum { JOINED, READY, GO, WRITTEN, SEEN, DONE, OVER }; /* steps */

struct fixture {
	char *text;
	struct cluster *cluster;
	struct sio_topology *topo;
	struct sio_graph *graph;
	struct sio_routes *routes;
};

static uint8_t *written; /* shared: what the drive writes */

/* ---- programs ---- */

static void has_all(const struct member *m)
{
	for (unsigned i = 0; i < PAGE; i++)
		CHECK(get8(m->memory + i) == written[i]);
}

static int listens(void *arg)
{
	sci_desc_t sd = api_begin();
	struct member m;

	(void)arg;
	member_join(&m, sd, GROUP, PAGE, 0);
	step_done(JOINED);
	step_await(WRITTEN);
	has_all(&m);
	step_done(SEEN);
	step_await(OVER);
	member_leave(&m);
	api_end(sd);
	return 0;
}

static void all(unsigned step)
{
	for (unsigned i = 0; i < MEMBERS - 1; i++)
		step_done(step);
}

static int drives(void *arg)
{
	sci_remote_segment_t group = NULL;
	sci_ioaddr_t at = 0;
	sci_error_t error;
	struct member m;
	struct admin a;

	(void)arg;
	admin_start(&a);
	member_join(&m, a.sd, GROUP, PAGE, 0);
	for (unsigned i = 0; i < MEMBERS - 1; i++)
		step_await(JOINED);
	CHECK_OK(group_reach(a.sd, GROUP, &group));
	SCIMapRemoteSegmentForDevice(group, a.device, &at, 0, PAGE, 0, &error);
	CHECK_OK(error);
	admin_command(&a, IDENTIFY, 0, a.data_at, 1);
	admin_await(&a);
	for (unsigned i = 0; i < PAGE; i++)
		written[i] = get8(a.data + i);
	CHECK(written[4] >= ' ' && written[4] <= '~'); /* the serial number is text */
	step_done(READY);
	step_await(GO);
	admin_command(&a, IDENTIFY, 0, at, 1);
	admin_await(&a);
	has_all(&m);
	all(WRITTEN);
	for (unsigned i = 0; i < MEMBERS - 1; i++)
		step_await(SEEN);
	step_done(DONE);
	step_await(OVER);
	SCIUnmapRemoteSegmentForDevice(group, a.device, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(group, 0, &error);
	CHECK_OK(error);
	member_leave(&m);
	admin_stop(&a);
	return 0;
}

/* ---- what crosses ---- */

static unsigned long long tlps(const struct fixture *f, unsigned host)
{
	unsigned long long n;

	assert_int_equal(
		cluster_adapter_counter(f->cluster, f->topo->host[host].node, 0, "wr_tlp", &n), 0);
	return n;
}

/*
 * Links outside of the hosts from the drive to all members: of each member alone, added up; and of
 * all ways together, each link once.
 */
static void ways(const struct fixture *f, unsigned *ret_apart, unsigned *ret_together)
{
	bool *used = calloc(f->graph->n_links, sizeof(*used));
	const unsigned drive = sio_graph_device(f->graph, 0, 0);

	assert_non_null(used);
	*ret_apart = *ret_together = 0;
	for (unsigned i = 1; i <= MEMBERS; i++) {
		unsigned link[SIO_ROUTE_LINKS], n, to = sio_graph_host(f->graph, i);
		struct sio_route route;

		assert_int_equal(sio_routes_find(f->routes, drive, to, &route), 0);
		n = sio_routes_links(f->routes, drive, to, &route, link);
		for (unsigned k = 0; k < n; k++) {
			const unsigned *end = f->graph->link[link[k]].end;

			if (f->graph->node[end[0]].kind != SIO_GRAPH_SWITCH &&
			    f->graph->node[end[1]].kind != SIO_GRAPH_SWITCH)
				continue;
			++*ret_apart;
			*ret_together += !used[link[k]];
			used[link[k]] = true;
		}
	}
	free(used);
}

static void one_operation_reaches_fifty_nine(void **state)
{
	const struct fixture *f = *state;
	const unsigned packets = PAGE / f->topo->max_payload;
	unsigned long long before[MEMBERS + 1];
	unsigned apart, together, crossed = 0;
	pid_t pid[MEMBERS + 1];

	cluster_needs(NEEDS_GROUPS);
	steps_reset();
	for (unsigned i = 1; i <= MEMBERS; i++)
		pid[i] = cluster_fork(f->cluster, f->topo->host[i].node,
				      f->topo->host[i].node == DRIVER ? drives : listens, NULL);
	step_await(READY);
	for (unsigned i = 0; i <= MEMBERS; i++)
		before[i] = tlps(f, i);
	step_done(GO);
	step_await(DONE);
	for (unsigned i = 0; i <= MEMBERS; i++) {
		unsigned long long passed = tlps(f, i) - before[i];

		/* The completion, too, where the drive and its driver are. */
		if (i == 0 || f->topo->host[i].node == DRIVER)
			assert_int_equal(passed, packets + 1);
		else
			assert_int_equal(passed, packets);
		crossed++;
	}
	/* Between switches nothing counts; the routes tell: six links, each once. */
	ways(f, &apart, &together);
	assert_int_equal(apart, 218);
	assert_int_equal(together, 66);
	assert_int_equal(together - crossed, SUBS);
	for (unsigned i = 0; i < MEMBERS; i++)
		step_done(OVER);
	for (unsigned i = 1; i <= MEMBERS; i++)
		assert_int_equal(cluster_wait(pid[i]), 0);
	assert_int_equal(cluster_audit(f->cluster), 0);
}

/* ---- the cluster ---- */

/* As examples/topologies/sixty-hosts.yaml, each member with memory of its own. */
static char *describe(void)
{
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	fprintf(out, "cluster: sixty\nmulticast: exact\nswitches:\n"
		     "  - { name: top, ports: 24, lanes: 4 }\n");
	for (unsigned i = 1; i <= SUBS; i++)
		fprintf(out, "  - { name: sub%u, ports: 24, lanes: 4 }\n", i);
	fprintf(out, "links:\n");
	for (unsigned i = 1; i <= SUBS; i++)
		fprintf(out, "  - { from: sub%u, to: top, width: 16 }\n", i);
	fprintf(out, "hosts:\n");
	for (unsigned i = 0; i < SUBS * HOSTS_OF_SUB; i++)
		fprintf(out, "  h%u: { ram: 16M, iommu: %s, adapters: [{ to: sub%u }]%s }\n", i + 1,
			i % 2 ? "off" : "on", i / HOSTS_OF_SUB + 1,
			i ? "" : ", devices: { nvme0: { type: nvme, size: 16M } }");
	fclose(out);
	return text;
}

static int up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct sio_err err;

	if (!f)
		return -1;
	*state = f;
	f->text = describe();
	if (sio_topofile_parse("sixty.yaml", f->text, strlen(f->text), &f->topo, &err) < 0 ||
	    sio_graph_new(f->topo, &f->graph) < 0 || sio_routes_new(f->graph, &f->routes) < 0)
		return -1;
	f->cluster = cluster_up(f->text);
	return f->cluster ? 0 : -1;
}

static int down(void **state)
{
	struct fixture *f = *state;
	int rc = f->cluster ? cluster_down(f->cluster) : -1;

	sio_routes_free(f->routes);
	sio_graph_free(f->graph);
	sio_topology_free(f->topo);
	free(f->text);
	free(f);
	return rc;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_operation_reaches_fifty_nine, up, down),
	};

	written = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (written == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
