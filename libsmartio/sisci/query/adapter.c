/* SPDX-License-Identifier: BSD-2-Clause */
/* SCI_Q_ADAPTER and SCI_Q_DMA. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "sisci/query/query.h"

#define BLOCK 64u /* bytes of a cache line: less than that is a partial one */
/* The engine's lengths have 64 bits; programs ask for 32. */
#define MAX_TRANSFER UINT32_MAX
/* Smaller, and a transfer costs its caller more time than the copy: docs/sisci-performance.md */
#define MIN_TRANSFER (256u << 10)

/* Counts and states, as the port reports them. false: not one of these. */
static bool reported(unsigned subcommand, const struct sio_rep_adapter *rep, unsigned *ret)
{
	switch (subcommand) {
	case SCI_Q_ADAPTER_NODEID:
		*ret = sio_from_le32(rep->node);
		return true;
	case SCI_Q_ADAPTER_BDF:
		*ret = sio_from_le32(rep->bdf);
		return true;
	case SCI_Q_ADAPTER_MCAST_MAX_GROUPS:
		*ret = sio_from_le32(rep->mcast_groups);
		return true;
	case SCI_Q_ADAPTER_LINK_OPERATIONAL:
	case SCI_Q_ADAPTER_HW_LINK_STATUS_IS_OK:
	case SCI_Q_ADAPTER_LINK_CABLE_INSERTED:
		*ret = sio_from_le32(rep->link_up) != 0;
		return true;
	case SCI_Q_ADAPTER_SERIAL_NUMBER:
		*ret = sio_from_le32(rep->serial);
		return true;
	case SCI_Q_ADAPTER_LINK_PARTNER_PORT_NO:
		*ret = sio_from_le32(rep->partner_port);
		return true;
	case SCI_Q_ADAPTER_LOCAL_SWITCH_PORT_NUMBER: /* an adapter at another's end has none */
		*ret = sio_from_le32(rep->partner_port);
		return sio_from_le32(rep->flags) & SIO_ADAPTER_AT_SWITCH;
	case SCI_Q_ADAPTER_LINK_WIDTH:
		*ret = sio_from_le32(rep->link_width);
		return true;
	case SCI_Q_ADAPTER_LINK_SPEED:
		*ret = sio_from_le32(rep->link_generation);
		return true;
	case SCI_Q_ADAPTER_CONNECTED_TO_SWITCH:
		*ret = (sio_from_le32(rep->flags) & SIO_ADAPTER_AT_SWITCH) != 0;
		return true;
	case SCI_Q_ADAPTER_ATT_PAGE_SIZE:
		*ret = (unsigned)sio_from_le64(rep->entry_size);
		return true;
	case SCI_Q_ADAPTER_ATT_NUMBER_OF_ENTRIES:
		*ret = sio_from_le32(rep->entries_total);
		return true;
	case SCI_Q_ADAPTER_ATT_AVAILABLE_ENTRIES:
		*ret = sio_from_le32(rep->entries_free);
		return true;
	default:
		return false;
	}
}

/* What is the same for every adapter here. */
static bool fixed(unsigned subcommand, unsigned adapter, unsigned *ret)
{
	switch (subcommand) {
	case SCI_Q_ADAPTER_CARD_TYPE:
		*ret = DIS_ADAPTER_TYPE_NTB;
		return true;
	case SCI_Q_ADAPTER_CONFIGURED:
	case SCI_Q_ADAPTER_NUMBER_OF_LINKS:
	case SCI_Q_ADAPTER_LINK_ENABLED:
	case SCI_Q_ADAPTER_DMA_SIZE_ALIGNMENT:
	case SCI_Q_ADAPTER_DMA_OFFSET_ALIGNMENT:
		*ret = 1;
		return true;
	case SCI_Q_ADAPTER_NUMBER:
	case SCI_Q_ADAPTER_INSTANCE_NUMBER:
		*ret = adapter;
		return true;
	case SCI_Q_ADAPTER_SUGGESTED_MIN_BLOCK_SIZE:
		*ret = BLOCK;
		return true;
	default:
		return false;
	}
}

static int adapter_value(const sci_query_adapter_t *q, const struct sio_rep_adapter *rep,
			 unsigned *ret, struct sio_err *err)
{
	if (reported(q->subcommand, rep, ret) || fixed(q->subcommand, q->localAdapterNo, ret))
		return 0;
	if (q->subcommand == SCI_Q_ADAPTER_DMA_MTU ||
	    q->subcommand == SCI_Q_ADAPTER_SUGGESTED_MIN_DMA_SIZE) {
		*ret = q->subcommand == SCI_Q_ADAPTER_DMA_MTU ? MAX_TRANSFER : MIN_TRANSFER;
		return sio_need_engine(rep, q->localAdapterNo, err);
	}
	if ((q->subcommand >= SCI_Q_ADAPTER_NODEID &&
	     q->subcommand <= SCI_Q_ADAPTER_IO_BUS_FREQUENCY) ||
	    (q->subcommand >= SCI_Q_ADAPTER_LINK_OPERATIONAL &&
	     q->subcommand <= SCI_Q_ADAPTER_LINK_PARTNER_PORT_NO))
		return sio_query_not_answered(q->subcommand, err);
	return sio_query_no_such(SCI_Q_ADAPTER, q->subcommand, err);
}

/* For how long the link has been up, or down: 0 if it is not. */
static int link_time(struct sio_library *lib, const sci_query_adapter_t *q, unsigned *ret,
		     struct sio_err *err)
{
	struct sio_msg_link req = {.adapter = sio_to_le32(q->localAdapterNo)};
	struct sio_rep_link rep;
	uint64_t seconds = 0;
	int rc = sio_check_adapter(lib, q->localAdapterNo, err);

	if (!rc)
		rc = sio_ask(lib, SIO_MSG_LINK, &req, sizeof(req), &rep, sizeof(rep), err);
	if (rc)
		return rc;
	if (!sio_from_le32(rep.up) == (q->subcommand == SCI_Q_ADAPTER_LINK_DOWNTIME))
		seconds = sio_from_le64(rep.seconds);
	*ret = seconds < UINT_MAX ? (unsigned)seconds : UINT_MAX;
	return 0;
}

static int ask_value(struct sio_library *lib, const sci_query_adapter_t *q, unsigned *ret,
		     struct sio_err *err)
{
	struct sio_rep_adapter rep;
	int rc;

	if (q->subcommand == SCI_Q_ADAPTER_LINK_UPTIME ||
	    q->subcommand == SCI_Q_ADAPTER_LINK_DOWNTIME)
		return link_time(lib, q, ret, err);
	rc = sio_ask_adapter(lib, q->localAdapterNo, &rep, err);
	return rc ? rc : adapter_value(q, &rep, ret, err);
}

int sio_query_adapter(struct sio_library *lib, const sci_query_adapter_t *q, struct sio_err *err)
{
	unsigned value = 0;
	unsigned short bdf;
	int rc = sio_check_pointer(q->data, "data", err);

	if (!rc)
		rc = ask_value(lib, q, &value, err);
	/* portNo is only set, and only looked at, for the queries about one link. */
	if (!rc && q->subcommand >= SCI_Q_ADAPTER_LINK_OPERATIONAL &&
	    q->subcommand <= SCI_Q_ADAPTER_LINK_PARTNER_PORT_NO && q->portNo != 0)
		rc = sio_fail(err, -EINVAL, "adapter %u has one link, port 0; not %u",
			      q->localAdapterNo, q->portNo);
	if (rc)
		return rc;
	bdf = (unsigned short)value;
	if (q->subcommand == SCI_Q_ADAPTER_BDF)
		memcpy(q->data, &bdf, sizeof(bdf));
	else
		memcpy(q->data, &value, sizeof(value));
	return 0;
}

/*
 * One engine serves every mode. It has as many channels as it is asked for; one is what a program
 * can count on.
 */
int sio_query_dma(struct sio_library *lib, const sci_query_dma_t *q, struct sio_err *err)
{
	static const sci_dma_capabilities_t capabilities = {
		.num_channels = 1,
		.max_transfer_size = MAX_TRANSFER,
		.max_vector_length = DIS_DMA_MAX_VECLEN,
		.support_mem2io = 1,
		.support_io2mem = 1,
		.min_align_bytes = 1,
		.suggested_align_bytes = BLOCK,
	};
	struct sio_rep_adapter rep;
	unsigned available = 0;
	int rc = sio_check_pointer(q->data, "data", err);

	if (!rc)
		rc = sio_ask_adapter(lib, q->localAdapterNo, &rep, err);
	if (rc)
		return rc;
	available = (sio_from_le32(rep.flags) & SIO_ADAPTER_DMA) != 0;
	switch (q->subcommand) {
	case SCI_Q_DMA_AVAILABLE:
		memcpy(q->data, &available, sizeof(available));
		return 0;
	case SCI_Q_DMA_CAPABILITIES:
		rc = sio_need_engine(&rep, q->localAdapterNo, err);
		if (!rc)
			memcpy(q->data, &capabilities, sizeof(capabilities));
		return rc;
	default:
		return sio_query_no_such(SCI_Q_DMA, q->subcommand, err);
	}
}
