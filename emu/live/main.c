/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio-emu: the machine room of one cluster as a program. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "emu/live/live.h"
#include "smartio/vntb.h"
#include "topofile/topofile.h"

#define SPIN_US "20:200"

static const char usage[] =
	"usage: smartio-emu --topology FILE --state DIR [--ready-fd N] [--spin-us MIN[:MAX]]\n"
	"\n"
	"The hardware of an emulated cluster: memory, bridges and devices of all hosts.\n"
	"\n"
	"  --topology FILE  the cluster, as docs/topology.md describes it\n"
	"  --state DIR      where the sockets port.NODE and the pid file are made\n"
	"  --ready-fd N     write \"ready\" to descriptor N when up, and close it\n"
	"  --spin-us MIN[:MAX]\n"
	"                   microseconds that idle devices look for work before they sleep; up\n"
	"                   to MAX where they are woken again soon (20:200, or SMARTIO_SPIN_US)\n"
	"  --help, --version\n";

struct options {
	const char *topology, *state;
	struct emu_pace pace;
	int ready_fd;
};

static int parse_fd(const char *text, int *ret)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || *end || end == text || value < 0 || value > 1 << 20) {
		fprintf(stderr, "smartio-emu: --ready-fd '%s': a descriptor's number is right\n",
			text);
		return -EINVAL;
	}
	*ret = (int)value;
	return 0;
}

static int parse_pace(struct emu_pace *pace, const char *name, const char *text)
{
	struct sio_err err;
	int rc = emu_pace_parse(pace, text, &err);

	if (rc < 0)
		fprintf(stderr, "smartio-emu: %s %s\n", name, err.text);
	return rc;
}

/* Return: -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
		{"topology", required_argument, NULL, 't'},
		{"state", required_argument, NULL, 's'},
		{"ready-fd", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{"spin-us", required_argument, NULL, 'S'},
		{0},
	};
	const char *env = getenv("SMARTIO_SPIN_US");
	bool spin = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 't':
			o->topology = optarg;
			break;
		case 's':
			o->state = optarg;
			break;
		case 'r':
			if (parse_fd(optarg, &o->ready_fd) < 0)
				return 2;
			break;
		case 'S':
			if (parse_pace(&o->pace, "--spin-us", optarg) < 0)
				return 2;
			spin = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		case 'v':
			puts("smartio-emu " SMARTIO_VERSION);
			return 0;
		default:
			fputs("try 'smartio-emu --help'\n", stderr);
			return 2;
		}
	}
	if (!spin && parse_pace(&o->pace, "SMARTIO_SPIN_US", env ? env : SPIN_US) < 0)
		return 2;
	if (optind < argc || !o->topology || !o->state) {
		if (optind < argc)
			fprintf(stderr, "smartio-emu: unexpected argument '%s'\n", argv[optind]);
		else
			fprintf(stderr, "smartio-emu: --%s is missing\n",
				o->topology ? "state" : "topology");
		fputs("try 'smartio-emu --help'\n", stderr);
		return 2;
	}
	return -1;
}

/* Each memory, owner and interrupt of the cluster is a descriptor here. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/*
 * What is open now is the room's own, and so is what it still opens: connections, and pages of
 * devices that are made afresh. The rest is the hosts'.
 */
static void count_descriptors(struct live *l)
{
	uint64_t own = 32 + LIVE_CALLERS + 4 * (uint64_t)l->topo->n_hosts;
	int lowest_free = fcntl(l->epoll, F_DUPFD_CLOEXEC, 0);
	struct rlimit limit;

	if (lowest_free < 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	close(lowest_free);
	own += (uint64_t)lowest_free;
	for (unsigned i = 0; i < l->topo->n_machines; i++) {
		own += l->topo->machine[i].n_adapters *
		       (LIVE_VFIO_FDS + LIVE_FILES + SIO_VNTB_VECTORS);
		for (unsigned k = 0; k < l->topo->machine[i].n_devices; k++)
			own += LIVE_VFIO_FDS + l->topo->machine[i].device[k].vectors;
	}
	l->own_fds = own;
	l->own_hosts = l->topo->n_hosts;
	l->max_fds = limit.rlim_cur;
	live_share_descriptors(l);
}

static int say_ready(int fd, struct sio_err *err)
{
	if (fd < 0)
		return 0;
	if (write(fd, "ready\n", 6) != 6)
		return sio_fail(err, -EIO, "--ready-fd %d: %s", fd, strerror(errno));
	close(fd);
	return 0;
}

static int run(const struct options *o, struct sio_err *err)
{
	struct live l = {.epoll = -1,
			 .pid_fd = -1,
			 .spare_fd = -1,
			 .state_dir = o->state,
			 .signal.fd = -1,
			 .control.fd = -1,
			 .alarm.fd = -1,
			 .events.nothing = -1,
			 .engines_report.fd = -1};
	struct sio_topology *topo = NULL;
	int rc = sio_topofile_read(o->topology, &topo, err);

	if (rc < 0)
		return rc;
	l.topo = topo;
	l.topology_path = o->topology;
	l.pace = o->pace;
	rc = live_state_lock(&l, err);
	if (rc == 0)
		rc = emu_room_new(topo, &live_ops, &l, &l.room, err);
	if (rc == 0) {
		emu_room_check_every(l.room, CHECK_EVERY);
		rc = live_loop_open(&l, err);
	}
	if (rc == 0)
		rc = live_ports_open(&l, err);
	if (rc == 0)
		rc = live_ntb_open(&l, err);
	if (rc == 0)
		rc = live_vfios_open(&l, err);
	if (rc == 0)
		rc = live_store_watch(&l, err);
	if (rc == 0)
		rc = live_control_open(&l, err);
	if (rc == 0)
		count_descriptors(&l);
	if (rc == 0)
		rc = say_ready(o->ready_fd, err);
	if (rc == 0) {
		l.serving = true;
		live_log("cluster %s: %u hosts", topo->name, topo->n_hosts);
		live_loop_run(&l);
	}
	live_control_close(&l);
	live_vfios_close(&l);
	live_ntb_close(&l);
	live_ports_close(&l);
	live_engines_end(&l);
	live_reload_drop(&l);
	emu_room_free(l.room);
	live_store_close(&l);
	live_loop_close(&l);
	live_state_unlock(&l);
	sio_topology_free(topo);
	return rc;
}

int main(int argc, char **argv)
{
	struct options o = {.ready_fd = -1};
	struct sio_err err = {0};
	int status = parse(argc, argv, &o);

	if (status >= 0)
		return status;
	raise_descriptor_limit();
	if (run(&o, &err) < 0) {
		fprintf(stderr, "smartio-emu: %s\n", err.text);
		return 1;
	}
	return 0;
}
