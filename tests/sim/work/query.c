/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that make queries: which nodes can be reached, which devices there are, and what
 * adapters, segments and mappings are like. The answers are compared with the topology and with
 * each other. Between queries the programs copy by functions that few other workloads use
 * (SCIMemWrite(), SCITransferBlock(), single DMA transfers); in memory that nobody else writes to
 * every byte is compared.
 */
#include <string.h>

#include "dis/dis_types.h"
#include "work/life.h"
#include "work/places.h"
#include "smartio/io.h"
#include "../../lib/topology_path.h"
#include "run/run.h"

#define NOBODY 250u   /* a node id that no cluster has */
#define STRIDE 256u   /* bytes from one marked word of a segment to the next */
#define FREE_FROM 64u /* from there on no program looks into such a piece when others copy it */
#define MOST 64u

static const struct sio_topo_host *here(void)
{
	return &sim_cluster->topology->host[sim_self()->host];
}

/* Has this seed nothing that makes calls fail or messages late: no such fault, and no movers? */
static bool nothing_breaks(void)
{
	if (sim_has_pullers())
		return false;
	for (unsigned i = 0; sim_faults[i]; i++)
		if (sim_has_fault(sim_faults[i]->name) &&
		    !sim_list_has("doze,flood,busy,tables", sim_faults[i]->name))
			return false;
	return true;
}

/* ---- nodes and devices ---- */
static void probe(struct sim_places *p)
{
	unsigned host = (unsigned)sim_pick(sim_hosts()),
		 adapter = (unsigned)sim_pick(here()->n_adapters);
	/* A malicious daemon may give any error, so it is not probed. */
	uint32_t node = sim_pick(8) && host != sim_liar() ? sim_node(host) : NOBODY;
	struct sio_path path;
	bool leads = node == here()->node ||
		     topology_path(sim_cluster->topology, here()->node, adapter, node, &path) == 0;
	sci_error_t e;
	int there;

	sim_call("SCIProbeNode", 0);
	there = SCIProbeNode(p->sd, adapter, node, 0, &e);
	sim_called(e, SCI_ERR_OK);
	if (there != (e == SCI_ERR_OK) || (there && !leads) ||
	    (e == SCI_ERR_NO_SUCH_NODEID && leads) || (leads && nothing_breaks() && !there))
		sim_fail("states", "%s: adapter %u leads%s to node %u; it is probed: %d, %s",
			 sim_self()->name, adapter, leads ? "" : " not", node, there,
			 SCIGetErrorString(e));
}

/* The device with that id, and its node; NULL: there is none. */
static const struct sio_topo_device *device_of(unsigned fdid, uint32_t *ret_node)
{
	for (unsigned h = 0; h < sim_hosts(); h++)
		for (unsigned i = 0; i < sim_cluster->topology->host[h].n_devices; i++)
			if (sim_cluster->topology->host[h].device[i].fdid == fdid) {
				*ret_node = sim_node(h);
				return &sim_cluster->topology->host[h].device[i];
			}
	return NULL;
}

static bool lists(const unsigned *fdids, size_t n, unsigned fdid)
{
	for (size_t i = 0; i < n; i++)
		if (fdids[i] == fdid)
			return true;
	return false;
}

static void list_devices(struct sim_places *p)
{
	sci_smartio_device_info_t filter = {.nodeid = sim_node((unsigned)sim_pick(sim_hosts()))};
	bool filtered = sim_pick(3) == 0;
	size_t most = sim_pick(4) ? MOST : sim_pick(3), n;
	unsigned fdids[MOST];
	uint32_t node = 0;
	sci_error_t e;

	sim_call("SCIGetDeviceList", 0);
	n = SCIGetDeviceList(p->sd, fdids, most, filtered ? &filter : NULL, 0, &e);
	if (sim_called(e, SCI_ERR_OK) != SCI_ERR_OK)
		return;
	for (size_t i = 0; i < n; i++)
		if (n > most || !device_of(fdids[i], &node) ||
		    (filtered && node != filter.nodeid) || (i > 0 && fdids[i] <= fdids[i - 1]))
			sim_fail("states",
				 "%s: of %zu devices at most %zu are listed, number %zu is %#x",
				 sim_self()->name, most, n, i, fdids[i]);
	for (unsigned i = 0; i < here()->n_devices && most == MOST && !filtered && nothing_breaks();
	     i++)
		if (!lists(fdids, n, here()->device[i].fdid))
			sim_fail("states", "%s: its own host's %s is not listed", sim_self()->name,
				 here()->device[i].name);
}

static void ask_device(void)
{
	bool some = sim_has_drives(0) && sim_pick(8) > 0;
	unsigned host = 0;
	const struct sio_topo_device *d = some ? sim_pick_drive(&host, NULL) : NULL;
	sci_smartio_device_info_t info;
	sci_smartio_query_device_t q = {
		.fdid = d ? d->fdid : 0x7fff0000, .subcommand = SCI_Q_DEVICE_INFO, .data = &info};
	sci_error_t e;

	SIM_CALL(SCIQuery, (SCI_Q_DEVICE, &q, 0, &e), &e, SCI_ERR_NO_SUCH_FDID);
	if ((e == SCI_ERR_OK && (!d || info.fdid != d->fdid || info.nodeid != sim_node(host) ||
				 strcmp(info.user_name, d->name) != 0)) ||
	    (e != SCI_ERR_OK && d && host == sim_self()->host && nothing_breaks()))
		sim_fail("states",
			 "%s: of device %#x of node %u is told: %s, %#llx of node %u, %.60s",
			 sim_self()->name, q.fdid, sim_node(host), SCIGetErrorString(e),
			 e ? 0 : info.fdid, e ? 0 : info.nodeid, e ? "" : info.user_name);
}

/* ---- adapters ---- */
/* Subcommands; the last two have no answer. */
static const unsigned about[] = {
	SCI_Q_ADAPTER_NODEID,
	SCI_Q_ADAPTER_NUMBER,
	SCI_Q_ADAPTER_CONFIGURED,
	SCI_Q_ADAPTER_CONNECTED_TO_SWITCH,
	SCI_Q_ADAPTER_ATT_PAGE_SIZE,
	SCI_Q_ADAPTER_ATT_NUMBER_OF_ENTRIES,
	SCI_Q_ADAPTER_ATT_AVAILABLE_ENTRIES,
	SCI_Q_ADAPTER_LINK_OPERATIONAL,
	SCI_Q_ADAPTER_LINK_CABLE_INSERTED,
	SCI_Q_ADAPTER_LINK_UPTIME,
	SCI_Q_ADAPTER_LINK_DOWNTIME,
	SCI_Q_ADAPTER_CARD_TYPE,
	SCI_Q_ADAPTER_DMA_MTU,
	SCI_Q_ADAPTER_LINK_WIDTH,
	SCI_Q_ADAPTER_LINK_SPEED,
	SCI_Q_ADAPTER_BDF,
	SCI_Q_ADAPTER_SERIAL_NUMBER,
	SCI_Q_ADAPTER_FIRMWARE_OK,
	SCI_Q_ADAPTER_NODEID + 0xff,
};

static bool is_right(unsigned what, unsigned adapter, unsigned value)
{
	const struct sio_topo_adapter *a = &here()->adapter[adapter];

	switch (what) {
	case SCI_Q_ADAPTER_NODEID:
		return value == here()->node;
	case SCI_Q_ADAPTER_NUMBER:
		return value == adapter;
	case SCI_Q_ADAPTER_CONFIGURED:
		return value == 1;
	case SCI_Q_ADAPTER_CONNECTED_TO_SWITCH:
		return value == (a->attach == SIO_ATTACH_SWITCH);
	case SCI_Q_ADAPTER_ATT_PAGE_SIZE:
		return value == a->window_size / a->lut_entries;
	case SCI_Q_ADAPTER_ATT_NUMBER_OF_ENTRIES:
		return value == a->lut_entries;
	case SCI_Q_ADAPTER_ATT_AVAILABLE_ENTRIES:
		return value <= a->lut_entries;
	case SCI_Q_ADAPTER_LINK_OPERATIONAL:
	case SCI_Q_ADAPTER_LINK_CABLE_INSERTED:
		return value == 1 || (value == 0 && !nothing_breaks());
	case SCI_Q_ADAPTER_LINK_DOWNTIME:
		return value == 0 || !nothing_breaks();
	case SCI_Q_ADAPTER_CARD_TYPE:
		return value == DIS_ADAPTER_TYPE_NTB;
	case SCI_Q_ADAPTER_LINK_WIDTH:
		return value == a->link_width || (value == 0 && !nothing_breaks());
	case SCI_Q_ADAPTER_LINK_SPEED:
		return value == a->link_generation || (value == 0 && !nothing_breaks());
	case SCI_Q_ADAPTER_BDF:
		return (value & 0xffff) == a->bdf;
	case SCI_Q_ADAPTER_SERIAL_NUMBER:
		return value == (here()->node << 8 | adapter);
	case SCI_Q_ADAPTER_FIRMWARE_OK:
	case SCI_Q_ADAPTER_NODEID + 0xff:
		return false; /* any answer is wrong */
	default:
		return true;
	}
}

static void ask_adapter(void)
{
	unsigned adapter = (unsigned)sim_pick(here()->n_adapters), value = 0;
	unsigned what = about[sim_pick(sizeof(about) / sizeof(about[0]))];
	sci_query_adapter_t q = {.localAdapterNo = adapter, .subcommand = what, .data = &value};
	sci_error_t e;

	SIM_CALL(SCIQuery, (SCI_Q_ADAPTER, &q, 0, &e), &e,
		 what == SCI_Q_ADAPTER_FIRMWARE_OK     ? SCI_ERR_NOT_SUPPORTED
		 : what == SCI_Q_ADAPTER_NODEID + 0xff ? SCI_ERR_ILLEGAL_QUERY
						       : SCI_ERR_OK);
	if (e == SCI_ERR_OK && !is_right(what, adapter, value))
		sim_fail("states", "%s: query %#x of adapter %u gives %u", sim_self()->name, what,
			 adapter, value);
}

static void ask_library(void)
{
	static const unsigned commands[] = {SCI_Q_API, SCI_Q_VENDORID, SCI_Q_SISCI_DRIVER_VERSION};
	char text[64];
	sci_query_string_t q = {.str = text, .length = 1 + (unsigned)sim_pick(sizeof(text))};
	unsigned line = 0, available = 2;
	sci_query_system_t system = {.subcommand = SCI_Q_SYSTEM_CPU_CACHE_LINE_SIZE, .data = &line};
	sci_query_dma_t dma = {.subcommand = SCI_Q_DMA_AVAILABLE, .data = &available};
	sci_error_t e;

	memset(text, 'x', sizeof(text));
	SIM_CALL(SCIQuery, (commands[sim_pick(3)], &q, 0, &e), &e);
	if (e == SCI_ERR_OK && (strnlen(text, q.length) == q.length || (q.length > 1 && !*text)))
		sim_fail("states", "%s: a text of %u bytes has no end", sim_self()->name, q.length);
	SIM_CALL(SCIQuery, (SCI_Q_SYSTEM, &system, 0, &e), &e);
	if (e == SCI_ERR_OK && line != 64)
		sim_fail("states", "%s: a cache line of %u bytes", sim_self()->name, line);
	SIM_CALL(SCIQuery, (SCI_Q_DMA, &dma, 0, &e), &e);
	if (e == SCI_ERR_OK && available > 1)
		sim_fail("states", "%s: DMA is available: %u", sim_self()->name, available);
}

/* ---- segments and maps ---- */
/* True: the answer differs from @right. False: it is the same, or there is none. */
static bool map_is_not(sci_map_t map, unsigned what, uint64_t right)
{
	sci_query_map_t q = {.map = map, .subcommand = what};
	sci_error_t e;

	SIM_CALL(SCIQuery, (SCI_Q_MAP, &q, 0, &e), &e, SCI_ERR_NOT_CONNECTED);
	return e == SCI_ERR_OK && q.data != right;
}

static void ask_own(struct sim_places *p)
{
	sci_query_local_segment_t q = {.segment = p->own,
				       .subcommand = SCI_Q_LOCAL_SEGMENT_PHYS_ADDR};
	sci_error_t e;

	if (!p->own)
		return;
	SIM_CALL(SCIQuery, (SCI_Q_LOCAL_SEGMENT, &q, 0, &e), &e);
	if (!p->own_map || e != SCI_ERR_OK)
		return;
	if (q.data.ioaddr == 0 || map_is_not(p->own_map, SCI_Q_MAP_PHYS_ADDR, q.data.ioaddr) ||
	    map_is_not(p->own_map, SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET, 1))
		sim_fail("states", "%s: its segment lies at %#llx, its map elsewhere",
			 sim_self()->name, (unsigned long long)q.data.ioaddr);
}

static void ask_remote(struct sim_places *p)
{
	sci_query_remote_segment_t q = {.segment = p->remote,
					.subcommand = SCI_Q_REMOTE_SEGMENT_IOADDR};
	uint64_t map;
	sci_error_t e;

	if (!p->remote)
		return;
	SIM_CALL(SCIQuery, (SCI_Q_REMOTE_SEGMENT, &q, 0, &e), &e, SCI_ERR_NOT_CONNECTED,
		 SCI_ERR_ILLEGAL_OPERATION);
	if (e == SCI_ERR_OK && !p->remote_map)
		sim_fail("states", "%s: a segment that is not mapped has an address",
			 sim_self()->name);
	if (!p->remote_map)
		return;
	map = SCIGetMapPhysAddr(p->remote_map);
	if (e == SCI_ERR_OK && map && map != q.data.ioaddr)
		sim_fail("states", "%s: another's segment lies at %#llx, its map at %#llx",
			 sim_self()->name, (unsigned long long)q.data.ioaddr,
			 (unsigned long long)map);
	if (map_is_not(p->remote_map, SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET,
		       SCIGetRemoteSegmentNodeId(p->remote) == here()->node))
		sim_fail("states", "%s: a map is told to be of another host", sim_self()->name);
}

static bool is_node(unsigned node)
{
	for (unsigned h = 0; h < sim_hosts(); h++)
		if (sim_node(h) == node)
			return true;
	return false;
}

/* Takes an event of the program's own segment, as a connection, its end, or its loss. */
static void hear(struct sim_places *p)
{
	unsigned node = 0, adapter = 0;
	sci_segment_cb_reason_t why;
	sci_error_t e;

	if (!p->own)
		return;
	sim_call("SCIWaitForLocalSegmentEvent", 0);
	why = SCIWaitForLocalSegmentEvent(p->own, &node, &adapter, (unsigned)sim_pick(5), 0, &e);
	sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_OVERFLOW, SCI_ERR_OK);
	if (e == SCI_ERR_OK && (why < SCI_CB_CONNECT || why > SCI_CB_LOST ||
				adapter >= here()->n_adapters || !is_node(node)))
		sim_fail("callbacks", "%s: event %u of node %u through adapter %u",
			 sim_self()->name, why, node, adapter);
}

/* ---- copies ---- */
static unsigned free_place(void)
{
	return (unsigned)sim_pick(SIM_PLACE_BYTES / 2 / STRIDE) * STRIDE + FREE_FROM;
}

static void compare(struct sim_places *p, unsigned at, const uint8_t *bytes, size_t n,
		    const char *how)
{
	uint8_t there[128];

	sio_copy_from(there, (volatile uint8_t *)p->at + at, n);
	/* The memory of a host that has just crashed may have any contents. */
	for (size_t i = 0; i < n && sim_host_alive(sim_self()->host); i++)
		if (there[i] != bytes[i])
			sim_fail("memory", "%s: %s left %#x at %#zx, not %#x", sim_self()->name,
				 how, there[i], at + i, bytes[i]);
}

/* Copies within parts of the program's own segment that no other program writes to. */
static void copy_exactly(struct sim_places *p)
{
	unsigned from = free_place() + (unsigned)sim_pick(64), to = free_place();
	uint8_t bytes[128];
	size_t n = 1 + sim_pick(sizeof(bytes));
	sci_error_t e;

	if (!p->own_map)
		return;
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)sim_pick(256);
	SIM_CALL(SCIMemWrite, (bytes, (volatile uint8_t *)p->at + from, n, 0, &e), &e);
	if (e != SCI_ERR_OK)
		return;
	SIM_CALL(SCICacheSync,
		 (p->own_map, NULL, 0, SCI_FLAG_CACHE_FLUSH | SCI_FLAG_CACHE_INVALIDATE, &e), &e);
	compare(p, from, bytes, n, "SCIMemWrite()");
	if (from / STRIDE == to / STRIDE)
		return;
	SIM_CALL(SCITransferBlock, (p->own_map, from, p->own_map, to, n, 0, &e), &e);
	if (e == SCI_ERR_OK)
		compare(p, to, bytes, n, "SCITransferBlock()");
}

static void copy_away(struct sim_places *p)
{
	uint32_t words[STRIDE / 4] = {p->mark | here()->node};
	unsigned from = sim_pick_from(), to = sim_pick_to();
	sci_error_t e;

	if (!p->remote_map)
		return;
	if (sim_pick(2))
		SIM_CALL(SCIMemWrite,
			 (words, (volatile uint8_t *)p->remote_at + to, sizeof(words), 0, &e), &e,
			 SCI_ERR_NOT_CONNECTED);
	else if (p->own_map)
		SIM_CALL(SCITransferBlock, (p->own_map, from, p->remote_map, to, STRIDE, 0, &e), &e,
			 SCI_ERR_NOT_CONNECTED, SCI_ERR_TRANSFER_FAILED);
	sim_look_remote(p);
}

static void transfer(struct sim_places *p)
{
	bool reads = sim_pick(2), waits = sim_pick(2);
	unsigned from = sim_pick_from(), to = sim_pick_to();
	unsigned flags = (reads ? SCI_FLAG_DMA_READ : 0) | (waits ? SCI_FLAG_DMA_WAIT : 0);
	sci_dma_queue_state_t before;
	sci_error_t e;

	if (!p->own || !p->remote)
		return;
	if (!p->queue) {
		SIM_CALL(SCICreateDMAQueue, (p->sd, &p->queue, 0, 1, 0, &e), &e,
			 SCI_ERR_DMA_NOT_AVAILABLE);
		if (e != SCI_ERR_OK)
			p->queue = NULL;
	}
	if (!p->queue)
		return;
	before = SCIDMAQueueState(p->queue);
	SIM_CALL(SCIStartDmaTransfer,
		 (p->queue, p->own, p->remote, reads ? to : from, STRIDE, reads ? from : to, NULL,
		  NULL, flags, &e),
		 &e, SCI_ERR_ILLEGAL_OPERATION, SCI_ERR_SEGMENT_NOT_PREPARED,
		 SCI_ERR_SEGMENT_NOT_CONNECTED, SCI_ERR_NOT_CONNECTED, SCI_ERR_TRANSFER_FAILED,
		 SCI_ERR_CANCELLED);
	sim_queue_judge("SCIStartDmaTransfer", before, e);
	if (waits && e == SCI_ERR_OK && SCIDMAQueueState(p->queue) != SCI_DMAQUEUE_DONE)
		sim_fail("states", "%s: a transfer is over, and its queue is not done",
			 sim_self()->name);
	sim_look_own(p);
}

/* ---- the program ---- */
static void ask(struct sim_places *p)
{
	switch (sim_pick(8)) {
	case 0:
		probe(p);
		break;
	case 1:
		list_devices(p);
		break;
	case 2:
		ask_device();
		break;
	case 3:
		ask_library();
		break;
	case 4:
		ask_own(p);
		break;
	case 5:
		ask_remote(p);
		break;
	default:
		ask_adapter();
	}
}

static void act(void *state)
{
	struct sim_places *p = state;
	uint64_t what = sim_pick(14);

	if (sim_place_by(p, what))
		return;
	switch (what) {
	case 3:
		if (sim_pick(4) == 0)
			sim_drop_own(p);
		break;
	case 4:
		if (sim_pick(4) == 0)
			sim_drop_remote(p);
		break;
	case 5:
		hear(p);
		break;
	case 6:
		copy_exactly(p);
		break;
	case 7:
		copy_away(p);
		break;
	case 8:
		transfer(p);
		break;
	default:
		ask(p);
	}
}

static void tear_down(void *state)
{
	struct sim_places *p = state;

	sim_drop_queue(p);
	sim_drop_remote(p);
	sim_drop_own(p);
}

static void query_main(struct sim_proc *p)
{
	struct sim_places s = {.first_id = 0x60, .ids = 3, .mark = 0x90000000u};
	static const struct sim_life life = {.acts = 200, .act = act, .tear_down = tear_down};

	sim_live_and_exit(p, &life, &s, &s.sd);
}

const struct sim_workload sim_work_query = {
	.name = "query", .weight = 2, .fits = sim_adapters, .main = query_main};
