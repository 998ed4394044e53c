/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topofile/topofile.h"

static const struct {
	const char *name, *text, *error; /* error: after the file's name */
} bad[] = {
#include "bad_hosts.inc"
#include "bad_parts.inc"
#include "bad_places.inc"
#include "bad_real.inc"
#include "bad_fabric.inc"
#include "bad_policy.inc"
};

/* Each wrong file gives just the text of the table, and no topology. */
static void says_what_is_wrong_and_what_would_be_right(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sio_topology *t = NULL;
		struct sio_err err = {0};
		char want[SIO_ERR_TEXT];
		int rc =
			sio_topofile_parse("topo.yaml", bad[i].text, strlen(bad[i].text), &t, &err);

		snprintf(want, sizeof(want), "topo.yaml%s", bad[i].error);
		if (rc == -EINVAL && err.code == rc && !t && strcmp(err.text, want) == 0)
			continue;
		print_error("%s: returns %d\n got:  %s\n want: %s\n", bad[i].name, rc, err.text,
			    want);
		sio_topology_free(t);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

/* Nobody has to want the text. */
static void works_without_a_place_for_the_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sio_topology *t = NULL;

		assert_int_equal(
			sio_topofile_parse("topo.yaml", bad[i].text, strlen(bad[i].text), &t, NULL),
			-EINVAL);
		assert_null(t);
	}
}

/* A file of many equal parts: @head, @count times @part, perhaps with its number in it, @tail. */
static void assert_many(const char *head, const char *part, unsigned count, const char *tail,
			const char *want)
{
	size_t size = 1u << 20, len;
	struct sio_topology *t = NULL;
	struct sio_err err = {0};
	char *text = malloc(size);
	int rc;

	assert_non_null(text);
	len = (size_t)snprintf(text, size, "%s", head);
	for (unsigned i = 0; i < count; i++) {
		len += (size_t)snprintf(text + len, size - len, part, i);
	}
	len += (size_t)snprintf(text + len, size - len, "%s", tail);
	assert_true(len < size);
	rc = sio_topofile_parse("topo.yaml", text, len, &t, &err);
	free(text);
	sio_topology_free(t);
	if (want) {
		assert_string_equal(err.text, want);
		assert_int_equal(rc, -EINVAL);
	} else {
		assert_int_equal(rc, 0);
	}
}

#define HOSTS "cluster: c\nhosts:\n"

static void refuses_too_many(void **state)
{
	static const char full[] =
		"  h%u: { ram: 16T, adapters: [{ window: 16T }, { window: 16T }, { window: 16T }, "
		"{ window: 16T }] }\n";

	(void)state;
	assert_many(HOSTS, "  h%u:\n", 126, "", NULL);
	assert_many(HOSTS, "  h%u:\n", 127, "",
		    "topo.yaml:129:3: key 'hosts.h126': value '': a host too many; at most 126 is "
		    "right");
	assert_many("cluster: c\nswitches: [s", ", s%u", 63, "]\nhosts: { a: { adapters: [] } }",
		    NULL);
	assert_many(
		"cluster: c\nswitches: [s", ", s%u", 64, "]\nhosts: { a: }",
		"topo.yaml:2:11: key 'switches': value '[...]': 65 switches; at most 64 is right");
	assert_many(HOSTS "  a:\n    devices:\n", "      d%u: { type: nvme }\n", 31, "", NULL);
	assert_many(
		HOSTS "  a:\n    devices:\n", "      d%u: { type: nvme }\n", 32, "",
		"topo.yaml:36:7: key 'hosts.a.devices.d31': value '{...}': a device too many; at "
		"most 31 is right");
	assert_many(HOSTS, full, 51, "", NULL);
	assert_many(HOSTS, full, 52, "",
		    "topo.yaml:54:3: key 'hosts.h51.ram_base': no room left below 4096T; less RAM, "
		    "or smaller windows and apertures, are right");
	assert_many(HOSTS "  a:\n    chassis:\n", "      c%u: { ports: 4 }\n", 17, "",
		    "topo.yaml:21:7: key 'hosts.a.chassis.c16': value '{...}': a chassis too many; "
		    "at most 16 is right");
	assert_many("cluster: c\nswitches: [s, t]\nhosts: { a: }\nlinks:\n",
		    "  - { from: s, to: t }\n", 257, "",
		    "topo.yaml:5:3: key 'links': value '[...]': 257 links; at most 256 is right");
	assert_many(HOSTS "  a:\naccess:\n  rules:\n", "    - { segments: %u, nodes: all }\n", 256,
		    "", NULL);
	assert_many(
		HOSTS "  a:\naccess:\n  rules:\n", "    - { segments: %u, nodes: all }\n", 257, "",
		"topo.yaml:262:7: key 'access.rules[256]': value '{...}': one too many; at most "
		"256 is right");
	assert_many(HOSTS "  a:\naccess:\n  rules:\n    - segments: 1\n      users:\n",
		    "        - %u\n", 64, "", NULL);
	assert_many(
		HOSTS "  a:\naccess:\n  rules:\n    - segments: 1\n      users:\n",
		"        - %u\n", 65, "",
		"topo.yaml:72:11: key 'access.rules[0].users[64]': value '64': one too many; at "
		"most 64 is right");
	assert_many("", "[", 32, "",
		    "topo.yaml:1:33: not YAML: did not find expected node content while parsing a "
		    "flow node; docs/topology.md shows what is right");
	assert_many("", "[", 33, "",
		    "topo.yaml:1:33: more than 32 lists and mappings within each other; fewer are "
		    "right");
	assert_many("", "#", 256 * 1024, "\n", "topo.yaml: larger than 256K; less is right");
}

/* A virtual NTB has 128 rows for peers. */
static void refuses_too_many_peers(void **state)
{
	static const char machine[] =
		"  m%u: { kind: machine, adapters: [{ window: 2M }, { window: 2M }, { window: 2M }, "
		"{ window: 2M }] }\n";
	static const char beside[] =
		"  m%1$u: { kind: machine, address: 10.0.%1$u.1:7, adapters: [{ pci: 0000:00:10.0, "
		"window: 2M }, { pci: 0000:00:11.0, window: 2M }, { pci: 0000:00:12.0, window: 2M }] }\n";

	(void)state;
	assert_many(HOSTS, machine, 33, "", NULL);
	assert_many(HOSTS, machine, 34, "",
		    "topo.yaml:3:35: key 'hosts.m0.adapters[0].to': joins it to 132 adapters of "
		    "other hosts; 128 at most are right, by more switches or cables");
	assert_many(HOSTS "  a: { address: 10.0.255.1:7 }\n", beside, 42, "", NULL);
	assert_many(HOSTS "  a: { address: 10.0.255.1:7 }\n", beside, 43, "",
		    "topo.yaml:3:3: key 'hosts.a.adapters[0].to': joins it to 129 adapters of "
		    "machines; 128 at most are right, by more switches or cables");
}

/* Long names and values are cut so that the rest of the text stays. */
static void cuts_what_is_long(void **state)
{
	char path[400], want[SIO_ERR_TEXT];
	struct sio_topology *t = NULL;
	struct sio_err err = {0};

	(void)state;
	memset(path, 'p', sizeof(path));
	strcpy(path + sizeof(path) - 11, "/topo.yaml");
	assert_int_equal(sio_topofile_parse(path, "", 0, &t, &err), -EINVAL);
	snprintf(want, sizeof(want),
		 "%s:1:1: the file is empty; a mapping with 'cluster' and 'hosts' is right",
		 path + sizeof(path) - 1 - 80);
	assert_string_equal(err.text, want);
	assert_many(
		"cluster: ", "xy", 300, "\nhosts: { a: }",
		"topo.yaml:1:10: key 'cluster': value 'xyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxy...'"
		": not a name; a letter, then letters, digits, '-' or '_', at most 31 in all, "
		"is right");
	/* Not in the middle of a character. */
	assert_many(
		"cluster: x", "\303\244", 50, "\nhosts: { a: }",
		"topo.yaml:1:10: key 'cluster': value 'x\303\244\303\244\303\244\303\244\303\244"
		"\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244"
		"\303\244\303\244\303\244\303\244\303\244...': not a name; a letter, then "
		"letters, digits, '-' or '_', at most 31 in all, is right");
}

static void says_why_a_file_cannot_be_read(void **state)
{
	struct sio_topology *t = NULL;
	struct sio_err err = {0};

	(void)state;
	assert_int_equal(sio_topofile_read("/nonexistent/topo.yaml", &t, &err), -ENOENT);
	assert_string_equal(err.text,
			    "/nonexistent/topo.yaml: cannot be read: No such file or directory");
	assert_int_equal(sio_topofile_read("/", &t, &err), -EISDIR);
	assert_string_equal(err.text, "/: cannot be read: Is a directory");
	assert_int_equal(sio_topofile_read("/dev/null", &t, &err), -EINVAL);
	assert_int_equal(sio_topofile_read("/dev/zero", &t, &err), -EINVAL);
	assert_string_equal(err.text, "/dev/zero: larger than 256K; less is right");
	assert_null(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_is_wrong_and_what_would_be_right),
		cmocka_unit_test(works_without_a_place_for_the_text),
		cmocka_unit_test(refuses_too_many),
		cmocka_unit_test(refuses_too_many_peers),
		cmocka_unit_test(cuts_what_is_long),
		cmocka_unit_test(says_why_a_file_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
