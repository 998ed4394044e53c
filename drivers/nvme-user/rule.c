/* SPDX-License-Identifier: BSD-2-Clause */
#include <nvme/types.h>

#include "rule.h"

#define VENDOR_OPCODE 0xc0u
#define VENDOR_FEATURE 0xc0u
#define FEATURE(cdw10) ((cdw10)&0xffu)

struct entry {
	uint32_t code;
	enum sio_nvme_verdict verdict;
	const char *why;
};

#define QUEUES "queues are the manager's to make and to delete: smartio_nvme_queue_open()"

static const struct entry commands[] = {
	{nvme_admin_delete_sq, SIO_NVME_REFUSED, QUEUES},
	{nvme_admin_create_sq, SIO_NVME_REFUSED, QUEUES},
	{nvme_admin_get_log_page, SIO_NVME_ALLOWED, "Get Log Page"},
	{nvme_admin_delete_cq, SIO_NVME_REFUSED, QUEUES},
	{nvme_admin_create_cq, SIO_NVME_REFUSED, QUEUES},
	{nvme_admin_identify, SIO_NVME_ALLOWED, "Identify"},
	{nvme_admin_abort_cmd, SIO_NVME_REFUSED, "Abort may end another client's command"},
	{nvme_admin_get_features, SIO_NVME_ALLOWED, "Get Features"},
	{nvme_admin_async_event, SIO_NVME_REFUSED,
	 "an event request would keep the manager's queue; logs tell the same"},
	{nvme_admin_ns_mgmt, SIO_NVME_REFUSED, "namespaces are not made while the drive is shared"},
	{nvme_admin_fw_commit, SIO_NVME_REFUSED,
	 "firmware is not changed while the drive is shared"},
	{nvme_admin_fw_download, SIO_NVME_REFUSED,
	 "firmware is not changed while the drive is shared"},
	{nvme_admin_dev_self_test, SIO_NVME_CONFIRM, "Device Self-test slows all clients down"},
	{nvme_admin_ns_attach, SIO_NVME_REFUSED,
	 "namespaces are not attached while the drive is shared"},
	{nvme_admin_keep_alive, SIO_NVME_REFUSED,
	 "a timer would reset the drive under all clients"},
	{nvme_admin_directive_send, SIO_NVME_CONFIRM, "Directive Send concerns all clients"},
	{nvme_admin_directive_recv, SIO_NVME_CONFIRM,
	 "Directive Receive may take streams from all clients"},
	{nvme_admin_virtual_mgmt, SIO_NVME_REFUSED, "resources are not moved between functions"},
	{nvme_admin_dbbuf, SIO_NVME_REFUSED,
	 "doorbell buffers would take the doorbells from all clients"},
	{nvme_admin_format_nvm, SIO_NVME_ALONE, "Format NVM destroys the data of all"},
	{nvme_admin_security_send, SIO_NVME_ALONE,
	 "Security Send may lock or destroy the data of all"},
	{nvme_admin_security_recv, SIO_NVME_ALLOWED, "Security Receive"},
	{nvme_admin_sanitize_nvm, SIO_NVME_ALONE, "Sanitize destroys the data of all"},
	{nvme_admin_get_lba_status, SIO_NVME_ALLOWED, "Get LBA Status"},
};

/* Set Features. */
static const struct entry features[] = {
	{NVME_FEAT_FID_ARBITRATION, SIO_NVME_CONFIRM,
	 "arbitration shares the drive among all clients"},
	{NVME_FEAT_FID_POWER_MGMT, SIO_NVME_CONFIRM, "a power state is all clients'"},
	{NVME_FEAT_FID_LBA_RANGE, SIO_NVME_CONFIRM, "types of ranges are all clients'"},
	{NVME_FEAT_FID_TEMP_THRESH, SIO_NVME_CONFIRM, "thresholds are all clients'"},
	{NVME_FEAT_FID_ERR_RECOVERY, SIO_NVME_CONFIRM, "error recovery is all clients'"},
	{NVME_FEAT_FID_VOLATILE_WC, SIO_NVME_CONFIRM, "the write cache is all clients'"},
	{NVME_FEAT_FID_NUM_QUEUES, SIO_NVME_REFUSED, "the number of queues is the manager's"},
	{NVME_FEAT_FID_IRQ_COALESCE, SIO_NVME_CONFIRM, "interrupts are delayed for all clients"},
	{NVME_FEAT_FID_IRQ_CONFIG, SIO_NVME_CONFIRM, "a vector may be another client's"},
	{NVME_FEAT_FID_WRITE_ATOMIC, SIO_NVME_CONFIRM, "write atomicity is all clients'"},
	{NVME_FEAT_FID_ASYNC_EVENT, SIO_NVME_REFUSED, "the manager takes no events"},
	{NVME_FEAT_FID_AUTO_PST, SIO_NVME_CONFIRM, "power states are all clients'"},
	{NVME_FEAT_FID_HOST_MEM_BUF, SIO_NVME_REFUSED,
	 "memory for the drive is the manager's to give"},
	{NVME_FEAT_FID_TIMESTAMP, SIO_NVME_CONFIRM, "the drive's clock is all clients'"},
	{NVME_FEAT_FID_KATO, SIO_NVME_REFUSED, "a timer would reset the drive under all clients"},
	{NVME_FEAT_FID_HCTM, SIO_NVME_CONFIRM, "the temperature is all clients'"},
	{NVME_FEAT_FID_SW_PROGRESS, SIO_NVME_CONFIRM,
	 "the software's progress marker is all clients'"},
	{NVME_FEAT_FID_WRITE_PROTECT, SIO_NVME_ALONE, "write protection is for all clients"},
};

static const struct entry *find(const struct entry *table, size_t n, uint32_t code)
{
	for (size_t i = 0; i < n; i++)
		if (table[i].code == code)
			return &table[i];
	return NULL;
}
#define FIND(table, code) find(table, sizeof(table) / sizeof(table[0]), code)

enum sio_nvme_verdict sio_nvme_rule(const struct sio_nvme_wire_admin *c, const char **ret_why)
{
	const struct entry *e;

	if (c->opcode == nvme_admin_set_features) {
		e = FIND(features, FEATURE(c->cdw[0]));
		if (!e && FEATURE(c->cdw[0]) >= VENDOR_FEATURE) {
			*ret_why = "a vendor's feature";
			return SIO_NVME_VENDOR;
		}
	} else {
		e = FIND(commands, c->opcode);
		if (!e && c->opcode >= VENDOR_OPCODE && c->opcode <= 0xff) {
			*ret_why = "a vendor's command";
			return SIO_NVME_VENDOR;
		}
	}
	*ret_why = e ? e->why : "the manager does not know what it would do to other clients";
	return e ? e->verdict : SIO_NVME_REFUSED;
}

/* How many bytes the drive will move; 0: none, or not more than a page by its nature. */
static uint64_t moves(const struct sio_nvme_wire_admin *c)
{
	switch (c->opcode) {
	case nvme_admin_get_log_page:
		return 4 * ((((uint64_t)c->cdw[1] & 0xffff) << 16 | c->cdw[0] >> 16) + 1);
	case nvme_admin_directive_send:
	case nvme_admin_directive_recv:
		return 4 * ((uint64_t)c->cdw[0] + 1);
	case nvme_admin_security_send:
	case nvme_admin_security_recv:
		return c->cdw[1];
	case nvme_admin_get_lba_status:
		return 4 * ((uint64_t)c->cdw[2] + 1);
	default:
		return c->opcode >= VENDOR_OPCODE ? 4 * (uint64_t)c->cdw[0] : 0;
	}
}

bool sio_nvme_rule_data(const struct sio_nvme_wire_admin *c, const char **ret_why)
{
	/* Bits 1 and 0 of an opcode are the direction: NVMe 1.4, section 4.2. */
	const bool to_drive = c->flags & SIO_NVME_ADMIN_TO_DRIVE;

	if (c->flags & ~(SIO_NVME_ADMIN_TO_DRIVE | SIO_NVME_ADMIN_CONFIRMED))
		*ret_why = "it has flags that the manager does not know";
	else if (c->bytes > SIO_NVME_ADMIN_BYTES)
		*ret_why = "it has more than 4096 bytes of data";
	else if (c->bytes && !(c->opcode & (to_drive ? 1 : 2)))
		*ret_why = "its opcode does not move data in that direction";
	else if (moves(c) > SIO_NVME_ADMIN_BYTES)
		*ret_why = "it moves more than 4096 bytes";
	else if (c->timeout_ms > SIO_NVME_ADMIN_MS_MOST)
		*ret_why = "more than 600000 ms for a command";
	else
		return true;
	return false;
}

bool sio_nvme_rule_changes_namespaces(const struct sio_nvme_wire_admin *c)
{
	return c->opcode == nvme_admin_format_nvm || c->opcode == nvme_admin_sanitize_nvm ||
	       c->opcode >= VENDOR_OPCODE;
}
