/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Diagnosis of this machine and its clusters. Each state that doctor knows is a row of a table;
 * each area (cluster, resources, module, machine, measurement) has one table in one file. A row's
 * function checks the facts (doctor_facts.h) and reports what it found; the row has the rest.
 */
#ifndef TOOLS_DOCTOR_H
#define TOOLS_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "doctor/doctor_source.h"

struct doctor;
struct doctor_cluster;

enum doctor_verdict {
	DOCTOR_NOT_HERE, /* does not apply to what there is */
	DOCTOR_UNKNOWN,	 /* a fact could not be read */
	DOCTOR_FINE,
	DOCTOR_NOTE, /* no trouble, but worth a line */
	DOCTOR_WARNING,
	DOCTOR_BAD,
	DOCTOR_VERDICTS
};

/* What a state requires to be possible at all; otherwise it is DOCTOR_NOT_HERE. */
enum doctor_need {
	DOCTOR_ANYWHERE,
	DOCTOR_CLUSTER,	 /* a cluster, or this machine's own smartiod */
	DOCTOR_HARDWARE, /* real devices are meant: doctor_wants_hardware() */
	DOCTOR_MEASURE,	 /* --measure */
	DOCTOR_TRY,	 /* a try on this very machine: not with --root */
};

struct doctor_state {
	const char *id; /* "link-down"; stays what it is, scripts look for it */
	enum doctor_verdict level;
	enum doctor_need need;
	const char *title; /* one line, without a subject */
	const char *cause;
	void (*find)(struct doctor *d, const struct doctor_state *s);
	/*
	 * The command that mends it. {smartio}: this command with the option that names the
	 * cluster; {smartio-nvme}; {1} and {2}: the finding's words, quoted for a shell.
	 */
	const char *mend;
};

struct doctor_area {
	const char *name;
	const struct doctor_state *state;
	size_t n;
};
extern const struct doctor_area doctor_cluster_area, doctor_resources_area, doctor_module_area,
	doctor_vfio_area, doctor_machine_area, doctor_measure_area;

struct doctor_finding {
	const struct doctor_area *area;
	const struct doctor_state *state;
	enum doctor_verdict verdict;
	char *evidence, *mend; /* mend: "" where there is nothing to mend */
};

struct doctor {
	struct doctor_source source;
	bool measure, hardware; /* --measure, --hardware */
	struct doctor_cluster *cluster;
	size_t n_clusters;
	const struct doctor_area *area; /* that is being looked at */
	struct doctor_finding *finding;
	size_t n_findings;
};

/* The words of which a finding's command is made; absent ones are NULL. */
struct doctor_words {
	const struct doctor_cluster *cluster;
	const char *one, *two;
	const char *mend; /* instead of the row's */
};

/* The state is present; to be called once for each thing that is in it. @w may be NULL. */
void doctor_found(struct doctor *d, const struct doctor_state *s, const struct doctor_words *w,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The state is not present, with what was seen instead; or this cannot be determined. */
void doctor_says(struct doctor *d, const struct doctor_state *s, enum doctor_verdict verdict,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * What activates a change of /etc/default/grub: by Debian's way, Fedora's and openSUSE's, Arch's.
 */
#define DOCTOR_BOOT_ANEW                                                                           \
	"(sudo update-grub || sudo grub2-mkconfig -o /boot/grub2/grub.cfg || "                     \
	"sudo grub-mkconfig -o /boot/grub/grub.cfg) && sudo reboot"

/* Checks all states. */
void doctor_examine(struct doctor *d);
void doctor_done(struct doctor *d);
/*
 * Prints the findings. Return: exit status: 0, 1 (warnings), 2 (bad), or that of a failed output.
 */
int doctor_print_text(const struct doctor *d, bool verbose);
int doctor_print_json(const struct doctor *d);
/* "ok", "warning", "bad", ... */
const char *doctor_verdict_name(enum doctor_verdict v);

/* smartio doctor --audit. @expect: a file with an earlier audit, or NULL. Return: exit status. */
int tool_audit_command(const char *expect, unsigned within_s);

#endif
