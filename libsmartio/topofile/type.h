/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading what the tables of types say: keys, presets, lists. */
#ifndef TOPOFILE_TYPE_H
#define TOPOFILE_TYPE_H

#include "core/devtype.h"
#include "topofile/draft.h"
#include "topofile/value.h"

/* The keys that every device has; the last has no name. */
extern const struct sio_field sio_draft_device_field[];

/*
 * Finds the type that the mapping of a device names. Refuses a missing type, one that there is no
 * model of, and keys that other types have and this one does not.
 */
int sio_type_find(struct sio_source *s, struct sio_spot at, const struct sio_devtype **ret);
/* What sio_value_map() has to know of these keys; lists are the caller's. */
void sio_type_fields(const struct sio_devkey *key, unsigned n, struct sio_field *ret);
/* Gives each key of @out, a device or an element of a list, its value where the file has none. */
void sio_type_presets(const struct sio_devkey *key, unsigned n, void *out);
/* Reads the lists and the files among the type's keys; @spot: of its keys. */
int sio_type_read_rest(struct sio_draft *d, const struct sio_devtype *type,
		       const struct sio_spot *spot, struct sio_topo_device *dev);

#endif
