/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio passthrough: a borrowed device for a virtual machine of this host. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/command.h"
#include "base/output.h"
#include "guest/link.h"
#include "smartio/ext.h"

static const char *socket_path;
static bool unplug;

/*
 * Called before the library starts threads, which would take the signals. Return: a descriptor;
 * -errno.
 */
static int catch_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Return: exit status. */
static int serve(struct relay *r, char **names, unsigned n, int stop)
{
	struct sio_err err;

	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < i; k++)
			if (!strcmp(names[i], names[k]))
				return tool_error_code(-EINVAL, "%s is named twice", names[i]);
		if (relay_open(&r[i], names[i], &err) < 0)
			return tool_fail(&err);
		r[i].unplug = unplug;
	}
	return relay_serve(r, n, socket_path, stop, &err) < 0 ? tool_fail(&err) : 0;
}

static int passthrough(const struct tool_command *self, int argc, char **argv)
{
	int status = 0, at = tool_options(self, argc, argv, &status), stop;
	struct relay *r;
	unsigned n;
	sci_error_t rc;

	if (at < 0)
		return status;
	n = (unsigned)(argc - at);
	stop = catch_signals();
	r = calloc(n, sizeof(*r));
	if (stop < 0 || !r)
		return tool_error_code(stop < 0 ? stop : -ENOMEM,
				       "no signals, or no memory for a device: " SIO_MORE_MEMORY);
	/*
	 * The machine stores through mappings of another process, so no page fault in this one
	 * could wake the device.
	 */
	setenv("SMARTIO_WAKE", "timer", 1);
	SCIInitialize(0, &rc);
	if (rc != SCI_ERR_OK) {
		status = tool_error_code(-ENOTCONN, "%s", smartio_last_error());
	} else {
		status = serve(r, argv + at, n, stop);
		SCITerminate();
	}
	free(r);
	close(stop);
	return status;
}

static const struct tool_option options[] = {
	{"socket", .value = &socket_path, .takes = "PATH", .kind = TOOL_FILES, .needed = true,
	 .text = "where the machine's emulator finds the device (vfio-user);\n"
		 "a second one at PATH.2, and so on"},
	{"unplug", .flag = &unplug,
	 .text = "when the device is lost, ask QEMU to unplug it; QEMU 11.1 ends when it does"},
	{.name = NULL}};

const struct tool_command tool_passthrough_command = {
	.name = "passthrough",
	.summary = "Give devices of other hosts to a virtual machine of this host",
	.help = "Serves DEVICE by the vfio-user protocol, until it is ended (SIGTERM, SIGINT): a QEMU that connects\n"
		"at PATH has it as a PCI function of its machine, whose stock driver binds. It is borrowed,\n"
		"exclusively, while a QEMU is connected, and returned when that ends or unplugs it.\n"
		"The machine's memory must be a memfd that is shared (memory-backend-memfd,share=on). The device\n"
		"reaches that and nothing else; so its lender's IOMMU must translate (iommu: on).\n"
		"Where the device is lost, the machine reads ones, and its driver gives up.\n"
		"With more devices, four at most, one machine has all of them, and each reaches the BARs of the\n"
		"others by DMA (peer-to-peer), where the machine has them.\n",
	.options = options,
	.words = {{"DEVICE", TOOL_DEVICES},
		  {"[DEVICE]", TOOL_DEVICES},
		  {"[DEVICE]", TOOL_DEVICES},
		  {"[DEVICE]", TOOL_DEVICES}},
	.run = passthrough};
