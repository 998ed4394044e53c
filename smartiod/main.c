/* SPDX-License-Identifier: BSD-2-Clause */
/* smartiod: the daemon of one host. Options, topology, limits; then live.c. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <syslog.h>
#include <unistd.h>

#include "smartiod/live/clusterfile.h"
#include "smartiod/live/live.h"
#include "smartiod/live/local.h"
#include "smartiod/live/log.h"
#include "smartiod/port_shim/port_shim.h"
#include "smartiod/port_vfio/port_vfio.h"

#ifndef SMARTIO_VERSION
#define SMARTIO_VERSION "0"
#endif
#define SHIM_DEVICE "/dev/smartio0"
#define SHIM_STATE "/run/smartiod"
#define SHIM_GROUP "smartio"
#define SHIM_KEYS "/etc/smartio/keys"
#define SHIM_CLUSTER "/etc/smartio/cluster.yaml"

enum { OPT_READY_FD = 256, OPT_LOG_LEVEL, OPT_SHIM, OPT_VFIO, OPT_GROUP, OPT_KEYS };

static const struct option long_options[] = {
	{"topology", required_argument, NULL, 't'},
	{"state", required_argument, NULL, 's'},
	{"node", required_argument, NULL, 'n'},
	{"shim", optional_argument, NULL, OPT_SHIM},
	{"vfio", optional_argument, NULL, OPT_VFIO},
	{"keys", required_argument, NULL, OPT_KEYS},
	{"group", required_argument, NULL, OPT_GROUP},
	{"ready-fd", required_argument, NULL, OPT_READY_FD},
	{"log-level", required_argument, NULL, OPT_LOG_LEVEL},
	{"debug", required_argument, NULL, 'D'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

static void usage(FILE *f)
{
	fputs("usage: smartiod --topology FILE --state DIR --node NODE [OPTION...]\n"
	      "       smartiod --shim[=DEVICE] [--state DIR] [--group GROUP] [OPTION...]\n"
	      "       smartiod --shim[=DEVICE] [--topology FILE] --node NODE [OPTION...]\n"
	      "       smartiod --vfio[=BACKEND] [--state DIR] [--group GROUP] [OPTION...]\n"
	      "       smartiod [OPTION...]\n"
	      "Runs one host's daemon in the foreground: of an emulated cluster, or of this machine\n"
	      "with the kernel module smartio or the kernel's own VFIO; without --state, --node and\n"
	      "--topology of this machine with the module if it is loaded, else with VFIO.\n"
	      "  -t, --topology FILE   the cluster's topology file; with --shim and --node:\n"
	      "                        " SHIM_CLUSTER " if not given\n"
	      "  -s, --state DIR       the cluster's state directory (sockets and pid files)\n"
	      "  -n, --node NODE       the host, by node id or name\n"
	      "      --shim[=DEVICE]   this machine; the module's node, " SHIM_DEVICE
	      " if not given;\n"
	      "                        the state directory is then " SHIM_STATE " if not given\n"
	      "      --vfio[=BACKEND]  this machine, without the module: its kernel has vfio-pci, and an\n"
	      "                        IOMMU is on; no other hosts. BACKEND is how devices are had of\n"
	      "                        the kernel, iommufd or group; iommufd where it has it, if not given\n"
	      "      --keys DIR        key and certificates, where hosts have addresses; STATE/keys,\n"
	      "                        or " SHIM_KEYS " with --shim, if not given\n"
	      "      --group GROUP     with --shim, --vfio: who may connect, besides root; " SHIM_GROUP
	      " if not given\n"
	      "      --ready-fd N      write \"ready\" to descriptor N when up, then close it\n"
	      "      --log-level N     0 (emergencies) to 7 (debugging); 6 if not given\n"
	      "  -D, --debug R.LEVEL   the same for one room, R, such as lender.debug; may be repeated\n"
	      "  -h, --help            this text\n"
	      "  -V, --version         the version\n",
	      f);
}

static int parse_number(const char *text, long min, long max, int *ret)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < min || n > max)
		return -EINVAL;
	*ret = (int)n;
	return 0;
}

static int usage_error(const char *option, const char *value, const char *right)
{
	fprintf(stderr, "smartiod: %s %s: %s\n", option, value, right);
	return 2;
}

static void choose_shim(struct live_options *o, const char *device)
{
	o->port = &live_port_shim;
	o->device = device;
}

static void choose_vfio(struct live_options *o, const char *backend)
{
	o->port = &live_port_vfio;
	o->backend = backend;
	o->device = "/dev/vfio/vfio";
}

/* Nobody said which machine: this one, by what it has. */
static void choose_port(struct live_options *o)
{
	if (access("/sys/module/smartio", F_OK) == 0)
		choose_shim(o, SHIM_DEVICE);
	else
		choose_vfio(o, NULL);
	live_log_from(__FILE__, LOG_INFO, "this machine, by %s",
		      o->port == &live_port_shim ? "smartio.ko" : "VFIO: smartio.ko is not loaded");
}

/* A machine of a cluster is the host of its own name. NULL: it is in none. */
static const char *own_host(void)
{
	static char name[HOST_NAME_MAX + 1];

	if (access(SHIM_CLUSTER, F_OK) < 0 || gethostname(name, sizeof(name)) < 0)
		return NULL;
	return name;
}

/* Options of a real machine. Return: as parse_options(). */
static int check_shim(struct live_options *o)
{
	if (o->port == &live_port_vfio && (o->topology || o->node))
		return usage_error(
			o->topology ? "--topology" : "--node", o->topology ? o->topology : o->node,
			"by VFIO a machine reaches no other: that takes --shim and a bridge");
	if (o->topology && !o->node)
		return usage_error("--topology", o->topology,
				   "which of its hosts this is, is said by --node");
	if (!o->node && o->port == &live_port_shim)
		o->node = own_host();
	if (!o->topology && o->node)
		o->topology = SHIM_CLUSTER;
	if (!o->state)
		o->state = SHIM_STATE;
	if (!o->group)
		o->group = SHIM_GROUP;
	if (!o->keys)
		o->keys = SHIM_KEYS;
	return -1;
}

/* Levels of rooms for daemons that others start, as smartio cluster up does: "lender.debug,dma.7". */
static int parse_environment(void)
{
	const char *at = getenv("SMARTIOD_DEBUG");
	struct sio_err err;
	char one[64];

	while (at && *at) {
		size_t n = strcspn(at, ",");

		snprintf(one, sizeof(one), "%.*s", (int)n, at);
		if (live_log_parse(one, &err) < 0)
			return usage_error("SMARTIOD_DEBUG", one, err.text);
		at += n + (at[n] == ',');
	}
	return -1;
}

/* Whether they make sense together. Return: as parse_options(). */
static int check_options(struct live_options *o)
{
	if (!o->device && !o->topology && !o->state && !o->node)
		choose_port(o);
	if (o->device)
		return check_shim(o);
	if (o->group)
		return usage_error("--group", o->group, "goes with --shim or --vfio");
	if (!o->topology || !o->state || !o->node) {
		fprintf(stderr, "smartiod: --%s is missing\n",
			!o->topology ? "topology"
			: !o->state  ? "state"
				     : "node");
		usage(stderr);
		return 2;
	}
	return -1;
}

/* Return: -1 go on; else the exit status. */
static int parse_options(int argc, char **argv, struct live_options *o)
{
	struct sio_err err;
	int c, level;

	while ((c = getopt_long(argc, argv, "t:s:n:D:hV", long_options, NULL)) != -1) {
		switch (c) {
		case 't':
			o->topology = optarg;
			break;
		case 's':
			o->state = optarg;
			break;
		case 'n':
			o->node = optarg;
			break;
		case OPT_SHIM:
			choose_shim(o, optarg ? optarg : SHIM_DEVICE);
			break;
		case OPT_VFIO:
			choose_vfio(o, optarg);
			if (optarg && strcmp(optarg, "iommufd") != 0 &&
			    strcmp(optarg, "group") != 0)
				return usage_error("--vfio", optarg, "iommufd or group is right");
			break;
		case OPT_KEYS:
			o->keys = optarg;
			break;
		case OPT_GROUP:
			o->group = optarg;
			break;
		case OPT_READY_FD:
			if (parse_number(optarg, 0, INT_MAX, &o->ready_fd) < 0 ||
			    fcntl(o->ready_fd, F_SETFD, FD_CLOEXEC) < 0)
				return usage_error("--ready-fd", optarg, "not an open descriptor");
			break;
		case OPT_LOG_LEVEL:
			if (parse_number(optarg, LOG_EMERG, LOG_DEBUG, &level) < 0)
				return usage_error("--log-level", optarg, "wanted 0 to 7");
			live_log_level(NULL, level, &err);
			break;
		case 'D':
			if (live_log_parse(optarg, &err) < 0)
				return usage_error("--debug", optarg, err.text);
			break;
		case 'h':
			usage(stdout);
			return 0;
		case 'V':
			puts("smartiod " SMARTIO_VERSION);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind < argc)
		return usage_error("argument", argv[optind], "not expected");
	return check_options(o);
}

static const struct sio_topo_host *find_host(const struct sio_topology *t, const char *node)
{
	int id;

	if (parse_number(node, 0, INT_MAX, &id) == 0)
		return sio_topology_host(t, (uint32_t)id);
	return sio_topology_host_by_name(t, node);
}

/* What the cluster's file says of this machine, and the kernel does not. */
static void check_adapters(const struct sio_topo_host *host)
{
	char path[64];

	for (unsigned i = 0; host->real && i < host->n_adapters; i++) {
		if (!host->adapter[i].pci[0]) /* of kind machine, by choice */
			continue;
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", host->adapter[i].pci);
		if (access(path, F_OK) < 0)
			live_log_from(__FILE__, LOG_WARNING,
				      "adapter %u of host '%s' is said to be at PCI address %s, "
				      "where this machine has nothing (lspci -D shows what it has)",
				      i, host->name, host->adapter[i].pci);
	}
}

/* Each client of this host and each object of theirs may pass descriptors through us. */
static void raise_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

int main(int argc, char **argv)
{
	struct live_options o = {.port = &live_port_emu, .ready_fd = -1};
	const struct sio_topo_host *host;
	struct sio_topology *t;
	struct sio_err err = {.code = 0};
	int r;

	live_log_level(NULL, LOG_INFO, &err);
	r = parse_environment();
	if (r < 0)
		r = parse_options(argc, argv, &o);
	if (r >= 0)
		return r;
	raise_limit();
	signal(SIGPIPE, SIG_IGN);
	r = o.topology ? live_file_read(o.topology, NULL, &o.file, &t, &err)
		       : local_topology(&t, &err);
	if (r < 0) {
		fprintf(stderr, "smartiod: %s\n", err.text);
		return 1;
	}
	host = o.topology ? find_host(t, o.node) : &t->host[0];
	if (host && host->real != (o.device && o.topology)) {
		fprintf(stderr, "smartiod: --node %s: %s in %s\n", o.node,
			o.device ? "an emulated host (its adapters have no 'pci')"
				 : "a real host (its adapters have 'pci'), which needs --shim",
			o.topology);
		r = 1;
		goto done;
	}
	if (!host) {
		fprintf(stderr, "smartiod: --node %s: no such host in %s\n", o.node, o.topology);
		r = 1;
		goto done;
	}
	live_log_start(host->node);
	check_adapters(host);
	live_file_learn(t, host->node);
	r = live_run(&o, t, host, &err);
	o.file = (struct live_file){.text = NULL};
	if (r < 0) {
		fprintf(stderr, "smartiod: %s\n", err.text);
		r = 1;
	}
done:
	live_file_done(&o.file);
	sio_topology_free(t);
	return r;
}
