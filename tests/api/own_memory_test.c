/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments whose memory is the program's own pages. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/mapped.h"
#include "topology.h"

#define PAGE 4096u
#define BYTES (5 * PAGE)

static sci_local_segment_t empty_segment(sci_desc_t sd, unsigned id)
{
	sci_local_segment_t seg = NULL;
	sci_error_t error;

	SCICreateSegment(sd, &seg, id, BYTES - 3, NULL, NULL, SCI_FLAG_EMPTY, &error);
	CHECK_OK(error);
	CHECK(SCIGetLocalSegmentSize(seg) == BYTES);
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

static sci_error_t add_memory(sci_local_segment_t seg, void *address, size_t size)
{
	sci_error_t error;

	SCIRegisterSegmentMemory(address, size, seg, SCI_FLAG_LOCK_USER_MEM, &error);
	return error;
}

/* ---- others reach it, contents are kept ---- */

static uint8_t *allocate(bool heap, size_t bytes)
{
	uint8_t *p = heap ? aligned_alloc(PAGE, bytes)
			  : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);

	CHECK(p && (void *)p != MAP_FAILED);
	for (unsigned i = 0; i < bytes; i++)
		put8(p + i, (uint8_t)(i / PAGE + i));
	return p;
}

static int child_writes(uint8_t *p)
{
	if (p[0] != 0 || p[PAGE] != 0x77 || p[BYTES - 1] != (uint8_t)(4 + BYTES - 1))
		return 1;
	memset(p, 0xee, BYTES);
	step_done(4); /* what the parent writes now is not seen here */
	step_await(5);
	return p[0] == 0xee && p[1] == 0xee ? 0 : 2;
}

/* A child's copy is its own, both ways. */
static void check_fork(uint8_t *p)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(child_writes(p));
	step_await(4);
	CHECK(p[0] == 0 && p[PAGE] == 0x77);
	p[1] = 0x55;
	step_done(5);
	CHECK(cluster_wait(pid) == 0);
	CHECK(p[0] == 0 && p[1] == 0x55);
	p[1] = 1;
}

struct owning {
	bool heap, forks;
};

static int owner(void *arg)
{
	const struct owning *how = arg;
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = empty_segment(sd, 1);
	uint8_t *p = allocate(how->heap, BYTES), *q;
	sci_error_t error;
	sci_map_t map;

	CHECK_OK(add_memory(seg, p, BYTES));
	publish(seg);
	q = SCIMapLocalSegment(seg, &map, 0, BYTES, NULL, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < BYTES; i++)
		CHECK(get8(p + i) == (uint8_t)(i / PAGE + i) && get8(q + i) == get8(p + i));
	step_done(0);
	step_await(1);
	CHECK(get8(p + PAGE) == 0x77 && get8(q + PAGE) == 0x77);
	put8(p + 2 * PAGE, 0x78);
	step_done(2);
	if (how->forks)
		check_fork(p);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	step_await(3);
	api_remove_segment(seg);
	CHECK(get8(p + PAGE) == 0x77 && get8(p + 2 * PAGE) == 0x78 &&
	      get8(p + BYTES - 1) == (uint8_t)(4 + BYTES - 1));
	/* The program's own again, also for another segment. */
	put8(p, 9);
	seg = empty_segment(sd, 1);
	CHECK_OK(add_memory(seg, p, BYTES));
	CHECK(get8(p) == 9 && get8(p + PAGE) == 0x77);
	api_remove_segment(seg);
	if (how->heap)
		free(p);
	else
		munmap(p, BYTES);
	api_end(sd);
	return 0;
}

static int peer(void *arg)
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
	for (unsigned i = 0; i < BYTES; i++)
		CHECK(get8(p + i) == (uint8_t)(i / PAGE + i));
	put8(p + PAGE, 0x77);
	step_done(1);
	step_await(2);
	CHECK(get8(p + 2 * PAGE) == 0x78);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	step_done(3);
	api_end(sd);
	return 0;
}

static void share_pages(void **state, bool forks)
{
	for (unsigned heap = 0; heap < 2; heap++) {
		struct owning how = {heap, forks};
		pid_t a, b;

		steps_reset();
		a = cluster_fork(*state, 8, owner, &how);
		b = cluster_fork(*state, 4, peer, NULL);
		assert_int_equal(cluster_wait(b), 0);
		assert_int_equal(cluster_wait(a), 0);
	}
}

static void own_pages_are_shared(void **state)
{
	share_pages(state, false);
}

static void a_child_has_a_copy_of_its_own(void **state)
{
	cluster_needs_kernel(NEEDS_FORK);
	share_pages(state, true);
}

/* ---- what is refused ---- */

static uint8_t file_pages[2 * PAGE] __attribute__((aligned(PAGE))) = {1}; /* of the executable */

static int wrong_memory(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = empty_segment(sd, 1), full = NULL;
	uint8_t *p = allocate(false, BYTES), *shared;
	uint8_t stack[3 * PAGE];
	sci_remote_segment_t far = NULL;
	sci_error_t error;
	sci_map_t map = NULL;

	(void)arg;
	CHECK_IS(add_memory(seg, p + 1, PAGE), SCI_ERR_ILLEGAL_ADDRESS);
	CHECK_IS(add_memory(seg, NULL, PAGE), SCI_ERR_ILLEGAL_ADDRESS);
	CHECK_IS(add_memory(seg, (void *)(UINTPTR_MAX - PAGE + 1), PAGE), SCI_ERR_ILLEGAL_ADDRESS);
	CHECK_IS(add_memory(seg, p, PAGE - 1), SCI_ERR_SIZE_ALIGNMENT);
	CHECK_IS(add_memory(seg, p, 0), SCI_ERR_SIZE_ALIGNMENT);
	CHECK_IS(add_memory(seg, p, BYTES + PAGE), SCI_ERR_OUT_OF_RANGE);
	CHECK_IS(add_memory((sci_local_segment_t)sd, p, PAGE), SCI_ERR_ILLEGAL_PARAMETER);
	SCIRegisterSegmentMemory(p, PAGE, seg, 1, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	CHECK_IS(add_memory(seg, file_pages, PAGE), SCI_ERR_NOT_SUPPORTED);
	CHECK_IS(add_memory(seg, (uint8_t *)(((uintptr_t)stack + PAGE) & ~(uintptr_t)(PAGE - 1)),
			    PAGE),
		 SCI_ERR_NOT_SUPPORTED);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK_IS(add_memory(seg, shared, PAGE), SCI_ERR_NOT_SUPPORTED);
	munmap(shared, PAGE);
	CHECK_IS(add_memory(seg, shared, PAGE), SCI_ERR_ILLEGAL_ADDRESS);
	munmap(p + 3 * PAGE, PAGE);
	CHECK_IS(add_memory(seg, p, BYTES), SCI_ERR_ILLEGAL_ADDRESS);
	mprotect(p + 2 * PAGE, PAGE, PROT_READ);
	CHECK_IS(add_memory(seg, p, 3 * PAGE), SCI_ERR_ILLEGAL_ADDRESS);
	CHECK(p[0] == 0 && p[PAGE] == 1);
	/* Without memory it is of no use yet. */
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	SCIConnectSegment(sd, &far, 4, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_SEGMENT);
	/* After all this a good one is taken, once. */
	CHECK_OK(add_memory(seg, p, 2 * PAGE));
	CHECK_IS(add_memory(seg, p, PAGE), SCI_ERR_ILLEGAL_OPERATION);
	CHECK(p[0] == 0 && p[PAGE] == 1 && p[PAGE + 1] == 2);
	publish(seg);
	api_remove_segment(seg);
	SCICreateSegment(sd, &full, 2, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	CHECK_IS(add_memory(full, p, PAGE), SCI_ERR_ILLEGAL_OPERATION);
	api_remove_segment(full);
	/* Removed as it is. */
	api_remove_segment(empty_segment(sd, 3));
	api_end(sd);
	return 0;
}

static void other_memory_is_refused(void **state)
{
	cluster_needs_kernel(NEEDS_PAGES);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, wrong_memory, NULL)), 0);
}

/* Neither is there; programs get the errors that tell so. */
static int no_devices_memory(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = empty_segment(sd, 1), full = NULL;
	sci_error_t error;

	(void)arg;
	SCIAttachPhysicalMemory(0, &error, 0, 65536, seg, SCI_FLAG_CUDA_BUFFER, &error);
	CHECK_IS(error, SCI_ERR_HW_NOSPC);
	SCIAttachPhysicalMemory(0x1000, NULL, 0, PAGE, seg, SCI_FLAG_SCIF_BUFFER, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCIAttachPhysicalMemory(0x1000, NULL, 0, PAGE, seg, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCIAttachPhysicalMemory(0x1000, NULL, 0, 0, seg, 0, &error);
	CHECK_IS(error, SCI_ERR_SIZE_ALIGNMENT);
	SCIAttachPhysicalMemory(0x1000, NULL, 0, PAGE, seg, 1, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCIAttachPhysicalMemory(0x1000, NULL, 0, PAGE, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	api_remove_segment(seg);
	SCICreateSegment(sd, &full, 2, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIAttachPhysicalMemory(0x1000, NULL, 0, PAGE, full, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	api_remove_segment(full);
	api_end(sd);
	return 0;
}

static void physical_memory_is_not_attached(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, no_devices_memory, NULL)), 0);
}

/* ---- ends in disorder ---- */

static int ends_in_disorder(void *arg)
{
	sci_desc_t sd = api_begin();
	uint8_t *p = allocate(false, BYTES), *q = allocate(false, BYTES);
	sci_local_segment_t seg = empty_segment(sd, 1), other = empty_segment(sd, 2);

	(void)arg;
	CHECK_OK(add_memory(seg, p, BYTES));
	CHECK_OK(add_memory(other, q, BYTES));
	publish(seg);
	/* A part is gone, another is something else; a fork and the end look at what is left. */
	munmap(p + PAGE, PAGE);
	CHECK(mmap(p + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + 2 * PAGE);
	p[2 * PAGE] = 0x21;
	munmap(q, BYTES);
	{
		pid_t pid = fork();

		if (pid == 0) {
			bool good = p[0] == 0 && p[2 * PAGE] == 0x21 && p[3 * PAGE] == 3;

			p[0] = 0x31;
			_exit(good ? 0 : 1);
		}
		CHECK(cluster_wait(pid) == 0);
	}
	CHECK(p[0] == 0);
	SCITerminate();
	CHECK(p[0] == 0 && p[2 * PAGE] == 0x21 && p[3 * PAGE] == 3 &&
	      p[BYTES - 1] == (uint8_t)(4 + BYTES - 1));
	p[3 * PAGE] = 4;
	return 0;
}

static void memory_may_be_gone_before_the_segment(void **state)
{
	cluster_needs_kernel(NEEDS_PAGES);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, ends_in_disorder, NULL)), 0);
}

static int keeps_its_memory(void *arg)
{
	sci_desc_t sd = api_begin();
	uint8_t *p = allocate(true, BYTES);
	sci_local_segment_t seg = empty_segment(sd, 1);
	sci_error_t error;

	(void)arg;
	CHECK_OK(add_memory(seg, p, BYTES));
	publish(seg);
	step_done(0);
	CHECK(SCIWaitForLocalSegmentEvent(seg, NULL, NULL, SCI_INFINITE_TIMEOUT, 0, &error) == 0);
	CHECK_IS(error, SCI_ERR_NO_LINK_ACCESS);
	CHECK(get8(p) == 0 && get8(p + PAGE) == 1);
	api_remove_segment(seg);
	CHECK(get8(p) == 0 && get8(p + PAGE) == 1);
	free(p);
	api_end(sd);
	return 0;
}

static void own_memory_outlives_the_host(void **state)
{
	pid_t a;

	cluster_needs(NEEDS_CRASH);
	steps_reset();
	a = cluster_fork(*state, 12, keeps_its_memory, NULL);
	step_await(0);
	cluster_crash(*state, 12);
	assert_int_equal(cluster_wait(a), 0);
	assert_int_equal(cluster_restart(*state, 12, 4), 0);
}

/*
 * None is left for looking where the pages lie. It could be memory, too, but sanitizers need some.
 */
static void limit_descriptors(bool none)
{
	struct rlimit limit;
	int next = dup(0);

	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(next >= 0 || !none);
	limit.rlim_cur = none ? (rlim_t)next : limit.rlim_max;
	if (next >= 0)
		close(next);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* The segment is removed, its pages are as they were, and the handle is there to try again. */
static int removes_without_descriptors(void *arg)
{
	sci_desc_t sd = api_begin();
	uint8_t *p = allocate(false, BYTES);
	sci_local_segment_t seg = empty_segment(sd, 1), other;
	sci_remote_segment_t far = NULL;
	sci_error_t error;
	pid_t pid;

	(void)arg;
	CHECK_OK(add_memory(seg, p, BYTES));
	publish(seg);
	limit_descriptors(true);
	for (unsigned i = 0; i < 2; i++) {
		SCIRemoveSegment(seg, 0, &error);
		CHECK_IS(error, SCI_ERR_NOSPC);
		CHECK(p[0] == 0 && p[PAGE] == 1 && p[BYTES - 1] == (uint8_t)(4 + BYTES - 1));
		p[1] = 7;
	}
	limit_descriptors(false);
	SCIConnectSegment(sd, &far, cluster_node(4), 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_SEGMENT);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	other = empty_segment(sd, 1); /* the number is free */
	api_remove_segment(seg);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	pid = fork();
	if (pid == 0) {
		p[1] = 8;
		_exit(0);
	}
	CHECK(cluster_wait(pid) == 0);
	CHECK(p[0] == 0 && p[1] == 7 && p[PAGE] == 1);
	CHECK_OK(add_memory(other, p, BYTES)); /* the program's own again */
	api_remove_segment(other);
	munmap(p, BYTES);
	api_end(sd);
	return 0;
}

static void pages_come_back_later(void **state)
{
	cluster_needs_kernel(NEEDS_PAGES);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, removes_without_descriptors, NULL)),
			 0);
}

/* ---- threads that go on storing ---- */

#define STORERS 2u
#define ROUNDS (cluster_is_machine() ? 50u : 500u)
#define LARGE (64 * PAGE) /* that takes a while to be copied */

struct storer {
	pthread_t thread;
	volatile uint64_t *first; /* of two counters on different pages */
	uint64_t stores, lost;
};

static bool storing;

/* Each word is this thread's alone: who finds another number there has lost a store. */
static void *store(void *arg)
{
	struct storer *s = arg;
	volatile uint64_t *second = s->first + (LARGE - 2 * PAGE) / sizeof(*s->first);

	*s->first = 0;
	*second = 0;
	while (__atomic_load_n(&storing, __ATOMIC_ACQUIRE)) {
		s->lost += *s->first != s->stores || *second != s->stores;
		s->stores++;
		*s->first = s->stores;
		*second = s->stores;
	}
	s->lost += *s->first != s->stores || *second != s->stores;
	return NULL;
}

/* The kernel's stores for a system call of a thread are its stores, too. */
static void *store_by_call(void *arg)
{
	struct storer *s = arg;
	int end[2];

	CHECK(pipe(end) == 0);
	*s->first = 0;
	while (__atomic_load_n(&storing, __ATOMIC_ACQUIRE)) {
		uint64_t next = s->stores + 1;

		CHECK(write(end[1], &next, sizeof(next)) == sizeof(next));
		if (read(end[0], (void *)(uintptr_t)s->first, sizeof(next)) != sizeof(next)) {
			CHECK(errno == EFAULT); /* told, where the kernel's cannot wait */
			*s->first = next;
			while (poll(&(struct pollfd){.fd = end[0], .events = POLLIN}, 1, 0) > 0)
				CHECK(read(end[0], &next, sizeof(next)) > 0);
		}
		s->lost += *s->first != next;
		s->stores = next;
	}
	close(end[0]);
	close(end[1]);
	return NULL;
}

static void register_and_remove(sci_desc_t sd, uint8_t *p, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		sci_local_segment_t seg = NULL;
		sci_error_t error;

		SCICreateSegment(sd, &seg, 1, LARGE, NULL, NULL, SCI_FLAG_EMPTY, &error);
		CHECK_OK(error);
		CHECK_OK(add_memory(seg, p, LARGE));
		api_remove_segment(seg);
	}
}

static int stores_meanwhile(void *arg)
{
	const bool *heap = arg;
	struct storer s[STORERS] = {0};
	sci_desc_t sd = api_begin();
	uint8_t *p = allocate(*heap, LARGE);

	__atomic_store_n(&storing, true, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < STORERS; i++) {
		s[i].first = (volatile uint64_t *)(p + PAGE) + 8 * i;
		CHECK(pthread_create(&s[i].thread, NULL, i ? store : store_by_call, &s[i]) == 0);
	}
	register_and_remove(sd, p, ROUNDS);
	__atomic_store_n(&storing, false, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < STORERS; i++) {
		CHECK(pthread_join(s[i].thread, NULL) == 0);
		fprintf(stderr, "thread %u: %lu stores, %lu lost\n", i, (unsigned long)s[i].stores,
			(unsigned long)s[i].lost);
		CHECK(s[i].stores > 0 && s[i].lost == 0);
	}
	CHECK(get8(p) == 0 && get8(p + LARGE - 1) == (uint8_t)(LARGE / PAGE - 1 + LARGE - 1));
	if (*heap)
		free(p);
	else
		munmap(p, LARGE);
	api_end(sd);
	return 0;
}

static void no_store_is_lost(void **state)
{
	cluster_needs_kernel(NEEDS_PAGES);
	for (unsigned i = 0; i < 2; i++) {
		bool heap = i;

		assert_int_equal(cluster_wait(cluster_fork(*state, 4, stores_meanwhile, &heap)), 0);
	}
}

/* As in a container: neither the system call nor the device gives one. */
static void forbid_userfaultfd(void)
{
	const uint32_t no = SECCOMP_RET_ERRNO | EPERM, device_new = 0xaa00;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, device_new, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, no),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(filter) / sizeof(filter[0]), filter};

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0);
	CHECK(syscall(SYS_userfaultfd, 0) < 0 && errno == EPERM);
}

static void *wait_for_end(void *arg)
{
	char byte;

	CHECK(read(*(const int *)arg, &byte, 1) == 0);
	return NULL;
}

static int is_refused(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = empty_segment(sd, 1), other = empty_segment(sd, 2);
	uint8_t *p = allocate(false, BYTES);
	sci_error_t error;
	pthread_t thread;
	int end[2];

	(void)arg;
	forbid_userfaultfd();
	CHECK_OK(add_memory(other, p, BYTES)); /* nobody else is there */
	api_remove_segment(other);
	CHECK_OK(add_memory(seg, p, BYTES));
	CHECK(pipe(end) == 0);
	CHECK(pthread_create(&thread, NULL, wait_for_end, &end[0]) == 0);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_IS(error, SCI_ERR_NOSPC);
	CHECK(strstr(smartio_last_error(), "userfaultfd"));
	other = empty_segment(sd, 2);
	CHECK_IS(add_memory(other, p, BYTES), SCI_ERR_NOT_SUPPORTED);
	CHECK_IS(add_memory(other, allocate(false, BYTES), BYTES), SCI_ERR_NOT_SUPPORTED);
	CHECK(strstr(smartio_last_error(), "userfaultfd"));
	CHECK(get8(p) == 0 && get8(p + PAGE) == 1);
	close(end[1]);
	CHECK(pthread_join(thread, NULL) == 0);
	api_remove_segment(seg); /* the handle was kept for that */
	CHECK_OK(add_memory(other, p, BYTES));
	api_remove_segment(other);
	CHECK(get8(p) == 0 && get8(p + PAGE) == 1);
	api_end(sd);
	return 0;
}

static void what_cannot_wait_is_refused(void **state)
{
	cluster_needs_kernel(NEEDS_PAGES);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, is_refused, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(own_pages_are_shared),
		API_TEST(a_child_has_a_copy_of_its_own),
		API_TEST(other_memory_is_refused),
		API_TEST(physical_memory_is_not_attached),
		API_TEST(memory_may_be_gone_before_the_segment),
		API_TEST(pages_come_back_later),
		API_TEST(own_memory_outlives_the_host),
		API_TEST(no_store_is_lost),
		API_TEST(what_cannot_wait_is_refused),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
