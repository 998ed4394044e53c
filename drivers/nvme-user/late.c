/* SPDX-License-Identifier: BSD-2-Clause */
#include "late.h"

enum sio_nvme_age sio_nvme_age_next(enum sio_nvme_age age, bool can_abort, bool quiet)
{
	switch (age) {
	case SIO_NVME_LATE:
		return can_abort ? SIO_NVME_ASKED : SIO_NVME_LATE;
	case SIO_NVME_ASKED:
		return quiet ? SIO_NVME_OVERDUE : SIO_NVME_ASKED;
	case SIO_NVME_OVERDUE:
		return SIO_NVME_OVERDUE;
	default:
		return age + 1;
	}
}
