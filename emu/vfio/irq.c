/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts: SET_IRQS gives each vector of MSI-X an eventfd of the peer's, or takes it back. */
#include <errno.h>
#include <inttypes.h>

#include "emu/vfio/inside.h"

static void give_back(struct emu_vfio_session *s, struct emu_vfio_vector *v)
{
	if (v->fd >= 0)
		s->ops->close(s->ctx, v->fd);
	*v = (struct emu_vfio_vector){.fd = -1};
}

void emu_vfio_irqs_end(struct emu_vfio_session *s)
{
	for (unsigned i = 0; i < EMU_VFIO_VECTORS; i++)
		give_back(s, &s->vector[i]);
}

void emu_vfio_session_interrupt(struct emu_vfio_session *s, unsigned vector)
{
	struct emu_vfio_vector *v;

	if (vector >= s->n_vectors)
		return;
	v = &s->vector[vector];
	if (v->masked)
		v->pending = true;
	else if (v->fd >= 0)
		s->ops->signal(s->ctx, v->fd);
}

static void set_mask(struct emu_vfio_session *s, unsigned vector, bool mask)
{
	struct emu_vfio_vector *v = &s->vector[vector];

	v->masked = mask;
	if (mask || !v->pending)
		return;
	v->pending = false;
	emu_vfio_session_interrupt(s, vector);
}

static void act(struct emu_vfio_session *s, unsigned vector, uint32_t action)
{
	if (action == EMU_VFIO_SET_TRIGGER)
		emu_vfio_session_interrupt(s, vector);
	else
		set_mask(s, vector, action == EMU_VFIO_SET_MASK);
}

static int set_eventfds(struct emu_vfio_session *s, const struct emu_vfio_irq_set *set, int *fds,
			unsigned n_fds, struct sio_err *reterr)
{
	if (!(set->flags & EMU_VFIO_SET_TRIGGER))
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
	for (uint32_t i = 0; i < set->count; i++) {
		struct emu_vfio_vector *v = &s->vector[set->start + i];

		if (v->fd >= 0)
			s->ops->close(s->ctx, v->fd);
		v->fd = -1;
		if (n_fds) {
			v->fd = fds[i];
			fds[i] = -1;
		}
	}
	return 0;
}

int emu_vfio_irqs_set(struct emu_vfio_session *s, const struct emu_vfio_message *m, int *fds,
		      unsigned n_fds, struct sio_err *reterr)
{
	const struct emu_vfio_irq_set *set = &m->set;
	uint32_t data = set->flags & EMU_VFIO_SET_DATA, action = set->flags & EMU_VFIO_SET_ACTION;
	uint32_t n = set->index == EMU_VFIO_MSIX ? s->n_vectors : 0;

	if (set->index >= EMU_VFIO_IRQS)
		return sio_fail(reterr, -EINVAL,
				"DEVICE_SET_IRQS: kind %" PRIu32 ", 0 to %d is right", set->index,
				EMU_VFIO_IRQS - 1);
	if (set->start > n || set->count > n - set->start)
		return sio_fail(reterr, -EINVAL,
				"DEVICE_SET_IRQS: interrupts %" PRIu32 " to %" PRIu32
				" of kind %" PRIu32 ", which has %" PRIu32,
				set->start, set->start + set->count - 1, set->index, n);
	if (data == EMU_VFIO_SET_EVENTFD)
		return set_eventfds(s, set, fds, n_fds, reterr);
	if (data == EMU_VFIO_SET_NONE && action == EMU_VFIO_SET_TRIGGER && set->count == 0) {
		/* All of them are off. */
		for (uint32_t i = 0; i < n; i++)
			give_back(s, &s->vector[i]);
		return 0;
	}
	for (uint32_t i = 0; i < set->count; i++)
		if (data == EMU_VFIO_SET_NONE || m->data[i])
			act(s, set->start + i, action);
	return 0;
}
