/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Resources of a program, for another module of this kernel that works for the program. The module
 * acts with the program's own rights: it can use what the program has mapped, and receive an
 * interrupt whose descriptor the program has. Each resource belongs to the same owner as before,
 * and ends with it.
 */
#ifndef SHIM_USE_H
#define SHIM_USE_H

#include <linux/types.h>

struct smartio_use {
	void *ram;	  /* NULL: it is no memory of this host */
	void __iomem *io; /* NULL: it is */
};

/*
 * @bytes from @address on of the calling program, within one mapping of a descriptor that
 * smartio.ko gave out. Memory stays until smartio_use_put(). The pages of a device or of a peer can
 * be taken away before, as from the program: then @lost is called, in atomic context, perhaps more
 * than once, and when it has returned they are not to be accessed any more, for they may be
 * another's.
 * -EFAULT: nothing is mapped there; -EINVAL: no mapping of smartio.ko's, or not all of it, or it
 * cannot be written; -ENODEV: what it was of has ended, or has been reset; -ENOMEM.
 */
struct smartio_use *smartio_use_get(unsigned long address, u64 bytes, void (*lost)(void *arg),
				    void *arg);
/* May sleep. @lost is not called any more. NULL is fine. */
void smartio_use_put(struct smartio_use *u);

struct smartio_listener;
/*
 * @heard is called for each interrupt that descriptor @fd of the calling program could be read for,
 * in any context, with interrupts disabled. -EBADF; -EINVAL: it is no interrupt; -ENOMEM.
 */
struct smartio_listener *smartio_listen(int fd, void (*heard)(void *arg), void *arg);
/* May sleep. @heard is not called any more. NULL is fine. */
void smartio_unlisten(struct smartio_listener *l);

#endif
