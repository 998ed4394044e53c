/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/cluster.h"
#include "base/hint.h"
#include "base/output.h"
#include "base/room.h"
#include "cluster/keys.h"
#include "cluster/proctree.h"
#include "cluster/start.h"
#include "base/state.h"
#include "topofile/topofile.h"

#define TOPOLOGY_MAX (1 << 20) /* bytes of a topology file; 60 hosts need some 30,000 */

int tool_cancel_fd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int tool_topofile_load(const char *path, struct tool_topofile *ret, struct sio_err *reterr)
{
	struct tool_topofile f = {.text = tool_alloc(TOPOLOGY_MAX + 1, 1)};
	int fd = open(path, O_RDONLY | O_CLOEXEC), r = 0;
	ssize_t len;

	if (fd < 0) {
		r = sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
		goto free_text;
	}
	while (r == 0 && (len = read(fd, f.text + f.len, TOPOLOGY_MAX + 1 - f.len)) != 0) {
		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			r = sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
		else if ((f.len += (size_t)len) > TOPOLOGY_MAX)
			r = sio_fail(reterr, -EFBIG, "%s: larger than %d bytes: no topology file",
				     path, TOPOLOGY_MAX);
	}
	close(fd);
	if (r == 0)
		r = sio_topofile_parse(path, f.text, f.len, &f.topology, reterr);
	if (r == 0) {
		*ret = f;
		return 0;
	}
free_text:
	free(f.text);
	return r;
}

void tool_topofile_done(struct tool_topofile *f)
{
	sio_topology_free(f->topology);
	free(f->text);
	*f = (struct tool_topofile){0};
}

static int write_topology(const char *dir, const struct tool_topofile *f, struct sio_err *reterr)
{
	char path[PATH_MAX];
	size_t done = 0;
	ssize_t len;
	int fd, r;

	r = tool_path(path, sizeof(path), reterr, "%s/topology.yaml", dir);
	if (r < 0)
		return r;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
	while (r == 0 && done < f->len) {
		len = write(fd, f->text + done, f->len - done);
		if (len > 0)
			done += (size_t)len;
		else if (len == 0 || errno != EINTR)
			r = sio_fail(reterr, -EIO, "%s: %s", path, strerror(errno));
	}
	close(fd);
	return r;
}

/* Starts all programs of a topology, the machine room first. */
static int start_programs(const char *dir, const struct sio_topology *t, bool tied, int cancel_fd,
			  struct tool_started *s, unsigned *n, struct sio_err *reterr)
{
	char name[48];
	int r;

	r = tool_start(dir, "emu", tied, &s[0], reterr);
	if (r < 0)
		return r;
	*n = 1;
	r = tool_start_wait(&s[0], cancel_fd, reterr);
	for (unsigned i = 0; r == 0 && i < t->n_hosts; i++) {
		tool_state_daemon_name(t->host[i].node, name, sizeof(name));
		r = tool_start(dir, name, tied, &s[*n], reterr);
		if (r == 0)
			(*n)++;
	}
	for (unsigned i = 1; r == 0 && i < *n; i++)
		r = tool_start_wait(&s[i], cancel_fd, reterr);
	return r;
}

/* Makes @dir this user's, and empty. */
static int prepare_dir(const char *dir, int *ret_lock, bool *ret_cleaned, struct sio_err *reterr)
{
	char hint[TOOL_HINT_TEXT];
	enum tool_state state;
	int lock = -1, r;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return sio_fail(reterr, -errno, "%s: cannot be made: %s", dir, strerror(errno));
	r = tool_state_check_private(dir, reterr);
	if (r == 0)
		r = tool_state_lock(dir, &lock, reterr);
	if (r < 0)
		return r;
	state = tool_state_probe(dir);
	if (state == TOOL_STATE_RUNNING)
		r = sio_fail(reterr, -EBUSY,
			     "a cluster is running already in %s; take it down with: "
			     "%s cluster down",
			     dir, tool_hint(dir, hint));
	else if (state == TOOL_STATE_FOREIGN)
		r = sio_fail(reterr, -ENOTEMPTY,
			     "%s holds files that are no cluster's; choose an "
			     "empty or new directory",
			     dir);
	else if (state == TOOL_STATE_STALE)
		r = tool_state_clean(dir, reterr);
	if (r < 0) {
		close(lock);
		return r;
	}
	*ret_cleaned = state == TOOL_STATE_STALE;
	*ret_lock = lock;
	return 0;
}

/*
 * Daemons that have addresses identify each other by keys; these keys exist as long as the cluster.
 */
static int make_keys(const char *dir, const struct sio_topology *t, struct sio_err *reterr)
{
	char folder[PATH_MAX];
	int r;

	for (unsigned i = 0; i < t->n_hosts; i++)
		if (t->host[i].real)
			return sio_fail(reterr, -EINVAL,
					"host '%s' is a real one (its adapters have 'pci'), whose "
					"daemon its own machine starts; an emulated cluster has "
					"emulated hosts alone",
					t->host[i].name);
	if (t->n_hosts == 0 || !t->host[0].address.port)
		return 0;
	r = tool_path(folder, sizeof(folder), reterr, "%s/keys", dir);
	return r < 0 ? r : tool_keys_make(folder, t, TOOL_KEYS_DAYS, reterr);
}

int tool_cluster_up(const struct tool_topofile *f, const char *dir, bool tied, int cancel_fd,
		    bool *ret_cleaned, struct sio_err *reterr)
{
	struct tool_started *s = tool_alloc(f->topology->n_hosts + 1, sizeof(*s));
	unsigned n = 0;
	int lock = -1, r;

	r = tool_state_check_length(dir, f->topology, reterr);
	if (r == 0)
		r = prepare_dir(dir, &lock, ret_cleaned, reterr);
	if (r < 0)
		goto free_started;
	r = write_topology(dir, f, reterr);
	if (r == 0)
		r = make_keys(dir, f->topology, reterr);
	if (r == 0)
		r = start_programs(dir, f->topology, tied, cancel_fd, s, &n, reterr);
	if (r == 0)
		r = tool_cluster_probe(dir, f->topology, cancel_fd, reterr);
	/* Hosts before the machine room: a daemon that loses its hardware logs an error. */
	for (unsigned i = n; i-- > 0;) {
		if (r < 0)
			tool_start_stop(&s[i]);
		else
			tool_start_release(&s[i]);
	}
	if (r < 0)
		tool_state_remove(dir, NULL);
	close(lock);
free_started:
	free(s);
	return r;
}

/* Is it tied to a host of this cluster that @t has not? NULL: to any. */
static bool is_tied(pid_t pid, const char *dir, const struct sio_topology *t)
{
	char state[PATH_MAX], socket[PATH_MAX + 32], *at;

	if (tool_proc_env(pid, "SMARTIO_STATE", state, sizeof(state)) < 0 ||
	    strcmp(state, dir) != 0)
		return false;
	if (!t)
		return true;
	at = tool_proc_env(pid, "SMARTIO_SOCKET", socket, sizeof(socket)) < 0
		     ? NULL
		     : strrchr(socket, '.');
	return at && !sio_topology_member(t, (uint32_t)strtoul(at + 1, NULL, 10));
}

/*
 * Keepers of programs that `smartio run` has tied to this cluster, as descriptors; @t: to hosts
 * that it lacks.
 */
static unsigned find_keepers(const char *dir, const struct sio_topology *t, int **ret_fds)
{
	char keeper[32];
	struct tool_proc *p = NULL;
	size_t n = 0, count = 0;
	pid_t *pids = NULL;
	int *fds = NULL;

	if (tool_proc_scan(&p, &n) < 0)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		bool known = false;
		pid_t pid;
		int fd;

		if (tool_proc_env(p[i].pid, "SMARTIO_KEEPER", keeper, sizeof(keeper)) < 0 ||
		    !is_tied(p[i].pid, dir, t))
			continue;
		pid = (pid_t)strtol(keeper, NULL, 10);
		for (size_t j = 0; j < count; j++)
			known |= pids[j] == pid;
		if (known || !tool_proc_is_below(p, n, p[i].pid, pid))
			continue;
		fd = pidfd_open(pid, 0);
		if (fd < 0)
			continue;
		pids = tool_grow(pids, count + 1, sizeof(*pids));
		fds = tool_grow(fds, count + 1, sizeof(*fds));
		pids[count] = pid;
		fds[count++] = fd;
	}
	free(pids);
	free(p);
	*ret_fds = fds;
	return (unsigned)count;
}

/* Daemons first, then the machine room: a daemon that loses its hardware logs an error. */
static unsigned stop_programs(const char *dir)
{
	struct tool_program *p = NULL;
	unsigned n = 0, n_daemons;
	int *fds;

	n = tool_state_programs(dir, &p);
	fds = tool_alloc(n + 1, sizeof(*fds));
	n_daemons = 0;
	for (unsigned i = 0; i < n; i++)
		if (strcmp(p[i].name, "emu") != 0)
			fds[n_daemons++] = p[i].pidfd;
	tool_stop_all(fds, n_daemons);
	for (unsigned i = 0; i < n; i++)
		if (strcmp(p[i].name, "emu") == 0)
			tool_stop_all(&p[i].pidfd, 1);
	for (unsigned i = 0; i < n; i++)
		close(p[i].pidfd);
	free(fds);
	free(p);
	return n;
}

static void wait_for_keepers(int *keepers, unsigned n)
{
	tool_wait_all(keepers, n);
	for (unsigned i = 0; i < n; i++)
		close(keepers[i]);
	free(keepers);
}

int tool_cluster_down(const char *dir, unsigned *ret_was, struct sio_err *reterr)
{
	unsigned n_keepers;
	int *keepers, lock, r;

	r = tool_state_lock(dir, &lock, reterr);
	if (r < 0)
		return r;
	n_keepers = find_keepers(dir, NULL, &keepers);
	*ret_was = stop_programs(dir);
	/* A keeper ends when its host is gone and all its processes are dead. */
	wait_for_keepers(keepers, n_keepers);
	r = tool_state_remove(dir, reterr);
	close(lock);
	return r;
}

/* The sockets and files of a killed daemon disappear with its process, a moment after the kill. */
static void wait_for_dead(const char *dir, const char *name)
{
	int pidfd = tool_state_dying(dir, name);

	if (pidfd < 0)
		return;
	tool_wait_all(&pidfd, 1);
	close(pidfd);
}

int tool_cluster_restart(const char *dir, const struct sio_topology *t,
			 const struct sio_topo_host *host, int cancel_fd, struct sio_err *reterr)
{
	char name[48], hint[TOOL_HINT_TEXT];
	struct tool_program p;
	struct tool_started s;
	int lock, r;

	r = tool_state_lock(dir, &lock, reterr);
	if (r < 0)
		return r;
	tool_state_daemon_name(host->node, name, sizeof(name));
	if (tool_state_program(dir, name, false, &p) == 0) {
		r = sio_fail(reterr, -EBUSY,
			     "host '%s' is up (smartiod is process %d); only a host "
			     "that crashed can be restarted",
			     host->name, (int)p.pid);
		goto unlock;
	}
	if (tool_state_program(dir, "emu", false, &p) < 0) {
		r = sio_fail(reterr, -ENOTCONN,
			     "the machine room of cluster '%s' does not run, so no host can "
			     "start; take it down with: %s cluster down",
			     t->name, tool_hint(dir, hint));
		goto unlock;
	}
	wait_for_dead(dir, name);
	r = tool_start(dir, name, false, &s, reterr);
	if (r < 0)
		goto unlock;
	r = tool_start_wait(&s, cancel_fd, reterr);
	if (r == 0)
		r = tool_cluster_probe(dir, t, cancel_fd, reterr);
	if (r < 0)
		tool_start_stop(&s);
	else
		tool_start_release(&s);
unlock:
	close(lock);
	return r;
}

/* ---- hosts that come and go ---- */

/* Is it the daemon of a host that @t lacks? */
static bool is_of_another(const struct tool_program *p, const struct sio_topology *t)
{
	uint32_t node;
	char end;

	return sscanf(p->name, "smartiod.%" SCNu32 "%c", &node, &end) == 1 &&
	       !sio_topology_member(t, node);
}

void tool_cluster_stop_others(const char *dir, const struct sio_topology *t)
{
	struct tool_program *p;
	unsigned n = tool_state_programs(dir, &p), n_others = 0, n_keepers;
	int *fds = tool_alloc(n + 1, sizeof(*fds)), *keepers;

	n_keepers = find_keepers(dir, t, &keepers);
	for (unsigned i = 0; i < n; i++)
		if (is_of_another(&p[i], t))
			fds[n_others++] = p[i].pidfd;
	tool_stop_all(fds, n_others);
	wait_for_keepers(keepers, n_keepers);
	for (unsigned i = 0; i < n; i++)
		close(p[i].pidfd);
	free(fds);
	free(p);
}

/* One that has an address needs a key before its daemon starts. */
static int start_host(const char *dir, const struct sio_topology *t, uint32_t node,
		      struct tool_started *ret, struct sio_err *reterr)
{
	const struct sio_topo_host *host = sio_topology_host(t, node);
	char name[48], folder[PATH_MAX];
	int r = 0;

	if (host && host->address.port) {
		r = tool_path(folder, sizeof(folder), reterr, "%s/keys", dir);
		if (r == 0)
			r = tool_keys_renew(folder, t, host, TOOL_KEYS_DAYS, reterr);
	}
	tool_state_daemon_name(node, name, sizeof(name));
	return r < 0 ? r : tool_start(dir, name, false, ret, reterr);
}

/* @r: an error of before, which is kept. Else the first one. */
static int wait_for_hosts(struct tool_started *s, unsigned n, int cancel_fd, int r,
			  unsigned *ret_started, struct sio_err *reterr)
{
	for (unsigned i = 0; i < n; i++) {
		struct sio_err err;
		int rc = tool_start_wait(&s[i], cancel_fd, &err);

		if (rc < 0 && r == 0) {
			*reterr = err;
			r = rc;
		}
		if (rc < 0)
			tool_start_stop(&s[i]);
		else
			tool_start_release(&s[i]);
		*ret_started += rc == 0;
	}
	return r;
}

int tool_cluster_start_new(const char *dir, const struct sio_topology *t,
			   const struct tool_room_item *item, unsigned n, unsigned *ret_started,
			   struct sio_err *reterr)
{
	struct tool_started *s = tool_alloc(n + 1, sizeof(*s));
	unsigned n_started = 0;
	int cancel_fd, r = 0;

	*ret_started = 0;
	for (unsigned i = 0; r == 0 && i < n; i++) {
		if (item[i].what != TOOL_ROOM_HOST)
			continue;
		r = start_host(dir, t, item[i].number, &s[n_started], reterr);
		n_started += r == 0;
	}
	if (n_started) {
		cancel_fd = tool_cancel_fd();
		r = wait_for_hosts(s, n_started, cancel_fd, r, ret_started, reterr);
		if (r == 0)
			r = tool_cluster_probe(dir, t, cancel_fd, reterr);
		if (cancel_fd >= 0)
			close(cancel_fd);
	}
	free(s);
	return r;
}
