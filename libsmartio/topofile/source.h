/* SPDX-License-Identifier: BSD-2-Clause */
/* The file that is being read: the position in it, and errors that name the position. */
#ifndef TOPOFILE_SOURCE_H
#define TOPOFILE_SOURCE_H

#include <stddef.h>
#include <yaml.h>

#include "core/err.h"

/* Both numbers from 1; a column is a character. Zero: not in the file. */
struct sio_place {
	unsigned line, column;
};

/* A value in the file, for errors that are found later. Zero: it is not in the file. */
struct sio_spot {
	struct sio_place at;  /* of the value, or of what is wrong */
	struct sio_place key; /* of its key; in a list as @at */
	yaml_node_t *value;
};

struct sio_source {
	const char *name; /* of the file */
	yaml_document_t *doc;
	struct sio_err *reterr;
	char path[192]; /* of the key at hand: "hosts.lender.ram" */
	size_t path_len;
};

/*
 * The place of @value; behind an alias the place of the @key is more helpful. @key: NULL in a list.
 */
struct sio_spot sio_source_spot(const yaml_node_t *key, yaml_node_t *value);
/* The same within @owner; what an alias brings there has another place, and gets the owner's. */
struct sio_spot sio_source_inside(struct sio_spot owner, const yaml_node_t *key,
				  yaml_node_t *value);
/* For an error about the key, not the value: the same with the key's place. */
struct sio_spot sio_source_key(struct sio_spot spot);
/* For a part that is missing: the key that it would belong to, and no value. */
struct sio_spot sio_source_missing(struct sio_spot owner);
/* Converts libyaml's mark. */
struct sio_place sio_source_place(yaml_mark_t mark);

/* Enters a key or, with name NULL, list item @index. Return: the argument of sio_source_leave(). */
size_t sio_source_enter(struct sio_source *s, const char *name, unsigned index);
void sio_source_leave(struct sio_source *s, size_t mark);

/*
 * Makes the error "FILE:LINE:COLUMN: key 'PATH': value 'VALUE': TEXT" with -EINVAL. TEXT says what
 * is wrong; what would be right. Without a value (or with an empty @path) that part is left out.
 */
int sio_source_fail(struct sio_source *s, struct sio_spot spot, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for key @path. */
int sio_source_fail_at(struct sio_source *s, struct sio_spot spot, const char *path,
		       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* "FILE: no memory" with -ENOMEM. */
int sio_source_no_memory(struct sio_source *s);
/* The file's name as errors show it: its end, if it is long. */
const char *sio_source_name(const char *name);

/* The node of the document with number @item. */
yaml_node_t *sio_source_node(struct sio_source *s, int item);
/* Text of a scalar; NULL: it is none, or holds a NUL byte. */
const char *sio_source_text(const yaml_node_t *node);

#endif
