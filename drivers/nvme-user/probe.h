/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probes of the driver (USDT), a nop each while nobody watches; docs/tracing.md lists them.
 */
#ifndef SIO_NVME_PROBE_H
#define SIO_NVME_PROBE_H

#ifdef SMARTIO_PROBES
#define SDT_USE_VARIADIC
#include <sys/sdt.h>
#define SIO_NVME_PROBE(name, ...) STAP_PROBEV(smartio_nvme, name, __VA_ARGS__)
#else
/* Without probes: arguments are type-checked, and no code is generated. */
int sio_nvme_probe_arguments(int first, ...);
#define SIO_NVME_PROBE(name, ...) ((void)sizeof(sio_nvme_probe_arguments(0, __VA_ARGS__)))
#endif

#endif
