/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The controllers of one drive (NVMe 1.4, section 1.5): one for each PCI function, the physical one
 * and its virtual ones. Queues, registers, features and logs are each controller's own; the
 * namespaces are of all.
 */
#include <string.h>

#include "emu/devices/nvme/model.h"

static struct emu_nvme *first(struct emu_nvme *m)
{
	return m->physical ? m->physical : m;
}

static void copy(struct emu_nvme *to, const struct emu_nvme *from)
{
	to->media = from->media;
	to->media_size = from->media_size;
	to->n_ns = from->n_ns;
	memcpy(to->ns, from->ns, sizeof(to->ns));
}

void emu_nvme_function_join(struct emu_nvme *m, struct emu_nvme *physical)
{
	struct emu_nvme **end;

	if (!physical)
		return;
	m->physical = physical;
	m->files = physical->files;
	m->controller = 1;
	for (end = &physical->next_function; *end; end = &(*end)->next_function)
		m->controller++;
	*end = m;
	copy(m, physical);
}

void emu_nvme_function_leave(struct emu_nvme *m)
{
	struct emu_nvme **at = m->physical && !m->left ? &m->physical->next_function : NULL;

	if (!m->physical) {
		for (struct emu_nvme *f = m->next_function; f; f = f->next_function) {
			f->left = true;
			f->files = NULL;
		}
		return;
	}
	if (!at)
		return;
	emu_nvme_jobs_end(m, NULL);
	while (*at && *at != m)
		at = &(*at)->next_function;
	if (*at)
		*at = m->next_function;
}

void emu_nvme_functions_follow(struct emu_nvme *m)
{
	for (struct emu_nvme *f = first(m); f; f = f->next_function)
		if (f != m)
			copy(f, m);
}

void emu_nvme_functions_renew(struct emu_nvme *m)
{
	if (m->physical)
		return;
	for (struct emu_nvme *f = m->next_function; f; f = f->next_function) {
		if (!f->offline)
			continue;
		f->offline = false;
		emu_nvme_function_reset(f);
	}
}

bool emu_nvme_functions_busy(struct emu_nvme *m)
{
	for (struct emu_nvme *f = first(m); f; f = f->next_function)
		if (f != m && f->running)
			return true;
	return false;
}
