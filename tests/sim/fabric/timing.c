/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/timing.h"
#include "fabric/timing.h"

#define PS_PER_NS 1000u

void fabric_params_default(struct fabric_params *p)
{
	*p = (struct fabric_params){
		.limits = {.max_payload = 256,
			   .max_read_request = 512,
			   .read_completion_boundary = 64},
		.tags = 64,
		.adapter_ps = SIO_TIMING_ADAPTER_NS * PS_PER_NS,
		.switch_ps = SIO_TIMING_SWITCH_NS * PS_PER_NS,
		.chassis_ps = SIO_TIMING_CHASSIS_NS * PS_PER_NS,
		.cable_ps = 10000,
		.root_write_ps = 150000,
		.root_read_ps = 250000,
		.cpu_out_ps = 80000,
		.cpu_load_ps = 2000,
		.cpu_store_ps = 1000,
		.iommu_ps = 50000,
		.register_ps = 100000,
		.device_link = {.width = 4, .generation = 3},
		.media_read_ns = 7000,
		.media_write_ns = 7000,
		.command_ns = 500,
		.media_units = 4,
	};
}

static int link_known(const struct fabric_link *l)
{
	return l->width >= 1 && l->width <= 32 && l->generation >= 1 && l->generation <= 6;
}

const char *fabric_params_wrong(const struct fabric_params *p)
{
	if (!sio_pcie_valid(&p->limits))
		return "limits: payload and read request are powers of 2 from 128 to 4096, the "
		       "completion boundary is 64 or 128";
	if (p->tags == 0 || p->tags > SIO_TIMING_TAGS)
		return "tags: 1 to 1024";
	if (!link_known(&p->device_link))
		return "device_link: 1 to 32 lanes of generation 1 to 6";
	if (p->media_units == 0)
		return "media_units: at least 1";
	return NULL;
}

struct fabric_link fabric_slower(struct fabric_link a, struct fabric_link b)
{
	return sio_timing_byte(a.width, a.generation) >= sio_timing_byte(b.width, b.generation) ? a
												: b;
}

/* Up to whole nanoseconds. */
static uint64_t to_ns(uint64_t ps)
{
	return (ps + PS_PER_NS - 1) / PS_PER_NS;
}

/* The way as core/timing.h has it: what is on it, without what its two ends take. */
static struct sio_timing timing(const struct fabric_params *p, const struct fabric_way *w)
{
	return (struct sio_timing){
		.rules = p->limits,
		.chips = (uint64_t)w->adapters * p->adapter_ps +
			 (uint64_t)w->switches * p->switch_ps +
			 (uint64_t)w->chassis * p->chassis_ps + (uint64_t)w->cables * p->cable_ps,
		.byte_fs = sio_timing_byte(w->slowest.width, w->slowest.generation),
		.around = sio_timing_around(w->slowest.generation)};
}

uint64_t fabric_write_ns(const struct fabric_params *p, const struct fabric_way *w, uint64_t addr,
			 uint64_t len)
{
	const struct sio_timing t = timing(p, w);
	uint64_t end = w->to_register ? p->register_ps / 2 : p->root_write_ps;

	return to_ns((w->from_cpu ? p->cpu_out_ps : 0) + (uint64_t)w->iommus * p->iommu_ps + end +
		     sio_timing_write_at(&t, addr, len));
}

uint64_t fabric_write_busy_ns(const struct fabric_params *p, const struct fabric_way *w,
			      uint64_t addr, uint64_t len)
{
	struct sio_timing t = timing(p, w);

	t.chips = 0;
	return to_ns(sio_timing_write_at(&t, addr, len));
}

uint64_t fabric_read_ns(const struct fabric_params *p, const struct fabric_way *w, uint64_t addr,
			uint64_t len)
{
	const struct sio_timing t = timing(p, w);
	const struct sio_timing_reader reader = {
		.tags = p->tags,
		.memory = (uint64_t)w->iommus * p->iommu_ps +
			  (w->to_register ? p->register_ps : p->root_read_ps) +
			  (w->from_cpu ? 2ull * p->cpu_out_ps : 0)};

	return to_ns(sio_timing_read_at(&t, &reader, addr, len));
}

void fabric_params_print(const struct fabric_params *p, FILE *f)
{
	const struct {
		const char *name, *unit;
		uint64_t value;
	} line[] = {
		{"max payload", "bytes", p->limits.max_payload},
		{"max read request", "bytes", p->limits.max_read_request},
		{"read completion boundary", "bytes", p->limits.read_completion_boundary},
		{"outstanding reads (tags)", "", p->tags},
		{"NTB adapter, one way", "ps", p->adapter_ps},
		{"switch, one way", "ps", p->switch_ps},
		{"switch of a chassis, one way", "ps", p->chassis_ps},
		{"cable, one way", "ps", p->cable_ps},
		{"root complex to memory, write", "ps", p->root_write_ps},
		{"root complex to memory and back", "ps", p->root_read_ps},
		{"store to root port", "ps", p->cpu_out_ps},
		{"load of own memory", "ps", p->cpu_load_ps},
		{"store to own memory", "ps", p->cpu_store_ps},
		{"IOMMU translation", "ps", p->iommu_ps},
		{"device port to register and back", "ps", p->register_ps},
		{"lanes of the drive", "", p->device_link.width},
		{"generation of the drive's link", "", p->device_link.generation},
		{"media, read", "ns", p->media_read_ns},
		{"media, write", "ns", p->media_write_ns},
		{"command in the controller", "ns", p->command_ns},
		{"commands on the media at once", "", p->media_units},
	};

	for (unsigned i = 0; i < sizeof(line) / sizeof(line[0]); i++)
		fprintf(f, "modelled: %s = %llu%s%s\n", line[i].name,
			(unsigned long long)line[i].value, line[i].unit[0] ? " " : "",
			line[i].unit);
}
