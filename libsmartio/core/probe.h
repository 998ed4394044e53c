/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probes (USDT) for bpftrace, perf and gdb: a nop each while nobody watches; docs/tracing.md
 * lists them. A build without sys/sdt.h, or with -Dprobes=disabled, has none.
 */
#ifndef SIO_CORE_PROBE_H
#define SIO_CORE_PROBE_H

#ifdef SMARTIO_PROBES
#define SDT_USE_VARIADIC
#include <sys/sdt.h>
#define SIO_PROBE(provider, name, ...) STAP_PROBEV(provider, name, __VA_ARGS__)
#else
/* Without probes: arguments are type-checked, and no code is generated. */
int sio_probe_arguments(int first, ...);
#define SIO_PROBE(provider, name, ...) ((void)sizeof(sio_probe_arguments(0, __VA_ARGS__)))
#endif

#endif
