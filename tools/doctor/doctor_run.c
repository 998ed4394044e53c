/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks the tables of states. */
#include <stdlib.h>

#include "doctor/doctor_facts.h"

static const struct doctor_area *const areas[] = {
	&doctor_cluster_area, &doctor_resources_area, &doctor_module_area,
	&doctor_vfio_area,    &doctor_machine_area,   &doctor_measure_area,
};

/* Why a state cannot occur here at all; NULL: it can. */
static const char *not_here(const struct doctor *d, enum doctor_need need)
{
	switch (need) {
	case DOCTOR_ANYWHERE:
		break;
	case DOCTOR_CLUSTER:
		return d->n_clusters ? NULL : "no cluster runs";
	case DOCTOR_HARDWARE:
		return doctor_wants_hardware(d) ? NULL : "of real devices; nothing here uses any";
	case DOCTOR_MEASURE:
		return d->measure ? NULL : "of measurements: with --measure";
	case DOCTOR_TRY:
		return *d->source.root ? "another machine's tree" : NULL;
	}
	return NULL;
}

void doctor_examine(struct doctor *d)
{
	const char *why;

	doctor_collect(d);
	for (size_t a = 0; a < sizeof(areas) / sizeof(areas[0]); a++) {
		d->area = areas[a];
		for (size_t i = 0; i < areas[a]->n; i++) {
			const struct doctor_state *s = &areas[a]->state[i];
			size_t before = d->n_findings;

			why = not_here(d, s->need);
			if (why)
				doctor_says(d, s, DOCTOR_NOT_HERE, "%s", why);
			else
				s->find(d, s);
			if (d->n_findings == before)
				doctor_says(d, s, DOCTOR_FINE, "no");
		}
	}
}

void doctor_done(struct doctor *d)
{
	for (size_t i = 0; i < d->n_findings; i++) {
		free(d->finding[i].evidence);
		free(d->finding[i].mend);
	}
	free(d->finding);
	doctor_collect_done(d);
}
