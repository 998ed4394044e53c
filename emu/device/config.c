/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration space. What firmware and the host's kernel would have written is there from the
 * start: addresses of BARs, and all virtual functions of a physical one are enabled. These come and
 * go by its SR-IOV capability (PCI Express Base 6.0, section 9.3.3).
 */
#include <linux/pci_regs.h>

#include "emu/device/device.h"
#include "vfio/config.h"

#define NO_ID 0xffffu /* of a virtual function: the physical one says what it is */

static void write16(struct emu_device *d, size_t offset, unsigned value)
{
	const uint8_t bytes[2] = {(uint8_t)value, (uint8_t)(value >> 8)};

	sio_vfio_config_write(d->space, offset, bytes, sizeof(bytes));
}

static void write64(struct emu_device *d, size_t offset, uint64_t value)
{
	uint8_t bytes[8];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	sio_vfio_config_write(d->space, offset, bytes, sizeof(bytes));
}

static void identify(const struct emu_device *d, struct sio_vfio_config_identity *id)
{
	const struct emu_dev_config *c = &d->config;
	bool is_virtual = d->topo->physical;

	*id = (struct sio_vfio_config_identity){
		.vendor = is_virtual ? NO_ID : c->vendor,
		.device = is_virtual ? NO_ID : c->device,
		.subsys_vendor = c->subsys_vendor,
		.subsys_device = c->subsys_device,
		.class_code = c->class_code,
		.msix_count = c->msix_count,
		/* As numbers of functions: sio_topo_device's bdf of a virtual one. */
		.functions = {.total = d->topo->virtual_functions,
			      .offset = 1,
			      .stride = 1,
			      .device = c->device},
	};
	for (unsigned i = 0; !is_virtual && i < SIO_DEVICE_BARS; i++)
		id->bar_size[i] = c->bar_size[i];
	for (unsigned i = 0; i < c->n_pages; i++) {
		if (c->pages[i].kind != EMU_PAGE_MSIX)
			continue;
		id->msix_bar = c->pages[i].bar;
		id->msix_table = (uint32_t)c->pages[i].offset;
		id->msix_pending = id->msix_table + c->msix_count * PCI_MSIX_ENTRY_SIZE;
	}
}

int emu_config_new(struct emu_device *d)
{
	struct sio_vfio_config_identity id;

	d->space = calloc(1, sizeof(*d->space));
	if (!d->space)
		return -ENOMEM;
	identify(d, &id);
	sio_vfio_config_init(d->space, &id);
	return 0;
}

void emu_config_free(struct emu_device *d)
{
	free(d->space);
	d->space = NULL;
}

/* VF Enable last: with it they are there, and their number is fixed. */
static void enable(struct emu_device *d, unsigned n)
{
	unsigned at = d->space->sriov;

	if (!at)
		return;
	write16(d, at + PCI_SRIOV_CTRL, 0);
	write16(d, at + PCI_SRIOV_NUM_VF, n);
	if (n)
		write16(d, at + PCI_SRIOV_CTRL, PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE);
}

void emu_config_reset(struct emu_device *d, unsigned functions)
{
	const struct emu_device *first = emu_slot_function(d, 1);

	sio_vfio_config_reset(d->space);
	write16(d, PCI_COMMAND, d->topo->physical ? 0 : PCI_COMMAND_MEMORY);
	for (unsigned i = 0; i < SIO_DEVICE_BARS; i++) {
		if (!d->config.bar_size[i])
			continue;
		if (!d->topo->physical)
			write64(d, PCI_BASE_ADDRESS_0 + 4 * i, d->bar_addr[i]);
		if (first)
			write64(d, d->space->sriov + PCI_SRIOV_BAR + 4 * i, first->bar_addr[i]);
	}
	enable(d, functions);
}

unsigned emu_config_functions(const struct emu_device *d)
{
	return sio_vfio_config_functions(d->space);
}

/* After a write to the capability: functions that it takes away go, and others come. */
static int follow(struct emu_device *d, unsigned before, struct sio_err *reterr)
{
	unsigned now = emu_config_functions(d);

	return now == before ? 0 : emu_slot_functions_set(d, now, reterr);
}

int emu_config_enable(struct emu_device *d, unsigned n, struct sio_err *reterr)
{
	unsigned before = emu_config_functions(d);
	int rc;

	if (d->topo->virtual_functions == 0)
		return sio_fail(reterr, -EINVAL, "%s has no virtual functions", d->topo->name);
	if (n > d->topo->virtual_functions)
		return sio_fail(reterr, -EINVAL, "%s has %u virtual functions; 0 to %u is right",
				d->topo->name, d->topo->virtual_functions,
				d->topo->virtual_functions);
	if (!d->host->up || emu_device_is_out(d))
		return sio_fail(reterr, -ENODEV, "%s is %s", d->topo->name,
				d->host->up ? "not in its slot" : "without power");
	if (n == before)
		return 0;
	/* Their number changes only while there are none. */
	enable(d, 0);
	rc = follow(d, before, reterr);
	enable(d, n);
	return rc < 0 ? rc : follow(d, 0, reterr);
}

/* ---- CONFIG ---- */

/* BARs stay where the host's addresses have them, and everything else is the port's. */
static uint32_t may_change(const struct emu_device *d, uint32_t offset)
{
	unsigned at = d->space->sriov;

	if (at && offset == at + PCI_SRIOV_CTRL)
		return PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE;
	return at && offset == at + PCI_SRIOV_NUM_VF ? 0xffff : 0;
}

static uint32_t load(struct emu_device *d, const struct sio_req_config *m)
{
	uint8_t bytes[4] = {0};

	/* It sends requests, and its messages, as long as somebody has it open. */
	write16(d, PCI_COMMAND,
		(d->topo->physical ? 0 : PCI_COMMAND_MEMORY) |
			(d->opened ? PCI_COMMAND_MASTER : 0));
	sio_vfio_config_read(d->space, m->offset, bytes, m->width);
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static int change(struct emu_request *rq, struct emu_device *d, const struct sio_req_config *m)
{
	uint32_t may = may_change(d, m->offset & ~3u) >> 8 * (m->offset & 3), value;
	unsigned before = emu_config_functions(d);
	struct sio_err err = {0};
	uint8_t bytes[4];

	may &= m->width == 4 ? UINT32_MAX : (1u << 8 * m->width) - 1;
	if (m->mask & ~may)
		return sio_fail(
			&rq->err, -EACCES,
			"CONFIG: bits %#x at %#x of %s, those that may be changed there are "
			"%#x",
			m->mask, m->offset, d->topo->name, may);
	value = (load(d, m) & ~m->mask) | (m->value & m->mask);
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	sio_vfio_config_write(d->space, m->offset, bytes, m->width);
	/* A function without memory for its pages is missing, and was not brought back. */
	if (follow(d, before, &err) < 0)
		emu_log(d->room, "%s", err.text);
	return 0;
}

int emu_op_config(struct emu_request *rq, const void *msg)
{
	const struct sio_req_config *m = msg;
	struct emu_device *d = emu_device_find(rq->host, m->device);
	struct sio_evt_config evt;
	int rc = 0;

	if (!d)
		return sio_fail(&rq->err, -ENODEV, "CONFIG: %s has no device %#" PRIx64,
				rq->host->topo->name, (uint64_t)m->device);
	if ((m->width != 1 && m->width != 2 && m->width != 4) || m->offset % m->width ||
	    m->offset >= SIO_VFIO_CONFIG_BYTES)
		return sio_fail(
			&rq->err, -EINVAL,
			"CONFIG: %u bytes at %#x; 1, 2 or 4 at a multiple of that below %#x "
			"are right",
			m->width, m->offset, SIO_VFIO_CONFIG_BYTES);
	if (m->h.flags & SIO_CONFIG_WRITE)
		rc = change(rq, d, m);
	if (rc < 0)
		return rc;
	memset(&evt, 0, sizeof(evt));
	evt.value = load(d, m);
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
	return 0;
}
