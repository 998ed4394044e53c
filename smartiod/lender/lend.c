/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of the lender: which borrower sent the request, and how it is answered, in this daemon
 * or in another.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smartiod/lender/lend.h"

void *smartiod_lend_new(struct smartiod *d, const struct smartiod_from *from, const void *request,
			size_t size, struct smartiod_loan *loan, smartiod_step *step,
			struct sio_err *reterr)
{
	struct smartiod_lend *lend;

	if (from->back)
		lend = smartiod_op_new(d, NULL, request, size, step, reterr);
	else
		lend = smartiod_op_new_peer(d, from->node, request, size, step, reterr);
	if (!lend)
		return NULL;
	lend->from = *from;
	lend->loan = loan;
	if (loan)
		loan->pins++;
	return lend;
}

void smartiod_lend_take_over(struct smartiod_lend *lend, const struct smartiod_from *from,
			     const void *request)
{
	const struct sio_msg *h = request;

	lend->from = *from;
	lend->op.asker = from->node;
	lend->op.id = sio_from_le32(h->id);
}

static void lend_free(struct smartiod *d, struct smartiod_lend *lend)
{
	struct smartiod_loan *loan = lend->loan;

	smartiod_op_free(d, &lend->op);
	if (loan)
		smartiod_loan_unpin(d, loan);
}

void smartiod_lend_done(struct smartiod *d, struct smartiod_lend *lend, void *msg, size_t len,
			const int *fds, unsigned n_fds)
{
	struct smartiod_op *back = lend->from.back;
	int copy[SIO_WIRE_MAX_FDS];
	struct smartiod_answer a = {
		.text = "", .msg = msg, .len = len, .fds = copy, .n_fds = n_fds};

	if (!back)
		smartiod_op_reply(d, &lend->op, msg, len, NULL, 0);
	lend_free(d, lend);
	if (!back)
		return;
	/* The asker here looks at the descriptors and takes none. */
	if (n_fds)
		memcpy(copy, fds, n_fds * sizeof(*fds));
	smartiod_op_step(d, back, &a);
}

void smartiod_lend_ok(struct smartiod *d, struct smartiod_lend *lend)
{
	struct sio_msg msg = {.size = sio_to_le32(sizeof(msg))};

	smartiod_lend_done(d, lend, &msg, sizeof(msg), NULL, 0);
}

void smartiod_lend_fail(struct smartiod *d, struct smartiod_lend *lend, int error, const char *fmt,
			...)
{
	struct smartiod_op *back = lend->from.back;
	char text[SIO_WIRE_TEXT];
	struct smartiod_answer a = {.error = error, .text = text};
	va_list ap;

	/*
	 * It went while we were at it: the program hears that it has lost it, whatever failed
	 * first.
	 */
	if (error == -ENODEV || (lend->loan && lend->loan->lost))
		a.error = error = -ENOTCONN;
	a.reason = smartiod_op_reason(&lend->op, error);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!back)
		smartiod_op_error(d, &lend->op, error, "%s", text);
	lend_free(d, lend);
	if (back)
		smartiod_op_step(d, back, &a);
}
