/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Managers of drives: they start, serve for a while, and end or are killed. Several may want the
 * same drive; about half of them stand by where another one serves, and take over when it ends. A
 * "steward" stays until all other programs have ended, so that clients wait in vain for completions
 * that their drive has lost: no reset by a new manager ends that wait.
 */
#include <errno.h>

#include "work/life.h"
#include "run/run.h"
#include "smartio/nvme.h"
#include "work/drives.h"

#define STEWARD_LASTS (44 * SIM_SECOND)

int sim_nvme_called(int rc, int also)
{
	static const int fine[] = {-ENODEV, -ENOTCONN, -EBUSY,	-ENOSPC,      -ENOMEM,
				   -EIO,    -ENETDOWN, -EAGAIN, -ETIMEDOUT,   -ECONNRESET,
				   -EACCES, -ENOENT,   -EMFILE, -EHOSTUNREACH};
	/* A malicious manager may reply with any error. */
	bool known = rc >= 0 || rc == also || sim_wild.lies;

	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		known |= rc == fine[i];
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
	if (!known)
		sim_fail("states", "%s: %d: %s", sim_self()->name, rc, smartio_nvme_error());
	return rc;
}

static uint32_t takeovers(const struct smartio_nvme_manager *m)
{
	struct smartio_nvme_manager_status status;

	smartio_nvme_manager_get_status(m, &status);
	return status.takeovers + status.returns_kept;
}

/*
 * A manager must not make more queue pairs than it sends replies, because a pair whose client had
 * no reply has no owner. Takeovers are excepted, for the previous manager may have replied; and so
 * is a return over another path, for its client asks again for the pair of a reply that was lost.
 */
static int serve_once(struct smartio_nvme_manager *m, uint32_t ms)
{
	uint64_t told = sim_self()->triggered;
	uint32_t pairs = smartio_nvme_manager_queue_pairs(m, NULL), now, took = takeovers(m);
	int rc;

	sim_call("smartio_nvme_manager_serve", 0);
	rc = sim_nvme_called(smartio_nvme_manager_serve(m, ms), 0);
	now = smartio_nvme_manager_queue_pairs(m, NULL);
	if (rc >= 0 && takeovers(m) == took && now > pairs &&
	    now - pairs > sim_self()->triggered - told)
		sim_fail("states", "%s: made %u queue pairs and sent %llu replies",
			 sim_self()->name, now - pairs,
			 (unsigned long long)(sim_self()->triggered - told));
	return rc;
}

static void serve(struct smartio_nvme_manager *m, uint64_t until)
{
	int rc = 0;

	while (rc >= 0 && sim_now() < until && !sim_stopping_programs())
		rc = serve_once(m, (uint32_t)sim_pick(300));
}

/*
 * After the others were told to end: for longer than a client that closes its queue waits for what
 * is in flight, and for less time than all programs together have.
 */
static void serve_to_the_end(struct smartio_nvme_manager *m)
{
	uint64_t until = UINT64_MAX;
	int rc = 0;

	while (rc >= 0 && sim_now() < until) {
		rc = serve_once(m, (uint32_t)sim_pick(1000));
		if (sim_stopping_programs() && until == UINT64_MAX)
			until = sim_now() + (sim_drives_fail() ? STEWARD_LASTS : 0);
	}
}

bool sim_drives_fail(void)
{
	return sim_has_fault("lost") || sim_has_fault("late") || sim_has_fault("phase");
}

bool sim_drives_lossy(void)
{
	return sim_has_fault("link") || sim_has_fault("between") || sim_has_fault("anew") ||
	       sim_has_fault("crash") || sim_has_pullers();
}

bool sim_survivor_may_end(int rc)
{
	static const int ends[] = {-EAGAIN, -ENOTCONN, -ETIMEDOUT, -ENOSPC, -EBUSY,	  -ENETDOWN,
				   -ENOMEM, -EFAULT,   -EIO,	   -ESTALE, -EHOSTUNREACH};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (rc == ends[i])
			return true;
	return false;
}

bool sim_drives_alone(void)
{
	static const char *const others[] = {
		"crash",  "link", "between", "anew", "cut",	"delay", "clock",  "lack",  "port",
		"memory", "stop", "restart", "liar", "removal", "forge", "tables", "scarce"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (sim_has_fault(others[i]))
			return false;
	return true;
}

/*
 * Ends the manager. True: it has handed the drive over, and the program has to end now, too. False:
 * it is closed.
 */
static bool ends_with_program(struct smartio_nvme_manager *m)
{
	bool handed_over = false;

	if (sim_pick(2)) {
		sim_call("smartio_nvme_manager_hand_over", 0);
		handed_over = smartio_nvme_manager_hand_over(m) == 0;
		sim_called(SCI_ERR_OK, SCI_ERR_OK);
	}
	if (handed_over)
		return true;
	sim_call("smartio_nvme_manager_close", 0);
	smartio_nvme_manager_close(m);
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
	return false;
}

static void manage(struct sim_proc *p, bool stays)
{
	struct smartio_nvme_manager_options o = {.size = sizeof(o)};
	struct smartio_nvme_manager *m;
	uint64_t until = sim_now() + sim_pick(8 * SIM_SECOND);
	unsigned tries = 1 + (unsigned)sim_pick(3); /* each takes a second if another one serves */
	const char *name = sim_pick_drive(NULL, NULL)->name;
	int rc;

	if (!sim_initialize())
		return;
	if (stays)
		until = UINT64_MAX;
	for (; tries > 0 && sim_now() < until && !sim_stopping_programs(); tries--) {
		o.flags = sim_pick(2) ? SMARTIO_NVME_STANDBY : 0;
		sim_call("smartio_nvme_manager_open", 0);
		rc = sim_nvme_called(smartio_nvme_manager_open(name, &o, &m), 0);
		if (rc == 0) {
			sim_manager_tries(m);
			if (stays)
				serve_to_the_end(m);
			else
				serve(m, until);
			if (ends_with_program(m))
				break;
		}
		sim_sleep(sim_pick(500 * SIM_MS));
	}
	sim_terminate(p);
}

static void manager_main(struct sim_proc *p)
{
	manage(p, false);
}

static void steward_main(struct sim_proc *p)
{
	manage(p, true);
}

const struct sim_workload sim_work_steward = {
	.name = "steward", .weight = 1, .fits = sim_has_drives, .main = steward_main};
const struct sim_workload sim_work_manager = {
	.name = "manager", .weight = 2, .fits = sim_has_drives, .main = manager_main};
