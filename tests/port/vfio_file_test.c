/* SPDX-License-Identifier: BSD-2-Clause */
/* Which files of a program smartio-vfio takes as memory, and in what pages it maps them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "smartio/uapi.h"
#include "smartiod/port_vfio/vfio_file.h"

#define PAGE 4096u
#define SIZE (4 * PAGE + 1)

static int file(unsigned flags, int seals)
{
	int fd = memfd_create("file", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd >= 0 && !(flags & MFD_HUGETLB))
		assert_int_equal(ftruncate(fd, SIZE), 0);
	if (fd >= 0)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* @fd once more, for reading alone. */
static int readable(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void is_refused(int fd, uint32_t kind, int error, const char *words)
{
	struct sio_err err;
	uint64_t size;

	assert_int_equal(vfio_file_size(fd, kind, &size, &err), error);
	assert_non_null(strstr(err.text, words));
	if (fd >= 0)
		close(fd);
}

static void which_files_are_memory(void **state)
{
	int fd = file(0, F_SEAL_SHRINK);
	struct sio_err err;
	uint64_t size = 0;

	(void)state;
	assert_int_equal(vfio_file_size(fd, SIO_IMPORT_FILE, &size, &err), 0);
	assert_int_equal(size, SIZE / PAGE * PAGE);
	assert_int_equal(vfio_file_size(fd, SIO_IMPORT_MEMFD, &size, &err), 0);
	is_refused(file(0, F_SEAL_GROW), SIO_IMPORT_FILE, -EINVAL, "F_SEAL_SHRINK");
	is_refused(file(0, F_SEAL_SHRINK | F_SEAL_WRITE), SIO_IMPORT_FILE, -EINVAL,
		   "against writing");
	is_refused(file(0, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE), SIO_IMPORT_FILE, -EINVAL,
		   "against writing");
	is_refused(readable(fd), SIO_IMPORT_FILE, -EINVAL, "for reading and writing");
	is_refused(open("/dev/null", O_RDWR | O_CLOEXEC), SIO_IMPORT_FILE, -EBADF, "/dev/dax");
	is_refused(-1, SIO_IMPORT_FILE, -EBADF, "IMPORT");
	is_refused(fd, SIO_IMPORT_HUGETLB, -EBADF, "a memfd of huge pages is right");
}

/* What is mapped in parts of a huge page the kernel neither maps everywhere, nor unmaps. */
static void pages_are_mapped_whole(void **state)
{
	static const struct {
		unsigned flags;
		uint64_t page;
	} kind[] = {{0, PAGE},
		    {MFD_HUGETLB | MFD_HUGE_2MB, 2u << 20},
		    {MFD_HUGETLB | MFD_HUGE_1GB, 1u << 30}};
	unsigned found = 0;

	(void)state;
	for (unsigned i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
		int fd = file(kind[i].flags, F_SEAL_SHRINK);

		if (fd < 0) /* this processor or kernel has no such pages */
			continue;
		if (kind[i].flags) /* ordinary ones the system may make larger (shmem_enabled) */
			assert_int_equal(vfio_file_page(fd), kind[i].page);
		else
			assert_int_equal(vfio_file_page(fd) % PAGE, 0);
		close(fd);
		found++;
	}
	assert_true(found > 0);
	assert_int_equal(vfio_file_page(-1), PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_files_are_memory),
		cmocka_unit_test(pages_are_mapped_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
