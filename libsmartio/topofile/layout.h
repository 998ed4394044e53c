/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses that are being laid out: layout.c for each host, range.c behind its chassis. */
#ifndef TOPOFILE_LAYOUT_H
#define TOPOFILE_LAYOUT_H

#include "topofile/draft.h"

/* A part of a host's map. */
struct sio_part {
	uint64_t *base, size; /* *base 0: not placed yet */
	uint64_t align;	      /* where we put it: a power of 2 */
	uint64_t unit;	      /* where the file may put it */
	struct sio_spot at;   /* of the base; zero: it is ours to choose */
	struct sio_spot in_at;
	uint64_t kept; /* the base that is in force; 0: none */
	unsigned host;
	unsigned in; /* as in the topology */
	bool tried;  /* placed by an attempt that may be taken back */
	char path[SIO_DRAFT_PATH];
};

struct sio_layout {
	struct sio_draft *d;
	struct sio_part *part;
	unsigned n;
	uint64_t next; /* below it everything is placed */
	bool dense;    /* what a chassis of another host passes on, and nothing is, is free */
};

/* Is what is in number @in in chassis @index of its host, or in one that is in it? */
bool sio_layout_is_behind(const struct sio_topo_host *h, unsigned in, unsigned index);
/* What it is in its host: "adapters[0].window_base". */
const char *sio_part_name(const struct sio_part *p);
/*
 * End of something placed that @size bytes at @base would touch, of any host; 0: they are free. For
 * something in chassis number @in - 1 of host @host: its range, and those around it, are free.
 */
uint64_t sio_layout_taken(const struct sio_layout *l, uint64_t base, uint64_t size, unsigned host,
			  unsigned in);
/* Finds the lowest place from @from on that is free and ends before @end. False: there is none. */
bool sio_layout_find(const struct sio_layout *l, uint64_t size, uint64_t align, unsigned host,
		     unsigned in, uint64_t from, uint64_t end, uint64_t *ret);

/* range.c: checks that what the file places behind chassis @index of @host is one range. */
int sio_layout_check_aperture(const struct sio_layout *l, unsigned host, unsigned index);
/* Lays each range that has something placed in it, and all that is behind that chassis. */
int sio_layout_ranges(struct sio_layout *l, unsigned host);
/* Of a range that has nothing placed in it; size 0: it is empty. */
int sio_layout_measure(const struct sio_layout *l, unsigned host, unsigned index,
		       uint64_t *ret_size, uint64_t *ret_align);
/* Lays that at @base. */
int sio_layout_put(struct sio_layout *l, unsigned host, unsigned index, uint64_t base);

#endif
