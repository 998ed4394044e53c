/* SPDX-License-Identifier: BSD-2-Clause */
/* A fixture: a cluster on whose drive nvme0 others can have queue pairs. */
#ifndef TESTS_ACCEL_SERVED_H
#define TESTS_ACCEL_SERVED_H

#include "../nvme/driver/serving.h"

#define LENDER 4u /* the first host: it has the drive, and its manager */

struct fixture {
	struct cluster *cluster;
	pid_t manager;
};

static inline int served_up(void **state, const char *topology)
{
	static struct fixture f;

	f.cluster = cluster_up(topology);
	if (!f.cluster)
		return -1;
	steps_reset();
	f.manager = cluster_fork(f.cluster, LENDER, manager, NULL);
	step_await(SERVING);
	*state = &f;
	return 0;
}

static inline int served_down(void **state)
{
	struct fixture *f = *state;
	int rc;

	kill(f->manager, SIGTERM);
	rc = cluster_wait(f->manager);
	return cluster_down(f->cluster) ? -1 : -rc;
}

#endif
