/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program smartio-vfio: it holds this machine's devices by VFIO, with memory and mappings, as
 * smartio.ko does in the kernel. smartiod starts it and may end: programs and their I/O go on, and
 * the next smartiod finds everything unchanged. It ends by itself when there is neither a smartiod
 * nor a program.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "core/iommufd_abi.h"
#include "smartiod/port_vfio/vfio_live.h"

#ifndef SMARTIO_VERSION
#define SMARTIO_VERSION "0"
#endif

void vfio_log(const char *fmt, ...)
{
	va_list ap;

	fputs("smartio-vfio: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* ---- the loop ---- */

static void on_notes(struct vfio_live *l)
{
	_Alignas(struct inotify_event) char buf[4096];
	ssize_t n = read(l->notes.fd, buf, sizeof(buf));
	bool look = false;

	for (char *at = buf; n > 0 && at < buf + n;) {
		const struct inotify_event *e = (const void *)at;

		at += sizeof(*e) + e->len;
		/* What was lost may have been a note. */
		if (e->wd == l->notes_watch || e->mask & IN_Q_OVERFLOW)
			look = true;
		else if (e->len)
			vfio_units_freed(l, e->name);
	}
	if (look)
		vfio_units_look(l);
}

/* "bind@/devices/pci...": one of ours may be back, or gone; so it may be if events were lost. */
static void on_uevent(struct vfio_live *l)
{
	char buf[4096];
	ssize_t n = recv(l->uevents.fd, buf, sizeof(buf) - 1, MSG_DONTWAIT);

	if (n < 0 && errno != ENOBUFS)
		return;
	buf[n > 0 ? n : 0] = '\0';
	if (n < 0 || ((strncmp(buf, "bind@", 5) == 0 || strncmp(buf, "unbind@", 7) == 0) &&
		      strstr(buf, "/pci")))
		vfio_units_look(l);
}

static void on_reset(struct vfio_live *l)
{
	struct vfio_reset_done done;
	struct vfio_unit *u;

	if (read(l->resets.fd, &done, sizeof(done)) != sizeof(done))
		return;
	u = vfio_unit_find(l, done.id);
	if (u) /* first: what waited for it may be another reset */
		vfio_kernel_reset_join(u);
	vfio_port_reset_done(l->port, done.id, done.error);
	if (u)
		vfio_unit_was_reset(l, u);
}

static void on_event(struct vfio_live *l, struct vfio_source *s, uint32_t events)
{
	switch (s->kind) {
	case VFIO_LISTENER:
		vfio_socket_accept(l);
		break;
	case VFIO_DAEMON:
		vfio_socket_event(l, events);
		break;
	case VFIO_OWNER:
		vfio_port_owner_hup(l->port, s->id);
		break;
	case VFIO_REQUEST:
		vfio_unit_wanted(l, s->id);
		break;
	case VFIO_NOTES:
		on_notes(l);
		break;
	case VFIO_UEVENTS:
		on_uevent(l);
		break;
	case VFIO_RESET:
		on_reset(l);
		break;
	case VFIO_SIGNAL:
		l->end = true;
		break;
	}
}

static bool idle(const struct vfio_live *l)
{
	return l->had_daemon && l->daemon.fd < 0 && !vfio_port_in_use(l->port);
}

/* One event at a time: what it ends may be what the next one is about. */
static int run(struct vfio_live *l)
{
	struct epoll_event ev;

	for (;;) {
		int n = epoll_wait(l->epoll, &ev, 1, vfio_units_wait(l));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			vfio_units_retry(l);
		if (n == 1)
			on_event(l, ev.data.ptr, ev.events);
		if ((l->end || idle(l)) && vfio_socket_close(l))
			return 0;
	}
}

/* ---- start ---- */

static int lock_state(struct vfio_live *l)
{
	char path[512];

	if (mkdir(l->state, 0755) < 0 && errno != EEXIST)
		return -errno;
	snprintf(path, sizeof(path), "%s/vfio", l->state);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	snprintf(path, sizeof(path), "%s/vfio.lock", l->state);
	l->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	/* Whoever has it is about to end: else there would have been somebody to connect to. */
	return l->lock < 0 || flock(l->lock, LOCK_EX) < 0 ? -errno : 0;
}

/* What is open already is there already; folders come and go with what is in them. */
void vfio_watch_nodes(struct vfio_live *l)
{
	inotify_add_watch(l->notes.fd, "/dev/vfio", IN_CLOSE_WRITE);
	inotify_add_watch(l->notes.fd, SIO_VFIO_CDEVS, IN_CLOSE_WRITE);
}

static int watch_notes(struct vfio_live *l)
{
	char path[512];

	l->notes.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (l->notes.fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/vfio", l->state);
	l->notes_watch =
		inotify_add_watch(l->notes.fd, path, IN_MOVED_TO | IN_DELETE | IN_CLOSE_WRITE);
	vfio_watch_nodes(l);
	if (l->notes_watch < 0)
		return -errno;
	return vfio_live_watch(l, &l->notes, EPOLLIN);
}

static int watch_uevents(struct vfio_live *l)
{
	struct sockaddr_nl sa = {.nl_family = AF_NETLINK, .nl_groups = 1};

	l->uevents.fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			       NETLINK_KOBJECT_UEVENT);
	if (l->uevents.fd < 0 || bind(l->uevents.fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	return vfio_live_watch(l, &l->uevents, EPOLLIN);
}

static int watch_rest(struct vfio_live *l)
{
	sigset_t set;
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	l->resets.fd = fds[0];
	l->reset_write = fds[1];
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	l->signals.fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (l->signals.fd < 0)
		return -errno;
	r = vfio_live_watch(l, &l->resets, EPOLLIN);
	return r < 0 ? r : vfio_live_watch(l, &l->signals, EPOLLIN);
}

static int new_port(struct vfio_live *l, uint64_t limit)
{
	struct vfio_start start = {.boot_generation = (uint64_t)time(NULL)};
	struct sysinfo ram;

	if (sysinfo(&ram) < 0 || getrandom(start.boot_id, sizeof(start.boot_id), 0) < 0)
		return -errno;
	start.ram_total = (uint64_t)ram.totalram * ram.mem_unit;
	start.memory_limit = limit ? limit : start.ram_total / 2;
	return vfio_port_new(&vfio_live_ops, l, &start, &l->port);
}

static int start(struct vfio_live *l, uint64_t limit, bool keep)
{
	struct rlimit r;
	int rc = lock_state(l);

	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
	signal(SIGPIPE, SIG_IGN);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (rc == 0 && l->epoll < 0)
		rc = -errno;
	if (rc == 0)
		rc = new_port(l, limit);
	if (rc == 0)
		rc = watch_rest(l);
	if (rc == 0)
		rc = watch_notes(l);
	if (rc == 0)
		rc = watch_uevents(l);
	if (rc == 0 && keep)
		rc = vfio_store_open(l);
	if (rc < 0)
		return rc;
	vfio_units_look(l);
	return vfio_socket_open(l);
}

static void usage(FILE *f)
{
	fputs("usage: smartio-vfio --state DIR [--memory-limit BYTES] [--backend NAME] [--keep] [--ready-fd N]\n"
	      "Holds this machine's devices by VFIO for smartiod --vfio, which starts it.\n"
	      "  -s, --state DIR           the state directory; /run/smartiod if not given\n"
	      "      --memory-limit BYTES  for segments in all; half of the machine's memory if not given\n"
	      "      --backend NAME        how devices are had of the kernel: iommufd or group; iommufd where\n"
	      "                            the kernel has it, if not given\n"
	      "      --keep                keep all in systemd's descriptor store: a restart ends nothing\n"
	      "      --ready-fd N          write \"ready\" to descriptor N when up, then close it\n"
	      "  -h, --help                this text\n"
	      "  -V, --version             the version\n",
	      f);
}

enum { OPT_MEMORY = 256, OPT_READY, OPT_KEEP, OPT_BACKEND };
static const struct option long_options[] = {
	{"state", required_argument, NULL, 's'},
	{"memory-limit", required_argument, NULL, OPT_MEMORY},
	{"backend", required_argument, NULL, OPT_BACKEND},
	{"keep", no_argument, NULL, OPT_KEEP},
	{"ready-fd", required_argument, NULL, OPT_READY},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

struct options {
	uint64_t limit;
	bool keep;
	int ready;
};

static bool number(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return !errno && end != text && !*end && *text != '-' && *ret <= max;
}

static void wrong(int option, const char *value)
{
	if (option == OPT_BACKEND)
		fprintf(stderr, "smartio-vfio: --backend %s: iommufd or group is right\n", value);
	else if (option == OPT_MEMORY)
		fprintf(stderr, "smartio-vfio: --memory-limit %s: bytes are wanted, 1 or more\n",
			value);
	else
		fprintf(stderr, "smartio-vfio: --ready-fd %s: an open descriptor is wanted\n",
			value);
}

/* Return: -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct vfio_live *l, struct options *o)
{
	uint64_t n;
	int c;

	while ((c = getopt_long(argc, argv, "s:hV", long_options, NULL)) != -1) {
		if (c == 's') {
			l->state = optarg;
		} else if (c == OPT_MEMORY && number(optarg, INT64_MAX, &n) && n) {
			o->limit = n;
		} else if (c == OPT_BACKEND && vfio_backend_named(optarg)) {
			l->by = vfio_backend_named(optarg);
		} else if (c == OPT_KEEP) {
			o->keep = true;
		} else if (c == OPT_READY && number(optarg, INT32_MAX, &n) &&
			   fcntl((int)n, F_SETFD, FD_CLOEXEC) == 0) {
			o->ready = (int)n;
		} else if (c == 'h' || c == 'V') {
			if (c == 'h')
				usage(stdout);
			else
				puts("smartio-vfio " SMARTIO_VERSION);
			return 0;
		} else {
			if (c != '?')
				wrong(c, optarg);
			usage(stderr);
			return 2;
		}
	}
	if (optind == argc)
		return -1;
	fprintf(stderr, "smartio-vfio: argument %s: not expected\n", argv[optind]);
	return 2;
}

int main(int argc, char **argv)
{
	struct vfio_live l = {.state = "/run/smartiod",
			      .listener = {.kind = VFIO_LISTENER, .fd = -1},
			      .daemon = {.kind = VFIO_DAEMON, .fd = -1},
			      .notes = {.kind = VFIO_NOTES, .fd = -1},
			      .uevents = {.kind = VFIO_UEVENTS, .fd = -1},
			      .resets = {.kind = VFIO_RESET, .fd = -1},
			      .signals = {.kind = VFIO_SIGNAL, .fd = -1}};
	struct options o = {.ready = -1};
	int r = parse(argc, argv, &l, &o);

	if (r >= 0)
		return r;
	r = start(&l, o.limit, o.keep);
	if (r < 0) {
		vfio_log("%s: %s", l.state, strerror(-r));
		return 1;
	}
	if (o.ready >= 0 && (write(o.ready, "ready\n", 6) != 6 || close(o.ready) < 0))
		vfio_log("--ready-fd: %s", strerror(errno));
	sd_notify(0, "READY=1");
	r = run(&l);
	if (r < 0)
		vfio_log("%s", strerror(-r));
	vfio_store_close(&l);
	vfio_port_free(l.port);
	vfio_units_free(&l);
	return r < 0;
}
