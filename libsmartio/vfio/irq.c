/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts: SET_IRQS gives each vector of MSI-X an eventfd of the peer's, or takes it back. */
#include <errno.h>
#include <inttypes.h>

#include "vfio/inside.h"

/* Before it is closed: what the function signals by itself. */
static void tell(struct sio_vfio_session *s, const struct sio_vfio_vector *v, int fd)
{
	if (s->function_ops->vector_changed && v != &s->request)
		s->function_ops->vector_changed(s->function, (unsigned)(v - s->vector), fd);
}

static void give_back(struct sio_vfio_session *s, struct sio_vfio_vector *v)
{
	if (v->fd >= 0) {
		tell(s, v, -1);
		s->ops->close(s->ctx, v->fd);
	}
	*v = (struct sio_vfio_vector){.fd = -1};
}

void sio_vfio_irqs_end(struct sio_vfio_session *s)
{
	for (unsigned i = 0; i < SIO_VFIO_VECTORS; i++)
		give_back(s, &s->vector[i]);
	give_back(s, &s->request);
}

void sio_vfio_session_request(struct sio_vfio_session *s)
{
	if (s->request.fd >= 0)
		s->ops->signal(s->ctx, s->request.fd);
}

void sio_vfio_session_interrupt(struct sio_vfio_session *s, unsigned vector)
{
	struct sio_vfio_vector *v;

	if (vector >= s->n_vectors)
		return;
	v = &s->vector[vector];
	if (v->masked)
		v->pending = true;
	else if (v->fd >= 0)
		s->ops->signal(s->ctx, v->fd);
}

static void set_mask(struct sio_vfio_session *s, unsigned vector, bool mask)
{
	struct sio_vfio_vector *v = &s->vector[vector];

	if (s->function_ops->vector_changed && v->fd >= 0 && v->masked != mask) {
		tell(s, v, mask ? -1 : v->fd);
		v->pending |=
			!mask; /* what it sent meanwhile is not known: one too many is heard */
	}
	v->masked = mask;
	if (mask || !v->pending)
		return;
	v->pending = false;
	sio_vfio_session_interrupt(s, vector);
}

static void act(struct sio_vfio_session *s, unsigned vector, uint32_t action)
{
	if (action == SIO_VFIO_SET_TRIGGER)
		sio_vfio_session_interrupt(s, vector);
	else
		set_mask(s, vector, action == SIO_VFIO_SET_MASK);
}

/* @fd: NULL: none. */
static void set_eventfd(struct sio_vfio_session *s, struct sio_vfio_vector *v, int *fd)
{
	int old = v->fd;

	v->fd = -1;
	if (fd) {
		v->fd = *fd;
		*fd = -1;
	}
	if (!v->masked && (old >= 0 || v->fd >= 0))
		tell(s, v, v->fd);
	if (old >= 0)
		s->ops->close(s->ctx, old);
}

static int set_eventfds(struct sio_vfio_session *s, const struct sio_vfio_irq_set *set, int *fds,
			unsigned n_fds, struct sio_err *reterr)
{
	if (!(set->flags & SIO_VFIO_SET_TRIGGER))
		return sio_fail(reterr, -EOPNOTSUPP,
				"DEVICE_SET_IRQS: masks by eventfd are not served");
	if (n_fds != 0 && n_fds != set->count)
		return sio_fail(reterr, -EINVAL,
				"DEVICE_SET_IRQS: %u descriptors; none or the count, %" PRIu32
				", is right",
				n_fds, set->count);
	for (uint32_t i = 0; i < n_fds; i++)
		if (!s->ops->is_event(s->ctx, fds[i]))
			return sio_fail(reterr, -EINVAL,
					"DEVICE_SET_IRQS: a descriptor that is no eventfd");
	for (uint32_t i = 0; i < set->count; i++)
		set_eventfd(s,
			    set->index == SIO_VFIO_REQ ? &s->request : &s->vector[set->start + i],
			    n_fds ? &fds[i] : NULL);
	return 0;
}

int sio_vfio_irqs_set(struct sio_vfio_session *s, const struct sio_vfio_message *m, int *fds,
		      unsigned n_fds, struct sio_err *reterr)
{
	const struct sio_vfio_irq_set *set = &m->set;
	uint32_t data = set->flags & SIO_VFIO_SET_DATA, action = set->flags & SIO_VFIO_SET_ACTION;
	uint32_t n = set->index == SIO_VFIO_MSIX  ? s->n_vectors
		     : set->index == SIO_VFIO_REQ ? s->function_ops->requests
						  : 0;

	if (set->index >= SIO_VFIO_IRQS)
		return sio_fail(reterr, -EINVAL,
				"DEVICE_SET_IRQS: kind %" PRIu32 ", 0 to %d is right", set->index,
				SIO_VFIO_IRQS - 1);
	if (set->start > n || set->count > n - set->start)
		return sio_fail(reterr, -EINVAL,
				"DEVICE_SET_IRQS: interrupts %" PRIu32 " to %" PRIu32
				" of kind %" PRIu32 ", which has %" PRIu32,
				set->start, set->start + set->count - 1, set->index, n);
	if (data == SIO_VFIO_SET_EVENTFD)
		return set_eventfds(s, set, fds, n_fds, reterr);
	if (data == SIO_VFIO_SET_NONE && action == SIO_VFIO_SET_TRIGGER && set->count == 0) {
		/* All of them are off. */
		for (uint32_t i = 0; i < n; i++)
			give_back(s, set->index == SIO_VFIO_REQ ? &s->request : &s->vector[i]);
		return 0;
	}
	if (set->index == SIO_VFIO_REQ)
		return sio_fail(reterr, -EOPNOTSUPP,
				"DEVICE_SET_IRQS: requests are given an eventfd, or none");
	for (uint32_t i = 0; i < set->count; i++)
		if (data == SIO_VFIO_SET_NONE || m->data[i])
			act(s, set->start + i, action);
	return 0;
}
