/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that must be refused, on a live cluster.
 * usage: badinput CASE [ARGUMENT]
 * Exit status: 0 each call was answered as it should be; 1 with a line per wrong answer.
 */
#include "badinput.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smartio/nvme.h"

#define NOBODY 4000u /* a node id that no host of the topology has */

unsigned bad_failures;

void bad_check(int line, int holds, const char *what)
{
	if (holds)
		return;
	bad_failures++;
	fprintf(stderr, "badinput: line %d: not so: %s\n", line, what);
}

void bad_expect(int line, sci_error_t got, sci_error_t want, ...)
{
	const char *text = smartio_last_error(), *word;
	va_list words;

	if (got != want) {
		bad_failures++;
		fprintf(stderr, "badinput: line %d: %s (%#x: %s), not %s\n", line,
			SCIGetErrorString(got), (unsigned)got, text, SCIGetErrorString(want));
		return;
	}
	if ((want == SCI_ERR_OK) != (*text == '\0') || strchr(text, '\n')) {
		bad_failures++;
		fprintf(stderr, "badinput: line %d: no one-line explanation: '%s'\n", line, text);
	}
	va_start(words, want);
	while ((word = va_arg(words, const char *))) {
		if (strstr(text, word))
			continue;
		bad_failures++;
		fprintf(stderr, "badinput: line %d: '%s' does not name '%s'\n", line, text, word);
	}
	va_end(words);
}

int bad_tell_and_wait(const char *line)
{
	char answer[16];

	puts(line);
	fflush(stdout);
	return fgets(answer, sizeof(answer), stdin) != NULL;
}

static sci_error_t try_create(sci_desc_t sd, unsigned id, size_t size)
{
	sci_local_segment_t seg = NULL;
	sci_error_t err, again;

	SCICreateSegment(sd, &seg, id, size, NULL, NULL, 0, &err);
	if (err == SCI_ERR_OK)
		SCIRemoveSegment(seg, 0, &again);
	else
		CHECK(seg == NULL);
	return err;
}

/* Ids that are taken; sizes that nobody has. The host has 64 MiB. */
void bad_segments(const char *argument)
{
	sci_local_segment_t seg, most;
	sci_error_t err;
	sci_map_t map;
	sci_desc_t sd;

	(void)argument;
	SCIOpen(&sd, 0, &err);
	FINE(err);
	SCICreateSegment(sd, &seg, 7, 4096, NULL, NULL, 0, &err);
	FINE(err);
	EXPECT(try_create(sd, 7, 4096), SCI_ERR_SEGMENTID_USED, "0x7", smartio_host_name());
	EXPECT(try_create(sd, 8, 0), SCI_ERR_SIZE_ALIGNMENT, "0x8", "size 0", "1 byte");
	EXPECT(try_create(sd, 8, (64u << 20) + 1), SCI_ERR_NOSPC, "67108865", "67108864",
	       smartio_host_name());
	EXPECT(try_create(sd, 8, SIZE_MAX), SCI_ERR_NOSPC, "67108864");
	/* What fits alone, but not beside another. */
	SCICreateSegment(sd, &most, 9, 40u << 20, NULL, NULL, 0, &err);
	FINE(err);
	EXPECT(try_create(sd, 8, 40u << 20), SCI_ERR_NOSPC, "41943040", smartio_host_name());
	SCIRemoveSegment(most, 0, &err);
	FINE(err);
	FINE(try_create(sd, 8, 40u << 20));
	SCIMapLocalSegment(seg, &map, 4096, 1, NULL, 0, &err);
	EXPECT(err, SCI_ERR_OUT_OF_RANGE, "0x1000");
	SCIMapLocalSegment(seg, &map, 1, SIZE_MAX, NULL, 0, &err);
	EXPECT(err, SCI_ERR_OUT_OF_RANGE, "0x1000");
	SCIMapLocalSegment(seg, &map, 0, 0, NULL, 0, &err);
	EXPECT(err, SCI_ERR_SIZE_ALIGNMENT, "size 0");
	SCISetSegmentAvailable(seg, 0, 0, &err);
	EXPECT(err, SCI_ERR_SEGMENT_NOT_PREPARED, "SCIPrepareSegment");
	SCIPrepareSegment(seg, 3, 0, &err);
	EXPECT(err, SCI_ERR_NO_SUCH_ADAPTERNO, "adapter 3", "it has 1", smartio_host_name());
	SCIPrepareSegment(seg, DIS_MAX_NSCIS, 0, &err);
	EXPECT(err, SCI_ERR_ILLEGAL_ADAPTERNO, "not below");
	SCIClose(sd, 0, &err);
	EXPECT(err, SCI_ERR_BUSY, "");
	SCIRemoveSegment(seg, 0, &err);
	FINE(err);
	SCIRemoveSegment(seg, 0, &err);
	EXPECT(err, SCI_ERR_ILLEGAL_PARAMETER, "");
	SCIClose(sd, 0, &err);
	FINE(err);
}

static sci_error_t try_connect(sci_desc_t sd, unsigned node, unsigned id)
{
	sci_remote_segment_t seg = NULL;
	sci_error_t err;

	SCIConnectSegment(sd, &seg, node, id, 0, NULL, NULL, 1000, 0, &err);
	CHECK(err != SCI_ERR_OK && seg == NULL);
	return err;
}

/* @argument: a host that exists. */
void bad_nodes(const char *argument)
{
	unsigned node = (unsigned)strtoul(argument, NULL, 10);
	sci_remote_data_interrupt_t dint;
	sci_error_t err;
	sci_desc_t sd;

	SCIOpen(&sd, 0, &err);
	FINE(err);
	EXPECT(try_connect(sd, NOBODY, 1), SCI_ERR_NO_SUCH_NODEID, "4000");
	EXPECT(try_connect(sd, 0, 1), SCI_ERR_ILLEGAL_NODEID, "node id 0");
	EXPECT(try_connect(sd, node, 0x77), SCI_ERR_NO_SUCH_SEGMENT, "0x77");
	EXPECT(try_connect(sd, SCI_LOCAL_HOST, 0x77), SCI_ERR_NO_SUCH_SEGMENT, "0x77");
	CHECK(SCIProbeNode(sd, 0, NOBODY, 0, &err) == 0);
	EXPECT(err, SCI_ERR_NO_SUCH_NODEID, "4000");
	CHECK(SCIProbeNode(sd, 0, node, 0, &err) == 1);
	FINE(err);
	SCIConnectDataInterrupt(sd, &dint, NOBODY, 0, 3, 0, 0, &err);
	EXPECT(err, SCI_ERR_NO_SUCH_NODEID, "4000");
	SCIConnectDataInterrupt(sd, &dint, node, 0, 3, 0, 0, &err);
	EXPECT(err, SCI_ERR_NO_SUCH_INTNO, "3");
	SCIClose(sd, 0, &err);
	FINE(err);
}

static void ask_of_wrong_device(sci_desc_t sd, unsigned fdid, const char *name)
{
	sci_smartio_device_info_t info = {0};
	sci_smartio_query_device_t q = {
		.fdid = fdid, .subcommand = SCI_Q_DEVICE_INFO, .data = &info};
	struct smartio_counter counter;
	sci_smartio_device_t device = NULL;
	sci_error_t err;

	SCIBorrowDevice(sd, &device, fdid, 0, &err);
	EXPECT(err, SCI_ERR_NO_SUCH_FDID, name);
	CHECK(device == NULL);
	SCIQuery(SCI_Q_DEVICE, &q, 0, &err);
	EXPECT(err, SCI_ERR_NO_SUCH_FDID, name);
	CHECK(smartio_device_counters(fdid, &counter, 1, &err) == 0);
	EXPECT(err, SCI_ERR_NO_SUCH_FDID, name);
}

static void ask_of_right_device(sci_smartio_device_t device)
{
	sci_remote_segment_t seg;
	sci_error_t err;

	SCIConnectDeviceSegment(device, &seg, 6, SCI_MEMTYPE_BAR, NULL, NULL, 0, &err);
	EXPECT(err, SCI_ERR_NO_SUCH_SEGMENT, "6");
	SCIConnectDeviceSegment(device, &seg, 5, SCI_MEMTYPE_PRIVATE, NULL, NULL, 0, &err);
	EXPECT(err, SCI_ERR_NO_SUCH_SEGMENT, "5");
	SCICreateDeviceSegment(device, 5, 0, SCI_MEMTYPE_PRIVATE, SCI_MEMACCESS_DEVICE_READ, 0,
			       &err);
	EXPECT(err, SCI_ERR_SIZE_ALIGNMENT, "");
	SCICreateDeviceSegment(device, 5, (size_t)1 << 40, SCI_MEMTYPE_PRIVATE,
			       SCI_MEMACCESS_DEVICE_READ, 0, &err);
	EXPECT(err, SCI_ERR_HW_NOSPC, "1099511627776", "67108864");
	SCICreateDeviceSegment(device, 5, 4096, SCI_MEMTYPE_PRIVATE, SCI_MEMACCESS_DEVICE_READ, 0,
			       &err);
	FINE(err);
	SCICreateDeviceSegment(device, 5, 4096, SCI_MEMTYPE_PRIVATE, SCI_MEMACCESS_DEVICE_READ, 0,
			       &err);
	EXPECT(err, SCI_ERR_SEGMENTID_USED, "5");
	smartio_device_settled(device, SMARTIO_ALL_BORROWERS, &err);
	EXPECT(err, SCI_ERR_ACCESS, "");
}

/* Device ids that are none, and a device's ids and BARs that are none. @argument: a device. */
void bad_devices(const char *argument)
{
	sci_smartio_device_t device;
	unsigned fdid = 0;
	sci_error_t err;
	sci_desc_t sd;

	SCIOpen(&sd, 0, &err);
	FINE(err);
	smartio_find_device("nvme7", &fdid, &err);
	EXPECT(err, SCI_ERR_NO_SUCH_FDID, "nvme7");
	smartio_find_device("0x999", &fdid, &err);
	EXPECT(err, SCI_ERR_NO_SUCH_FDID, "0x999");
	CHECK(fdid == 0);
	smartio_find_device("", &fdid, &err);
	EXPECT(err, SCI_ERR_NO_SUCH_FDID, "");
	smartio_find_device(argument, &fdid, &err);
	FINE(err);
	ask_of_wrong_device(sd, 0x999, "0x999"); /* a node that is none */
	ask_of_wrong_device(sd, fdid + 1, "");	 /* a node that has no such device */
	ask_of_wrong_device(sd, 0, "");
	SCIBorrowDevice(sd, &device, fdid, 0, &err);
	FINE(err);
	ask_of_right_device(device);
	SCIReleaseExclusiveBorrow(device, 0, &err);
	EXPECT(err, SCI_ERR_ILLEGAL_OPERATION, "");
	SCIReturnDevice(device, 0, &err);
	FINE(err);
	SCIClose(sd, 0, &err);
	FINE(err);
}

/* Hold a device exclusively until told to end. */
void bad_exclusive(const char *argument)
{
	sci_smartio_device_t device;
	unsigned fdid;
	sci_error_t err;
	sci_desc_t sd;

	SCIOpen(&sd, 0, &err);
	smartio_find_device(argument, &fdid, &err);
	FINE(err);
	SCIBorrowDevice(sd, &device, fdid, SCI_FLAG_EXCLUSIVE, &err);
	FINE(err);
	bad_tell_and_wait("held");
	SCIReturnDevice(device, 0, &err);
	FINE(err);
	SCIClose(sd, 0, &err);
	FINE(err);
}

/* The same device, while somebody holds it; and exclusively, while we have it ourselves. */
void bad_in_use(const char *argument)
{
	sci_smartio_device_t device = NULL, second = NULL;
	unsigned fdid;
	sci_error_t err;
	sci_desc_t sd;

	SCIOpen(&sd, 0, &err);
	smartio_find_device(argument, &fdid, &err);
	FINE(err);
	SCIBorrowDevice(sd, &device, fdid, 0, &err);
	EXPECT(err, SCI_ERR_NOT_AVAILABLE, argument, "exclusive");
	CHECK(device == NULL);
	if (bad_tell_and_wait("refused")) { /* it is free now */
		SCIBorrowDevice(sd, &device, fdid, 0, &err);
		FINE(err);
		SCIBorrowDevice(sd, &second, fdid, SCI_FLAG_EXCLUSIVE, &err);
		EXPECT(err, SCI_ERR_NOT_AVAILABLE, argument);
		CHECK(second == NULL);
		SCIReturnDevice(device, 0, &err);
		FINE(err);
	}
	SCIClose(sd, 0, &err);
	FINE(err);
}

static void expect_errno(int line, int got, int want, const char *word)
{
	const char *text = smartio_nvme_error();

	if (got == want && strstr(text, word) && !strchr(text, '\n'))
		return;
	bad_failures++;
	fprintf(stderr, "badinput: line %d: %d (%s), not %d and a text with '%s'\n", line, got,
		text, want, word);
}

/* Commands past the namespace and the buffer; what is in range still works. @argument: device. */
void bad_namespace(const char *argument)
{
	struct smartio_nvme_queue_options wrong = {.size = sizeof(wrong), .namespace_id = 9};
	struct smartio_nvme_namespace ns;
	struct smartio_nvme_buffer *b;
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;
	char block[512] = "x";
	uint64_t end;

	if (smartio_nvme_open(argument, &n) < 0 || smartio_nvme_queue_open(n, NULL, &q) < 0 ||
	    smartio_nvme_get_namespace(n, 0, &ns) < 0 ||
	    smartio_nvme_buffer_alloc(n, 8192, &b) < 0) {
		bad_check(__LINE__, 0, smartio_nvme_error());
		return;
	}
	CHECK(ns.block_size == sizeof(block));
	end = ns.blocks * ns.block_size;
#define REFUSED(call, want, word) expect_errno(__LINE__, call, want, word)
	REFUSED(smartio_nvme_write(q, block, end, 512), -ERANGE, "namespace");
	REFUSED(smartio_nvme_read(q, block, end, 512), -ERANGE, "namespace");
	REFUSED(smartio_nvme_write(q, block, end - 512, 1024), -ERANGE, "namespace");
	REFUSED(smartio_nvme_write(q, block, UINT64_MAX - 511, 512), -ERANGE, "namespace");
	REFUSED(smartio_nvme_write(q, block, 100, 512), -EINVAL, "512");
	REFUSED(smartio_nvme_submit(q, SMARTIO_NVME_WRITE, ns.blocks, 1, b, 0, NULL), -ERANGE, "");
	REFUSED(smartio_nvme_submit(q, SMARTIO_NVME_WRITE, UINT64_MAX, 2, b, 0, NULL), -ERANGE, "");
	REFUSED(smartio_nvme_submit(q, SMARTIO_NVME_WRITE, 0, 17, b, 0, NULL), -ERANGE, "");
	REFUSED(smartio_nvme_submit(q, SMARTIO_NVME_WRITE, 0, 1, b, 8192, NULL), -ERANGE, "");
	REFUSED(smartio_nvme_submit(q, SMARTIO_NVME_WRITE, 0, 1, b, 2, NULL), -EINVAL, "");
	REFUSED(smartio_nvme_submit(q, SMARTIO_NVME_WRITE, 0, 0, b, 0, NULL), -EINVAL, "");
	REFUSED(smartio_nvme_get_namespace(n, 1, &ns), -ENOENT, "");
	REFUSED(smartio_nvme_queue_open(n, &wrong, &q), -EINVAL, "9");
	CHECK(smartio_nvme_write(q, block, end - 512, 512) == 0);
	smartio_nvme_close(n);
}

static const struct {
	const char *name;
	void (*run)(const char *argument);
	int before, needs_argument;
} cases[] = {
	{"segments", bad_segments, 0, 0},
	{"nodes", bad_nodes, 0, 1},
	{"devices", bad_devices, 0, 1},
	{"exclusive", bad_exclusive, 0, 1},
	{"in-use", bad_in_use, 0, 1},
	{"namespace", bad_namespace, 0, 1},
	{"files", bad_files, 0, 1},
	{"many-files", bad_many_files, 1, 1},
	{"fill-daemon", bad_fill_daemon, 0, 0},
	{"gone-waiting", bad_gone_waiting, 0, 1},
	{"gone-asking", bad_gone_asking, 0, 1},
	{"gone-nvme", bad_gone_nvme, 0, 1},
	{"clients", bad_clients, 1, 1},
	{"nobody", bad_nobody, 1, 0},
};

int main(int argc, char **argv)
{
	const char *argument = argc > 2 ? argv[2] : NULL;
	sci_error_t err;

	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name) || (cases[i].needs_argument && !argument))
			continue;
		if (!cases[i].before) {
			SCIInitialize(0, &err);
			FINE(err);
			if (err != SCI_ERR_OK)
				return 1;
		}
		cases[i].run(argument);
		SCITerminate();
		return bad_failures ? 1 : 0;
	}
	fprintf(stderr, "usage: badinput CASE [ARGUMENT]\n");
	return 2;
}
