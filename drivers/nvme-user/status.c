/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts of completion statuses. Source: NVM Express Base Specification 1.4, section 4.6.1.2, and
 * 2.0.
 */
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
	{NVME_SC_FUSED_FAIL, "aborted: the other fused command failed"},
	{NVME_SC_FUSED_MISSING, "aborted: the other fused command is missing"},
	{NVME_SC_INVALID_NS, "invalid namespace or format"},
	{NVME_SC_CMD_SEQ_ERROR, "command sequence error"},
	{NVME_SC_SGL_INVALID_LAST, "invalid SGL segment descriptor"},
	{NVME_SC_SGL_INVALID_COUNT, "invalid number of SGL descriptors"},
	{NVME_SC_SGL_INVALID_DATA, "data SGL length invalid"},
	{NVME_SC_SGL_INVALID_METADATA, "metadata SGL length invalid"},
	{NVME_SC_SGL_INVALID_TYPE, "SGL descriptor type invalid"},
	{NVME_SC_CMB_INVALID_USE, "invalid use of controller memory buffer"},
	{NVME_SC_PRP_INVALID_OFFSET, "invalid PRP offset"},
	{NVME_SC_AWU_EXCEEDED, "atomic write unit exceeded"},
	{NVME_SC_OP_DENIED, "operation denied"},
	{NVME_SC_SGL_INVALID_OFFSET, "SGL offset invalid"},
	{NVME_SC_HOSTID_FORMAT, "host identifier inconsistent format"},
	{NVME_SC_KAT_EXPIRED, "keep alive timer expired"},
	{NVME_SC_KAT_INVALID, "keep alive timeout invalid"},
	{NVME_SC_CMD_ABORTED_PREMEPT, "aborted by preempt and abort"},
	{NVME_SC_SANITIZE_FAILED, "sanitize failed"},
	{NVME_SC_SANITIZE_IN_PROGRESS, "sanitize in progress"},
	{NVME_SC_SGL_INVALID_GRANULARITY, "SGL data block granularity invalid"},
	{NVME_SC_CMD_IN_CMBQ_NOT_SUPP,
	 "command not supported for queue in controller memory buffer"},
	{NVME_SC_NS_WRITE_PROTECTED, "namespace is write-protected"},
	{NVME_SC_CMD_INTERRUPTED, "command interrupted"},
	{NVME_SC_TRAN_TPORT_ERROR, "transient transport error"},
	{NVME_SC_PROHIBITED_BY_CMD_AND_FEAT, "command prohibited by command and feature lockdown"},
	{NVME_SC_ADMIN_CMD_MEDIA_NOT_READY, "admin command media not ready"},
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
	{NVME_SC_ABORT_LIMIT, "abort command limit exceeded"},
	{NVME_SC_ASYNC_LIMIT, "asynchronous event request limit exceeded"},
	{NVME_SC_FIRMWARE_SLOT, "invalid firmware slot"},
	{NVME_SC_FIRMWARE_IMAGE, "invalid firmware image"},
	{NVME_SC_INVALID_VECTOR, "invalid interrupt vector"},
	{NVME_SC_INVALID_LOG_PAGE, "invalid log page"},
	{NVME_SC_INVALID_FORMAT, "invalid format"},
	{NVME_SC_FW_NEEDS_CONV_RESET, "firmware activation requires conventional reset"},
	{NVME_SC_INVALID_QUEUE, "invalid queue deletion"},
	{NVME_SC_FEATURE_NOT_SAVEABLE, "feature identifier not saveable"},
	{NVME_SC_FEATURE_NOT_CHANGEABLE, "feature not changeable"},
	{NVME_SC_FEATURE_NOT_PER_NS, "feature not namespace specific"},
	{NVME_SC_FW_NEEDS_SUBSYS_RESET, "firmware activation requires NVM subsystem reset"},
	{NVME_SC_FW_NEEDS_RESET, "firmware activation requires controller level reset"},
	{NVME_SC_FW_NEEDS_MAX_TIME, "firmware activation requires maximum time violation"},
	{NVME_SC_FW_ACTIVATE_PROHIBITED, "firmware activation prohibited"},
	{NVME_SC_OVERLAPPING_RANGE, "overlapping range"},
	{NVME_SC_NS_INSUFFICIENT_CAP, "namespace insufficient capacity"},
	{NVME_SC_NS_ID_UNAVAILABLE, "namespace identifier unavailable"},
	{NVME_SC_NS_ALREADY_ATTACHED, "namespace already attached"},
	{NVME_SC_NS_IS_PRIVATE, "namespace is private"},
	{NVME_SC_NS_NOT_ATTACHED, "namespace not attached"},
	{NVME_SC_THIN_PROV_NOT_SUPP, "thin provisioning not supported"},
	{NVME_SC_CTRL_LIST_INVALID, "controller list invalid"},
	{NVME_SC_SELF_TEST_IN_PROGRESS, "device self-test in progress"},
	{NVME_SC_BP_WRITE_PROHIBITED, "boot partition write prohibited"},
	{NVME_SC_INVALID_CTRL_ID, "invalid controller identifier"},
	{NVME_SC_INVALID_SEC_CTRL_STATE, "invalid secondary controller state"},
	{NVME_SC_INVALID_CTRL_RESOURCES, "invalid number of controller resources"},
	{NVME_SC_INVALID_RESOURCE_ID, "invalid resource identifier"},
	{NVME_SC_PMR_SAN_PROHIBITED,
	 "sanitize prohibited while persistent memory region is enabled"},
	{NVME_SC_ANA_GROUP_ID_INVALID, "ANA group identifier invalid"},
	{NVME_SC_ANA_ATTACH_FAILED, "ANA attach failed"},
	{NVME_SC_BAD_ATTRIBUTES, "conflicting attributes"},
	{NVME_SC_INVALID_PI, "invalid protection information"},
	{NVME_SC_READ_ONLY, "attempted write to read-only range"},
	{NVME_SC_CMD_SIZE_LIMIT_EXCEEDED, "command size limit exceeded"},
};

static const struct text media[] = {
	{NVME_SC_WRITE_FAULT, "write fault"},
	{NVME_SC_READ_ERROR, "unrecovered read error"},
	{NVME_SC_GUARD_CHECK, "end-to-end guard check error"},
	{NVME_SC_APPTAG_CHECK, "end-to-end application tag check error"},
	{NVME_SC_REFTAG_CHECK, "end-to-end reference tag check error"},
	{NVME_SC_COMPARE_FAILED, "compare failure"},
	{NVME_SC_ACCESS_DENIED, "access denied"},
	{NVME_SC_UNWRITTEN_BLOCK, "deallocated or unwritten block"},
	{NVME_SC_STORAGE_TAG_CHECK, "end-to-end storage tag check error"},
};

static const struct text path[] = {
	{NVME_SC_ANA_INTERNAL_PATH_ERROR, "internal path error"},
	{NVME_SC_ANA_PERSISTENT_LOSS, "asymmetric access persistent loss"},
	{NVME_SC_ANA_INACCESSIBLE, "asymmetric access inaccessible"},
	{NVME_SC_ANA_TRANSITION, "asymmetric access transition"},
	{NVME_SC_CTRL_PATH_ERROR, "controller pathing error"},
	{NVME_SC_HOST_PATH_ERROR, "host pathing error"},
	{NVME_SC_CMD_ABORTED_BY_HOST, "command aborted by host"},
};

static const struct {
	const char *name;
	const struct text *texts;
	unsigned count;
} types[] = {
	{"generic", generic, sizeof(generic) / sizeof(generic[0])},
	{"command-specific", specific, sizeof(specific) / sizeof(specific[0])},
	{"media", media, sizeof(media) / sizeof(media[0])},
	{"path", path, sizeof(path) / sizeof(path[0])},
};

const char *smartio_nvme_status_string(uint32_t status)
{
	static __thread char unknown[48];
	uint32_t sct = status >> 8, sc = status & 0xff;

	if (status == SMARTIO_NVME_LOST)
		return "lost with its queue";
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
