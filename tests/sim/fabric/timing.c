/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/timing.h"

#define PS_PER_NS 1000u
#define FS_PER_PS 1000u

void fabric_params_default(struct fabric_params *p)
{
	*p = (struct fabric_params){
		.limits = {.max_payload = 256,
			   .max_read_request = 512,
			   .read_completion_boundary = 64},
		.tlp_overhead = 24,
		.tags = 64,
		.adapter_ps = 132000,
		.switch_ps = 170000,
		.chassis_ps = 150000,
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
	if (p->tags == 0)
		return "tags: at least 1";
	if (!link_known(&p->device_link))
		return "device_link: 1 to 32 lanes of generation 1 to 6";
	if (p->media_units == 0)
		return "media_units: at least 1";
	return NULL;
}

uint64_t fabric_byte_fs(const struct fabric_link *l)
{
	/*
	 * Of one lane: 2.5 and 5 GT/s with 10 bits for 8; 8, 16, 32 with 130 for 128; 64 with 256
	 * for 242.
	 */
	static const uint64_t lane[] = {0, 4000000, 2000000, 1015625, 507813, 253906, 132231};

	return (lane[l->generation] + l->width - 1) / l->width;
}

struct fabric_link fabric_slower(struct fabric_link a, struct fabric_link b)
{
	return fabric_byte_fs(&a) >= fabric_byte_fs(&b) ? a : b;
}

/* Up to whole nanoseconds. */
static uint64_t to_ns(uint64_t ps)
{
	return (ps + PS_PER_NS - 1) / PS_PER_NS;
}

static uint64_t wire_ps(const struct fabric_way *w, uint64_t bytes)
{
	return (bytes * fabric_byte_fs(&w->slowest) + FS_PER_PS - 1) / FS_PER_PS;
}

/* From requester to the root port or device at the other end, without the bytes. */
static uint64_t one_way_ps(const struct fabric_params *p, const struct fabric_way *w)
{
	return (uint64_t)w->adapters * p->adapter_ps + (uint64_t)w->switches * p->switch_ps +
	       (uint64_t)w->chassis * p->chassis_ps + (uint64_t)w->cables * p->cable_ps;
}

static uint64_t write_wire_ps(const struct fabric_params *p, const struct fabric_way *w,
			      uint64_t addr, uint64_t len)
{
	struct sio_pcie_count c = {0};

	sio_pcie_write(&p->limits, addr, len, &c);
	return wire_ps(w, c.write_bytes + c.write_tlps * p->tlp_overhead);
}

uint64_t fabric_write_ns(const struct fabric_params *p, const struct fabric_way *w, uint64_t addr,
			 uint64_t len)
{
	uint64_t end = w->to_register ? p->register_ps / 2 : p->root_write_ps;

	return to_ns((w->from_cpu ? p->cpu_out_ps : 0) + one_way_ps(p, w) +
		     (uint64_t)w->iommus * p->iommu_ps + end + write_wire_ps(p, w, addr, len));
}

uint64_t fabric_write_busy_ns(const struct fabric_params *p, const struct fabric_way *w,
			      uint64_t addr, uint64_t len)
{
	return to_ns(write_wire_ps(p, w, addr, len));
}

uint64_t fabric_read_ns(const struct fabric_params *p, const struct fabric_way *w, uint64_t addr,
			uint64_t len)
{
	struct sio_pcie_count c = {0};
	uint64_t trip, data, by_tags;

	sio_pcie_read(&p->limits, addr, len, &c);
	/*
	 * The request's own bytes, there and back through every place, and what the memory takes.
	 */
	trip = wire_ps(w, p->tlp_overhead) + 2 * one_way_ps(p, w) +
	       (uint64_t)w->iommus * p->iommu_ps +
	       (w->to_register ? p->register_ps : p->root_read_ps);
	if (w->from_cpu)
		trip += 2ull * p->cpu_out_ps;
	data = wire_ps(w, c.read_bytes + c.completions * p->tlp_overhead);
	/* Requests beyond the tags wait for a round trip each time around. */
	by_tags = c.read_requests ? (c.read_requests - 1) / p->tags * trip : 0;
	return to_ns(trip + (data > by_tags ? data : by_tags));
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
		{"overhead of a packet", "bytes", p->tlp_overhead},
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
