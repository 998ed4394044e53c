/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio borrow, smartio return: Device Lending. A process of its own holds the borrow: all hangs
 * on it, so that whatever becomes of it is taken back as of any program. It holds a lock on a file
 * that is called after the device, by which others find it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/command.h"
#include "base/local.h"
#include "base/output.h"
#include "base/state.h"
#include "sisci_api.h"
#include "smartio/ext.h"

#define ADAPTER 0u
#define VECTORS 8u /* that a driver gets, if the device has so many */

/* What the holder says when the device is in place, or when it will not be. */
struct verdict {
	uint32_t place;
	int error; /* -errno; 0: it is there */
	char text[512];
};

/* ---- the file ---- */

static int lock_path(unsigned fdid, char ret[PATH_MAX], struct sio_err *reterr)
{
	return tool_path(ret, PATH_MAX, reterr, "%s/borrow-%#x", TOOL_LOCAL_STATE, fdid);
}

static int lock_open(unsigned fdid, int flags, int *ret, struct sio_err *reterr)
{
	char path[PATH_MAX];

	if (lock_path(fdid, path, reterr) < 0)
		return reterr->code;
	*ret = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
	return *ret < 0 ? sio_fail(reterr, -errno, "%s: %s", path, strerror(errno)) : 0;
}

/* Who has the lock on @fd; 0: nobody. */
static pid_t lock_holder(int fd)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(fd, F_GETLK, &l) < 0 || l.l_type == F_UNLCK)
		return 0;
	return l.l_pid;
}

/* ---- the holder ---- */

static sci_smartio_device_t held;

static void on_signal(int number)
{
	(void)number;
	smartio_wake(held);
}

static int fail(struct verdict *v, int error, const char *what)
{
	v->error = error;
	snprintf(v->text, sizeof(v->text), "%s: %s", what, smartio_last_error());
	return error;
}

/* Interrupts for vectors 0, 1, ... of the device: as many as it has, a power of 2. */
static unsigned tie_vectors(sci_desc_t sd, sci_smartio_device_t device,
			    sci_local_interrupt_t ret[VECTORS])
{
	sci_remote_interrupt_t to;
	unsigned n, node, number, vector, use = 1;
	sci_error_t err, ignored;

	SCIGetLocalNodeId(ADAPTER, &node, 0, &err);
	for (n = 0; n < VECTORS && err == SCI_ERR_OK; n++) {
		SCICreateInterrupt(sd, &ret[n], ADAPTER, &number, NULL, NULL, 0, &err);
		if (err != SCI_ERR_OK)
			break;
		SCIConnectInterrupt(sd, &to, node, ADAPTER, number, SCI_INFINITE_TIMEOUT, 0, &err);
		if (err != SCI_ERR_OK)
			break;
		vector = n;
		smartio_connect_device_interrupt(device, &vector, to, &err);
		SCIDisconnectInterrupt(to, 0, &ignored);
		if (err != SCI_ERR_OK)
			break;
	}
	while (use * 2 <= n)
		use *= 2;
	return n ? use : 0;
}

static int take(unsigned fdid, bool all_memory, struct verdict *v)
{
	sci_local_interrupt_t interrupt[VECTORS];
	unsigned n;
	sci_error_t err;
	sci_desc_t sd;

	SCIInitialize(0, &err);
	if (err != SCI_ERR_OK)
		return fail(v, -ENOTCONN, "smartiod");
	SCIOpen(&sd, 0, &err);
	if (err != SCI_ERR_OK)
		return fail(v, -ENOTCONN, "smartiod");
	SCIBorrowDevice(sd, &held, fdid, SCI_FLAG_EXCLUSIVE, &err);
	if (err != SCI_ERR_OK)
		return fail(v, err == SCI_ERR_NOT_AVAILABLE ? -EBUSY : -ENODEV, "cannot borrow it");
	n = tie_vectors(sd, held, interrupt);
	smartio_plug_in(held, interrupt, n, all_memory ? SMARTIO_ALL_MEMORY : 0, &v->place, &err);
	if (err == SCI_ERR_NOT_SUPPORTED)
		return fail(v, -EOPNOTSUPP, "cannot plug it in");
	if (err == SCI_ERR_ACCESS)
		return fail(v, -EACCES, "cannot plug it in");
	return err == SCI_ERR_OK ? 0 : fail(v, -EIO, "cannot plug it in");
}

/* Until somebody wants it back, or it is lost. */
static void wait_for_end(void)
{
	struct smartio_device_event event;
	unsigned ready = 0;
	sci_error_t err = SCI_ERR_OK;

	while (err == SCI_ERR_OK && !(ready & SMARTIO_READY_WAKE)) {
		ready = smartio_wait_events(held, NULL, SCI_INFINITE_TIMEOUT, &err);
		if (!(ready & SMARTIO_READY_DEVICE))
			continue;
		smartio_wait_device_event(held, &event, 0, &err);
		if (err == SCI_ERR_OK && event.kind == SMARTIO_DEVICE_LOST)
			return;
		if (err == SCI_ERR_TIMEOUT)
			err = SCI_ERR_OK;
	}
}

static void let_go(void)
{
	sci_error_t err;

	smartio_unplug(held, &err);
	SCIReturnDevice(held, 0, &err);
	SCITerminate();
}

static void be_holder(unsigned fdid, bool all_memory, int lock, int tell)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct sigaction on = {.sa_handler = on_signal};
	struct verdict v = {.error = 0};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	if (null < 0 || chdir("/") < 0 || fcntl(lock, F_SETLK, &l) < 0) {
		v.error = -errno;
		snprintf(v.text, sizeof(v.text), "%s", strerror(errno));
	} else {
		take(fdid, all_memory, &v);
	}
	if (!v.error) {
		sigaction(SIGTERM, &on, NULL);
		sigaction(SIGINT, &on, NULL);
	}
	/* Nobody listens any more: as if it had been asked to end. */
	if (write(tell, &v, sizeof(v)) != sizeof(v) || v.error)
		_exit(TOOL_EXIT_FAILURE);
	close(tell);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	wait_for_end();
	let_go();
	_exit(0);
}

/* ---- borrow ---- */

static void place_text(uint32_t place, char ret[32])
{
	snprintf(ret, 32, "%04x:%02x:%02x.%x", place >> 16, place >> 8 & 0xff, place >> 3 & 0x1f,
		 place & 7);
}

static int tell_place(const char *device, uint32_t place)
{
	struct json_object *o;
	char text[32];

	place_text(place, text);
	if (!tool_where.json) {
		tool_note("%s is %s until smartio return", device, text);
		return 0;
	}
	o = tool_json_object();
	tool_json_string(o, "device", device);
	tool_json_string(o, "function", text);
	return tool_json_print("borrow", o);
}

/* The device as this host's smartiod knows it. */
static int find(const char *word, unsigned *ret_fdid)
{
	sci_error_t err;

	if (geteuid() != 0)
		return tool_error_code(-EPERM, "drivers are changed by root alone: use sudo");
	SCIInitialize(0, &err);
	if (err == SCI_ERR_OK)
		smartio_find_device(word, ret_fdid, &err);
	if (err != SCI_ERR_OK)
		return tool_error_code(err == SCI_ERR_NO_SUCH_FDID ? -ENODEV : -ENOTCONN, "%s",
				       smartio_last_error());
	SCITerminate();
	return 0;
}

static bool all_memory;

static int start_holder(const char *word, unsigned fdid, int lock)
{
	struct verdict v = {.error = -ECHILD, .text = "its holder died"};
	int tell[2];
	pid_t child;

	if (pipe2(tell, O_CLOEXEC) < 0)
		return tool_error_code(-errno, "pipe: %s", strerror(errno));
	child = fork();
	if (child < 0)
		return tool_error_code(-errno, "fork: %s", strerror(errno));
	if (child == 0) {
		close(tell[0]);
		be_holder(fdid, all_memory, lock, tell[1]);
	}
	close(tell[1]);
	if (read(tell[0], &v, sizeof(v)) != sizeof(v))
		v.error = -ECHILD;
	close(tell[0]);
	if (v.error)
		return tool_error_code(v.error, "%s: %s", word, v.text);
	return tell_place(word, v.place);
}

static int borrow(const struct tool_command *self, int argc, char **argv)
{
	int status = 0, at = tool_options(self, argc, argv, &status), lock = -1;
	unsigned fdid = 0;
	struct sio_err err;
	pid_t pid;

	if (at < 0)
		return status;
	status = find(argv[at], &fdid);
	if (status)
		return status;
	if (mkdir(TOOL_LOCAL_STATE, 0755) < 0 && errno != EEXIST)
		return tool_error_code(-errno, TOOL_LOCAL_STATE ": %s", strerror(errno));
	if (lock_open(fdid, O_CREAT, &lock, &err) < 0)
		return tool_fail(&err);
	pid = lock_holder(lock);
	status = pid ? tool_error_code(-EBUSY, "%s has been borrowed already (pid %ld)", argv[at],
				       (long)pid)
		     : start_holder(argv[at], fdid, lock);
	close(lock);
	return status;
}

/* ---- return ---- */

/* The holder lets go of the lock when all is given back. */
static int end_holder(const char *word, int lock)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	pid_t pid = lock_holder(lock);

	if (!pid)
		return tool_error_code(-ENOENT, "%s is not borrowed by smartio borrow on this host",
				       word);
	if (kill(pid, SIGTERM) < 0)
		return tool_error_code(-errno, "pid %ld, which holds %s: %s", (long)pid, word,
				       strerror(errno));
	while (fcntl(lock, F_SETLKW, &l) < 0)
		if (errno != EINTR)
			return tool_error_code(-errno, "%s: %s", word, strerror(errno));
	return 0;
}

static int give_back(const struct tool_command *self, int argc, char **argv)
{
	int status = 0, at = tool_options(self, argc, argv, &status), lock = -1;
	struct json_object *o;
	unsigned fdid = 0;
	struct sio_err err;

	if (at < 0)
		return status;
	status = find(argv[at], &fdid);
	if (status)
		return status;
	if (lock_open(fdid, 0, &lock, &err) < 0)
		return err.code == -ENOENT ? tool_error_code(-ENOENT,
							     "%s is not borrowed by smartio "
							     "borrow on this host",
							     argv[at])
					   : tool_fail(&err);
	status = end_holder(argv[at], lock);
	close(lock);
	if (status || !tool_where.json)
		return status;
	o = tool_json_object();
	tool_json_string(o, "device", argv[at]);
	return tool_json_print("return", o);
}

static const struct tool_option borrow_options[] = {
	{"all-memory", .flag = &all_memory,
	 .text = "the device's host may reach all memory of this host: needed"},
	{.name = NULL}};

const struct tool_command tool_borrow_command = {
	.name = "borrow",
	.summary = "Give a device of another host to this host's own driver",
	.help = "Device Lending: DEVICE, which nobody else may have borrowed, appears in this host's PCI tree,\n"
		"where its stock driver binds to it. Needs smartio_lend.ko. A process in the background holds\n"
		"it until smartio return; when that is killed, or the device, its host or the way there is\n"
		"lost, the driver is unbound and the device disappears.\n"
		"The driver chooses which memory the device reads and writes. So the device's host gets access\n"
		"to all memory of this host, which --all-memory allows.\n",
	.schemas = "borrow",
	.options = borrow_options,
	.words = {{"DEVICE", TOOL_DEVICES}},
	.run = borrow};

static const struct tool_option return_options[] = {{.name = NULL}};

const struct tool_command tool_return_command = {
	.name = "return",
	.summary = "Give a device back that smartio borrow took",
	.help = "Its driver is unbound first, as by hot-plug: unmount its file systems before. Comes back when\n"
		"the lender has the device again.\n",
	.schemas = "return",
	.options = return_options,
	.words = {{"DEVICE", TOOL_DEVICES}},
	.run = give_back};
