/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake's interrupts without data, and the drive's vectors that trigger them. */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <stdlib.h>

#include "fake_internal.h"

struct line {
	unsigned number, senders;
	bool shared;
	struct owner *owners;
	struct line *next;
};

/* One of those who wait for it; of one that is not shared there is one. */
struct owner {
	struct line *of;
	bool pending;
	struct owner *next;
};

struct sender {
	struct line *to;
};

static struct line *lines;
static struct line *vectors[FAKE_VECTORS];
static unsigned last_number;

void fake_raise(struct emu_dev *dev, unsigned vector)
{
	(void)dev;
	assert(vector < FAKE_VECTORS);
	if (!vectors[vector])
		return;
	for (struct owner *o = vectors[vector]->owners; o; o = o->next)
		o->pending = true;
	fake.raised++;
}

void fake_interrupt_stop(void)
{
	struct line *l;

	while ((l = lines)) {
		struct owner *o;

		while ((o = l->owners)) {
			l->owners = o->next;
			free(o);
		}
		lines = l->next;
		free(l);
	}
	for (unsigned i = 0; i < FAKE_VECTORS; i++)
		vectors[i] = NULL;
	last_number = 0;
}

static struct line **find(unsigned number)
{
	struct line **at = &lines;

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	return at;
}

static struct line *add_line(unsigned number, bool shared)
{
	struct line *l = calloc(1, sizeof(*l));

	assert(l);
	l->number = number;
	l->shared = shared;
	l->next = lines;
	lines = l;
	if (number > last_number)
		last_number = number;
	return l;
}

void SCICreateInterrupt(sci_desc_t sd, sci_local_interrupt_t *interrupt,
			unsigned int localAdapterNo, unsigned int *interruptNo,
			sci_cb_interrupt_t callback, void *callbackArg, unsigned int flags,
			sci_error_t *error)
{
	const bool shared = flags & SCI_FLAG_SHARED_INT, fixed = flags & SCI_FLAG_FIXED_INTNO;
	struct owner *o;
	struct line *l;

	assert(sd && localAdapterNo < FAKE_ADAPTERS && !callback && !callbackArg);
	assert(!(flags & ~(SCI_FLAG_SHARED_INT | SCI_FLAG_FIXED_INTNO)) && (shared || !fixed));
	if (fake_injected(error))
		return;
	l = fixed ? *find(*interruptNo) : NULL;
	if (l && !l->shared) {
		*error = SCI_ERR_INTNO_USED;
		return;
	}
	if (!l)
		l = add_line(fixed ? *interruptNo : last_number + 1, shared);
	*interruptNo = l->number;
	o = calloc(1, sizeof(*o));
	assert(o);
	o->of = l;
	o->next = l->owners;
	l->owners = o;
	fake.objects++;
	*interrupt = (sci_local_interrupt_t)o;
}

void SCIRemoveInterrupt(sci_local_interrupt_t interrupt, unsigned int flags, sci_error_t *error)
{
	struct owner *o = (struct owner *)interrupt, **its = &o->of->owners;
	struct line *l = o->of, **at = find(l->number);

	assert(*at == l && flags == 0);
	while (*its != o)
		its = &(*its)->next;
	*its = o->next;
	free(o);
	fake.objects--;
	*error = SCI_ERR_OK;
	if (l->owners)
		return;
	assert(l->senders == 0); /* the API says BUSY; the driver must not try */
	*at = l->next;
	free(l);
}

void SCIConnectInterrupt(sci_desc_t sd, sci_remote_interrupt_t *interrupt, unsigned int nodeId,
			 unsigned int localAdapterNo, unsigned int interruptNo,
			 unsigned int timeout, unsigned int flags, sci_error_t *error)
{
	struct sender *s;

	(void)timeout;
	assert(sd && nodeId == FAKE_NODE && localAdapterNo < FAKE_ADAPTERS && flags == 0);
	if (fake_injected(error))
		return;
	s = calloc(1, sizeof(*s));
	assert(s);
	s->to = *find(interruptNo);
	assert(s->to);
	s->to->senders++;
	fake.objects++;
	*interrupt = (sci_remote_interrupt_t)s;
}

void SCIDisconnectInterrupt(sci_remote_interrupt_t interrupt, unsigned int flags,
			    sci_error_t *error)
{
	struct sender *s = (struct sender *)interrupt;

	assert(flags == 0);
	s->to->senders--;
	free(s);
	fake.objects--;
	*error = SCI_ERR_OK;
}

void SCIWaitForInterrupt(sci_local_interrupt_t interrupt, unsigned int timeout, unsigned int flags,
			 sci_error_t *error)
{
	struct owner *o = (struct owner *)interrupt;

	assert(*find(o->of->number) == o->of && flags == 0);
	for (unsigned i = 0; timeout == 0 && i < fake.goes_on; i++)
		fake_step();
	for (unsigned i = 0; !o->pending && i < timeout && i < 50; i++)
		fake_step();
	*error = o->pending ? SCI_ERR_OK : SCI_ERR_TIMEOUT;
	if (!o->pending)
		fake.now += timeout * 1000000ull;
	o->pending = false;
}

void smartio_connect_device_interrupt(sci_smartio_device_t device, unsigned int *vector,
				      sci_remote_interrupt_t interrupt, sci_error_t *error)
{
	struct sender *s = (struct sender *)interrupt;
	unsigned n = 1;

	assert(device && *vector == SMARTIO_ANY_VECTOR);
	if (fake_injected(error))
		return;
	while (n < FAKE_VECTORS && vectors[n])
		n++;
	if (n == FAKE_VECTORS) {
		*error = SCI_ERR_HW_NOSPC;
		return;
	}
	vectors[n] = s->to;
	s->to->senders++;
	fake.objects++;
	*vector = n;
}

void smartio_disconnect_device_interrupt(sci_smartio_device_t device, unsigned int vector,
					 sci_error_t *error)
{
	assert(device && vector < FAKE_VECTORS && vectors[vector]);
	vectors[vector]->senders--;
	vectors[vector] = NULL;
	fake.objects--;
	*error = SCI_ERR_OK;
}
