/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors: none left, more than 1,024 of them, and more clients than that. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "badinput.h"

#define MOST 8192u  /* more segments than any program can have */
#define RINGS 1000u /* of 68 KiB each, more than 64 MiB */

static void limit_files(unsigned n)
{
	struct rlimit r;

	CHECK(getrlimit(RLIMIT_NOFILE, &r) == 0);
	r.rlim_cur = n;
	if (setrlimit(RLIMIT_NOFILE, &r) < 0)
		bad_check(__LINE__, 0, "the limit of descriptors can be set");
}

/* Segments until there is none any more. Return: how many; @ret_err is set to why. */
static unsigned create_all(sci_desc_t sd, sci_local_segment_t *seg, sci_error_t *ret_err)
{
	unsigned n = 0;

	do
		SCICreateSegment(sd, &seg[n], 1, 4096, NULL, NULL, SCI_FLAG_AUTO_ID, ret_err);
	while (*ret_err == SCI_ERR_OK && ++n < MOST);
	return n;
}

static void remove_all(sci_local_segment_t *seg, unsigned n)
{
	sci_error_t err;

	while (n > 0) {
		SCIRemoveSegment(seg[--n], 0, &err);
		FINE(err);
	}
}

static void write_and_read(sci_local_segment_t seg)
{
	volatile unsigned *p;
	sci_error_t err;
	sci_map_t map;

	p = SCIMapLocalSegment(seg, &map, 0, 4096, NULL, 0, &err);
	FINE(err);
	if (err != SCI_ERR_OK)
		return;
	*p = 42;
	CHECK(*p == 42);
	SCIUnmapSegment(map, 0, &err);
	FINE(err);
}

/* Each call that brings a descriptor says that there is none left; @near is a segment of ours. */
static void nothing_left(sci_desc_t sd, sci_remote_segment_t near, unsigned fdid)
{
	sci_local_data_interrupt_t dint;
	sci_remote_data_interrupt_t to;
	sci_smartio_device_t device;
	sci_local_segment_t seg;
	unsigned number;
	sci_error_t err;
	sci_map_t map;

	SCICreateSegment(sd, &seg, 0x5000, 4096, NULL, NULL, 0, &err);
	EXPECT(err, SCI_ERR_NOSPC, "descriptor", "ulimit -n");
	SCICreateDataInterrupt(sd, &dint, 0, &number, NULL, NULL, 0, &err);
	EXPECT(err, SCI_ERR_NOSPC, "descriptor", "ulimit -n");
	CHECK(SCIMapRemoteSegment(near, &map, 0, 4096, NULL, 0, &err) == NULL);
	EXPECT(err, SCI_ERR_NOSPC, "descriptor", "ulimit -n");
	/* More often than the host has room for rings: each is given back. */
	for (unsigned i = 0; i < RINGS && !bad_failures; i++) {
		SCIConnectDataInterrupt(sd, &to, SCI_LOCAL_HOST, 0, 33, 0, 0, &err);
		EXPECT(err, SCI_ERR_NOSPC, "descriptor", "ulimit -n");
	}
	SCIBorrowDevice(sd, &device, fdid, 0, &err);
	EXPECT(err, SCI_ERR_NOSPC, "descriptor");
}

static void all_can_be_had(sci_desc_t sd, sci_remote_segment_t near, unsigned fdid)
{
	sci_remote_data_interrupt_t to;
	sci_smartio_device_t device;
	sci_error_t err;
	sci_map_t map;

	SCIMapRemoteSegment(near, &map, 0, 4096, NULL, 0, &err);
	FINE(err);
	SCIUnmapSegment(map, 0, &err);
	FINE(err);
	SCIConnectDataInterrupt(sd, &to, SCI_LOCAL_HOST, 0, 33, 0, 0, &err);
	FINE(err);
	SCIDisconnectDataInterrupt(to, 0, &err);
	FINE(err);
	SCIBorrowDevice(sd, &device, fdid, 0, &err);
	FINE(err);
	SCIReturnDevice(device, 0, &err);
	FINE(err);
}

static sci_error_t wait_message(sci_local_data_interrupt_t dint, unsigned want)
{
	unsigned got = 0, length = sizeof(got);
	sci_error_t err;

	SCIWaitForDataInterrupt(dint, &got, &length, 10000, 0, &err);
	if (err == SCI_ERR_OK)
		CHECK(got == want && length == sizeof(got));
	return err;
}

/* Use up @argument descriptors with segments, then with files: errors, and all goes on. */
void bad_files(const char *argument)
{
	static sci_local_segment_t seg[MOST];
	unsigned number = 33, fdid, n, limit = (unsigned)strtoul(argument, NULL, 10);
	sci_remote_data_interrupt_t to;
	sci_local_data_interrupt_t dint;
	sci_remote_segment_t near;
	sci_error_t err;
	sci_desc_t sd;
	int fd, last = -1;

	limit_files(limit);
	smartio_find_device("nvme0", &fdid, &err);
	FINE(err);
	SCIOpen(&sd, 0, &err);
	FINE(err);
	SCICreateDataInterrupt(sd, &dint, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &err);
	FINE(err);
	SCIConnectDataInterrupt(sd, &to, SCI_LOCAL_HOST, 0, number, 0, 0, &err);
	FINE(err);
	n = create_all(sd, seg, &err);
	EXPECT(err, SCI_ERR_NOSPC, "descriptor", "ulimit -n");
	CHECK(n > limit / 2 && n < limit);
	SCIPrepareSegment(seg[0], 0, 0, &err);
	FINE(err);
	SCISetSegmentAvailable(seg[0], 0, 0, &err);
	FINE(err);
	SCIConnectSegment(sd, &near, SCI_LOCAL_HOST, SCIGetLocalSegmentId(seg[0]), 0, NULL, NULL, 0,
			  0, &err);
	FINE(err);
	nothing_left(sd, near, fdid);
	write_and_read(seg[0]);
	SCITriggerDataInterrupt(to, &n, sizeof(n), 0, &err);
	FINE(err);
	FINE(wait_message(dint, n));
	remove_all(seg + 1, n - 1);
	all_can_be_had(sd, near, fdid);
	/* Again, the program's own files being what used them up. */
	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		last = fd;
	CHECK(errno == EMFILE);
	nothing_left(sd, near, fdid);
	close(last);
	close(last - 1);
	all_can_be_had(sd, near, fdid);
	SCIDisconnectSegment(near, 0, &err);
	FINE(err);
	SCIDisconnectDataInterrupt(to, 0, &err);
	FINE(err);
	SCIRemoveDataInterrupt(dint, 0, &err);
	FINE(err);
	remove_all(seg, 1);
	SCIClose(sd, 0, &err);
	FINE(err);
}

static int highest_file(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static sci_callback_action_t count_message(void *arg, sci_local_data_interrupt_t interrupt,
					   void *data, unsigned int length, sci_error_t status)
{
	unsigned value;

	(void)interrupt;
	memcpy(&value, data, sizeof(value));
	__atomic_store_n((unsigned *)arg, length == sizeof(value) && !status ? value : ~0u,
			 __ATOMIC_RELEASE);
	return SCI_CALLBACK_CONTINUE;
}

static void use_interrupts(sci_desc_t sd, sci_smartio_device_t device)
{
	unsigned waited_no, called_no, message = 7, called = 0;
	sci_local_data_interrupt_t waited, with_callback;
	sci_remote_data_interrupt_t to[2];
	sci_error_t err;

	SCICreateDataInterrupt(sd, &waited, 0, &waited_no, NULL, NULL, 0, &err);
	FINE(err);
	SCICreateDataInterrupt(sd, &with_callback, 0, &called_no, count_message, &called,
			       SCI_FLAG_USE_CALLBACK, &err);
	FINE(err);
	CHECK(smartio_data_interrupt_fd(waited) > 1024);
	SCIConnectDataInterrupt(sd, &to[0], SCI_LOCAL_HOST, 0, waited_no, 0, 0, &err);
	FINE(err);
	SCIConnectDataInterrupt(sd, &to[1], SCI_LOCAL_HOST, 0, called_no, 0, 0, &err);
	FINE(err);
	for (unsigned i = 0; i < 2; i++) {
		SCITriggerDataInterrupt(to[i], &message, sizeof(message), 0, &err);
		FINE(err);
	}
	CHECK(smartio_wait_events(device, waited, 10000, &err) & SMARTIO_READY_INTERRUPT);
	FINE(err);
	FINE(wait_message(waited, message));
	for (unsigned i = 0; i < 10000 && !__atomic_load_n(&called, __ATOMIC_ACQUIRE); i++)
		smartio_wait_events(NULL, NULL, 1, &err);
	CHECK(called == message);
	for (unsigned i = 0; i < 2; i++) {
		SCIDisconnectDataInterrupt(to[i], 0, &err);
		FINE(err);
	}
	SCIRemoveDataInterrupt(waited, 0, &err);
	FINE(err);
	SCIRemoveDataInterrupt(with_callback, 0, &err);
	FINE(err);
}

/* All of the library's descriptors above @argument (1,024 or more). */
void bad_many_files(const char *argument)
{
	unsigned n = (unsigned)strtoul(argument, NULL, 10), fdid;
	sci_local_segment_t seg[100];
	sci_smartio_device_t device;
	sci_error_t err;
	sci_desc_t sd;

	limit_files(n + 256);
	while (highest_file() < (int)n)
		CHECK(dup(STDERR_FILENO) >= 0);
	SCIInitialize(0, &err);
	FINE(err);
	SCIOpen(&sd, 0, &err);
	FINE(err);
	for (unsigned i = 0; i < 100; i++) {
		SCICreateSegment(sd, &seg[i], i + 1, 4096, NULL, NULL, 0, &err);
		FINE(err);
		write_and_read(seg[i]);
	}
	CHECK(highest_file() > (int)n + 100);
	smartio_find_device("nvme0", &fdid, &err);
	FINE(err);
	SCIBorrowDevice(sd, &device, fdid, 0, &err);
	FINE(err);
	CHECK(smartio_device_event_fd(device) > 1024);
	use_interrupts(sd, device);
	SCIReturnDevice(device, 0, &err);
	FINE(err);
	remove_all(seg, 100);
	SCIClose(sd, 0, &err);
	FINE(err);
}

/* Segments until the host refuses, because of @argument; then one again, and all are given back. */
void bad_fill_daemon(const char *argument)
{
	static sci_local_segment_t seg[MOST];
	sci_local_segment_t again;
	sci_error_t err;
	sci_desc_t sd;
	char line[32];
	unsigned n;

	SCIOpen(&sd, 0, &err);
	FINE(err);
	n = create_all(sd, seg, &err);
	EXPECT(err, SCI_ERR_NOSPC, argument);
	snprintf(line, sizeof(line), "full %u", n);
	bad_tell_and_wait(line);
	CHECK(n > 100);
	SCICreateSegment(sd, &again, 1, 4096, NULL, NULL, SCI_FLAG_AUTO_ID, &err);
	EXPECT(err, SCI_ERR_NOSPC, argument);
	remove_all(seg + n - 1, 1);
	SCICreateSegment(sd, &seg[n - 1], 1, 4096, NULL, NULL, SCI_FLAG_AUTO_ID, &err);
	FINE(err);
	write_and_read(seg[n - 1]);
	remove_all(seg, n);
	SCIClose(sd, 0, &err);
	FINE(err);
}

/* One program of many: holds a segment until its input ends. */
static void be_client(int ready, int end)
{
	sci_local_segment_t seg;
	sci_error_t err;
	sci_desc_t sd;
	char c = '.';

	SCIInitialize(0, &err);
	FINE(err);
	SCIOpen(&sd, 0, &err);
	FINE(err);
	SCICreateSegment(sd, &seg, 0x10000, 4096, NULL, NULL, SCI_FLAG_AUTO_ID, &err);
	FINE(err);
	CHECK(write(ready, &c, 1) == 1);
	CHECK(read(end, &c, 1) == 0);
	write_and_read(seg);
	SCIRemoveSegment(seg, 0, &err);
	FINE(err);
	SCIClose(sd, 0, &err);
	FINE(err);
	SCITerminate();
	_exit(bad_failures ? 1 : 0);
}

/* @argument programs at once, each with a connection to smartiod. */
void bad_clients(const char *argument)
{
	unsigned n = (unsigned)strtoul(argument, NULL, 10), started = 0;
	int ready[2], end[2], status;
	char line[32], c;

	CHECK(pipe(ready) == 0 && pipe(end) == 0);
	for (; started < n && !bad_failures; started++) {
		pid_t pid = fork();

		if (pid == 0) {
			close(end[1]);
			close(ready[0]);
			be_client(ready[1], end[0]);
		}
		CHECK(pid > 0);
		CHECK(read(ready[0], &c, 1) == 1);
	}
	snprintf(line, sizeof(line), "clients %u", started);
	bad_tell_and_wait(line);
	close(end[1]);
	while (wait(&status) > 0)
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(end[0]);
	close(ready[0]);
	close(ready[1]);
}
