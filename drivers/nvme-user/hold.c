/* SPDX-License-Identifier: BSD-2-Clause */
#include "hold.h"

#include "protocol.h"
#include "smartio/ext.h"

#define LOOK_NS 1000000000ull
/* Where no link is down what is refused is not likely to change: each time twice as long. */
#define LAST_LOOK_NS (64 * LOOK_NS)

static bool is_borrowed(const struct sio_nvme_hold *h)
{
	return h->d.handle && !smartio_device_lost(h->d.handle);
}

/* Over an adapter that @d does not go over. */
static bool is_apart(const struct sio_nvme_hold *h, const struct sio_nvme_device *d)
{
	return is_borrowed(h) && h->d.adapter != d->adapter;
}

/* @ret_down: a link is, over which it could be. */
static bool borrow_over(const struct sio_nvme_device *d, struct sio_nvme_device *ret,
			bool *ret_down)
{
	sci_error_t err;

	*ret = *d;
	*ret_down = false;
	for (unsigned i = 0; i < DIS_MAX_NSCIS; i++) {
		if (i == d->adapter)
			continue;
		smartio_borrow_device_over(d->sd, &ret->handle, d->fdid, i, 0, &err);
		if (err == SCI_ERR_NO_SUCH_ADAPTERNO)
			return false;
		*ret_down |= err == SCI_ERR_NO_LINK_ACCESS || err == SCI_ERR_NO_REMOTE_LINK_ACCESS;
		if (err != SCI_ERR_OK)
			continue;
		ret->adapter = i;
		ret->over = i + 1;
		return true;
	}
	return false;
}

/*
 * The one before goes when the next is there, so that the drive is not without. After a return it
 * goes over the path that the manager has now; that is still better than none.
 */
static void borrow(struct sio_nvme_hold *h, const struct sio_nvme_device *d)
{
	struct sio_nvme_device other;
	bool down, made = borrow_over(d, &other, &down);

	h->pause_ns = made || down ? LOOK_NS : 2 * h->pause_ns;
	if (h->pause_ns > LAST_LOOK_NS)
		h->pause_ns = LAST_LOOK_NS;
	if (!made)
		return;
	sio_nvme_hold_end(h);
	h->d = other;
}

void sio_nvme_hold_look(struct sio_nvme_hold *h, const struct sio_nvme_device *d)
{
	uint64_t now;

	/* No link can part a manager from a drive of its own host. */
	if (sio_nvme_hold_is_made(h, d) || d->lender == d->node)
		return;
	now = smartio_now_ns();
	if (now < h->look_at)
		return;
	if (!h->pause_ns)
		h->pause_ns = LOOK_NS;
	if (!is_apart(h, d))
		borrow(h, d);
	h->look_at = now + h->pause_ns;
	/* With the lender, whom all who look for it reach. */
	if (is_borrowed(h) && !h->mark.segment)
		sio_nvme_shared_make(&h->d, SIO_NVME_HOLD_SEGMENT, SIO_NVME_PAGE,
				     SCI_FLAG_DEVICE_SIDE_ONLY, &h->mark);
}

bool sio_nvme_hold_is_made(const struct sio_nvme_hold *h, const struct sio_nvme_device *d)
{
	return is_apart(h, d) && h->mark.segment;
}

void sio_nvme_hold_end(struct sio_nvme_hold *h)
{
	sio_nvme_shared_close(&h->mark);
	sio_nvme_device_return(&h->d);
}

bool sio_nvme_hold_is_seen(struct sio_nvme_device *d)
{
	return sio_nvme_shared_exists(d, SIO_NVME_HOLD_SEGMENT);
}
