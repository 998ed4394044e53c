/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory between hosts: segments, connections, maps, their states and errors, callbacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/cluster.h"
#include "../lib/mapped.h"
#include "smartio/ext.h"
#include "topology.h"

#define PAGE 4096u

static sci_local_segment_t export_segment(sci_desc_t sd, unsigned id, size_t size)
{
	sci_local_segment_t seg = NULL;
	sci_error_t error;

	SCICreateSegment(sd, &seg, id, size, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	return seg;
}

static int exporter(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = export_segment(sd, 77, 3 * PAGE + 5);
	sci_error_t error;
	sci_map_t map;
	char *p;

	(void)arg;
	CHECK(SCIGetLocalSegmentId(seg) == 77);
	CHECK(SCIGetLocalSegmentSize(seg) == 4 * PAGE);
	p = SCIMapLocalSegment(seg, &map, 0, 4 * PAGE, NULL, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < 4 * PAGE; i++)
		CHECK(get8(p + i) == 0);
	put_text(p + 100, "from the exporter");
	step_done(0);
	step_await(1);
	CHECK(is_text(p + 3 * PAGE, "from the importer"));

	SCIRemoveSegment(seg, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY); /* mapped here */
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCISetSegmentUnavailable(seg, 0, 0, &error);
	CHECK_OK(error);
	step_done(2);
	step_await(3);
	api_remove_segment(seg);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	api_end(sd);
	return 0;
}

static int importer(void *arg)
{
	const unsigned *exporter_node = arg;
	sci_remote_segment_t seg = NULL, second = NULL;
	sci_desc_t sd = api_begin();
	volatile char *p, *q;
	sci_map_t map, part;
	sci_error_t error;

	step_await(0);
	SCIConnectSegment(sd, &seg, *exporter_node, 78, 0, NULL, NULL, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_SEGMENT);
	CHECK(seg == NULL);
	SCIConnectSegment(sd, &seg, *exporter_node, 77, 0, NULL, NULL, SCI_INFINITE_TIMEOUT, 0,
			  &error);
	CHECK_OK(error);
	CHECK(SCIGetRemoteSegmentSize(seg) == 4 * PAGE);
	CHECK(SCIGetRemoteSegmentId(seg) == 77);
	CHECK(SCIGetRemoteSegmentNodeId(seg) == *exporter_node);
	p = SCIMapRemoteSegment(seg, &map, 0, 4 * PAGE, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(p == SCIGetMapPointer(map));
	CHECK(is_text(p + 100, "from the exporter"));
	/* An offset that is no multiple of a page, a size that is none. */
	q = SCIMapRemoteSegment(seg, &part, 3 * PAGE - 3, 30, NULL, 0, &error);
	CHECK_OK(error);
	put_text(q + 3, "from the importer");
	SCIFlush(NULL, 0);
	CHECK(is_text(p + 3 * PAGE, "from the importer"));
	step_done(1);

	SCIDisconnectSegment(seg, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIClose(sd, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	step_await(2);
	/* What is unavailable takes nobody new, and keeps who is there. */
	SCIConnectSegment(sd, &second, *exporter_node, 77, 0, NULL, NULL, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_SEGMENT);
	CHECK(is_text(p + 100, "from the exporter"));
	SCIUnmapSegment(part, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	CHECK(SCIGetMapPointer(map) == NULL);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	step_done(3);
	api_end(sd);
	return 0;
}

static void two_hosts_share_memory(void **state)
{
	unsigned nodes[] = {8, 4};

	/* Another host, and the same one. */
	for (unsigned i = 0; i < 2; i++) {
		unsigned node = cluster_node(nodes[i]);
		pid_t a, b;

		steps_reset();
		a = cluster_fork(*state, node, exporter, NULL);
		b = cluster_fork(*state, 4, importer, &node);
		assert_int_equal(cluster_wait(b), 0);
		assert_int_equal(cluster_wait(a), 0);
	}
}

static int wrong_uses(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = export_segment(sd, 5, PAGE), other = NULL, fresh;
	sci_remote_segment_t remote = NULL;
	sci_error_t error;
	sci_map_t map = NULL;
	unsigned node = 0;

	(void)arg;
	SCICreateSegment(sd, &other, 5, PAGE, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENTID_USED);
	SCICreateSegment(sd, &other, 6, 0, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_SIZE_ALIGNMENT);
	SCICreateSegment(sd, &other, 6, (size_t)1 << 40, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_NOSPC);
	SCICreateSegment(sd, &other, 6, PAGE, NULL, NULL, 0x40000000, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCICreateSegment(sd, &other, 6, PAGE, NULL, NULL, SCI_FLAG_PHYSICAL, &error);
	CHECK_IS(error, SCI_ERR_FLAG_NOT_IMPLEMENTED);
	SCICreateSegment(sd, &other, 6, PAGE, NULL, NULL, SCI_FLAG_USE_CALLBACK, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCICreateSegment((sci_desc_t)seg, &other, 6, PAGE, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCICreateSegment((sci_desc_t)&error, &other, 6, PAGE, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(other == NULL);
	SCIPrepareSegment(seg, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_ADAPTERNO);
	SCIPrepareSegment(seg, 77, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_ADAPTERNO);
	SCIMapLocalSegment(seg, &map, 0, PAGE + 1, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	SCIMapLocalSegment(seg, &map, SIZE_MAX, 2, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	SCIMapLocalSegment(seg, &map, 0, 0, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_SIZE_ALIGNMENT);
	SCIMapLocalSegment(seg, &map, 0, 1, &error, SCI_FLAG_FIXED_MAP_ADDR, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_ADDRESS);
	CHECK(map == NULL);
	SCIConnectSegment(sd, &remote, 9, 5, 0, NULL, NULL, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_NODEID);
	SCIConnectSegment(sd, &remote, 0, 5, 0, NULL, NULL, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_NODEID);
	SCIConnectSegment(sd, &remote, SCI_LOCAL_HOST, 5, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(remote, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCICacheSync(NULL, &error, sizeof(error), SCI_FLAG_CACHE_FLUSH | SCI_FLAG_CACHE_INVALIDATE,
		     &error);
	CHECK_OK(error);
	SCICacheSync(NULL, &error, sizeof(error), 1, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	CHECK(!SCIProbeNode(sd, 0, 200, 0, &error));
	CHECK_IS(error, SCI_ERR_NO_SUCH_NODEID);
	CHECK(SCIProbeNode(sd, 0, cluster_node(8), 0, &error) == 1);
	SCIGetLocalNodeId(0, &node, 0, &error);
	CHECK_OK(error);
	CHECK(node == 4);
	SCIGetLocalNodeId(1, &node, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_ADAPTERNO);
	for (unsigned i = 0; i < 2; i++) {
		SCISetSegmentUnavailable(seg, 0, 0, &error);
		CHECK_OK(error);
	}
	SCICreateSegment(sd, &fresh, 78, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCISetSegmentUnavailable(fresh, 0, 0, &error); /* never prepared */
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	CHECK(smartio_last_error()[0]);
	SCIRemoveSegment(fresh, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	CHECK(!smartio_last_error()[0]);
	CHECK(SCIGetLocalSegmentSize(seg) == 0);
	api_end(sd);
	SCIOpen(&sd, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
	return 0;
}

static void wrong_uses_are_refused(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, wrong_uses, NULL)), 0);
}

static int states_of_a_segment(void *arg)
{
	sci_local_segment_t a = NULL, b = NULL, secret = NULL;
	sci_desc_t sd = api_begin();
	char text[80];
	sci_query_string_t string = {text, sizeof(text)};
	sci_query_local_segment_t where = {.subcommand = SCI_Q_LOCAL_SEGMENT_PHYS_ADDR};
	unsigned value = 0;
	unsigned short guarded[2] = {0, 0x5aa5};
	sci_query_adapter_t adapter = {.subcommand = SCI_Q_ADAPTER_NODEID, .data = &value};
	sci_error_t error;

	(void)arg;
	SCICreateSegment(sd, &a, 42, 32, NULL, NULL, SCI_FLAG_AUTO_ID, &error);
	CHECK_OK(error);
	SCICreateSegment(sd, &b, 42, 32, NULL, NULL, SCI_FLAG_AUTO_ID, &error);
	CHECK_OK(error);
	CHECK(SCIGetLocalSegmentId(a) != SCIGetLocalSegmentId(b));
	SCISetSegmentAvailable(a, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENT_NOT_PREPARED);
	SCICreateSegment(sd, &secret, 9, 32, NULL, NULL, SCI_FLAG_PRIVATE, &error);
	CHECK_OK(error);
	SCIPrepareSegment(secret, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(secret, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);

	where.segment = a;
	SCIQuery(SCI_Q_LOCAL_SEGMENT, &where, 0, &error);
	CHECK_OK(error);
	CHECK(where.data.ioaddr != 0 || cluster_is_vfio()); /* which tells no physical one */
	SCIQuery(SCI_Q_API, &string, 0, &error);
	CHECK_OK(error);
	CHECK(strlen(text) > 0);
	SCIQuery(SCI_Q_ADAPTER, &adapter, 0, &error);
	CHECK_OK(error);
	CHECK(value == 4);
	adapter.subcommand = SCI_Q_ADAPTER_BDF;
	adapter.data = guarded;
	SCIQuery(SCI_Q_ADAPTER, &adapter, 0, &error);
	CHECK_OK(error);
	CHECK(guarded[1] == 0x5aa5);
	adapter.subcommand = SCI_Q_ADAPTER_LINK_OPERATIONAL;
	adapter.data = &value;
	SCIQuery(SCI_Q_ADAPTER, &adapter, 0, &error);
	CHECK_OK(error);
	/* One machine's adapter leads nowhere. */
	CHECK(value == (!cluster_is_machine() || getenv("SMARTIO_TEST_PAIR")));
	adapter.subcommand = SCI_Q_MAP_IOADDR;
	SCIQuery(SCI_Q_ADAPTER, &adapter, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_QUERY);
	SCIQuery(1, &adapter, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_QUERY);

	SCIRemoveSegment(secret, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(b, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(a, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void segments_have_states_and_properties(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, states_of_a_segment, NULL)), 0);
}

/* ---- callbacks ---- */

struct heard {
	sci_desc_t sd;
	unsigned connects, disconnects, other;
};

/* Any call is allowed here, also one that asks smartiod. */
static sci_callback_action_t on_local(void *arg, sci_local_segment_t segment,
				      sci_segment_cb_reason_t reason, unsigned node,
				      unsigned adapter, sci_error_t status)
{
	struct heard *h = arg;
	sci_local_segment_t inner = NULL;
	sci_error_t error;

	CHECK(node == 4 && adapter == 0);
	CHECK_OK(status);
	CHECK(SCIGetLocalSegmentId(segment) == 300);
	SCICreateSegment(h->sd, &inner, 0, 1, NULL, NULL, SCI_FLAG_AUTO_ID, &error);
	CHECK_OK(error);
	SCIRemoveSegment(inner, 0, &error);
	CHECK_OK(error);
	if (reason == SCI_CB_CONNECT)
		h->connects++;
	else if (reason == SCI_CB_DISCONNECT)
		h->disconnects++;
	else
		h->other++;
	step_done(reason == SCI_CB_CONNECT ? 1 : 2);
	return SCI_CALLBACK_CONTINUE;
}

static int callback_exporter(void *arg)
{
	struct heard h = {.sd = api_begin()};
	sci_local_segment_t seg = NULL, ignored = NULL;
	sci_error_t error;

	(void)arg;
	/* A callback without the flag is ignored. */
	SCICreateSegment(h.sd, &ignored, 301, 1, on_local, &h, 0, &error);
	CHECK_OK(error);
	SCICreateSegment(h.sd, &seg, 300, 1, on_local, &h, SCI_FLAG_USE_CALLBACK, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	step_done(0);
	step_await(3);
	/* The importer is told, leaves, and then the segment can go. */
	SCISetSegmentUnavailable(seg, 0, SCI_FLAG_NOTIFY, &error);
	CHECK_OK(error);
	step_await(4);
	api_remove_segment(seg);
	CHECK(h.connects == 2 && h.disconnects >= 1 && h.other == 0);
	SCIRemoveSegment(ignored, 0, &error);
	CHECK_OK(error);
	api_end(h.sd);
	return 0;
}

/* Leaves from inside its own callback. */
static sci_callback_action_t on_remote(void *arg, sci_remote_segment_t segment,
				       sci_segment_cb_reason_t reason, sci_error_t status)
{
	sci_error_t error;

	(void)arg;
	CHECK_OK(status);
	CHECK(reason == SCI_CB_DISCONNECT);
	SCIDisconnectSegment(segment, 0, &error);
	CHECK_OK(error);
	step_done(5);
	return SCI_CALLBACK_CANCEL;
}

static int callback_importer(void *arg)
{
	sci_remote_segment_t seg = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	(void)arg;
	step_await(0);
	SCIConnectSegment(sd, &seg, cluster_node(8), 300, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	step_await(1);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	step_await(2);
	SCIConnectSegment(sd, &seg, cluster_node(8), 300, 0, on_remote, NULL, 0,
			  SCI_FLAG_USE_CALLBACK, &error);
	CHECK_OK(error);
	step_await(1);
	step_done(3);
	step_await(5);
	step_done(4);
	api_end(sd);
	return 0;
}

static void callbacks_tell_who_comes_and_goes(void **state)
{
	pid_t a, b;

	steps_reset();
	a = cluster_fork(*state, 8, callback_exporter, NULL);
	b = cluster_fork(*state, 4, callback_importer, NULL);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/* ---- processes ---- */

static int leaves_without_a_word(void *arg)
{
	sci_desc_t sd = api_begin();

	(void)arg;
	export_segment(sd, 500, 1 << 20);
	_exit(0);
}

static void exit_frees_fixed_ids(void **state)
{
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(cluster_wait(cluster_fork(*state, 4, leaves_without_a_word, NULL)),
				 0);
}

static int fork_child(sci_desc_t sd)
{
	sci_error_t error;

	SCIClose(sd, 0, &error);
	if (error != SCI_ERR_NOT_INITIALIZED)
		return 1;
	sd = api_begin();
	export_segment(sd, 601, 1);
	return 0;
}

static int forks(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = export_segment(sd, 600, PAGE);
	const uint32_t process = smartio_process();
	sci_error_t error;
	pid_t pid = fork();

	(void)arg;
	if (pid == 0)
		_exit(smartio_process() != process ? fork_child(sd) : 1);
	CHECK(smartio_process() == process);
	CHECK(cluster_wait(pid) == 0);
	/* The connection has not suffered. */
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_forked_child_starts_afresh(void **state)
{
	cluster_needs_kernel(NEEDS_FORK);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, forks, NULL)), 0);
}

static int terminates_in_a_mess(void *arg)
{
	sci_local_segment_t seg;
	sci_desc_t sd;
	sci_error_t error;
	sci_map_t map;
	uint8_t *p;

	(void)arg;
	for (unsigned i = 0; i < 3; i++) {
		sd = api_begin();
		seg = export_segment(sd, 700, PAGE);
		p = SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
		CHECK_OK(error);
		SCITerminate();
		CHECK(get8(p + 17) == 0xff);
		put8(p + 17, 3);
		SCIRemoveSegment(seg, 0, &error);
		CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
	}
	/* Counted. */
	SCIInitialize(0, &error);
	CHECK_OK(error);
	SCIInitialize(0, &error);
	CHECK_OK(error);
	SCITerminate();
	SCIOpen(&sd, 0, &error);
	CHECK_OK(error);
	SCITerminate();
	SCITerminate();
	return 0;
}

static void terminate_ends_what_is_open(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, terminates_in_a_mess, NULL)), 0);
}

static bool terminates;

/* From inside a callback, too; the next SCIInitialize() is a fresh start. */
static sci_callback_action_t terminate(void *arg, sci_local_segment_t segment,
				       sci_segment_cb_reason_t reason, unsigned node,
				       unsigned adapter, sci_error_t status)
{
	sci_error_t error;

	(void)arg;
	(void)segment;
	(void)node;
	(void)adapter;
	(void)status;
	CHECK(reason == SCI_CB_CONNECT);
	__atomic_store_n(&terminates, true, __ATOMIC_SEQ_CST);
	SCITerminate();
	SCIInitialize(0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	step_done(0);
	return SCI_CALLBACK_CONTINUE;
}

static int terminates_in_a_callback(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 3; i++) {
		sci_remote_segment_t remote = NULL;
		sci_local_segment_t seg = NULL;
		sci_desc_t sd = api_begin();
		sci_error_t error;

		terminates = false;
		SCICreateSegment(sd, &seg, 800, PAGE, terminate, NULL, SCI_FLAG_USE_CALLBACK,
				 &error);
		CHECK_OK(error);
		SCIPrepareSegment(seg, 0, 0, &error);
		CHECK_OK(error);
		SCISetSegmentAvailable(seg, 0, 0, &error);
		CHECK_OK(error);
		SCIConnectSegment(sd, &remote, SCI_LOCAL_HOST, 800, 0, NULL, NULL, 0, 0, &error);
		/* The callback may end the library before the answer is here; nothing else may. */
		CHECK(error == SCI_ERR_OK || __atomic_load_n(&terminates, __ATOMIC_SEQ_CST));
		step_await(0);
		SCIRemoveSegment(seg, 0, &error);
		CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
	}
	return 0;
}

static void terminate_is_allowed_in_a_callback(void **state)
{
	steps_reset();
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, terminates_in_a_callback, NULL)), 0);
}

static int no_daemon(void *arg)
{
	char path[200];
	sci_error_t error;
	sci_desc_t sd;

	(void)arg;
	unsetenv("SMARTIO_SOCKET");
	SCIOpen(&sd, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
	SCIInitialize(0, &error);
	CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
	CHECK(strstr(smartio_last_error(), "SMARTIO_SOCKET is not set"));
	setenv("SMARTIO_SOCKET", "/nowhere/node.4", 1);
	SCIInitialize(0, &error);
	CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	setenv("SMARTIO_SOCKET", path, 1);
	SCIInitialize(0, &error);
	CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
	CHECK(strstr(smartio_last_error(), "107"));
	SCITerminate();
	return 0;
}

static void without_a_daemon_there_is_an_error(void **state)
{
	cluster_needs_kernel(NEEDS_DAEMON);
	cluster_needs("programs that find no daemon by themselves");
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, no_daemon, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(two_hosts_share_memory),
		API_TEST(wrong_uses_are_refused),
		API_TEST(segments_have_states_and_properties),
		API_TEST(callbacks_tell_who_comes_and_goes),
		API_TEST(exit_frees_fixed_ids),
		API_TEST(a_forked_child_starts_afresh),
		API_TEST(terminate_ends_what_is_open),
		API_TEST(terminate_is_allowed_in_a_callback),
		API_TEST(without_a_daemon_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
