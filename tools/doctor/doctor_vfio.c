/* SPDX-License-Identifier: BSD-2-Clause */
/* States of real devices without a kernel module of SmartIO (docs/vfio.md). */
#include <stdio.h>
#include <string.h>

#include "base/local.h"
#include "core/iommufd_abi.h"
#include "device/device_vfio.h"
#include "doctor/doctor_facts.h"

#define NOTES TOOL_LOCAL_STATE "/vfio"
#define UNSAFE "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"

bool doctor_by_vfio(const struct doctor *d)
{
	char **name;
	ssize_t n;

	if (doctor_exists(&d->source, "/sys/module/" TOOL_FUNCTION_DRIVER))
		return false;
	n = doctor_names(&d->source, &name, NOTES);
	doctor_names_free(name, n);
	return n > 0;
}

/* Calls @fn for the functions that were added by --vfio. */
static void each_added(struct doctor *d, const struct doctor_state *s,
		       void (*fn)(struct doctor *d, const struct doctor_state *s, const char *bdf))
{
	char **bdf;
	ssize_t n = doctor_names(&d->source, &bdf, NOTES);

	for (ssize_t i = 0; i < n; i++)
		fn(d, s, bdf[i]);
	doctor_names_free(bdf, n);
}

static void find_world(struct doctor *d, const struct doctor_state *s)
{
	if (doctor_exists(&d->source, "/sys/module/" TOOL_FUNCTION_DRIVER))
		doctor_says(d, s, DOCTOR_FINE, "smartio.ko: it is loaded");
	else if (doctor_by_vfio(d))
		doctor_says(d, s, DOCTOR_FINE,
			    "VFIO: smartio.ko is not loaded, and " NOTES
			    " names functions that were added with --vfio");
	else
		doctor_says(
			d, s, DOCTOR_NOT_HERE,
			"none: smartio.ko is not loaded, and no function was added with --vfio");
}

static void find_vfio_missing(struct doctor *d, const struct doctor_state *s)
{
	if (doctor_by_vfio(d) &&
	    !doctor_exists(&d->source, "/sys/bus/pci/drivers/" TOOL_VFIO_DRIVER))
		doctor_found(d, s, NULL, "there is no /sys/bus/pci/drivers/" TOOL_VFIO_DRIVER);
}

static void look_at_driver(struct doctor *d, const struct doctor_state *s, const char *bdf)
{
	const struct doctor_words w = {.one = bdf};
	char driver[DOCTOR_LINE];

	if (!doctor_link(&d->source, driver, "/sys/bus/pci/devices/%s/driver", bdf))
		doctor_found(d, s, &w, "%s was added with --vfio, and no driver has it", bdf);
	else if (strcmp(driver, TOOL_VFIO_DRIVER) != 0)
		doctor_found(d, s, &w, "%s was added with --vfio, and driver %s has it", bdf,
			     driver);
}

static void find_vfio_driver(struct doctor *d, const struct doctor_state *s)
{
	each_added(d, s, look_at_driver);
}

static void find_vfio_unsafe(struct doctor *d, const struct doctor_state *s)
{
	char value[DOCTOR_LINE];

	if (doctor_line(&d->source, value, UNSAFE) && (*value == 'Y' || *value == '1'))
		doctor_found(d, s, NULL, UNSAFE " is %s", value);
}

static void look_at_backend(struct doctor *d, const struct doctor_state *s, const char *bdf)
{
	char **name;
	ssize_t n = doctor_names(&d->source, &name, "/sys/bus/pci/devices/%s/vfio-dev", bdf);

	if (n > 0 && doctor_exists(&d->source, SIO_VFIO_CDEVS "/%s", name[0]) &&
	    doctor_exists(&d->source, SIO_IOMMUFD_DEVICE))
		doctor_says(d, s, DOCTOR_FINE,
			    "%s: iommufd, which this kernel has; smartio-vfio --backend group does "
			    "without, device info tells",
			    bdf);
	else
		doctor_says(d, s, DOCTOR_FINE,
			    "%s: its IOMMU group; this kernel has no " SIO_VFIO_CDEVS
			    " with " SIO_IOMMUFD_DEVICE,
			    bdf);
	doctor_names_free(name, n);
}

static void find_vfio_backend(struct doctor *d, const struct doctor_state *s)
{
	each_added(d, s, look_at_backend);
}

static void look_at_trust(struct doctor *d, const struct doctor_state *s, const char *bdf)
{
	const struct doctor_words w = {.one = bdf};

	doctor_found(
		d, s, &w,
		"%s: a program that has borrowed it can reach all of its registers and doorbells",
		bdf);
}

static void find_vfio_trust(struct doctor *d, const struct doctor_state *s)
{
	each_added(d, s, look_at_trust);
}

static const struct doctor_state states[] = {
	{"world", DOCTOR_NOTE, DOCTOR_HARDWARE, "which world serves this machine's devices",
	 "smartio.ko where it is loaded, else VFIO", find_world, ""},
	{"vfio-missing", DOCTOR_BAD, DOCTOR_HARDWARE, "vfio-pci is not loaded",
	 "it was not loaded since the machine was started", find_vfio_missing,
	 "sudo modprobe vfio-pci"},
	{"vfio-driver", DOCTOR_BAD, DOCTOR_HARDWARE, "another driver has a device of VFIO's",
	 "it was bound again after 'device add --vfio'", find_vfio_driver,
	 "sudo {smartio} device add {1} --vfio"},
	{"vfio-backend", DOCTOR_NOTE, DOCTOR_HARDWARE, "how the kernel gives devices of VFIO's",
	 "iommufd where it has that, else IOMMU groups", find_vfio_backend, ""},
	{"vfio-unsafe", DOCTOR_BAD, DOCTOR_HARDWARE, "VFIO is allowed to work without an IOMMU",
	 "somebody enabled it: whoever has a device then can make it write to all memory; SmartIO "
	 "does not use this mode",
	 find_vfio_unsafe, "echo N | sudo tee " UNSAFE},
	{"vfio-trust", DOCTOR_NOTE, DOCTOR_HARDWARE, "programs must trust each other with a device",
	 "by VFIO a device's descriptor is one for all of it; the IOMMU keeps it from memory that "
	 "nobody gave it, docs/security.md",
	 find_vfio_trust,
	 "sudo {smartio} device remove {1}; sudo modprobe smartio; sudo {smartio} device add {1}"},
};

const struct doctor_area doctor_vfio_area = {"vfio", states, sizeof(states) / sizeof(states[0])};
