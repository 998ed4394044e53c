/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device model (emu/devices/model.h) as a plain PCI function of the peer of a vfio-user
 * connection. It does not belong to the emulated cluster: its DMA goes to the peer's memory, its
 * interrupts to the peer's eventfds. Without a peer it is idle.
 */
#ifndef EMU_VFIO_DEVICE_H
#define EMU_VFIO_DEVICE_H

#include "emu/devices/model.h"
#include "vfio/session.h"

struct emu_vfio_device;

struct emu_vfio_device_ops {
	uint64_t (*now)(void *ctx); /* nanoseconds, monotonic */
	void (*log)(void *ctx, const char *text);
	/* As of struct emu_dev; all may be NULL. */
	void *(*bulk_new)(void *ctx, uint64_t size);
	void (*bulk_free)(void *ctx, void *data, uint64_t size);
	void (*bulk_zero)(void *ctx, void *data, uint64_t size);
	struct emu_store *(*store)(void *ctx);
	/*
	 * DMA to a bus address where none of the peer's memory is: into @buf, or out of @data, if
	 * that is not NULL. Return: 0; -ENXIO: nothing that is here is there; -EFAULT: it is, and
	 * refuses. NULL: nothing ever is.
	 */
	int (*beside)(void *ctx, uint64_t address, void *buf, const void *data, size_t len);
};

/* The function for a session: @function is the struct emu_vfio_device. */
extern const struct sio_vfio_function_ops emu_vfio_device_function;

/* @topo, @ops and @ctx outlive the device. Return: 0; -errno of the model; -EINVAL; -ENOMEM. */
int emu_vfio_device_new(const struct emu_dev_model *model, const struct sio_topo_device *topo,
			const struct emu_vfio_device_ops *ops, void *ctx,
			struct emu_vfio_device **ret, struct sio_err *reterr);
void emu_vfio_device_free(struct emu_vfio_device *d);
/*
 * Sets the peer that the device works for, as a machine is switched on and off: media stay. NULL:
 * none.
 */
void emu_vfio_device_attach(struct emu_vfio_device *d, struct sio_vfio_session *s);
/* Fills in up to @max named counters: the device's faults, and the model's. Return: how many. */
unsigned emu_vfio_device_counters(struct emu_vfio_device *d, char (*name)[32], uint64_t *value,
				  unsigned max);
/* As the model's step(). */
unsigned emu_vfio_device_step(struct emu_vfio_device *d, unsigned budget);
/* True: nothing happens until a message arrives. */
bool emu_vfio_device_idle(const struct emu_vfio_device *d);

#endif
