/* SPDX-License-Identifier: BSD-2-Clause */
/* States that falsify measurements: the clock's source, changing frequencies, shared processors. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor_facts.h"
#include "base/output.h"

#define CPUS "/sys/devices/system/cpu"
#define CLOCK "/sys/devices/system/clocksource/clocksource0/"
#define THP "/sys/kernel/mm/transparent_hugepage/"
#define STOLEN_PER_MILLE 1 /* of the time since boot; less is noise */

/* ---- the clock ---- */

/* Clocks that a program cannot read without a system call, and that are slow besides. */
static bool is_slow_clock(const char *name)
{
	static const char *const slow[] = {"hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"};

	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++)
		if (strcmp(name, slow[i]) == 0)
			return true;
	return false;
}

static void find_clocksource(struct doctor *d, const struct doctor_state *s)
{
	static const char *const better[] = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page",
					     "arch_sys_counter"};
	struct doctor_words w = {.mend = "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&tsc=reliable /' "
					 "/etc/default/grub; " DOCTOR_BOOT_ANEW};
	char now[DOCTOR_LINE], all[DOCTOR_LINE];

	if (!doctor_line(&d->source, now, CLOCK "current_clocksource")) {
		doctor_says(d, s, DOCTOR_UNKNOWN, "the kernel does not tell its clocksource");
		return;
	}
	if (!is_slow_clock(now)) {
		doctor_says(d, s, DOCTOR_FINE, "%s", now);
		return;
	}
	doctor_line(&d->source, all, CLOCK "available_clocksource");
	for (size_t i = 0; i < sizeof(better) / sizeof(better[0]) && !w.one; i++)
		if (doctor_has_word(all, better[i])) {
			w.one = better[i];
			w.mend = s->mend;
		}
	doctor_found(d, s, &w, "%s; there are %s", now, *all ? all : "no others");
}

/* ---- frequency ---- */

static void find_governor(struct doctor *d, const struct doctor_state *s)
{
	char **cpu, word[DOCTOR_LINE], first[100] = "";
	ssize_t n = doctor_names(&d->source, &cpu, CPUS);
	unsigned all = 0, wrong = 0;

	for (ssize_t i = 0; i < n; i++) {
		if (strncmp(cpu[i], "cpu", 3) != 0 ||
		    !doctor_line(&d->source, word, CPUS "/%s/cpufreq/scaling_governor", cpu[i]))
			continue;
		all++;
		if (strcmp(word, "performance") == 0)
			continue;
		if (wrong++ == 0)
			snprintf(first, sizeof(first), "%.40s of %.40s", word, cpu[i]);
	}
	doctor_names_free(cpu, n);
	if (wrong)
		doctor_found(d, s, NULL, "%u of %u processors change their frequency (governor %s)",
			     wrong, all, first);
	else if (!all)
		doctor_says(d, s, DOCTOR_NOT_HERE, "frequencies are not this kernel's to change");
}

static void find_turbo(struct doctor *d, const struct doctor_state *s)
{
	const struct doctor_words intel = {.mend = "echo 1 | sudo tee " CPUS
						   "/intel_pstate/no_turbo"};
	char word[DOCTOR_LINE];

	if (doctor_line(&d->source, word, CPUS "/intel_pstate/no_turbo")) {
		if (strcmp(word, "0") == 0)
			doctor_found(d, s, &intel, "intel_pstate/no_turbo is 0");
	} else if (doctor_line(&d->source, word, CPUS "/cpufreq/boost")) {
		if (strcmp(word, "1") == 0)
			doctor_found(d, s, NULL, "cpufreq/boost is 1");
	} else {
		doctor_says(d, s, DOCTOR_NOT_HERE, "this kernel knows of no turbo");
	}
}

/* ---- shared processors ---- */

static void find_stolen(struct doctor *d, const struct doctor_state *s)
{
	uint64_t tick[8] = {0}, all = 0, stolen;
	char text[DOCTOR_LINE], *at = text;

	if (!doctor_field(&d->source, "cpu ", text, "/proc/stat"))
		return;
	for (unsigned i = 0; i < 8; i++)
		all += tick[i] = strtoull(at, &at, 10);
	stolen = tick[7];
	if (stolen * 1000 > all * STOLEN_PER_MILLE)
		doctor_found(d, s, NULL,
			     "%" PRIu64 " of %" PRIu64
			     " ticks since boot were stolen: others had the processor",
			     stolen, all);
	else
		doctor_says(d, s, DOCTOR_FINE, "%" PRIu64 " of %" PRIu64 " ticks were stolen",
			    stolen, all);
}

static void find_hypervisor(struct doctor *d, const struct doctor_state *s)
{
	char type[DOCTOR_LINE];

	if (doctor_line(&d->source, type, "/sys/hypervisor/type"))
		doctor_found(d, s, NULL, "hypervisor %s (/sys/hypervisor/type)", type);
	else if (doctor_cpu_flag(&d->source, "hypervisor"))
		doctor_found(d, s, NULL, "/proc/cpuinfo has the flag 'hypervisor'");
}

/* ---- huge pages of emulated memory ---- */

static bool is_chosen(const char *text, const char *word)
{
	char chosen[64];

	snprintf(chosen, sizeof(chosen), "[%s]", word);
	return strstr(text, chosen);
}

static void find_small_pages(struct doctor *d, const struct doctor_state *s)
{
	char own[DOCTOR_LINE], shared[DOCTOR_LINE];

	if (!doctor_line(&d->source, own, THP "enabled") ||
	    !doctor_line(&d->source, shared, THP "shmem_enabled"))
		doctor_says(d, s, DOCTOR_UNKNOWN, "the kernel reports nothing about huge pages");
	else if (is_chosen(own, "never") || is_chosen(shared, "never") || is_chosen(shared, "deny"))
		doctor_found(d, s, NULL, "enabled is '%s', shmem_enabled is '%s'", own, shared);
}

static const struct doctor_state states[] = {
	{"clocksource", DOCTOR_WARNING, DOCTOR_ANYWHERE, "the clock is slow to read",
	 "the kernel found the processor's counter unstable, or was told not to use it: each look at "
	 "the clock is a system call",
	 find_clocksource, "echo {1} | sudo tee " CLOCK "current_clocksource"},
	{"frequency", DOCTOR_WARNING, DOCTOR_MEASURE, "processors change their frequency",
	 "the governor saves power: the first of a measurement are slower than the last",
	 find_governor, "echo performance | sudo tee " CPUS "/cpu*/cpufreq/scaling_governor"},
	{"turbo", DOCTOR_WARNING, DOCTOR_MEASURE, "processors run faster while they are cool",
	 "turbo is on: what is measured depends on what ran before, and on other processors",
	 find_turbo, "echo 0 | sudo tee " CPUS "/cpufreq/boost"},
	{"stolen-time", DOCTOR_WARNING, DOCTOR_MEASURE, "others use this machine's processors",
	 "it is a virtual machine, and its host gave the processors to others meanwhile",
	 find_stolen,
	 "vmstat 1 # column st; measure while it is 0, and take medians of interleaved runs"},
	{"shared-processors", DOCTOR_WARNING, DOCTOR_MEASURE, "this is a virtual machine",
	 "its processors may be given to others at any time, and traps cost more than on a real one",
	 find_hypervisor,
	 "systemd-detect-virt # measure where it says none; here compare interleaved runs alone"},
	{"small-pages", DOCTOR_WARNING, DOCTOR_MEASURE, "emulated memory has small pages only",
	 "the kernel gives shared memory no huge pages: translations cost more than on real hosts",
	 find_small_pages,
	 "echo advise | sudo tee " THP "shmem_enabled; echo madvise | sudo tee " THP "enabled"},
};

const struct doctor_area doctor_measure_area = {"measurement", states,
						sizeof(states) / sizeof(states[0])};
