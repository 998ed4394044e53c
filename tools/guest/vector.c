/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's vectors. Each is tied to an interrupt of this host that triggers the emulator's
 * eventfd, so the device's messages do not pass through this process.
 */
#include "base/output.h"
#include "eventfd/eventfd.h"
#include "guest/relay.h"
#include "smartio/ext.h"

static void untie(struct relay *r, unsigned vector)
{
	struct relay_vector *v = &r->vector[vector];
	sci_error_t err;

	if (!v->interrupt)
		return;
	if (r->state != RELAY_LOST)
		smartio_disconnect_device_interrupt(r->device, vector, &err);
	SCIRemoveInterrupt(v->interrupt, 0, &err);
	if (err != SCI_ERR_OK)
		tool_note("%s: vector %u: its interrupt stays: %s", r->name, vector,
			  smartio_last_error());
	v->interrupt = NULL;
}

static sci_error_t tie(struct relay *r, unsigned vector, int eventfd)
{
	struct relay_vector *v = &r->vector[vector];
	sci_remote_interrupt_t to;
	unsigned number = 0;
	sci_error_t err, ignored;

	smartio_import_interrupt(r->sd, &v->interrupt, r->adapter, &number, eventfd, 0, &err);
	if (err != SCI_ERR_OK) {
		v->interrupt = NULL;
		return err;
	}
	SCIConnectInterrupt(r->sd, &to, r->node, r->adapter, number, SCI_INFINITE_TIMEOUT, 0, &err);
	if (err == SCI_ERR_OK) {
		smartio_connect_device_interrupt(r->device, &vector, to, &err);
		SCIDisconnectInterrupt(to, 0, &ignored);
	}
	if (err != SCI_ERR_OK) {
		SCIRemoveInterrupt(v->interrupt, 0, &ignored);
		v->interrupt = NULL;
	}
	return err;
}

void relay_vector_set(struct relay *r, unsigned vector, int eventfd)
{
	struct relay_vector *v = &r->vector[vector];

	const bool again = v->again;

	untie(r, vector);
	if (eventfd < 0 || r->state == RELAY_LOST || r->state == RELAY_IDLE)
		return;
	v->again = true;
	if (tie(r, vector, eventfd) != SCI_ERR_OK) {
		tool_note("%s: vector %u: %s", r->name, vector, smartio_last_error());
		return;
	}
	/*
	 * An interrupt that the device sent since the first tie, while there was none, was lost, so
	 * one is raised here: drivers tolerate one without a cause.
	 */
	if (again)
		sio_eventfd_add(r->machine->events, eventfd, 1);
}
