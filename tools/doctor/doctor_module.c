/* SPDX-License-Identifier: BSD-2-Clause */
/* States of real devices on this machine (docs/hardware.md): module, group, IOMMU, drivers. */
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "doctor/doctor_facts.h"
#include "device/function.h"
#include "device/underway.h"
#include "base/local.h"
#include "base/output.h"

#define MODULE TOOL_FUNCTION_DRIVER
#define MODULE_DIR "/sys/module/" MODULE
#define DRIVER_DIR "/sys/bus/pci/drivers/" MODULE
#define NODE "/dev/smartio0"
#define GROUP "smartio"
#define WANTED_LOCKED (64ULL << 20) /* of memory that programs register for devices */

static bool module_loaded(const struct doctor *d)
{
	return doctor_exists(&d->source, MODULE_DIR);
}

/* ---- the module ---- */

static void find_module_missing(struct doctor *d, const struct doctor_state *s)
{
	if (doctor_by_vfio(d))
		doctor_says(d, s, DOCTOR_NOT_HERE, "VFIO serves this machine's devices");
	else if (!module_loaded(d))
		doctor_found(d, s, NULL, "smartio.ko is not loaded: there is no " MODULE_DIR);
}

/* Is it the package's module, which dkms has compiled for this kernel? */
static bool is_dkms(const struct doctor *d)
{
	static const char *const end[] = {"", ".xz", ".zst", ".gz"};
	char release[DOCTOR_LINE];
	bool there = false;

	if (!doctor_line(&d->source, release, "/proc/sys/kernel/osrelease"))
		return false;
	for (size_t i = 0; i < sizeof(end) / sizeof(end[0]); i++)
		there |= doctor_exists(&d->source, "/lib/modules/%s/updates/dkms/smartio.ko%s",
				       release, end[i]);
	return there;
}

static void find_module_version(struct doctor *d, const struct doctor_state *s)
{
	const struct doctor_words dkms = {.mend = "sudo rmmod smartio && sudo modprobe smartio"};
	const struct doctor_words *w = is_dkms(d) ? &dkms : NULL;
	char version[DOCTOR_LINE];

	if (!module_loaded(d))
		return;
	if (!doctor_line(&d->source, version, MODULE_DIR "/version"))
		doctor_found(d, s, w,
			     "smartio.ko tells no version; this is smartio " SMARTIO_VERSION);
	else if (strcmp(version, SMARTIO_VERSION) != 0)
		doctor_found(d, s, w, "smartio.ko is %s, this is smartio " SMARTIO_VERSION,
			     version);
}

static void find_node_missing(struct doctor *d, const struct doctor_state *s)
{
	if (module_loaded(d) && !doctor_exists(&d->source, NODE))
		doctor_found(d, s, NULL, "the module is loaded, and there is no " NODE);
}

/* ---- the group ---- */

static bool group_id(const struct doctor *d, gid_t *ret)
{
	const struct group *g = NULL;
	char path[4096];
	FILE *f;

	if (!*d->source.root) {
		g = getgrnam(GROUP);
	} else {
		snprintf(path, sizeof(path), "%s/etc/group", d->source.root);
		f = fopen(path, "re");
		while (f && (g = fgetgrent(f)) && strcmp(g->gr_name, GROUP) != 0)
			;
		if (f)
			fclose(f);
	}
	if (g)
		*ret = g->gr_gid;
	return g;
}

static bool member_of(gid_t group)
{
	gid_t groups[256];
	int n = getgroups(256, groups);

	if (geteuid() == 0 || getegid() == group)
		return true;
	for (int i = 0; i < n; i++)
		if (groups[i] == group)
			return true;
	return false;
}

static void find_no_group(struct doctor *d, const struct doctor_state *s)
{
	const struct doctor_words join = {.mend = "sudo usermod -a -G " GROUP
						  " $USER; newgrp " GROUP};
	gid_t group;

	if (!group_id(d, &group))
		doctor_found(d, s, NULL,
			     "there is no group " GROUP ": root alone may use smartiod");
	else if (!member_of(group))
		doctor_found(d, s, &join, "we, user %u, are not in group " GROUP, geteuid());
	else
		doctor_says(d, s, DOCTOR_FINE,
			    "members of group " GROUP " may use smartiod, we too");
}

static void find_few_locked(struct doctor *d, const struct doctor_state *s)
{
	char text[TOOL_SIZE_TEXT];
	struct rlimit limit;

	if (doctor_by_vfio(d))
		doctor_says(d, s, DOCTOR_NOT_HERE, "VFIO maps no program's own memory");
	else if (*d->source.root || getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		doctor_says(d, s, DOCTOR_UNKNOWN, "not of another machine");
	else if (limit.rlim_max < WANTED_LOCKED)
		doctor_found(d, s, NULL, "%s a program", tool_size(limit.rlim_max, text));
}

/* ---- the IOMMU ---- */

static unsigned iommu_groups(const struct doctor *d)
{
	char **name;
	ssize_t n = doctor_names(&d->source, &name, "/sys/kernel/iommu_groups");

	doctor_names_free(name, n);
	return n > 0 ? (unsigned)n : 0;
}

static void find_iommu_off(struct doctor *d, const struct doctor_state *s)
{
	/* Linux uses AMD's IOMMU wherever the firmware reports it. */
	const struct doctor_words amd = {
		.mend = "sudo systemctl reboot --firmware-setup # there, switch AMD-Vi (IOMMU) on"};
	unsigned n = iommu_groups(d);
	char vendor[DOCTOR_LINE];
	bool is_amd = doctor_field(&d->source, "vendor_id", vendor, "/proc/cpuinfo") &&
		      strstr(vendor, "AuthenticAMD");

	if (n)
		doctor_says(d, s, DOCTOR_FINE, "on, %u groups", n);
	else
		doctor_found(d, s, is_amd ? &amd : NULL, "/sys/kernel/iommu_groups is empty");
}

typedef void function_fn(struct doctor *d, const struct doctor_state *s, const char *bdf);

/*
 * Calls @fn for the functions that the module has, or (@meant) that it should have. Return: how
 * many.
 */
static unsigned each_function(struct doctor *d, const struct doctor_state *s, bool meant,
			      function_fn *fn)
{
	char **bdf, word[DOCTOR_LINE];
	ssize_t n = doctor_names(&d->source, &bdf, "/sys/bus/pci/devices");
	unsigned count = 0;
	bool ours;

	for (ssize_t i = 0; i < n; i++) {
		if (meant)
			ours = doctor_line(&d->source, word,
					   "/sys/bus/pci/devices/%s/driver_override", bdf[i]);
		else
			ours = doctor_link(&d->source, word, "/sys/bus/pci/devices/%s/driver",
					   bdf[i]);
		if (!ours || strcmp(word, MODULE) != 0)
			continue;
		count++;
		if (fn)
			fn(d, s, bdf[i]);
	}
	doctor_names_free(bdf, n);
	return count;
}

static void look_at_translation(struct doctor *d, const struct doctor_state *s, const char *bdf)
{
	char type[DOCTOR_LINE], group[DOCTOR_LINE];
	const struct doctor_words w = {.one = bdf};

	if (!doctor_link(&d->source, group, "/sys/bus/pci/devices/%s/iommu_group", bdf) ||
	    !doctor_line(&d->source, type, "/sys/kernel/iommu_groups/%s/type", group))
		return;
	if (strcmp(type, "identity") == 0)
		doctor_found(d, s, &w, "%s: IOMMU group %s is of type identity", bdf, group);
}

static void find_iommu_passthrough(struct doctor *d, const struct doctor_state *s)
{
	const struct doctor_words boot = {
		.mend = "sudo sed -i 's/iommu.passthrough=1//; s/iommu=pt//' "
			"/etc/default/grub; " DOCTOR_BOOT_ANEW};
	char words[DOCTOR_LINE];

	if (!iommu_groups(d))
		return; /* off: find_iommu_off() says so */
	if (each_function(d, s, false, look_at_translation))
		return; /* the groups' own states say it, whatever the default is */
	if (doctor_line(&d->source, words, "/proc/cmdline") &&
	    (doctor_has_word(words, "iommu=pt") || doctor_has_word(words, "iommu.passthrough=1")))
		doctor_found(d, s, &boot, "the kernel was booted with pass-through: %s", words);
}

static void look_at_neighbours(struct doctor *d, const struct doctor_state *s, const char *bdf)
{
	char group[DOCTOR_LINE], text[256] = "", **name;
	const struct doctor_words w = {.one = bdf};
	size_t used = 0;
	ssize_t n;

	if (!doctor_link(&d->source, group, "/sys/bus/pci/devices/%s/iommu_group", bdf))
		return;
	n = doctor_names(&d->source, &name, "/sys/kernel/iommu_groups/%s/devices", group);
	for (ssize_t i = 0; i < n && used < sizeof(text); i++)
		if (strcmp(name[i], bdf) != 0)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
						 used ? ", " : "", name[i]);
	doctor_names_free(name, n);
	if (used)
		doctor_found(d, s, &w, "%s is in one IOMMU group with %s", bdf, text);
}

static void find_iommu_shared(struct doctor *d, const struct doctor_state *s)
{
	each_function(d, s, false, look_at_neighbours);
}

/* ---- who has the devices ---- */

static void look_at_driver(struct doctor *d, const struct doctor_state *s, const char *bdf)
{
	const struct doctor_words w = {.one = bdf};
	char driver[DOCTOR_LINE];

	if (!doctor_link(&d->source, driver, "/sys/bus/pci/devices/%s/driver", bdf))
		doctor_found(d, s, &w, "%s is meant for " MODULE ", and no driver has it", bdf);
	else if (strcmp(driver, MODULE) != 0)
		doctor_found(d, s, &w, "%s is meant for " MODULE ", and driver %s has it", bdf,
			     driver);
}

static void find_other_driver(struct doctor *d, const struct doctor_state *s)
{
	each_function(d, s, true, look_at_driver);
}

/* What `device add` and `device remove` leave when they are killed (device/underway.h). */
static void find_unfinished(struct doctor *d, const struct doctor_state *s)
{
	const size_t begin = strlen("device-"), end = strlen(TOOL_UNDERWAY);
	char **name, bdf[TOOL_FUNCTION_BDF];
	const struct doctor_words w = {.one = bdf};
	ssize_t n = doctor_names(&d->source, &name, TOOL_LOCAL_STATE);

	for (ssize_t i = 0; i < n; i++) {
		size_t len = strlen(name[i]);

		if (strncmp(name[i], "device-", begin) != 0 || len <= begin + end ||
		    strcmp(name[i] + len - end, TOOL_UNDERWAY) != 0)
			continue;
		snprintf(bdf, sizeof(bdf), "%.*s", (int)(len - begin - end), name[i] + begin);
		doctor_found(d, s, &w, "a change of the driver of %s has begun and not ended", bdf);
	}
	doctor_names_free(name, n);
}

/* A drive that could be given to the module; `device add` refuses one in use. */
static bool find_candidate(struct doctor *d, char ret[DOCTOR_LINE])
{
	char **bdf, class[DOCTOR_LINE];
	ssize_t n = doctor_names(&d->source, &bdf, "/sys/bus/pci/devices");
	bool found = false;

	for (ssize_t i = 0; i < n && !found; i++) {
		found = doctor_line(&d->source, class, "/sys/bus/pci/devices/%s/class", bdf[i]) &&
			strncmp(class, "0x0108", 6) == 0;
		if (found)
			snprintf(ret, DOCTOR_LINE, "%s", bdf[i]);
	}
	doctor_names_free(bdf, n);
	return found;
}

static void find_no_device(struct doctor *d, const struct doctor_state *s)
{
	char bdf[DOCTOR_LINE];
	struct doctor_words w = {.one = bdf};

	if (!module_loaded(d) || each_function(d, s, false, NULL) ||
	    each_function(d, s, true, NULL))
		return;
	if (find_candidate(d, bdf)) {
		doctor_found(d, s, &w, "the module has no device; drive %s could be given to it",
			     bdf);
		return;
	}
	w.mend = "lspci -D # then: sudo {smartio} device add FUNCTION";
	doctor_found(d, s, &w, "the module has no device");
}

/* ---- contiguous memory ---- */

static uint64_t meminfo(const struct doctor *d, const char *field)
{
	char text[DOCTOR_LINE];

	return doctor_field(&d->source, field, text, "/proc/meminfo") ? strtoull(text, NULL, 10)
								      : 0;
}

/*
 * Without an IOMMU a device uses physical addresses, and the kernel's largest contiguous allocation
 * is 4 MiB.
 */
static void find_no_hugepages(struct doctor *d, const struct doctor_state *s)
{
	uint64_t total = meminfo(d, "HugePages_Total:"), left = meminfo(d, "HugePages_Free:");
	char pool[DOCTOR_LINE] = "";

	doctor_line(&d->source, pool, MODULE_DIR "/parameters/pool");
	if (total && left == 0)
		doctor_found(d, s, NULL, "all %" PRIu64 " huge pages are in use", total);
	else if (!total && !iommu_groups(d) && (!*pool || strcmp(pool, "(null)") == 0))
		doctor_found(
			d, s, NULL,
			"the IOMMU is off, the module has no pool, and no huge page is reserved");
	else
		doctor_says(d, s, DOCTOR_FINE, "%" PRIu64 " huge pages, %" PRIu64 " free", total,
			    left);
}

static const struct doctor_state states[] = {
	{"module-missing", DOCTOR_BAD, DOCTOR_HARDWARE, "the kernel module is not loaded",
	 "it was not loaded since the machine was started, or is not built for this kernel; 'device add "
	 "--vfio' does without",
	 find_module_missing, "sudo modprobe smartio || sudo insmod shim/smartio.ko"},
	{"module-version", DOCTOR_BAD, DOCTOR_HARDWARE, "the kernel module is of another version",
	 "SmartIO was installed anew, and the module that was loaded before is still there",
	 find_module_version,
	 "make -C shim clean modules && sudo rmmod smartio && sudo insmod shim/smartio.ko"},
	{"node-missing", DOCTOR_BAD, DOCTOR_HARDWARE, "the module's device node is missing",
	 "udev has not made it, or somebody removed it", find_node_missing,
	 "sudo udevadm trigger --name-match=" NODE
	 " || (sudo rmmod smartio && sudo modprobe smartio)"},
	{"no-group", DOCTOR_BAD, DOCTOR_HARDWARE, "group " GROUP " is missing, or we are not in it",
	 "its members may borrow this machine's devices; else root alone", find_no_group,
	 "sudo groupadd --system " GROUP " && sudo usermod -a -G " GROUP " $USER; newgrp " GROUP
	 " # and start smartiod anew"},
	{"few-locked-memory", DOCTOR_BAD, DOCTOR_HARDWARE, "programs may lock too little memory",
	 "memory that is registered for a device stays in place, and the limit is small by default",
	 find_few_locked,
	 "echo '@" GROUP " hard memlock 1048576' | sudo tee "
	 "/etc/security/limits.d/smartio-memlock.conf # then log in again"},
	{"iommu-off", DOCTOR_BAD, DOCTOR_HARDWARE, "the IOMMU is off",
	 "switched off in the firmware (VT-d, AMD-Vi) or not asked for at boot: who borrows a device "
	 "can make it write to all memory; docs/security.md",
	 find_iommu_off,
	 "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&intel_iommu=on /' /etc/default/grub; " DOCTOR_BOOT_ANEW},
	{"iommu-passthrough", DOCTOR_BAD, DOCTOR_HARDWARE, "the IOMMU translates nothing",
	 "pass-through is the kernel's default here, and a group in use keeps its type: the device "
	 "reaches all memory",
	 find_iommu_passthrough, "sudo {smartio} device remove {1}; sudo {smartio} device add {1}"},
	{"iommu-shared", DOCTOR_WARNING, DOCTOR_HARDWARE, "a device shares its IOMMU group",
	 "nothing isolates the functions of a group from each other", find_iommu_shared,
	 "lspci -D -s {1} # put it into another slot, or take its neighbours from their drivers"},
	{"other-driver", DOCTOR_BAD, DOCTOR_HARDWARE, "another driver has a device",
	 "it was bound again after 'device add', or never released it", find_other_driver,
	 "sudo {smartio} device add {1}"},
	{"unfinished", DOCTOR_WARNING, DOCTOR_HARDWARE, "a device is between two drivers",
	 "'device add' or 'device remove' was killed, or works just now; either can be done again",
	 find_unfinished, "sudo {smartio} device remove {1}"},
	{"no-device", DOCTOR_WARNING, DOCTOR_HARDWARE, "the module has no device",
	 "none was given to it since the module was loaded", find_no_device,
	 "sudo {smartio} device add {1}"},
	{"no-hugepages", DOCTOR_WARNING, DOCTOR_HARDWARE, "huge pages are missing",
	 "without an IOMMU, larger segments than 4 MiB must be in one piece of memory",
	 find_no_hugepages, "sudo sysctl vm.nr_hugepages=512"},
};

const struct doctor_area doctor_module_area = {"module", states,
					       sizeof(states) / sizeof(states[0])};
