/* SPDX-License-Identifier: BSD-2-Clause */
/* Admin commands of a client, which the manager submits if its rules allow them. */
#include <nvme/types.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "error.h"
#include "options.h"

#define MARGIN_MS 5000u /* for the manager, beyond what the drive may take */
#define FORMAT_MS 300000u

static int check(const struct smartio_nvme_admin *c)
{
	if (c->flags & ~(SMARTIO_NVME_CONFIRMED | SMARTIO_NVME_TO_DRIVE))
		return sio_nvme_fail(
			-EINVAL,
			"flags %#x of an admin command; only confirmed and to-drive are "
			"allowed",
			c->flags);
	if (c->bytes > SIO_NVME_ADMIN_BYTES)
		return sio_nvme_fail(-EINVAL, "%u bytes of data: an admin command has up to %u",
				     c->bytes, SIO_NVME_ADMIN_BYTES);
	if (c->bytes && !c->data)
		return sio_nvme_fail(
			-EINVAL, "an admin command with %u bytes of data needs a buffer", c->bytes);
	if (c->reserved)
		return sio_nvme_fail(-EINVAL, "a reserved field of the admin command is not 0");
	if (c->timeout_ms > SIO_NVME_ADMIN_MS_MOST)
		return sio_nvme_fail(-EINVAL, "a time limit of %u ms; at most %u is right",
				     c->timeout_ms, SIO_NVME_ADMIN_MS_MOST);
	return 0;
}

static int ask(struct smartio_nvme *n, const struct smartio_nvme_admin *c, struct sio_nvme_rep *rep)
{
	struct sio_nvme_req req = {
		.op = SIO_NVME_OP_ADMIN,
		.admin = {.opcode = c->opcode,
			  .flags = c->flags,
			  .nsid = c->nsid,
			  .cdw2 = c->cdw2,
			  .cdw3 = c->cdw3,
			  .cdw = {c->cdw10, c->cdw11, c->cdw12, c->cdw13, c->cdw14, c->cdw15},
			  .bytes = c->bytes,
			  .timeout_ms = c->timeout_ms}};
	struct smartio_nvme *leg;
	int rc;

	sio_nvme_lock(n);
	leg = sio_nvme_way(n);
	leg->request_data = c->data;
	leg->patience_ms = (c->timeout_ms ? c->timeout_ms : SIO_NVME_ADMIN_MS) + MARGIN_MS;
	rc = sio_nvme_ask(leg, &req, rep, NULL);
	leg->request_data = NULL;
	leg->patience_ms = 0;
	sio_nvme_unlock(n);
	return rc;
}

int smartio_nvme_admin(struct smartio_nvme *n, const struct smartio_nvme_admin *command,
		       uint32_t *ret_result, uint32_t *ret_status)
{
	struct smartio_nvme_admin c;
	struct sio_nvme_rep *rep;
	int rc = sio_nvme_options(&c, sizeof(c), command);

	if (rc == 0)
		rc = check(&c);
	if (rc)
		return rc;
	rep = malloc(sizeof(*rep));
	if (!rep)
		return sio_nvme_no_memory("a reply");
	rc = ask(n, &c, rep);
	if (rc == 0 && c.bytes && !(c.flags & SMARTIO_NVME_TO_DRIVE))
		memcpy(c.data, rep->admin.data, c.bytes);
	if (rc == 0 && ret_result)
		*ret_result = rep->admin.result;
	if (rc == 0 && ret_status)
		*ret_status = rep->admin.status;
	else if (rc == 0 && rep->admin.status)
		rc = sio_nvme_fail(-EIO, "%s refused admin command 0x%02x: %s", n->d.name, c.opcode,
				   smartio_nvme_status_string(rep->admin.status));
	free(rep);
	return rc;
}

int smartio_nvme_get_log(struct smartio_nvme *n, uint8_t page, uint32_t nsid, uint64_t offset,
			 void *data, size_t bytes)
{
	int rc = 0;

	if (offset % 4 || bytes % 4)
		return sio_nvme_fail(-EINVAL, "offset and bytes of a log must be multiples of 4");
	for (size_t done = 0; rc == 0 && done < bytes;) {
		uint32_t part = bytes - done < SIO_NVME_ADMIN_BYTES ? (uint32_t)(bytes - done)
								    : SIO_NVME_ADMIN_BYTES;
		uint64_t at = offset + done;
		const struct smartio_nvme_admin c = {.size = sizeof(c),
						     .opcode = nvme_admin_get_log_page,
						     .nsid = nsid,
						     .cdw10 = (part / 4 - 1) << 16 | page,
						     .cdw12 = (uint32_t)at,
						     .cdw13 = (uint32_t)(at >> 32),
						     .data = (uint8_t *)data + done,
						     .bytes = part};

		rc = smartio_nvme_admin(n, &c, NULL, NULL);
		done += part;
	}
	return rc;
}

int smartio_nvme_get_feature(struct smartio_nvme *n, uint8_t feature, uint32_t select,
			     uint32_t nsid, uint32_t *ret_value)
{
	const struct smartio_nvme_admin c = {.size = sizeof(c),
					     .opcode = nvme_admin_get_features,
					     .nsid = nsid,
					     .cdw10 = (select & 7) << 8 | feature};

	return smartio_nvme_admin(n, &c, ret_value, NULL);
}

int smartio_nvme_set_feature(struct smartio_nvme *n, uint8_t feature, uint32_t nsid, uint32_t value,
			     uint32_t flags)
{
	const struct smartio_nvme_admin c = {.size = sizeof(c),
					     .opcode = nvme_admin_set_features,
					     .flags = flags,
					     .nsid = nsid,
					     .cdw10 = feature,
					     .cdw11 = value};

	return smartio_nvme_admin(n, &c, NULL, NULL);
}

int smartio_nvme_format(struct smartio_nvme *n, uint32_t nsid, uint8_t lba_format, uint32_t flags)
{
	const struct smartio_nvme_admin c = {.size = sizeof(c),
					     .opcode = nvme_admin_format_nvm,
					     .flags = flags,
					     .nsid = nsid,
					     .cdw10 = lba_format & 0xf,
					     .timeout_ms = FORMAT_MS};
	struct smartio_nvme *leg;
	int rc = smartio_nvme_admin(n, &c, NULL, NULL);

	if (rc)
		return rc;
	sio_nvme_lock(n);
	leg = sio_nvme_way(n);
	rc = sio_nvme_find_serving(leg);
	if (rc == 0)
		rc = sio_nvme_copy_namespaces(n, &leg->meta);
	if (rc == 0 && n->second && n->second->ns)
		rc = sio_nvme_copy_namespaces(n->second, &leg->meta);
	sio_nvme_unlock(n);
	return rc;
}

int smartio_nvme_get_pairs(struct smartio_nvme *n, struct smartio_nvme_pair *pair, unsigned max)
{
	struct sio_nvme_req req = {.op = SIO_NVME_OP_PAIRS};
	struct sio_nvme_rep *rep = malloc(sizeof(*rep));
	unsigned reported = 0, got = SIO_NVME_PAIRS_A_REPLY;
	int rc = 0;

	if (!rep)
		return sio_nvme_no_memory("a reply");
	/* All that share a pair stand in one reply: one that has no room for as many may go on. */
	while (got + SIO_NVME_SHARERS > SIO_NVME_PAIRS_A_REPLY && reported < max) {
		const uint32_t after = req.pairs.after;

		sio_nvme_lock(n);
		rc = sio_nvme_ask(sio_nvme_way(n), &req, rep, NULL);
		sio_nvme_unlock(n);
		if (rc)
			break;
		for (got = 0; got < SIO_NVME_PAIRS_A_REPLY && rep->pairs[got].qid && reported < max;
		     got++, reported++) {
			const struct sio_nvme_wire_pair *w = &rep->pairs[got];

			if (w->qid <= after) { /* or this would never end */
				got = 0;
				break;
			}
			req.pairs.after = w->qid;
			pair[reported].id = w->qid;
			pair[reported].node = w->node;
			pair[reported].borrower = w->borrower;
			pair[reported].cq_of = w->cq_of;
			pair[reported].reserved = 0;
			memcpy(pair[reported].program, w->program, sizeof(pair[reported].program));
		}
	}
	free(rep);
	return rc ? rc : (int)reported;
}
