/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Malicious managers: each takes a drive as any manager does, then sends its clients what it likes:
 * metadata that changes while they read it; replies to no request, about queues that do not exist
 * or are another client's; errors of any number; texts without a terminating zero. And it creates
 * queues at addresses where nothing is mapped. Because it owns the drive the contents of the
 * drive's blocks are not judged any more, and a client's calls may fail in any way. But each call
 * ends in time, no program accesses memory of others, the lender's IOMMU refuses accesses to what
 * is not mapped, and when the manager has gone the drive serves as before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/blocks.h"
#include "work/life.h"
#include "manager.h"
#include "smartio/io.h"
#include "smartio/nvme.h"
#include "run/run.h"
#include "work/drives.h"

#define SEEN_IN 4u /* in one seed of so many: where there is one, blocks are not judged */
#define PAIRS 8u
#define FLOOD 40u

struct state {
	struct smartio_nvme_manager *m;
	const struct sio_topo_host *lender;
	bool lives;
};

static uint32_t number(void)
{
	static const uint32_t likely[] = {0,	1,     2,     3,	4,	  8,  512,
					  4096, 65535, 65536, 1u << 20, 1u << 31, ~0u};

	return sim_pick(3) ? likely[sim_pick(sizeof(likely) / sizeof(likely[0]))]
			   : (uint32_t)sim_pick(0);
}

/* ---- the metadata ---- */
static void send_all(struct state *s)
{
	struct smartio_nvme_manager *m = s->m;

	if (sim_pick(4) == 0)
		m->meta.instance = sim_pick(0) | 1;
	sio_nvme_meta_encode(&m->meta, &m->wire);
	sio_copy_to(m->shared.at + 4, (uint8_t *)&m->wire + 4, sizeof(m->wire) - 4);
	sio_to_fabric_barrier();
	sio_write32(m->shared.at, m->wire.magic);
}

/*
 * Changes a word of the metadata, but not the number of the manager's interrupt: requests would go
 * to another program, which would judge them.
 */
static void lie(struct state *s)
{
#define AT(field) offsetof(struct sio_nvme_meta, field)
	static const size_t at[] = {AT(doorbell_stride),  AT(doorbell_stride), AT(queue_pairs),
				    AT(max_entries),	  AT(max_transfer),    AT(namespaces),
				    AT(generation),	  AT(instance),	       AT(ns[0].id),
				    AT(ns[0].block_size), AT(ns[0].blocks),    AT(ns[1].id)};
	size_t where = 4 * sim_pick(2);
	uint32_t word = number();

	if (sim_pick(16))
		where = at[sim_pick(sizeof(at) / sizeof(at[0]))];
	if (sim_pick(2))
		word = 1u << sim_pick(20);
	sio_write32(s->m->shared.at + where, word);
	sio_to_fabric_barrier();
}

/* ---- replies ---- */
static void fill(struct sio_nvme_rep *rep)
{
	if (rep->h.error) {
		memset(rep->text, 'x', sizeof(rep->text));
	} else if (rep->h.op == SIO_NVME_OP_CREATE) {
		rep->create.qid = sim_pick(4) ? 1 + (uint32_t)sim_pick(PAIRS) : number();
		rep->create.key = sim_pick(0);
	} else {
		memset(rep->data, (int)sim_pick(256), sizeof(rep->data));
	}
}

static size_t make_reply(struct state *s, const struct sio_nvme_req *req)
{
	struct sio_nvme_rep rep = {.h = {.magic = SIO_NVME_REP_MAGIC,
					 .version = SIO_NVME_VERSION,
					 .op = req->op,
					 .instance = req->instance,
					 .sequence = req->sequence}};
	uint8_t *data = s->m->reply;
	size_t len;

	if (sim_pick(3) == 0)
		rep.h.error = sim_pick(2) ? number() : 1 + (uint32_t)sim_pick(200);
	if (sim_pick(8) == 0)
		rep.h.op = 1 + (uint32_t)sim_pick(3);
	if (sim_pick(8) == 0)
		rep.h.sequence += sim_pick(3) - 1;
	fill(&rep);
	sio_nvme_rep_encode(&rep, data);
	len = sio_nvme_rep_size(rep.h.op, rep.h.error);
	if (sim_pick(8) == 0) {
		uint8_t byte = (uint8_t)sim_pick(256);

		data[sim_pick(len)] = byte;
	}
	return sim_pick(8) ? len : 1 + sim_pick(sizeof(s->m->reply));
}

static void reply(struct state *s, const struct sio_nvme_req *req)
{
	uint64_t times = sim_pick(16) ? 1 + sim_pick(2) : sim_pick(FLOOD);
	sci_remote_data_interrupt_t to;
	sci_error_t e;

	SIM_CALL(SCIConnectDataInterrupt,
		 (s->m->d.sd, &to, req->reply_node, s->m->d.adapter, req->reply_interrupt,
		  SCI_INFINITE_TIMEOUT, 0, &e),
		 &e, SCI_ERR_NO_SUCH_INTNO, SCI_ERR_CONNECTION_REFUSED, SCI_ERR_ILLEGAL_PARAMETER);
	if (e != SCI_ERR_OK)
		return;
	for (; e == SCI_ERR_OK && times > 0; times--) {
		size_t len = make_reply(s, req);

		SIM_CALL(SCITriggerDataInterrupt, (to, s->m->reply, (unsigned)len, 0, &e), &e,
			 SCI_ERR_NOT_CONNECTED);
	}
	SIM_CALL(SCIDisconnectDataInterrupt, (to, 0, &e), &e, SCI_ERR_BUSY);
}

static void serve_one(struct state *s)
{
	unsigned len = sizeof(s->m->message);
	struct sio_nvme_req req;
	sci_error_t e;

	SIM_CALL(SCIWaitForDataInterrupt,
		 (s->m->interrupt, s->m->message, &len, 1 + (unsigned)sim_pick(20), 0, &e), &e,
		 SCI_ERR_TIMEOUT, SCI_ERR_CANCELLED);
	s->lives = e == SCI_ERR_OK || e == SCI_ERR_TIMEOUT;
	if (e != SCI_ERR_OK || sio_nvme_req_decode(s->m->message, len, &req))
		return;
	switch (sim_pick(4)) {
	case 0:
		sim_call("sio_nvme_manager_request", 0);
		s->lives = sim_nvme_called(sio_nvme_manager_request(s->m, len), 0) == 0;
		break;
	case 1:
		break;
	default:
		reply(s, &req);
	}
}

/* ---- the drive ---- */
/* Queues where nothing is mapped. The first fetch from there is fatal: the drive needs a reset. */
static void wild_queue(struct state *s)
{
	struct sio_nvme_ctrl *c = &s->m->ctrl;
	uint32_t qid = 1 + (uint32_t)sim_pick(PAIRS), status = 0;
	uint64_t cq = sim_wild_address(s->lender, sim_pick(5)),
		 sq = sim_wild_address(s->lender, sim_pick(5));

	sim_wild.queues++;
	sim_call("sio_nvme_ctrl_create_cq", 0);
	s->lives = sim_nvme_called(sio_nvme_ctrl_create_cq(c, qid, cq, 4, 0, &status), 0) == 0;
	if (!s->lives || status)
		return;
	sim_call("sio_nvme_ctrl_create_sq", 0);
	s->lives = sim_nvme_called(sio_nvme_ctrl_create_sq(c, qid, sq, 4, qid, &status), 0) == 0;
	if (!s->lives || status || (2 * qid + 1) * c->stride > SIO_NVME_PAGE)
		return;
	sio_write32(c->db + 2 * (size_t)qid * c->stride, 1);
	sio_nvme_wake(c->db_map, c->db_sleeps);
}

static void act(struct state *s)
{
	switch (sim_pick(10)) {
	case 0:
	case 1:
		lie(s);
		break;
	case 2:
		send_all(s);
		break;
	case 3:
		sim_call("smartio_nvme_manager_serve", 0);
		s->lives = sim_nvme_called(smartio_nvme_manager_serve(s->m, (uint32_t)sim_pick(50)),
					   0) >= 0;
		break;
	case 4:
		if (sim_pick(8) == 0)
			wild_queue(s);
		break;
	default:
		serve_one(s);
	}
}

/* ---- the program ---- */
static void rule(struct state *s, uint64_t until)
{
	s->lives = true;
	while (s->lives && sim_now() < until && !sim_stopping_programs()) {
		act(s);
		sim_sleep(sim_pick(4) ? sim_pick(100000) : sim_pick(20 * SIM_MS));
	}
}

static void usurper_main(struct sim_proc *p)
{
	uint64_t until = sim_now() + sim_pick(4 * SIM_SECOND);
	unsigned tries = 1 + (unsigned)sim_pick(3), host, device;
	const char *name = sim_pick_drive(&host, &device)->name;
	struct state s = {.lender = &sim_cluster->topology->host[host]};

	/* Without an IOMMU the manager of a drive can reach all of the lender's memory. */
	if (!s.lender->iommu || !sim_initialize())
		return;
	for (; tries > 0 && sim_now() < until && !sim_stopping_programs(); tries--) {
		sim_wild.lies++;
		blocks_distrust(blocks_drive(host, device));
		sim_call("smartio_nvme_manager_open", 0);
		if (sim_nvme_called(smartio_nvme_manager_open(name, NULL, &s.m), 0) == 0) {
			rule(&s, until);
			if (sim_pick(4) == 0)
				break; /* without closing: it leaves the drive as it is */
			sim_call("smartio_nvme_manager_close", 0);
			smartio_nvme_manager_close(s.m);
			sim_called(SCI_ERR_OK, SCI_ERR_OK);
		}
		sim_sleep(sim_pick(500 * SIM_MS));
	}
	sim_exit(p);
}

static bool fits(unsigned host)
{
	uint64_t seed = sim_options.seed ^ 0x75737572706572ull;
	bool named = sim_options.workload && strstr(sim_options.workload, "usurper");

	return sim_has_drives(host) && (named || sim_draw(&seed) % SEEN_IN == 0);
}

const struct sim_workload sim_work_usurper = {
	.name = "usurper", .weight = 2, .fits = fits, .main = usurper_main};
