/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake's API half: segments and their maps, for the program and for the device. */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <stdlib.h>

#include "fake_handle.h"

/* Device segments are nobody's handle: they live in a list of their own kind. */
struct fake_handle *fake_segments;

void fake_segment_lost(struct fake_handle *s)
{
	if (s->dead)
		return;
	s->dead = true;
	for (struct fake_handle *c = fake_handles; c; c = c->next)
		if (c->kind == CONNECTION && c->of == s) {
			if (c->callback)
				c->callback(c->callback_arg, (sci_remote_segment_t)c, SCI_CB_LOST,
					    SCI_ERR_OK);
			c->of = NULL;
		}
}

void fake_segment_free(struct fake_handle *s)
{
	struct fake_handle **at = &fake_segments;

	fake_segment_lost(s);

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	free(s);
}

bool fake_segment_lasts(const struct fake_handle *s)
{
	bool mapped = false;

	for (struct fake_region *r = W.regions; r; r = r->next)
		mapped |= r->borrower == s->b->id;
	return s->lasting && s->b->ended && mapped;
}

void fake_segments_settled(void)
{
	for (struct fake_handle *s = fake_segments, *next; s; s = next) {
		next = s->next;
		if (s->lasting && s->b->ended && !fake_segment_lasts(s))
			fake_segment_free(s);
	}
}

/* With the path of its maker, which lives. */
static bool went(const struct fake_handle *s)
{
	return fake.reserved && s->b->lost && !s->lasting;
}

static struct fake_handle *find_segment(struct fake_borrower *b, unsigned id, unsigned memtype)
{
	for (struct fake_handle *s = fake_segments; s; s = s->next)
		if (s->id == id && s->memtype == memtype && !s->dead && !went(s) &&
		    (memtype == SCI_MEMTYPE_SHARED || s->b == b))
			return s;
	return NULL;
}

void SCICreateDeviceSegment(sci_smartio_device_t device, unsigned int segmentId, size_t size,
			    unsigned int memtype, unsigned int accessHints, unsigned int flags,
			    sci_error_t *error)
{
	struct fake_borrower *b = fake_borrower_of(device);
	struct fake_handle *s;

	assert(accessHints && size && (memtype & (SCI_MEMTYPE_PRIVATE | SCI_MEMTYPE_SHARED)));
	if (fake_injected(error))
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
	s->lasting = flags == SMARTIO_FLAG_LASTING;
	s->size = (size + 4095) & ~(size_t)4095;
	s->at = fake_memory(s->size);
	s->next = fake_segments;
	fake_segments = s;
}

static bool is_connected(const struct fake_handle *s)
{
	for (const struct fake_handle *c = fake_handles; c; c = c->next)
		if (c->kind == CONNECTION && c->of == s)
			return true;
	return false;
}

void SCIConnectDeviceSegment(sci_smartio_device_t device, sci_remote_segment_t *segment,
			     unsigned int segmentId, unsigned int memtype,
			     sci_cb_remote_segment_t callback, void *callbackArg,
			     unsigned int flags, sci_error_t *error)
{
	struct fake_borrower *b = fake_borrower_of(device);
	struct fake_handle *c, *s = NULL;

	assert(callback ? flags == SCI_FLAG_USE_CALLBACK : !callbackArg && flags == 0);
	fake.lookups++;
	if (fake_injected(error))
		return;
	if (b->ended) {
		*error = SCI_ERR_NOT_CONNECTED;
		return;
	}
	if (fake.hidden_at && --fake.hidden_at == 0)
		*(uint32_t *)fake_shared() = 0;
	if (fake.dies_at && --fake.dies_at == 0)
		fake_kill(fake.dies);
	if (fake.away_at && --fake.away_at == 0) {
		fake.now += fake.away_ns;
		fake.manager = fake.back;
	}
	if (memtype != SCI_MEMTYPE_BAR)
		s = find_segment(b, segmentId, memtype);
	if (s && fake.looked_at && !is_connected(s) && !fake_segment_lasts(s) &&
	    --fake.looked_at == 0) {
		fake_segment_free(s); /* with the last connection, which the maker's was to be */
		s = NULL;
	}
	if (memtype != SCI_MEMTYPE_BAR && !s) {
		*error = SCI_ERR_NO_SUCH_SEGMENT;
		return;
	}
	if (s && fake.reserved && s->b->lost && !W.in_manager) {
		*error = SCI_ERR_ACCESS;
		return;
	}
	c = fake_make(CONNECTION);
	c->b = b;
	c->bar = memtype == SCI_MEMTYPE_BAR;
	c->size = c->bar ? W.config.bar_size[0] : s->size;
	c->at = c->bar ? NULL : s->at;
	c->of = s;
	c->callback = callback;
	c->callback_arg = callbackArg;
	*segment = (sci_remote_segment_t)c;
}

void SCIDisconnectSegment(sci_remote_segment_t segment, unsigned int flags, sci_error_t *error)
{
	struct fake_handle *c = fake_get(segment, CONNECTION), *s;

	assert(flags == 0);
	*error = c->users || c->reachable ? SCI_ERR_BUSY : SCI_ERR_OK;
	if (*error != SCI_ERR_OK)
		return;
	s = c->of;
	fake_drop(c);
	if (s && !is_connected(s) &&
	    !fake_segment_lasts(s)) /* a device segment ends with its last connection */
		fake_segment_free(s);
}

unsigned int SCIGetRemoteSegmentNodeId(sci_remote_segment_t segment)
{
	(void)segment;
	return fake.far ? FAKE_NODE + 1 : FAKE_NODE;
}

size_t SCIGetRemoteSegmentSize(sci_remote_segment_t segment)
{
	return fake_get(segment, CONNECTION)->size;
}

static volatile void *map_bar(struct fake_handle *c, struct fake_handle *m, size_t offset,
			      size_t size)
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

static struct fake_handle *make_map(struct fake_handle *of)
{
	struct fake_handle *m = fake_make(MAP);

	m->of = of;
	of->users++;
	return m;
}

volatile void *SCIMapRemoteSegment(sci_remote_segment_t segment, sci_map_t *map, size_t offset,
				   size_t size, void *addr, unsigned int flags, sci_error_t *error)
{
	struct fake_handle *c = fake_get(segment, CONNECTION), *m;

	assert(!addr);
	(void)flags;
	if (fake_injected(error))
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
	struct fake_handle *m = fake_get(map, MAP);

	assert(flags == 0);
	m->of->users--;
	if (m->registers && W.holder == m->of->b)
		fake_set_holder(NULL);
	fake_drop(m);
	*error = SCI_ERR_OK;
}

void SCIMapRemoteSegmentForDevice(sci_remote_segment_t segment, sci_smartio_device_t device,
				  sci_ioaddr_t *ioaddr, size_t offset, size_t size,
				  unsigned int flags, sci_error_t *error)
{
	struct fake_handle *c = fake_get(segment, CONNECTION);

	assert(offset == 0 && size == c->size && flags == 0 && !c->bar && !c->reachable);
	if (fake_injected(error))
		return;
	c->reachable = true;
	*ioaddr = fake_region_add(fake_borrower_of(device), c, c->at, size);
}

void SCIUnmapRemoteSegmentForDevice(sci_remote_segment_t segment, sci_smartio_device_t device,
				    unsigned int flags, sci_error_t *error)
{
	struct fake_handle *c = fake_get(segment, CONNECTION);
	struct fake_borrower *b = fake_borrower_of(device);

	assert(flags == 0 && c->reachable);
	*error = !b->ended && fake_region_held(b->id, c) ? SCI_ERR_BUSY : SCI_ERR_OK;
	if (*error != SCI_ERR_OK)
		return;
	if (!b->ended)
		fake_region_drop(b->id, c, false);
	c->reachable = false;
}

static unsigned last_id; /* of a local segment */

void SCICreateSegment(sci_desc_t sd, sci_local_segment_t *segment, unsigned int segmentId,
		      size_t size, sci_cb_local_segment_t callback, void *callbackArg,
		      unsigned int flags, sci_error_t *error)
{
	struct fake_handle *s;

	fake_get(sd, SD);
	assert(!callback && !callbackArg && (flags & ~SCI_FLAG_EMPTY) == SCI_FLAG_AUTO_ID && size);
	(void)segmentId;
	if (fake_injected(error))
		return;
	s = fake_make(SEGMENT);
	s->id = ++last_id;
	s->size = (size + 4095) & ~(size_t)4095;
	s->at = flags & SCI_FLAG_EMPTY ? NULL : fake_memory(s->size);
	*segment = (sci_local_segment_t)s;
}

unsigned int SCIGetLocalSegmentId(sci_local_segment_t segment)
{
	return fake_get(segment, SEGMENT)->id;
}

void SCIShareSegment(sci_local_segment_t segment, unsigned int flags, sci_error_t *error)
{
	fake_get(segment, SEGMENT);
	assert(flags == 0);
	fake_injected(error);
}

/* Memory of the fake's lives as long as the fake. */
void SCIAttachLocalSegment(sci_desc_t sd, sci_local_segment_t *segment, unsigned int segmentId,
			   size_t *size, sci_cb_local_segment_t callback, void *callbackArg,
			   unsigned int flags, sci_error_t *error)
{
	struct fake_handle *s = fake_handles, *own;

	fake_get(sd, SD);
	assert(!callback && !callbackArg && flags == 0);
	if (fake_injected(error))
		return;
	if (fake.attach_at && --fake.attach_at == 0) {
		*error = fake.attach_error;
		return;
	}
	while (s && (s->kind != SEGMENT || s->id != segmentId))
		s = s->next;
	if (!s) {
		*error = SCI_ERR_NO_SUCH_SEGMENT;
		return;
	}
	own = fake_make(SEGMENT);
	own->id = s->id;
	own->at = s->at;
	*size = own->size = s->size;
	*segment = (sci_local_segment_t)own;
}

/* Where it is, it is the drive's, too. */
void SCIRegisterSegmentMemory(void *address, size_t size, sci_local_segment_t segment,
			      unsigned int flags, sci_error_t *error)
{
	struct fake_handle *s = fake_get(segment, SEGMENT);

	assert(!s->at && flags == 0 && size == s->size && (uintptr_t)address % 4096 == 0);
	if (!fake_injected(error))
		s->at = address;
}

void SCIRemoveSegment(sci_local_segment_t segment, unsigned int flags, sci_error_t *error)
{
	struct fake_handle *s = fake_get(segment, SEGMENT);

	assert(flags == 0);
	*error = s->users || s->over[0].b || s->over[1].b ? SCI_ERR_BUSY : SCI_ERR_OK;
	if (*error == SCI_ERR_OK)
		fake_drop(s);
}

void SCIPrepareSegment(sci_local_segment_t segment, unsigned int localAdapterNo, unsigned int flags,
		       sci_error_t *error)
{
	fake_get(segment, SEGMENT);
	assert(localAdapterNo < FAKE_ADAPTERS && flags == 0);
	fake_injected(error);
}

void SCISetSegmentAvailable(sci_local_segment_t segment, unsigned int localAdapterNo,
			    unsigned int flags, sci_error_t *error)
{
	assert(localAdapterNo < FAKE_ADAPTERS && flags == 0);
	if (!fake_injected(error))
		fake_get(segment, SEGMENT)->over[localAdapterNo].available = true;
}

void SCISetSegmentUnavailable(sci_local_segment_t segment, unsigned int localAdapterNo,
			      unsigned int flags, sci_error_t *error)
{
	struct fake_handle *s = fake_get(segment, SEGMENT);

	assert(localAdapterNo < FAKE_ADAPTERS && s->over[localAdapterNo].available && flags == 0);
	s->over[localAdapterNo].available = false;
	*error = SCI_ERR_OK;
}

void *SCIMapLocalSegment(sci_local_segment_t segment, sci_map_t *map, size_t offset, size_t size,
			 void *addr, unsigned int flags, sci_error_t *error)
{
	struct fake_handle *s = fake_get(segment, SEGMENT);

	assert(!addr && flags == 0 && offset == 0 && size <= s->size);
	if (fake_injected(error))
		return NULL;
	*map = (sci_map_t)make_map(s);
	return s->at;
}

void SCIMapLocalSegmentForDevice(sci_local_segment_t segment, unsigned int localAdapterNo,
				 sci_smartio_device_t device, sci_ioaddr_t *ioaddr, size_t offset,
				 size_t size, unsigned int flags, sci_error_t *error)
{
	struct fake_handle *s = fake_get(segment, SEGMENT);
	struct fake_over *over = &s->over[localAdapterNo];

	assert(localAdapterNo < FAKE_ADAPTERS && offset == 0 && size == s->size && flags == 0);
	assert(over->available && !over->b);
	if (fake_injected(error))
		return;
	over->b = fake_borrower_of(device);
	*ioaddr = fake_region_add(over->b, over, s->at, size);
}

void SCIUnmapLocalSegmentForDevice(sci_local_segment_t segment, unsigned int localAdapterNo,
				   sci_smartio_device_t device, unsigned int flags,
				   sci_error_t *error)
{
	struct fake_handle *s = fake_get(segment, SEGMENT);
	struct fake_over *over = &s->over[localAdapterNo];
	struct fake_borrower *b = fake_borrower_of(device);

	assert(localAdapterNo < FAKE_ADAPTERS && flags == 0 && over->b == b);
	*error = !b->ended && fake_region_held(b->id, over) ? SCI_ERR_BUSY : SCI_ERR_OK;
	if (*error != SCI_ERR_OK)
		return;
	if (!b->ended)
		fake_region_drop(b->id, over, false);
	over->b = NULL;
}
