/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster's file, as a daemon that runs reads it again: which one, for whom, as at its start.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "../lib/tempdir.h"
#include "smartiod/live/live.h"
#include "smartiod/live/local.h"
#include "smartiod/live/transport.h"

static char dir[96], path[128], next_path[160];
static const struct live_transport no_transport;

void live_log_from(const char *file, int level, const char *fmt, ...)
{
	(void)file;
	(void)level;
	(void)fmt;
}

static void write_file(const char *where, const char *name)
{
	FILE *f = fopen(where, "w");

	assert_non_null(f);
	fprintf(f,
		"cluster: %s\n"
		"hosts:\n"
		"  a: { address: '192.0.2.1:7470', adapters: [{ pci: '0000:05:00.0', to: b }] }\n"
		"  b: { address: '192.0.2.2:7470', adapters: [{ pci: '0000:05:00.0', to: a }] }\n",
		name);
	assert_int_equal(fclose(f), 0);
}

/* One that runs since a moment ago. */
static void start(struct live *l)
{
	struct sio_topology *t;
	struct sio_err err;

	memset(l, 0, sizeof(*l));
	l->options.topology = path;
	l->transport = &no_transport;
	write_file(path, "first");
	assert_int_equal(live_file_read(path, NULL, &l->file, &t, &err), 0);
	live_file_learn(t, 8);
	l->topology = t;
	l->host = sio_topology_host(t, 8);
}

static void end(struct live *l)
{
	live_file_done(&l->file);
	live_file_done(&l->next);
	sio_topology_free((struct sio_topology *)l->topology);
}

/* The memory of a real host is not in the file: it is as large as it was. */
static void what_the_kernel_says_stays(void **state)
{
	struct sio_topology *t, *before;
	struct sio_err err;
	struct live l;
	uint64_t others;

	(void)state;
	start(&l);
	others = sio_topology_host(l.topology, 4)->ram_size;
	assert_int_equal(l.host->ram_size, local_ram());
	assert_int_not_equal(local_ram(), others);
	write_file(path, "second");
	assert_int_equal(live_op_file_read(&l, geteuid(), false, &t, &err), 0);
	assert_string_equal(t->name, "second");
	assert_int_equal(sio_topology_host(t, 8)->ram_size, local_ram());
	assert_int_equal(sio_topology_host(t, 4)->ram_size, others);
	before = (struct sio_topology *)l.topology;
	live_op_file_keep(&l, t);
	sio_topology_free(before);
	assert_ptr_equal(l.host, sio_topology_host(t, 8));
	end(&l);
}

static void nobody_else_has_a_file_read(void **state)
{
	struct sio_topology *t;
	struct sio_err err;
	struct live l;

	(void)state;
	start(&l);
	assert_int_equal(live_op_file_read(&l, geteuid() + 1, false, &t, &err), -EPERM);
	assert_null(l.next.text);
	assert_int_equal(live_op_file_read(&l, geteuid(), true, &t, &err), -ENOENT);
	/* Nor does whoever has it read keep the daemon waiting. */
	assert_int_equal(mkfifo(next_path, 0600), 0);
	assert_int_equal(live_op_file_read(&l, geteuid(), true, &t, &err), -EINVAL);
	assert_int_equal(unlink(next_path), 0);
	write_file(next_path, "next");
	assert_int_equal(live_op_file_read(&l, geteuid(), true, &t, &err), 0);
	assert_string_equal(t->name, "next");
	sio_topology_free(t);
	assert_int_equal(unlink(next_path), 0);
	end(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_kernel_says_stays),
		cmocka_unit_test(nobody_else_has_a_file_read),
	};
	int r;

	if (test_tempdir("sio-file", dir, sizeof(dir)) < 0)
		return 1;
	snprintf(path, sizeof(path), "%s/cluster.yaml", dir);
	snprintf(next_path, sizeof(next_path), "%s%s", path, LIVE_FILE_NEXT);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(dir);
	return r;
}
