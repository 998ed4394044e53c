/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cluster.h"

#define LIMIT_MS 20000

struct cluster {
	char dir[64];
	pid_t room;
	unsigned n_nodes;
	pid_t daemon[CLUSTER_NODES]; /* of node 4 * (index + 1); 0: crashed */
};

static int steps[STEPS];

/* Run a program of the cluster and wait until it says that it is ready. */
static pid_t start(const struct cluster *c, const char *variable, unsigned node)
{
	const char *program = getenv(variable);
	char topology[96], number[16], ready_fd[16], line[16] = "";
	int ready[2];
	pid_t pid;

	if (!program || pipe(ready) < 0) {
		fprintf(stderr, "%s is not set\n", variable);
		return -1;
	}
	snprintf(topology, sizeof(topology), "%s/topology.yaml", c->dir);
	snprintf(number, sizeof(number), "%u", node);
	snprintf(ready_fd, sizeof(ready_fd), "%d", ready[1]);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		if (node)
			execl(program, program, "--topology", topology, "--state", c->dir, "--node",
			      number, "--ready-fd", ready_fd, (char *)NULL);
		else
			execl(program, program, "--topology", topology, "--state", c->dir,
			      "--ready-fd", ready_fd, (char *)NULL);
		perror(program);
		_exit(127);
	}
	close(ready[1]);
	if (pid > 0 && read(ready[0], line, sizeof(line) - 1) <= 0) {
		fprintf(stderr, "%s (node %u) did not become ready\n", program, node);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(ready[0]);
	return pid;
}

/* Ends a process that should end by itself on SIGTERM. */
static int stop(pid_t pid)
{
	if (pid <= 0)
		return 0;
	kill(pid, SIGTERM);
	return cluster_wait(pid);
}

struct probe {
	unsigned own, count;
};

/* There is no event to wait for: links come up as hosts do. */
static int probe(void *arg)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	const struct probe *p = arg;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	for (unsigned i = 1; i <= p->count; i++)
		while (i * 4 != p->own && !SCIProbeNode(sd, 0, i * 4, 0, &error))
			nanosleep(&pause, NULL);
	api_end(sd);
	return 0;
}

static int write_topology(const struct cluster *c, const char *topology)
{
	char path[96];
	FILE *f;
	int rc;

	snprintf(path, sizeof(path), "%s/topology.yaml", c->dir);
	f = fopen(path, "w");
	if (!f)
		return -1;
	rc = fputs(topology, f) < 0 ? -1 : 0;
	return fclose(f) ? -1 : rc;
}

static unsigned count_hosts(const char *topology)
{
	unsigned n = 0;

	/* One host a line in our topologies, all with RAM. */
	while ((topology = strstr(topology, "ram:"))) {
		topology += 4;
		n++;
	}
	return n;
}

struct cluster *cluster_up(const char *topology)
{
	struct cluster *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	strcpy(c->dir, "/tmp/sio-test-XXXXXX");
	if (!mkdtemp(c->dir) || write_topology(c, topology) < 0) {
		perror(c->dir);
		free(c);
		return NULL;
	}
	c->n_nodes = count_hosts(topology);
	c->room = start(c, "SMARTIO_TEST_EMU", 0);
	for (unsigned i = 0; c->room > 0 && i < c->n_nodes; i++) {
		c->daemon[i] = start(c, "SMARTIO_TEST_SMARTIOD", 4 * (i + 1));
		if (c->daemon[i] < 0)
			break;
	}
	for (unsigned i = 0; i < c->n_nodes; i++) {
		struct probe p = {4 * (i + 1), c->n_nodes};

		if (c->daemon[i] <= 0 ||
		    cluster_wait(cluster_fork(c, 4 * (i + 1), probe, &p)) != 0) {
			cluster_down(c);
			return NULL;
		}
	}
	return c;
}

int cluster_down(struct cluster *c)
{
	char command[96];
	int rc = 0;

	for (unsigned i = 0; i < c->n_nodes; i++)
		if (stop(c->daemon[i]))
			rc = -1;
	if (stop(c->room))
		rc = -1;
	snprintf(command, sizeof(command), "rm -rf %s", c->dir);
	if (system(command))
		rc = -1;
	free(c);
	return rc;
}

void cluster_crash(struct cluster *c, unsigned node)
{
	pid_t *pid = &c->daemon[node / 4 - 1];

	kill(*pid, SIGKILL);
	waitpid(*pid, NULL, 0);
	*pid = 0;
}

int cluster_restart(struct cluster *c, unsigned node, unsigned from)
{
	struct probe p = {node, c->n_nodes};

	(void)from;
	c->daemon[node / 4 - 1] = start(c, "SMARTIO_TEST_SMARTIOD", node);
	if (c->daemon[node / 4 - 1] < 0)
		return -1;
	return cluster_wait(cluster_fork(c, node, probe, &p)) ? -1 : 0;
}

pid_t cluster_daemon(const struct cluster *c, unsigned node)
{
	return c->daemon[node / 4 - 1];
}

void cluster_enter(const struct cluster *c, unsigned node)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/node.%u", c->dir, node);
	setenv("SMARTIO_SOCKET", path, 1);
}

pid_t cluster_fork(struct cluster *c, unsigned node, int (*fn)(void *arg), void *arg)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		cluster_enter(c, node);
		exit(fn(arg));
	}
	return pid;
}

int cluster_wait(pid_t pid)
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	int status;

	if (poll(&p, 1, LIMIT_MS) <= 0) {
		fprintf(stderr, "process %d does not end\n", (int)pid);
		kill(pid, SIGKILL);
	}
	close(p.fd);
	if (waitpid(pid, &status, 0) < 0)
		return 1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void steps_reset(void)
{
	for (unsigned i = 0; i < STEPS; i++) {
		if (steps[i] > 0)
			close(steps[i]);
		steps[i] = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	}
}

void step_done(unsigned step)
{
	uint64_t one = 1;

	if (write(steps[step], &one, sizeof(one)) != sizeof(one))
		abort();
}

void step_await(unsigned step)
{
	struct pollfd p = {.fd = steps[step], .events = POLLIN};
	uint64_t one;

	if (poll(&p, 1, LIMIT_MS) <= 0 || read(steps[step], &one, sizeof(one)) != sizeof(one)) {
		fprintf(stderr, "step %u does not come\n", step);
		exit(1);
	}
}

sci_desc_t api_begin(void)
{
	sci_desc_t sd = NULL;
	sci_error_t error;

	SCIInitialize(0, &error);
	CHECK_OK(error);
	SCIOpen(&sd, 0, &error);
	CHECK_OK(error);
	return sd;
}

void api_end(sci_desc_t sd)
{
	sci_error_t error;

	SCIClose(sd, 0, &error);
	CHECK_OK(error);
	SCITerminate();
}
