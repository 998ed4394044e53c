/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices that share what they have, and what is done to one of them while it is reset. */
#include <errno.h>
#include <unistd.h>

#include "shim.h"
#include "vfio_fake.h"

#define SECOND 0x101u /* its place: the first one's slot */

static uint64_t second_comes(struct port_world *w, struct fake *f)
{
	struct sio_evt_device info = {.bar_size = {16384},
				      .bdf = SECOND,
				      .msix_count = 17,
				      .resets = 1u << SIO_RESET_FUNCTION,
				      .name = "0000:01:00.1"};
	uint64_t id = vfio_port_device_here(f->port, &info);
	union port_packet evt;
	struct shim_ask a;

	shim_event(w, SIO_EV_DEVICE_BACK, &evt);
	shim_good(w, &a, SIO_OP_DEVICE_OPEN, 0);
	a.req.req.flags = 0;
	((struct sio_req_device_open *)(void *)&a.req)->device = id;
	shim_expect(w, &a, -1, 0, "DEVICE_OPEN of the second");
	return id;
}

static void second_goes(struct port_world *w, struct fake *f, uint64_t id)
{
	union port_packet evt;

	vfio_port_device_gone(f->port, id);
	shim_event(w, SIO_EV_DEVICE_GONE, &evt);
}

/* Its address. @at SIO_PORT_ANY: any. */
static uint64_t map(struct port_world *w, uint64_t device, uint64_t owner, uint64_t mem,
		    uint64_t at, int error)
{
	struct sio_req_dmamap *m;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_DMAMAP, owner);
	m = (void *)&a.req;
	m->device = device;
	m->target = mem;
	m->iova = at;
	return shim_expect(w, &a, -1, error, "DMAMAP") && error == 0
		       ? ((const struct sio_evt_dmamap *)(const void *)&a.answer)->iova
		       : 0;
}

static void reset(struct port_world *w, uint64_t device)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_RESET, 0);
	((struct sio_req_reset *)(void *)&a.req)->device = device;
	shim_expect(w, &a, -1, 0, "RESET");
}

void vfio_group_test(struct port_world *w, struct fake *f)
{
	uint64_t first = w->thing[T_DEVICE], second = second_comes(w, f), owner, mem, at[3];
	unsigned maps = f->maps;
	union port_packet evt;
	int fd = -1;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);
	mem = shim_make(w, SIO_OP_ALLOC, owner, NULL);
	at[0] = map(w, first, owner, mem, SIO_PORT_ANY, 0);
	at[1] = map(w, second, owner, mem, SIO_PORT_ANY, 0);
	shim_check(w, at[0] != at[1], "what is mapped for one is at no address of the other's");
	map(w, second, owner, mem, at[0], -EEXIST);
	map(w, first, owner, mem, at[1], -EEXIST);
	second_goes(w, f, second);
	shim_check(w, f->maps == maps + 1, "with one go its mappings, and no others");
	at[2] = map(w, first, owner, mem, at[1], 0);
	shim_check(w, at[2] == at[1], "its addresses can be given to the other one");
	shim_check(w, second_comes(w, f) == second, "it keeps its number");
	map(w, second, owner, mem, at[2], -EEXIST);
	map(w, second, owner, mem, SIO_PORT_ANY, 0);
	close(fd);
	fake_look(f);
	reset(w, second);
	shim_check(w, f->maps == maps + 2, "a reset of one settles what is its own");
	reset(w, first);
	shim_event(w, SIO_EV_OWNER_END, &evt);
	shim_check(w, f->maps == maps, "and of the other the rest");
	second_goes(w, f, second);
	port_report(w, "two devices of an IOMMU group");
}

/* The kernel lets no vector go while its device is reset: nobody is made to wait for that. */
void vfio_end_in_reset(struct port_world *w, struct fake *f)
{
	uint64_t owner, irq;
	struct sio_req_vector *v;
	union port_packet evt;
	struct shim_ask a;
	int fd = -1;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);
	irq = shim_make(w, SIO_OP_IRQ_NEW, owner, NULL);
	shim_good(w, &a, SIO_OP_VECTOR, owner);
	v = (void *)&a.req;
	v->irq = irq;
	v->vector = 7;
	shim_expect(w, &a, -1, 0, "VECTOR");
	shim_good(w, &a, SIO_OP_RESET, 0);
	shim_send(w, &a);
	close(fd);
	vfio_port_owner_hup(f->port, owner);
	shim_check(w, f->vectors & 1u << 7, "its vector is as it was");
	port_await(w, 0, w->cookie, &a.answer, &a.n_fds);
	shim_check(w, a.answer.evt.error == 0, "the reset is done");
	shim_event(w, SIO_EV_OWNER_END, &evt);
	shim_check(w, !(f->vectors & 1u << 7), "and then its owner ends");
	port_report(w, "an owner that ends in the middle of a reset");
}

static void ask_for_view(struct port_world *w, struct shim_ask *a, uint64_t device, uint64_t owner,
			 uint64_t view, uint32_t access)
{
	struct sio_req_dmamap *m;

	shim_good(w, a, SIO_OP_DMAMAP, owner);
	m = (void *)&a->req;
	m->device = device;
	m->target_kind = SIO_KIND_BAR;
	m->target = view;
	m->offset = 0;
	m->length = SHIM_PAGE;
	m->access = access;
}

static uint64_t map_view(struct port_world *w, uint64_t device, uint64_t owner, uint64_t view,
			 uint32_t access, int error)
{
	struct shim_ask a;

	ask_for_view(w, &a, device, owner, view, access);
	return shim_expect(w, &a, -1, error, "DMAMAP of a view") && error == 0 ? shim_id(&a) : 0;
}

static uint64_t view_of(struct port_world *w, uint64_t device, uint64_t owner, uint32_t access)
{
	struct sio_req_bar *m;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_BAR, owner);
	m = (void *)&a.req;
	m->device = device;
	m->access = access;
	if (!shim_expect(w, &a, -1, 0, "BAR"))
		return 0;
	shim_close(&a);
	return shim_id(&a);
}

static void close_view(struct port_world *w, uint64_t id, int error)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_BAR_CLOSE, 0);
	((struct sio_req_bar_close *)(void *)&a.req)->id = id;
	shim_expect(w, &a, -1, error, "BAR_CLOSE");
}

/* One device's registers are mapped for another until they are reset, or go. */
void vfio_bar_test(struct port_world *w, struct fake *f)
{
	uint64_t first = w->thing[T_DEVICE], second = second_comes(w, f), owner, view[2];
	uint32_t both = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
	unsigned maps = f->maps;
	union port_packet evt;
	int fd = -1;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);
	view[0] = view_of(w, second, owner, both);
	view[1] = view_of(w, second, owner, SIO_ACCESS_READ);
	map_view(w, second, owner, view[0], both, -EOPNOTSUPP);
	map_view(w, first, owner, view[1], both, -EACCES);
	map_view(w, first, owner, view[1] + 99, SIO_ACCESS_READ, -ENOENT);
	map_view(w, first, owner, view[1], SIO_ACCESS_READ, 0);
	close_view(w, view[1], -EBUSY);
	shim_check(w, f->maps == maps + 1, "it is mapped");
	reset(w, second);
	shim_check(w, f->maps == maps, "a reset of whose it is ends that");
	close_view(w, view[1], 0);
	map_view(w, first, owner, view[0], both, 0);
	second_goes(w, f, second);
	shim_check(w, f->maps == maps, "as it does when it goes");
	map_view(w, first, owner, view[0], both, -EOPNOTSUPP);
	second_comes(w, f);
	view[1] = view_of(w, second, owner, both);
	map_view(w, first, owner, view[1], both, 0);
	close(fd);
	fake_look(f);
	shim_check(w, f->maps == maps + 1, "when its owner ends it is in quarantine");
	reset(w, first);
	shim_event(w, SIO_EV_OWNER_END, &evt);
	shim_check(w, f->maps == maps, "until whoever reaches it was reset");
	second_goes(w, f, second);
	port_report(w, "a BAR as another device's target");
}

/* Nor is anybody made to wait who maps registers that are being reset for another device. */
void vfio_bar_in_reset(struct port_world *w, struct fake *f)
{
	uint64_t first = w->thing[T_DEVICE], second = second_comes(w, f), owner, view, asked[2];
	unsigned maps = f->maps;
	union port_packet evt;
	struct shim_ask a;
	int fd = -1;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);
	view = view_of(w, second, owner, SIO_ACCESS_READ);
	shim_good(w, &a, SIO_OP_RESET, 0);
	((struct sio_req_reset *)(void *)&a.req)->device = second;
	asked[0] = shim_send(w, &a);
	ask_for_view(w, &a, first, owner, view, SIO_ACCESS_READ);
	asked[1] = shim_send(w, &a);
	shim_check(w, f->maps == maps, "they are not mapped while they are reset");
	port_await(w, 0, asked[0], &a.answer, &a.n_fds);
	shim_check(w, a.answer.evt.error == 0, "the reset is done");
	port_await(w, 0, asked[1], &a.answer, &a.n_fds);
	shim_check(w, a.answer.evt.error == 0 && f->maps == maps + 1, "and then they are mapped");
	close(fd);
	fake_look(f);
	reset(w, first);
	shim_event(w, SIO_EV_OWNER_END, &evt);
	shim_check(w, f->maps == maps, "until whoever reaches them was reset");
	second_goes(w, f, second);
	port_report(w, "a BAR that is mapped in the middle of its reset");
}
