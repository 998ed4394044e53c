/* SPDX-License-Identifier: BSD-2-Clause */
/* Between a borrower's side and its lender's, in one daemon or in two. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smartiod/lender/lend.h"

static const struct {
	uint32_t type;
	smartiod_lend_fn *fn;
} handlers[] = {
	{SIO_PEER_BORROW, smartiod_lend_borrow},
	{SIO_PEER_RETURN, smartiod_lend_return},
	{SIO_PEER_RELEASE_EXCLUSIVE, smartiod_lend_release_exclusive},
	{SIO_PEER_BORROW_END, smartiod_lend_borrow_end},
	{SIO_PEER_DEV_SEG_CREATE, smartiod_lend_dev_seg_create},
	{SIO_PEER_DEV_SEG_LOOKUP, smartiod_lend_dev_seg_lookup},
	{SIO_PEER_DEV_SEG_END, smartiod_lend_dev_seg_end},
	{SIO_PEER_BAR_GRANT, smartiod_lend_bar_grant},
	{SIO_PEER_BAR_RELEASE, smartiod_lend_bar_release},
	{SIO_PEER_DMA_MAP, smartiod_lend_dma_map},
	{SIO_PEER_DMA_UNMAP, smartiod_lend_dma_unmap},
	{SIO_PEER_SETTLED, smartiod_lend_settled},
	{SIO_PEER_RESET, smartiod_lend_reset},
	{SIO_PEER_HOLD, smartiod_lend_hold},
	{SIO_PEER_UNHOLD, smartiod_lend_unhold},
	{SIO_PEER_VECTOR, smartiod_lend_vector},
	{SIO_PEER_UNVECTOR, smartiod_lend_unvector},
};

static int ask_ourselves(struct smartiod *d, struct smartiod_op *op, const void *msg,
			 struct sio_err *reterr)
{
	struct smartiod_from from = {.node = d->node, .back = op};
	uint32_t type = sio_from_le32(((const struct sio_msg *)msg)->type);

	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++)
		if (handlers[i].type == type)
			return handlers[i].fn(d, &from, msg, reterr);
	return sio_fail(reterr, -EPROTO, "no lender serves request %u", type);
}

void smartiod_lender_ask(struct smartiod *d, struct smartiod_op *op, uint32_t node, void *msg,
			 size_t len)
{
	struct sio_err err = {.text = "the lender cannot be reached"};
	struct smartiod_answer a = {.text = err.text};

	if (node == d->node)
		a.error = ask_ourselves(d, op, msg, &err);
	else
		a.error = smartiod_peer_ask(d, op, node, msg, len);
	if (a.error == 0)
		return;
	a.reason = sio_err_reason(&err, a.error);
	smartiod_op_step(d, op, &a);
}

void smartiod_lender_tell(struct smartiod *d, uint32_t node, void *msg, size_t len)
{
	struct sio_err err;

	if (node == d->node)
		ask_ourselves(d, NULL, msg, &err);
	else
		smartiod_peer_tell(d, node, msg, len);
}

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

void smartiod_from_reply(struct smartiod *d, const struct smartiod_from *from, const void *request,
			 void *msg, size_t len)
{
	const struct sio_msg *h = request;
	struct smartiod_answer a = {.text = "", .msg = msg, .len = len};

	if (from->back)
		smartiod_op_step(d, from->back, &a);
	else
		smartiod_peer_reply(d, from->node, sio_from_le32(h->type), sio_from_le32(h->id),
				    msg, len);
}

/* ---- the same, asked by peers ---- */

#define FROM_PEER(name)                                                                            \
	int smartiod_peer_##name(struct smartiod *d, struct smartiod_peer *p, const void *msg,     \
				 struct sio_err *reterr)                                           \
	{                                                                                          \
		struct smartiod_from from = {.node = p->node};                                     \
                                                                                                   \
		return smartiod_lend_##name(d, &from, msg, reterr);                                \
	}

FROM_PEER(borrow)
FROM_PEER(return )
FROM_PEER(release_exclusive)
FROM_PEER(borrow_end)
FROM_PEER(dev_seg_create)
FROM_PEER(dev_seg_lookup)
FROM_PEER(dev_seg_end)
FROM_PEER(bar_grant)
FROM_PEER(bar_release)
FROM_PEER(dma_map)
FROM_PEER(dma_unmap)
FROM_PEER(settled)
FROM_PEER(reset)
FROM_PEER(hold)
FROM_PEER(unhold)
FROM_PEER(vector)
FROM_PEER(unvector)
