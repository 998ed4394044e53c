/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal to borrower/: the handlers of clients' requests and of lenders' notifications. */
#ifndef SMARTIOD_BORROWER_REQUESTS_H
#define SMARTIOD_BORROWER_REQUESTS_H

#include "smartiod/base/peer.h"
#include "smartiod/base/session.h"

SIO_CLIENT_BORROWER(SMARTIOD_CLIENT_FN)
SIO_PEER_BORROWER(SMARTIOD_PEER_FN)

#endif
