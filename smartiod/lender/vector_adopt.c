/* SPDX-License-Identifier: BSD-2-Clause */
/* Vectors of before this daemon was started that trigger interrupts of other hosts. */
#include <errno.h>
#include <stdlib.h>

#include "smartiod/lender/lend.h"

static int adopt(struct smartiod *d, struct smartiod_device *dev, const struct sio_list_entry *e)
{
	struct smartiod_old_vector **at = &dev->lent->old_vectors, *v;
	int n = 0;

	while ((v = *at)) {
		if (v->irq != e->id) {
			at = &v->next;
			continue;
		}
		if (smartiod_vector_adopt(d, v->loan, v->number, e) < 0)
			return -ENOMEM;
		*at = v->next;
		free(v);
		n++;
	}
	return n;
}

int smartiod_vectors_adopt(struct smartiod *d, const struct sio_list_entry *e)
{
	struct smartiod_tree_node *node;
	uint64_t key = 0;
	int n = 0, rc;

	while ((node = smartiod_tree_after(&d->devices, key))) {
		key = node->key;
		rc = adopt(d, SMARTIOD_OF(node, struct smartiod_device, by_fdid), e);
		if (rc < 0)
			return rc;
		n += rc;
	}
	return n;
}
