/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "error.h"
#include "options.h"
#include "smartio/ext.h"

int sio_nvme_copy_namespaces(struct smartio_nvme *n, const struct sio_nvme_meta *meta)
{
	struct smartio_nvme_namespace *ns = calloc(meta->namespaces + 1, sizeof(*ns));

	if (!ns)
		return sio_nvme_no_memory("%u namespaces", meta->namespaces);
	free(n->ns);
	n->ns = ns;
	for (uint32_t i = 0; i < meta->namespaces; i++) {
		n->ns[i].id = meta->ns[i].id;
		n->ns[i].block_size = meta->ns[i].block_size;
		n->ns[i].blocks = meta->ns[i].blocks;
	}
	n->n_ns = meta->namespaces;
	n->n_pairs = meta->queue_pairs;
	n->stride = meta->doorbell_stride;
	n->formats = meta->formats;
	n->sgls = meta->sgls;
	return 0;
}

static int find_manager(struct smartio_nvme *n, struct sio_nvme_wait *w)
{
	int rc;

	rc = sio_nvme_find_serving(n);
	while (rc == -ENOTCONN && !smartio_device_lost(n->d.handle) &&
	       sio_nvme_wait_event(w, n->d.handle))
		rc = sio_nvme_find_manager(n);
	if (rc && smartio_device_lost(n->d.handle))
		return sio_nvme_fail(-ENODEV, "%s or its host is gone", n->d.name);
	return rc;
}

int sio_nvme_leg_borrow(struct smartio_nvme *leg, struct sio_nvme_wait *w)
{
	/* Who has it exclusively is a manager that starts, most likely. */
	int rc = sio_nvme_wait_borrow(w, &leg->d);

	if (rc)
		return rc;
	leg->generation = smartio_device_generation_word(leg->d.handle);
	if (leg->generation)
		return 0;
	leg->generation = &sio_nvme_no_generation;
	return sio_nvme_fail(-ENODEV, "%s is gone", leg->d.name);
}

int sio_nvme_leg_find(struct smartio_nvme *leg, struct sio_nvme_wait *w)
{
	int rc = find_manager(leg, w);

	/* Programs may look at them at any time: they stay as they were first. */
	return rc || leg->ns ? rc : sio_nvme_copy_namespaces(leg, &leg->meta);
}

static int open_client(struct smartio_nvme *n, const struct smartio_nvme_open_options *o,
		       const char *device)
{
	struct sio_nvme_wait w;
	sci_error_t err;
	int rc;

	sio_nvme_wait_start(&w, o->wait_ms);
	rc = sio_nvme_device_find(&n->d, device);
	/* What the drive answers pushes its data only if both come the same way. */
	if (rc == 0 && n->d.lender != n->d.node)
		n->d.over = n->d.adapter + 1;
	n->d.mends = n->d.over && o->flags & SMARTIO_NVME_MULTIPATH;
	if (rc == 0)
		rc = sio_nvme_leg_borrow(n, &w);
	if (rc == 0)
		rc = sio_nvme_leg_find(n, &w);
	if (rc == 0)
		rc = sio_nvme_doorbells_open(n);
	if (rc)
		return rc;
	n->stage = SIO_NVME_LEG_OPEN;
	/* The manager may reach us by another adapter than that to the lender. */
	SCICreateDataInterrupt(n->d.sd, &n->reply, SMARTIO_ALL_ADAPTERS, &n->reply_number, NULL,
			       NULL, 0, &err);
	if (err != SCI_ERR_OK) {
		n->reply = NULL;
		return sio_nvme_fail_sci(err, "no data interrupt for replies");
	}
	/* Its number was perhaps another program's, whose replies may still come. */
	n->sequence = smartio_random();
	return n->d.mends ? sio_nvme_second_open(n) : 0;
}

static void close_client(struct smartio_nvme *n)
{
	sci_error_t err;

	sio_nvme_leg_end(n);
	if (n->reply)
		SCIRemoveDataInterrupt(n->reply, 0, &err);
	sio_nvme_device_done(&n->d);
	free(n->ns);
	free(n);
}

int smartio_nvme_open(const char *device, struct smartio_nvme **ret)
{
	return smartio_nvme_open_wait(device, 0, ret);
}

int smartio_nvme_open_wait(const char *device, uint32_t timeout_ms, struct smartio_nvme **ret)
{
	const struct smartio_nvme_open_options o = {.size = sizeof(o), .wait_ms = timeout_ms};

	return smartio_nvme_open_with(device, &o, ret);
}

int smartio_nvme_open_with(const char *device, const struct smartio_nvme_open_options *o,
			   struct smartio_nvme **ret)
{
	struct smartio_nvme_open_options options;
	struct smartio_nvme *n;
	int rc = sio_nvme_options(&options, sizeof(options), o);

	if (rc)
		return rc;
	if (options.flags & ~SMARTIO_NVME_MULTIPATH)
		return sio_nvme_fail(-EINVAL,
				     "flags %#x of a client; only %#x (multipath) is allowed",
				     options.flags, SMARTIO_NVME_MULTIPATH);
	n = calloc(1, sizeof(*n));
	if (!n)
		return sio_nvme_no_memory("a client");
	n->process = smartio_process();
	rc = open_client(n, &options, device);
	if (rc) {
		sio_nvme_second_close(n);
		close_client(n);
		return rc;
	}
	*ret = n;
	return 0;
}

void smartio_nvme_close(struct smartio_nvme *n)
{
	if (!n || sio_nvme_is_childs(n))
		return;
	while (n->queues)
		smartio_nvme_queue_close(n->queues);
	sio_nvme_aside_end(n);
	/* Those that could not be deleted, for want of memory for example: the last opportunity. */
	sio_nvme_lock(n);
	sio_nvme_queues_delete(n);
	sio_nvme_unlock(n);
	sio_nvme_leases_close(n);
	sio_nvme_lock(n);
	while (n->buffers)
		sio_nvme_buffer_end(n->buffers);
	sio_nvme_queues_forget(n, true);
	sio_nvme_remains_end(n);
	sio_nvme_unlock(n);
	sio_nvme_second_close(n);
	close_client(n);
}

/* Identify pads its texts with blanks. */
static void text(char *to, const char *from, size_t len)
{
	while (len && (from[len - 1] == ' ' || from[len - 1] == '\0'))
		len--;
	for (size_t i = 0; i < len; i++)
		to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
	to[len] = '\0';
}

void smartio_nvme_get_info(const struct smartio_nvme *n, struct smartio_nvme_info *info)
{
	/* Every client is made by smartio_nvme_open(), none is const; only its lock is changed. */
	struct smartio_nvme *lock = (struct smartio_nvme *)(uintptr_t)n;

	sio_nvme_lock(lock);
	memset(info, 0, sizeof(*info));
	text(info->serial, n->meta.serial, sizeof(n->meta.serial));
	text(info->model, n->meta.model, sizeof(n->meta.model));
	text(info->firmware, n->meta.firmware, sizeof(n->meta.firmware));
	info->vendor = (uint16_t)n->meta.vendor;
	info->queue_pairs = (uint16_t)n->meta.queue_pairs;
	info->max_queue_entries = n->meta.max_entries;
	info->max_transfer = n->meta.max_transfer;
	info->namespaces = n->meta.namespaces;
	info->sgls = n->sgls;
	info->lender_node = n->d.lender;
	info->manager_node = n->meta.node;
	info->version = n->meta.spec_version;
	info->features = n->meta.features;
	sio_nvme_unlock(lock);
}

int smartio_nvme_get_namespace(const struct smartio_nvme *n, uint32_t index,
			       struct smartio_nvme_namespace *ns)
{
	if (index >= n->n_ns)
		return sio_nvme_fail(-ENOENT, "%s has %u namespaces; there is no index %u",
				     n->d.name, n->n_ns, index);
	*ns = n->ns[index];
	return 0;
}

int smartio_nvme_identify(struct smartio_nvme *n, uint8_t cns, uint32_t nsid, void *data)
{
	struct sio_nvme_req req = {.op = SIO_NVME_OP_IDENTIFY,
				   .identify = {.cns = cns, .nsid = nsid}};
	struct sio_nvme_rep *rep = malloc(sizeof(*rep));
	int rc;

	if (!rep)
		return sio_nvme_no_memory("a reply");
	sio_nvme_lock(n);
	rc = sio_nvme_ask(sio_nvme_way(n), &req, rep, NULL);
	sio_nvme_unlock(n);
	if (rc == 0)
		memcpy(data, rep->data, SIO_NVME_IDENTIFY);
	free(rep);
	return rc;
}
