/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests that the clients "asker" send to the manager of their drive, between their reads and
 * writes: Identify, whose data must stay what they were when the drive was opened, and the deletion
 * of queue pairs that are not theirs or with a wrong key, which must be refused. Sometimes they
 * sleep instead, with commands in flight, as programs do that have other work. So managers always
 * have requests to serve, and clients often read the managers' metadata.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "work/life.h"
#include "smartio/nvme.h"
#include "run/run.h"
#include "work/drives.h"

#define SERIAL_AT 4u
#define MODEL_AT 24u
#define THINKS (2 * SIM_SECOND)

static void identify(struct smartio_nvme *n)
{
	uint8_t *data = malloc(SIO_NVME_IDENTIFY);
	bool controller = sim_pick(2);
	int rc;

	if (!data)
		abort();
	sim_call("smartio_nvme_identify", 0);
	rc = sim_nvme_called(smartio_nvme_identify(n, controller, controller ? 0 : 1, data), 0);
	if (rc == 0 && controller && !sim_wild.lies &&
	    (memcmp(data + SERIAL_AT, n->meta.serial, sizeof(n->meta.serial)) != 0 ||
	     memcmp(data + MODEL_AT, n->meta.model, sizeof(n->meta.model)) != 0))
		sim_fail("states", "%s: its drive was another one at first", sim_self()->name);
	/* NSZE: the namespace's size is its first word. */
	if (rc == 0 && !controller && !sim_wild.lies &&
	    memcmp(data, &n->ns[0].blocks, sizeof(n->ns[0].blocks)) != 0)
		sim_fail("states", "%s: its namespace had another size at first", sim_self()->name);
	free(data);
}

/*
 * Requests the deletion of its own queue pair with a wrong key, or of any pair with the key of its
 * own. After a takeover the driver takes a refusal to mean that the previous manager had deleted
 * the pair, so a success is an error only if the manager has not changed meanwhile.
 */
static void delete_wrongly(struct smartio_nvme *n, const struct smartio_nvme_queue *q)
{
	struct sio_nvme_req req = {.op = SIO_NVME_OP_DELETE,
				   .del = {.qid = q->id, .key = q->key + 1}};
	struct sio_nvme_rep *rep = malloc(sizeof(*rep));
	const uint64_t manager = n->meta.instance;
	int rc;

	if (!rep)
		abort();
	if (sim_pick(2)) {
		req.del.qid = (uint32_t)sim_pick(n->n_pairs + 2);
		req.del.key = q->key;
	}
	if (req.del.qid == q->id && req.del.key == q->key)
		req.del.key = 0;
	sim_call("sio_nvme_ask", 0);
	sio_nvme_lock(n);
	rc = sio_nvme_ask(n, &req, rep, NULL);
	sio_nvme_unlock(n);
	sim_nvme_called(rc, 0);
	if (rc == 0 && n->meta.instance == manager && !sim_wild.lies)
		sim_fail("states",
			 "%s: queue pair %u was deleted, which is not its own, or with a wrong key",
			 sim_self()->name, req.del.qid);
	free(rep);
}

void sim_ask(struct smartio_nvme *n, const struct smartio_nvme_queue *q)
{
	switch (sim_pick(8)) {
	case 0:
		sim_sleep(THINKS >> sim_pick(16));
		break;
	case 1:
	case 2:
		delete_wrongly(n, q);
		break;
	default:
		identify(n);
	}
}
