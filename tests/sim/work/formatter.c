/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that have a drive formatted again and again, which others read and write. A manager
 * refuses that as long as a client has a queue pair or a lease; when it is done all blocks are
 * zeros, and no write of before comes afterwards.
 */
#include <errno.h>
#include <string.h>

#include <nvme/types.h>

#include "client.h"
#include "model/blocks.h"
#include "run/run.h"
#include "smartio/nvme.h"
#include "work/drives.h"
#include "work/life.h"

#define SEEN_IN 8 /* one seed in so many has formatters */
#define DRIVE_MS 2000u
#define CALL_MS 60000u

/* A Format of a function would be one of blocks that others have, whom nobody notifies. */
static bool is_whole_drive(const struct sio_topo_device *d)
{
	return sim_is_drive(d) && !d->physical && !d->virtual_functions;
}

/* Was it certainly not sent to the drive? */
static bool was_refused(int rc)
{
	return rc == -EBUSY || rc == -EACCES || rc == -ENOMEM;
}

/* In the format that it has, or its clients would have to open it again. */
static void format(struct smartio_nvme *n, struct blocks_drive *drive)
{
	struct smartio_nvme_namespace ns;
	struct smartio_nvme_admin c = {.size = sizeof(c),
				       .opcode = nvme_admin_format_nvm,
				       .flags = SMARTIO_NVME_CONFIRMED,
				       .nsid = 1,
				       .timeout_ms = DRIVE_MS};
	const unsigned epoch = blocks_epoch(drive);
	const uint64_t since = sim_now();
	uint64_t stamp;
	int rc = smartio_nvme_get_namespace(n, 0, &ns);

	if (rc || (ns.block_size != 512 && ns.block_size != 4096))
		return;
	c.cdw10 = ns.block_size == 512 ? 0 : 1;
	stamp = blocks_format(drive);
	sim_call("smartio_nvme_admin", CALL_MS);
	rc = sim_nvme_called(smartio_nvme_admin(n, &c, NULL, NULL), 0);
	if (rc == 0 || was_refused(rc))
		blocks_formatted(drive, epoch, stamp, since, rc == 0);
}

static void use_drive(const struct sio_topo_device *topo, struct blocks_drive *drive)
{
	unsigned formats = 1 + (unsigned)sim_pick(20);
	struct smartio_nvme *n;
	int rc;

	sim_call("smartio_nvme_open", 0);
	rc = sim_nvme_called(smartio_nvme_open_wait(topo->name, (uint32_t)sim_pick(400), &n), 0);
	if (rc)
		return;
	for (; formats > 0 && !sim_stopping_programs(); formats--) {
		format(n, drive);
		sim_sleep(sim_pick(50 * SIM_MS));
	}
	sim_call("smartio_nvme_close", CALL_MS);
	smartio_nvme_close(n);
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
}

static void formatter_main(struct sim_proc *p)
{
	unsigned tries = 1 + (unsigned)sim_pick(10), host;
	const struct sio_topo_device *topo = sim_pick_device(is_whole_drive, &host);
	struct blocks_drive *drive;

	if (!sim_initialize())
		return;
	if (topo) {
		drive = blocks_drive(host,
				     (unsigned)(topo - sim_cluster->topology->host[host].device));
		for (; tries > 0 && !sim_stopping_programs(); tries--) {
			use_drive(topo, drive);
			sim_sleep(sim_pick(300 * SIM_MS));
		}
	}
	sim_terminate(p);
}

static bool seen(unsigned hosts)
{
	(void)hosts;
	return sim_drawn_apart("formatter", 0x666f726d6174ull, SEEN_IN);
}

const struct sim_workload sim_work_formatter = {.name = "formatter",
						.weight = 3,
						.fits = sim_has_drives,
						.seen = seen,
						.main = formatter_main};
