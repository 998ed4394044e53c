/* SPDX-License-Identifier: BSD-2-Clause */
/* Managers of drives: they come, serve for a while, go or die; two may want the same drive. */
#include <errno.h>

#include "life.h"
#include "run.h"
#include "smartio/nvme.h"
#include "tables.h"

int sim_nvme_called(int rc, int also)
{
	static const int fine[] = {-ENODEV, -ENOTCONN, -EBUSY,	-ENOSPC,      -ENOMEM,
				   -EIO,    -ENETDOWN, -EAGAIN, -ETIMEDOUT,   -ECONNRESET,
				   -EACCES, -ENOENT,   -EMFILE, -EHOSTUNREACH};
	/* A manager that lies may say anything. */
	bool known = rc >= 0 || rc == also || sim_wild.lies;

	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		known |= rc == fine[i];
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
	if (!known)
		sim_fail("states", "%s: %d: %s", sim_self()->name, rc, smartio_nvme_error());
	return rc;
}

static void serve(struct smartio_nvme_manager *m, uint64_t until)
{
	int rc = 0;

	while (rc >= 0 && sim_now() < until && !sim_stopping_programs()) {
		sim_call("smartio_nvme_manager_serve", 0);
		rc = sim_nvme_called(smartio_nvme_manager_serve(m, (uint32_t)sim_pick(300)), 0);
	}
}

static void manager_main(struct sim_proc *p)
{
	struct smartio_nvme_manager *m;
	uint64_t until = sim_now() + sim_pick(8 * SIM_SECOND);
	unsigned tries =
		1 + (unsigned)sim_pick(3); /* each asks for a second, if another one serves */
	const char *name = sim_pick_drive(NULL, NULL)->name;
	int rc;

	if (!sim_initialize())
		return;
	for (; tries > 0 && sim_now() < until && !sim_stopping_programs(); tries--) {
		sim_call("smartio_nvme_manager_open", 0);
		rc = sim_nvme_called(smartio_nvme_manager_open(name, NULL, &m), 0);
		if (rc == 0) {
			serve(m, until);
			sim_call("smartio_nvme_manager_close", 0);
			smartio_nvme_manager_close(m);
			sim_called(SCI_ERR_OK, SCI_ERR_OK);
		}
		sim_sleep(sim_pick(500 * SIM_MS));
	}
	sim_terminate(p);
}

const struct sim_workload sim_work_manager = {
	.name = "manager", .weight = 2, .fits = sim_has_drives, .main = manager_main};
