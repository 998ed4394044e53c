/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs can ask: adapters, nodes by name, addresses; and what nothing here can answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "topology.h"

#define ID 0x71u
#define SECOND 1000000000ull

static uint64_t begun; /* before the cluster came up */

static sci_error_t ask_adapter(unsigned adapter, unsigned port, unsigned subcommand,
			       unsigned *value)
{
	sci_query_adapter_t q = {adapter, port, subcommand, value};
	sci_error_t error;

	SCIQuery(SCI_Q_ADAPTER, &q, 0, &error);
	return error;
}

static unsigned adapter_says(unsigned subcommand)
{
	unsigned value = 0xdeadbeef;

	CHECK_OK(ask_adapter(0, 0, subcommand, &value));
	CHECK(value != 0xdeadbeef);
	return value;
}

static void adapters_that_exist(void)
{
	static const unsigned unknown[] = {
		SCI_Q_ADAPTER_NUMBER_OF_STREAMS,
		SCI_Q_ADAPTER_STREAM_BUFFER_SIZE,
		SCI_Q_ADAPTER_FIRMWARE_OK,
		SCI_Q_ADAPTER_LOCAL_SWITCH_TYPE,
		SCI_Q_ADAPTER_CONNECTED_TO_EXPECTED_SWITCH_PORT,
		SCI_Q_ADAPTER_PHYS_MEM_NODEID,
		SCI_Q_ADAPTER_PHYS_MBX_NODEID,
		SCI_Q_ADAPTER_PHYS_LINK_PORT_NODEID,
		SCI_Q_ADAPTER_SCI_LINK_FREQUENCY,
		SCI_Q_ADAPTER_B_LINK_FREQUENCY,
		SCI_Q_ADAPTER_IO_BUS_FREQUENCY,
	};
	unsigned value = 77;

	CHECK(adapter_says(SCI_Q_ADAPTER_NODEID) == 8);
	CHECK(adapter_says(SCI_Q_ADAPTER_CONFIGURED) == 1);
	CHECK(adapter_says(SCI_Q_ADAPTER_NUMBER_OF_LINKS) == 1);
	CHECK(adapter_says(SCI_Q_ADAPTER_LINK_OPERATIONAL) == 1);
	CHECK(adapter_says(SCI_Q_ADAPTER_LINK_ENABLED) == 1);
	CHECK(adapter_says(SCI_Q_ADAPTER_LINK_CABLE_INSERTED) == 1);
	CHECK(adapter_says(SCI_Q_ADAPTER_HW_LINK_STATUS_IS_OK) == 1);
	CHECK(adapter_says(SCI_Q_ADAPTER_CONNECTED_TO_SWITCH) == 1);
	CHECK(adapter_says(SCI_Q_ADAPTER_LINK_WIDTH) >= 1);
	CHECK(adapter_says(SCI_Q_ADAPTER_LINK_SPEED) >= 1);
	/* Node 8 is the second host at the switch. */
	CHECK(adapter_says(SCI_Q_ADAPTER_SERIAL_NUMBER) == 8 << 8);
	CHECK(adapter_says(SCI_Q_ADAPTER_LINK_PARTNER_PORT_NO) == 1);
	CHECK(adapter_says(SCI_Q_ADAPTER_LOCAL_SWITCH_PORT_NUMBER) == 1);
	CHECK(adapter_says(SCI_Q_ADAPTER_NUMBER) == 0);
	CHECK(adapter_says(SCI_Q_ADAPTER_INSTANCE_NUMBER) == 0);
	CHECK(adapter_says(SCI_Q_ADAPTER_DMA_SIZE_ALIGNMENT) == 1);
	CHECK(adapter_says(SCI_Q_ADAPTER_DMA_OFFSET_ALIGNMENT) == 1);
	CHECK(adapter_says(SCI_Q_ADAPTER_SUGGESTED_MIN_BLOCK_SIZE) == 64);
	CHECK(adapter_says(SCI_Q_ADAPTER_DMA_MTU) == UINT32_MAX);
	CHECK(adapter_says(SCI_Q_ADAPTER_SUGGESTED_MIN_DMA_SIZE) == 256 << 10);
	CHECK(adapter_says(SCI_Q_ADAPTER_ATT_NUMBER_OF_ENTRIES) >=
	      adapter_says(SCI_Q_ADAPTER_ATT_AVAILABLE_ENTRIES));
	CHECK(adapter_says(SCI_Q_ADAPTER_ATT_PAGE_SIZE) % 4096 == 0);
	CHECK(strcmp(SCIGetAdapterTypeString(adapter_says(SCI_Q_ADAPTER_CARD_TYPE)),
		     SCIGetAdapterTypeString(DIS_ADAPTER_TYPE_UNKNOWN)));
	CHECK(strcmp(SCIGetAdapterFamilyString(adapter_says(SCI_Q_ADAPTER_CARD_TYPE)),
		     SCIGetAdapterFamilyString(99)));
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		CHECK_IS(ask_adapter(0, 0, unknown[i], &value), SCI_ERR_NOT_SUPPORTED);
	CHECK(value == 77);
}

static int asks_about_adapters(void *arg)
{
	sci_query_system_t system = {.subcommand = SCI_Q_SYSTEM_CPU_CACHE_LINE_SIZE};
	char text[80], small[5];
	sci_query_string_t string = {text, sizeof(text)};
	sci_desc_t sd = api_begin();
	unsigned value = 77;
	sci_error_t error;

	(void)arg;
	adapters_that_exist();
	CHECK_IS(ask_adapter(1, 0, SCI_Q_ADAPTER_NODEID, &value), SCI_ERR_NO_SUCH_ADAPTERNO);
	CHECK_IS(ask_adapter(DIS_MAX_NSCIS, 0, SCI_Q_ADAPTER_NODEID, &value),
		 SCI_ERR_ILLEGAL_ADAPTERNO);
	CHECK_IS(ask_adapter(0, 1, SCI_Q_ADAPTER_LINK_WIDTH, &value), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_IS(ask_adapter(0, 1, SCI_Q_ADAPTER_LINK_UPTIME, &value), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_IS(ask_adapter(1, 0, SCI_Q_ADAPTER_LINK_DOWNTIME, &value), SCI_ERR_NO_SUCH_ADAPTERNO);
	/* Programs leave the port alone where no link is meant. */
	CHECK_OK(ask_adapter(0, 0xa5a5a5a5, SCI_Q_ADAPTER_NODEID, &value));
	CHECK_IS(ask_adapter(0, 0, 15, &value), SCI_ERR_ILLEGAL_QUERY);
	CHECK_IS(ask_adapter(0, 0, SCI_Q_ADAPTER_NODEID, NULL), SCI_ERR_ILLEGAL_PARAMETER);
	system.data = &value;
	SCIQuery(SCI_Q_SYSTEM, &system, 0, &error);
	CHECK_OK(error);
	CHECK(value == 64);
	for (system.subcommand = SCI_Q_SYSTEM_HOSTBRIDGE;
	     system.subcommand <= SCI_Q_SYSTEM_WRITE_COMBINING_ENABLED; system.subcommand++) {
		SCIQuery(SCI_Q_SYSTEM, &system, 0, &error);
		CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	}
	SCIQuery(SCI_Q_VENDORID, &string, 0, &error);
	CHECK_OK(error);
	CHECK(strstr(text, "SmartIO"));
	SCIQuery(SCI_Q_SISCI_DRIVER_VERSION, &string, 0, &error);
	CHECK_OK(error);
	CHECK(text[0] != '\0');
	/* Cut to the room that there is, and ended. */
	string = (sci_query_string_t){small, sizeof(small)};
	SCIQuery(SCI_Q_API, &string, 0, &error);
	CHECK_OK(error);
	CHECK(strcmp(small, "SISC") == 0);
	SCIQuery(1, &string, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_QUERY);
	SCIQuery(SCI_Q_API, &string, 0x400000, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCIQuery(SCI_Q_API, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	api_end(sd);
	return 0;
}

static int asks_about_dma(void *arg)
{
	static const unsigned modes[] = {0, SCI_FLAG_DMA_ADAPTER, SCI_FLAG_DMA_GLOBAL,
					 SCI_FLAG_DMA_SYSDMA};
	sci_desc_t sd = api_begin();
	sci_dma_capabilities_t can;
	sci_query_dma_t q = {0, 0, NULL};
	unsigned available;
	sci_error_t error;

	(void)arg;
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		q = (sci_query_dma_t){0, SCI_Q_DMA_AVAILABLE, &available};
		available = 77;
		SCIQuery(SCI_Q_DMA, &q, modes[i], &error);
		CHECK_OK(error);
		CHECK(available == 1);
		q = (sci_query_dma_t){0, SCI_Q_DMA_CAPABILITIES, &can};
		memset(&can, 0xff, sizeof(can));
		SCIQuery(SCI_Q_DMA, &q, modes[i], &error);
		CHECK_OK(error);
		CHECK(can.num_channels >= 1 && can.max_vector_length == DIS_DMA_MAX_VECLEN);
		CHECK(can.support_mem2io == 1 && can.support_io2mem == 1 && can.support_io2io == 0);
		CHECK(can.min_align_bytes == 1);
		CHECK(can.max_transfer_size == adapter_says(SCI_Q_ADAPTER_DMA_MTU));
	}
	SCIQuery(SCI_Q_DMA, &q, 0x400000, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	q.subcommand = SCI_Q_ADAPTER_NODEID;
	SCIQuery(SCI_Q_DMA, &q, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_QUERY);
	q.localAdapterNo = 2;
	SCIQuery(SCI_Q_DMA, &q, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_ADAPTERNO);
	q.data = NULL;
	SCIQuery(SCI_Q_DMA, &q, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	api_end(sd);
	return 0;
}

static void dma_is_described(void **state)
{
	cluster_needs(NEEDS_ENGINE);
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, asks_about_dma, NULL)), 0);
}

static void adapters_are_described(void **state)
{
	cluster_needs(NEEDS_LINK);
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, asks_about_adapters, NULL)), 0);
}

static int cable_says(void *arg)
{
	const unsigned *in = arg;
	sci_desc_t sd = api_begin();

	CHECK(adapter_says(SCI_Q_ADAPTER_LINK_CABLE_INSERTED) == *in);
	CHECK(adapter_says(SCI_Q_ADAPTER_LINK_OPERATIONAL) == *in);
	CHECK(adapter_says(SCI_Q_ADAPTER_HW_LINK_STATUS_IS_OK) == *in);
	CHECK(adapter_says(SCI_Q_ADAPTER_LINK_ENABLED) == 1);
	api_end(sd);
	return 0;
}

static void a_cable_is_in_or_out(void **state)
{
	static unsigned in;

	cluster_needs(NEEDS_LINK);
	for (unsigned i = 0; i < 3; i++) {
		in = i != 1;
		if (i)
			assert_int_equal(cluster_link(*state, 8, 0, in), 0);
		assert_int_equal(cluster_wait(cluster_fork(*state, 8, cable_says, &in)), 0);
	}
}

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

struct link_state {
	bool up;
	uint64_t since; /* not before that */
};

/* Until the number has grown, which it does once a second. */
static int link_tells_time(void *arg)
{
	const struct link_state *l = arg;
	unsigned is = l->up ? SCI_Q_ADAPTER_LINK_UPTIME : SCI_Q_ADAPTER_LINK_DOWNTIME;
	unsigned is_not = l->up ? SCI_Q_ADAPTER_LINK_DOWNTIME : SCI_Q_ADAPTER_LINK_UPTIME;
	sci_desc_t sd = api_begin();
	uint64_t heard, asked;
	unsigned first, value;

	CHECK(adapter_says(SCI_Q_ADAPTER_LINK_OPERATIONAL) == l->up);
	heard = clock_ns();
	first = value = adapter_says(is);
	while (value == first) {
		usleep(10000); /* a clock is all that is waited for */
		asked = clock_ns();
		value = adapter_says(is);
		CHECK(value >= first && value >= (asked - heard) / SECOND);
		CHECK(value <= (clock_ns() - l->since) / SECOND);
		CHECK(adapter_says(is_not) == 0);
	}
	api_end(sd);
	return 0;
}

static void a_link_tells_since_when(void **state)
{
	static struct link_state l;

	cluster_needs(NEEDS_LINK);
	for (unsigned i = 0; i < 3; i++) {
		l = (struct link_state){.up = i != 1, .since = i ? clock_ns() : begun};
		if (i)
			assert_int_equal(cluster_link(*state, 8, 0, l.up), 0);
		assert_int_equal(cluster_wait(cluster_fork(*state, 8, link_tells_time, &l)), 0);
	}
}

static int asks_for_names(void *arg)
{
	static const struct {
		char name[40];
		unsigned node;
	} hosts[] = {{"one", 4}, {"two", 8}, {"three", 12}, {"thre", 0}, {"", 0}, {"three ", 0}};
	unsigned adapters[DIS_MAX_NSCIS];
	dis_nodeId_list_t nodes;
	dis_virt_adapter_t type;
	sci_error_t error;

	(void)arg;
	SCIInitialize(0, &error); /* no virtual device is needed */
	CHECK_OK(error);
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		char name[40];

		strcpy(name, hosts[i].name);
		memset(nodes, 0xff, sizeof(nodes));
		memset(adapters, 0xff, sizeof(adapters));
		SCIGetNodeIdByAdapterName(name, &nodes, &type, 0, &error);
		CHECK_OK(error);
		CHECK(nodes[0] == hosts[i].node && nodes[1] == 0);
		CHECK(type == (hosts[i].node ? DIS_ADAPTER_TYPE_NTB : DIS_ADAPTER_TYPE_UNKNOWN));
		nodes[0] = 99;
		SCIGetNodeInfoByAdapterName(name, adapters, &nodes, &type, 0, &error);
		CHECK_OK(error);
		CHECK(nodes[0] == hosts[i].node && nodes[DIS_MAX_NSCIS - 1] == 0);
		CHECK(adapters[0] == 0);
	}
	SCIGetNodeIdByAdapterName(NULL, &nodes, &type, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIGetNodeInfoByAdapterName((char[]){"one"}, NULL, &nodes, &type, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIGetNodeIdByAdapterName((char[]){"one"}, &nodes, NULL, 1, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCITerminate();
	return 0;
}

static void hosts_are_found_by_name(void **state)
{
	cluster_needs(NEEDS_HOSTS);
	assert_int_equal(cluster_wait(cluster_fork(*state, 12, asks_for_names, NULL)), 0);
}

static int exporter(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = NULL;
	sci_query_local_segment_t q = {.subcommand = SCI_Q_LOCAL_SEGMENT_PHYS_ADDR};
	sci_query_map_t of_map = {.subcommand = SCI_Q_MAP_PHYS_ADDR};
	sci_map_t map = NULL;
	sci_error_t error;

	(void)arg;
	SCICreateSegment(sd, &seg, ID, 3 * 4096, NULL, NULL, 0, &error);
	CHECK_OK(error);
	q.segment = seg;
	SCIQuery(SCI_Q_LOCAL_SEGMENT, &q, 0, &error);
	CHECK_OK(error);
	SCIMapLocalSegment(seg, &map, 4096 + 8, 100, NULL, 0, &error);
	CHECK_OK(error);
	of_map.map = map;
	SCIQuery(SCI_Q_MAP, &of_map, 0, &error);
	CHECK_OK(error);
	CHECK(of_map.data == q.data.ioaddr + 4096 + 8);
	CHECK(SCIGetMapPhysAddr(map) == of_map.data);
	q.subcommand = SCI_Q_LOCAL_SEGMENT_VIRTUAL_KERNEL_ADDR;
	SCIQuery(SCI_Q_LOCAL_SEGMENT, &q, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	q.subcommand = SCI_Q_MAP_PHYS_ADDR;
	SCIQuery(SCI_Q_LOCAL_SEGMENT, &q, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_QUERY);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	step_done(0);
	step_await(1);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	CHECK(SCIGetMapPhysAddr(map) == 0);
	api_remove_segment(seg);
	api_end(sd);
	return 0;
}

static int importer(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t seg = NULL;
	sci_query_remote_segment_t q = {.subcommand = SCI_Q_REMOTE_SEGMENT_IOADDR};
	sci_query_map_t of_map = {.subcommand = SCI_Q_MAP_IOADDR};
	sci_map_t map = NULL;
	sci_error_t error;

	step_await(0);
	SCIConnectSegment(sd, &seg, cluster_node(8), ID, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	q.segment = seg;
	SCIQuery(SCI_Q_REMOTE_SEGMENT, &q, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	SCIMapRemoteSegment(seg, &map, 4096 + 8, 100, NULL, 0, &error);
	CHECK_OK(error);
	SCIQuery(SCI_Q_REMOTE_SEGMENT, &q, 0, &error);
	CHECK_OK(error);
	of_map.map = map;
	SCIQuery(SCI_Q_MAP, &of_map, 0, &error);
	CHECK_OK(error);
	CHECK(q.data.ioaddr != 0 && of_map.data == q.data.ioaddr + 4096 + 8);
	CHECK(SCIGetMapPhysAddr(map) == of_map.data);
	of_map.subcommand = SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET;
	SCIQuery(SCI_Q_MAP, &of_map, 0, &error);
	CHECK_OK(error);
	CHECK(of_map.data == (arg != NULL));
	of_map.subcommand = 15;
	SCIQuery(SCI_Q_MAP, &of_map, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_QUERY);
	/* A program that mixes the two up is told so. */
	SCIQuery(SCI_Q_REMOTE_SEGMENT, &of_map, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIQuery(SCI_Q_REMOTE_SEGMENT, &q, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	step_done(1);
	api_end(sd);
	return 0;
}

static void ask_from(void **state, unsigned node, void *local)
{
	pid_t a, b;

	steps_reset();
	a = cluster_fork(*state, 8, exporter, NULL);
	b = cluster_fork(*state, node, importer, local);
	assert_int_equal(cluster_wait(a), 0);
	assert_int_equal(cluster_wait(b), 0);
}

static void addresses_are_of_the_asking_host(void **state)
{
	cluster_needs_module(NEEDS_PHYSICAL);
	if (!cluster_is_machine()) /* which is always its own peer */
		ask_from(state, 4, NULL);
	ask_from(state, 8, state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(adapters_are_described),  API_TEST(dma_is_described),
		API_TEST(a_cable_is_in_or_out),	   API_TEST(a_link_tells_since_when),
		API_TEST(hosts_are_found_by_name), API_TEST(addresses_are_of_the_asking_host),
	};

	begun = clock_ns();
	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
