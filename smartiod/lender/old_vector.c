/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vectors that borrows have had since before this daemon was started, until their programs claim
 * them.
 */
#include <stdlib.h>

#include "smartiod/lender/lend.h"

bool smartiod_old_vector_has(const struct smartiod_device *dev, uint32_t number)
{
	const struct smartiod_old_vector *v = dev->lent->old_vectors;

	while (v && v->number != number)
		v = v->next;
	return v;
}

void smartiod_old_vectors_end(struct smartiod_loan *l)
{
	struct smartiod_old_vector **at = &l->device->lent->old_vectors, *v;

	while ((v = *at)) {
		if (v->loan != l) {
			at = &v->next;
			continue;
		}
		*at = v->next;
		free(v);
	}
}

void smartiod_old_vectors_irq_ends(struct smartiod *d, uint64_t irq)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->devices, key))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);
		struct smartiod_old_vector **at = &dev->lent->old_vectors, *v;

		key = n->key;
		while ((v = *at)) {
			struct sio_req_vector off = {
				.h.op = SIO_OP_VECTOR, .device = dev->port.id, .vector = v->number};

			if (v->irq != irq) {
				at = &v->next;
				continue;
			}
			smartiod_port_send(d, &off, sizeof(off));
			*at = v->next;
			free(v);
		}
	}
}
