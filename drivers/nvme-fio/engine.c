/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared drives for fio: ioengine=external:.../fio-smartio.so, filename=NAME. Each job has a queue
 * pair of its own; fio's buffers are memory that the drive reaches, so that no data is copied. The
 * options are fio's own where it has them; docs/fio.md explains the others.
 */
#include "fio.h"
#include "optgroup.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"

#define WAIT_MOST (UINT32_MAX / 1000)
#define ZEROES_MOST 65536u /* blocks of one Write Zeroes or Verify */

enum write_mode { MODE_WRITE, MODE_ZEROES, MODE_VERIFY };

struct engine_options {
	void *pad; /* fio takes an offset of 0 for none */
	char *sq;
	unsigned int cq, nsid, wait, cmd_timeout, write_mode;
	unsigned int multipath, survive, alone, share, interrupt, readfua, writefua;
};

#define OFFSET(field) offsetof(struct engine_options, field)
#define COMMON .category = FIO_OPT_C_ENGINE, .group = FIO_OPT_G_INVALID
#define TEXT(option, field, words)                                                                 \
	{                                                                                          \
		.name = option, .lname = option, .type = FIO_OPT_STR_STORE, .off1 = OFFSET(field), \
		.help = words, COMMON                                                              \
	}
#define NUMBER(option, field, value, words)                                                        \
	{                                                                                          \
		.name = option, .lname = option, .type = FIO_OPT_INT, .off1 = OFFSET(field),       \
		.def = value, .help = words, COMMON                                                \
	}
#define BOOL(option, field, words)                                                                 \
	{                                                                                          \
		.name = option, .lname = option, .type = FIO_OPT_BOOL, .off1 = OFFSET(field),      \
		.def = "0", .help = words, COMMON                                                  \
	}

/* clang-format off */
static struct fio_option options[] = {
	TEXT("sq", sq, "submission queue: auto, local, lender, cmb, device:NAME"),
	{
		.name = "cq",
		.lname = "cq",
		.type = FIO_OPT_STR,
		.off1 = OFFSET(cq),
		.def = "auto",
		.posval = {
			{.ival = "auto", .oval = SMARTIO_NVME_PLACE_AUTO, .help = "by hints"},
			{.ival = "local", .oval = SMARTIO_NVME_PLACE_LOCAL, .help = "this host"},
			{.ival = "lender", .oval = SMARTIO_NVME_PLACE_DEVICE, .help = "lender"},
		},
		.help = "where the completion queue lies",
		COMMON,
	},
	NUMBER("nsid", nsid, "1", "namespace"),
	NUMBER("wait", wait, "5", "seconds for a manager, and for a queue pair"),
	NUMBER("cmd_timeout", cmd_timeout, "0", "ms before a command is aborted; 0: none"),
	BOOL("multipath", multipath, "use two adapters of this host"),
	BOOL("survive", survive, "go on after resets of the drive and lost links"),
	BOOL("alone", alone, "with survive: nobody else writes there, so writes are repeated, too"),
	BOOL("share", share, "with survive: share queue pairs with programs of this host"),
	BOOL("interrupt", interrupt, "wait for interrupts of the drive instead of polling"),
	BOOL("readfua", readfua, "force unit access of reads"),
	BOOL("writefua", writefua, "force unit access of writes"),
	{
		.name = "write_mode",
		.lname = "write_mode",
		.type = FIO_OPT_STR,
		.off1 = OFFSET(write_mode),
		.def = "write",
		.posval = {
			{.ival = "write", .oval = MODE_WRITE, .help = "Write"},
			{.ival = "zeroes", .oval = MODE_ZEROES, .help = "Write Zeroes"},
			{.ival = "verify", .oval = MODE_VERIFY, .help = "Verify"},
		},
		.help = "the command that writes are",
		COMMON,
	},
	{.name = NULL},
};
/* clang-format on */

/* A drive that jobs of this process have opened: jobs that are threads share it. */
struct client {
	struct client *next;
	char *name;
	bool multipath;
	unsigned users;
	struct smartio_nvme *drive;
};

struct job {
	struct client *client;
	struct smartio_nvme_namespace ns;
	struct smartio_nvme_queue *queue;
	struct smartio_nvme_buffer *buffer; /* fio's buffers */
	struct smartio_nvme_buffer
		*ranges; /* of deallocations, one for each io_u; NULL: none yet */
	struct smartio_nvme_completion *done; /* of the last getevents */
	struct io_u **new;		      /* submitted since the last ring */
	unsigned depth, in_flight, n_new;
};

static struct client *clients;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- drives ---- */

/* fio makes processes of jobs, perhaps while others are threads. A child has no part in SISCI. */
static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	clients = NULL;
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static int say(void)
{
	log_err("smartio: %s\n", smartio_nvme_error());
	return 1;
}

static const char *name_of(const struct thread_data *td)
{
	return td->files[0]->file_name;
}

static struct client *open_client(const char *name, const struct engine_options *o)
{
	const struct smartio_nvme_open_options open = {
		.size = sizeof(open),
		.wait_ms = 1000 * o->wait,
		.flags = o->multipath ? SMARTIO_NVME_MULTIPATH : 0};
	struct client *c = calloc(1, sizeof(*c));
	char *copy = strdup(name);

	if (!c || !copy) {
		log_err("smartio: no memory\n");
		goto fail;
	}
	c->name = copy;
	c->multipath = o->multipath;
	if (smartio_nvme_open_with(name, &open, &c->drive)) {
		say();
		goto fail;
	}
	c->next = clients;
	clients = c;
	return c;
fail:
	free(copy);
	free(c);
	return NULL;
}

/* NULL: it cannot be opened; why was said. */
static struct client *get_client(const char *name, const struct engine_options *o)
{
	struct client *c;
	sci_error_t err = SCI_ERR_OK;

	pthread_mutex_lock(&lock);
	for (c = clients; c; c = c->next)
		if (!strcmp(c->name, name) && c->multipath == o->multipath)
			break;
	if (!clients)
		SCIInitialize(0, &err);
	if (err != SCI_ERR_OK) {
		log_err("smartio: no connection to this host's smartiod: %s (%s)\n",
			SCIGetErrorString(err), smartio_last_error());
	} else if (!c) {
		c = open_client(name, o);
		if (!clients)
			SCITerminate();
	}
	if (c)
		c->users++;
	pthread_mutex_unlock(&lock);
	return c;
}

static void put_client(struct client *c)
{
	struct client **at = &clients;

	pthread_mutex_lock(&lock);
	if (--c->users == 0) {
		while (*at != c)
			at = &(*at)->next;
		*at = c->next;
		smartio_nvme_close(c->drive);
		free(c->name);
		free(c);
		if (!clients)
			SCITerminate();
	}
	pthread_mutex_unlock(&lock);
}

static int find_namespace(struct client *c, uint32_t nsid, struct smartio_nvme_namespace *ns)
{
	for (uint32_t i = 0; smartio_nvme_get_namespace(c->drive, i, ns) == 0; i++) {
		if (ns->id != nsid)
			continue;
		if (ns->block_size)
			return 0;
		log_err("smartio: namespace %u of %s has metadata with its blocks; one without "
			"them is right (smartio-nvme format)\n",
			nsid, c->name);
		return 1;
	}
	log_err("smartio: nsid=%u: %s has no such namespace; smartio-nvme identify %s shows those "
		"that it has\n",
		nsid, c->name, c->name);
	return 1;
}

/* ---- before the jobs begin ---- */

/* Its structures are not this one's, though the number of its interface is the same. */
static int check_version(void)
{
	if (!strcmp(fio_version_string, SMARTIO_FIO_VERSION))
		return 0;
	log_err("smartio: this engine was compiled for %s, and this is %s; one that was configured "
		"with -Dfio_source= of this fio's source is right\n",
		SMARTIO_FIO_VERSION, fio_version_string);
	return 1;
}

static int check_options(struct thread_data *td)
{
	const struct engine_options *o = td->eo;

	if (!td->o.filename || td->o.nr_files != 1) {
		log_err("smartio: filename=NAME is wanted, one drive's name in the cluster\n");
		return 1;
	}
	if (fio_option_is_set(&td->o, mem_type)) {
		log_err("smartio: mem= cannot be chosen: the buffers are memory that the drive "
			"reaches\n");
		return 1;
	}
	if (o->wait > WAIT_MOST) {
		log_err("smartio: wait=%u: 0 to %u seconds are right\n", o->wait, WAIT_MOST);
		return 1;
	}
	if ((o->alone || o->share) && !o->survive) {
		log_err("smartio: %s=1 means something with survive=1 alone\n",
			o->alone ? "alone" : "share");
		return 1;
	}
	return 0;
}

/* Blocks of @n bytes. */
static int check_multiple(const char *option, unsigned long long value,
			  const struct smartio_nvme_namespace *ns)
{
	if (value % ns->block_size == 0)
		return 0;
	log_err("smartio: %s=%llu: multiples of the namespace's block, %u bytes, are right\n",
		option, value, ns->block_size);
	return 1;
}

static bool moves_data(const struct thread_data *td, enum fio_ddir d)
{
	const struct engine_options *o = td->eo;

	return d == DDIR_READ || (d == DDIR_WRITE && o->write_mode == MODE_WRITE);
}

/* The bytes of the largest command with data; 0: there is none. */
static unsigned long long largest(const struct thread_data *td)
{
	unsigned long long most = 0;

	for (enum fio_ddir d = DDIR_READ; d <= DDIR_WRITE; d++)
		if (moves_data(td, d) && td->o.td_ddir & (1 << d) && td->o.max_bs[d] > most)
			most = td->o.max_bs[d];
	return most;
}

static int check_sizes(const struct thread_data *td, const struct smartio_nvme_info *info,
		       const struct smartio_nvme_namespace *ns)
{
	const struct engine_options *o = td->eo;
	const unsigned long long most = largest(td);

	for (enum fio_ddir d = DDIR_READ; d < DDIR_RWDIR_CNT; d++)
		if (check_multiple("bs", td->o.min_bs[d], ns) ||
		    check_multiple("bs", td->o.max_bs[d], ns))
			return 1;
	if (check_multiple("offset", td->o.start_offset, ns))
		return 1;
	if (most > info->max_transfer) {
		log_err("smartio: bs=%llu: up to %u bytes, the most that the drive moves with one "
			"command, are right\n",
			most, info->max_transfer);
		return 1;
	}
	if (o->write_mode != MODE_WRITE &&
	    td->o.max_bs[DDIR_WRITE] / ns->block_size > ZEROES_MOST) {
		log_err("smartio: bs=%llu: up to %u blocks of %u bytes are right with write_mode\n",
			td->o.max_bs[DDIR_WRITE], ZEROES_MOST, ns->block_size);
		return 1;
	}
	return 0;
}

static int check_commands(const struct thread_data *td, const struct smartio_nvme_info *info)
{
	const struct engine_options *o = td->eo;

	if (td_trim(td) && !(info->features & SMARTIO_NVME_HAS_DEALLOCATE)) {
		log_err("smartio: %s has no Dataset Management, which trims are\n", name_of(td));
		return 1;
	}
	if (td_write(td) && o->write_mode == MODE_ZEROES &&
	    !(info->features & SMARTIO_NVME_HAS_WRITE_ZEROES)) {
		log_err("smartio: write_mode=zeroes: %s has no Write Zeroes\n", name_of(td));
		return 1;
	}
	return 0;
}

/* In the process that starts the jobs, which closes the drive again: a job may be another one. */
static int engine_setup(struct thread_data *td)
{
	const struct engine_options *o = td->eo;
	struct smartio_nvme_namespace ns;
	struct smartio_nvme_info info;
	struct client *c;
	struct fio_file *f;
	int rc;

	if (check_version() || check_options(td))
		return 1;
	f = td->files[0];
	c = get_client(f->file_name, o);
	if (!c)
		return 1;
	smartio_nvme_get_info(c->drive, &info);
	rc = find_namespace(c, o->nsid, &ns);
	if (rc == 0)
		rc = check_sizes(td, &info, &ns) || check_commands(td, &info);
	put_client(c);
	if (rc)
		return rc;
	f->filetype = FIO_TYPE_BLOCK;
	f->real_file_size = ns.blocks * ns.block_size;
	fio_file_set_size_known(f);
	return 0;
}

/* ---- a job ---- */

static int place_sq(const char *text, struct smartio_nvme_queue_options *q)
{
	static const char *const name[] = {[SMARTIO_NVME_PLACE_AUTO] = "auto",
					   [SMARTIO_NVME_PLACE_DEVICE] = "lender",
					   [SMARTIO_NVME_PLACE_LOCAL] = "local",
					   [SMARTIO_NVME_PLACE_CMB] = "cmb"};

	if (!text)
		return 0;
	if (!strncmp(text, "device:", 7) && text[7]) {
		q->sq_device = text + 7;
		return 0;
	}
	for (uint32_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		if (!strcmp(text, name[i])) {
			q->sq_placement = i;
			return 0;
		}
	log_err("smartio: sq=%s: one of auto, local, lender, cmb, device:NAME is right\n", text);
	return 1;
}

static int open_queue(struct thread_data *td, struct job *j)
{
	const struct engine_options *o = td->eo;
	const unsigned wait_ms = 1000 * o->wait;
	struct smartio_nvme_queue_options q = {
		.size = sizeof(q),
		.depth = j->depth,
		.max_transfer = (uint32_t)largest(td),
		.cq_placement = o->cq,
		.namespace_id = o->nsid,
		.wait_ms = wait_ms,
		.survive_ms = o->survive ? (wait_ms ? wait_ms : 1) : 0,
		.timeout_ms = o->cmd_timeout,
		.flags = (o->interrupt ? SMARTIO_NVME_INTERRUPT : 0) |
			 (o->survive ? SMARTIO_NVME_SURVIVE : 0) |
			 (o->alone ? SMARTIO_NVME_ALONE : 0) | (o->share ? SMARTIO_NVME_SHARED : 0),
	};

	if (place_sq(o->sq, &q))
		return 1;
	return smartio_nvme_queue_open(j->client->drive, &q, &j->queue) ? say() : 0;
}

static void engine_cleanup(struct thread_data *td)
{
	struct job *j = td->io_ops_data;

	if (!j)
		return;
	smartio_nvme_queue_close(j->queue);
	smartio_nvme_buffer_free(j->ranges);
	smartio_nvme_buffer_free(j->buffer); /* a queue that died had it in use until now */
	if (j->client)
		put_client(j->client);
	free(j->new);
	free(j->done);
	free(j);
	td->io_ops_data = NULL;
}

static int engine_init(struct thread_data *td)
{
	const struct engine_options *o = td->eo;
	struct job *j = calloc(1, sizeof(*j));

	td->io_ops_data = j;
	if (!j)
		return 1;
	j->depth = td->o.iodepth;
	j->done = calloc(j->depth, sizeof(*j->done));
	j->new = calloc(j->depth, sizeof(*j->new));
	if (!j->done || !j->new)
		goto fail;
	j->client = get_client(name_of(td), o);
	if (!j->client || find_namespace(j->client, o->nsid, &j->ns) || open_queue(td, j))
		goto fail;
	return 0;
fail:
	engine_cleanup(td);
	return 1;
}

static int engine_iomem_alloc(struct thread_data *td, size_t bytes)
{
	struct job *j = td->io_ops_data;

	if (smartio_nvme_buffer_alloc(j->client->drive, bytes, &j->buffer)) {
		td->terminate = true; /* fio would begin, without buffers */
		return say();
	}
	td->orig_buffer = smartio_nvme_buffer_data(j->buffer);
	return 0;
}

static void engine_iomem_free(struct thread_data *td)
{
	struct job *j = td->io_ops_data;

	if (j && smartio_nvme_buffer_free(j->buffer) == 0)
		j->buffer = NULL;
}

/* ---- commands ---- */

static int fill_range(struct job *j, const struct io_u *io_u, uint64_t lba, uint64_t blocks,
		      struct smartio_nvme_piece *piece)
{
	struct smartio_nvme_range *r;
	int rc;

	if (!j->ranges) {
		rc = smartio_nvme_buffer_alloc(j->client->drive, j->depth * sizeof(*r), &j->ranges);
		if (rc)
			return rc;
	}
	*piece = (struct smartio_nvme_piece){
		.buffer = j->ranges, .offset = io_u->index * sizeof(*r), .bytes = sizeof(*r)};
	r = smartio_nvme_buffer_data(j->ranges);
	r[io_u->index] = (struct smartio_nvme_range){.blocks = htole32((uint32_t)blocks),
						     .lba = htole64(lba)};
	return 0;
}

static void fill_write(const struct engine_options *o, struct smartio_nvme_command *c)
{
	static const enum smartio_nvme_op op[] = {[MODE_WRITE] = SMARTIO_NVME_WRITE,
						  [MODE_ZEROES] = SMARTIO_NVME_WRITE_ZEROES,
						  [MODE_VERIFY] = SMARTIO_NVME_VERIFY};

	c->op = op[o->write_mode];
	c->flags = o->writefua ? SMARTIO_NVME_FUA : 0;
}

static int fill(const struct thread_data *td, const struct io_u *io_u,
		struct smartio_nvme_command *c, struct smartio_nvme_piece *piece)
{
	const struct engine_options *o = td->eo;
	struct job *j = td->io_ops_data;
	const uint64_t blocks = io_u->xfer_buflen / j->ns.block_size;
	const uint64_t lba = io_u->offset / j->ns.block_size;

	*c = (struct smartio_nvme_command){.cookie = (void *)io_u, .piece = piece};
	if (ddir_sync(io_u->ddir)) {
		c->op = SMARTIO_NVME_FLUSH;
		return 0;
	}
	/* bs_unaligned, or an I/O log that is played. */
	if (io_u->offset % j->ns.block_size || io_u->xfer_buflen % j->ns.block_size ||
	    blocks == 0 || blocks > UINT32_MAX)
		return -EINVAL;
	if (io_u->ddir == DDIR_TRIM) {
		c->op = SMARTIO_NVME_DEALLOCATE;
		c->blocks = c->n_pieces = 1;
		return fill_range(j, io_u, lba, blocks, piece);
	}
	c->op = SMARTIO_NVME_READ;
	c->flags = o->readfua ? SMARTIO_NVME_FUA : 0;
	if (io_u->ddir == DDIR_WRITE)
		fill_write(o, c);
	c->lba = lba;
	c->blocks = (uint32_t)blocks;
	if (!moves_data(td, io_u->ddir))
		return 0;
	c->n_pieces = 1;
	*piece = (struct smartio_nvme_piece){
		.buffer = j->buffer,
		.offset = (size_t)((char *)io_u->xfer_buf -
				   (char *)smartio_nvme_buffer_data(j->buffer)),
		.bytes = io_u->xfer_buflen};
	return 0;
}

static enum fio_q_status engine_queue(struct thread_data *td, struct io_u *io_u)
{
	struct job *j = td->io_ops_data;
	struct smartio_nvme_command c;
	struct smartio_nvme_piece piece;
	int rc;

	fio_ro_check(td, io_u);
	rc = fill(td, io_u, &c, &piece);
	if (rc == 0)
		rc = smartio_nvme_submit_commands(j->queue, &c, 1);
	if (rc > 0) {
		j->in_flight++;
		j->new[j->n_new++] = io_u;
		return FIO_Q_QUEUED;
	}
	if (rc == -EAGAIN) {
		/* A queue that is being made anew goes on when it is polled; fio would not. */
		rc = j->in_flight ? 0 : smartio_nvme_poll(j->queue, j->done, j->depth);
		if (rc >= 0)
			return FIO_Q_BUSY;
	}
	log_err("smartio: %s: %s\n", name_of(td),
		rc == -EINVAL ? "the offset or length is no multiple of its blocks"
			      : smartio_nvme_error());
	io_u->error = (unsigned)-rc;
	return FIO_Q_COMPLETED;
}

/* A command's time begins with the doorbell. */
static int engine_commit(struct thread_data *td)
{
	struct job *j = td->io_ops_data;
	struct timespec now;

	if (j->n_new && fio_fill_issue_time(td)) {
		fio_gettime(&now, NULL);
		for (unsigned i = 0; i < j->n_new; i++) {
			j->new[i]->issue_time = now;
			io_u_queued(td, j->new[i]);
		}
		if (td->o.read_iolog_file)
			td->last_issue = now;
	}
	j->n_new = 0;
	smartio_nvme_ring(j->queue);
	return 0;
}

/* Sleeps, or returns to poll: until @deadline_ns at most. Return: as smartio_nvme_wait(). */
static int wait_more(const struct thread_data *td, struct job *j, uint64_t deadline_ns)
{
	const struct engine_options *o = td->eo;
	uint64_t now, ms = UINT32_MAX;

	if (deadline_ns != UINT64_MAX) {
		now = smartio_now_ns();
		if (now >= deadline_ns)
			return 0;
		ms = (deadline_ns - now + 999999) / 1000000;
	}
	if (!o->interrupt)
		return 1;
	return smartio_nvme_wait(j->queue, (uint32_t)(ms < UINT32_MAX ? ms : UINT32_MAX));
}

/* @limit NULL: as long as @min take. */
static int engine_getevents(struct thread_data *td, unsigned int min, unsigned int max,
			    const struct timespec *limit)
{
	struct job *j = td->io_ops_data;
	uint64_t deadline_ns = UINT64_MAX;
	unsigned n = 0;
	int rc;

	if (limit)
		deadline_ns = smartio_now_ns() + (uint64_t)limit->tv_sec * 1000000000u +
			      (uint64_t)limit->tv_nsec;
	engine_commit(td); /* a poll rings, too */
	do {
		rc = smartio_nvme_poll(j->queue, j->done + n, max - n);
		if (rc < 0)
			break;
		n += (unsigned)rc;
		rc = n < min ? wait_more(td, j, deadline_ns) : 0;
	} while (rc > 0);
	j->in_flight -= n;
	if (rc >= 0 || n)
		return (int)n;
	say();
	/* fio takes the first error that it hears, and would print its own as a wrong number. */
	td_verror(td, -rc, "engine_getevents");
	return rc;
}

static struct io_u *engine_event(struct thread_data *td, int event)
{
	struct job *j = td->io_ops_data;
	const struct smartio_nvme_completion *c = &j->done[event];
	struct io_u *io_u = c->cookie;

	io_u->error = c->status ? EIO : 0;
	io_u->resid = c->status ? io_u->xfer_buflen : 0;
	/* For errdetails. The field is an engine's own; that for numbers has the io_u's index. */
	io_u->mmap_data = (void *)(uintptr_t)c->status;
	return io_u;
}

/* fio prints it behind what it says of the command. */
static char *engine_errdetails(struct io_u *io_u)
{
	const uint32_t status = (uint32_t)(uintptr_t)io_u->mmap_data;
	char *text;

	if (asprintf(&text, "smartio: status 0x%03x: %s", status,
		     smartio_nvme_status_string(status)) < 0)
		return NULL; /* printf() knows it */
	return text;
}

static int engine_nothing(struct thread_data *td, struct fio_file *f)
{
	(void)td, (void)f;
	return 0;
}

/* fio looks it up by this name. */
__attribute__((visibility("default"))) struct ioengine_ops ioengine = {
	.name = "smartio",
	.version = FIO_IOOPS_VERSION,
	.flags = FIO_RAWIO | FIO_NOEXTEND | FIO_NODISKUTIL | FIO_MEMALIGN | FIO_DISKLESSIO |
		 FIO_ASYNCIO_SETS_ISSUE_TIME,
	.setup = engine_setup,
	.init = engine_init,
	.cleanup = engine_cleanup,
	.iomem_alloc = engine_iomem_alloc,
	.iomem_free = engine_iomem_free,
	.queue = engine_queue,
	.commit = engine_commit,
	.getevents = engine_getevents,
	.event = engine_event,
	.errdetails = engine_errdetails,
	.open_file = engine_nothing,
	.close_file = engine_nothing,
	.options = options,
	.option_struct_size = sizeof(struct engine_options),
};
