/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of graphics cards as memory of segments: with a CUDA driver of the test's own, which knows
 * one range of memory and hands out whatever descriptor the test gives it. No GPU has part in it.
 * On a real machine with smartio.ko udmabuf stands for the driver that exports a card's memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/mapped.h"
#include "fake_cuda.h"
#include "smartio/gpu.h"
#include "topology.h"

#define PAGE 4096u
#define BYTES (16 * PAGE) /* what a card's memory is given in: 64 KiB */

static sci_local_segment_t empty_segment(sci_desc_t sd, unsigned id)
{
	sci_local_segment_t seg = NULL;
	sci_error_t error;

	SCICreateSegment(sd, &seg, id, BYTES, NULL, NULL, SCI_FLAG_EMPTY, &error);
	CHECK_OK(error);
	CHECK(smartio_segment_memory(seg, &error) == SMARTIO_MEMORY_NONE);
	CHECK_OK(error);
	return seg;
}

static void publish(sci_local_segment_t seg)
{
	sci_error_t error;

	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
}

static uint8_t *pages(void)
{
	uint8_t *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK((void *)p != MAP_FAILED);
	for (unsigned i = 0; i < BYTES; i++)
		p[i] = (uint8_t)(i / PAGE + i);
	return p;
}

/* From now on the driver knows these alone. */
static void known(enum fake_cuda_kind kind, const void *at, size_t size)
{
	fake_cuda = (struct fake_cuda){.kind = kind, .at = (uintptr_t)at, .size = size, .fd = -1};
}

static sci_error_t attach(const void *at, size_t size, sci_local_segment_t seg)
{
	sci_error_t error;

	SCIAttachPhysicalMemory(0, (void *)(uintptr_t)at, 0, size, seg, SCI_FLAG_CUDA_BUFFER,
				&error);
	return error;
}

static void check_memory(sci_local_segment_t seg, unsigned memory)
{
	sci_error_t error;

	CHECK(smartio_segment_memory(seg, &error) == memory);
	CHECK_OK(error);
}

/* ---- pinned host memory ---- */

static int pins(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = empty_segment(sd, 1);
	uint8_t *p = pages();

	(void)arg;
	known(FAKE_CUDA_REGISTERED, p, BYTES);
	CHECK_OK(attach(p, BYTES, seg));
	/* While its pages moved the card did not reach them; and now it does again. */
	CHECK(fake_cuda.unregistered == 1 && fake_cuda.calls[FAKE_CUDA_REGISTER] == 1);
	CHECK(fake_cuda.kind == FAKE_CUDA_REGISTERED && fake_cuda.at == (uintptr_t)p &&
	      fake_cuda.size == BYTES && fake_cuda.flags == 3);
	check_memory(seg, SMARTIO_MEMORY_PINNED);
	CHECK(strstr(smartio_memory_name(SMARTIO_MEMORY_PINNED), "pinned host memory"));
	CHECK(get8(p) == 0 && get8(p + BYTES - 1) == (uint8_t)(BYTES / PAGE - 1 + BYTES - 1));
	publish(seg);
	step_done(0);
	step_await(1);
	CHECK(get8(p + PAGE) == 0x77);
	api_remove_segment(seg);
	CHECK(fake_cuda.unregistered == 2 && fake_cuda.calls[FAKE_CUDA_REGISTER] == 2);
	CHECK(get8(p + PAGE) == 0x77 && get8(p + 2) == 2);
	/* A driver that has ended, as at the end of a program, keeps nobody. */
	seg = empty_segment(sd, 1);
	CHECK_OK(attach(p, BYTES, seg));
	known(FAKE_CUDA_NONE, NULL, 0);
	api_remove_segment(seg);
	CHECK(get8(p + PAGE) == 0x77 && fake_cuda.calls[FAKE_CUDA_REGISTER] == 0);
	api_end(sd);
	return 0;
}

static int writes(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t seg = NULL;
	volatile uint8_t *p;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	step_await(0);
	SCIConnectSegment(sd, &seg, cluster_node(8), 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	p = SCIMapRemoteSegment(seg, &map, 0, BYTES, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(get8(p + 1) == 1 && get8(p + PAGE) == (uint8_t)(1 + PAGE));
	put8(p + PAGE, 0x77);
	SCIFlush(NULL, 0);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	step_done(1);
	api_end(sd);
	return 0;
}

static void pinned_host_memory_stands_in(void **state)
{
	pid_t a, b;

	steps_reset();
	a = cluster_fork(*state, 8, pins, NULL);
	b = cluster_fork(*state, 4, writes, NULL);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/* ---- what is refused ---- */

/* What cannot be attached: the segment is as before, and the driver, too. */
static void refuses_host_memory(sci_local_segment_t seg, uint8_t *p)
{
	known(FAKE_CUDA_NONE, NULL, 0);
	CHECK_IS(attach(p, BYTES, seg), SCI_ERR_ILLEGAL_ADDRESS);
	CHECK(strstr(smartio_last_error(), "SCIRegisterSegmentMemory"));
	known(FAKE_CUDA_ALLOCATED, p, BYTES);
	CHECK_IS(attach(p, BYTES, seg), SCI_ERR_NOT_SUPPORTED);
	CHECK(strstr(smartio_last_error(), "cudaHostRegister") &&
	      strstr(smartio_last_error(), "the fake did not register that"));
	known(FAKE_CUDA_REGISTERED, p, 2 * BYTES);
	CHECK_IS(attach(p, BYTES, seg), SCI_ERR_ILLEGAL_ADDRESS);
	known(FAKE_CUDA_REGISTERED, p - PAGE, BYTES + PAGE);
	CHECK_IS(attach(p, BYTES, seg), SCI_ERR_ILLEGAL_ADDRESS);
	CHECK(strstr(smartio_last_error(), "all of it is right"));
	CHECK(fake_cuda.unregistered == 0);
	/* Memory that is not the program's private pages: registered again all the same. */
	CHECK(mmap(p, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) == p);
	known(FAKE_CUDA_REGISTERED, p, BYTES);
	CHECK_IS(attach(p, BYTES, seg), SCI_ERR_NOT_SUPPORTED);
	CHECK(fake_cuda.unregistered == 1 && fake_cuda.kind == FAKE_CUDA_REGISTERED);
}

static void refuses_device_memory(sci_local_segment_t seg, const uint8_t *p)
{
	sci_error_t error;

	known(FAKE_CUDA_MANAGED, p, BYTES);
	CHECK_IS(attach(p, BYTES, seg), SCI_ERR_NOT_SUPPORTED);
	CHECK(strstr(smartio_last_error(), "cudaMalloc"));
	known(FAKE_CUDA_DEVICE, p, 2 * BYTES);
	CHECK_IS(attach(p + 1, BYTES, seg), SCI_ERR_ILLEGAL_ADDRESS);
	CHECK_IS(attach(p, BYTES - 1, seg), SCI_ERR_SIZE_ALIGNMENT);
	CHECK_IS(attach(p, 0, seg), SCI_ERR_SIZE_ALIGNMENT);
	CHECK_IS(attach(p, 2 * BYTES, seg), SCI_ERR_OUT_OF_RANGE);
	CHECK_IS(attach(p, BYTES - PAGE, seg), SCI_ERR_OUT_OF_RANGE);
	SCIAttachPhysicalMemory(PAGE, (void *)(uintptr_t)p, 0, BYTES, seg, SCI_FLAG_CUDA_BUFFER,
				&error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_ADDRESS);
	CHECK(fake_cuda.calls[FAKE_CUDA_EXPORT] == 0);
	fake_cuda.fails[FAKE_CUDA_EXPORT] = FAKE_CUDA_INVALID;
	CHECK_IS(attach(p, BYTES, seg), SCI_ERR_HW_NOSPC);
	CHECK(strstr(smartio_last_error(), "the fake takes no such value"));
	fake_cuda.fails[FAKE_CUDA_EXPORT] = 0; /* but it has no descriptor to give */
	CHECK_IS(attach(p, BYTES, seg), SCI_ERR_HW_NOSPC);
	CHECK(strstr(smartio_last_error(), "gave no descriptor"));
}

static int is_refused(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = empty_segment(sd, 1);
	uint8_t *p = pages();
	sci_error_t error;

	(void)arg;
	/* There is a driver, and no card. */
	known(FAKE_CUDA_REGISTERED, p, BYTES);
	fake_cuda.fails[FAKE_CUDA_INIT] = FAKE_CUDA_NO_DEVICE;
	CHECK_IS(attach(p, BYTES, seg), SCI_ERR_HW_NOSPC);
	CHECK(strstr(smartio_last_error(), "the fake has no device"));
	refuses_device_memory(seg, p);
	refuses_host_memory(seg, p);
	check_memory(seg, SMARTIO_MEMORY_NONE);
	CHECK(smartio_segment_memory(NULL, &error) == 0);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(strcmp(smartio_memory_name(77), "") == 0);
	/* The memory that it was to have in their place is there for other pages. */
	SCIRegisterSegmentMemory(p = pages(), BYTES, seg, 0, &error);
	CHECK_IS(error, SCI_ERR_OK);
	check_memory(seg, SMARTIO_MEMORY_PAGES);
	api_remove_segment(seg);
	api_end(sd);
	return 0;
}

static void what_is_wrong_is_refused(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, is_refused, NULL)), 0);
}

/* The pages are the segment's then, and come back with its end. */
static int registers_once(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = empty_segment(sd, 1);
	uint8_t *p = pages();

	(void)arg;
	known(FAKE_CUDA_REGISTERED, p, BYTES);
	fake_cuda.fails[FAKE_CUDA_REGISTER] = FAKE_CUDA_INVALID;
	CHECK_IS(attach(p, BYTES, seg), SCI_ERR_HW_NOSPC);
	CHECK(strstr(smartio_last_error(), "does not register them again"));
	CHECK_IS(attach(p, BYTES, seg), SCI_ERR_ILLEGAL_OPERATION);
	check_memory(seg, SMARTIO_MEMORY_PINNED);
	api_remove_segment(seg);
	CHECK(p[0] == 0 && p[PAGE] == (uint8_t)(1 + PAGE));
	api_end(sd);
	return 0;
}

static void pages_come_back_without_the_driver(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, registers_once, NULL)), 0);
}

/* ---- dma-bufs ---- */

/* -1: this machine has none that a segment could have. */
static int make_dmabuf(int *ret_memfd)
{
	struct udmabuf_create create = {.size = 2 * BYTES, .flags = UDMABUF_FLAGS_CLOEXEC};
	int dev = cluster_is_machine() && !cluster_is_vfio()
			  ? open("/dev/udmabuf", O_RDWR | O_CLOEXEC)
			  : -1;
	int fd;

	*ret_memfd = memfd_create("card", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(*ret_memfd >= 0 && ftruncate(*ret_memfd, 2 * BYTES) == 0);
	if (dev < 0)
		return -1;
	create.memfd = (uint32_t)*ret_memfd;
	CHECK(fcntl(*ret_memfd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	CHECK(fd >= 0);
	close(dev);
	return fd;
}

/* What a segment shows is what lies in the card's memory @at, and others see it by it. */
static void check_shared(sci_desc_t sd, sci_local_segment_t seg, uint8_t *at)
{
	sci_remote_segment_t far = NULL;
	volatile uint8_t *p, *q;
	sci_map_t map, far_map;
	sci_error_t error;

	memset(at, 0x33, BYTES);
	p = SCIMapLocalSegment(seg, &map, 0, BYTES, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(p[0] == 0x33 && p[BYTES - 1] == 0x33);
	publish(seg);
	SCIConnectSegment(sd, &far, cluster_node(4), 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	q = SCIMapRemoteSegment(far, &far_map, 0, BYTES, NULL, 0, &error);
	CHECK_OK(error);
	q[5] = 0x44;
	CHECK(p[5] == 0x44 && at[5] == 0x44);
	SCIUnmapSegment(far_map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(far, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
}

/* Whether a drive reaches it: all of it where an IOMMU makes one range, else a page at least. */
static void check_drive(sci_desc_t sd, sci_local_segment_t seg)
{
	sci_smartio_device_t device = NULL;
	sci_ioaddr_t at = 0;
	unsigned fdid;
	sci_error_t error;

	smartio_find_device(cluster_device(), &fdid, &error);
	CHECK_OK(error);
	SCIBorrowDevice(sd, &device, fdid, 0, &error);
	CHECK_OK(error);
	SCIMapLocalSegmentForDevice(seg, 0, device, &at, 0, PAGE, 0, &error);
	CHECK_OK(error);
	CHECK(at % PAGE == 0);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIUnmapLocalSegmentForDevice(seg, 0, device, 0, &error);
	CHECK_OK(error);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
}

static void shares_dmabuf(sci_desc_t sd, int fd, int memfd)
{
	uint8_t *card = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	sci_local_segment_t seg;
	sci_error_t error;

	CHECK((void *)card != MAP_FAILED);
	for (unsigned of_cuda = 0; of_cuda < 2; of_cuda++) {
		seg = empty_segment(sd, 1);
		known(FAKE_CUDA_DEVICE, card, 2 * BYTES);
		fake_cuda.fd = fd;
		if (of_cuda)
			CHECK_OK(attach(card, BYTES, seg));
		else
			smartio_attach_dmabuf(fd, BYTES, BYTES, seg, 0, &error);
		CHECK(of_cuda || error == SCI_ERR_OK);
		CHECK(!of_cuda || (fake_cuda.exported == BYTES && fake_cuda.synchronous == 1));
		check_memory(seg, of_cuda ? SMARTIO_MEMORY_GPU : SMARTIO_MEMORY_DMABUF);
		check_shared(sd, seg, of_cuda ? card : card + BYTES);
		check_drive(sd, seg);
		api_remove_segment(seg);
	}
	seg = empty_segment(sd, 1);
	smartio_attach_dmabuf(fd, 2 * BYTES, BYTES, seg, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_attach_dmabuf(memfd, 0, BYTES, seg, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	check_memory(seg, SMARTIO_MEMORY_NONE);
	api_remove_segment(seg);
	munmap(card, 2 * BYTES);
}

/* No way leads there: it says so, and says what is right. */
static void cannot_share(sci_desc_t sd, int memfd)
{
	sci_local_segment_t seg = empty_segment(sd, 1);
	const bool emulated = !cluster_is_machine();
	sci_error_t error;
	uint8_t *p = pages();

	known(FAKE_CUDA_DEVICE, p, BYTES);
	fake_cuda.fd = memfd;
	CHECK_IS(attach(p, BYTES, seg), SCI_ERR_HW_NOSPC);
	CHECK(!emulated || (strstr(smartio_last_error(), "emulated cluster") &&
			    strstr(smartio_last_error(), "cudaHostRegister")));
	smartio_attach_dmabuf(memfd, 0, BYTES, seg, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	/* It may have the program's pages all the same. */
	known(FAKE_CUDA_REGISTERED, p, BYTES);
	CHECK_OK(attach(p, BYTES, seg));
	check_memory(seg, SMARTIO_MEMORY_PINNED);
	api_remove_segment(seg);
}

static void refuses_dmabuf(sci_desc_t sd, int memfd)
{
	sci_local_segment_t seg = empty_segment(sd, 1);
	sci_error_t error;

	smartio_attach_dmabuf(-1, 0, BYTES, seg, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_attach_dmabuf(memfd, 1, BYTES, seg, 0, &error);
	CHECK_IS(error, SCI_ERR_SIZE_ALIGNMENT);
	smartio_attach_dmabuf(memfd, 0, 0, seg, 0, &error);
	CHECK_IS(error, SCI_ERR_SIZE_ALIGNMENT);
	smartio_attach_dmabuf(memfd, 0, PAGE, seg, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	smartio_attach_dmabuf(memfd, 0, BYTES, seg, 1, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	smartio_attach_dmabuf(memfd, 0, BYTES, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	api_remove_segment(seg);
	SCICreateSegment(sd, &seg, 1, BYTES, NULL, NULL, 0, &error);
	CHECK_OK(error);
	check_memory(seg, SMARTIO_MEMORY_HOST);
	smartio_attach_dmabuf(memfd, 0, BYTES, seg, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	CHECK_IS(attach(&seg, BYTES, seg), SCI_ERR_ILLEGAL_OPERATION);
	api_remove_segment(seg);
}

static int has_device_memory(void *arg)
{
	sci_desc_t sd = api_begin();
	int memfd, fd = make_dmabuf(&memfd);

	(void)arg;
	refuses_dmabuf(sd, memfd);
	if (fd >= 0)
		shares_dmabuf(sd, fd, memfd);
	else if (!cluster_is_machine() || cluster_is_vfio())
		cannot_share(sd, memfd);
	fprintf(stderr, "dma-bufs: %s\n", fd >= 0 ? "shared" : "not to be had here");
	close(fd);
	close(memfd);
	api_end(sd);
	return 0;
}

static void a_dmabuf_is_shared_where_that_can_be(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, has_device_memory, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(pinned_host_memory_stands_in),
		API_TEST(what_is_wrong_is_refused),
		API_TEST(pages_come_back_without_the_driver),
		API_TEST(a_dmabuf_is_shared_where_that_can_be),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
