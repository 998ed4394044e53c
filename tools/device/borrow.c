/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio borrow, smartio return: Device Lending. A separate process holds the borrow (holder.h).
 * It holds a lock on a file named after the device, by which other commands find it.
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
#include "device/holder.h"
#include "sisci_api.h"
#include "smartio/ext.h"

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

/* The process that holds the lock on @fd; 0: none. */
static pid_t lock_holder(int fd)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(fd, F_GETLK, &l) < 0 || l.l_type == F_UNLCK)
		return 0;
	return l.l_pid;
}

/* ---- borrow ---- */

static int report_place(const char *device, uint32_t place)
{
	struct json_object *o;
	char text[TOOL_PLACE_TEXT];

	tool_place_text(place, text);
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

static bool all_memory, keep, peers;
static const char *window;

/*
 * A POSIX lock (F_SETLK) belongs to this process: it stays when other processes close their copies
 * of the descriptor.
 */
static void be_holder(const struct tool_hold *hold, int lock, int tell)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct tool_verdict v = {.error = 0};

	setsid();
	if (chdir("/") == 0 && fcntl(lock, F_SETLK, &l) == 0) {
		if (keep)
			tool_hold_again(hold, tell);
		tool_hold(hold, tell);
	}
	v.error = -errno;
	snprintf(v.text, sizeof(v.text), "%s", strerror(errno));
	if (write(tell, &v, sizeof(v)) != sizeof(v))
		_exit(TOOL_EXIT_USAGE);
	_exit(TOOL_EXIT_FAILURE);
}

static int start_holder(const char *word, const struct tool_hold *hold, int lock)
{
	struct tool_verdict v = {.error = -ECHILD, .text = "its holder died"};
	int tell[2];
	pid_t child;

	if (pipe2(tell, O_CLOEXEC) < 0)
		return tool_error_code(-errno, "pipe: %s", strerror(errno));
	child = fork();
	if (child < 0)
		return tool_error_code(-errno, "fork: %s", strerror(errno));
	if (child == 0) {
		close(tell[0]);
		be_holder(hold, lock, tell[1]);
	}
	close(tell[1]);
	if (read(tell[0], &v, sizeof(v)) != sizeof(v))
		v.error = -ECHILD;
	close(tell[0]);
	if (v.error)
		return tool_error_code(v.error, "%s: %s", word, v.text);
	return report_place(word, v.place);
}

/* A size in bytes, perhaps with K, M or G. */
static bool parse_window(const char *text, uint64_t *ret)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (errno || (*end && (!unit || end[1])))
		return false;
	return *ret &&
	       !__builtin_mul_overflow(*ret, unit ? 1ull << 10 * (unit - units + 1) : 1, ret);
}

static int borrow(const struct tool_command *self, int argc, char **argv)
{
	int status = 0, at = tool_options(self, argc, argv, &status), lock = -1;
	struct tool_hold hold = {.window = 0};
	struct sio_err err;
	pid_t pid;

	if (at < 0)
		return status;
	hold.all_memory = all_memory;
	hold.peers = peers;
	if (window && !parse_window(window, &hold.window))
		return tool_error_code(
			-EINVAL, "--window %s: bytes are wanted, perhaps with K, M or G", window);
	status = find(argv[at], &hold.fdid);
	if (status)
		return status;
	if (mkdir(TOOL_LOCAL_STATE, 0755) < 0 && errno != EEXIST)
		return tool_error_code(-errno, TOOL_LOCAL_STATE ": %s", strerror(errno));
	if (lock_open(hold.fdid, O_CREAT, &lock, &err) < 0)
		return tool_fail(&err);
	pid = lock_holder(lock);
	status = pid ? tool_error_code(-EBUSY, "%s has been borrowed already (pid %ld)", argv[at],
				       (long)pid)
		     : start_holder(argv[at], &hold, lock);
	close(lock);
	return status;
}

/* ---- return ---- */

/* The holder releases the lock when everything has been given back. */
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
	{"window", .value = &window, .takes = "SIZE",
	 .text = "with an IOMMU: bytes that the driver can have mapped at a time (64M)"},
	{"all-memory", .flag = &all_memory,
	 .text = "without one: the device's host may reach all memory of this host"},
	{"peers", .flag = &peers,
	 .text = "its driver may have it reach BARs: of others borrowed so, and of this host's"},
	{"keep", .flag = &keep,
	 .text = "whenever it was lost, borrow it anew as soon as it is there"},
	{.name = NULL}};

const struct tool_command tool_borrow_command = {
	.name = "borrow",
	.summary = "Give a device of another host to this host's own driver",
	.help = "Device Lending: DEVICE, which nobody else may have borrowed, appears in this host's PCI tree,\n"
		"where its stock driver binds to it. Needs smartio_lend.ko. A process in the background holds\n"
		"it until smartio return; when that is killed, or the device, its host or the way there is\n"
		"lost, the driver is unbound and the device disappears. With --keep it comes back as soon as\n"
		"it can be had again, and its driver binds anew.\n"
		"The driver chooses which memory the device reads and writes. Where an IOMMU translates what\n"
		"comes through this host's adapter, it gathers that in a window, and the device's host reaches\n"
		"what is there just then; --window says how much there is room for. Where there is none the\n"
		"device's host gets access to all memory of this host, which --all-memory allows.\n"
		"With --peers its driver may have it read and write BARs of other devices: those that this\n"
		"host has borrowed with --peers and, with a window, its own.\n",
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
