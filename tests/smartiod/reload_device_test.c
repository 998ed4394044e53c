/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices and hosts of an emulated cluster come and go by its file: a daemon knows a new device
 * when the port says that it is there, and one that is not listed any more until the port says that
 * it is gone.
 */
#include "reload.h"
#include "smartiod/device/device.h"

#define FDID 0x400001 /* of node 4 */

static struct world *make(void)
{
	struct world *w = call_world(&fake);

	memset(&next, 0, sizeof(next));
	w->file_read = read_file;
	return w;
}

/* All daemons go by the next file; each sees one change. */
static void reload_all(struct world *w, struct world_client *tool[3], const char *text)
{
	struct done done;
	uint32_t kind;

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(reload(w, tool[i], 0, &done), 0);
		assert_true(done.applied);
		assert_string_equal(line(w, tool[i], 0, &kind), text);
		assert_int_equal(kind, SIO_RELOAD_NOW);
	}
}

static bool is_listed(struct world *w, struct world_client *c)
{
	struct sio_msg_dev_list msg = {.after = sio_to_le32(0)};
	const struct world_message *m = world_call(w, c, SIO_MSG_DEV_LIST, &msg, sizeof(msg));
	const struct sio_rep_dev_list *rep = (const void *)m->data;

	if (m->error)
		return false;
	assert_int_equal(sio_from_le32(rep->fdid), FDID);
	assert_string_equal(rep->name, fake.topo.name);
	return true;
}

static void one_goes_under_its_borrowers_and_comes_back(void **state)
{
	struct world *w = make();
	struct world_client *tool[3], *b[3];
	struct call_borrow borrow;
	uint32_t bar, map, access[4];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		tool[i] = world_client(w, i, SIO_CLIENT_TOOL);
		b[i] = world_client(w, i, SIO_CLIENT_LIBRARY);
	}
	for (unsigned turn = 0; turn < 3; turn++) {
		call_take(w, b[0], FDID, 0, &borrow, &bar, &map, access);
		assert_int_equal(call_borrow(w, b[1], FDID, 0, &borrow), 0);
		next.no_device = true;
		reload_all(w, tool, "device host0/drive0 is gone");
		/* It is there until the port says something else, and is what it was. */
		for (unsigned i = 0; i < 3; i++) {
			assert_true(is_listed(w, tool[i]));
			assert_null(call_device_event(b[i], turn));
		}
		assert_int_equal(call_borrow(w, b[2], FDID, 0, &borrow), 0);
		assert_true(fake_device_move(w, false));
		world_run(w);
		for (unsigned i = 0; i < 3; i++) {
			assert_false(is_listed(w, tool[i]));
			assert_non_null(call_device_event(b[i], turn));
			assert_int_equal(sio_from_le32(call_device_event(b[i], turn)->event),
					 SIO_DEVICE_EV_LOST);
			assert_int_equal(call_borrow(w, b[i], FDID, 0, &borrow), ENODEV);
		}
		next.no_device = false;
		reload_all(w, tool, "device host0/drive0 is new");
		assert_false(is_listed(w, tool[1]));
		assert_true(fake_device_move(w, true));
		world_run(w);
		for (unsigned i = 0; i < 3; i++)
			assert_true(is_listed(w, tool[i]));
	}
	call_world_end(w, &fake, FDID);
}

/* What host 1 announces to host 0. */
static void announce(struct world *w, uint32_t fdid, const char *name, bool present)
{
	struct sio_peer_devices msg = {
		.h = {.type = sio_to_le32(SIO_PEER_DEVICES), .size = sio_to_le32(sizeof(msg))},
		.info.fdid = sio_to_le32(fdid),
		.present = sio_to_le32(present)};

	strcpy(msg.info.name, name);
	smartiod_peer_message(w->host[0].daemon, w->host[1].node, &msg, sizeof(msg));
	world_run(w);
}

/* A daemon that starts reads a file that lacks what a reload has not taken away: it stays met. */
static void one_that_our_file_lacks_is_known_until_it_goes(void **state)
{
	struct world *w = make();
	const char *name = "left0";
	uint32_t fdid = sio_topology_fdid(w->host[1].node, sio_topology_number(name));
	const struct smartiod_device *dev;

	(void)state;
	announce(w, fdid, name, false); /* which nobody here knew */
	assert_true(w->open[0][1]);
	assert_null(smartiod_device_known(w->host[0].daemon, fdid));
	announce(w, fdid, name, true);
	assert_true(w->open[0][1]);
	dev = smartiod_device_known(w->host[0].daemon, fdid);
	assert_true(dev && dev->present && dev->dropped);
	assert_string_equal(dev->topo->name, name);
	announce(w, fdid, name, false);
	assert_true(w->open[0][1]);
	assert_false(dev->present);
	/* One by another's name is a lie, and so is one of another host. */
	announce(w, fdid + 1, name, true);
	assert_false(w->open[0][1]);
	world_pass(w, 1000000000);
	assert_true(w->open[0][1]);
	/* What no file of a cluster can list: it goes to logs, and to users' terminals. */
	fdid = sio_topology_fdid(w->host[1].node, sio_topology_number("le\033[2J0"));
	announce(w, fdid, "le\033[2J0", true);
	assert_false(w->open[0][1]);
	assert_null(smartiod_device_known(w->host[0].daemon, fdid));
	world_pass(w, 1000000000);
	assert_true(w->open[0][1]);
	fdid = sio_topology_fdid(w->host[2].node, sio_topology_number(name));
	announce(w, fdid, name, true);
	assert_false(w->open[0][1]);
	world_pass(w, 1000000000);
	call_world_end(w, &fake, FDID);
}

/* The command died between the daemons and the machine room: the next one mends it. */
static void one_that_is_listed_again_before_it_went_stays(void **state)
{
	struct world *w = make();
	struct world_client *tool[3], *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct call_borrow borrow;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		tool[i] = world_client(w, i, SIO_CLIENT_TOOL);
	assert_int_equal(call_borrow(w, b, FDID, 0, &borrow), 0);
	for (unsigned turn = 0; turn < 2; turn++) {
		next.no_device = true;
		reload_all(w, tool, "device host0/drive0 is gone");
		next.no_device = false;
		reload_all(w, tool, "device host0/drive0 is new");
	}
	assert_true(is_listed(w, tool[2]));
	assert_null(call_device_event(b, 0));
	assert_int_equal(call_handle(w, b, SIO_MSG_DEV_RETURN, borrow.handle, 0), 0);
	call_world_end(w, &fake, FDID);
}

static void one_that_differs_is_refused(void **state)
{
	struct world *w = make();
	struct world_client *tool = world_client(w, 2, SIO_CLIENT_TOOL);
	struct done done;
	uint32_t kind;

	(void)state;
	next.device_differs = true;
	assert_int_equal(reload(w, tool, 0, &done), 0);
	assert_false(done.applied || w->file_kept);
	assert_non_null(strstr(line(w, tool, 0, &kind),
			       "; or one reload removes it, and the next adds it"));
	assert_int_equal(kind, SIO_RELOAD_RESTART);
	/* What goes and what comes have one id: neither can, in one step. */
	next.device_differs = false;
	next.device_renamed = true;
	assert_int_equal(reload(w, tool, 0, &done), 0);
	assert_false(done.applied);
	assert_int_equal(done.count[SIO_RELOAD_RESTART], 2);
	call_world_end(w, &fake, FDID);
}

/* Its daemon is stopped before the others read the file, and started after that. */
static void a_host_goes_and_comes_back(void **state)
{
	struct world *w = make();
	struct world_client *tool[2], *b, *c, *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	uint32_t kind, seg, far, window;
	struct call_borrow kept, lost;
	struct done done;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		tool[i] = world_client(w, i, SIO_CLIENT_TOOL);
	assert_int_equal(call_seg_export(w, l, 5, 8192, &seg), 0);
	b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, b, FDID, 0, &kept), 0);
	for (unsigned turn = 0; turn < 3; turn++) {
		c = world_client(w, 2, SIO_CLIENT_LIBRARY);
		assert_int_equal(call_borrow(w, c, FDID, 0, &lost), 0);
		assert_int_equal(call_seg_connect(w, c, 4, 5, &far), 0);
		assert_int_equal(call_seg_map(w, c, far, 0, 8192, &window), 0);
		next.hosts = 2;
		world_crash(w, 2);
		/* It might come back, and still write there. */
		world_run(w);
		assert_int_equal(world_count(w, 0, SIO_KIND_GRANT), 1);
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(reload(w, tool[i], 0, &done), 0);
			assert_true(done.applied);
			assert_string_equal(line(w, tool[i], 0, &kind), "host 'host2' is gone");
		}
		world_run(w);
		assert_false(w->open[0][2] || w->open[1][2]);
		assert_int_equal(world_count(w, 0, SIO_KIND_GRANT), 0);
		next.hosts = 0;
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(reload(w, tool[i], 0, &done), 0);
			assert_true(done.applied);
			assert_string_equal(line(w, tool[i], 0, &kind), "host 'host2' is new");
		}
		world_boot(w, 2);
		world_run(w);
		assert_true(w->open[0][2] && w->open[1][2]);
	}
	assert_true(is_listed(w, tool[1]));
	assert_int_equal(call_handle(w, b, SIO_MSG_DEV_RETURN, kept.handle, 0), 0);
	call_world_end(w, &fake, FDID);
}

/* Its own, and those that are other ones now: what would be right is said. */
static void hosts_that_take_a_restart(void **state)
{
	struct world *w = make();
	struct world_client *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct done done;
	uint32_t kind;

	(void)state;
	next.first = 1;
	assert_int_equal(reload(w, tool, 0, &done), 0);
	assert_false(done.applied);
	assert_string_equal(line(w, tool, 0, &kind), "host 'host0' is gone");
	assert_int_equal(kind, SIO_RELOAD_RESTART);
	next.first = 0;
	next.has_more_ram = true;
	assert_int_equal(reload(w, tool, 0, &done), 0);
	assert_false(done.applied);
	assert_non_null(strstr(line(w, tool, 0, &kind),
			       "; or one reload removes it, and the next adds it"));
	next.has_more_ram = false;
	next.other_node = true;
	assert_int_equal(reload(w, tool, 0, &done), 0);
	assert_false(done.applied);
	assert_string_equal(line(w, tool, 0, &kind), "host 'host2': node is 16, was 12; with "
						     "'node: 12' in the file it keeps it");
	call_world_end(w, &fake, FDID);
}

/* Cables of all hosts; what the adapter itself is, also beside them, is for the port to judge. */
static void cables_that_lead_elsewhere(void **state)
{
	struct world *w = make();
	struct world_client *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct call_borrow kept;
	struct done done;
	uint32_t kind;

	(void)state;
	assert_int_equal(call_borrow(w, b, FDID, 0, &kept), 0);
	next.moved = next.other_window = true;
	assert_int_equal(reload(w, tool, SIO_RELOAD_CHECK, &done), 0);
	assert_int_equal(done.count[SIO_RELOAD_NOW], 4);
	assert_non_null(strstr(line(w, tool, 0, &kind), "host 'host0', adapter 0: window is "));
	assert_int_equal(kind, SIO_RELOAD_NOW);
	next.other_window = false;
	for (unsigned turn = 0; turn < 2; turn++) {
		assert_int_equal(reload(w, tool, 0, &done), 0);
		assert_true(done.applied);
		assert_int_equal(done.count[SIO_RELOAD_NOW], 3);
		assert_non_null(
			strstr(line(w, tool, 2, &kind), "host 'host2', adapter 0: width is "));
		next.moved = false;
	}
	next.no_switch = true;
	assert_int_equal(reload(w, tool, 0, &done), 0);
	assert_true(done.applied);
	assert_non_null(strstr(line(w, tool, 0, &kind), "switch '"));
	assert_null(call_device_event(b, 0));
	assert_int_equal(call_handle(w, b, SIO_MSG_DEV_RETURN, kept.handle, 0), 0);
	call_world_end(w, &fake, FDID);
}

/* They come and go; one that is behind another one than before is told of, with what is right. */
static void chassis_that_come_and_go(void **state)
{
	struct world *w = make();
	struct world_client *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct world_client *far = world_client(w, 1, SIO_CLIENT_TOOL);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct call_borrow kept;
	struct done done;
	uint32_t kind;

	(void)state;
	assert_int_equal(call_borrow(w, b, FDID, 0, &kept), 0);
	for (unsigned turn = 0; turn < 2; turn++) {
		next.boxes = true;
		for (unsigned i = 0; i < 2; i++) {
			struct world_client *c = i ? far : tool;

			assert_int_equal(reload(w, c, 0, &done), 0);
			assert_true(done.applied);
			assert_int_equal(done.count[SIO_RELOAD_NOW], 2);
			assert_string_equal(line(w, c, 0, &kind),
					    "chassis 'near' of host 'host0' is new");
			assert_int_equal(kind, SIO_RELOAD_NOW);
		}
		next.other_box = true;
		assert_int_equal(reload(w, tool, 0, &done), 0);
		assert_false(done.applied);
		assert_int_equal(done.lines, 1);
		assert_string_equal(line(w, tool, 0, &kind),
				    "chassis 'near' of host 'host0': in is far, was a slot of the "
				    "host; or one reload removes it, and the next adds it");
		assert_int_equal(kind, SIO_RELOAD_RESTART);
		next.boxes = next.other_box = false;
		for (unsigned i = 0; i < 2; i++) {
			struct world_client *c = i ? far : tool;

			assert_int_equal(reload(w, c, 0, &done), 0);
			assert_true(done.applied);
			assert_int_equal(done.count[SIO_RELOAD_NOW], 2);
			assert_string_equal(line(w, c, 1, &kind),
					    "chassis 'far' of host 'host0' is gone");
		}
	}
	assert_null(call_device_event(b, 0));
	assert_int_equal(call_handle(w, b, SIO_MSG_DEV_RETURN, kept.handle, 0), 0);
	call_world_end(w, &fake, FDID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_goes_under_its_borrowers_and_comes_back),
		cmocka_unit_test(one_that_is_listed_again_before_it_went_stays),
		cmocka_unit_test(one_that_our_file_lacks_is_known_until_it_goes),
		cmocka_unit_test(one_that_differs_is_refused),
		cmocka_unit_test(a_host_goes_and_comes_back),
		cmocka_unit_test(hosts_that_take_a_restart),
		cmocka_unit_test(cables_that_lead_elsewhere),
		cmocka_unit_test(chassis_that_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
