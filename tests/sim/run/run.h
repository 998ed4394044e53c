/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run of a seed: a cluster is drawn, programs of the workloads come and go on its hosts, faults
 * happen as planned, oracles watch; at the end everything must work and nothing may be left.
 *
 * To add a workload, a fault or an oracle: a file of its own with one of the structures below, and
 * the file and its name in meson.build. docs/simulation.md has an example of each.
 *
 *   draw.c      the cluster, from the seed
 *   plan.c      which faults happen when; switching them off
 *   prog.c      programs: they come and go; the calls they make
 *   listener.c  what workloads and oracles hear of programs, without knowing one another
 *   run.c       the run
 *   probe.c     liveness: the programs that must succeed in the end
 *   options.c   the command line
 *   tables.c    what there is, as the main program handed it in
 *   many.c      many seeds, each in a process of its own; shrinking
 *   tally.c     what faults did in them
 *
 * work/ has the workloads, fault/ the faults, oracle/ the oracles, model/ what several of them
 * compare with (what a drive's blocks hold, what programs are notified of).
 */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "base/sim.h"
#include "sisci_api.h"

struct sim_listener; /* run/listener.h */

/* ---- workloads ---- */
struct sim_workload {
	const char *name;
	unsigned weight; /* how often it is chosen, relative to the others */
	/* Is the workload possible on this host of this cluster? NULL: always. */
	bool (*fits)(unsigned host);
	/*
	 * May a seed of this many hosts choose it? NULL: it may. For workloads that were added
	 * later: seeds that cannot have them behave as before. The cluster is not drawn yet.
	 */
	bool (*seen)(unsigned hosts);
	bool named; /* it runs only where --workload names it: other seeds do what they did */
	/* A list of the only workloads that may be chosen beside it in this seed; NULL: all may. */
	const char *(*beside)(void);
	/*
	 * The program: runs as a coroutine, may be killed in every call. It ends by itself, and
	 * soon when sim_stopping_programs(). It reports errors by sim_fail().
	 */
	void (*main)(struct sim_proc *p);
	const struct sim_listener *listener; /* what it has to know of all programs; NULL */
};

/* ---- faults ---- */
struct sim_fault;
struct sim_fault_event {
	const struct sim_fault *fault;
	unsigned number;     /* in the plan */
	uint64_t at, length; /* ns from the beginning of the faults; how long */
	uint64_t rng;	     /* its own stream: sim_draw(&e->rng) */
	unsigned a, b;	     /* free for the fault */
};

struct sim_fault {
	const char *name;
	const uint64_t *did; /* how often it did something in this run */
	unsigned most;	     /* most events in ten seconds of virtual time */
	uint64_t longest;    /* ns that one lasts at most; 0: an instant */
	unsigned seldom;     /* in one of so many seeds that would have it; 0: in all */
	void (*begin)(struct sim_fault_event *e);
	void (*end)(struct sim_fault_event *e); /* NULL: it is an instant */
	/* Before the cluster starts, if the seed has this fault: changes what is drawn; NULL. */
	void (*prepare)(uint64_t *rng);
	/* The faults are over: repairs what is still broken; NULL. */
	void (*heal)(void);
	/*
	 * Does this owner of the port belong to the fault itself, so that no daemon knows of it?
	 * NULL
	 */
	bool (*owns)(unsigned host, uint64_t owner);
	/* Is the fault acting at this moment? NULL */
	bool (*acts)(void);
};

/* ---- oracles ---- */
struct sim_oracle {
	const char *name;
	uint64_t every;	     /* ns of virtual time between two checks; 0: none */
	void (*start)(void); /* the cluster is up, no program has started; NULL */
	void (*check)(void); /* NULL */
	/* All programs have ended: has everything been released? false: not yet. NULL */
	bool (*back)(void);
	void (*ended)(void); /* no program lives any more, and the last probe has not begun; NULL */
	/* Describes what has not (sim_fail() follows); NULL */
	void (*explain)(char *text, size_t size);
	const struct sim_listener *listener; /* what it has to know of all programs; NULL */
};

/*
 * All tables, each list ended by NULL. The main program (main.c) sets them before it calls
 * sim_main(), so that nothing in run/ names a workload, a fault or an oracle.
 */
extern const struct sim_workload *const *sim_workloads;
extern const struct sim_fault *const *sim_faults;
extern const struct sim_oracle *const *sim_oracles;

/* run/options.c: handles the command line. Return: the exit status. */
int sim_main(int argc, char **argv);

/* ---- the run ---- */
struct sim_options {
	uint64_t seed;
	unsigned hosts;	      /* 0: drawn */
	double seconds;	      /* virtual, until the programs are told to end */
	const char *workload; /* lists of names; NULL: drawn */
	const char *faults;
	const char *events; /* numbers of the plan's events that happen, "3,7-9"; NULL: all */
	const char *trace, *perfetto;
	bool quiet;
	bool cascade; /* hosts at several switches that links join */
};

struct sim_result {
	uint64_t hash, events, virtual_ns, programs, calls, killed, records, dma, pairs;
	uint64_t device_faults; /* accesses of devices that were refused, as the room told */
	unsigned hosts, plan;	/* events of the plan */
};

extern struct sim_options sim_options;
extern struct sim_result sim_result;

void sim_run_seed(void);
/* Prints one line that says what is wrong, and how to reproduce it. Ends the process. */
void sim_fail(const char *oracle, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));
/* Are the faults over? Then what fails now fails permanently. */
bool sim_calm(void);
/* Does this seed have faults of that name? */
bool sim_has_fault(const char *name);
/* Does it have faults by which smartiod is away for a moment, and no others? */
bool sim_only_restarts(void);

/* fault/program.c: draws a living program, by the event's stream; NULL: none lives. */
struct sim_proc *sim_draw_program(struct sim_fault_event *e);

/* run/draw.c: makes the text of a topology file; static storage. */
const char *sim_draw_cluster(uint64_t seed, unsigned hosts);
/*
 * The host whose daemon is malicious (fault/liar.c), or SIM_NO_LIAR, which is no host. No program
 * runs there.
 */
#define SIM_NO_LIAR (~0u)
unsigned sim_liar(void);
extern bool sim_has_liar; /* the fault's own */
/* Does a fault itself have this owner of a port, or is one acting at this moment? */
bool sim_fault_owns(unsigned host, uint64_t owner);
bool sim_fault_acts(void);
/*
 * Few entries in tables: 0: as drawn; otherwise at most this many look-up entries and requester
 * entries.
 */
extern unsigned sim_few_entries, sim_few_requesters;

/* run/plan.c */
void sim_plan_choose(void); /* which faults this seed has; before the cluster is drawn */
void sim_plan_make(void);   /* ... and when */
void sim_plan_begin(void);  /* they happen from now on */
void sim_plan_heal(void);   /* they are over */
unsigned sim_plan_events(void);
/*
 * One line: what each fault of this seed did, of how many events that began; nothing if the seed
 * has none.
 */
#define SIM_COUNTED "faults, counted: "
void sim_plan_print(void);
/* Is @name in the list: "a,b" or "all,-b" or "none"? NULL is all. */
bool sim_list_has(const char *list, const char *name);

/* ---- run/prog.c: for workloads ---- */
void sim_programs_choose(unsigned hosts); /* which workloads; as the cluster is drawn */
void sim_programs_start(void);
/* fault/doze.c: drives with faults have managers and clients. */
extern bool sim_busy;
/* Are programs of this kind run? */
bool sim_has_workload(const char *name);
/* Are there programs that pull cables? */
bool sim_has_pullers(void);
void sim_programs_stop(void); /* no new ones; those that run end soon */
bool sim_programs_ended(void *arg);
bool sim_stopping_programs(void);
/* Draws from the program's own stream. */
uint64_t sim_pick(uint64_t n);
/*
 * Around each call that may wait: the oracle of time-outs checks it, and the trace has a span.
 * @limit_ms: of virtual time; 0: the default for a request to a daemon.
 */
void sim_call(const char *name, unsigned limit_ms);
/*
 * Ends the call. Return: @error; one that is neither among the common ones (program.c) nor in the
 * list, which ends with SCI_ERR_OK, fails the run.
 */
sci_error_t sim_called(sci_error_t error, ...);
/* SIM_CALL(SCIOpen, (&sd, 0, &e), &e, SCI_ERR_BUSY): the call @fn@args; then sim_called(). */
#define SIM_CALL(fn, args, e, ...)                                                                 \
	(sim_call(#fn, 0), fn args, sim_called(*(e), ##__VA_ARGS__, SCI_ERR_OK))
/*
 * The same for a call that removes something: repeated while smartiod cannot be asked for lack of
 * memory.
 */
#define SIM_END(fn, args, e, ...)                                                                  \
	({                                                                                         \
		unsigned tries_ = 0;                                                               \
		do                                                                                 \
			SIM_CALL(fn, args, e, ##__VA_ARGS__);                                      \
		while (sim_again(*(e), tries_++));                                                 \
		*(e);                                                                              \
	})
bool sim_again(sci_error_t error, unsigned tries);
/* Draws any other host; the own one only if it is alone. An adapter with a path there, or 0. */
unsigned sim_pick_host(void);
unsigned sim_pick_adapter(unsigned host);
/*
 * The adapters of @host to which this host's @adapter leads, as bits: where a switch connects
 * several, daemons choose one whose cable is not out.
 */
unsigned sim_adapters_behind(unsigned adapter, unsigned host);
/* For workloads that need adapters: do hosts have any? */
bool sim_adapters(unsigned host);

/* How often programs and daemons did what honest ones do not. */
struct sim_wild {
	/* work/wild.c: at addresses that are not theirs, and refused */
	uint64_t commands, refused, queues, queues_refused;
	uint64_t lies;	  /* work/usurper.c: a manager lies to its clients */
	uint64_t guarded; /* ... one that settles too early alone, with an IOMMU before its drive */
	uint64_t premature; /* work/premature.c: quarantines that were ended too early */
	uint64_t answers;   /* fault/liar_answer.c: of a daemon, that are not the truth */
};
extern struct sim_wild sim_wild;

/* run/probe.c */
bool sim_probe(uint64_t limit); /* return: all is well; else it has failed the run */

/* ---- run/many.c ---- */
struct sim_many {
	const char *fixed; /* a file of seeds, or NULL */
	long new_seeds;	   /* beside them; < 0: as many */
	double soak;	   /* new seeds for so many seconds, if that is not 0 */
	unsigned jobs, part, every;
	bool stop; /* at the first that fails */
	bool all;  /* each fault has to do something in the fixed seeds */
};
int sim_check_many(const struct sim_many *many);
int sim_shrink(void);

/* ---- run/tally.c: what faults did in many seeds ---- */
void sim_tally_add(bool fixed, int fd); /* what a run said */
void sim_tally_print(void);
unsigned sim_tally_missing(void); /* how many did nothing in the fixed seeds; says which */

#endif
