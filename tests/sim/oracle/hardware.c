/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the hardware holds: when all programs have ended and quarantines are settled, every port has
 * what it had when the cluster was up, nothing more; and no descriptor is left open.
 */
#include <inttypes.h>
#include <stdio.h>

#include "run/run.h"
#include "smartio/uapi.h"

static const struct {
	uint32_t kind;
	const char *name;
} kinds[] = {
	{SIO_KIND_OWNER, "owners"},	    {SIO_KIND_MEM, "memories"},
	{SIO_KIND_GRANT, "grants"},	    {SIO_KIND_MAP, "windows"},
	{SIO_KIND_REQUESTER, "requesters"}, {SIO_KIND_BAR, "BAR views"},
	{SIO_KIND_DMAMAP, "DMA maps"},	    {SIO_KIND_IRQ, "interrupts"},
	{SIO_KIND_WATCH, "watches"},	    {SIO_KIND_DMA, "DMA channels"},
	{SIO_KIND_DMA_RANGE, "DMA ranges"}, {SIO_KIND_VECTOR, "vectors"},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static unsigned before[SIM_HOSTS][KINDS];
static uint64_t ram[SIM_HOSTS];
static unsigned fds;

static void start(void)
{
	for (unsigned h = 0; h < sim_hosts(); h++) {
		ram[h] = sim_port_ram_free(h);
		for (unsigned k = 0; k < KINDS; k++)
			before[h][k] = sim_port_count(h, kinds[k].kind);
	}
	fds = sim_fd_count();
}

static bool back(void)
{
	for (unsigned h = 0; h < sim_hosts(); h++) {
		if (sim_port_ram_free(h) != ram[h])
			return false;
		for (unsigned k = 0; k < KINDS; k++)
			if (sim_port_count(h, kinds[k].kind) != before[h][k])
				return false;
	}
	return sim_fd_count() == fds;
}

static void explain(char *text, size_t size)
{
	size_t n = 0;

	for (unsigned h = 0; h < sim_hosts() && n < size; h++)
		for (unsigned k = 0; k < KINDS && n < size; k++)
			if (sim_port_count(h, kinds[k].kind) != before[h][k])
				n += (size_t)snprintf(text + n, size - n,
						      "node %u has %u %s, had %u; ", sim_node(h),
						      sim_port_count(h, kinds[k].kind),
						      kinds[k].name, before[h][k]);
	for (unsigned h = 0; h < sim_hosts() && n < size; h++)
		if (sim_port_ram_free(h) != ram[h])
			n += (size_t)snprintf(text + n, size - n,
					      "node %u has %" PRIu64 " bytes free, had %" PRIu64
					      "; ",
					      sim_node(h), sim_port_ram_free(h), ram[h]);
	if (n < size && sim_fd_count() != fds)
		snprintf(text + n, size - n, "%u descriptors are open, %u were", sim_fd_count(),
			 fds);
}

const struct sim_oracle sim_oracle_hardware = {
	.name = "hardware", .start = start, .back = back, .explain = explain};
