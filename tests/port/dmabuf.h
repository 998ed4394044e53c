/* SPDX-License-Identifier: BSD-2-Clause */
/* dma-bufs of several drivers, for tests of a real kernel. Each -1: this kernel has none. */
#ifndef PORT_DMABUF_H
#define PORT_DMABUF_H

#include "port.h"

#define DMABUF_SIZE (16 * 4096u)

/* A program's memfd: single pages. */
int dmabuf_of_udmabuf(struct port_world *w);
/* Memory that the kernel's heap gives: pieces of several pages. */
int dmabuf_of_heap(struct port_world *w);
/* One piece, of a driver that wants importers to be as those of graphics cards are (shim/test). */
int dmabuf_of_card(struct port_world *w);

/* What that driver can be asked: CARD_GIVE gives the descriptor of a new one. */
enum { CARD_GIVE = 0x5300, CARD_TAKE_BACK, CARD_PINS };
int dmabuf_card(unsigned long what);

#endif
