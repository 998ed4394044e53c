/* SPDX-License-Identifier: BSD-2-Clause */
/* The host's smartiod is killed, or was never there, and the program lives on. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "badinput.h"
#include "smartio/nvme.h"

struct things {
	sci_desc_t sd;
	sci_local_segment_t seg;
	sci_remote_segment_t near, device_seg;
	sci_local_data_interrupt_t dint;
	sci_remote_data_interrupt_t to;
	sci_smartio_device_t device;
	sci_map_t map, near_map;
	volatile unsigned *p, *near_p;
};

static void have(struct things *t, const char *name)
{
	unsigned fdid, number;
	sci_error_t err;

	SCIOpen(&t->sd, 0, &err);
	FINE(err);
	SCICreateSegment(t->sd, &t->seg, 5, 4096, NULL, NULL, 0, &err);
	FINE(err);
	SCIPrepareSegment(t->seg, 0, 0, &err);
	FINE(err);
	SCISetSegmentAvailable(t->seg, 0, 0, &err);
	FINE(err);
	t->p = SCIMapLocalSegment(t->seg, &t->map, 0, 4096, NULL, 0, &err);
	FINE(err);
	SCIConnectSegment(t->sd, &t->near, SCI_LOCAL_HOST, 5, 0, NULL, NULL, 0, 0, &err);
	FINE(err);
	t->near_p = SCIMapRemoteSegment(t->near, &t->near_map, 0, 4096, NULL, 0, &err);
	FINE(err);
	SCICreateDataInterrupt(t->sd, &t->dint, 0, &number, NULL, NULL, 0, &err);
	FINE(err);
	SCIConnectDataInterrupt(t->sd, &t->to, SCI_LOCAL_HOST, 0, number, 0, 0, &err);
	FINE(err);
	smartio_find_device(name, &fdid, &err);
	FINE(err);
	SCIBorrowDevice(t->sd, &t->device, fdid, 0, &err);
	FINE(err);
	SCICreateDeviceSegment(t->device, 1, 4096, SCI_MEMTYPE_PRIVATE, SCI_MEMACCESS_DEVICE_READ,
			       0, &err);
	FINE(err);
	SCIConnectDeviceSegment(t->device, &t->device_seg, 1, SCI_MEMTYPE_PRIVATE, NULL, NULL, 0,
				&err);
	FINE(err);
}

/* All that a program might go on with, smartiod being gone. */
static void calls_fail(struct things *t)
{
	sci_remote_segment_t remote;
	unsigned number, message = 1;
	sci_local_segment_t seg;
	sci_ioaddr_t address;
	sci_error_t err;
	sci_map_t map;

	SCICreateSegment(t->sd, &seg, 6, 4096, NULL, NULL, 0, &err);
	EXPECT(err, SCI_ERR_NO_LINK_ACCESS, "smartiod");
	SCISetSegmentUnavailable(t->seg, 0, 0, &err);
	EXPECT(err, SCI_ERR_NO_LINK_ACCESS, "smartiod");
	SCIConnectSegment(t->sd, &remote, SCI_LOCAL_HOST, 5, 0, NULL, NULL, 0, 0, &err);
	EXPECT(err, SCI_ERR_NO_LINK_ACCESS, "smartiod");
	SCIMapRemoteSegment(t->near, &map, 0, 4096, NULL, 0, &err);
	EXPECT(err, SCI_ERR_NO_LINK_ACCESS, "smartiod");
	SCIMapLocalSegment(t->seg, &map, 0, 4096, NULL, 0, &err);
	EXPECT(err, SCI_ERR_NO_LINK_ACCESS, "smartiod");
	CHECK(SCIProbeNode(t->sd, 0, 4, 0, &err) == 0);
	EXPECT(err, SCI_ERR_NO_LINK_ACCESS, "smartiod");
	SCICreateDataInterrupt(t->sd, &t->dint, 0, &number, NULL, NULL, 0, &err);
	EXPECT(err, SCI_ERR_NO_LINK_ACCESS, "smartiod");
	SCITriggerDataInterrupt(t->to, &message, sizeof(message), 0, &err);
	EXPECT(err, SCI_ERR_NO_LINK_ACCESS, "smartiod");
	SCIMapLocalSegmentForDevice(t->seg, 0, t->device, &address, 0, 4096, 0, &err);
	EXPECT(err, SCI_ERR_NO_LINK_ACCESS, "smartiod");
	CHECK(smartio_device_lost(t->device));
	CHECK(*t->p == ~0u && *t->near_p == ~0u);
	*t->p = 3; /* goes nowhere, and hurts nobody */
}

static void release_it(struct things *t)
{
	sci_error_t err;

	SCIUnmapSegment(t->near_map, 0, &err);
	FINE(err);
	SCIUnmapSegment(t->map, 0, &err);
	FINE(err);
	SCIDisconnectSegment(t->near, 0, &err);
	FINE(err);
	SCIDisconnectSegment(t->device_seg, 0, &err);
	FINE(err);
	SCIDisconnectDataInterrupt(t->to, 0, &err);
	FINE(err);
	SCIRemoveDataInterrupt(t->dint, 0, &err);
	FINE(err);
	SCIReturnDevice(t->device, 0, &err);
	FINE(err);
	SCIRemoveSegment(t->seg, 0, &err);
	FINE(err);
	SCIClose(t->sd, 0, &err);
	FINE(err);
}

/* Not before the old connection was ended; not while no smartiod is there; then as ever. */
static void initialize_again(void)
{
	sci_local_segment_t seg;
	sci_error_t err;
	sci_desc_t sd;

	SCIInitialize(0, &err);
	EXPECT(err, SCI_ERR_NO_LINK_ACCESS, "SCITerminate()");
	SCITerminate();
	SCIInitialize(0, &err);
	EXPECT(err, SCI_ERR_NOT_INITIALIZED, "smartiod", "SMARTIO_SOCKET");
	SCIOpen(&sd, 0, &err);
	EXPECT(err, SCI_ERR_NOT_INITIALIZED, "SCIInitialize()");
	if (!bad_tell_and_wait("gone")) /* the host is up again */
		return;
	SCIInitialize(0, &err);
	FINE(err);
	SCIOpen(&sd, 0, &err);
	FINE(err);
	SCICreateSegment(sd, &seg, 5, 4096, NULL, NULL, 0, &err);
	FINE(err);
	SCIRemoveSegment(seg, 0, &err);
	FINE(err);
	SCIClose(sd, 0, &err);
	FINE(err);
}

struct waiter {
	struct things *things;
	sci_error_t err;
	char text[512];
};

static void keep(struct waiter *w, sci_error_t err)
{
	w->err = err;
	snprintf(w->text, sizeof(w->text), "%s", smartio_last_error());
}

static void *wait_message(void *arg)
{
	struct waiter *w = arg;
	unsigned value, length = sizeof(value);
	sci_error_t err;

	SCIWaitForDataInterrupt(w->things->dint, &value, &length, SCI_INFINITE_TIMEOUT, 0, &err);
	keep(w, err);
	return NULL;
}

static void *wait_device(void *arg)
{
	struct smartio_device_event event;
	struct waiter *w = arg;
	sci_error_t err;

	do /* that the device is lost may be told first */
		smartio_wait_device_event(w->things->device, &event, SCI_INFINITE_TIMEOUT, &err);
	while (err == SCI_ERR_OK && event.kind == SMARTIO_DEVICE_LOST);
	keep(w, err);
	return NULL;
}

static void *wait_anything(void *arg)
{
	struct waiter *w = arg;
	sci_error_t err;

	while (smartio_wait_events(w->things->device, w->things->dint, SCI_INFINITE_TIMEOUT,
				   &err)) {
		unsigned value, length = sizeof(value);
		struct smartio_device_event event;
		sci_error_t take;

		smartio_wait_device_event(w->things->device, &event, 0, &take);
		SCIWaitForDataInterrupt(w->things->dint, &value, &length, 0, 0, &take);
	}
	keep(w, err);
	return NULL;
}

/* Three threads wait for ever when smartiod is killed. @argument: a device. */
void bad_gone_waiting(const char *argument)
{
	static void *(*const wait[])(void *) = {wait_message, wait_device, wait_anything};
	struct waiter w[3] = {{0}};
	struct things t = {0};
	pthread_t thread[3];

	have(&t, argument);
	for (unsigned i = 0; i < 3; i++) {
		w[i].things = &t;
		CHECK(pthread_create(&thread[i], NULL, wait[i], &w[i]) == 0);
	}
	puts("waiting");
	fflush(stdout);
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(thread[i], NULL);
		/* smartio_wait_events() calls it cancelled, as its description says. */
		if (w[i].err != (i == 2 ? SCI_ERR_CANCELLED : SCI_ERR_NO_LINK_ACCESS) ||
		    !strstr(w[i].text, "smartiod")) {
			fprintf(stderr, "badinput: waiter %u: %s (%s)\n", i,
				SCIGetErrorString(w[i].err), w[i].text);
			bad_failures++;
		}
	}
	calls_fail(&t);
	release_it(&t);
	initialize_again();
}

/* smartiod stops, is asked something, and is killed before it answers. @argument: a device. */
void bad_gone_asking(const char *argument)
{
	sci_local_segment_t seg;
	struct things t = {0};
	sci_error_t err;

	have(&t, argument);
	bad_tell_and_wait("ready");
	SCICreateSegment(t.sd, &seg, 6, 4096, NULL, NULL, 0, &err);
	EXPECT(err, SCI_ERR_NO_LINK_ACCESS, "smartiod");
	calls_fail(&t);
	release_it(&t);
	initialize_again();
}

/* A client of a drive reads all the time when its host's smartiod is killed. @argument: a device.
 */
void bad_gone_nvme(const char *argument)
{
	struct smartio_nvme_queue *q, *second;
	struct smartio_nvme *n;
	char block[4096];
	int rc;

	if (smartio_nvme_open(argument, &n) < 0 || smartio_nvme_queue_open(n, NULL, &q) < 0 ||
	    smartio_nvme_read(q, block, 0, sizeof(block)) < 0) {
		bad_check(__LINE__, 0, smartio_nvme_error());
		return;
	}
	puts("reading");
	fflush(stdout);
	do
		rc = smartio_nvme_read(q, block, 0, sizeof(block));
	while (rc == 0);
	if (rc != -ECONNRESET || !strstr(smartio_nvme_error(), argument)) {
		fprintf(stderr, "badinput: read: %d (%s)\n", rc, smartio_nvme_error());
		bad_failures++;
	}
	CHECK(smartio_nvme_write(q, block, 0, sizeof(block)) == -ECONNRESET);
	CHECK(smartio_nvme_queue_open(n, NULL, &second) < 0);
	smartio_nvme_queue_close(q);
	smartio_nvme_close(n);
	initialize_again();
}

static void nobody_there(const char *socket, const char *word)
{
	sci_error_t err;
	sci_desc_t sd;

	if (socket)
		setenv("SMARTIO_SOCKET", socket, 1);
	else
		unsetenv("SMARTIO_SOCKET");
	SCIInitialize(0, &err);
	EXPECT(err, SCI_ERR_NOT_INITIALIZED, "SMARTIO_SOCKET", word);
	SCIOpen(&sd, 0, &err);
	EXPECT(err, SCI_ERR_NOT_INITIALIZED, "SCIInitialize()");
}

void bad_nobody(const char *argument)
{
	char path[200];

	(void)argument;
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	nobody_there(NULL, "smartio run");
	nobody_there("", "smartio run");
	nobody_there(path, "107 bytes");
	nobody_there("/nowhere/node.4", "no such socket");
	nobody_there("/dev/null", "not running");
}
