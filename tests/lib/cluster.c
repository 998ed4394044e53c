/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cluster.h"
#include "failure.h"
#include "pair.h"
#include "program.h"
#include "tempdir.h"
#include "waits.h"

/*
 * No test comes near it, on a busy machine either; a virtual machine's processors are emulated.
 * Whoever runs a cluster in one says how long.
 */
static unsigned limit_ms(void)
{
	const char *seconds = getenv("SMARTIO_TEST_LIMIT_S");

	if (seconds)
		return 1000 * (unsigned)strtoul(seconds, NULL, 10);
	return pair_is() ? 100000 : cluster_is_machine() ? 300000 : 60000;
}

#define LIMIT_MS ((int)limit_ms())
/* Where calls fail a program that a step does not come to ends before it counts as hanging. */
#define STEP_MS (sio_failing_begin ? LIMIT_MS / 2 : LIMIT_MS)
#define TOP_DIR 128
#define STATE_DIR (TOP_DIR + 16)
#define SETTLE_S "60" /* what the dead held is taken back within so many seconds */
#define PROGRAMS 128
#define MACHINE_STATE "/run/smartiod" /* of the smartiod of a machine: docs/hardware.md */

struct cluster {
	struct cluster *next;  /* of all there are: a test that fails may forget its own */
	char top[TOP_DIR];     /* holds dir, and the first audit */
	char dir[STATE_DIR];   /* the cluster's state */
	char first[STATE_DIR]; /* the audit of the cluster when it came up */
	pid_t room;
	const char *text;
	unsigned n_nodes;
	pid_t daemon[CLUSTER_NODES]; /* of node 4 * (index + 1); 0: crashed */
};

static struct cluster *clusters;
static bool unsettled; /* a program has given up: what its device may write to waits for a word */
static int steps[STEPS];
static pid_t programs[PROGRAMS]; /* forked and not waited for; 0: none */
static int paired[PROGRAMS];	 /* of those: which it is to the other machine */

/* Run a program of the cluster and wait until it says that it is ready. */
static pid_t start(const struct cluster *c, const char *variable, unsigned node)
{
	const char *program = getenv(variable);
	char topology[STATE_DIR + 32], number[16], ready_fd[16], line[16] = "";
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

static int write_topology(const struct cluster *c, const char *topology)
{
	char path[STATE_DIR + 32];
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

static int cluster_free(struct cluster *c)
{
	struct cluster **at = &clusters;
	char command[TOP_DIR + 16];
	int rc;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	snprintf(command, sizeof(command), "rm -rf '%s'", c->top);
	rc = system(command) ? -1 : 0;
	free(c);
	return rc;
}

/* Ends what runs of it. */
static int cluster_end(struct cluster *c)
{
	int rc = 0;

	for (unsigned i = 0; i < c->n_nodes; i++)
		if (stop(c->daemon[i]))
			rc = -1;
	if (stop(c->room))
		rc = -1;
	return cluster_free(c) < 0 ? -1 : rc;
}

/* smartio doctor --audit of the cluster; with @expect NULL what it counts goes to @out. */
static int audit(const struct cluster *c, const char *expect, const char *out)
{
	const char *program = getenv("SMARTIO_TEST_TOOL");
	pid_t pid;

	if (!program) {
		fprintf(stderr, "SMARTIO_TEST_TOOL is not set\n");
		return -1;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!freopen(out, "w", stdout))
			_exit(127);
		execl(program, program, "--state", c->dir, "doctor", "--audit", "--within",
		      SETTLE_S, expect ? "--expect" : NULL, expect, (char *)NULL);
		perror(program);
		_exit(127);
	}
	return pid > 0 && cluster_wait(pid) == 0 ? 0 : -1;
}

/* Whose line of the audit @what is, by the order of the hosts in the topology. */
static unsigned node_of(const struct cluster *c, const char *what)
{
	const char *at = c->text, *name;
	unsigned node = 0;

	do {
		at = strstr(at, "ram:");
		for (name = at; name && name > c->text && name[-1] != '\n'; name--)
			;
		node += 4;
		name += name ? strspn(name, " ") : 0;
		at += at ? 4 : 0;
	} while (name && strncmp(name, what, strcspn(what, ":") + 1) != 0);
	return node;
}

static long count_here(const struct cluster *c, const char *what)
{
	char path[STATE_DIR + 16], line[200], *at;
	size_t len = strlen(what);
	long n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/count", c->top);
	/* A machine has a name of its own, and is the only one. */
	if (cluster_is_machine())
		what = strchr(what, ':'), len = strlen(what);
	if (audit(c, NULL, path) < 0)
		return -1;
	f = fopen(path, "r");
	while (f && n < 0 && fgets(line, sizeof(line), f))
		if ((at = strstr(line, what)) && at[len] == ' ' &&
		    (at == line || cluster_is_machine()))
			n = strtol(at + len, NULL, 10);
	if (f)
		fclose(f);
	return n;
}

static int counters_here(const struct cluster *c, unsigned node, const char *const *names,
			 unsigned n, long long *ret)
{
	char command[2 * STATE_DIR + 64], line[200], kind[32], host[64], counter[64];
	unsigned found = 0;
	long long value;
	FILE *f;

	snprintf(command, sizeof(command), "%s --state %s stats -n %u", getenv("SMARTIO_TEST_TOOL"),
		 c->dir, node);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%31s %63s %63s %lld", kind, host, counter, &value) != 4 ||
		    strcmp(kind, "daemon") != 0)
			continue;
		for (unsigned i = 0; i < n; i++) {
			if (strcmp(counter, names[i]) == 0) {
				ret[i] = value;
				found++;
			}
		}
	}
	if (f)
		pclose(f);
	return found == n ? 0 : -1;
}

int cluster_counters(const struct cluster *c, unsigned node, const char *const *names, unsigned n,
		     long long *ret)
{
	bool here = !pair_is() || cluster_node(node) == pair_node();
	long long failed = 0;

	if (here || pair_is_child())
		failed = counters_here(c, cluster_node(node), names, n, ret);
	if (pair_is()) {
		pair_share(here, &failed, 1);
		pair_share(here, ret, n);
	}
	return (int)failed;
}

long cluster_count(const struct cluster *c, const char *what)
{
	bool here = !pair_is() || cluster_node(node_of(c, what)) == pair_node();
	long long n = here || pair_is_child() ? count_here(c, what) : -1;

	if (pair_is())
		pair_share(here, &n, 1);
	return (long)n;
}

long long cluster_counter(const struct cluster *c, unsigned node, const char *name)
{
	long long value;

	return cluster_counters(c, node, &name, 1, &value) < 0 ? -1 : value;
}

/* Of the thing of @kind whose name ends with @end. */
static int counter_of(const struct cluster *c, unsigned node, const char *of, const char *end,
		      const char *name, unsigned long long *ret)
{
	char command[2 * STATE_DIR + 64], line[200], kind[32], host[64], counter[64];
	bool found = false;
	FILE *f;

	snprintf(command, sizeof(command), "%s --state %s stats -n %u", getenv("SMARTIO_TEST_TOOL"),
		 c->dir, node);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long value;

		if (sscanf(line, "%31s %63s %63s %llu", kind, host, counter, &value) != 4 ||
		    strcmp(kind, of) != 0 || strcmp(counter, name) != 0 ||
		    strlen(host) < strlen(end) ||
		    strcmp(host + strlen(host) - strlen(end), end) != 0)
			continue;
		*ret = value;
		found = true;
	}
	if (f)
		pclose(f);
	return found ? 0 : -1;
}

int cluster_adapter_counter(const struct cluster *c, unsigned node, unsigned adapter,
			    const char *name, unsigned long long *ret)
{
	char end[16];

	snprintf(end, sizeof(end), ".%u", adapter);
	return counter_of(c, node, "adapter", end, name, ret);
}

int cluster_chassis_counter(const struct cluster *c, unsigned node, const char *chassis,
			    const char *name, unsigned long long *ret)
{
	char end[64];

	snprintf(end, sizeof(end), "/%.40s", chassis);
	return counter_of(c, node, "chassis", end, name, ret);
}

int cluster_host_counter(const struct cluster *c, unsigned node, const char *name,
			 unsigned long long *ret)
{
	return counter_of(c, node, "host", "", name, ret);
}

/* Of a test that failed: what they hold would never be given back. */
static void end_programs(void)
{
	for (unsigned i = 0; i < PROGRAMS; i++) {
		if (programs[i] &&
		    waitpid(programs[i], NULL, WNOHANG) == 0) { /* it is ours still */
			kill(programs[i], SIGKILL);
			waitpid(programs[i], NULL, 0);
		}
		programs[i] = 0;
	}
	unsettled |= failure_over();
}

/* As poll(). Of a program that gave up after a failure, the test's end is the answer. */
static int await(struct pollfd *p, unsigned n, int limit_ms)
{
	int rc = failure_poll(p, n, limit_ms);

	if (rc == FAILURE_GIVEN_UP) {
		end_programs();
		fail_msg("a program has given up");
	}
	return rc;
}

/* A test that gave up has left hosts crashed, or its drive in quarantine. */
static int settle(struct cluster *c)
{
	for (unsigned i = 0; i < c->n_nodes; i++)
		if (c->daemon[i] == 0 && cluster_restart(c, 4 * (i + 1), 0) < 0)
			return -1;
	return cluster_wait(cluster_fork(c, 4, program_settle_any, NULL)) ? -1 : 0;
}

int cluster_audit(struct cluster *c)
{
	int rc;

	end_programs();
	if (pair_is())
		pair_barrier();
	if (unsettled && settle(c) < 0)
		return -1;
	unsettled = false;
	rc = audit(c, c->first, "/dev/null");
	if (pair_is())
		pair_barrier();
	if (rc < 0)
		fprintf(stderr, "the cluster does not hold what it held when it came up\n");
	return rc;
}

static struct cluster *cluster_new(const char *topology)
{
	struct cluster *c = calloc(1, sizeof(*c));

	if (!c || test_tempdir("sio-test", c->top, sizeof(c->top)) < 0) {
		free(c);
		return NULL;
	}
	c->next = clusters;
	c->text = topology;
	clusters = c;
	snprintf(c->dir, sizeof(c->dir), "%s/state", c->top);
	snprintf(c->first, sizeof(c->first), "%s/audit", c->top);
	if (mkdir(c->dir, 0700) < 0 || write_topology(c, topology) < 0) {
		perror(c->dir);
		cluster_free(c);
		return NULL;
	}
	return c;
}

static void step_came(unsigned step)
{
	uint64_t one = 1;

	if (step < STEPS && write(steps[step], &one, sizeof(one)) != sizeof(one))
		abort();
}

/* The machine is there: what is asked of it is the audit. */
static struct cluster *machine_up(struct cluster *c)
{
	snprintf(c->dir, sizeof(c->dir), MACHINE_STATE);
	pair_on_step(step_came);
	if ((!pair_is() || pair_up() == 0) && audit(c, NULL, c->first) == 0)
		return c;
	cluster_free(c);
	return NULL;
}

struct cluster *cluster_up(const char *topology)
{
	return cluster_up_first(topology, count_hosts(topology));
}

struct cluster *cluster_up_first(const char *topology, unsigned n)
{
	struct cluster *c = cluster_new(topology);

	if (!c)
		return NULL;
	if (cluster_is_machine())
		return machine_up(c);
	failure_up();
	c->n_nodes = n;
	if (c->n_nodes > CLUSTER_NODES) {
		fprintf(stderr, "a cluster of %u hosts: %d are the most that a test may have\n",
			c->n_nodes, CLUSTER_NODES);
		c->n_nodes = 0;
		goto fail;
	}
	c->room = start(c, "SMARTIO_TEST_EMU", 0);
	for (unsigned i = 0; c->room > 0 && i < c->n_nodes; i++) {
		c->daemon[i] = start(c, "SMARTIO_TEST_SMARTIOD", 4 * (i + 1));
		if (c->daemon[i] < 0)
			break;
	}
	for (unsigned i = 0; i < c->n_nodes; i++) {
		struct program_probe p = {4 * (i + 1), c->n_nodes};

		if (c->daemon[i] <= 0 ||
		    cluster_wait(cluster_fork(c, 4 * (i + 1), program_probe, &p)) != 0)
			goto fail;
	}
	if (audit(c, NULL, c->first) == 0)
		return c;
fail:
	cluster_end(c);
	return NULL;
}

int cluster_down(struct cluster *c)
{
	int rc = 0;

	for (unsigned i = 0; i < c->n_nodes; i++)
		if (c->daemon[i] == 0 && cluster_restart(c, 4 * (i + 1), 0) < 0)
			rc = -1;
	if (cluster_audit(c) < 0)
		rc = -1;
	return cluster_end(c) < 0 ? -1 : rc;
}

void cluster_crash(struct cluster *c, unsigned node)
{
	pid_t *pid = &c->daemon[node / 4 - 1];

	if (pair_is())
		pair_cannot(NEEDS_CRASH);
	if (*pid <= 0)
		abort(); /* of a machine: cluster_needs() is missing */
	kill(*pid, SIGKILL);
	waitpid(*pid, NULL, 0);
	*pid = 0;
}

int cluster_restart(struct cluster *c, unsigned node, unsigned from)
{
	struct program_probe p = {node, c->n_nodes};

	(void)from;
	c->daemon[node / 4 - 1] = start(c, "SMARTIO_TEST_SMARTIOD", node);
	if (c->daemon[node / 4 - 1] < 0)
		return -1;
	return cluster_wait(cluster_fork(c, node, program_probe, &p)) ? -1 : 0;
}

int cluster_reaches(struct cluster *c, unsigned node)
{
	struct program_probe p = {node, c->n_nodes};

	return cluster_wait(cluster_fork(c, node, program_probe, &p)) ? -1 : 0;
}

/*
 * @what is "link", and its words; the last one is @state. The caller, which may be the program that
 * has to switch, is not waited for.
 */
static int fault(const struct cluster *c, const char *what, const char *a, const char *b,
		 const char *state)
{
	const char *program = getenv("SMARTIO_TEST_TOOL");
	pid_t pid;

	if (pair_is())
		pair_cannot("a cable that can be pulled");
	if (!program)
		return -1;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(program, program, "--state", c->dir, "fault", what, "--no-wait", a,
		      b ? b : state, b ? state : NULL, (char *)NULL);
		perror(program);
		_exit(127);
	}
	return pid > 0 && cluster_wait(pid) == 0 ? 0 : -1;
}

int cluster_fault(const struct cluster *c, const char *const *words)
{
	const char *program = getenv("SMARTIO_TEST_TOOL"), *argv[16];
	unsigned n = 0;
	pid_t pid;

	for (const char *const *w = (const char *const[]){"smartio", "--state", c->dir, "fault",
							  "device", "--no-wait", NULL};
	     *w; w++)
		argv[n++] = *w;
	for (; *words && n < 15; words++)
		argv[n++] = *words;
	argv[n] = NULL;
	fflush(NULL);
	pid = program ? fork() : -1;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(program, (char *const *)(uintptr_t)argv);
		perror(program);
		_exit(127);
	}
	return pid > 0 && cluster_wait(pid) == 0 ? 0 : -1;
}

static const char *up_or_down(bool up)
{
	return up ? "up" : "down";
}

int cluster_link(const struct cluster *c, unsigned node, unsigned adapter, bool up)
{
	char where[32];

	snprintf(where, sizeof(where), "%u.%u", node, adapter);
	return fault(c, "link", where, NULL, up_or_down(up));
}

int cluster_switch(const struct cluster *c, const char *name, bool up)
{
	return fault(c, "switch", name, NULL, up_or_down(up));
}

int cluster_trunk(const struct cluster *c, const char *a, const char *b, bool up)
{
	return fault(c, "trunk", a, b, up_or_down(up));
}

int cluster_slot(const struct cluster *c, const char *device, bool in)
{
	return fault(c, "device", device, NULL, in ? "in" : "out");
}

pid_t cluster_daemon(const struct cluster *c, unsigned node)
{
	return c->daemon[node / 4 - 1];
}

void cluster_enter(const struct cluster *c, unsigned node)
{
	char path[STATE_DIR + 32];

	if (pair_is() && !pair_is_child())
		pair_cannot("a test that is a program of one host itself");
	snprintf(path, sizeof(path), "%s/node.%u", c->dir, cluster_node(node));
	setenv("SMARTIO_SOCKET", path, 1);
}

pid_t cluster_fork(struct cluster *c, unsigned node, int (*fn)(void *arg), void *arg)
{
	int rc, program = -1;
	pid_t pid;

	fflush(NULL);
	if (pair_is()) {
		program = pair_fork(cluster_node(node) == pair_node(), &pid);
		if (program < 0)
			return pid;
	}
	pid = fork();
	if (pid == 0) {
		pair_child();
		if (cluster_become_user() < 0)
			_exit(127);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		cluster_enter(c, node);
		if (fn != program_probe && fn != program_settle_any)
			failure_begin();
		rc = fn(arg);
		if (rc == 0)
			failure_fine();
		exit(rc);
	}
	for (unsigned i = 0; pid > 0 && i < PROGRAMS; i++)
		if (programs[i] == 0) {
			programs[i] = pid;
			paired[i] = program;
			break;
		}
	return pid;
}

static int wait_here(pid_t pid, int *ret_program)
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	int status;

	if (await(&p, 1, LIMIT_MS) <= 0) {
		fprintf(stderr, "process %d does not end\n", (int)pid);
		waits_print();
		kill(pid, SIGKILL);
	}
	close(p.fd);
	for (unsigned i = 0; i < PROGRAMS; i++)
		if (programs[i] == pid) {
			programs[i] = 0;
			*ret_program = paired[i];
		}
	if (waitpid(pid, &status, 0) < 0)
		return 1;
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		fprintf(stderr, "process %d was killed by signal %d\n", (int)pid, WTERMSIG(status));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int cluster_wait(pid_t pid)
{
	int program = -1, status = pair_is() ? pair_end(pid, LIMIT_MS) : -1;

	if (status >= 0)
		return status;
	status = wait_here(pid, &program);
	if (pair_is() && program >= 0)
		pair_tell_end(program, status);
	return status;
}

void steps_reset(void)
{
	if (pair_is())
		pair_barrier();
	for (unsigned i = 0; i < STEPS; i++) {
		if (steps[i] > 0)
			close(steps[i]);
		steps[i] = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	}
	if (pair_is())
		pair_barrier();
}

void step_done(unsigned step)
{
	uint64_t one = 1;

	/* First: who waits for it here may kill this program at once. */
	if (pair_is())
		pair_step(step);
	if (write(steps[step], &one, sizeof(one)) != sizeof(one))
		abort();
}

void step_await(unsigned step)
{
	struct pollfd p = {.fd = steps[step], .events = POLLIN};
	uint64_t one;

	if (await(&p, 1, STEP_MS) <= 0 || read(steps[step], &one, sizeof(one)) != sizeof(one)) {
		fprintf(stderr, "step %u does not come\n", step);
		if (!sio_failing_begin) /* where calls fail on purpose that is no surprise */
			waits_print();
		exit(1);
	}
}

unsigned step_await_any(const unsigned *step, unsigned n)
{
	struct pollfd p[STEPS];

	for (unsigned i = 0; i < n; i++)
		p[i] = (struct pollfd){.fd = steps[step[i]], .events = POLLIN};
	await(p, n, STEP_MS);
	for (unsigned i = 0; i + 1 < n; i++) {
		if (p[i].revents) {
			step_await(step[i]);
			return step[i];
		}
	}
	step_await(step[n - 1]);
	return step[n - 1];
}
