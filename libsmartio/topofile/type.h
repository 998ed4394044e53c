/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the keys of a device that its type declares (core/devtype.h). */
#ifndef TOPOFILE_TYPE_H
#define TOPOFILE_TYPE_H

#include "core/devtype.h"
#include "topofile/draft.h"
#include "topofile/value.h"

/* The keys that every device has; the last has no name. */
extern const struct sio_field sio_draft_device_field[];

/*
 * Finds the type that the mapping of a device names. Refuses a missing type, a type without a
 * model, and keys that only other types have.
 */
int sio_type_find(struct sio_source *s, struct sio_spot at, const struct sio_devtype **ret);
/* Converts keys for sio_value_map(), which leaves lists and files to sio_type_read_rest(). */
void sio_type_fields(const struct sio_devkey *key, unsigned n, struct sio_field *ret);
/* Sets the presets of all sizes and numbers in @out, a device or an element of a list. */
void sio_type_presets(const struct sio_devkey *key, unsigned n, void *out);
/* Reads the lists and the files among the type's keys; @spot: where each key is. */
int sio_type_read_rest(struct sio_draft *d, const struct sio_devtype *type,
		       const struct sio_spot *spot, struct sio_topo_device *dev);

#endif
