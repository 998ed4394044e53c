/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake's API half: handles, segments, data interrupts. Every handle is checked. */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"

enum kind { SD = 1, SEGMENT, CONNECTION, MAP, DINT, SENDER };

/* One struct for every kind of handle; the address is the handle. */
struct handle {
	enum kind kind;
	bool dead;
	unsigned users;
	struct fake_borrower *b;
	struct handle *of; /* connection: segment; map: connection or segment; sender: interrupt */
	unsigned id, memtype;
	bool bar, available, reachable, registers;
	size_t size;
	uint8_t *at;
	unsigned n_messages;
	struct {
		unsigned len;
		uint8_t data[8192];
	} * message;
	struct handle *next;
};

static struct handle *handles;
static unsigned last_number;

static struct handle *make(enum kind kind)
{
	struct handle *h = calloc(1, sizeof(*h));

	assert(h);
	h->kind = kind;
	h->next = handles;
	handles = h;
	fake.objects++;
	return h;
}

static struct handle *get(const void *p, enum kind kind)
{
	for (struct handle *h = handles; h; h = h->next)
		if ((const void *)h == p) {
			assert(h->kind == kind);
			return h;
		}
	assert(!"a handle that does not exist");
	return NULL;
}

static void drop(struct handle *h)
{
	struct handle **at = &handles;

	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	free(h->message);
	free(h);
	fake.objects--;
}

/* Device segments are nobody's handle: they live in a list of their own kind. */
static struct handle *segments;

static void free_segment(struct handle *s)
{
	struct handle **at = &segments;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	free(s);
}

static bool injected(sci_error_t *error)
{
	fake.calls++;
	*error = fake.calls == fake.fail_at ? SCI_ERR_NOSPC : SCI_ERR_OK;
	return *error != SCI_ERR_OK;
}

bool fake_injected(sci_error_t *error)
{
	return injected(error);
}

/* ---- the rest of ext.h ---- */
const char *smartio_last_error(void)
{
	return "";
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
	fake_step();
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
	if (injected(error))
		return;
	if (strcmp(name, "nvme0") != 0 && strcmp(name, "gpu0") != 0) {
		*error = SCI_ERR_NO_SUCH_FDID;
		return;
	}
	*fdid = strcmp(name, "nvme0") == 0 ? FAKE_FDID : FAKE_FDID + 1;
}

void SCIQuery(unsigned int command, void *data, unsigned int flags, sci_error_t *error)
{
	sci_smartio_query_device_t *q = data;
	sci_smartio_device_info_t *info = q->data;

	assert(command == SCI_Q_DEVICE && q->subcommand == SCI_Q_DEVICE_INFO && flags == 0);
	if (injected(error))
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
	assert(adapterNo == 0 && flags == 0);
	if (!injected(error))
		*nodeId = FAKE_NODE;
}

void SCIOpen(sci_desc_t *sd, unsigned int flags, sci_error_t *error)
{
	assert(flags == 0);
	if (!injected(error))
		*sd = (sci_desc_t)make(SD);
}

void SCIClose(sci_desc_t sd, unsigned int flags, sci_error_t *error)
{
	struct handle *h = get(sd, SD);

	assert(flags == 0);
	*error = h->users ? SCI_ERR_BUSY : SCI_ERR_OK;
	if (!h->users)
		drop(h);
}

/* ---- devices ---- */
static struct fake_borrower *borrower(sci_smartio_device_t device)
{
	for (struct fake_borrower *b = W.borrowers; b; b = b->next)
		if ((void *)b == (void *)device)
			return b;
	assert(!"not a borrowed device");
	return NULL;
}

void SCIBorrowDevice(sci_desc_t sd, sci_smartio_device_t *device, unsigned int fdid,
		     unsigned int flags, sci_error_t *error)
{
	struct fake_borrower *b;
	bool any = false;

	get(sd, SD);
	assert(fdid == FAKE_FDID);
	if (injected(error))
		return;
	for (b = W.borrowers; b; b = b->next)
		any |= !b->ended;
	if (W.exclusive || (flags & SCI_FLAG_EXCLUSIVE && any)) {
		*error = SCI_ERR_NOT_AVAILABLE;
		return;
	}
	b = calloc(1, sizeof(*b));
	assert(b);
	b->id = ++W.last_borrower;
	b->generation = W.generation;
	b->next = W.borrowers;
	W.borrowers = b;
	if (flags & SCI_FLAG_EXCLUSIVE)
		W.exclusive = b;
	fake.objects++;
	*device = (sci_smartio_device_t)b;
}

void SCIReturnDevice(sci_smartio_device_t device, unsigned int flags, sci_error_t *error)
{
	struct fake_borrower *b = borrower(device);

	assert(flags == 0);
	*error = SCI_ERR_OK;
	if (!b->ended) {
		for (struct handle *h = handles; h; h = h->next)
			if (h->b == b && (h->kind == CONNECTION || h->reachable))
				*error = SCI_ERR_BUSY;
		if (*error != SCI_ERR_OK)
			return;
		for (struct handle *s = segments, *next; s; s = next) {
			next = s->next;
			if (s->b == b)
				free_segment(s);
		}
		fake_borrower_end(b);
	}
	b->returned = true;
	fake.objects--;
}

void SCIReleaseExclusiveBorrow(sci_smartio_device_t device, unsigned int flags, sci_error_t *error)
{
	assert(flags == 0);
	if (injected(error))
		return;
	if (W.exclusive != borrower(device))
		*error = SCI_ERR_ILLEGAL_OPERATION;
	else
		W.exclusive = NULL;
}

uint64_t smartio_borrower_id(sci_smartio_device_t device)
{
	return borrower(device)->id;
}

uint32_t smartio_device_generation(sci_smartio_device_t device)
{
	return borrower(device)->generation;
}

const volatile uint32_t *smartio_device_generation_word(sci_smartio_device_t device)
{
	return &borrower(device)->generation;
}

const volatile uint32_t *smartio_map_sleep_word(sci_map_t map)
{
	assert(map);
	return fake.sleeps;
}

void smartio_map_wake(sci_map_t map)
{
	assert(map);
	fake_wake();
}

int smartio_device_lost(sci_smartio_device_t device)
{
	borrower(device);
	return 0;
}

int smartio_holds_registers(sci_smartio_device_t device)
{
	return W.holder == borrower(device);
}

void smartio_device_settled(sci_smartio_device_t device, uint64_t id, sci_error_t *error)
{
	if (injected(error))
		return;
	if (W.holder != borrower(device)) {
		*error = SCI_ERR_ACCESS;
		return;
	}
	if (id != SMARTIO_ALL_BORROWERS) {
		if (fake_borrower(id))
			*error = SCI_ERR_ILLEGAL_PARAMETER;
		else
			fake_region_drop(id, NULL, true);
		return;
	}
	for (struct fake_borrower *b = W.borrowers; b; b = b->next)
		if (b->ended)
			fake_region_drop(b->id, NULL, true);
	fake_generation_up();
}

void smartio_device_hold(sci_smartio_device_t device, uint64_t id, sci_ioaddr_t ioaddr,
			 size_t bytes, uint64_t *hold, sci_error_t *error)
{
	struct fake_region *r;

	if (injected(error))
		return;
	r = fake_region_find(id, ioaddr, bytes);
	if (W.holder != borrower(device))
		*error = SCI_ERR_ACCESS;
	else if (bytes == 0 || !fake_borrower(id))
		*error = SCI_ERR_ILLEGAL_PARAMETER;
	else if (!r)
		*error = SCI_ERR_OUT_OF_RANGE;
	if (*error != SCI_ERR_OK)
		return;
	r->holds++;
	*hold = r->number;
}

void smartio_device_unhold(sci_smartio_device_t device, uint64_t hold, sci_error_t *error)
{
	struct fake_region *r = W.regions;

	if (injected(error))
		return;
	while (r && r->number != hold)
		r = r->next;
	if (W.holder != borrower(device))
		*error = SCI_ERR_ACCESS;
	else if (!r || !r->holds)
		*error = SCI_ERR_ILLEGAL_PARAMETER;
	else
		r->holds--;
}

void smartio_wait_device_event(sci_smartio_device_t device, struct smartio_device_event *event,
			       unsigned int timeout_ms, sci_error_t *error)
{
	struct fake_borrower *b = borrower(device);

	assert(timeout_ms == 0);
	*error = b->ended ? SCI_ERR_CANCELLED : b->n_events ? SCI_ERR_OK : SCI_ERR_TIMEOUT;
	if (*error != SCI_ERR_OK)
		return;
	*event = b->events[0];
	b->n_events--;
	memmove(b->events, b->events + 1, b->n_events * sizeof(b->events[0]));
}

static unsigned ready(struct fake_borrower *b, struct handle *dint)
{
	unsigned set = 0;

	if (b && b->n_events)
		set |= SMARTIO_READY_DEVICE;
	if (dint && dint->n_messages)
		set |= SMARTIO_READY_INTERRUPT;
	if (b && b->woken) {
		b->woken = false;
		set |= SMARTIO_READY_WAKE;
	}
	return set;
}

unsigned int smartio_wait_events(sci_smartio_device_t device, sci_local_data_interrupt_t interrupt,
				 unsigned int timeout_ms, sci_error_t *error)
{
	struct fake_borrower *b = device ? borrower(device) : NULL;
	struct handle *dint = interrupt ? get(interrupt, DINT) : NULL;
	unsigned set = ready(b, dint);

	for (unsigned i = 0; !set && i < timeout_ms && i < 20; i++) {
		fake_step();
		set = ready(b, dint);
	}
	*error = set ? SCI_ERR_OK : SCI_ERR_TIMEOUT;
	if (!set)
		fake.now += timeout_ms * 1000000ull;
	return set;
}

void smartio_wake(sci_smartio_device_t device)
{
	borrower(device)->woken = true;
}

/* ---- segments ---- */
static struct handle *find_segment(struct fake_borrower *b, unsigned id, unsigned memtype)
{
	for (struct handle *s = segments; s; s = s->next)
		if (s->id == id && s->memtype == memtype && !s->dead &&
		    (memtype == SCI_MEMTYPE_SHARED || s->b == b))
			return s;
	return NULL;
}

void SCICreateDeviceSegment(sci_smartio_device_t device, unsigned int segmentId, size_t size,
			    unsigned int memtype, unsigned int accessHints, unsigned int flags,
			    sci_error_t *error)
{
	struct fake_borrower *b = borrower(device);
	struct handle *s;

	assert(accessHints && size && (memtype & (SCI_MEMTYPE_PRIVATE | SCI_MEMTYPE_SHARED)));
	(void)flags;
	if (injected(error))
		return;
	if (find_segment(b, segmentId, memtype)) {
		*error = SCI_ERR_SEGMENTID_USED;
		return;
	}
	s = calloc(1, sizeof(*s));
	assert(s);
	s->kind = SEGMENT;
	s->b = b;
	s->id = segmentId;
	s->memtype = memtype;
	s->size = (size + 4095) & ~(size_t)4095;
	s->at = fake_memory(s->size);
	s->next = segments;
	segments = s;
}

void SCIConnectDeviceSegment(sci_smartio_device_t device, sci_remote_segment_t *segment,
			     unsigned int segmentId, unsigned int memtype,
			     sci_cb_remote_segment_t callback, void *callbackArg,
			     unsigned int flags, sci_error_t *error)
{
	struct fake_borrower *b = borrower(device);
	struct handle *c, *s = NULL;

	assert(!callback && !callbackArg && flags == 0);
	if (injected(error))
		return;
	if (b->ended) {
		*error = SCI_ERR_NOT_CONNECTED;
		return;
	}
	if (fake.away_at && --fake.away_at == 0) {
		fake.now += fake.away_ns;
		fake.manager = fake.back;
	}
	if (memtype != SCI_MEMTYPE_BAR && !(s = find_segment(b, segmentId, memtype))) {
		*error = SCI_ERR_NO_SUCH_SEGMENT;
		return;
	}
	c = make(CONNECTION);
	c->b = b;
	c->bar = memtype == SCI_MEMTYPE_BAR;
	c->size = c->bar ? W.config.bar_size[0] : s->size;
	c->at = c->bar ? NULL : s->at;
	*segment = (sci_remote_segment_t)c;
}

void SCIDisconnectSegment(sci_remote_segment_t segment, unsigned int flags, sci_error_t *error)
{
	struct handle *c = get(segment, CONNECTION);

	assert(flags == 0);
	*error = c->users || c->reachable ? SCI_ERR_BUSY : SCI_ERR_OK;
	if (*error == SCI_ERR_OK)
		drop(c);
}

/* All memory is this host's. */
unsigned int SCIGetRemoteSegmentNodeId(sci_remote_segment_t segment)
{
	(void)segment;
	return FAKE_NODE;
}

size_t SCIGetRemoteSegmentSize(sci_remote_segment_t segment)
{
	return get(segment, CONNECTION)->size;
}

static volatile void *map_bar(struct handle *c, struct handle *m, size_t offset, size_t size)
{
	if (offset) {
		assert(offset == 4096);
		return W.doorbells;
	}
	assert(size <= 4096);
	if (!W.holder && (!W.exclusive || W.exclusive == c->b))
		fake_set_holder(c->b);
	m->registers = W.holder == c->b;
	return W.holder == c->b ? W.registers : W.mirror;
}

static struct handle *make_map(struct handle *of)
{
	struct handle *m = make(MAP);

	m->of = of;
	of->users++;
	return m;
}

volatile void *SCIMapRemoteSegment(sci_remote_segment_t segment, sci_map_t *map, size_t offset,
				   size_t size, void *addr, unsigned int flags, sci_error_t *error)
{
	struct handle *c = get(segment, CONNECTION), *m;

	assert(!addr);
	(void)flags;
	if (injected(error))
		return NULL;
	assert(size && offset <= c->size && size <= c->size - offset);
	if (c->bar && offset && size > W.doorbells_size) {
		*error = SCI_ERR_OUT_OF_RANGE;
		return NULL;
	}
	m = make_map(c);
	*map = (sci_map_t)m;
	return c->bar ? map_bar(c, m, offset, size) : c->at + offset;
}

void SCIUnmapSegment(sci_map_t map, unsigned int flags, sci_error_t *error)
{
	struct handle *m = get(map, MAP);

	assert(flags == 0);
	m->of->users--;
	if (m->registers && W.holder == m->of->b)
		fake_set_holder(NULL);
	drop(m);
	*error = SCI_ERR_OK;
}

void SCIMapRemoteSegmentForDevice(sci_remote_segment_t segment, sci_smartio_device_t device,
				  sci_ioaddr_t *ioaddr, size_t offset, size_t size,
				  unsigned int flags, sci_error_t *error)
{
	struct handle *c = get(segment, CONNECTION);

	assert(offset == 0 && size == c->size && flags == 0 && !c->bar && !c->reachable);
	if (injected(error))
		return;
	c->reachable = true;
	*ioaddr = fake_region_add(borrower(device), c, c->at, size);
}

void SCIUnmapRemoteSegmentForDevice(sci_remote_segment_t segment, sci_smartio_device_t device,
				    unsigned int flags, sci_error_t *error)
{
	struct handle *c = get(segment, CONNECTION);
	struct fake_borrower *b = borrower(device);

	assert(flags == 0 && c->reachable);
	*error = !b->ended && fake_region_held(b->id, c) ? SCI_ERR_BUSY : SCI_ERR_OK;
	if (*error != SCI_ERR_OK)
		return;
	if (!b->ended)
		fake_region_drop(b->id, c, false);
	c->reachable = false;
}

void SCICreateSegment(sci_desc_t sd, sci_local_segment_t *segment, unsigned int segmentId,
		      size_t size, sci_cb_local_segment_t callback, void *callbackArg,
		      unsigned int flags, sci_error_t *error)
{
	struct handle *s;

	get(sd, SD);
	assert(!callback && !callbackArg && flags == SCI_FLAG_AUTO_ID && size);
	(void)segmentId;
	if (injected(error))
		return;
	s = make(SEGMENT);
	s->size = (size + 4095) & ~(size_t)4095;
	s->at = fake_memory(s->size);
	*segment = (sci_local_segment_t)s;
}

void SCIRemoveSegment(sci_local_segment_t segment, unsigned int flags, sci_error_t *error)
{
	struct handle *s = get(segment, SEGMENT);

	assert(flags == 0);
	*error = s->users || s->reachable ? SCI_ERR_BUSY : SCI_ERR_OK;
	if (*error == SCI_ERR_OK)
		drop(s);
}

void SCIPrepareSegment(sci_local_segment_t segment, unsigned int localAdapterNo, unsigned int flags,
		       sci_error_t *error)
{
	get(segment, SEGMENT);
	assert(localAdapterNo == 0 && flags == 0);
	injected(error);
}

void SCISetSegmentAvailable(sci_local_segment_t segment, unsigned int localAdapterNo,
			    unsigned int flags, sci_error_t *error)
{
	assert(localAdapterNo == 0 && flags == 0);
	if (!injected(error))
		get(segment, SEGMENT)->available = true;
}

void SCISetSegmentUnavailable(sci_local_segment_t segment, unsigned int localAdapterNo,
			      unsigned int flags, sci_error_t *error)
{
	struct handle *s = get(segment, SEGMENT);

	assert(s->available && localAdapterNo == 0 && flags == 0);
	s->available = false;
	*error = SCI_ERR_OK;
}

void *SCIMapLocalSegment(sci_local_segment_t segment, sci_map_t *map, size_t offset, size_t size,
			 void *addr, unsigned int flags, sci_error_t *error)
{
	struct handle *s = get(segment, SEGMENT);

	assert(!addr && flags == 0 && offset == 0 && size <= s->size);
	if (injected(error))
		return NULL;
	*map = (sci_map_t)make_map(s);
	return s->at;
}

void SCIMapLocalSegmentForDevice(sci_local_segment_t segment, unsigned int localAdapterNo,
				 sci_smartio_device_t device, sci_ioaddr_t *ioaddr, size_t offset,
				 size_t size, unsigned int flags, sci_error_t *error)
{
	struct handle *s = get(segment, SEGMENT);

	assert(localAdapterNo == 0 && offset == 0 && size == s->size && flags == 0);
	assert(s->available && !s->reachable);
	if (injected(error))
		return;
	s->reachable = true;
	s->b = borrower(device);
	*ioaddr = fake_region_add(s->b, s, s->at, size);
}

void SCIUnmapLocalSegmentForDevice(sci_local_segment_t segment, unsigned int localAdapterNo,
				   sci_smartio_device_t device, unsigned int flags,
				   sci_error_t *error)
{
	struct handle *s = get(segment, SEGMENT);
	struct fake_borrower *b = borrower(device);

	assert(localAdapterNo == 0 && flags == 0 && s->reachable);
	*error = !b->ended && fake_region_held(b->id, s) ? SCI_ERR_BUSY : SCI_ERR_OK;
	if (*error != SCI_ERR_OK)
		return;
	if (!b->ended)
		fake_region_drop(b->id, s, false);
	s->reachable = false;
}

/* ---- data interrupts ---- */
static struct handle *dint_of(unsigned number)
{
	for (struct handle *h = handles; h; h = h->next)
		if (h->kind == DINT && h->id == number && !h->dead)
			return h;
	return NULL;
}

void SCICreateDataInterrupt(sci_desc_t sd, sci_local_data_interrupt_t *interrupt,
			    unsigned int localAdapterNo, unsigned int *interruptNo,
			    sci_cb_data_interrupt_t callback, void *callbackArg, unsigned int flags,
			    sci_error_t *error)
{
	struct handle *h;

	get(sd, SD);
	assert(localAdapterNo == 0 && !callback && !callbackArg && flags == 0);
	if (injected(error))
		return;
	h = make(DINT);
	h->id = *interruptNo = ++last_number;
	h->message = calloc(64, sizeof(*h->message));
	assert(h->message);
	*interrupt = (sci_local_data_interrupt_t)h;
}

void SCIRemoveDataInterrupt(sci_local_data_interrupt_t interrupt, unsigned int flags,
			    sci_error_t *error)
{
	struct handle *h = get(interrupt, DINT);

	assert(flags == 0);
	for (struct handle *s = handles; s; s = s->next)
		if (s->kind == SENDER && s->of == h)
			s->of = NULL;
	drop(h);
	*error = SCI_ERR_OK;
}

static bool push(struct handle *h, const void *data, size_t len)
{
	if (h->n_messages == 64)
		return false;
	h->message[h->n_messages].len = (unsigned)len;
	memcpy(h->message[h->n_messages++].data, data, len);
	return true;
}

bool fake_inject(unsigned number, const void *data, size_t len)
{
	struct handle *h = dint_of(number);

	return h && len <= 8192 && push(h, data, len);
}

void SCIWaitForDataInterrupt(sci_local_data_interrupt_t interrupt, void *data, unsigned int *length,
			     unsigned int timeout, unsigned int flags, sci_error_t *error)
{
	struct handle *h = get(interrupt, DINT);

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
	struct handle *h = dint_of(interruptNo), *s;

	get(sd, SD);
	assert(localAdapterNo == 0 && flags == 0);
	(void)timeout;
	if (injected(error))
		return;
	if (!h || nodeId != FAKE_NODE) {
		*error = SCI_ERR_NO_SUCH_INTNO;
		return;
	}
	s = make(SENDER);
	s->of = h;
	*interrupt = (sci_remote_data_interrupt_t)s;
}

void SCIDisconnectDataInterrupt(sci_remote_data_interrupt_t interrupt, unsigned int flags,
				sci_error_t *error)
{
	assert(flags == 0);
	drop(get(interrupt, SENDER));
	*error = SCI_ERR_OK;
}

void SCITriggerDataInterrupt(sci_remote_data_interrupt_t interrupt, void *data, unsigned int length,
			     unsigned int flags, sci_error_t *error)
{
	struct handle *s = get(interrupt, SENDER);

	assert(flags == 0 && length <= 8192);
	if (injected(error))
		return;
	if (s->of && !push(s->of, data, length))
		*error = SCI_ERR_NOSPC;
}

/* ---- the fake's own ---- */
void fake_session_gone(struct fake_borrower *b)
{
	for (struct handle *s = segments; s; s = s->next)
		if (s->b == b)
			s->dead = true;
}

static bool of_borrower(const struct handle *h, uint64_t id)
{
	if (h->kind == MAP)
		h = h->of;
	return (h->kind == CONNECTION || h->kind == SEGMENT) && h->b && h->b->id == id;
}

void fake_bury(uint64_t id)
{
	struct handle *h, *next;

	assert(!fake_borrower(id));
	/* Maps before what they are of. */
	for (int maps = 1; maps >= 0; maps--)
		for (h = handles; h; h = next) {
			next = h->next;
			if ((h->kind == MAP) == maps && of_borrower(h, id))
				drop(h);
		}
	for (struct fake_borrower *b = W.borrowers; b; b = b->next)
		if (b->id == id && !b->returned)
			fake.objects--;
}

void *fake_shared(void)
{
	for (struct handle *s = segments; s; s = s->next)
		if (s->memtype == SCI_MEMTYPE_SHARED && !s->dead)
			return s->at;
	return NULL;
}

void fake_sci_stop(void)
{
	while (segments)
		free_segment(segments);
	while (handles)
		drop(handles);
	last_number = 0;
}
