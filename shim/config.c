// SPDX-License-Identifier: GPL-2.0-only
/*
 * Configuration space. Everything may be read. Written may be what changes nobody else's view of
 * the machine: error bits, and how the function sends. Not: where BARs lie, MSI-X, power.
 */
#include "smartio.h"

static u32 allowed(const struct pci_dev *pdev, u32 offset)
{
	u32 cap = pdev->pcie_cap;

	if (offset == PCI_COMMAND)
		return PCI_COMMAND_PARITY | PCI_COMMAND_SERR | (PCI_STATUS_ERROR_BITS << 16);
	if (cap && offset == cap + PCI_EXP_DEVCTL)
		return PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ |
		       (PCI_EXP_DEVSTA_CED | PCI_EXP_DEVSTA_NFED | PCI_EXP_DEVSTA_FED |
			PCI_EXP_DEVSTA_URD)
			       << 16;
	return 0;
}

static int write(struct sio_request *rq, struct pci_dev *pdev, const struct sio_req_config *m)
{
	u32 may = allowed(pdev, m->offset & ~3u) >> 8 * (m->offset & 3);
	u32 full = GENMASK(8 * m->width - 1, 0), value = 0;

	may &= full;
	if (m->mask & ~may)
		return sio_fail(rq, -EACCES,
				"bits %#x at %#x, those that may be changed there are %#x", m->mask,
				m->offset, may);
	switch (m->width) {
	case 1:
		pci_user_read_config_byte(pdev, m->offset, (u8 *)&value);
		return pci_user_write_config_byte(pdev, m->offset,
						  (value & ~m->mask) | (m->value & m->mask));
	case 2:
		pci_user_read_config_word(pdev, m->offset, (u16 *)&value);
		return pci_user_write_config_word(pdev, m->offset,
						  (value & ~m->mask) | (m->value & m->mask));
	default:
		pci_user_read_config_dword(pdev, m->offset, &value);
		return pci_user_write_config_dword(pdev, m->offset,
						   (value & ~m->mask) | (m->value & m->mask));
	}
}

static u32 read(struct pci_dev *pdev, const struct sio_req_config *m)
{
	u32 value = ~0u;
	u16 word = ~0;
	u8 byte = ~0;

	if (m->offset + m->width > pdev->cfg_size)
		return value & GENMASK(8 * m->width - 1, 0);
	switch (m->width) {
	case 1:
		pci_user_read_config_byte(pdev, m->offset, &byte);
		return byte;
	case 2:
		pci_user_read_config_word(pdev, m->offset, &word);
		return word;
	default:
		pci_user_read_config_dword(pdev, m->offset, &value);
		return value;
	}
}

int sio_op_config(struct sio_request *rq, const void *msg)
{
	const struct sio_req_config *m = msg;
	struct sio_evt_config *evt;
	struct sio_dev *d;
	int error = sio_dev_get(rq, m->device, &d);

	if (error)
		return error;
	if ((m->width != 1 && m->width != 2 && m->width != 4) || m->offset % m->width ||
	    m->offset >= PCI_CFG_SPACE_EXP_SIZE)
		return sio_fail(
			rq, -EINVAL,
			"%u bytes at %#x; 1, 2 or 4 at a multiple of that below %#x are right",
			m->width, m->offset, PCI_CFG_SPACE_EXP_SIZE);
	if (m->h.flags & SIO_CONFIG_WRITE) {
		error = write(rq, d->pdev, m);
		if (error > 0)
			error = pcibios_err_to_errno(error);
		if (error)
			return error;
	}
	evt = sio_answer(rq, sizeof(*evt));
	evt->value = read(d->pdev, m);
	return 0;
}
