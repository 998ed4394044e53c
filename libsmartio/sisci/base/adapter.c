/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters, as smartiod describes them. */
#include "sisci/base/library.h"

int sio_ask_adapter(struct sio_library *lib, unsigned adapter, struct sio_rep_adapter *rep,
		    struct sio_err *err)
{
	struct sio_msg_adapter req = {.adapter = sio_to_le32(adapter)};
	int rc = sio_check_adapter(lib, adapter, err);

	if (rc)
		return rc;
	return sio_ask(lib, SIO_MSG_ADAPTER, &req, sizeof(req), rep, sizeof(*rep), err);
}

int sio_need_engine(const struct sio_rep_adapter *rep, unsigned adapter, struct sio_err *err)
{
	if (sio_from_le32(rep->flags) & SIO_ADAPTER_DMA)
		return 0;
	return sio_refuse(err, SCI_ERR_DMA_NOT_AVAILABLE, "adapter %u has no DMA engine", adapter);
}
