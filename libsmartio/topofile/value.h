/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of known keys: a table says what a mapping may hold and where it goes. */
#ifndef TOPOFILE_VALUE_H
#define TOPOFILE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topofile/source.h"

enum sio_value_kind {
	SIO_VALUE_NODE,	  /* anything: the caller looks at it */
	SIO_VALUE_SIZE,	  /* uint64_t: 4096, 256M */
	SIO_VALUE_NUMBER, /* uint32_t */
	SIO_VALUE_FLAG,	  /* bool: on, off */
	SIO_VALUE_NAME,	  /* char[SIO_NAME_LEN] */
};

struct sio_field {
	const char *name;
	enum sio_value_kind kind;
	size_t offset;	    /* of what it sets, in the caller's struct */
	uint64_t min, max;  /* sizes and numbers: both are right */
	uint64_t step;	    /* a multiple of it is right; 0: any; SIO_VALUE_POWER: a power of 2 */
	uint64_t choice[2]; /* [0] not 0: one of these alone is right */
};
#define SIO_VALUE_POWER UINT64_MAX

/*
 * Reads mapping @node (a missing value is an empty mapping). A key that is not in @field, a key
 * that is given twice and a wrong value are errors. Keys that are not there leave @out as it was,
 * and zero in @spot, which has an element for each field.
 */
int sio_value_map(struct sio_source *s, struct sio_spot at, const struct sio_field *field,
		  size_t n_fields, void *out, struct sio_spot *spot);

/* Is it an empty value, as after "lender:"? */
bool sio_value_is_nothing(const yaml_node_t *node);
/* A name: letter first, then letters, digits, '-' and '_', at most SIO_NAME_LEN - 1 in all. */
int sio_value_name(struct sio_source *s, struct sio_spot at, char *out);
/* Reads a key of a mapping whose keys are names. */
int sio_value_key(struct sio_source *s, yaml_node_t *key, char *out);
/* Parses digits alone, without leading zeros. False: something else, or it does not fit. */
bool sio_value_digits(const char *text, size_t len, uint64_t *ret);

#define SIO_RIGHT_TEXT 128
/*
 * Writes what is right for a size or a number: "512 or 4096", "1M to 16T, a multiple of 4K,".
 * Return: @out.
 */
const char *sio_value_right(const struct sio_field *f, char out[SIO_RIGHT_TEXT]);

#define SIO_SIZE_TEXT 24
/* Writes a size as in the file: 256M. Return: @out, of SIO_SIZE_TEXT bytes. */
const char *sio_value_size_text(uint64_t size, char *out);

#endif
