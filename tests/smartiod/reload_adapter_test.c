/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adapters come and go by the cluster's file, which daemons read before their ports do: one that is
 * listed is there when the port says so, and what goes over one that is not listed any more ends
 * when the port says that its paths are down.
 */
#include "reload.h"

#define FDID 0x400001 /* of node 4 */
#define LISTED 2      /* adapters of each host, while the second one is in the file */
#define SECOND 1      /* number of that one */

static struct world *make(unsigned listed, unsigned at_ports)
{
	struct world *w = world_new(3, 0);

	memset(&next, 0, sizeof(next));
	world_adapters(w, LISTED);
	for (unsigned i = 0; i < 3; i++)
		w->topology->host[i].n_adapters = listed;
	w->n_adapters = at_ports;
	w->file_read = read_file;
	fake_device_add(w, &fake);
	world_start(w);
	return w;
}

static void finish(struct world *w)
{
	for (unsigned i = 0; i < w->n_clients; i++)
		world_kill(w, &w->client[i]);
	world_run(w);
	assert_nothing_left(w);
	assert_int_equal(w->bad_ends, 0);
	assert_int_equal(fake.bad, 0);
	world_free(w);
}

/* All daemons go by a file with so many adapters; @changes: of each of the three hosts one, or 0 */
static void list_all(struct world *w, unsigned adapters, unsigned changes)
{
	struct done done;

	next.adapters = adapters;
	for (unsigned i = 0; i < 3; i++) {
		struct world_client *tool = world_client(w, i, SIO_CLIENT_TOOL);

		assert_int_equal(reload(w, tool, 0, &done), 0);
		assert_true(done.applied);
		assert_int_equal(done.count[SIO_RELOAD_NOW], changes);
		assert_int_equal(done.count[SIO_RELOAD_RESTART], 0);
		world_kill(w, tool);
	}
	world_run(w);
}

/* The ports have the second one, or have it no more; @paths_first: it is heard of in that order. */
static void change_ports(struct world *w, bool there, bool paths_first)
{
	w->n_adapters = there ? LISTED : LISTED - 1;
	for (unsigned i = 0; i < 3 && !paths_first; i++)
		world_cable(w, i, SECOND, there);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < i; k++)
			world_path(w, i, k, SECOND, there);
	for (unsigned i = 0; i < 3 && paths_first; i++)
		world_cable(w, i, SECOND, there);
	world_run(w);
}

static uint32_t probe(struct world *w, struct world_client *c, uint32_t adapter)
{
	struct sio_msg_node_probe msg = {.node = sio_to_le32(4), .adapter = sio_to_le32(adapter)};

	return world_call(w, c, SIO_MSG_NODE_PROBE, &msg, sizeof(msg))->error;
}

/* Return: 0, or the error. */
static uint32_t adapter(struct world *w, struct world_client *c, struct sio_rep_adapter *ret)
{
	struct sio_msg_adapter msg = {.adapter = sio_to_le32(SECOND)};
	const struct world_message *m = world_call(w, c, SIO_MSG_ADAPTER, &msg, sizeof(msg));

	if (m->error == 0)
		*ret = *(const struct sio_rep_adapter *)(const void *)m->data;
	return m->error;
}

static uint32_t is_up(struct world *w, struct world_client *c)
{
	struct sio_msg_link msg = {.adapter = sio_to_le32(SECOND)};
	const struct world_message *m = world_call(w, c, SIO_MSG_LINK, &msg, sizeof(msg));

	assert_int_equal(m->error, 0);
	return sio_from_le32(((const struct sio_rep_link *)(const void *)m->data)->up);
}

static void make_available(struct world *w, struct world_client *c, uint32_t segment)
{
	assert_int_equal(call_seg_adapter(w, c, SIO_MSG_SEG_PREPARE, segment, SECOND, 0), 0);
	assert_int_equal(call_seg_adapter(w, c, SIO_MSG_SEG_AVAILABLE, segment, SECOND, 0), 0);
}

static void one_comes_works_and_goes(void **state)
{
	struct world *w = make(1, 1);
	struct world_client *exporter = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *importer = world_client(w, 1, SIO_CLIENT_LIBRARY);
	const struct sio_evm_segment *evm;
	struct sio_rep_adapter rep;
	uint32_t h, c[2], m[2];

	(void)state;
	assert_int_equal(call_seg_export(w, exporter, 1, 4096, &h), 0);
	assert_int_equal(call_seg_connect_at(w, importer, 4, 1, 0, &c[0]), 0);
	assert_int_equal(call_seg_map(w, importer, c[0], 0, 4096, &m[0]), 0);
	for (unsigned turn = 0; turn < 4; turn++) {
		assert_int_equal(adapter(w, importer, &rep), ENXIO);
		assert_int_equal(probe(w, importer, SECOND), ENXIO);
		list_all(w, LISTED, 3);
		/* The file has it, and the port not yet. */
		assert_int_equal(adapter(w, importer, &rep), 0);
		assert_int_equal(sio_from_le32(rep.link_up), 0);
		assert_int_equal(is_up(w, importer), 0);
		assert_int_equal(probe(w, importer, SECOND), ENETDOWN);
		change_ports(w, true, turn % 2);
		assert_int_equal(adapter(w, importer, &rep), 0);
		assert_int_equal(sio_from_le32(rep.link_up), 1);
		assert_int_equal(is_up(w, importer), 1);
		assert_int_equal(probe(w, importer, SECOND), 0);
		/* On one that had this number before it was. */
		assert_int_not_equal(call_seg_connect_at(w, importer, 4, 1, SECOND, &c[1]), 0);
		make_available(w, exporter, h);
		assert_int_equal(call_seg_connect_at(w, importer, 4, 1, SECOND, &c[1]), 0);
		assert_int_equal(call_seg_map(w, importer, c[1], 0, 4096, &m[1]), 0);
		list_all(w, LISTED - 1, 3);
		/* The port has it still: what goes over it goes on, and nothing begins. */
		assert_null(world_event(importer, SIO_EVM_SEGMENT_REMOTE, turn));
		assert_int_equal(probe(w, importer, SECOND), ENXIO);
		change_ports(w, false, turn / 2);
		evm = world_event(importer, SIO_EVM_SEGMENT_REMOTE, turn);
		assert_non_null(evm);
		assert_int_equal(sio_from_le32(evm->handle), c[1]);
		assert_int_equal(sio_from_le32(evm->reason), SCI_CB_NOT_OPERATIONAL);
		assert_int_equal(call_handle(w, importer, SIO_MSG_SEG_UNMAP, m[1], 0), 0);
		assert_int_equal(call_handle(w, importer, SIO_MSG_SEG_DISCONNECT, c[1], 0), 0);
		assert_int_equal(world_resources(w, SIO_KIND_GRANT), 1);
		assert_int_equal(world_resources(w, SIO_KIND_MAP), 1);
		assert_int_equal(probe(w, importer, 0), 0);
	}
	finish(w);
}

/* With its registers mapped. */
static void borrow_over(struct world *w, struct world_client *c, uint32_t adapter)
{
	struct sio_msg_dev_borrow msg = {.fdid = sio_to_le32(FDID),
					 .over = sio_to_le32(adapter + 1)};
	const struct world_message *m = world_call(w, c, SIO_MSG_DEV_BORROW, &msg, sizeof(msg));
	uint32_t handle, segment, map, access[4];

	assert_int_equal(m->error, 0);
	handle = sio_from_le32(((const struct sio_rep_dev_borrow *)(const void *)m->data)->handle);
	assert_int_equal(call_dev_seg_connect(w, c, handle, 0, SCI_MEMTYPE_BAR, &segment, NULL), 0);
	assert_int_equal(call_bar_map(w, c, segment, 0, &map, access), 0);
}

static bool is_lost(struct world_client *c)
{
	const struct sio_evm_device *evm;

	for (unsigned i = 0; (evm = call_device_event(c, i)); i++)
		if (sio_from_le32(evm->event) == SIO_DEVICE_EV_LOST)
			return true;
	return false;
}

/* As with a pulled cable: that over another adapter does not notice. */
static void borrows_over_one_that_goes_end(void **state)
{
	struct world *w = make(1, 1);
	struct world_client *stays = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c;

	(void)state;
	borrow_over(w, stays, 0);
	for (unsigned turn = 0; turn < 3; turn++) {
		list_all(w, LISTED, 3);
		change_ports(w, true, false);
		c = world_client(w, 1, SIO_CLIENT_LIBRARY);
		borrow_over(w, c, SECOND);
		list_all(w, LISTED - 1, 3);
		assert_false(is_lost(c));
		change_ports(w, false, false);
		assert_true(is_lost(c));
		assert_false(is_lost(stays));
		world_kill(w, c);
		world_run(w);
	}
	world_kill(w, stays);
	world_run(w);
	call_last_reset(w, FDID);
	finish(w);
}

/* A reload whose command died between the daemons and the ports, and then the one of before. */
static void one_that_is_listed_again_before_it_went_stays(void **state)
{
	struct world *w = make(LISTED, LISTED);
	struct world_client *exporter = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *importer = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct sio_rep_adapter rep;
	uint32_t h, c, m;

	(void)state;
	assert_int_equal(call_seg_export(w, exporter, 1, 4096, &h), 0);
	make_available(w, exporter, h);
	for (unsigned turn = 0; turn < 3; turn++) {
		assert_int_equal(call_seg_connect_at(w, importer, 4, 1, SECOND, &c), 0);
		assert_int_equal(call_seg_map(w, importer, c, 0, 4096, &m), 0);
		list_all(w, LISTED - 1, 3);
		assert_int_equal(adapter(w, importer, &rep), ENXIO);
		list_all(w, LISTED, 3);
		assert_int_equal(adapter(w, importer, &rep), 0);
		assert_int_equal(sio_from_le32(rep.link_up), 1);
		assert_int_equal(sio_from_le32(rep.entries_total), 256);
		assert_int_equal(probe(w, importer, SECOND), 0);
		assert_null(world_event(importer, SIO_EVM_SEGMENT_REMOTE, 0));
	}
	finish(w);
}

/* Daemons that start between the two: their file has more adapters than their ports, or fewer. */
static void daemons_that_start_meanwhile(void **state)
{
	(void)state;
	for (unsigned more = 0; more < 2; more++) {
		struct world *w = make(more ? LISTED : 1, more ? 1 : LISTED);
		struct world_client *c = world_client(w, 1, SIO_CLIENT_LIBRARY);
		struct sio_rep_adapter rep;

		assert_int_equal(probe(w, c, 0), 0);
		assert_int_equal(probe(w, c, SECOND), more ? ENETDOWN : ENXIO);
		if (more)
			change_ports(w, true, false);
		else
			list_all(w, LISTED, 3); /* the ports have nothing to say about it */
		assert_int_equal(probe(w, c, SECOND), 0);
		assert_int_equal(adapter(w, c, &rep), 0);
		assert_int_equal(sio_from_le32(rep.link_up), 1);
		list_all(w, LISTED - 1, 3);
		change_ports(w, false, false);
		assert_int_equal(probe(w, c, 0), 0);
		assert_int_equal(probe(w, c, SECOND), ENXIO);
		finish(w);
	}
}

/* Its port has told how many there are, and then has one less: the daemon starts all the same. */
static void one_goes_while_a_daemon_starts(void **state)
{
	struct world *w = make(LISTED, LISTED);
	struct sio_rep_adapter rep;
	struct world_client *c;

	(void)state;
	world_crash(w, 1);
	world_run(w);
	world_boot(w, 1); /* what there is has been asked for, and answered */
	change_ports(w, false, false);
	world_pass(w, 100000000);
	assert_true(w->host[1].ready);
	c = world_client(w, 1, SIO_CLIENT_LIBRARY);
	assert_int_equal(probe(w, c, 0), 0);
	assert_int_equal(probe(w, c, SECOND), ENETDOWN);
	/* It has its new number when it is put back, or its file has it no more. */
	change_ports(w, true, false);
	assert_int_equal(adapter(w, c, &rep), 0);
	assert_int_equal(sio_from_le32(rep.link_up), 1);
	list_all(w, LISTED - 1, 3);
	change_ports(w, false, false);
	assert_int_equal(probe(w, c, SECOND), ENXIO);
	assert_int_equal(probe(w, c, 0), 0);
	finish(w);
}

/* A port that has no memory to say what it is, is asked again. */
static void one_that_cannot_be_asked_for_at_once(void **state)
{
	struct world *w = make(1, 1);
	struct world_client *c = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct sio_rep_adapter rep;

	(void)state;
	list_all(w, LISTED, 3);
	w->n_adapters = LISTED;
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < i; k++)
			world_path(w, i, k, SECOND, true);
	world_run(w);
	w->fail_at = w->requests + 1;
	world_cable(w, 1, SECOND, true);
	world_run(w);
	assert_true(w->requests >= w->fail_at);
	w->fail_at = 0;
	assert_int_equal(adapter(w, c, &rep), 0);
	assert_int_equal(sio_from_le32(rep.link_up), 0);
	world_pass(w, 1000000000);
	assert_int_equal(adapter(w, c, &rep), 0);
	assert_int_equal(sio_from_le32(rep.link_up), 1);
	finish(w);
}

/* Its paths go and come while it is asked for: the end of what went over them is not missed. */
static void another_one_in_its_place(void **state)
{
	struct world *w = make(LISTED, LISTED);
	struct world_client *exporter = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *importer = world_client(w, 1, SIO_CLIENT_LIBRARY);
	const struct sio_evm_segment *evm;
	struct sio_rep_adapter rep;
	uint32_t h, c, m;

	(void)state;
	assert_int_equal(call_seg_export(w, exporter, 1, 4096, &h), 0);
	make_available(w, exporter, h);
	assert_int_equal(call_seg_connect_at(w, importer, 4, 1, SECOND, &c), 0);
	assert_int_equal(call_seg_map(w, importer, c, 0, 4096, &m), 0);
	list_all(w, LISTED, 0);
	w->entries = 64;
	for (unsigned up = 0; up < 2; up++) {
		world_cable(w, 1, SECOND, up);
		world_path(w, 0, 1, SECOND, up);
	}
	world_run(w);
	evm = world_event(importer, SIO_EVM_SEGMENT_REMOTE, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->handle), c);
	assert_int_equal(sio_from_le32(evm->reason), SCI_CB_NOT_OPERATIONAL);
	evm = world_event(importer, SIO_EVM_SEGMENT_REMOTE, 1);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->reason), SCI_CB_OPERATIONAL);
	assert_int_equal(adapter(w, importer, &rep), 0);
	assert_int_equal(probe(w, importer, SECOND), 0);
	assert_int_equal(call_seg_map(w, importer, c, 0, 4096, &m), 0);
	finish(w);
}

/* Interrupts of all adapters are of those, too, that come after them, and end as they began. */
static void interrupts_of_all_adapters(void **state)
{
	struct sio_msg_dint_create all = {.adapter = sio_to_le32(SIO_DINT_ALL_ADAPTERS),
					  .number = sio_to_le32(7),
					  .flags = sio_to_le32(SCI_FLAG_FIXED_INTNO)};
	struct sio_msg_dint_connect at = {
		.node = sio_to_le32(4), .adapter = sio_to_le32(SECOND), .number = sio_to_le32(7)};

	(void)state;
	for (unsigned grows = 0; grows < 2; grows++) {
		struct world *w = make(grows ? 1 : LISTED, grows ? 1 : LISTED);
		struct world_client *here = world_client(w, 0, SIO_CLIENT_LIBRARY);
		struct world_client *there = world_client(w, 1, SIO_CLIENT_LIBRARY);
		const struct world_message *m;

		m = world_call(w, here, SIO_MSG_DINT_CREATE, &all, sizeof(all));
		assert_int_equal(m->error, 0);
		if (grows) {
			list_all(w, LISTED, 3);
			change_ports(w, true, false);
			m = world_call(w, there, SIO_MSG_DINT_CONNECT, &at, sizeof(at));
			assert_int_equal(m->error, 0);
		} else {
			list_all(w, LISTED - 1, 3);
			change_ports(w, false, false);
		}
		world_kill(w, here);
		world_run(w);
		here = world_client(w, 0, SIO_CLIENT_LIBRARY);
		m = world_call(w, here, SIO_MSG_DINT_CREATE, &all, sizeof(all));
		assert_int_equal(m->error, 0);
		finish(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_comes_works_and_goes),
		cmocka_unit_test(borrows_over_one_that_goes_end),
		cmocka_unit_test(one_that_is_listed_again_before_it_went_stays),
		cmocka_unit_test(daemons_that_start_meanwhile),
		cmocka_unit_test(one_goes_while_a_daemon_starts),
		cmocka_unit_test(one_that_cannot_be_asked_for_at_once),
		cmocka_unit_test(another_one_in_its_place),
		cmocka_unit_test(interrupts_of_all_adapters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
