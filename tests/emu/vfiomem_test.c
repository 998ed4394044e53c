/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of machines: each session's share of places and files, and files that are cut short. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "emu/live/vfiomem.h"

#define RAM (1u << 20)
#define PLACES 4u

static int new_file(void)
{
	int fd = memfd_create("ram", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(PLACES * RAM)), 0);
	return fd;
}

static unsigned open_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Fills the table with the file's RAM, piece by piece. */
static void fill(struct live_vfiomem *m, int fd, uint8_t **data)
{
	for (unsigned i = 0; i < PLACES; i++) {
		void *there = NULL;

		assert_int_equal(live_vfiomem_map(m, fd, i * RAM, RAM, true, &there), 0);
		data[i] = there;
	}
}

static void empty(struct live_vfiomem *m, uint8_t **data)
{
	for (unsigned i = 0; i < PLACES; i++)
		live_vfiomem_unmap(m, data[i], RAM);
}

static void one_takes_nothing_of_the_others(void **state)
{
	struct live_vfiomem drive = {0}, a = {0}, b = {0};
	unsigned before;
	int fd = new_file(), others[2] = {new_file(), new_file()};
	uint8_t *of_drive[PLACES], *of_a[PLACES], *of_b[PLACES];
	uint64_t offset = 0;
	void *more[2];

	(void)state;
	before = open_descriptors();
	assert_int_equal(live_vfiomem_open(&drive, PLACES, 0), 0);
	assert_int_equal(live_vfiomem_open(&a, PLACES, 2), 0);
	assert_int_equal(live_vfiomem_open(&b, PLACES, 2), 0);
	fill(&drive, fd, of_drive);
	fill(&a, fd, of_a);
	assert_int_equal(live_vfiomem_map(&a, fd, 0, RAM, true, &more[0]), -ENOSPC);
	fill(&b, fd, of_b);
	/* Each adapter's is kept once for all pieces, the drive's is not. */
	assert_int_equal(open_descriptors(), before + 2);
	for (unsigned i = 0; i < PLACES; i++) {
		assert_int_equal(live_vfiomem_file(of_drive[i], &offset), -1);
		assert_int_equal(live_vfiomem_file(of_a[i], &offset),
				 live_vfiomem_file(of_a[0], &offset));
		assert_true(live_vfiomem_file(of_b[i] + 0x1000, &offset) >= 0);
		assert_int_equal(offset, i * RAM + 0x1000);
	}
	/* What goes makes room for what comes, of so many files. */
	for (unsigned i = 0; i < 2; i++) {
		live_vfiomem_unmap(&a, of_a[i], RAM);
		assert_int_equal(
			live_vfiomem_map(&a, others[i], i * 0x1000, 0x1000, true, &more[i]), 0);
	}
	assert_true(live_vfiomem_file(more[0], &offset) >= 0);
	assert_int_equal(live_vfiomem_file(more[1], &offset), -1);
	live_vfiomem_unmap(&a, more[0], 0x1000);
	assert_int_equal(live_vfiomem_map(&a, others[1], 0x1000, 0x1000, true, &more[0]), 0);
	assert_true(live_vfiomem_file(more[0], &offset) >= 0);
	assert_int_equal(offset, 0x1000);
	assert_int_equal(open_descriptors(), before + 3);
	for (unsigned i = 0; i < 2; i++) {
		live_vfiomem_unmap(&a, more[i], 0x1000);
		assert_int_equal(open_descriptors(), before + 2);
		of_a[i] = of_a[PLACES - 1 - i];
	}
	live_vfiomem_unmap(&a, of_a[0], RAM);
	live_vfiomem_unmap(&a, of_a[1], RAM);
	live_vfiomem_close(&a); /* in the middle of the list */
	empty(&b, of_b);
	live_vfiomem_close(&b);
	empty(&drive, of_drive);
	live_vfiomem_close(&drive);
	live_vfiomem_close(&drive);
	assert_int_equal(open_descriptors(), before);
	close(fd);
	for (unsigned i = 0; i < 2; i++)
		close(others[i]);
}

static void files_cut_short_read_as_zeros(void **state)
{
	struct live_vfiomem a = {0}, b = {0};
	volatile uint8_t *data;
	uint8_t *of_a[PLACES], *of_b[PLACES];
	int fd = new_file(), other = new_file();

	(void)state;
	live_vfiomem_guard();
	assert_int_equal(live_vfiomem_open(&a, PLACES, 0), 0);
	assert_int_equal(live_vfiomem_open(&b, PLACES, 0), 0);
	fill(&a, fd, of_a);
	fill(&b, other, of_b);
	for (unsigned i = 0; i < PLACES; i++)
		of_a[i][7] = of_b[i][7] = 0x55;
	assert_int_equal(ftruncate(fd, RAM), 0);
	data = of_a[3];
	assert_int_equal(data[7], 0);
	data[7] = 1; /* nobody's */
	assert_int_equal(data[7], 1);
	assert_int_equal(of_a[0][7], 0x55);
	assert_int_equal(of_b[3][7], 0x55);
	empty(&a, of_a);
	empty(&b, of_b);
	live_vfiomem_close(&a);
	live_vfiomem_close(&b);
	close(fd);
	close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_takes_nothing_of_the_others),
		cmocka_unit_test(files_cut_short_read_as_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
