/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake's API half: handles, each of which is checked, and data interrupts. */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_handle.h"
#include "protocol.h"

struct fake_handle *fake_handles;

struct fake_handle *fake_make(enum fake_kind kind)
{
	struct fake_handle *h = calloc(1, sizeof(*h));

	assert(h);
	h->kind = kind;
	h->managers = W.in_manager;
	h->next = fake_handles;
	fake_handles = h;
	fake.objects++;
	return h;
}

struct fake_handle *fake_get(const void *p, enum fake_kind kind)
{
	for (struct fake_handle *h = fake_handles; h; h = h->next)
		if ((const void *)h == p) {
			assert(h->kind == kind);
			return h;
		}
	assert(!"a handle that does not exist");
	return NULL;
}

void fake_drop(struct fake_handle *h)
{
	struct fake_handle **at = &fake_handles;

	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	free(h->message);
	free(h);
	fake.objects--;
}

static unsigned last_number;

static char why[96]; /* what smartio_last_error() says */

bool fake_injected(sci_error_t *error)
{
	why[0] = '\0';
	fake.calls++;
	fake_manager_step();
	*error = fake.calls == fake.fail_at ? SCI_ERR_NOSPC : SCI_ERR_OK;
	return *error != SCI_ERR_OK;
}

/* ---- the rest of ext.h ---- */
const char *smartio_last_error(void)
{
	return why;
}

unsigned int smartio_last_exhausted(void)
{
	return 0;
}

const char *smartio_exhausted_name(unsigned int what)
{
	return what ? "what ran out" : "";
}

const char *SCIGetErrorString(sci_error_t code)
{
	static char text[32];

	snprintf(text, sizeof(text), "error %#x", (unsigned)code);
	return text;
}

uint64_t smartio_now_ns(void)
{
	return fake.now += 100;
}

void smartio_yield(void)
{
	if (!fake.unyielding)
		fake_step();
}

/* At once, in the caller's own: everything here is one thread. */
void smartio_thread_start(void (*fn)(void *arg), void *arg, smartio_thread_t *thread,
			  sci_error_t *error)
{
	*thread = NULL;
	if (!fake_injected(error))
		fn(arg);
}

void smartio_thread_join(smartio_thread_t thread)
{
	assert(!thread);
}

uint32_t smartio_process(void)
{
	return 1;
}

uint64_t smartio_random(void)
{
	W.random ^= W.random << 13;
	W.random ^= W.random >> 7;
	W.random ^= W.random << 17;
	return W.random;
}

void smartio_find_device(const char *name, unsigned int *fdid, sci_error_t *error)
{
	if (fake_injected(error))
		return;
	if (strcmp(name, "nvme0") != 0 && strcmp(name, "gpu0") != 0) {
		*error = SCI_ERR_NO_SUCH_FDID;
		snprintf(why, sizeof(why), "no device is called \"%s\"", name);
		return;
	}
	*fdid = strcmp(name, "nvme0") == 0 ? FAKE_FDID : FAKE_FDID + 1;
}

void SCIQuery(unsigned int command, void *data, unsigned int flags, sci_error_t *error)
{
	sci_smartio_query_device_t *q = data;
	sci_smartio_device_info_t *info = q->data;

	assert(command == SCI_Q_DEVICE && q->subcommand == SCI_Q_DEVICE_INFO && flags == 0);
	if (fake_injected(error))
		return;
	memset(info, 0, sizeof(*info));
	info->fdid = q->fdid;
	info->pci_class = q->fdid == FAKE_FDID ? W.config.class_code : 0x030200;
	info->nodeid = 4;
	strcpy(info->user_name, q->fdid == FAKE_FDID ? "nvme0" : "gpu0");
}

void SCIGetLocalNodeId(unsigned int adapterNo, unsigned int *nodeId, unsigned int flags,
		       sci_error_t *error)
{
	assert(adapterNo < FAKE_ADAPTERS && flags == 0);
	if (!fake_injected(error))
		*nodeId = FAKE_NODE;
}

void SCIOpen(sci_desc_t *sd, unsigned int flags, sci_error_t *error)
{
	assert(flags == 0);
	if (!fake_injected(error))
		*sd = (sci_desc_t)fake_make(SD);
}

void SCIClose(sci_desc_t sd, unsigned int flags, sci_error_t *error)
{
	struct fake_handle *h = fake_get(sd, SD);

	assert(flags == 0);
	*error = h->users ? SCI_ERR_BUSY : SCI_ERR_OK;
	if (!h->users)
		fake_drop(h);
}

/* ---- data interrupts ---- */
static struct fake_handle *dint_of(unsigned number)
{
	for (struct fake_handle *h = fake_handles; h; h = h->next)
		if (h->kind == DINT && h->id == number && !h->dead)
			return h;
	return NULL;
}

void SCICreateDataInterrupt(sci_desc_t sd, sci_local_data_interrupt_t *interrupt,
			    unsigned int localAdapterNo, unsigned int *interruptNo,
			    sci_cb_data_interrupt_t callback, void *callbackArg, unsigned int flags,
			    sci_error_t *error)
{
	struct fake_handle *h;

	fake_get(sd, SD);
	assert(localAdapterNo == SMARTIO_ALL_ADAPTERS && !callback && !callbackArg && flags == 0);
	if (fake_injected(error))
		return;
	h = fake_make(DINT);
	h->id = *interruptNo = ++last_number;
	h->message = calloc(64, sizeof(*h->message));
	assert(h->message);
	*interrupt = (sci_local_data_interrupt_t)h;
}

void SCIRemoveDataInterrupt(sci_local_data_interrupt_t interrupt, unsigned int flags,
			    sci_error_t *error)
{
	struct fake_handle *h = fake_get(interrupt, DINT);

	assert(flags == 0);
	for (struct fake_handle *s = fake_handles; s; s = s->next)
		if (s->kind == SENDER && s->of == h)
			s->of = NULL;
	fake_drop(h);
	*error = SCI_ERR_OK;
}

static bool push(struct fake_handle *h, const void *data, size_t len)
{
	if (h->n_messages == 64)
		return false;
	h->message[h->n_messages].len = (unsigned)len;
	memcpy(h->message[h->n_messages++].data, data, len);
	return true;
}

bool fake_inject(unsigned number, const void *data, size_t len)
{
	struct fake_handle *h = dint_of(number);

	return h && len <= 8192 && push(h, data, len);
}

void SCIWaitForDataInterrupt(sci_local_data_interrupt_t interrupt, void *data, unsigned int *length,
			     unsigned int timeout, unsigned int flags, sci_error_t *error)
{
	struct fake_handle *h = fake_get(interrupt, DINT);

	assert(flags == 0);
	for (unsigned i = 0; !h->n_messages && i < timeout && i < 50; i++)
		fake_step();
	*error = h->n_messages ? SCI_ERR_OK : SCI_ERR_TIMEOUT;
	if (!h->n_messages) {
		fake.now += timeout * 1000000ull;
		return;
	}
	assert(*length >= h->message[0].len);
	*length = h->message[0].len;
	memcpy(data, h->message[0].data, *length);
	memmove(h->message, h->message + 1, --h->n_messages * sizeof(*h->message));
}

void SCIConnectDataInterrupt(sci_desc_t sd, sci_remote_data_interrupt_t *interrupt,
			     unsigned int nodeId, unsigned int localAdapterNo,
			     unsigned int interruptNo, unsigned int timeout, unsigned int flags,
			     sci_error_t *error)
{
	struct fake_handle *h = dint_of(interruptNo), *s;

	fake_get(sd, SD);
	assert(flags == 0);
	(void)timeout;
	if (localAdapterNo != fake.way || localAdapterNo >= FAKE_ADAPTERS) {
		*error = localAdapterNo < FAKE_ADAPTERS ? SCI_ERR_NO_SUCH_NODEID
							: SCI_ERR_NO_SUCH_ADAPTERNO;
		return;
	}
	if (fake_injected(error))
		return;
	if (!h || nodeId != FAKE_NODE) {
		*error = SCI_ERR_NO_SUCH_INTNO;
		return;
	}
	s = fake_make(SENDER);
	s->of = h;
	s->way = localAdapterNo;
	*interrupt = (sci_remote_data_interrupt_t)s;
}

void SCIDisconnectDataInterrupt(sci_remote_data_interrupt_t interrupt, unsigned int flags,
				sci_error_t *error)
{
	assert(flags == 0);
	fake_drop(fake_get(interrupt, SENDER));
	*error = SCI_ERR_OK;
}

void SCITriggerDataInterrupt(sci_remote_data_interrupt_t interrupt, void *data, unsigned int length,
			     unsigned int flags, sci_error_t *error)
{
	struct fake_handle *s = fake_get(interrupt, SENDER);

	assert(flags == 0 && length <= 8192);
	if (fake_injected(error))
		return;
	if (fake.severed && s->way != fake.way) {
		*error = SCI_ERR_NO_LINK_ACCESS;
		return;
	}
	if (s->of && !push(s->of, data, length))
		*error = SCI_ERR_NOSPC;
}

/* ---- the fake's own ---- */
void fake_session_gone(struct fake_borrower *b)
{
	for (struct fake_handle *s = fake_segments; s; s = s->next)
		if (s->b == b && !fake_segment_lasts(s))
			fake_segment_lost(s);
}

static bool of_borrower(const struct fake_handle *h, uint64_t id)
{
	if (h->kind == MAP)
		h = h->of;
	for (unsigned i = 0; h->kind == SEGMENT && i < FAKE_ADAPTERS; i++)
		if (h->over[i].b && h->over[i].b->id == id)
			return true;
	return h->kind == CONNECTION && h->b && h->b->id == id;
}

void fake_manager_buried(void)
{
	for (struct fake_handle *h = fake_handles, *next; h; h = next) {
		next = h->next;
		if (h->kind == SENDER && h->managers)
			fake_drop(h);
	}
}

void fake_bury(uint64_t id)
{
	struct fake_handle *h, *next;

	assert(!fake_borrower(id));
	/* Maps before what they are of. */
	for (int maps = 1; maps >= 0; maps--)
		for (h = fake_handles; h; h = next) {
			next = h->next;
			if ((h->kind == MAP) == maps && of_borrower(h, id))
				fake_drop(h);
		}
	for (struct fake_borrower *b = W.borrowers; b; b = b->next)
		if (b->id == id && !b->returned)
			fake.objects--;
}

void *fake_shared(void)
{
	for (struct fake_handle *s = fake_segments; s; s = s->next)
		if (s->memtype == SCI_MEMTYPE_SHARED && s->id == SIO_NVME_SEGMENT && !s->dead)
			return s->at;
	return NULL;
}

void fake_sci_stop(void)
{
	while (fake_segments)
		fake_segment_free(fake_segments);
	while (fake_handles)
		fake_drop(fake_handles);
	last_number = 0;
}
