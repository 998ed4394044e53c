/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of the fabric at a device. */
#include <string.h>

#include "sisci/device/device.h"

#define STATS_DEVICE 3u /* kind of SIO_MSG_STATS */

/* A name that the daemon sent may fill its field. */
static unsigned copy(const struct sio_rep_stats *rep, struct smartio_counter *counters,
		     unsigned max)
{
	unsigned n = sio_from_le32(rep->count);

	if (n > sizeof(rep->counter) / sizeof(rep->counter[0]))
		n = sizeof(rep->counter) / sizeof(rep->counter[0]);
	if (n > max)
		n = max;
	for (unsigned i = 0; i < n; i++) {
		memcpy(counters[i].name, rep->counter[i].name, sizeof(counters[i].name));
		counters[i].name[sizeof(counters[i].name) - 1] = '\0';
		counters[i].value = sio_from_le64(rep->counter[i].value);
	}
	return n;
}

unsigned int smartio_device_counters(unsigned int fdid, struct smartio_counter *counters,
				     unsigned int max, sci_error_t *error)
{
	struct sio_msg_stats req = {.kind = sio_to_le32(STATS_DEVICE), .id = sio_to_le32(fdid)};
	struct sio_rep_stats rep;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	unsigned n = 0;
	int rc = err.code;

	if (lib)
		rc = sio_check_pointer(counters, "counters", &err);
	if (!rc)
		rc = sio_ask(lib, SIO_MSG_STATS, &req, sizeof(req), &rep, sizeof(rep), &err);
	if (!rc)
		n = copy(&rep, counters, max);
	sio_api_leave(error, rc, &err);
	return n;
}
