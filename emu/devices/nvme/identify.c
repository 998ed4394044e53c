/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identify (NVMe 1.4, section 5.15): controller, namespace, and the two lists of
 * namespaces. virtual.c has the part about virtual functions.
 */
#include <endian.h>
#include <string.h>

#include "emu/devices/nvme/model.h"

#define MODEL "SmartIO emulated NVMe drive"
#define DEALLOCATED_READ_ZEROS 1 /* DLFEAT bits 2:0 */
#define WRITE_ZEROES_DEALLOCATES (1 << 3)
#define UNIT_MICROSECONDS 1000000u
#define OUI                                                                                        \
	{                                                                                          \
		0x52, 0x54, 0x00                                                                   \
	} /* locally administered */

_Static_assert(sizeof(struct nvme_id_ctrl) == EMU_NVME_PAGE, "one page");
_Static_assert(sizeof(struct nvme_id_ns) == EMU_NVME_PAGE, "one page");

/* Text fields are ASCII, padded with blanks, without a zero. */
static void put_text(char *field, size_t size, const char *text)
{
	size_t len = strlen(text);

	memset(field, ' ', size);
	memcpy(field, text, len < size ? len : size);
}

static void put_le64(uint8_t *field, uint64_t value)
{
	value = htole64(value);
	memcpy(field, &value, sizeof(value));
}

/* Of the first namespace; of namespace N behind it: N. */
enum { UUID_NAMESPACE, UUID_SUBSYSTEM };

/* UUID of version 8 (RFC 9562: of our own making), out of the serial number and what it names. */
static void put_uuid(const struct emu_nvme *m, unsigned what, uint8_t *uuid)
{
	uint64_t h = 0xcbf29ce484222325u + what;

	for (unsigned i = 0; i < 16; i++) {
		for (unsigned k = 0; k < sizeof(m->serial); k++)
			h = (h ^ (uint8_t)m->serial[k] ^ i) * 0x100000001b3u;
		uuid[i] = (uint8_t)(h >> 32);
	}
	uuid[6] = (uint8_t)(uuid[6] & 0x0f) | 0x80;
	uuid[8] = (uint8_t)(uuid[8] & 0x3f) | 0x80;
}

/* The form for those who own no domain (NVMe base specification, NVMe Qualified Names). */
static void put_nqn(const struct emu_nvme *m, char *nqn)
{
	static const char prefix[] = "nqn.2014-08.org.nvmexpress:uuid:", hex[] = "0123456789abcdef";
	uint8_t uuid[16];

	put_uuid(m, UUID_SUBSYSTEM, uuid);
	memcpy(nqn, prefix, sizeof(prefix) - 1);
	nqn += sizeof(prefix) - 1;
	for (unsigned i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*nqn++ = '-';
		*nqn++ = hex[uuid[i] >> 4];
		*nqn++ = hex[uuid[i] & 15];
	}
}

static void identify_controller(struct emu_nvme *m)
{
	struct nvme_id_ctrl *c = (void *)m->page;

	c->vid = htole16(EMU_NVME_PCI_VENDOR);
	c->ssvid = htole16(EMU_NVME_PCI_VENDOR);
	memcpy(c->sn, m->serial, sizeof(c->sn));
	put_text(c->mn, sizeof(c->mn), MODEL);
	memcpy(c->fr, EMU_NVME_FIRMWARE, sizeof(c->fr));
	c->rab = EMU_NVME_BURST_LOG2;
	memcpy(c->ieee, (uint8_t[])OUI, sizeof(c->ieee));
	if (emu_nvme_functions(m))
		c->cmic = NVME_CTRL_CMIC_MULTI_CTRL;
	if (m->physical)
		c->cmic |= NVME_CTRL_CMIC_MULTI_SRIOV;
	c->cntlid = htole16(m->controller);
	c->mdts = EMU_NVME_MDTS;
	c->ver = htole32(EMU_NVME_VERSION);
	c->rtd3r = htole32(UNIT_MICROSECONDS);
	c->rtd3e = htole32(UNIT_MICROSECONDS);
	c->cntrltype = NVME_CTRL_CNTRLTYPE_IO;
	c->acl = 3;
	c->aerl = EMU_NVME_AERS - 1;
	c->frmw = NVME_CTRL_FRMW_1ST_RO | 1 << 1; /* one slot */
	c->oacs = htole16(NVME_CTRL_OACS_FORMAT | NVME_CTRL_OACS_DBBUF_CFG);
	if (emu_nvme_is_primary(m))
		c->oacs |= htole16(NVME_CTRL_OACS_VIRT_MGMT);
	c->lpa = NVME_CTRL_LPA_CMD_EFFECTS | NVME_CTRL_LPA_EXTENDED;
	c->elpe = EMU_NVME_ERRORS - 1;
	c->wctemp = htole16(EMU_NVME_WARN_KELVIN);
	c->cctemp = htole16(EMU_NVME_CRIT_KELVIN);
	c->sqes = 6 << 4 | 6;
	c->cqes = 4 << 4 | 4;
	c->nn = htole32(m->n_ns);
	c->oncs =
		htole16(NVME_CTRL_ONCS_COMPARE | NVME_CTRL_ONCS_DSM | NVME_CTRL_ONCS_WRITE_ZEROES |
			NVME_CTRL_ONCS_SAVE_FEATURES | NVME_CTRL_ONCS_VERIFY);
	/* Flush takes all namespaces; a cache is the system's, of files. */
	c->vwc = NVME_CTRL_VWC_FLUSH | (m->files ? NVME_CTRL_VWC_PRESENT : 0);
	c->sgls = htole32(1); /* of any address and length; no bit buckets, and not of keys */
	put_nqn(m, c->subnqn);
	c->psd[0].mp = htole16(500); /* times 0.01 W */
}

static void identify_namespace(struct emu_nvme *m, const struct emu_nvme_ns *what)
{
	struct nvme_id_ns *ns = (void *)m->page;

	ns->nsze = htole64(what->blocks);
	ns->ncap = htole64(what->blocks);
	ns->nuse = htole64(what->blocks);
	put_le64(ns->nvmcap, what->size);
	ns->nlbaf = EMU_NVME_FORMATS - 1;
	ns->flbas = what->block_shift == 9 ? 0 : 1;
	ns->lbaf[0].ds = 9;
	ns->lbaf[1].ds = 12;
	if (emu_nvme_functions(m))
		ns->nmic = NVME_NS_NMIC_SHARED;
	ns->dlfeat = DEALLOCATED_READ_ZEROS | WRITE_ZEROES_DEALLOCATES;
}

static void identify_descriptors(struct emu_nvme *m, uint32_t nsid)
{
	struct nvme_ns_id_desc *d = (void *)m->page;

	d->nidt = NVME_NIDT_UUID;
	d->nidl = NVME_NIDT_UUID_LEN;
	put_uuid(m, nsid == 1 ? UUID_NAMESPACE : nsid, d->nid);
}

static void identify_active(struct emu_nvme *m, uint32_t after)
{
	struct nvme_ns_list *list = (void *)m->page;

	for (uint32_t id = after + 1; id <= m->n_ns; id++)
		list->ns[id - after - 1] = htole32(id);
}

unsigned emu_nvme_identify(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	uint32_t nsid = le32toh(sqe->nsid);
	unsigned status = 0;

	memset(m->page, 0, sizeof(m->page));
	switch (le32toh(sqe->cdw10) & 0xff) {
	case NVME_IDENTIFY_CNS_NS:
		if (!emu_nvme_ns(m, nsid))
			return EMU_NVME_FAIL(INVALID_NS);
		identify_namespace(m, emu_nvme_ns(m, nsid));
		break;
	case NVME_IDENTIFY_CNS_CTRL:
		identify_controller(m);
		break;
	case NVME_IDENTIFY_CNS_NS_ACTIVE_LIST:
		if (nsid >= NVME_NSID_ALL - 1)
			return EMU_NVME_FAIL(INVALID_NS);
		identify_active(m, nsid);
		break;
	case NVME_IDENTIFY_CNS_NS_DESC_LIST:
		if (!emu_nvme_ns(m, nsid))
			return EMU_NVME_FAIL(INVALID_NS);
		identify_descriptors(m, nsid);
		break;
	case NVME_IDENTIFY_CNS_PRIMARY_CTRL_CAP:
		status = emu_nvme_identify_primary(m);
		break;
	case NVME_IDENTIFY_CNS_SECONDARY_CTRL_LIST:
		status = emu_nvme_identify_secondaries(m, le32toh(sqe->cdw10) >> 16);
		break;
	default:
		return EMU_NVME_FAIL(INVALID_FIELD);
	}
	if (status)
		return status;
	return emu_nvme_prp_to_host(m, sqe, m->page, sizeof(m->page));
}
