/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake's interrupts without data, and the drive's vectors that trigger them. */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <stdlib.h>

#include "fake_internal.h"

struct line {
	unsigned number, senders;
	bool pending;
	struct line *next;
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
	vectors[vector]->pending = true;
	fake.raised++;
}

void fake_interrupt_stop(void)
{
	struct line *l;

	while ((l = lines)) {
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

void SCICreateInterrupt(sci_desc_t sd, sci_local_interrupt_t *interrupt,
			unsigned int localAdapterNo, unsigned int *interruptNo,
			sci_cb_interrupt_t callback, void *callbackArg, unsigned int flags,
			sci_error_t *error)
{
	struct line *l;

	assert(sd && localAdapterNo < FAKE_ADAPTERS && !callback && !callbackArg && flags == 0);
	if (fake_injected(error))
		return;
	l = calloc(1, sizeof(*l));
	assert(l);
	l->number = *interruptNo = ++last_number;
	l->next = lines;
	lines = l;
	fake.objects++;
	*interrupt = (sci_local_interrupt_t)l;
}

void SCIRemoveInterrupt(sci_local_interrupt_t interrupt, unsigned int flags, sci_error_t *error)
{
	struct line *l = (struct line *)interrupt, **at = find(l->number);

	assert(*at == l && flags == 0);
	assert(l->senders == 0); /* the API says BUSY; the driver must not try */
	*at = l->next;
	free(l);
	fake.objects--;
	*error = SCI_ERR_OK;
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
	struct line *l = (struct line *)interrupt;

	assert(*find(l->number) == l && flags == 0);
	for (unsigned i = 0; !l->pending && i < timeout && i < 50; i++)
		fake_step();
	*error = l->pending ? SCI_ERR_OK : SCI_ERR_TIMEOUT;
	if (!l->pending)
		fake.now += timeout * 1000000ull;
	l->pending = false;
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
