/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal to segment/: the handlers of requests of clients and peers. */
#ifndef SMARTIOD_SEGMENT_REQUESTS_H
#define SMARTIOD_SEGMENT_REQUESTS_H

#include "smartiod/base/peer.h"
#include "smartiod/base/session.h"

SIO_CLIENT_SEGMENT(SMARTIOD_CLIENT_FN)
SIO_PEER_SEGMENT(SMARTIOD_PEER_FN)

#endif
