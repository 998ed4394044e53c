/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cluster as the operating system sees it: descriptors and mappings of its processes, its files,
 * its programs.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/audit.h"
#include "base/local.h"
#include "base/output.h"
#include "cluster/proctree.h"
#include "base/state.h"

static unsigned kind_of(const char *link)
{
	if (strncmp(link, "socket:", 7) == 0)
		return AUDIT_SOCKETS;
	if (strncmp(link, "/memfd:", 7) == 0)
		return AUDIT_MEMFDS;
	if (strncmp(link, "pipe:", 5) == 0)
		return AUDIT_PIPES;
	if (strncmp(link, "anon_inode:", 11) == 0)
		return AUDIT_EVENTS;
	return AUDIT_FILES;
}

static void count_descriptors(pid_t pid, struct audit_process *p)
{
	char path[64], link[PATH_MAX];
	struct dirent *entry;
	ssize_t len;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	if (!d)
		return;
	while ((entry = readdir(d))) {
		len = readlinkat(dirfd(d), entry->d_name, link, sizeof(link) - 1);
		if (len < 0)
			continue;
		link[len] = '\0';
		p->count[kind_of(link)]++;
	}
	closedir(d);
}

static void count_maps(pid_t pid, struct audit_process *p)
{
	char path[64], *text = NULL;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return;
	while (getline(&text, &size, f) > 0)
		p->count[AUDIT_MAPS] += strstr(text, "/memfd:") != NULL;
	free(text);
	fclose(f);
}

static void look_at(const char *dir, const char *name, struct audit_process *p)
{
	struct tool_program program;

	*p = (struct audit_process){0};
	if (tool_state_program(dir, name, false, &program) < 0)
		return;
	p->runs = true;
	count_descriptors(program.pid, p);
	count_maps(program.pid, p);
}

static bool is_socket(const char *dir, const char *name, uint32_t node)
{
	char path[PATH_MAX];
	struct stat st;

	return tool_path(path, sizeof(path), NULL, "%s/%s.%u", dir, name, node) == 0 &&
	       lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/*
 * Programs started by `smartio run` carry their keeper's number in the environment; one that is not
 * below the keeper in the process tree any more has outlived it. The keeper itself does not carry
 * the number.
 */
static unsigned count_orphans(const char *dir)
{
	char keeper[32], state[PATH_MAX];
	struct tool_proc *p = NULL;
	unsigned orphans = 0;
	size_t n = 0;

	if (tool_proc_scan(&p, &n) < 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (p[i].state == 'Z' ||
		    tool_proc_env(p[i].pid, "SMARTIO_KEEPER", keeper, sizeof(keeper)) < 0 ||
		    tool_proc_env(p[i].pid, "SMARTIO_STATE", state, sizeof(state)) < 0 ||
		    strcmp(state, dir) != 0)
			continue;
		orphans += !tool_proc_is_below(p, n, p[i].pid, (pid_t)strtol(keeper, NULL, 10));
	}
	free(p);
	return orphans;
}

void audit_system(struct audit *a, const char *dir)
{
	char name[48];

	a->machine = strcmp(dir, TOOL_LOCAL_STATE) == 0;
	look_at(dir, "emu", &a->room);
	a->strangers = tool_state_strangers(dir);
	a->orphans = count_orphans(dir);
	for (unsigned i = 0; i < a->n_hosts; i++) {
		struct audit_host *h = &a->host[i];

		tool_state_daemon_name(h->node, name, sizeof(name));
		look_at(dir, name, &h->process);
		h->port_socket = is_socket(dir, "port", h->node);
		h->node_socket = is_socket(dir, "node", h->node);
		h->peer_socket = h->address || a->machine || is_socket(dir, "peer", h->node);
		h->far = a->machine && a->n_hosts > 1 && !h->node_socket && !h->process.runs;
	}
}
