/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The notifications that programs get of segments (oracle/notified.c): exporters, and importers
 * that are connected. A workload reports what it does, and which notifications it gets; the model
 * and the oracle check them. The segments are available at their host's adapter 0 alone, and no
 * other workload has their ids.
 */
#ifndef SIM_NOTICES_H
#define SIM_NOTICES_H

#include "run/run.h"

#define SIM_NOTIFIED_IN (100 * SIM_MS) /* what is told comes within that */

enum sim_link_state { SIM_CONNECTING, SIM_OPERATIONAL, SIM_NOT_OPERATIONAL, SIM_LOST };

/* A program that takes part; it stays when the process is freed. */
struct sim_party {
	uint32_t pid;
	unsigned host, boots;
	char name[32];
	uint64_t died;	  /* since when it is known to be dead; 0: it lives */
	bool ends, ended; /* in SCITerminate(), behind it */
	bool silent;	  /* it cannot send that it ends: for others it is as if it died */
	uint64_t stopped;
	struct sim_party *next;
};

struct sim_export {
	struct sim_party *by;
	unsigned id;
	uint64_t since;
	unsigned asks; /* how often it began to ask */
	uint64_t cut;  /* whoever was connected before was told then */
	bool callback, overflow, gone;
	bool kept; /* removed, and not by force: whoever is connected keeps it */
	unsigned made, made_before, connects; /* connections; as of the last check; as told */
	int connections;		      /* as told */
	uint64_t down[SIM_HOSTS], up[SIM_HOSTS];
	struct sim_export *prev, *next;
};

struct sim_import {
	struct sim_party *by;
	unsigned host, id, adapter;
	bool callback, refused, overflow, asked, leaving, left;
	enum sim_link_state state;
	struct sim_export *of; /* NULL: not known */
	struct sim_export *then;
	unsigned asks;	      /* of that, at the beginning */
	uint64_t since, made; /* asked for; known to be made, 0: not */
	uint64_t breaks;
	unsigned boots; /* of its host, then */
	/* When nothing was in flight between the hosts, at the last check; and some time before. */
	uint64_t quiet, was_quiet;
	unsigned boots_quiet, boots_was_quiet;
	struct sim_import *prev, *next;
};

/*
 * The running program has made a segment, not available yet; without @callback it waits for events.
 */
struct sim_export *sim_export_new(unsigned id, bool callback);
/* All importers are about to be asked to disconnect; that was done. */
void sim_export_asks(struct sim_export *x);
void sim_export_asked(struct sim_export *x);
/* The segment was removed, by @force or to be kept for its importers; or is lost. */
void sim_export_removed(struct sim_export *x, bool force, sci_error_t e);
void sim_export_notified(struct sim_export *x, sci_segment_cb_reason_t reason, unsigned node);

/* The running program is about to connect; with @later it does not wait for that. */
struct sim_import *sim_import_new(unsigned host, unsigned id, unsigned adapter, bool later,
				  bool callback);
/* ... and that returned @e. */
void sim_import_begun(struct sim_import *m, sci_error_t e);
void sim_import_notified(struct sim_import *m, sci_segment_cb_reason_t reason);
/* The running program is about to disconnect; it has. */
void sim_import_leaves(struct sim_import *m);
void sim_import_left(struct sim_import *m);

/* The running program is about to call SCITerminate(); it has. */
void sim_notified_ends(void);
void sim_notified_ended(void);

/* ---- for the oracle ---- */
extern struct sim_party *sim_parties;
extern struct sim_export *sim_exports;
extern struct sim_import *sim_imports;
extern const char *const sim_link_states[];
void sim_notified_start(void);
void sim_party_look(struct sim_party *y);
/*
 * Are no notifications lost: for lack of memory, or with a smartiod, whose successor reports in
 * sum?
 */
bool sim_all_is_notified(void);
/* Does the import live, as its program knows, and as its daemon does? */
bool sim_import_lives(const struct sim_import *m);

#endif
