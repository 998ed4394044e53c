/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An emulated cluster for a test, and programs on its hosts: forked children that talk to the
 * library. The paths of smartio-emu, smartiod and smartio come by the environment,
 * SMARTIO_TEST_EMU, SMARTIO_TEST_SMARTIOD and SMARTIO_TEST_TOOL.
 *
 * With SMARTIO_TEST_MACHINE set, to the name of an NVMe drive, the cluster is this machine, whose
 * smartiod runs on the kernel module already: all hosts are the same one. Programs name nodes and
 * the drive by cluster_node() and cluster_device(), so that their tests run there, too; a test that
 * wants more than one machine has begins with cluster_needs().
 *
 * With SMARTIO_TEST_PAIR set, too (pair.h), the cluster is two such machines: the hosts of a
 * topology are on one and the other by turns, and the same program runs on both at once, each
 * with the programs of its own hosts. What programs share by memory of the test they do not
 * share then; cables cannot be pulled.
 *
 * The same tests run in the simulator, tests/sim/api/cluster.c in place of cluster.c: a program's
 * memory is the test's, so what is static, and @arg of cluster_fork(), is shared by all.
 */
#ifndef TESTS_LIB_CLUSTER_H
#define TESTS_LIB_CLUSTER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "smartio/ext.h"

#define CLUSTER_NODES 64

struct cluster;

/* Up, with all joined nodes able to reach each other; NULL: stderr says why not. */
struct cluster *cluster_up(const char *topology);
/* The same with the first @n hosts alone running; of a topology whose nodes are 4, 8, 12... */
struct cluster *cluster_up_first(const char *topology, unsigned n);
/*
 * Starts crashed hosts again, makes the last audit, ends everything and removes the state
 * directory. Return: 0; -1: the cluster held something else than when it came up, or a process did
 * not end well.
 */
int cluster_down(struct cluster *c);
/*
 * Between two tests, when no program of theirs runs: smartio doctor --audit finds all in order, and
 * the same as when the cluster came up. Return: 0; -1: stderr says what it found and had expected.
 */
int cluster_audit(struct cluster *c);
/* A line of the audit now: "two: port memory". Return: its count; -1: there is no such line. */
long cluster_count(const struct cluster *c, const char *what);
/* A counter of a host's daemon (smartio stats). Return: -1: there is no such counter. */
long long cluster_counter(const struct cluster *c, unsigned node, const char *name);
/* Several of them, of one instant. Return: 0; -1: there is no counter of one of these names. */
int cluster_counters(const struct cluster *c, unsigned node, const char *const *names, unsigned n,
		     long long *ret);
/* The host crashes: its smartiod is killed. */
void cluster_crash(struct cluster *c, unsigned node);
/* Start a crashed host again and wait until @from reaches it. */
int cluster_restart(struct cluster *c, unsigned node, unsigned from);
/* smartio fault link: the cable of an adapter. Return: 0; -1: stderr says why not. */
int cluster_link(const struct cluster *c, unsigned node, unsigned adapter, bool up);
/* smartio fault switch, and fault trunk, where one link joins the two. Return: as above. */
int cluster_switch(const struct cluster *c, const char *name, bool up);
int cluster_trunk(const struct cluster *c, const char *a, const char *b, bool up);
/*
 * smartio fault device: it is pulled out of its slot, or put back. Return as above. On a live
 * cluster alone, as the two below.
 */
int cluster_slot(const struct cluster *c, const char *device, bool in);
/* smartio fault device, with its words, ended by NULL. Return as above. */
int cluster_fault(const struct cluster *c, const char *const *words);
/* Wait until @node reaches all others. Return: 0; -1: it does not. */
int cluster_reaches(struct cluster *c, unsigned node);
/* A counter of an adapter (smartio stats). Return: 0; -1: there is no such counter. */
int cluster_adapter_counter(const struct cluster *c, unsigned node, unsigned adapter,
			    const char *name, unsigned long long *ret);
/* The same of a chassis, whose link towards its host it counts. On a live cluster alone. */
int cluster_chassis_counter(const struct cluster *c, unsigned node, const char *chassis,
			    const char *name, unsigned long long *ret);
/* The same of a host itself, as the emulated hardware counts. */
int cluster_host_counter(const struct cluster *c, unsigned node, const char *name,
			 unsigned long long *ret);
/* The pid of a host's smartiod. */
pid_t cluster_daemon(const struct cluster *c, unsigned node);
/* SMARTIO_SOCKET of this process becomes that of a host. */
void cluster_enter(const struct cluster *c, unsigned node);

/*
 * On one machine, where the test is root: this process becomes SMARTIO_TEST_USER, who is in
 * SMARTIO_TEST_GROUP (numbers both). Return: 0; -1: errno.
 */
int cluster_become_user(void);
/* True: the "cluster" is one machine, with the kernel module. */
bool cluster_is_machine(void);
/* What programs call a host of the topology: its node; on one machine always the machine's. */
unsigned cluster_node(unsigned node);
/* What programs call the drive of the topology. */
const char *cluster_device(void);
/*
 * First in a test that wants something that one machine lacks: there it is skipped, and says why.
 */
void cluster_needs(const char *what);
#define NEEDS_HOSTS "another host"
#define NEEDS_LINK "an adapter with a link to another host"
#define NEEDS_CRASH "a host that crashes while others live on"
#define NEEDS_ENGINE "an adapter with a DMA engine"
#define NEEDS_SPACE "a window with room for many segments"
#define NEEDS_SPEED "windows as fast as memory: megabytes are read through them"
#define NEEDS_GROUPS "an adapter with multicast groups"
#define NEEDS_MEMORY "a memory device"
/*
 * The same, of what a machine has by smartio.ko, and lacks by VFIO.
 */
void cluster_needs_module(const char *what);
/* Is it such a machine? */
bool cluster_is_vfio(void);
#define NEEDS_REVOKE "pages of a device that a reset takes away: smartio.ko"
#define NEEDS_PHYSICAL "physical addresses of memory: smartio.ko"
/*
 * First in a test that wants what the simulator's programs, which are coroutines, have not: there
 * it is skipped, and says why.
 */
void cluster_needs_kernel(const char *what);
#define NEEDS_FORK "a process that forks"
#define NEEDS_EXIT "a process that ends by exit()"
#define NEEDS_PAGES "pages of the program's own"
#define NEEDS_TWO "two clusters at once"
#define NEEDS_SIGNALS "signals, and pages that are protected"
#define NEEDS_PROC "descriptors of the kernel's"
#define NEEDS_DAEMON "a smartiod that can be stopped, or is not there"

/* A child on a host; its exit status is what @fn returns. */
pid_t cluster_fork(struct cluster *c, unsigned node, int (*fn)(void *arg), void *arg);
/* Its exit status; 128 + signal; 1 and a message after 60 s, when it is killed. */
int cluster_wait(pid_t pid);

/* Signals between children that are forked later: each is counted and has a time limit. */
#define STEPS 16
void steps_reset(void);
void step_done(unsigned step);
void step_await(unsigned step);
/* Whichever of them comes first. */
unsigned step_await_any(const unsigned *step, unsigned n);

/* In children: say what was expected and end. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s is false; the library says: %s\n", __FILE__,    \
				__LINE__, #condition, smartio_last_error());                       \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)
#define CHECK_IS(got, expected)                                                                    \
	do {                                                                                       \
		sci_error_t got_ = (got), expected_ = (expected);                                  \
		if (got_ != expected_) {                                                           \
			fprintf(stderr, "%s:%d: %s (%#x), expected %s; the library says: %s\n",    \
				__FILE__, __LINE__, SCIGetErrorString(got_), (unsigned)got_,       \
				SCIGetErrorString(expected_), smartio_last_error());               \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)
#define CHECK_OK(error) CHECK_IS(error, SCI_ERR_OK)

/* SCIInitialize and SCIOpen, checked; and their end, which finds nothing left. */
sci_desc_t api_begin(void);
void api_end(sci_desc_t sd);
/* The drive of the cluster. */
sci_smartio_device_t api_borrow(sci_desc_t sd, unsigned flags);
/* Whoever still looks at it may keep it for a while: it is removed then. */
void api_remove_segment(sci_local_segment_t segment);

#endif
