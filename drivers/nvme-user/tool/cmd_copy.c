/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copy between a file and a drive: a ring of chunks, used in order, several in flight. The file is
 * read from and written to chunk memory directly.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "document.h"
#include "tool.h"

#define CHUNK (128u << 10)
#define CHUNKS 8u
#define CHUNKS_MAX 64u

struct copy {
	const struct options *o;
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *buffer;
	struct smartio_nvme_namespace ns;
	struct progress progress;
	uint8_t *data;
	const char *name; /* of the file */
	int fd;
	uint32_t chunk, chunks; /* bytes of each, how many */
	uint32_t first, flying; /* the oldest in flight, and how many are */
	struct chunk {
		uint32_t bytes; /* of the file */
		bool done;
		uint32_t status;
	} slot[CHUNKS_MAX];
	uint64_t end, at, finished; /* bytes of the copy: all, started, done */
};

static int start(struct copy *c, const struct options *o)
{
	struct smartio_nvme_queue_options qo = {.size = sizeof(qo), .namespace_id = o->nsid};
	struct smartio_nvme_info info;

	if (o->depth > CHUNKS_MAX)
		return failed("depth %" PRIu64 ": a copy has 1 to %u chunks in flight", o->depth,
			      CHUNKS_MAX);
	c->chunks = o->depth ? (uint32_t)o->depth : CHUNKS;
	smartio_nvme_get_info(c->n, &info);
	if (c->chunks > info.max_queue_entries - 1)
		c->chunks = info.max_queue_entries - 1;
	c->chunk = info.max_transfer < CHUNK ? info.max_transfer : CHUNK;
	if (c->chunk < c->ns.block_size)
		return failed("%s takes %u bytes at once, less than a block", o->device, c->chunk);
	qo.depth = c->chunks;
	qo.max_transfer = c->chunk;
	if (open_pair(o, c->n, false, &qo, &c->q))
		return EXIT_FAILED;
	if (smartio_nvme_buffer_alloc(c->n, (size_t)c->chunk * c->chunks, &c->buffer))
		return failed_nvme();
	c->data = smartio_nvme_buffer_data(c->buffer);
	return EXIT_OK;
}

static uint8_t *chunk_data(struct copy *c, uint32_t i)
{
	return c->data + (size_t)i * c->chunk;
}

static uint32_t blocks(const struct copy *c, uint32_t bytes)
{
	return (bytes + c->ns.block_size - 1) / c->ns.block_size;
}

/* Note what has landed. */
static int take(struct copy *c)
{
	struct smartio_nvme_completion done[8];
	int n = smartio_nvme_poll(c->q, done, 8);

	if (n < 0)
		return failed_nvme();
	for (int k = 0; k < n; k++) {
		struct chunk *s = done[k].cookie;

		s->done = true;
		s->status = done[k].status;
	}
	return interrupted ? failed("interrupted") : EXIT_OK;
}

/* Put chunk @i, which begins at byte @at of the copy, on its way. */
static int fly(struct copy *c, enum smartio_nvme_op op, uint32_t i, uint64_t at, uint32_t bytes)
{
	int rc;

	c->slot[i] = (struct chunk){.bytes = bytes};
	/* There is room: if it takes none it gets another queue pair just now, by being polled. */
	while ((rc = smartio_nvme_submit(c->q, op, (c->o->offset + at) / c->ns.block_size,
					 blocks(c, bytes), c->buffer, (size_t)i * c->chunk,
					 &c->slot[i])) == -EAGAIN) {
		rc = take(c);
		if (rc)
			return rc;
	}
	if (rc)
		return failed_nvme();
	c->flying++;
	return EXIT_OK;
}

/* Wait until the oldest chunk has landed. */
static int land(struct copy *c, uint32_t *ret)
{
	uint32_t i = c->first;

	while (!c->slot[i].done) {
		int rc = take(c);

		if (rc)
			return rc;
	}
	if (c->slot[i].status)
		return failed("%s at byte %" PRIu64 ": %s", c->o->device,
			      c->o->offset + c->finished,
			      smartio_nvme_status_string(c->slot[i].status));
	c->first = (i + 1) % c->chunks;
	c->flying--;
	*ret = i;
	return EXIT_OK;
}

/* Reads as much of @len as the file has. Return: bytes; -1: reported. */
static int64_t fill(struct copy *c, uint8_t *to, uint32_t len)
{
	uint32_t got = 0;

	while (got < len) {
		ssize_t n = read(c->fd, to + got, len - got);

		if (n == 0)
			break;
		if (n < 0 && errno == EINTR && !interrupted)
			continue;
		if (n < 0) {
			failed("cannot read %s: %s", c->name, strerror(errno));
			return -1;
		}
		got += (uint32_t)n;
	}
	return got;
}

static int spill(struct copy *c, const uint8_t *from, uint32_t len)
{
	while (len) {
		ssize_t n = write(c->fd, from, len);

		if (n < 0 && errno == EINTR && !interrupted)
			continue;
		if (n < 0)
			return failed("cannot write %s: %s", c->name, strerror(errno));
		from += n;
		len -= (uint32_t)n;
	}
	return EXIT_OK;
}

/* The bytes of the last block that the file does not fill stay as they are on the drive. */
static int keep_rest(struct copy *c, uint8_t *data, uint64_t at, uint32_t bytes)
{
	uint32_t size = c->ns.block_size, part = bytes % size;
	uint8_t *block;
	int rc = EXIT_OK;

	if (part == 0)
		return EXIT_OK;
	block = malloc(size);
	if (!block)
		return failed("no memory for a block: " SIO_DRIVER_MORE_MEMORY);
	if (smartio_nvme_read(c->q, block, c->o->offset + at + bytes - part, size))
		rc = failed_nvme();
	else
		memcpy(data + bytes, block + part, size - part);
	free(block);
	return rc;
}

static int finish_write(struct copy *c)
{
	uint32_t i;
	int rc = land(c, &i);

	if (rc)
		return rc;
	c->finished += c->slot[i].bytes;
	progress_show(&c->progress, c->finished);
	return EXIT_OK;
}

/* Fill and send the next chunk. @ret_end: the file has no more. */
static int send_next(struct copy *c, bool *ret_end)
{
	uint32_t i = (c->first + c->flying) % c->chunks, want = c->chunk;
	int64_t got;
	int rc = EXIT_OK;

	if (c->end - c->at < want)
		want = (uint32_t)(c->end - c->at);
	got = want ? fill(c, chunk_data(c, i), want) : 0;
	if (got < 0)
		return EXIT_FAILED;
	*ret_end = got < c->chunk;
	if (got == 0)
		return EXIT_OK;
	if (*ret_end) {
		/* The helper wants the queue for itself. */
		while (rc == EXIT_OK && got % c->ns.block_size && c->flying)
			rc = finish_write(c);
		if (rc == EXIT_OK)
			rc = keep_rest(c, chunk_data(c, i), c->at, (uint32_t)got);
	}
	if (rc == EXIT_OK)
		rc = fly(c, SMARTIO_NVME_WRITE, i, c->at, (uint32_t)got);
	c->at += (uint64_t)got;
	return rc;
}

static int write_all(struct copy *c)
{
	bool end = false;
	int rc = EXIT_OK;

	while (rc == EXIT_OK && !end) {
		if (c->flying == c->chunks)
			rc = finish_write(c);
		if (rc == EXIT_OK)
			rc = send_next(c, &end);
		smartio_nvme_ring(c->q);
	}
	while (rc == EXIT_OK && c->flying)
		rc = finish_write(c);
	if (rc == EXIT_OK && c->o->has_length && c->finished < c->o->length)
		rc = failed("%s has only %" PRIu64 " of %" PRIu64 " bytes", c->name, c->finished,
			    c->o->length);
	if (rc == EXIT_OK && smartio_nvme_flush(c->q))
		rc = failed_nvme();
	return rc;
}

static int read_all(struct copy *c)
{
	uint32_t i;
	int rc = EXIT_OK;

	while (rc == EXIT_OK && c->finished < c->end) {
		while (rc == EXIT_OK && c->flying < c->chunks && c->at < c->end) {
			uint64_t left = c->end - c->at;

			rc = fly(c, SMARTIO_NVME_READ, (c->first + c->flying) % c->chunks, c->at,
				 left < c->chunk ? (uint32_t)left : c->chunk);
			c->at += c->chunk;
		}
		if (rc == EXIT_OK)
			rc = land(c, &i);
		if (rc == EXIT_OK)
			rc = spill(c, chunk_data(c, i), c->slot[i].bytes);
		if (rc == EXIT_OK) {
			c->finished += c->slot[i].bytes;
			progress_show(&c->progress, c->finished);
		}
	}
	return rc;
}

/* Where the copy ends: what the options say, within the namespace. */
static int set_range(struct copy *c)
{
	const struct options *o = c->o;
	uint64_t size = c->ns.blocks * c->ns.block_size;

	if (o->offset % c->ns.block_size)
		return failed("offset %" PRIu64 " is not a multiple of the block size, %u",
			      o->offset, c->ns.block_size);
	if (o->offset > size || (o->has_length && o->length > size - o->offset))
		return failed("offset %" PRIu64 " + %" PRIu64 " bytes: namespace %u of %s ends at "
			      "%" PRIu64,
			      o->offset, o->has_length ? o->length : 0, o->nsid, o->device, size);
	c->end = o->has_length ? o->length : size - o->offset;
	return EXIT_OK;
}

static int run(struct copy *c, int (*all)(struct copy *c))
{
	int rc = open_drive(c->o, &c->n);

	if (rc)
		return rc;
	rc = find_namespace(c->o, c->n, &c->ns);
	if (rc == EXIT_OK)
		rc = set_range(c);
	if (rc == EXIT_OK)
		rc = start(c, c->o);
	if (rc == EXIT_OK) {
		catch_signals(NULL);
		rc = all(c);
		progress_end(&c->progress);
	}
	close_drive(c->n);
	return rc;
}

static bool is_dash(const char *file)
{
	return !file || !strcmp(file, "-");
}

/* A file that does not fit is refused before anything is written. */
static int write_checked(struct copy *c)
{
	off_t size = lseek(c->fd, 0, SEEK_END);

	if (size >= 0) {
		lseek(c->fd, 0, SEEK_SET);
		if (!c->o->has_length && (uint64_t)size > c->end)
			return failed("%s has %lld bytes; from offset %" PRIu64 " on there is room "
				      "for %" PRIu64,
				      c->name, (long long)size, c->o->offset, c->end);
	}
	progress_start(&c->progress, c->o, "copied",
		       c->o->has_length ? c->o->length
		       : size > 0	? (uint64_t)size
					: 0);
	return write_all(c);
}

/* With --json: what was copied. */
static void print_json(const struct copy *c, const char *direction)
{
	struct json_object *data = doc_object();

	doc_string(data, "device", c->o->device);
	doc_string(data, "direction", direction);
	doc_string(data, "file", c->name);
	doc_number(data, "namespace", c->o->nsid);
	doc_hex(data, "offset", c->o->offset);
	doc_number(data, "bytes", c->finished);
	doc_print("nvme-copy", data);
}

int cmd_copy_in(const struct options *o)
{
	struct copy c = {.o = o, .name = is_dash(o->file) ? "stdin" : o->file};
	uint8_t extra;
	int rc;

	c.fd = is_dash(o->file) ? dup(STDIN_FILENO) : open(o->file, O_RDONLY | O_CLOEXEC);
	if (c.fd < 0)
		return failed("cannot open %s: %s", c.name, strerror(errno));
	rc = run(&c, write_checked);
	/* A stream may be longer than there is room. */
	if (rc == EXIT_OK && !o->has_length && c.finished == c.end && read(c.fd, &extra, 1) == 1)
		rc = failed("%s has more than the %" PRIu64 " bytes that there is room for; they "
			    "were written",
			    c.name, c.end);
	if (rc == EXIT_OK && o->json)
		print_json(&c, "in");
	close(c.fd);
	return rc;
}

static int read_with_progress(struct copy *c)
{
	progress_start(&c->progress, c->o, "copied", c->end);
	return read_all(c);
}

int cmd_copy_out(const struct options *o)
{
	struct copy c = {.o = o, .name = is_dash(o->file) ? "stdout" : o->file};
	int rc;

	if (is_dash(o->file) && o->json)
		return failed("with --json the data cannot go to stdout, too: name a file");
	if (is_dash(o->file) && isatty(STDOUT_FILENO))
		return failed("stdout is a terminal: name a file, or redirect it");
	c.fd = is_dash(o->file) ? dup(STDOUT_FILENO)
				: open(o->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (c.fd < 0)
		return failed("cannot open %s: %s", c.name, strerror(errno));
	rc = run(&c, read_with_progress);
	if (close(c.fd) != 0 && rc == EXIT_OK)
		rc = failed("cannot write %s: %s", c.name, strerror(errno));
	if (rc == EXIT_OK && o->json)
		print_json(&c, "out");
	return rc;
}
