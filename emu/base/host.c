/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters and devices of a host, by number. */
#include "emu/base/state.h"

int emu_adapter_get(struct emu_request *rq, unsigned index, struct emu_adapter **ret)
{
	if (index >= rq->host->topo->n_adapters)
		return sio_fail(&rq->err, -ENODEV, "no adapter %u: %s has %u", index,
				rq->host->topo->name, rq->host->topo->n_adapters);
	*ret = &rq->host->adapter[index];
	return 0;
}

int emu_adapter_use(struct emu_request *rq, unsigned index, struct emu_adapter **ret)
{
	int rc = emu_adapter_get(rq, index, ret);

	if (rc == 0 && (*ret)->changing)
		return sio_fail(
			&rq->err, -EBUSY,
			"adapter %u of %s is changed by a reload; when that is done, or given again "
			"if its command died, is right",
			index, rq->host->topo->name);
	return rc;
}

struct emu_device *emu_device_known(struct emu_host *h, uint64_t id)
{
	for (unsigned i = 0; i < h->n_devices; i++)
		if (h->device[i]->topo->fdid == id)
			return h->device[i];
	return NULL;
}

void emu_slot_enter(struct emu_device *d, enum emu_slot_event event)
{
	if (!emu_slot_next(d->slot, event, &d->slot))
		abort();
}

struct emu_device *emu_device_find(struct emu_host *h, uint64_t id)
{
	struct emu_device *d = emu_device_known(h, id);

	return d && !emu_device_is_out(d) ? d : NULL;
}

int emu_device_get(struct emu_request *rq, uint64_t id, struct emu_device **ret)
{
	struct emu_device *d = emu_device_find(rq->host, id);

	if (!d)
		return sio_fail(&rq->err, -ENODEV, "%s has no device %#" PRIx64,
				rq->host->topo->name, id);
	if (!d->opened)
		return sio_fail(&rq->err, -EPERM, "device %s is not open; DEVICE_OPEN first",
				d->topo->name);
	*ret = d;
	return 0;
}
