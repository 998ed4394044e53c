/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal to lender/: the handlers of requests of clients and borrowers. */
#ifndef SMARTIOD_LENDER_REQUESTS_H
#define SMARTIOD_LENDER_REQUESTS_H

#include "smartiod/base/peer.h"
#include "smartiod/base/session.h"

SIO_CLIENT_LENDER(SMARTIOD_CLIENT_FN)
SIO_PEER_LENDER(SMARTIOD_PEER_FN)

#endif
