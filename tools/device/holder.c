/* SPDX-License-Identifier: BSD-2-Clause */
/* The process that borrows a device, plugs it in and holds the borrow; see holder.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/output.h"
#include "device/holder.h"
#include "sisci_api.h"
#include "smartio/ext.h"

#define VECTORS SMARTIO_PLUG_VECTORS
/* before another attempt, where one has failed although the device was available */
#define AGAIN_NS 500000000L

void tool_place_text(uint32_t place, char ret[TOOL_PLACE_TEXT])
{
	snprintf(ret, TOOL_PLACE_TEXT, "%04x:%02x:%02x.%x", place >> 16, place >> 8 & 0xff,
		 place >> 3 & 0x1f, place & 7);
}

/* ---- taking it ---- */

static int fail(struct tool_verdict *v, int error, const char *what)
{
	v->error = error;
	snprintf(v->text, sizeof(v->text), "%s: %s", what, smartio_last_error());
	return error;
}

/* As many vectors as a driver asks for that has a queue for each processor, and one or two more. */
static unsigned vectors_wanted(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	return processors < 2 ? 4 : processors + 2 < VECTORS ? (unsigned)processors + 2 : VECTORS;
}

/* Of this host, that the way to the device leaves by. */
static unsigned adapter_of(unsigned fdid)
{
	sci_smartio_device_info_t info = {0};
	sci_smartio_query_device_t q = {
		.fdid = fdid, .subcommand = SCI_Q_DEVICE_INFO, .data = &info};
	sci_error_t err;

	SCIQuery(SCI_Q_DEVICE, &q, 0, &err);
	return info.adapter;
}

/*
 * Ties interrupts to vectors 0, 1, ... of device @fdid, as far as it has them. Return: how many.
 */
static unsigned tie_vectors(sci_desc_t sd, sci_smartio_device_t device, unsigned fdid,
			    sci_local_interrupt_t ret[VECTORS])
{
	const unsigned adapter = adapter_of(fdid);
	sci_remote_interrupt_t to;
	unsigned n, node, number, vector, wanted = vectors_wanted();
	sci_error_t err, ignored;

	SCIGetLocalNodeId(adapter, &node, 0, &err);
	for (n = 0; n < wanted && err == SCI_ERR_OK; n++) {
		SCICreateInterrupt(sd, &ret[n], adapter, &number, NULL, NULL, 0, &err);
		if (err != SCI_ERR_OK)
			break;
		SCIConnectInterrupt(sd, &to, node, adapter, number, SCI_INFINITE_TIMEOUT, 0, &err);
		if (err != SCI_ERR_OK)
			break;
		vector = n;
		smartio_connect_device_interrupt(device, &vector, to, &err);
		SCIDisconnectInterrupt(to, 0, &ignored);
		if (err != SCI_ERR_OK)
			break;
	}
	return n;
}

/* Sleeps until the device is there, a path leads to it, and nobody has it. */
static int await(const struct tool_hold *hold, struct tool_verdict *v)
{
	sci_error_t err;
	unsigned fdid;
	char name[16];

	snprintf(name, sizeof(name), "%#x", hold->fdid);
	smartio_await_device(name, SMARTIO_AWAIT_EXCLUSIVE, SCI_INFINITE_TIMEOUT, &fdid, &err);
	return err == SCI_ERR_OK ? 0 : fail(v, -ENOTCONN, "cannot wait for it");
}

static int take(const struct tool_hold *hold, sci_smartio_device_t *ret, struct tool_verdict *v)
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
	if (hold->waits && await(hold, v) != 0)
		return v->error;
	SCIBorrowDevice(sd, ret, hold->fdid, SCI_FLAG_EXCLUSIVE, &err);
	if (err != SCI_ERR_OK)
		return fail(v, err == SCI_ERR_NOT_AVAILABLE ? -EBUSY : -ENODEV, "cannot borrow it");
	n = tie_vectors(sd, *ret, hold->fdid, interrupt);
	smartio_plug_in(*ret, interrupt, n, hold->window,
			(hold->all_memory ? SMARTIO_ALL_MEMORY : 0) |
				(hold->peers ? SMARTIO_PEERS : 0),
			&v->place, &err);
	if (err == SCI_ERR_NOT_SUPPORTED)
		return fail(v, -EOPNOTSUPP, "cannot plug it in");
	if (err == SCI_ERR_ACCESS)
		return fail(v, -EACCES, "cannot plug it in");
	return err == SCI_ERR_OK ? 0 : fail(v, -EIO, "cannot plug it in");
}

/* ---- holding it ---- */

static volatile sig_atomic_t asked_to_end;

static void on_signal(int number)
{
	(void)number;
	asked_to_end = 1;
}

/* Opens the kernel's notifications of devices that come and go; -1: not available. */
static int open_events(void)
{
	struct sockaddr_nl at = {.nl_family = AF_NETLINK, .nl_groups = 1};
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			NETLINK_KOBJECT_UEVENT);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool is_in_tree(uint32_t place)
{
	char text[TOOL_PLACE_TEXT], path[64];

	tool_place_text(place, text);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", text);
	return access(path, F_OK) == 0;
}

/* Has the borrow been lost? */
static bool is_lost(sci_smartio_device_t held)
{
	struct smartio_device_event event;
	sci_error_t err;

	smartio_wait_device_event(held, &event, 0, &err);
	return err == SCI_ERR_OK ? event.kind == SMARTIO_DEVICE_LOST : err != SCI_ERR_TIMEOUT;
}

/*
 * Until somebody wants the device back, or the borrow is lost, or the function leaves the PCI tree,
 * because the lender was silent or somebody removed it.
 */
static void wait_for_end(sci_smartio_device_t held, uint32_t place, int events_fd,
			 const sigset_t *open)
{
	struct pollfd fds[] = {{.fd = smartio_device_event_fd(held), .events = POLLIN},
			       {.fd = events_fd, .events = POLLIN}};
	char text[8192];

	while (!asked_to_end && is_in_tree(place)) {
		if (ppoll(fds, 2, NULL, open) < 0)
			continue;
		if (fds[0].revents && is_lost(held))
			return;
		while (fds[1].revents && recv(events_fd, text, sizeof(text), 0) >= 0)
			;
	}
}

static void release_device(sci_smartio_device_t held)
{
	sci_error_t err;

	smartio_unplug(held, &err);
	SCIReturnDevice(held, 0, &err);
	SCITerminate();
}

static void leave_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
}

/*
 * Signals are blocked only once the function is in place: until then they end this process at once,
 * and everything is taken back.
 */
void tool_hold(const struct tool_hold *hold, int tell)
{
	struct sigaction on = {.sa_handler = on_signal};
	struct tool_verdict v = {.error = 0};
	sci_smartio_device_t held = NULL;
	int events_fd = open_events();
	sigset_t ends, open;

	take(hold, &held, &v);
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	if (!v.error) {
		sigprocmask(SIG_BLOCK, &ends, &open);
		sigaction(SIGTERM, &on, NULL);
		sigaction(SIGINT, &on, NULL);
	}
	if (!v.error && hold->placed)
		*hold->placed = true;
	/* Nobody reads the result any more: the same as a request to end. */
	if ((tell >= 0 && write(tell, &v, sizeof(v)) != sizeof(v)) || v.error)
		_exit(TOOL_EXIT_FAILURE);
	if (tell >= 0)
		close(tell);
	leave_terminal();
	wait_for_end(held, v.place, events_fd, &open);
	release_device(held);
	_exit(0);
}

/* ---- again, whenever the borrow was lost ---- */

/* The child ends with this process, whatever ends it. */
static pid_t start(const struct tool_hold *hold, int tell, const sigset_t *mask)
{
	pid_t parent = getpid(), child = fork();

	if (child != 0)
		return child;
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
		tool_hold(hold, tell);
	_exit(TOOL_EXIT_FAILURE);
}

static _Noreturn void end(pid_t child)
{
	if (child > 0 && kill(child, SIGTERM) == 0)
		waitpid(child, NULL, 0);
	_exit(0);
}

/*
 * The process that had the device, or wanted it, has ended: the next one waits for the device.
 * Return: whether it may begin at once. If this one never had the device there is another reason,
 * whose end nobody reports.
 */
static bool begin_next(struct tool_hold *each)
{
	bool had = *each->placed;

	*each->placed = false;
	each->waits = true;
	return had;
}

void tool_hold_again(const struct tool_hold *hold, int tell)
{
	const struct timespec pause = {.tv_nsec = AGAIN_NS};
	struct tool_hold each = *hold;
	sigset_t wanted, before;
	pid_t child;
	int got;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGCHLD);
	sigprocmask(SIG_BLOCK, &wanted, &before);
	/* How a process ended does not tell whether it had the device: it may have been killed. */
	each.placed = mmap(NULL, sizeof(*each.placed), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child = each.placed == MAP_FAILED ? -1 : start(&each, tell, &before);
	if (child < 0)
		_exit(TOOL_EXIT_FAILURE);
	close(tell);
	leave_terminal();
	for (;;) {
		got = sigtimedwait(&wanted, NULL, child > 0 ? NULL : &pause);
		if (got == SIGTERM || got == SIGINT)
			end(child);
		if (child > 0 && waitpid(child, NULL, WNOHANG) == child) {
			child = 0;
			if (!each.waits && !*each.placed)
				_exit(TOOL_EXIT_FAILURE);
			if (begin_next(&each))
				child = start(&each, -1, &before);
		} else if (child <= 0 && got < 0 && errno == EAGAIN) {
			child = start(&each, -1, &before);
		}
	}
}
