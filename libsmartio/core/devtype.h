/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of emulated devices, as topology files name them. Each type declares its keys in a table,
 * emu/devices/NAME/keys.h, of which libsmartio/topofile has a list. From these tables come the
 * reader of topology files and its errors, the schema for editors, smartio-topology(5), the choices
 * of "smartio device list --class", and the comparison of two files (core/topodiff.c).
 */
#ifndef CORE_DEVTYPE_H
#define CORE_DEVTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/topology.h"

#define SIO_DEVKEY_POWER UINT64_MAX
#define SIO_DEVKEY_KEYS 14  /* most keys of a type, or of an element of a list */
#define SIO_DEVKEY_CHOICE 2 /* most values of a choice */

enum sio_devkey_kind {
	SIO_DEVKEY_SIZE = 1, /* uint64_t: 4096, 256M */
	SIO_DEVKEY_NUMBER,   /* uint32_t */
	SIO_DEVKEY_LIST,     /* mappings, each with keys of its own */
	SIO_DEVKEY_FILE,     /* const char *: an absolute path, given once in the whole cluster */
};

struct sio_devkey {
	const char *name;
	enum sio_devkey_kind kind;
	/* Of the member that it sets: in struct sio_topo_device, or in an element of the list. */
	size_t offset;
	/*
	 * The least and the largest value that is right, and of what it must be a multiple (0: of
	 * nothing; SIO_DEVKEY_POWER: it is a power of 2). Of lists: how many elements are right.
	 */
	uint64_t min, max, step;
	uint64_t choice[SIO_DEVKEY_CHOICE]; /* if [0] is not 0: the only values that are right */
	uint64_t preset;		    /* its value where the file does not give one */
	bool required;			    /* of an element of a list: it has no preset */
	const char *absent; /* for users: what it means to leave it out; NULL: it is @preset */
	const char *text;   /* for users: what it is, beginning in lower case */
	/*
	 * Of lists (SIO_DEVKEY_ITEMS): the keys of an element, its size, and the offset of the
	 * uint32_t that says how many there are.
	 */
	const struct sio_devkey *item;
	unsigned n_items;
	size_t item_size, count;
	const char *instead_of[3]; /* of lists: keys that may not be given beside it */
	const char *needs;	   /* of files: a key that must be given beside it; NULL: none */
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

/* How many keys a table has; one with more than SIO_DEVKEY_KEYS is not compiled. */
#define SIO_DEVKEY_COUNT(table)                                                                    \
	(sizeof(table) / sizeof((table)[0]) +                                                      \
	 0 * sizeof(char[sizeof(table) / sizeof((table)[0]) <= SIO_DEVKEY_KEYS ? 1 : -1]))
#define SIO_DEVTYPE_KEYS(table) .key = (table), .n_keys = SIO_DEVKEY_COUNT(table)
#define SIO_DEVKEY_ITEMS(table) .item = (table), .n_items = SIO_DEVKEY_COUNT(table)
#define SIO_DEVKEY_AT(member) .offset = offsetof(struct sio_topo_device, member)

#endif
