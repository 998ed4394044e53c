/* SPDX-License-Identifier: BSD-2-Clause */
/* The first message of a session, HELLO, and the last. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "smartiod/daemon/dispatch.h"
#include "smartiod/restart/restore.h"

bool smartiod_refused_lately(struct smartiod *d)
{
	return d->refused.at &&
	       d->ops->now(d->ctx) - d->refused.at < SIO_REFUSED_RECENT_S * 1000000000ull;
}

int smartiod_hello(struct smartiod *d, struct smartiod_session *s, const void *msg,
		   struct sio_err *reterr)
{
	const struct sio_msg_hello *m = msg;
	uint32_t version = sio_from_le32(m->version);

	if (version != SIO_CLIENT_VERSION) {
		d->refused = (struct smartiod_refused){
			.at = d->ops->now(d->ctx), .pid = s->pid, .version = version};
		return sio_fail(reterr, -EPROTO,
				"the program's library speaks version %u of the protocol, smartiod "
				"%u: %s is older",
				version, SIO_CLIENT_VERSION,
				version < SIO_CLIENT_VERSION ? "the library" : "smartiod");
	}
	if (m->reserved)
		return sio_fail(reterr, -EINVAL, "request HELLO: reserved is %#x, 0 is right",
				sio_from_le32(m->reserved));
	s->version = version;
	s->kind = sio_from_le32(m->kind);
	if (s->kind < SIO_CLIENT_LIBRARY || s->kind > SIO_CLIENT_KEEPER)
		return sio_fail(reterr, -EINVAL, "client kind %u is not known", s->kind);
	if (s->request_fd >= 0)
		return smartiod_hello_again(d, s, msg, reterr);
	if (smartiod_recovering(d))
		return smartiod_hello_later(d, s, msg, reterr);
	return smartiod_hello_now(d, s, msg, reterr);
}

int smartiod_bye(struct smartiod *d, struct smartiod_session *s, const void *msg,
		 struct sio_err *reterr)
{
	(void)reterr;
	s->bye = true;
	smartiod_reply_ok(d, s, msg);
	return 0;
}
