/* SPDX-License-Identifier: BSD-2-Clause */
/* A store of files for tests, in memory (fake_store.h). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_store.h"

static int fake_open(struct emu_store *s, const char *path, uint64_t size, void **ret,
		     struct sio_err *reterr)
{
	struct fake_store *f = (struct fake_store *)s;
	struct fake_file *file;

	if (strcmp(path, "/bad") == 0)
		return sio_fail(reterr, -EISDIR, "file %s: wrong", path);
	assert_true(f->n_files < FAKE_STORE_FILES);
	*ret = file = &f->file[f->n_files++];
	*file = (struct fake_file){.data = calloc(1, size), .size = size};
	assert_non_null(file->data);
	return 0;
}

static void fake_close(struct emu_store *s, void *file)
{
	(void)s;
	free(((struct fake_file *)file)->data);
	((struct fake_file *)file)->data = NULL;
}

static int64_t move(const struct fake_store *f, struct fake_file *file,
		    const struct emu_store_io *io)
{
	uint64_t n = f->most && io->length > f->most ? f->most : io->length;

	if (io->op == EMU_STORE_READ) {
		if (io->offset >= file->size)
			return 0;
		if (n > file->size - io->offset)
			n = file->size - io->offset;
		memcpy(io->data, file->data + io->offset, n);
	} else {
		memcpy(file->data + io->offset, io->data, n);
	}
	return (int64_t)n;
}

static int64_t carry_out(struct fake_store *f, const struct emu_store_io *io)
{
	struct fake_file *file = io->file;

	assert_true(f->n_order < sizeof(f->order) - 1);
	f->order[f->n_order++] = io->op == EMU_STORE_WRITE && io->durable ? 'W' : "rwzs"[io->op];
	if (f->fail)
		return -f->fail;
	switch (io->op) {
	case EMU_STORE_READ:
		return move(f, file, io);
	case EMU_STORE_WRITE:
		assert_true(io->offset + io->length <= file->size);
		return move(f, file, io);
	case EMU_STORE_ZERO:
		if (f->no_holes)
			return -EOPNOTSUPP;
		assert_true(io->offset + io->length <= file->size);
		memset(file->data + io->offset, 0, io->length);
		return 0;
	case EMU_STORE_SYNC:
		file->n_sync++;
		return 0;
	}
	return -EINVAL;
}

bool fake_store_end(struct fake_store *f)
{
	struct emu_store_io *io = emu_store_take(&f->begun);

	if (!io)
		return false;
	f->n_begun--;
	io->result = f->undo && io == f->cancelled ? -ECANCELED : carry_out(f, io);
	if (io == f->cancelled)
		f->cancelled = NULL; /* it may be used again */
	emu_store_ended(io);
	return true;
}

static void fake_start(struct emu_store *s, struct emu_store_io *io)
{
	struct fake_store *f = (struct fake_store *)s;

	emu_store_put(&f->begun, io);
	f->n_begun++;
}

static void fake_cancel(struct emu_store *s, struct emu_store_io *io)
{
	struct fake_store *f = (struct fake_store *)s;

	f->cancelled = io;
	f->n_cancelled++;
}

static void fake_poll(struct emu_store *s)
{
	struct fake_store *f = (struct fake_store *)s;

	while (!f->hold && fake_store_end(f))
		;
}

static void fake_wait(struct emu_store *s)
{
	assert_true(fake_store_end((struct fake_store *)s));
}

static const struct emu_store_ops fake_ops = {.open = fake_open,
					      .close = fake_close,
					      .start = fake_start,
					      .cancel = fake_cancel,
					      .poll = fake_poll,
					      .wait = fake_wait};

void fake_store_init(struct fake_store *f)
{
	*f = (struct fake_store){.store.ops = &fake_ops};
}

void fake_store_expect(struct fake_store *f, const char *order)
{
	f->order[f->n_order] = '\0';
	assert_string_equal(f->order, order);
	f->n_order = 0;
}
