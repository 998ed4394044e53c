/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program forks while another thread of it is in the middle of something, with the client's lock.
 * Its child has copies of what it has open, and may close them, as programs do that end: that
 * touches nothing of the parent's, and waits for nobody. What it may not do is refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "client.h"
#include "serving.h"

enum { LENDER = 4, CLIENT = 8 };
#define BYTES 4096u
#define SECONDS 30u /* after which a child that waits for somebody is killed */

static const char topology[] =
	"cluster: fork\n"
	"hosts:\n"
	"  lender: {ram: 64M, iommu: on, devices: {nvme0: {type: nvme, size: 16M}}}\n"
	"  client: {ram: 64M, iommu: on}\n";

static struct open {
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	struct smartio_nvme_lease *l;
	bool works, ends; /* the other thread */
} o;

/* Under the client's lock. */
static int hold(struct smartio_nvme *n, void *of)
{
	(void)n;
	(void)of;
	__atomic_store_n(&o.works, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&o.ends, __ATOMIC_ACQUIRE))
		smartio_yield();
	return 0;
}

static bool is_refused(int rc)
{
	return rc < 0 && strstr(smartio_nvme_error(), "SCIInitialize() has not succeeded");
}

static void be_the_child(void)
{
	struct smartio_nvme_buffer *more;
	uint8_t page[BYTES];
	bool good;

	alarm(SECONDS);
	good = is_refused(smartio_nvme_identify(o.n, 1, 0, page)) &&
	       is_refused(smartio_nvme_buffer_alloc(o.n, BYTES, &more));
	good = good && smartio_nvme_buffer_free(o.b) == 0 && smartio_nvme_lease_give(o.l) == 0;
	smartio_nvme_queue_close(o.q);
	smartio_nvme_close(o.n);
	_exit(good ? 0 : 1);
}

static void fork_once(void)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0)
		be_the_child();
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void use(void)
{
	struct smartio_nvme_completion c;
	int rc;

	for (unsigned i = 0; i < 100; i++) {
		OK(smartio_nvme_submit(o.q, i & 1 ? SMARTIO_NVME_READ : SMARTIO_NVME_WRITE, 0,
				       BYTES / 512, o.b, 0, NULL));
		while ((rc = smartio_nvme_poll(o.q, &c, 1)) == 0)
			;
		OK(rc);
		CHECK(c.status == 0);
	}
}

static int client(void *arg)
{
	struct smartio_nvme_queue_options qo = {.size = sizeof(qo), .depth = 4};
	struct smartio_nvme_lease_info info[2];

	(void)arg;
	begin();
	OK(smartio_nvme_open_wait("nvme0", 10000, &o.n));
	OK(smartio_nvme_lease_take(o.n, "mine", 1, 0, 64, &o.l));
	qo.lease = o.l;
	OK(smartio_nvme_queue_open(o.n, &qo, &o.q));
	OK(smartio_nvme_buffer_alloc(o.n, BYTES, &o.b));
	use();
	fork_once();
	use();
	CHECK(sio_nvme_aside_claim(o.n, hold, NULL));
	sio_nvme_aside_start(o.n);
	while (!__atomic_load_n(&o.works, __ATOMIC_ACQUIRE))
		smartio_yield();
	fork_once();
	use();
	__atomic_store_n(&o.ends, true, __ATOMIC_RELEASE);
	CHECK(smartio_nvme_get_leases(o.n, info, 2) == 1);
	smartio_nvme_close(o.n);
	SCITerminate();
	return 0;
}

static void a_child_of_a_client_touches_nothing(void **state)
{
	struct cluster *c = cluster_up(topology);
	pid_t m;

	(void)state;
	assert_non_null(c);
	steps_reset();
	m = cluster_fork(c, LENDER, manager, NULL);
	step_await(SERVING);
	assert_int_equal(cluster_wait(cluster_fork(c, CLIENT, client, NULL)), 0);
	end_serving(c, m);
}

/* Which would shut the drive down. */
static int forking_manager(void *arg)
{
	int status;
	pid_t child;

	(void)arg;
	begin();
	OK(smartio_nvme_manager_open("nvme0", NULL, &serving));
	signal(SIGTERM, on_term);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		alarm(SECONDS);
		smartio_nvme_manager_close(serving);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	step_done(SERVING);
	OK(smartio_nvme_manager_serve(serving, 0));
	while (smartio_nvme_manager_serve(serving, UINT32_MAX) > 0)
		;
	smartio_nvme_manager_close(serving);
	SCITerminate();
	return 0;
}

static void nor_does_one_of_a_manager(void **state)
{
	struct cluster *c = cluster_up(topology);
	pid_t m;

	(void)state;
	assert_non_null(c);
	steps_reset();
	o.works = o.ends = false;
	m = cluster_fork(c, LENDER, forking_manager, NULL);
	step_await(SERVING);
	assert_int_equal(cluster_wait(cluster_fork(c, CLIENT, client, NULL)), 0);
	end_serving(c, m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_of_a_client_touches_nothing),
		cmocka_unit_test(nor_does_one_of_a_manager),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
