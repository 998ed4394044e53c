/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files about queries. */
#ifndef SISCI_QUERY_H
#define SISCI_QUERY_H

#include "sisci/base/library.h"

/* Refusals: SCI_ERR_ILLEGAL_QUERY, SCI_ERR_NOT_SUPPORTED. */
int sio_query_no_such(unsigned command, unsigned subcommand, struct sio_err *err);
int sio_query_not_answered(unsigned subcommand, struct sio_err *err);

/* adapter.c */
int sio_query_adapter(struct sio_library *lib, const sci_query_adapter_t *q, struct sio_err *err);
int sio_query_dma(struct sio_library *lib, const sci_query_dma_t *q, struct sio_err *err);

#endif
