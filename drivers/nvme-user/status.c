/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of completion statuses. Source: NVM Express Base Specification 1.4, section 4.6.1.2. */
#include <nvme/types.h>

#include <stdio.h>

#include "smartio/nvme.h"

struct text {
	uint32_t code;
	const char *text;
};

static const struct text generic[] = {
	{NVME_SC_SUCCESS, "success"},
	{NVME_SC_INVALID_OPCODE, "invalid command opcode"},
	{NVME_SC_INVALID_FIELD, "invalid field in command"},
	{NVME_SC_CMDID_CONFLICT, "command identifier conflict"},
	{NVME_SC_DATA_XFER_ERROR, "data transfer error"},
	{NVME_SC_POWER_LOSS, "aborted by power loss"},
	{NVME_SC_INTERNAL, "internal error"},
	{NVME_SC_ABORT_REQ, "aborted by request"},
	{NVME_SC_ABORT_QUEUE, "aborted by deletion of the submission queue"},
	{NVME_SC_INVALID_NS, "invalid namespace or format"},
	{NVME_SC_CMD_SEQ_ERROR, "command sequence error"},
	{NVME_SC_PRP_INVALID_OFFSET, "invalid PRP offset"},
	{NVME_SC_OP_DENIED, "operation denied"},
	{NVME_SC_NS_WRITE_PROTECTED, "namespace is write-protected"},
	{NVME_SC_LBA_RANGE, "LBA out of range"},
	{NVME_SC_CAP_EXCEEDED, "capacity exceeded"},
	{NVME_SC_NS_NOT_READY, "namespace not ready"},
	{NVME_SC_RESERVATION_CONFLICT, "reservation conflict"},
	{NVME_SC_FORMAT_IN_PROGRESS, "format in progress"},
};

static const struct text specific[] = {
	{NVME_SC_CQ_INVALID, "completion queue invalid"},
	{NVME_SC_QID_INVALID, "invalid queue identifier"},
	{NVME_SC_QUEUE_SIZE, "invalid queue size"},
	{NVME_SC_INVALID_VECTOR, "invalid interrupt vector"},
	{NVME_SC_INVALID_LOG_PAGE, "invalid log page"},
	{NVME_SC_INVALID_QUEUE, "invalid queue deletion"},
	{NVME_SC_FEATURE_NOT_SAVEABLE, "feature identifier not saveable"},
	{NVME_SC_FEATURE_NOT_CHANGEABLE, "feature not changeable"},
	{NVME_SC_BAD_ATTRIBUTES, "conflicting attributes"},
	{NVME_SC_READ_ONLY, "attempted write to read-only range"},
};

static const struct text media[] = {
	{NVME_SC_WRITE_FAULT, "write fault"},
	{NVME_SC_READ_ERROR, "unrecovered read error"},
	{NVME_SC_GUARD_CHECK, "end-to-end guard check error"},
	{NVME_SC_COMPARE_FAILED, "compare failure"},
	{NVME_SC_ACCESS_DENIED, "access denied"},
	{NVME_SC_UNWRITTEN_BLOCK, "deallocated or unwritten block"},
};

static const struct {
	const char *name;
	const struct text *texts;
	unsigned count;
} types[] = {
	{"generic", generic, sizeof(generic) / sizeof(generic[0])},
	{"command-specific", specific, sizeof(specific) / sizeof(specific[0])},
	{"media", media, sizeof(media) / sizeof(media[0])},
};

const char *smartio_nvme_status_string(uint32_t status)
{
	static __thread char unknown[48];
	uint32_t sct = status >> 8, sc = status & 0xff;

	if (sct < sizeof(types) / sizeof(types[0])) {
		for (unsigned i = 0; i < types[sct].count; i++)
			if (types[sct].texts[i].code == sc)
				return types[sct].texts[i].text;
		snprintf(unknown, sizeof(unknown), "%s status %#04x", types[sct].name, sc);
	} else {
		snprintf(unknown, sizeof(unknown), "status type %u code %#04x", sct, sc);
	}
	return unknown;
}
