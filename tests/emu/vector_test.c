/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupt vectors of devices: where messages go, masks, ends, faults, counts. */
#include <stdio.h>

#include "fake.h"

/* A device of the lender, an interrupt here and one with the client, and a way to that. */
struct wires {
	struct fake *f;
	struct emu_dev *dev;
	uint64_t here, there; /* interrupts */
	int here_fd, there_fd;
	struct sio_evt_grant grant;
	uint64_t map, requester;
};

static uint64_t new_irq(struct fake *f, unsigned host, uint64_t owner, int *ret_fd)
{
	struct sio_req_irq_new req = {.h.owner = owner};
	struct sio_evt_irq_new evt;
	struct emu_object *o;

	assert_int_equal(ask(f, host, &req, SIO_OP_IRQ_NEW, &evt), 0);
	HASH_FIND(hh, f->room->host[host].objects, &evt.id, sizeof(evt.id), o);
	assert_non_null(o);
	*ret_fd = ((struct emu_irq *)o)->fd;
	return evt.id;
}

static struct sio_evt_grant grant_irq(struct fake *f, unsigned host, uint64_t irq, unsigned peer)
{
	struct sio_req_grant req = {
		.source_kind = SIO_KIND_IRQ, .access = 3, .source = irq, .peer_node = NODE(peer)};
	struct sio_evt_grant evt;

	assert_int_equal(ask(f, host, &req, SIO_OP_GRANT, &evt), 0);
	return evt;
}

static int set_as(struct wires *w, uint64_t owner, unsigned vector, uint64_t irq, unsigned mask)
{
	struct sio_req_vector req = {.h.owner = owner,
				     .device = DEV(LENDER, 0),
				     .irq = irq,
				     .vector = vector,
				     .mask = mask};

	return ask_only(w->f, LENDER, &req, SIO_OP_VECTOR);
}

static int set(struct wires *w, unsigned vector, uint64_t irq)
{
	return set_as(w, 0, vector, irq, 0);
}

static int set_message(struct wires *w, unsigned vector, uint64_t address, uint32_t data)
{
	struct sio_req_vector req = {
		.device = DEV(LENDER, 0), .address = address, .data = data, .vector = vector};

	return ask_only(w->f, LENDER, &req, SIO_OP_VECTOR);
}

static void wires_init(struct wires *w, unsigned iommu)
{
	struct fake *f = fake_new(iommu);

	memset(w, 0, sizeof(*w));
	w->f = f;
	for (unsigned i = 0; i < 3; i++)
		fake_up(f, i);
	fake_open(f, LENDER, 0);
	w->dev = fake_dev(f, LENDER, 0);
	w->here = new_irq(f, LENDER, 0, &w->here_fd);
	w->there = new_irq(f, CLIENT, 0, &w->there_fd);
	w->grant = grant_irq(f, CLIENT, w->there, LENDER);
	w->map = fake_map(f, LENDER, 0, CLIENT, &w->grant).id;
	w->requester = fake_requester(f, LENDER, 0, 0);
	f->signals = 0;
	fake_forget(f);
}

static void assert_raises(struct wires *w, unsigned vector, int fd)
{
	unsigned before = w->f->signals;

	w->dev->interrupt(w->dev, vector);
	assert_int_equal(w->f->signals, before + 1);
	assert_int_equal(w->f->signalled, fd);
}

static void assert_silent(struct wires *w, unsigned vector)
{
	unsigned before = w->f->signals;

	w->dev->interrupt(w->dev, vector);
	assert_int_equal(w->f->signals, before);
	assert_null(fake_take(w->f, LENDER, SIO_EV_FAULT));
}

static void assert_faults(struct wires *w, unsigned vector, const char *reason)
{
	unsigned before = w->f->signals;
	struct fake_event *e;

	fake_forget(w->f);
	w->dev->interrupt(w->dev, vector);
	assert_int_equal(w->f->signals, before);
	e = fake_take(w->f, LENDER, SIO_EV_FAULT);
	assert_non_null(e);
	assert_int_equal(e->u.fault.access, SIO_FAULT_MSI);
	assert_int_equal(e->u.fault.length, 4);
	if (!strstr(e->u.fault.reason, reason))
		fail_msg("'%s' does not contain '%s'", e->u.fault.reason, reason);
	w->f->clock += 1000000000;
}

static uint64_t msgs(struct wires *w, unsigned host, const char *name)
{
	return host == LENDER + 100
		       ? fake_counter(w->f, LENDER, SIO_KIND_DEVICE, DEV(LENDER, 0), name)
		       : fake_counter(w->f, host, SIO_KIND_ADAPTER, 0, name);
}

static void messages_reach_interrupts_of_both_hosts(void **state)
{
	(void)state;
	for (unsigned iommu = 0; iommu < 8; iommu++) {
		struct wires w;

		wires_init(&w, iommu);
		assert_int_equal(set(&w, 0, w.here), 0);
		assert_int_equal(set(&w, 3, w.map), 0);
		for (unsigned i = 0; i < 3; i++) {
			assert_raises(&w, 0, w.here_fd);
			assert_raises(&w, 3, w.there_fd);
		}
		assert_silent(&w, 1); /* never set */
		assert_int_equal(w.f->n_events, 0);
		fake_free(w.f);
	}
}

static void messages_are_counted_where_they_pass(void **state)
{
	struct wires w;

	(void)state;
	wires_init(&w, 1 << LENDER);
	set(&w, 0, w.here);
	set(&w, 1, w.map);
	w.dev->interrupt(w.dev, 0);
	w.dev->interrupt(w.dev, 1);
	w.dev->interrupt(w.dev, 2);
	assert_int_equal(msgs(&w, LENDER + 100, "msg"), 2);
	assert_int_equal(msgs(&w, LENDER + 100, "wr_tlp"), 2);
	assert_int_equal(msgs(&w, LENDER + 100, "wr_bytes"), 8);
	assert_int_equal(msgs(&w, LENDER, "msg"), 1);
	assert_int_equal(msgs(&w, LENDER, "wr_tlp"), 1);
	assert_int_equal(msgs(&w, CLIENT, "msg"), 1);
	assert_int_equal(msgs(&w, CLIENT, "wr_bytes"), 4);
	assert_int_equal(msgs(&w, OTHER, "msg"), 0);
	fake_free(w.f);
}

static void masked_vectors_keep_one_interrupt(void **state)
{
	struct wires w;

	(void)state;
	wires_init(&w, 0);
	assert_int_equal(set_as(&w, 0, 2, w.here, 1), 0);
	assert_silent(&w, 2);
	assert_silent(&w, 2);
	assert_int_equal(set_as(&w, 0, 2, w.here, 0), 0);
	assert_int_equal(w.f->signals, 1); /* once */
	assert_int_equal(set_as(&w, 0, 2, w.here, 1), 0);
	assert_int_equal(set_as(&w, 0, 2, w.here, 0), 0);
	assert_int_equal(w.f->signals, 1); /* nothing came meanwhile */
	assert_raises(&w, 2, w.here_fd);
	/* What was kept goes to the target that it has when the mask falls. */
	set_as(&w, 0, 2, w.here, 1);
	assert_silent(&w, 2);
	assert_int_equal(set_as(&w, 0, 2, w.map, 1), 0);
	assert_int_equal(set_as(&w, 0, 2, w.map, 0), 0);
	assert_int_equal(w.f->signals, 3);
	assert_int_equal(w.f->signalled, w.there_fd);
	/* Taken away, it keeps nothing. */
	set_as(&w, 0, 2, w.here, 1);
	assert_silent(&w, 2);
	assert_int_equal(set(&w, 2, 0), 0);
	assert_silent(&w, 2);
	assert_int_equal(set(&w, 2, w.here), 0);
	assert_int_equal(w.f->signals, 3);
	fake_free(w.f);
}

static void a_reset_keeps_vectors_and_forgets_what_was_kept(void **state)
{
	struct sio_req_reset req = {.device = DEV(LENDER, 0), .kind = SIO_RESET_FUNCTION};
	struct wires w;

	(void)state;
	wires_init(&w, 0);
	set(&w, 0, w.here);
	set_as(&w, 0, 1, w.here, 1);
	assert_silent(&w, 1);
	assert_int_equal(ask_only(w.f, LENDER, &req, SIO_OP_RESET), 0);
	assert_raises(&w, 0, w.here_fd);
	assert_int_equal(set_as(&w, 0, 1, w.here, 0), 0);
	assert_int_equal(w.f->signals, 1);
	fake_free(w.f);
}

static void what_a_vector_refers_to_stays(void **state)
{
	struct wires w;

	(void)state;
	wires_init(&w, 1 << LENDER);
	assert_int_equal(set(&w, 0, w.here), 0);
	assert_int_equal(set(&w, 1, w.map), 0);
	assert_int_equal(fake_end(w.f, LENDER, SIO_OP_IRQ_FREE, w.here, 0), -EBUSY);
	assert_int_equal(fake_end(w.f, LENDER, SIO_OP_UNMAP, w.map, 0), -EBUSY);
	assert_int_equal(fake_end(w.f, LENDER, SIO_OP_REQUESTER_DEL, w.requester, 0), -EBUSY);
	assert_int_equal(fake_count(w.f, LENDER, SIO_KIND_VECTOR), 2);
	assert_int_equal(set(&w, 0, 0), 0);
	assert_int_equal(set(&w, 0, 0), 0); /* there is none: as wanted */
	assert_int_equal(set(&w, 1, 0), 0);
	assert_int_equal(fake_count(w.f, LENDER, SIO_KIND_VECTOR), 0);
	assert_int_equal(fake_end(w.f, LENDER, SIO_OP_IRQ_FREE, w.here, 0), 0);
	assert_int_equal(fake_end(w.f, LENDER, SIO_OP_UNMAP, w.map, 0), 0);
	assert_int_equal(fake_end(w.f, LENDER, SIO_OP_REQUESTER_DEL, w.requester, 0), 0);
	fake_free(w.f);
}

/* Whoever ends, nothing of a vector waits for a word. */
static void vectors_end_with_their_owner(void **state)
{
	(void)state;
	for (unsigned iommu = 0; iommu < 4; iommu++) {
		uint64_t owner, other, irq, map;
		struct wires w;
		int fd;

		wires_init(&w, iommu);
		owner = fake_owner(w.f, LENDER);
		other = fake_owner(w.f, LENDER);
		irq = new_irq(w.f, LENDER, other, &fd);
		map = fake_map(w.f, LENDER, owner, CLIENT, &w.grant).id;
		assert_int_equal(set_as(&w, owner, 0, irq, 0), 0);
		assert_int_equal(set_as(&w, owner, 1, map, 0), 0);
		assert_int_equal(set_as(&w, other, 0, irq, 0), -EBUSY);
		assert_int_equal(set_as(&w, other, 0, 0, 0), -EBUSY);
		emu_room_owner_hup(w.f->room, LENDER, other);
		assert_raises(&w, 0, fd); /* the interrupt stays for the vector */
		emu_room_owner_hup(w.f->room, LENDER, owner);
		assert_silent(&w, 0);
		assert_silent(&w, 1);
		assert_int_equal(fake_count(w.f, LENDER, SIO_KIND_VECTOR), 0);
		assert_int_equal(fake_count(w.f, LENDER, SIO_KIND_OWNER), 0);
		assert_int_equal(fake_count(w.f, LENDER, SIO_KIND_IRQ), 1);
		assert_int_equal(fake_count(w.f, LENDER, SIO_KIND_MAP), 1);
		fake_free(w.f);
	}
}

static void the_daemon_may_take_any_vector_away(void **state)
{
	struct wires w;
	uint64_t owner;

	(void)state;
	wires_init(&w, 0);
	owner = fake_owner(w.f, LENDER);
	assert_int_equal(set_as(&w, owner, 0, w.here, 0), 0);
	assert_int_equal(set(&w, 0, 0), 0);
	assert_silent(&w, 0);
	assert_int_equal(set_as(&w, owner, 0, w.here, 0), 0);
	assert_raises(&w, 0, w.here_fd);
	fake_free(w.f);
}

static void lost_ways_are_faults(void **state)
{
	(void)state;
	for (unsigned iommu = 0; iommu < 8; iommu++) {
		struct wires w;

		wires_init(&w, iommu);
		set(&w, 0, w.map);
		emu_room_link(w.f->room, CLIENT, 0, false);
		assert_faults(&w, 0, "is down");
		emu_room_link(w.f->room, CLIENT, 0, true);
		assert_raises(&w, 0, w.there_fd);
		/* Without the exporter's word: its IOMMU knows, else the interrupt itself must go.
		 */
		assert_int_equal(fake_end(w.f, CLIENT, SIO_OP_UNGRANT, w.grant.id, 0), 0);
		if (iommu & 1 << CLIENT)
			assert_faults(&w, 0, "was not given to");
		else
			assert_raises(&w, 0, w.there_fd);
		assert_int_equal(fake_end(w.f, CLIENT, SIO_OP_IRQ_FREE, w.there, 0), 0);
		assert_faults(&w, 0, "no interrupt");
		emu_room_host_down(w.f->room, CLIENT);
		fake_up(w.f, CLIENT);
		assert_faults(&w, 0, "in start 2");
		fake_free(w.f);
	}
}

static void a_host_that_crashes_takes_its_vectors_along(void **state)
{
	struct wires w;

	(void)state;
	wires_init(&w, 1 << LENDER);
	set(&w, 0, w.here);
	set(&w, 1, w.map);
	emu_room_host_down(w.f->room, LENDER);
	fake_up(w.f, LENDER);
	fake_open(w.f, LENDER, 0);
	fake_forget(w.f);
	assert_silent(&w, 0);
	assert_silent(&w, 1);
	assert_int_equal(fake_count(w.f, LENDER, SIO_KIND_VECTOR), 0);
	fake_free(w.f);
}

/* Address and data as a virtual machine's driver writes them. */
static void messages_may_go_anywhere(void **state)
{
	(void)state;
	for (unsigned iommu = 0; iommu < 2; iommu++) {
		struct sio_evt_dmamap dma;
		struct wires w;
		uint64_t mem;

		wires_init(&w, iommu);
		mem = fake_alloc(w.f, LENDER, 0, 0x1000);
		dma = fake_dmamap(w.f, LENDER, 0, 0, SIO_KIND_MEM, mem, 0x1000, 3);
		assert_int_equal(set_message(&w, 0, dma.iova + 8, 0x12345678), 0);
		w.dev->interrupt(w.dev, 0);
		assert_int_equal(*(uint32_t *)(fake_data(w.f, LENDER, mem) + 8), 0x12345678);
		assert_int_equal(w.f->n_events, 0);
		assert_int_equal(set_message(&w, 0, 0x700000000000, 1), 0);
		assert_faults(&w, 0, iommu ? "nothing is mapped" : "nothing is at");
		/* An interrupt of the host that it was not given: remapping refuses it. */
		assert_int_equal(set_message(&w, 0, EMU_MSI_BASE + w.here * 16 % EMU_MSI_SIZE,
					     (uint32_t)w.here),
				 0);
		if (iommu)
			assert_faults(&w, 0, "was not given to");
		else
			assert_raises(&w, 0, w.here_fd);
		assert_int_equal(set_message(&w, 0, EMU_MSI_BASE + 4, (uint32_t)w.here), 0);
		assert_faults(&w, 0, "no interrupt");
		fake_free(w.f);
	}
}

static void bad_requests_change_nothing(void **state)
{
	struct sio_req_vector req;
	struct wires w;
	uint64_t mem;

	(void)state;
	wires_init(&w, 1 << LENDER);
	assert_int_equal(set(&w, 0, w.here), 0);
	assert_int_equal(set(&w, 4, w.here), -EINVAL);
	assert_non_null(strstr(fake_text(w.f), "4 vectors"));
	assert_int_equal(set_as(&w, 0, 0, w.here, 2), -EINVAL);
	assert_int_equal(set(&w, 0, 0x7777777), -ENOENT);
	mem = fake_alloc(w.f, LENDER, 0, 0x1000);
	assert_int_equal(set(&w, 0, mem), -ENOENT);
	assert_int_equal(set_as(&w, 0, 0, 0, 1), -EINVAL);
	req = (struct sio_req_vector){.device = DEV(LENDER, 0), .irq = w.here, .data = 1};
	assert_int_equal(ask_only(w.f, LENDER, &req, SIO_OP_VECTOR), -EINVAL);
	assert_int_equal(set_message(&w, 0, 2, 1), -EINVAL);
	req = (struct sio_req_vector){.device = DEV(LENDER, 1), .irq = w.here};
	assert_int_equal(ask_only(w.f, LENDER, &req, SIO_OP_VECTOR), -EPERM); /* not open */
	assert_raises(&w, 0, w.here_fd);
	assert_int_equal(fake_count(w.f, LENDER, SIO_KIND_VECTOR), 1);
	fake_free(w.f);
}

static void a_window_needs_a_requester_entry(void **state)
{
	struct wires w;

	(void)state;
	wires_init(&w, 0);
	assert_int_equal(fake_end(w.f, LENDER, SIO_OP_REQUESTER_DEL, w.requester, 0), 0);
	assert_int_equal(set(&w, 0, w.map), -ENOENT);
	assert_non_null(strstr(fake_text(w.f), "REQUESTER_ADD"));
	fake_free(w.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_reach_interrupts_of_both_hosts),
		cmocka_unit_test(messages_are_counted_where_they_pass),
		cmocka_unit_test(masked_vectors_keep_one_interrupt),
		cmocka_unit_test(a_reset_keeps_vectors_and_forgets_what_was_kept),
		cmocka_unit_test(what_a_vector_refers_to_stays),
		cmocka_unit_test(vectors_end_with_their_owner),
		cmocka_unit_test(the_daemon_may_take_any_vector_away),
		cmocka_unit_test(lost_ways_are_faults),
		cmocka_unit_test(a_host_that_crashes_takes_its_vectors_along),
		cmocka_unit_test(messages_may_go_anywhere),
		cmocka_unit_test(bad_requests_change_nothing),
		cmocka_unit_test(a_window_needs_a_requester_entry),
	};

	return cmocka_run_group_tests_name("vectors", tests, NULL, NULL);
}
