/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster's file is read again on real hosts, and says that a host has come, is gone, or is
 * reached otherwise: what it shared ends, and the others' programs go on.
 */
#include "reload.h"

#define PLACE sio_topology_fdid(4, sio_topology_place_number(fake.topo.bdf))
#define SECOND 1000000000ULL

/* Real ones, of which the first lends what its kernel found. */
static struct world *make_real(uint64_t seed)
{
	struct world *w = world_new(3, seed);

	memset(&next, 0, sizeof(next));
	fake_device_add(w, &fake);
	w->file_read = read_file;
	world_real(w);
	return w;
}

static void end_real(struct world *w)
{
	for (unsigned i = 0; i < w->n_clients; i++)
		world_kill(w, &w->client[i]);
	world_pass(w, SECOND);
	world_free(w);
}

static void reload_at(struct world *w, unsigned host, const char *want)
{
	struct world_client *tool = world_client(w, host, SIO_CLIENT_TOOL);
	struct done done;
	uint32_t kind = 0;

	assert_int_equal(reload(w, tool, 0, &done), 0);
	assert_true(done.applied);
	assert_int_equal(done.count[SIO_RELOAD_NOW], 1);
	assert_string_equal(line(w, tool, 0, &kind), want);
	assert_int_equal(kind, SIO_RELOAD_NOW);
	world_kill(w, tool);
}

/* The file read again says @count things of @kind; it is applied unless that takes a restart. */
static void reload_counts(struct world *w, struct world_client *tool, unsigned kind, unsigned count)
{
	struct done done;

	assert_int_equal(reload(w, tool, 0, &done), 0);
	assert_int_equal(done.applied, kind == SIO_RELOAD_NOW);
	assert_int_equal(done.count[kind], count);
}

/* Lines that the daemon has of what @node has of it. */
static unsigned accounts_of(struct world *w, struct world_client *c, uint32_t node)
{
	struct sio_msg_list msg = {.kind = sio_to_le32(SIO_LIST_ACCOUNTS)};
	const struct world_message *m = world_call(w, c, SIO_MSG_LIST, &msg, sizeof(msg));
	const struct sio_rep_list *rep = (const void *)m->data;
	unsigned n = 0;

	assert_int_equal(m->error, 0);
	for (uint32_t i = 0; i < sio_from_le32(rep->count); i++)
		n += sio_from_le32(rep->row[i].node) == node;
	return n;
}

/* A file that is only checked: of two things, or none, that end, in this order. */
static void names_what_ends(struct world *w, unsigned host, const char *one, const char *other)
{
	struct world_client *tool = world_client(w, host, SIO_CLIENT_TOOL);
	const char *want[] = {one, other};
	unsigned n = 0;
	struct done done;
	uint32_t kind = 0;

	assert_int_equal(reload(w, tool, SIO_RELOAD_CHECK, &done), 0);
	assert_false(done.applied);
	assert_int_equal(done.count[SIO_RELOAD_ENDS], one ? 2 : 0);
	for (unsigned i = 0; i < done.lines; i++) {
		const char *text = line(w, tool, i, &kind);

		if (kind == SIO_RELOAD_ENDS)
			n += strncmp(text, want[0], strlen(want[0])) == 0 ||
			     strncmp(text, want[1], strlen(want[1])) == 0;
	}
	assert_int_equal(n, done.count[SIO_RELOAD_ENDS]);
	world_kill(w, tool);
}

/* What it shared ends, on both sides; the others notice nothing, and it may come back. */
static void leave_and_come_back(uint64_t seed)
{
	struct world *w = make_real(seed);
	struct world_client *l, *b, *c;
	struct call_borrow kept, lost, again;
	uint32_t seg, bar, map, dma, far, near, window, error, access[4];

	world_start(w);
	l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	call_take(w, b, PLACE, 0, &kept, &bar, &map, access);
	call_take(w, c, PLACE, 0, &lost, &bar, &map, access);
	assert_int_equal(call_seg_export(w, c, 9, 8192, &seg), 0);
	assert_int_equal(call_dma_map(w, c, lost.handle, seg, 0, 0, 8192, &dma), 0);
	assert_int_equal(call_seg_export(w, l, 5, 8192, &seg), 0);
	assert_int_equal(call_seg_connect(w, b, 4, 5, &near), 0);
	assert_int_equal(call_seg_connect(w, c, 4, 5, &far), 0);
	assert_int_equal(call_seg_map(w, c, far, 0, 8192, &window), 0);

	next.hosts = 2;
	w->lossy = true; /* it has still mapped what ends */
	names_what_ends(
		w, 0, "borrow of process 1003 of node 12: ", "connection of node 12: segment 0x5");
	names_what_ends(w, 1, NULL, NULL); /* what it has is of others */
	assert_true(w->open[0][2]);
	reload_at(w, 0, "host 'host2' is gone");
	reload_at(w, 1, "host 'host2' is gone");
	world_pass(w, SECOND);
	assert_false(w->open[0][2] || w->open[1][2]);
	assert_true(w->open[0][1]);
	assert_non_null(world_event(l, SIO_EVM_SEGMENT_LOCAL, 2)); /* two came, one is lost */
	/* Whoever has the registers settles what it left, as of anybody who is gone. */
	assert_non_null(call_device_event(b, 0));
	assert_int_equal(sio_from_le32(call_device_event(b, 0)->event),
			 SIO_DEVICE_EV_BORROWER_GONE);
	assert_int_equal(world_count(w, 0, SIO_KIND_DMAMAP), 1);
	assert_int_equal(call_settled(w, b, kept.handle, lost.id), 0);
	world_run(w);
	assert_int_equal(world_count(w, 0, SIO_KIND_DMAMAP), 0);
	assert_null(world_event(b, SIO_EVM_SEGMENT_REMOTE, 0));
	assert_int_equal(call_seg_map(w, b, near, 0, 8192, &window), 0);
	/* By the file it is no host, and not one that does not answer. */
	assert_int_equal(call_seg_connect(w, b, 12, 9, &far), EHOSTUNREACH);
	file(w, b, 12, 0, &error);
	assert_int_equal(error, EHOSTUNREACH);
	/* It goes by the old file: it waits for the others' daemons, as long as for any. */
	world_pass(w, 60 * SECOND);
	assert_non_null(call_device_event(c, 0));
	assert_int_equal(sio_from_le32(call_device_event(c, 0)->event), SIO_DEVICE_EV_LOST);
	assert_non_null(world_event(c, SIO_EVM_SEGMENT_REMOTE, 0));
	assert_int_not_equal(call_borrow(w, c, PLACE, 0, &again), 0);
	assert_int_equal(accounts_of(w, l, 8), SIO_QUOTAS);
	assert_int_equal(accounts_of(w, l, 12),
			 SIO_QUOTAS); /* it may still use a grant's address */

	next.hosts = 0;
	reload_at(w, 0, "host 'host2' is new");
	reload_at(w, 1, "host 'host2' is new");
	world_pass(w, SECOND);
	assert_true(w->open[0][2] && w->open[1][2]);
	assert_int_equal(call_borrow(w, c, PLACE, 0, &again), 0);
	assert_int_equal(call_seg_connect(w, c, 4, 5, &far), 0);
	assert_null(call_device_event(b, 1));
	end_real(w);
}

static void a_host_leaves_the_cluster_and_comes_back(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++)
		leave_and_come_back(seed);
}

/* Every other node id that there is, of hosts that are not in the file either. */
static void other_hosts_are_there(struct world *w)
{
	for (uint32_t node = 16; node <= SIO_MAX_NODE; node += 4) {
		const struct sio_evt_link evt = {
			.peer_node = node, .state = SIO_LINK_UP, .generation = node};

		for (unsigned i = 0; i < 2; i++)
			smartiod_peer_link_event(w->host[i].daemon, &evt);
	}
}

/* Its machine may have been at the switch before; and its daemon may run, and know us. */
static void a_host_that_was_never_there_comes(void **state)
{
	struct world *w = make_real(0);
	struct sio_topology *all = w->topology, *two;
	struct world_client *b, *c;
	struct call_borrow borrow;
	uint32_t seg, connection;
	struct sio_err err;

	(void)state;
	next.hosts = 2;
	two = read_file(w, 0, false, &err);
	w->topology = two;
	world_boot(w, 0);
	world_boot(w, 1);
	other_hosts_are_there(w);
	w->topology = all;
	world_boot(w, 2);
	world_pass(w, SECOND);
	assert_true(w->open[0][1]);
	assert_false(w->open[0][2] || w->open[1][2]);
	b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, b, PLACE, 0, &borrow), 0);
	next.hosts = 0;
	reload_at(w, 0, "host 'host2' is new");
	reload_at(w, 1, "host 'host2' is new");
	world_pass(w, SECOND);
	assert_true(w->open[0][2] && w->open[1][2]);
	c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, c, PLACE, 0, &borrow), 0);
	assert_null(call_device_event(b, 0));
	assert_int_equal(call_seg_export(w, c, 5, 8192, &seg), 0);
	assert_int_equal(call_seg_connect(w, b, 12, 5, &connection), 0);
	end_real(w);
	sio_topology_free(two);
}

/* Whose certificate was good for the one is not the other, though the node id is the same. */
static void a_host_takes_another_ones_node_id(void **state)
{
	struct world *w = make_real(0);
	struct world_client *tool, *b, *c;
	struct call_borrow kept, lost;

	(void)state;
	world_start(w);
	tool = world_client(w, 0, SIO_CLIENT_TOOL);
	b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, b, PLACE, 0, &kept), 0);
	assert_int_equal(call_borrow(w, c, PLACE, 0, &lost), 0);
	next.renamed = true;
	reload_counts(w, tool, SIO_RELOAD_NOW, 2); /* one is gone, one is new */
	world_pass(w, SECOND);
	/* What the one had ended; the other is dialled, and may have it. */
	assert_non_null(call_device_event(c, 0));
	assert_int_equal(sio_from_le32(call_device_event(c, 0)->event), SIO_DEVICE_EV_LOST);
	assert_null(call_device_event(b, 0));
	assert_true(w->open[0][1] && w->open[0][2]);
	assert_int_equal(call_borrow(w, c, PLACE, 0, &lost), 0);
	end_real(w);
}

static void cables_lead_elsewhere(void **state)
{
	struct world *w = make_real(0);
	struct world_client *tool, *b;
	struct call_borrow borrow;

	(void)state;
	world_start(w);
	tool = world_client(w, 0, SIO_CLIENT_TOOL);
	b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	next.moved = true;
	reload_counts(w, tool, SIO_RELOAD_NOW, 3);
	assert_int_equal(call_borrow(w, b, PLACE, 0, &borrow), 0);
	end_real(w);
}

/* The link is up all the time. By the file nothing leads over it, and then something does. */
static void a_way_that_the_file_has_later_is_told(void **state)
{
	struct world *w = make_real(0);
	struct sio_msg_dev_await m = {.fdid = sio_to_le32(PLACE),
				      .want = sio_to_le32(SIO_AWAIT_EXCLUSIVE),
				      .timeout_ms = sio_to_le32(UINT32_MAX)};
	struct world_client *tool, *b;
	uint32_t id;

	(void)state;
	world_start(w);
	tool = world_client(w, 1, SIO_CLIENT_TOOL);
	b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	next.apart = true;
	reload_counts(w, tool, SIO_RELOAD_NOW, 2); /* the switch, too */
	id = world_send(w, b, SIO_MSG_DEV_AWAIT, &m, sizeof(m));
	world_run(w);
	assert_null(world_reply(b, id));
	next.apart = false;
	reload_counts(w, tool, SIO_RELOAD_NOW, 2); /* the switch, too */
	assert_non_null(world_reply(b, id));
	assert_int_equal(world_reply(b, id)->error, 0);
	end_real(w);
}

/* Its daemon has opened it where it was; others have not. */
static void an_adapter_in_another_slot_takes_a_restart_of_its_host(void **state)
{
	struct world *w = make_real(0);
	struct world_client *tool;

	(void)state;
	world_start(w);
	tool = world_client(w, 0, SIO_CLIENT_TOOL);
	next.other_slot = true;
	reload_at(w, 1, "host 'host0', adapter 0: pci is '0000:07:00.0', was ''");
	reload_counts(w, tool, SIO_RELOAD_RESTART, 1);
	end_real(w);
}

/* Itself, and all others: a host alone has no host's name before its devices'. */
static void a_host_does_not_lose_itself_nor_all_others(void **state)
{
	struct world *w = make_real(0);
	struct world_client *tool;
	struct done done;

	(void)state;
	world_start(w);
	tool = world_client(w, 0, SIO_CLIENT_TOOL);
	next.first = 1;
	reload_counts(w, tool, SIO_RELOAD_RESTART, 1);
	next.first = 0;
	next.hosts = 1;
	reload_counts(w, tool, SIO_RELOAD_RESTART, 2);
	next.hosts = 2;
	next.has_more_ram = true; /* of a real host the kernel says that */
	assert_int_equal(accounts_of(w, tool, 12), SIO_QUOTAS);
	assert_int_equal(reload(w, tool, 0, &done), 0);
	assert_true(done.applied);
	world_pass(w, SECOND);
	assert_int_equal(accounts_of(w, tool, 8), SIO_QUOTAS);
	assert_int_equal(accounts_of(w, tool, 12), 0);
	end_real(w);
}

/* Who is on a machine of its own by the new file may have what that says of such a host. */
static void a_check_goes_by_the_new_addresses(void **state)
{
	struct world *w = make_real(0);
	struct world_client *tool, *b;
	struct call_borrow borrow;
	struct done done;
	uint32_t kind;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		w->topology->host[i].address =
			(struct sio_topo_address){.ip = {127, 0, 0, 1}, .port = (uint16_t)(1 + i)};
	world_start(w);
	tool = world_client(w, 0, SIO_CLIENT_TOOL);
	b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, b, PLACE, 0, &borrow), 0);
	assert_int_equal(reload(w, tool, SIO_RELOAD_CHECK, &done), 0);
	assert_int_equal(done.lines, 0);
	next.far = true;
	assert_int_equal(reload(w, tool, SIO_RELOAD_CHECK, &done), 0);
	assert_int_equal(done.count[SIO_RELOAD_RESTART], 0);
	assert_int_equal(done.count[SIO_RELOAD_STAYS], 1);
	assert_non_null(strstr(line(w, tool, done.lines - 1, &kind), "it is on another machine"));
	assert_int_equal(call_borrow(w, b, PLACE, 0, &borrow), 0);
	end_real(w);
}

/* An emulated cluster's file says what leads where: whom it leaves without a path. */
static void a_check_names_who_is_cut_off(void **state)
{
	struct world *w = call_world(&fake);
	struct world_client *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *at_b = world_client(w, 1, SIO_CLIENT_TOOL);
	struct call_borrow borrow;
	struct done done;
	uint32_t kind;

	(void)state;
	memset(&next, 0, sizeof(next));
	w->file_read = read_file;
	assert_int_equal(call_borrow(w, b, 0x400001, 0, &borrow), 0);
	next.moved = true; /* and leads where it led */
	assert_int_equal(reload(w, tool, SIO_RELOAD_CHECK, &done), 0);
	assert_int_equal(done.count[SIO_RELOAD_ENDS], 0);
	next.apart = true;
	assert_int_equal(reload(w, tool, SIO_RELOAD_CHECK, &done), 0);
	assert_false(done.applied);
	assert_int_equal(done.count[SIO_RELOAD_ENDS], 3);
	assert_string_equal(line(w, tool, done.lines - 3, &kind),
			    "no path is left to host 'host1': the two are cut off from each other");
	assert_int_equal(kind, SIO_RELOAD_ENDS);
	assert_non_null(
		strstr(line(w, tool, done.lines - 2, &kind), "borrow of process 1002 of node 8: "));
	assert_string_equal(line(w, tool, done.lines - 1, &kind),
			    "no path is left to host 'host2': the two are cut off from each other");
	/* The borrower's daemon says the same of its side, and hosts 1 and 2 have each other. */
	assert_int_equal(reload(w, at_b, SIO_RELOAD_CHECK, &done), 0);
	assert_int_equal(done.count[SIO_RELOAD_ENDS], 2);
	assert_int_equal(call_borrow(w, b, 0x400001, 0, &borrow), 0);
	call_world_end(w, &fake, 0x400001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_leaves_the_cluster_and_comes_back),
		cmocka_unit_test(a_host_that_was_never_there_comes),
		cmocka_unit_test(a_host_takes_another_ones_node_id),
		cmocka_unit_test(cables_lead_elsewhere),
		cmocka_unit_test(a_way_that_the_file_has_later_is_told),
		cmocka_unit_test(an_adapter_in_another_slot_takes_a_restart_of_its_host),
		cmocka_unit_test(a_host_does_not_lose_itself_nor_all_others),
		cmocka_unit_test(a_check_goes_by_the_new_addresses),
		cmocka_unit_test(a_check_names_who_is_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
