/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices in their slots: power, identity, pages of BARs, interrupt vectors, watches that wake
 * them.
 */
#ifndef EMU_DEVICE_DEVICE_H
#define EMU_DEVICE_DEVICE_H

#include "emu/engine/engine.h"

#define EMU_VECTORS 2048u /* most of one device, as PCI has it */
#define EMU_WATCHES 1024  /* of one host: each may hold a descriptor */

/* How stores through one mapping of polled pages wake their device. */
struct emu_watch {
	struct emu_object o;
	struct emu_object *target; /* struct emu_bar or emu_map */
	struct emu_run *run;
	uint32_t kind; /* SIO_WATCH_* */
	uint64_t length;
	uint64_t boot; /* of the device's host when it began */
	uint32_t fired;
};

/* An entry of a device's interrupt table that is in use. */
struct emu_vector {
	struct emu_object o;
	struct emu_device *device;
	struct emu_object *target;	 /* interrupt or map; NULL: whatever lies at @address */
	struct emu_requester *requester; /* NULL: not through a window */
	uint64_t address;		 /* as the device addresses it */
	uint64_t iova;			 /* of the page, in the device's domain; @has_iova */
	bool has_iova;
	bool mask;
	uint32_t data, number;
};

struct emu_opened {
	struct emu_object o;
	struct emu_device *device;
};

extern const struct emu_kind emu_kind_device, emu_kind_bar, emu_kind_watch, emu_kind_vector;

/* device.c: @physical: of a virtual function, which ends before its physical one; else NULL. */
int emu_device_new(struct emu_host *h, struct emu_device *physical,
		   const struct sio_topo_device *topo, const struct emu_dev_model *const *models,
		   struct emu_device **ret, struct sio_err *reterr);
void emu_device_free(struct emu_device *d);
/* Its model ends. Its memory stays, for what still refers to it. */
void emu_device_done(struct emu_device *d);
/*
 * The device's host starts: fresh pages and regions, power-on reset of the model, if the device is
 * in its slot.
 */
int emu_device_power_on(struct emu_device *d, struct sio_err *reterr);
void emu_device_power_off(struct emu_device *d);
/* The same for a device that is put into its slot, or pulled out; @power: its media are lost. */
int emu_device_plug(struct emu_device *d, bool power, struct sio_err *reterr);
void emu_device_unplug(struct emu_device *d);

/* config.c */
int emu_config_new(struct emu_device *d);
void emu_config_free(struct emu_device *d);
/* As after a reset, and firmware and kernel have enabled so many virtual functions. */
void emu_config_reset(struct emu_device *d, unsigned functions);
/* How many virtual functions of @d are enabled: the first ones of them. */
unsigned emu_config_functions(const struct emu_device *d);
/*
 * What a host's kernel does that is told a number of virtual functions: those that are there go,
 * and @n come. -EINVAL: it has less; -ENODEV: it is not there; -ENOMEM, -EMFILE: one is missing.
 */
int emu_config_enable(struct emu_device *d, unsigned n, struct sio_err *reterr);

/* slot.c: pulls the device out of its slot, or puts it (@in) back, with its virtual functions. */
int emu_slot_set(struct emu_device *d, bool in, struct sio_err *reterr);
/*
 * Devices that the cluster's file adds while the room runs: all of a host's are outside their slots
 * first, and then put in with emu_slot_set(); those of a host that is off are just there.
 */
void emu_slot_new(struct emu_device *d);
/* It is taken out of its slot for good; its virtual functions were before. */
void emu_slot_remove(struct emu_device *d);
/* Virtual function @number (from 1 on) of @d; NULL: there is none. */
struct emu_device *emu_slot_function(struct emu_device *d, unsigned number);
/* The first @n virtual functions of @d are there, others are not: their users are notified. */
int emu_slot_functions_set(struct emu_device *d, unsigned n, struct sio_err *reterr);
/*
 * A reset of a physical function clears its VF Enable, and its host enables as many virtual ones
 * again: each disappears and comes back, as new, and its users are notified.
 */
void emu_slot_functions_renew(struct emu_device *d);

/* bar.c */
void emu_bar_cut(struct emu_bar *b);
uint64_t emu_run_key(const struct emu_run *run); /* for emu_check_*: below all object ids */
volatile void *emu_bar_view(struct emu_dev *dev, unsigned index);
volatile void *emu_bar_mirror(struct emu_dev *dev, unsigned index);

/* cut.c */
/* All that hosts have mapped of @run of @d (NULL: of all its pages) leads nowhere any more. */
void emu_pages_cut(struct emu_device *d, struct emu_run *run);
/* The same for DMA mappings, grants and multicast overlays of one view. */
void emu_view_cut(const struct emu_bar *b);
/*
 * A reset takes the doorbells from all who have mapped them: the device has new pages, and the old
 * ones read as ones. -errno: nothing was done.
 */
int emu_doorbells_renew(struct emu_device *d);
/* Every mapping of the memory reads as ones from now on. */
void emu_fill_ones(const struct emu_room *r, const struct emu_mem *m);

/* vector.c */
/* The device raised @vector: sends its message, or marks it as pending. */
void emu_vector_raise(struct emu_dev *dev, unsigned vector);
/* A reset of the device: pending interrupts are dropped. */
void emu_vectors_reset(struct emu_device *d);

/* watch.c */
/* See emu_room_naps() and the functions behind it. */
bool emu_watches_nap(struct emu_room *r);
void emu_watches_doze(struct emu_room *r, bool asleep);
void emu_watch_fired(struct emu_host *h, uint64_t id);
void emu_watch_broken(struct emu_host *h, uint64_t id);

#endif
