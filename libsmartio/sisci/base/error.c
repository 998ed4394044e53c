/* SPDX-License-Identifier: BSD-2-Clause */
/* The one table from errno to SCI_ERR_*, the texts of the codes, and each thread's last error. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sisci/base/error.h"
#include "smartio/uapi.h"
#include "sisci_api.h"

static const struct {
	int number;
	sci_error_t code;
} from_errno[] = {
	{EINVAL, SCI_ERR_ILLEGAL_PARAMETER},
	{EBUSY, SCI_ERR_BUSY},
	{ENOENT, SCI_ERR_NO_SUCH_SEGMENT},
	{EEXIST, SCI_ERR_SEGMENTID_USED},
	{ENXIO, SCI_ERR_NO_SUCH_ADAPTERNO},
	{EHOSTUNREACH, SCI_ERR_NO_SUCH_NODEID},
	{ENETDOWN, SCI_ERR_NO_LINK_ACCESS},
	{ETIMEDOUT, SCI_ERR_NODE_NOT_RESPONDING},
	{ENODEV, SCI_ERR_NO_SUCH_FDID},
	{EACCES, SCI_ERR_ACCESS},
	{EPERM, SCI_ERR_ILLEGAL_OPERATION},
	{ENOSPC, SCI_ERR_HW_NOSPC},
	{ENOMEM, SCI_ERR_NOSPC},
	{EMFILE, SCI_ERR_NOSPC},
	{ENFILE, SCI_ERR_NOSPC},
	{ERANGE, SCI_ERR_OUT_OF_RANGE},
	{EOPNOTSUPP, SCI_ERR_NOT_SUPPORTED},
	{EPROTO, SCI_ERR_INCONSISTENT_VERSIONS},
	{EPROTONOSUPPORT, SCI_ERR_INCONSISTENT_VERSIONS}, /* a smartiod that was exchanged */
	{ECONNREFUSED, SCI_ERR_CONNECTION_REFUSED},
	{ENOTCONN, SCI_ERR_NOT_CONNECTED},
	{ECONNRESET, SCI_ERR_NOT_CONNECTED},
	{EBADF, SCI_ERR_ILLEGAL_PARAMETER},
	{ECANCELED, SCI_ERR_CANCELLED},
	{ESHUTDOWN, SCI_ERR_NO_LINK_ACCESS}, /* the connection to smartiod is gone */
};

sci_error_t sio_error_code(int rc)
{
	if (rc >= 0)
		return (sci_error_t)rc;
	for (size_t i = 0; i < sizeof(from_errno) / sizeof(from_errno[0]); i++)
		if (from_errno[i].number == -rc)
			return from_errno[i].code;
	return SCI_ERR_SYSTEM;
}

static __thread char last_text[SIO_ERR_TEXT + 64]; /* with what ran out */
static __thread uint32_t last_reason;
static __thread bool has_text;

/* "out of look-up entries: ..." */
void sio_error_remember(const struct sio_err *err)
{
	const char *name;

	has_text = err != NULL;
	if (!err)
		return;
	last_reason = err->reason;
	name = sio_reason_name(err->reason);
	snprintf(last_text, sizeof(last_text), "%s%s%s%.*s", *name ? "out of " : "", name,
		 *name ? ": " : "", (int)sizeof(err->text) - 1, err->text);
}

uint32_t sio_error_reason(void)
{
	return has_text ? last_reason : SIO_OUT_OF_NOTHING;
}

const char *sio_error_recall(void)
{
	return has_text ? last_text : "";
}

static const struct {
	sci_error_t code;
	const char *text;
} texts[] = {
	{SCI_ERR_OK, "OK"},
	{SCI_ERR_BUSY, "Object is busy"},
	{SCI_ERR_FLAG_NOT_IMPLEMENTED, "Flag is not implemented"},
	{SCI_ERR_ILLEGAL_FLAG, "Illegal flag"},
	{SCI_ERR_NOSPC, "Out of system resources"},
	{SCI_ERR_API_NOSPC, "Out of library resources"},
	{SCI_ERR_HW_NOSPC, "Out of hardware resources"},
	{SCI_ERR_NOT_IMPLEMENTED, "Not implemented"},
	{SCI_ERR_ILLEGAL_ADAPTERNO, "Illegal adapter number"},
	{SCI_ERR_NO_SUCH_ADAPTERNO, "No such adapter"},
	{SCI_ERR_TIMEOUT, "Timed out"},
	{SCI_ERR_OUT_OF_RANGE, "Out of range"},
	{SCI_ERR_NO_SUCH_SEGMENT, "No such segment or interrupt"},
	{SCI_ERR_ILLEGAL_NODEID, "Illegal node id"},
	{SCI_ERR_CONNECTION_REFUSED, "Connection refused"},
	{SCI_ERR_SEGMENT_NOT_CONNECTED, "Segment is not connected"},
	{SCI_ERR_SIZE_ALIGNMENT, "Illegal size"},
	{SCI_ERR_OFFSET_ALIGNMENT, "Illegal offset"},
	{SCI_ERR_ILLEGAL_PARAMETER, "Illegal parameter"},
	{SCI_ERR_MAX_ENTRIES, "Too many entries"},
	{SCI_ERR_SEGMENT_NOT_PREPARED, "Segment is not prepared"},
	{SCI_ERR_ILLEGAL_ADDRESS, "Illegal address"},
	{SCI_ERR_ILLEGAL_OPERATION, "Operation is not allowed in this state"},
	{SCI_ERR_ILLEGAL_QUERY, "Illegal query"},
	{SCI_ERR_SEGMENTID_USED, "Segment id is in use"},
	{SCI_ERR_SYSTEM, "System error"},
	{SCI_ERR_CANCELLED, "Cancelled"},
	{SCI_ERR_NOT_CONNECTED, "Not connected"},
	{SCI_ERR_NOT_AVAILABLE, "Not available"},
	{SCI_ERR_INCONSISTENT_VERSIONS, "Versions do not match"},
	{SCI_ERR_COND_INT_RACE_PROBLEM, "Conditional interrupt raced with a trigger"},
	{SCI_ERR_OVERFLOW, "Overflow"},
	{SCI_ERR_NOT_INITIALIZED, "Not initialized"},
	{SCI_ERR_ACCESS, "No access"},
	{SCI_ERR_NOT_SUPPORTED, "Not supported"},
	{SCI_ERR_DEPRECATED, "Deprecated"},
	{SCI_ERR_DMA_NOT_AVAILABLE, "DMA mode is not available"},
	{SCI_ERR_DMA_DISABLED, "DMA mode is disabled"},
	{SCI_ERR_NO_SUCH_FDID, "No such device"},
	{SCI_ERR_INTNO_USED, "Interrupt number is in use"},
	{SCI_ERR_NO_SUCH_NODEID, "No such node"},
	{SCI_ERR_NODE_NOT_RESPONDING, "Node does not respond"},
	{SCI_ERR_NO_REMOTE_LINK_ACCESS, "Remote link is down"},
	{SCI_ERR_NO_LINK_ACCESS, "Link is down"},
	{SCI_ERR_TRANSFER_FAILED, "Transfer failed"},
	{SCI_ERR_REMOTE_BUSY, "Remote host is busy"},
	{SCI_ERR_SEMAPHORE_COUNT_EXCEEDED, "Semaphore count exceeded"},
	{SCI_ERR_IRQL_ILLEGAL, "Illegal interrupt level"},
	{SCI_ERR_LOCAL_BUSY, "Local host is busy"},
	{SCI_ERR_ALL_BUSY, "All hosts are busy"},
};

const char *SCIGetErrorString(sci_error_t code)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].code == code)
			return texts[i].text;
	return "Unknown error code";
}
