/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "eventfd/eventfd.h"
#include "relay_fake.h"
#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/guest.h"

#define PAGE 4096u
#define FILE_FD 100

struct fake_segment {
	struct fake_device *device; /* of a BAR; NULL: memory */
	unsigned bar, maps;
	uint64_t size;
	bool prepared;
	void *mapped;
};

struct fake_device fake_device[FAKE_DEVICES];
static uint8_t bar_memory[FAKE_DEVICES][2][FAKE_BAR2];
static unsigned fails_in;
static long segments, interrupts, connections;

static void want(bool right)
{
	if (!right)
		abort();
}

/* Whether this call is the one that fails. */
static bool fails(sci_error_t *error, sci_error_t how)
{
	bool now = fails_in == 1;

	if (fails_in)
		fails_in--;
	*error = now ? how : SCI_ERR_OK;
	return now;
}

void fake_begin(void)
{
	memset(fake_device, 0, sizeof(fake_device));
	fails_in = 0;
}

void fake_fail(unsigned call)
{
	fails_in = call;
}

void fake_end(void)
{
	for (unsigned i = 0; i < FAKE_DEVICES; i++)
		want(!fake_device[i].borrowed && !fake_device[i].maps &&
		     !fake_device[i].connected && !fake_device[i].vectors);
	want(segments == 0 && interrupts == 0 && connections == 0);
}

bool fake_is_bar(const struct fake_map *map, unsigned *ret_device, unsigned *ret_bar)
{
	if (!map->of->device)
		return false;
	*ret_device = (unsigned)(map->of->device - fake_device);
	*ret_bar = map->of->bar;
	return true;
}

static uint64_t bar_size(const struct fake_device *d, unsigned bar)
{
	return bar == 0 ? FAKE_BAR0 : bar == 2 && d == &fake_device[1] ? FAKE_BAR2 : 0;
}

void tool_note(const char *fmt, ...)
{
	want(*fmt);
}

const char *smartio_last_error(void)
{
	return "it failed";
}

/* ---- devices ---- */

static struct fake_device *of(sci_smartio_device_t device)
{
	struct fake_device *d = (void *)device;

	want(d >= fake_device && d < fake_device + FAKE_DEVICES && d->borrowed);
	return d;
}

void SCIOpen(sci_desc_t *sd, unsigned int flags, sci_error_t *error)
{
	(void)flags;
	*sd = NULL;
	*error = SCI_ERR_OK;
}

void SCIGetLocalNodeId(unsigned int adapter, unsigned int *node, unsigned int flags,
		       sci_error_t *error)
{
	(void)adapter;
	(void)flags;
	*node = 4;
	*error = SCI_ERR_OK;
}

void smartio_find_device(const char *name, unsigned int *fdid, sci_error_t *error)
{
	*fdid = (unsigned)(name[0] - '0');
	*error = SCI_ERR_OK;
}

void smartio_device_layout(unsigned int fdid, struct smartio_device_layout *layout,
			   sci_error_t *error)
{
	*layout = (struct smartio_device_layout){
		.vendor = 1, .msix_count = 3, .msix_offset = 0x2000, .translated = 1, .resets = 1};
	for (unsigned i = 0; i < 6; i++)
		layout->bar_size[i] = bar_size(&fake_device[fdid], i);
	*error = SCI_ERR_OK;
}

void SCIBorrowDevice(sci_desc_t sd, sci_smartio_device_t *device, unsigned int fdid,
		     unsigned int flags, sci_error_t *error)
{
	struct fake_device *d = &fake_device[fdid];

	(void)sd;
	want(flags == SCI_FLAG_EXCLUSIVE && !d->borrowed);
	if (fails(error, SCI_ERR_NOT_AVAILABLE))
		return;
	*d = (struct fake_device){.borrowed = true};
	*device = (void *)d;
}

void SCIReturnDevice(sci_smartio_device_t device, unsigned int flags, sci_error_t *error)
{
	struct fake_device *d = of(device);

	(void)flags;
	want(!d->maps && !d->connected);
	d->borrowed = false;
	d->vectors = 0; /* they end with the borrow */
	*error = SCI_ERR_OK;
}

void smartio_device_reset(sci_smartio_device_t device, sci_error_t *error)
{
	if (!fails(error, SCI_ERR_NOT_CONNECTED))
		of(device)->resets++;
}

void smartio_device_restart(sci_smartio_device_t device, sci_error_t *error)
{
	smartio_device_reset(device, error);
}

int smartio_device_lost(sci_smartio_device_t device)
{
	return of(device)->lost;
}

void smartio_wait_device_event(sci_smartio_device_t device, struct smartio_device_event *event,
			       unsigned int timeout_ms, sci_error_t *error)
{
	struct fake_device *d = of(device);

	want(timeout_ms == 0);
	*event = (struct smartio_device_event){.kind = SMARTIO_DEVICE_RESET};
	*error = SCI_ERR_OK;
	if (d->resets) {
		d->resets--;
	} else if (d->forced) {
		d->forced--;
	} else if (d->lost) {
		event->kind = SMARTIO_DEVICE_LOST;
		d->lost = false; /* once; the relay keeps it */
	} else {
		*error = SCI_ERR_TIMEOUT;
	}
}

/* ---- segments: memory, and BARs ---- */

static struct fake_segment *segment_new(struct fake_device *d, unsigned bar, uint64_t size)
{
	struct fake_segment *s = calloc(1, sizeof(*s));

	want(s);
	*s = (struct fake_segment){.device = d, .bar = bar, .size = size};
	segments++;
	if (d)
		d->connected++;
	return s;
}

static void segment_free(struct fake_segment *s)
{
	want(s->maps == 0 && !s->mapped);
	segments--;
	if (s->device)
		s->device->connected--;
	free(s);
}

void SCIConnectDeviceSegment(sci_smartio_device_t device, sci_remote_segment_t *segment,
			     unsigned int id, unsigned int memtype,
			     sci_cb_remote_segment_t callback, void *arg, unsigned int flags,
			     sci_error_t *error)
{
	struct fake_device *d = of(device);

	(void)callback;
	(void)arg;
	want(memtype == SCI_MEMTYPE_BAR && flags == 0 && bar_size(d, id));
	if (!fails(error, SCI_ERR_NOT_CONNECTED))
		*segment = (void *)segment_new(d, id, bar_size(d, id));
}

volatile void *SCIMapRemoteSegment(sci_remote_segment_t segment, sci_map_t *map, size_t offset,
				   size_t size, void *addr, unsigned int flags, sci_error_t *error)
{
	struct fake_segment *s = (void *)segment;

	(void)addr;
	(void)flags;
	want(offset == 0 && size == s->size && !s->mapped);
	if (fails(error, SCI_ERR_NOT_CONNECTED))
		return NULL;
	s->mapped = bar_memory[s->device - fake_device][s->bar / 2];
	*map = (void *)s;
	return s->mapped;
}

int smartio_map_file(sci_map_t map, size_t offset, uint64_t *file_offset, size_t *bytes,
		     sci_error_t *error)
{
	const struct fake_segment *s = (void *)map;

	want(offset < s->size);
	*error = SCI_ERR_OK;
	if (s->bar == 0 && offset != PAGE)
		return -1;
	*file_offset = offset;
	*bytes = s->bar == 0 ? PAGE : s->size;
	return FILE_FD;
}

void SCIUnmapSegment(sci_map_t map, unsigned int flags, sci_error_t *error)
{
	struct fake_segment *s = (void *)map;

	(void)flags;
	want(s->mapped);
	s->mapped = NULL;
	*error = SCI_ERR_OK;
}

void SCIDisconnectSegment(sci_remote_segment_t segment, unsigned int flags, sci_error_t *error)
{
	(void)flags;
	segment_free((void *)segment);
	*error = SCI_ERR_OK;
}

void smartio_import_segment(sci_desc_t sd, sci_local_segment_t *segment, unsigned int id, int fd,
			    uint64_t offset, size_t size, unsigned int flags, sci_error_t *error)
{
	(void)sd;
	(void)id;
	(void)offset;
	want(fd >= 0 && flags == SCI_FLAG_AUTO_ID);
	if (!fails(error, SCI_ERR_ILLEGAL_PARAMETER))
		*segment = (void *)segment_new(NULL, 0, size);
}

void SCIPrepareSegment(sci_local_segment_t segment, unsigned int adapter, unsigned int flags,
		       sci_error_t *error)
{
	(void)adapter;
	(void)flags;
	if (!fails(error, SCI_ERR_SYSTEM))
		((struct fake_segment *)(void *)segment)->prepared = true;
}

void SCIRemoveSegment(sci_local_segment_t segment, unsigned int flags, sci_error_t *error)
{
	(void)flags;
	segment_free((void *)segment);
	*error = SCI_ERR_OK;
}

/* ---- what devices reach ---- */

static void map_at(struct fake_device *d, struct fake_segment *s, uint64_t at, uint64_t offset,
		   uint64_t size, sci_error_t *error)
{
	struct fake_map *m;

	want(offset <= s->size && size <= s->size - offset && s->device != d);
	if (at % PAGE || at + (size - 1) < at || (at + (size - 1)) >> 48) {
		*error = SCI_ERR_ILLEGAL_PARAMETER;
		return;
	}
	for (m = d->maps; m; m = m->next)
		if (at <= m->at + (m->size - 1) && m->at <= at + (size - 1)) {
			*error = SCI_ERR_HW_NOSPC;
			return;
		}
	if (fails(error, SCI_ERR_HW_NOSPC))
		return;
	m = calloc(1, sizeof(*m));
	want(m);
	*m = (struct fake_map){d->maps, s, at, offset, size};
	d->maps = m;
	s->maps++;
}

static void unmap(struct fake_device *d, struct fake_segment *s, sci_error_t *error)
{
	struct fake_map **at = &d->maps, *m;

	while ((m = *at) && m->of != s)
		at = &m->next;
	want(m);
	*at = m->next;
	free(m);
	s->maps--;
	*error = SCI_ERR_OK;
}

void smartio_map_segment_at(sci_local_segment_t segment, unsigned int adapter,
			    sci_smartio_device_t device, sci_ioaddr_t ioaddr, size_t offset,
			    size_t size, unsigned int flags, sci_error_t *error)
{
	struct fake_segment *s = (void *)segment;

	(void)adapter;
	want(flags == 0 && s->prepared);
	map_at(of(device), s, ioaddr, offset, size, error);
}

void SCIUnmapLocalSegmentForDevice(sci_local_segment_t segment, unsigned int adapter,
				   sci_smartio_device_t device, unsigned int flags,
				   sci_error_t *error)
{
	(void)adapter;
	(void)flags;
	unmap(of(device), (void *)segment, error);
}

void smartio_map_remote_segment_at(sci_remote_segment_t segment, sci_smartio_device_t device,
				   sci_ioaddr_t ioaddr, size_t offset, size_t size,
				   unsigned int flags, sci_error_t *error)
{
	struct fake_segment *s = (void *)segment;

	want(flags == 0 && s->device && s->device->borrowed);
	map_at(of(device), s, ioaddr, offset, size, error);
}

void SCIUnmapRemoteSegmentForDevice(sci_remote_segment_t segment, sci_smartio_device_t device,
				    unsigned int flags, sci_error_t *error)
{
	(void)flags;
	unmap(of(device), (void *)segment, error);
}

/* ---- interrupts ---- */

int sio_eventfd_add(struct sio_eventfd *events, int fd, uint64_t count)
{
	(void)events;
	want(fd >= 0 && count == 1);
	return 0;
}

void smartio_import_interrupt(sci_desc_t sd, sci_local_interrupt_t *interrupt, unsigned int adapter,
			      unsigned int *number, int eventfd, unsigned int flags,
			      sci_error_t *error)
{
	(void)sd;
	(void)adapter;
	want(eventfd >= 0 && flags == 0);
	if (fails(error, SCI_ERR_NOSPC))
		return;
	*number = 1;
	*interrupt = malloc(1);
	want(*interrupt);
	interrupts++;
}

void SCIRemoveInterrupt(sci_local_interrupt_t interrupt, unsigned int flags, sci_error_t *error)
{
	(void)flags;
	free((void *)interrupt);
	interrupts--;
	*error = SCI_ERR_OK;
}

void SCIConnectInterrupt(sci_desc_t sd, sci_remote_interrupt_t *to, unsigned int node,
			 unsigned int adapter, unsigned int number, unsigned int timeout,
			 unsigned int flags, sci_error_t *error)
{
	(void)sd;
	(void)node;
	(void)adapter;
	(void)number;
	(void)timeout;
	(void)flags;
	if (fails(error, SCI_ERR_NO_SUCH_INTNO))
		return;
	*to = malloc(1);
	want(*to);
	connections++;
}

void SCIDisconnectInterrupt(sci_remote_interrupt_t to, unsigned int flags, sci_error_t *error)
{
	(void)flags;
	free((void *)to);
	connections--;
	*error = SCI_ERR_OK;
}

void smartio_connect_device_interrupt(sci_smartio_device_t device, unsigned int *vector,
				      sci_remote_interrupt_t to, sci_error_t *error)
{
	struct fake_device *d = of(device);

	want(to && *vector < 3 && !(d->vectors & 1u << *vector));
	if (!fails(error, SCI_ERR_BUSY))
		d->vectors |= 1u << *vector;
}

void smartio_disconnect_device_interrupt(sci_smartio_device_t device, unsigned int vector,
					 sci_error_t *error)
{
	struct fake_device *d = of(device);

	want(d->vectors & 1u << vector);
	d->vectors &= ~(1u << vector);
	*error = SCI_ERR_OK;
}
