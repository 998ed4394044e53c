/* SPDX-License-Identifier: BSD-2-Clause */
/* A machine that the test is, for the port by VFIO; its process can be another one at any time. */
#ifndef TESTS_PORT_VFIO_FAKE_H
#define TESTS_PORT_VFIO_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "smartio/uapi.h"
#include "smartiod/port_vfio/vfio_port.h"

#define FAKE_OWNERS 4096
#define FAKE_KEPT 16384
#define FAKE_DEVICES 2 /* of one IOMMU group */

struct fake_evt {
	struct fake_evt *next;
	size_t len;
	int fds[SIO_PORT_MAX_FDS];
	unsigned n_fds;
	uint64_t data[SIO_PORT_MAX_PACKET / 8];
};

/* What outlives the process, as in systemd's store. */
struct fake_kept {
	struct vfio_head head;
	struct vfio_device_record device[FAKE_DEVICES];
	struct vfio_record record[FAKE_KEPT];
	int fd[FAKE_KEPT]; /* -1: it has none */
	unsigned n;
};

struct fake {
	struct vfio_port *port;
	struct vfio_ops ops;
	struct fake_evt *first, **last;
	unsigned queued;
	struct {
		uint64_t id;
		int fd;
	} owner[FAKE_OWNERS];
	unsigned n_owners;
	uint64_t device, resetting;
	int device_fd;
	unsigned opens;		/* devices that are open */
	unsigned maps, vectors; /* that the machine has now */
	uint64_t mapped, bytes; /* sums of their addresses and lengths, and of their lengths */
	uint64_t offset;	/* in its file, of what was mapped last */
	uint64_t gaps;		/* that a new process had unmapped */
	bool wrong;		/* it was asked for what cannot be */
	bool ending;		/* the process ends: the machine stays as it is */
	uint32_t few;		/* interrupts that the machine has for it; 0: enough */
	bool wide;		/* its IOMMU's addresses have all 64 bits */
	bool overflowed;	/* events were dropped since the daemon read */
	struct fake_kept *kept; /* NULL: nothing is kept */
	unsigned restarts;
	int socket; /* smartio-vfio; -1: the fake */
	char path[108];
};

/* "fake", or "kept": it is another process before each request. */
int fake_open(struct fake *f, bool kept);
/* The process is killed; another one goes on. Return: 0; -errno. */
int fake_restart(struct fake *f);
/* The store loses the descriptor of an object. */
void fake_lose(struct fake *f, uint64_t id);
/* The device ends, and all; what should not be left, or happen: not 0. */
int fake_close(struct fake *f);
/* What the machine has to say. */
void fake_look(struct fake *f);
/* vfio_group.c */
struct port_world;
void vfio_group_test(struct port_world *w, struct fake *f);
void vfio_bar_test(struct port_world *w, struct fake *f);
void vfio_bar_in_reset(struct port_world *w, struct fake *f);
void vfio_end_in_reset(struct port_world *w, struct fake *f);
/* Nobody will read them; their descriptors are closed. */
void fake_drop_events(struct fake *f);

#endif
