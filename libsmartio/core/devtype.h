/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of emulated devices, as topology files name them: each declares its own keys, in one table.
 * The reader of topology files, its errors, the schema for editors, the manual page, the choices of
 * smartio and the comparison of two files are made from it. The table of a model is
 * emu/devices/NAME/keys.h; libsmartio/topofile lists them all.
 */
#ifndef CORE_DEVTYPE_H
#define CORE_DEVTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/topology.h"

#define SIO_DEVKEY_POWER UINT64_MAX
#define SIO_DEVKEY_KEYS 14  /* most keys of a type */
#define SIO_DEVKEY_CHOICE 2 /* values */

enum sio_devkey_kind {
	SIO_DEVKEY_SIZE = 1, /* uint64_t: 4096, 256M */
	SIO_DEVKEY_NUMBER,   /* uint32_t */
	SIO_DEVKEY_LIST,     /* mappings, each with keys of its own */
	SIO_DEVKEY_FILE,     /* const char *: an absolute path, of the topology's; each once */
};

struct sio_devkey {
	const char *name;
	enum sio_devkey_kind kind;
	/* Of what it sets: in struct sio_topo_device, or in an element of the list. */
	size_t offset;
	/*
	 * Both are right; a multiple of @step is (0: any; SIO_DEVKEY_POWER: a power of 2). Lists:
	 * so many elements.
	 */
	uint64_t min, max, step;
	uint64_t choice[SIO_DEVKEY_CHOICE]; /* [0] not 0: only these are right, not @min to @max */
	uint64_t preset;		    /* its value where the file does not give one */
	bool required;
	const char *absent; /* what that means, in words; NULL: @preset says it */
	const char *text;   /* for users: what it is, beginning in lower case */
	/* Of lists: the element's keys and size, and where the uint32_t of their number is. */
	const struct sio_devkey *item;
	unsigned n_items;
	size_t item_size, count;
	const char *instead_of[3]; /* keys that may not be given beside it */
	const char *needs;	   /* files: the key that must be given beside it; NULL: none */
};

struct sio_devtype {
	const char *name;  /* as in the topology file */
	const char *title; /* with its article: "a memory device" */
	const char *text;  /* for users: one sentence, without its full stop */
	const struct sio_devkey *key;
	unsigned n_keys;
	/* Sets what follows from other keys; NULL: nothing does. */
	void (*derive)(struct sio_topo_device *d);
};

#define SIO_DEVTYPE_KEYS(table) .key = (table), .n_keys = sizeof(table) / sizeof((table)[0])
/* A member of the device, and one of an element of a list. */
#define SIO_DEVKEY_AT(member) .offset = offsetof(struct sio_topo_device, member)

#endif
