/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks of smartio doctor that are of real devices on this machine (docs/hardware.md). */
#include <dirent.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "doctor.h"
#include "function.h"
#include "local.h"
#include "output.h"

#define DRIVER_DIR "/sys/bus/pci/drivers/" TOOL_FUNCTION_DRIVER
#define NODE "/dev/smartio0"
#define GROUP "smartio"
#define WANTED_LOCKED (64ULL << 20) /* of memory that programs register for devices */

static unsigned entries(const char *path)
{
	struct dirent *entry;
	DIR *dir = opendir(path);
	unsigned n = 0;

	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

static void bad(struct tool_finding *f, const char *mend)
{
	f->good = false;
	snprintf(f->mend, sizeof(f->mend), "%s", mend);
}

static void check_node(struct tool_finding *f)
{
	snprintf(f->found, sizeof(f->found), "%s is there", NODE);
	if (access(NODE, F_OK) == 0)
		return;
	snprintf(f->found, sizeof(f->found), "the module is loaded, but %s is not there", NODE);
	bad(f, "sudo udevadm trigger --name-match=" NODE "; else sudo rmmod smartio, sudo modprobe "
	       "smartio");
}

static bool member_of(const struct group *g)
{
	gid_t groups[256];
	int n = getgroups(256, groups);

	if (geteuid() == 0 || getegid() == g->gr_gid)
		return true;
	for (int i = 0; i < n; i++)
		if (groups[i] == g->gr_gid)
			return true;
	return false;
}

static void check_group(struct tool_finding *f)
{
	const struct group *g = getgrnam(GROUP);

	snprintf(f->found, sizeof(f->found), "members of group %s may use smartiod, we too", GROUP);
	if (!g) {
		snprintf(f->found, sizeof(f->found),
			 "there is no group %s: root alone may use "
			 "smartiod",
			 GROUP);
		bad(f, "sudo groupadd --system " GROUP ", then start smartiod anew");
	} else if (!member_of(g)) {
		snprintf(f->found, sizeof(f->found), "we are not in group %s", GROUP);
		bad(f, "sudo usermod -a -G " GROUP " $USER, then log in again");
	}
}

static void check_iommu(struct tool_finding *f)
{
	unsigned n = entries("/sys/kernel/iommu_groups");

	snprintf(f->found, sizeof(f->found), "on, %u groups", n);
	if (n)
		return;
	snprintf(f->found, sizeof(f->found),
		 "off: who borrows a device can make it write to all memory");
	bad(f, "switch on VT-d or AMD-Vi in the firmware; on Intel also boot with intel_iommu=on. "
	       "docs/security.md says what works without");
}

static void check_locked(struct tool_finding *f)
{
	char text[TOOL_SIZE_TEXT];
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		limit.rlim_max = 0;
	if (limit.rlim_max == RLIM_INFINITY)
		snprintf(f->found, sizeof(f->found), "no limit");
	else
		snprintf(f->found, sizeof(f->found), "%s a program",
			 tool_size(limit.rlim_max, text));
	if (limit.rlim_max < WANTED_LOCKED)
		bad(f, "echo '@" GROUP " hard memlock 1048576' | sudo tee "
		       "/etc/security/limits.d/smartio-memlock.conf, then log in again");
}

static void check_local_daemon(struct tool_finding *f)
{
	snprintf(f->found, sizeof(f->found), "smartiod answers");
	if (tool_local_runs())
		return;
	snprintf(f->found, sizeof(f->found), "no smartiod can be asked for this machine's devices");
	bad(f, "sudo smartiod --shim");
}

/*
 * One of our functions: is it translated, and alone in its IOMMU group? Return: whether it is good.
 */
static bool examine_function(const char *bdf, char *ret, size_t size)
{
	char neighbour[TOOL_FUNCTION_BDF], iommu[TOOL_FUNCTION_WORD];
	struct tool_function f;
	struct sio_err err;
	size_t n;

	if (tool_function_find(bdf, &f, &err) < 0)
		return true;
	tool_function_iommu(&f, iommu);
	n = (size_t)snprintf(ret, size, "%s %.40s", f.bdf, *iommu ? iommu : "without IOMMU");
	if (!tool_function_neighbours(&f, neighbour))
		return strcmp(iommu, "identity") != 0;
	if (n < size)
		snprintf(ret + n, size - n, ", in one IOMMU group with %s", neighbour);
	return false;
}

static void check_functions(struct tool_finding *f)
{
	struct dirent *entry;
	DIR *dir = opendir(DRIVER_DIR);
	size_t used = 0;
	bool good = true;

	while (dir && (entry = readdir(dir))) {
		char text[120] = "";

		if (!strchr(entry->d_name, ':'))
			continue;
		good &= examine_function(entry->d_name, text, sizeof(text));
		if (used < sizeof(f->found))
			used += (size_t)snprintf(f->found + used, sizeof(f->found) - used, "%s%s",
						 used ? "; " : "", text);
	}
	if (dir)
		closedir(dir);
	if (!used) {
		snprintf(f->found, sizeof(f->found), "the module has none");
		bad(f, "sudo smartio device add FUNCTION; lspci -D names them");
	} else if (!good) {
		bad(f, "take the neighbours from their drivers and add the device anew; or put it "
		       "into another slot (identity: the IOMMU does not stop it)");
	}
}

void tool_doctor_local(struct tool_findings *ret)
{
	static const struct {
		const char *what;
		void (*check)(struct tool_finding *f);
	} checks[] = {
		{"module", check_node},	      {"group", check_group},
		{"iommu", check_iommu},	      {"memlock", check_locked},
		{"devices", check_functions}, {"this machine", check_local_daemon},
	};

	if (access(DRIVER_DIR, F_OK) < 0) {
		struct tool_finding *f = tool_findings_add(ret, "module");

		snprintf(f->found, sizeof(f->found),
			 "smartio.ko is not loaded; it is for real devices alone");
		return;
	}
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		checks[i].check(tool_findings_add(ret, checks[i].what));
}
