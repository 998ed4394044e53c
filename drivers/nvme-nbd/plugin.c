/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A shared drive, or a range of it, as a network block device: nbdkit smartio device=nvme0.
 * Requests of all connections are served by a pool of queue pairs, each by one request at a time.
 */
#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#define QUEUES_MOST 64
#define WAIT_MOST (UINT32_MAX / 1000)
/* Identify Controller (NVMe Base 1.4, figure 247): optional commands of the drive. */
#define IDENTIFY_BYTES 4096
#define CNS_CONTROLLER 1
#define ONCS_AT 520
#define ONCS_DATASET_MANAGEMENT 4u
#define ONCS_WRITE_ZEROES 8u

static char *device, *lease_name;	  /* lease_name NULL: the range is not leased */
static uint64_t range_begin, range_bytes; /* range_bytes 0: to the end */
static unsigned nsid = 1, queues = 4, wait_s = 5;
static unsigned timeout_ms;
static int multipath, share;

static struct smartio_nvme *drive;
static struct smartio_nvme_namespace ns;
static struct smartio_nvme_lease *lease;
static uint16_t oncs;
/* The first @n_idle may be taken. NULL: one that broke, to be opened by who takes it. */
static struct smartio_nvme_queue *pool[QUEUES_MOST];
static unsigned n_idle, n_open;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Held for writing to open the drive again, for reading by requests: they see one drive. */
static pthread_rwlock_t opened = PTHREAD_RWLOCK_INITIALIZER;
static uint64_t times_opened; /* tells whoever found the drive lost that another was faster */
static bool opening;	      /* somebody opens it again; then @open_or_lost is signalled */
static pthread_cond_t given_back = PTHREAD_COND_INITIALIZER,
		      open_or_lost = PTHREAD_COND_INITIALIZER;
/*
 * When somebody last waited in vain for a queue pair, or for the drive; 0: since then it came.
 * Those who had asked before then do not wait anew, one after the other. Under @lock, as the two
 * above.
 */
static uint64_t no_queue_ns, no_drive_ns;

/* ---- configuration ---- */
static int parse_range(const char *value)
{
	const char *colon = strchr(value, ':');
	char *begin = colon ? strndup(value, (size_t)(colon - value)) : NULL;
	int64_t at = begin ? nbdkit_parse_size(begin) : -1, bytes = -1;

	free(begin);
	if (at >= 0)
		bytes = nbdkit_parse_size(colon + 1);
	if (at < 0 || bytes <= 0) {
		nbdkit_error("range=%s: OFFSET:BYTES is wanted, such as 1G:64M", value);
		return -1;
	}
	range_begin = (uint64_t)at;
	range_bytes = (uint64_t)bytes;
	return 0;
}

static int smartio_config(const char *key, const char *value)
{
	if (!strcmp(key, "device")) {
		free(device);
		device = strdup(value);
		return device ? 0 : -1;
	}
	if (!strcmp(key, "lease")) {
		free(lease_name);
		lease_name = strdup(value);
		return lease_name ? 0 : -1;
	}
	if (!strcmp(key, "range"))
		return parse_range(value);
	if (!strcmp(key, "namespace"))
		return nbdkit_parse_unsigned("namespace", value, &nsid);
	if (!strcmp(key, "multipath")) {
		multipath = nbdkit_parse_bool(value);
		return multipath < 0 ? -1 : 0;
	}
	if (!strcmp(key, "share")) {
		share = nbdkit_parse_bool(value);
		return share < 0 ? -1 : 0;
	}
	if (!strcmp(key, "timeout"))
		return nbdkit_parse_unsigned("timeout", value, &timeout_ms);
	if (!strcmp(key, "wait")) {
		if (nbdkit_parse_unsigned("wait", value, &wait_s) < 0)
			return -1;
		if (wait_s <= WAIT_MOST)
			return 0;
		nbdkit_error("wait=%s: 0 to %u seconds are possible", value, WAIT_MOST);
		return -1;
	}
	if (!strcmp(key, "queues")) {
		if (nbdkit_parse_unsigned("queues", value, &queues) < 0)
			return -1;
		if (queues >= 1 && queues <= QUEUES_MOST)
			return 0;
		nbdkit_error("queues=%s: 1 to %d are possible", value, QUEUES_MOST);
		return -1;
	}
	nbdkit_error("there is no parameter %s: there are device, range, lease, namespace, queues, "
		     "multipath, share, timeout, wait",
		     key);
	return -1;
}

static int smartio_config_complete(void)
{
	if (device)
		return 0;
	nbdkit_error("device=NAME is missing: the drive's name in the cluster");
	return -1;
}

/* ---- the drive ---- */
static int failed(void)
{
	nbdkit_error("%s", smartio_nvme_error());
	return -1;
}

/* Its blocks are in no form that is read or written here: the driver knows no size of them. */
static int unusable(void)
{
	nbdkit_error("namespace %u of %s has metadata with its blocks; format it without them",
		     nsid, device);
	return -1;
}

static int find_namespace(void)
{
	for (uint32_t i = 0; smartio_nvme_get_namespace(drive, i, &ns) == 0; i++)
		if (ns.id == nsid && ns.block_size)
			return 0;
		else if (ns.id == nsid)
			return unusable();
	return failed();
}

static int find_commands(void)
{
	uint8_t *page = malloc(IDENTIFY_BYTES);
	uint16_t word;
	int rc = page ? smartio_nvme_identify(drive, CNS_CONTROLLER, 0, page) : -ENOMEM;

	if (rc == 0) {
		memcpy(&word, page + ONCS_AT, sizeof(word));
		oncs = le16toh(word);
	}
	free(page);
	return rc ? failed() : 0;
}

static int check_range(void)
{
	const uint64_t end = ns.blocks * ns.block_size;

	if (range_begin % ns.block_size || range_bytes % ns.block_size) {
		nbdkit_error("range=%" PRIu64 ":%" PRIu64 ": not multiples of the block size, %u",
			     range_begin, range_bytes, ns.block_size);
		return -1;
	}
	if (range_begin >= end || range_bytes > end - range_begin) {
		nbdkit_error("range=%" PRIu64 ":%" PRIu64 ": namespace %u of %s ends at %" PRIu64,
			     range_begin, range_bytes, nsid, device, end);
		return -1;
	}
	if (range_bytes == 0)
		range_bytes = end - range_begin;
	return 0;
}

static int open_drive(void)
{
	const struct smartio_nvme_open_options o = {.size = sizeof(o),
						    .wait_ms = 1000 * wait_s,
						    .flags =
							    multipath ? SMARTIO_NVME_MULTIPATH : 0};

	return smartio_nvme_open_with(device, &o, &drive);
}

/* So that no other lease overlaps the range, and no queue leaves it. */
static int take_lease(void)
{
	if (!lease_name)
		return 0;
	if (smartio_nvme_lease_take(drive, lease_name, nsid, range_begin / ns.block_size,
				    range_bytes / ns.block_size, &lease))
		return failed();
	return 0;
}

/* One that ended with its manager is not taken again: its blocks may be another's by now. */
static int open_queue(struct smartio_nvme_queue **ret)
{
	/* A lease's blocks are written to by nobody else; of others nobody knows. */
	const struct smartio_nvme_queue_options o = {.size = sizeof(o),
						     .namespace_id = nsid,
						     .wait_ms = 1000 * wait_s,
						     .survive_ms = wait_s ? 1000 * wait_s : 1,
						     .timeout_ms = timeout_ms,
						     .flags = SMARTIO_NVME_SURVIVE |
							      (share ? SMARTIO_NVME_SHARED : 0) |
							      (lease ? SMARTIO_NVME_ALONE : 0),
						     .lease = lease};

	return smartio_nvme_queue_open(drive, &o, ret);
}

static int open_pool(void)
{
	for (; n_open < queues; n_open++, n_idle++)
		if (open_queue(&pool[n_open]))
			return failed();
	return 0;
}

/* After nbdkit went to the background: a child has no part in what its parent has initialised. */
static int smartio_after_fork(void)
{
	sci_error_t err;

	SCIInitialize(0, &err);
	if (err != SCI_ERR_OK) {
		nbdkit_error("no connection to this host's smartiod: %s (%s)",
			     SCIGetErrorString(err), smartio_last_error());
		return -1;
	}
	if (open_drive()) {
		drive = NULL;
		return failed();
	}
	if (find_namespace() || find_commands() || check_range() || take_lease())
		return -1;
	return open_pool();
}

static void smartio_cleanup(void)
{
	if (!drive)
		return;
	smartio_nvme_close(drive); /* and its queues */
	drive = NULL;
	SCITerminate();
}

static void smartio_unload(void)
{
	free(device);
	free(lease_name);
}

/* ---- the pool ---- */
static struct smartio_nvme_queue *take(void)
{
	struct smartio_nvme_queue *q;

	pthread_mutex_lock(&lock);
	while (n_idle == 0)
		pthread_cond_wait(&given_back, &lock);
	q = pool[--n_idle];
	pthread_mutex_unlock(&lock);
	return q;
}

static void give_back(struct smartio_nvme_queue *q)
{
	pthread_mutex_lock(&lock);
	pool[n_idle++] = q;
	pthread_cond_signal(&given_back);
	pthread_mutex_unlock(&lock);
}

/*
 * A request, with a queue of its own, which survives resets of the drive and, with multipath=, the
 * loss of one of two ways. One that broke, because it gave no answer, is made again. What may be
 * done twice is done again where nobody knows whether it was; other requests end with an error.
 */
struct request {
	void *data;
	const void *from;
	uint64_t offset;
	uint32_t count, flags;
	bool twice;
};

/* Nothing more will come of this queue pair. */
static bool is_broken(int rc)
{
	return rc == -ECONNRESET || rc == -ETIMEDOUT || rc == -EPROTO || rc == -EBUSY;
}

/* What was borrowed is no more: the lender, a link, or the drive went, or it was formatted. */
static bool is_lost(int rc)
{
	return rc == -ENODEV || rc == -ENOTCONN || rc == -ESTALE || rc == -EFAULT ||
	       rc == -ENETDOWN || rc == -EHOSTUNREACH;
}

/* Nothing tells when a manager, or a lender, that starts is there: look after 1 to 64 ms. */
struct wait {
	uint64_t deadline;
	long ns;
};

static struct wait wait_begin(void)
{
	return (struct wait){.deadline = smartio_now_ns() + wait_s * 1000000000ull, .ns = 1000000};
}

static bool wait_on(struct wait *w)
{
	if (smartio_now_ns() >= w->deadline)
		return false;
	nanosleep(&(struct timespec){.tv_nsec = w->ns}, NULL);
	if (w->ns < 64000000)
		w->ns *= 2;
	return true;
}

/* Has somebody waited in vain for a queue pair to the end since @begun? */
static bool is_in_vain(uint64_t begun)
{
	bool is;

	pthread_mutex_lock(&lock);
	is = no_queue_ns >= begun;
	pthread_mutex_unlock(&lock);
	return is;
}

static void note_queue(int rc)
{
	if (rc && !is_lost(rc))
		return;
	pthread_mutex_lock(&lock);
	no_queue_ns = rc ? smartio_now_ns() : 0;
	pthread_mutex_unlock(&lock);
}

static int renew(uint64_t begun, struct smartio_nvme_queue **ret)
{
	int rc;

	*ret = NULL;
	if (!drive || is_in_vain(begun))
		return -ENODEV;
	rc = open_queue(ret);
	note_queue(rc);
	if (rc) {
		*ret = NULL;
		failed();
	}
	return rc;
}

/* Clients were told a size and a size of blocks. */
static int has_not_changed(const struct smartio_nvme_namespace *old)
{
	const uint64_t end = ns.blocks * ns.block_size;

	if (ns.block_size == old->block_size && range_begin + range_bytes <= end)
		return 0;
	nbdkit_error("namespace %u of %s has blocks of %u bytes and ends at %" PRIu64 " now, where "
		     "%u and %" PRIu64 " were told; another nbdkit is needed",
		     nsid, device, ns.block_size, end, old->block_size, range_begin + range_bytes);
	return -1;
}

/*
 * Open the drive again; no request has a queue pair of it meanwhile. A lease went with it, and its
 * blocks may be another's by now. Return: 0; -1: it stays lost, and the next request tries again.
 */
static int open_again(void)
{
	const struct smartio_nvme_namespace old = ns;
	struct wait w = wait_begin();
	int rc;

	if (lease_name) {
		nbdkit_error("%s was lost, and the lease %s with it; start nbdkit again", device,
			     lease_name);
		return -1;
	}
	smartio_nvme_close(drive); /* and its queues */
	drive = NULL;
	for (unsigned i = 0; i < n_open; i++)
		pool[i] = NULL;
	do
		rc = open_drive();
	while ((is_lost(rc) || rc == -ETIMEDOUT) && wait_on(&w));
	if (rc) {
		drive = NULL;
		return failed();
	}
	if (find_namespace() || find_commands() || has_not_changed(&old)) {
		smartio_nvme_close(drive);
		drive = NULL;
		ns = old;
		return -1;
	}
	return 0;
}

/* One opens it for all who wait. @lock is held, and @opening is set. */
static int open_for_all(void)
{
	int rc;

	pthread_mutex_unlock(&lock);
	pthread_rwlock_wrlock(&opened);
	rc = open_again();
	pthread_mutex_lock(&lock);
	times_opened += rc == 0;
	no_drive_ns = rc ? smartio_now_ns() : 0;
	if (rc == 0)
		no_queue_ns = 0;
	pthread_rwlock_unlock(&opened);
	return rc;
}

/* @seen: times_opened when the request, which began at @begun, found the drive lost. */
static int recover(uint64_t begun, uint64_t seen)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	/* Whoever's attempt has failed does not wait for the next one, which may have begun. */
	while (opening && times_opened == seen && no_drive_ns < begun)
		pthread_cond_wait(&open_or_lost, &lock);
	if (times_opened == seen && no_drive_ns < begun) {
		opening = true;
		rc = open_for_all();
		opening = false;
		pthread_cond_broadcast(&open_or_lost);
	} else if (times_opened == seen) {
		rc = -1;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

/*
 * With the drive as it is. Return: what @act returned. *@lost: no queue pair can be had any more,
 * though @act, where it may be done twice, was not done since one broke.
 */
static int try(int (*act)(struct smartio_nvme_queue *q, const struct request *r),
	       const struct request *r, uint64_t begun, bool *lost)
{
	struct smartio_nvme_queue *q = take();
	bool again = r->twice;
	int rc = q ? 0 : renew(begun, &q);

	*lost = is_lost(rc);
	while (rc == 0) {
		int now;

		rc = act(q, r);
		if (rc == -ECONNABORTED && r->twice)
			rc = act(q, r);
		if (rc)
			failed();
		if (!is_broken(rc) && !is_lost(rc))
			break;
		smartio_nvme_queue_close(q);
		now = renew(begun, &q);
		*lost = is_lost(now) && again;
		if (now || !again)
			break;
		again = false;
		rc = 0;
	}
	give_back(q);
	return rc;
}

static int perform(int (*act)(struct smartio_nvme_queue *q, const struct request *r),
		   const struct request *r)
{
	const uint64_t begun = smartio_now_ns();
	bool lost, tried = false;
	uint64_t seen;
	int rc;

	do {
		pthread_rwlock_rdlock(&opened);
		seen = times_opened;
		rc = try(act, r, begun, &lost);
		pthread_rwlock_unlock(&opened);
		if (!lost || tried)
			break;
		tried = true;
	} while (recover(begun, seen) == 0);
	if (rc == 0)
		return 0;
	nbdkit_set_error(rc == -EINVAL || rc == -ENOMEM ? -rc : EIO);
	return -1;
}

static int act_read(struct smartio_nvme_queue *q, const struct request *r)
{
	return smartio_nvme_read(q, r->data, r->offset, r->count);
}

static int act_write(struct smartio_nvme_queue *q, const struct request *r)
{
	return smartio_nvme_write_flags(q, r->from, r->offset, r->count,
					r->flags & NBDKIT_FLAG_FUA ? SMARTIO_NVME_FUA : 0);
}

static int act_flush(struct smartio_nvme_queue *q, const struct request *r)
{
	(void)r;
	return smartio_nvme_flush(q);
}

/* Deallocation has no FUA of its own. */
static int act_trim(struct smartio_nvme_queue *q, const struct request *r)
{
	int rc = smartio_nvme_deallocate(q, r->offset, r->count);

	return rc == 0 && r->flags & NBDKIT_FLAG_FUA ? smartio_nvme_flush(q) : rc;
}

static int act_zero(struct smartio_nvme_queue *q, const struct request *r)
{
	return smartio_nvme_write_zeroes(
		q, r->offset, r->count,
		(r->flags & NBDKIT_FLAG_FUA ? SMARTIO_NVME_FUA : 0) |
			(r->flags & NBDKIT_FLAG_MAY_TRIM ? SMARTIO_NVME_MAY_DEALLOCATE : 0));
}

/* ---- a connection ---- */
static void *smartio_open(int readonly)
{
	(void)readonly;
	return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t smartio_get_size(void *handle)
{
	(void)handle;
	return (int64_t)range_bytes;
}

static int smartio_block_size(void *handle, uint32_t *minimum, uint32_t *preferred,
			      uint32_t *maximum)
{
	(void)handle;
	*minimum = ns.block_size;
	*preferred = ns.block_size > 4096 ? ns.block_size : 4096;
	*maximum = 32u << 20;
	return 0;
}

static int yes(void *handle)
{
	(void)handle;
	return 1;
}

static int can_trim(void *handle)
{
	(void)handle;
	return !!(oncs & ONCS_DATASET_MANAGEMENT);
}

/* nbdkit writes the zeroes itself otherwise. */
static int can_zero(void *handle)
{
	(void)handle;
	return !!(oncs & ONCS_WRITE_ZEROES);
}

static int native(void *handle)
{
	(void)handle;
	return NBDKIT_FUA_NATIVE;
}

static int smartio_pread(void *handle, void *data, uint32_t count, uint64_t offset, uint32_t flags)
{
	(void)handle, (void)flags;
	return perform(act_read, &(struct request){.data = data,
						   .offset = range_begin + offset,
						   .count = count,
						   .twice = true});
}

static int smartio_pwrite(void *handle, const void *data, uint32_t count, uint64_t offset,
			  uint32_t flags)
{
	(void)handle;
	return perform(act_write, &(struct request){.from = data,
						    .offset = range_begin + offset,
						    .count = count,
						    .flags = flags});
}

static int smartio_flush(void *handle, uint32_t flags)
{
	(void)handle, (void)flags;
	return perform(act_flush, &(struct request){.twice = true});
}

static int smartio_trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	(void)handle;
	return perform(act_trim, &(struct request){.offset = range_begin + offset,
						   .count = count,
						   .flags = flags,
						   .twice = true});
}

static int smartio_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	(void)handle;
	return perform(act_zero, &(struct request){.offset = range_begin + offset,
						   .count = count,
						   .flags = flags,
						   .twice = true});
}

static struct nbdkit_plugin plugin = {
	.name = "smartio",
	.version = SMARTIO_VERSION,
	.longname = "SmartIO",
	.description = "a range of an NVMe drive that hosts of a PCIe cluster share",
	.config = smartio_config,
	.config_complete = smartio_config_complete,
	.config_help =
		"device=NAME          (required) the drive's name in the cluster, or number\n"
		"range=OFFSET:BYTES   of the namespace; default: all of it\n"
		"namespace=N          default 1\n"
		"queues=N             queue pairs, requests at once; default 4\n"
		"multipath=BOOL       use two adapters of this host; default no\n"
		"share=BOOL           share queue pairs with programs of this host; default no\n"
		"timeout=MS           abort commands that take longer; default 0: none\n"
		"wait=SECONDS         for a manager and for queue pairs; default 5",
	.magic_config_key = "device",
	.after_fork = smartio_after_fork,
	.cleanup = smartio_cleanup,
	.unload = smartio_unload,
	.open = smartio_open,
	.get_size = smartio_get_size,
	.block_size = smartio_block_size,
	.can_multi_conn = yes, /* one flush is for all */
	.can_write = yes,
	.can_flush = yes,
	.can_trim = can_trim,
	.can_zero = can_zero,
	.can_fua = native,
	.pread = smartio_pread,
	.pwrite = smartio_pwrite,
	.flush = smartio_flush,
	.trim = smartio_trim,
	.zero = smartio_zero,
};

/* What nbdkit looks up; its header defines it without having declared it. */
extern struct nbdkit_plugin *plugin_init(void);
NBDKIT_REGISTER_PLUGIN(plugin)
