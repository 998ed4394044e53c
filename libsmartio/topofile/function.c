/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Virtual functions (PCI Express, single root I/O virtualization): each is a device of the host's,
 * in the slot of its physical function, with the function number behind it.
 */
#include <stdio.h>
#include <string.h>

#include "topofile/draft.h"

#define SUFFIX "-vf%u"
#define SUFFIX_LEN (sizeof("-vf7") - 1)

/* The function can be added: there is room for it, and it has a name of its own. */
static int check(struct sio_draft *d, const struct sio_topo_host *h, unsigned physical,
		 const char *name, struct sio_spot at)
{
	const struct sio_topo_host *other;
	char path[SIO_DRAFT_PATH];
	size_t line;

	sio_draft_device_path(h, physical, "virtual_functions", path);
	if (h->n_devices == SIO_DRAFT_DEVICES)
		return sio_source_fail_at(d->source, at, path,
					  "with them the host has more devices than %d; fewer are "
					  "right",
					  SIO_DRAFT_DEVICES);
	if (strlen(name) >= SIO_NAME_LEN)
		return sio_source_fail_at(
			d->source, at, path,
			"'%s' is too long for a function's name; a device with a name "
			"of at most %zu characters is right",
			name, SIO_NAME_LEN - 1 - SUFFIX_LEN);
	other = sio_draft_find_device(d, name, &line);
	if (other)
		return sio_source_fail_at(
			d->source, at, path,
			"host '%s' has a device of the name '%s' in line %zu, which "
			"would be a function's; another name is right",
			other->name, name, line);
	return 0;
}

static int add_function(struct sio_draft *d, unsigned host, unsigned physical, uint32_t number)
{
	struct sio_topo_host *h = &d->t->host[host];
	const struct sio_topo_device *pf = &h->device[physical];
	struct sio_topo_device *vf = &h->device[h->n_devices];
	char name[sizeof(pf->name) + SUFFIX_LEN];
	int rc;

	snprintf(name, sizeof(name), "%s" SUFFIX, pf->name, number);
	rc = check(d, h, physical, name, d->host[host].device[physical].functions_at);
	if (rc < 0)
		return rc;
	*vf = *pf;
	memcpy(vf->name, name, strlen(name) + 1);
	vf->bdf = pf->bdf | number;
	vf->bar_base = 0;
	vf->virtual_functions = 0;
	vf->physical = physical + 1;
	/* Whatever the physical function has. */
	vf->reset = SIO_TOPO_RESET_FUNCTION;
	d->host[host].device[h->n_devices++] =
		(struct sio_draft_device){.at = d->host[host].device[physical].at};
	return 0;
}

int sio_draft_add_functions(struct sio_draft *d, unsigned host)
{
	const struct sio_topo_host *h = &d->t->host[host];
	unsigned n = h->n_devices;
	int rc = 0;

	for (unsigned i = 0; i < n; i++)
		for (uint32_t k = 1; rc == 0 && k <= h->device[i].virtual_functions; k++)
			rc = add_function(d, host, i, k);
	return rc;
}
