/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts without data between hosts: latched, counting, callbacks, removal, loss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "topology.h"

#define LATCHED 17u
#define COUNTING 18u
#define MANY 5000u

static sci_local_interrupt_t listen_on(sci_desc_t sd, unsigned number, unsigned flags)
{
	sci_local_interrupt_t i = NULL;
	sci_error_t error;

	SCICreateInterrupt(sd, &i, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO | flags, &error);
	CHECK_OK(error);
	return i;
}

static sci_remote_interrupt_t reach(sci_desc_t sd, unsigned node, unsigned number)
{
	sci_remote_interrupt_t i = NULL;
	sci_error_t error;

	SCIConnectInterrupt(sd, &i, node, 0, number, 0, 0, &error);
	CHECK_OK(error);
	return i;
}

static void trigger(sci_remote_interrupt_t i, unsigned times)
{
	sci_error_t error;

	while (times-- > 0) {
		SCITriggerInterrupt(i, 0, &error);
		CHECK_OK(error);
	}
}

static sci_error_t wait_for(sci_local_interrupt_t i, unsigned timeout)
{
	sci_error_t error;

	SCIWaitForInterrupt(i, timeout, 0, &error);
	return error;
}

static bool readable(sci_local_interrupt_t i)
{
	struct pollfd p = {.fd = smartio_interrupt_fd(i), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void remove_when_free(sci_local_interrupt_t i)
{
	sci_error_t error;

	do {
		SCIRemoveInterrupt(i, 0, &error);
	} while (error == SCI_ERR_BUSY);
	CHECK_OK(error);
}

/* ---- latched and counting ---- */

static int receiver(void *arg)
{
	sci_local_interrupt_t latched, counting, same = NULL;
	sci_desc_t sd = api_begin();
	unsigned number = LATCHED, other = 0;
	sci_error_t error;

	(void)arg;
	latched = listen_on(sd, LATCHED, 0);
	counting = listen_on(sd, COUNTING, SCI_FLAG_COUNTING_INT);
	SCICreateInterrupt(sd, &same, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	CHECK_IS(error, SCI_ERR_INTNO_USED);
	SCICreateInterrupt(sd, &same, 0, &other, NULL, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(other != LATCHED && other != COUNTING);
	SCIRemoveInterrupt(same, 0, &error);
	CHECK_OK(error);
	CHECK_IS(wait_for(same, 0), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(smartio_interrupt_fd(same) == -1);
	CHECK_IS(wait_for(latched, 0), SCI_ERR_TIMEOUT);
	CHECK_IS(wait_for(latched, 10), SCI_ERR_TIMEOUT);
	CHECK(!readable(latched));
	step_done(0);
	step_await(1);
	CHECK(readable(latched));
	/* Triggered often before anybody waited. */
	CHECK_OK(wait_for(latched, 0));
	CHECK_IS(wait_for(latched, 0), SCI_ERR_TIMEOUT);
	for (unsigned i = 0; i < MANY; i++)
		CHECK_OK(wait_for(counting, SCI_INFINITE_TIMEOUT));
	CHECK_IS(wait_for(counting, 0), SCI_ERR_TIMEOUT);
	SCIRemoveInterrupt(latched, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	step_done(2);
	CHECK_OK(wait_for(latched, SCI_INFINITE_TIMEOUT));
	step_done(3);
	step_await(4);
	SCIRemoveInterrupt(latched, 0, &error);
	CHECK_OK(error);
	remove_when_free(counting);
	api_end(sd);
	return 0;
}

static int sender(void *arg)
{
	sci_remote_interrupt_t latched, counting, none = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	(void)arg;
	step_await(0);
	SCIConnectInterrupt(sd, &none, cluster_node(8), 0, LATCHED + 9, SCI_INFINITE_TIMEOUT, 0,
			    &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_INTNO);
	SCIConnectInterrupt(sd, &none, 9, 0, LATCHED, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_NODEID);
	latched = reach(sd, cluster_node(8), LATCHED);
	SCIConnectInterrupt(sd, &counting, cluster_node(8), 0, COUNTING, 0, SCI_FLAG_COUNTING_INT,
			    &error);
	CHECK_OK(error);
	trigger(latched, MANY);
	trigger(counting, MANY);
	step_done(1);
	step_await(2);
	trigger(latched, 1);
	step_await(3);
	SCIDisconnectInterrupt(counting, 0, &error);
	CHECK_OK(error);
	SCITriggerInterrupt(counting, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIDisconnectInterrupt(latched, 0, &error);
	CHECK_OK(error);
	/* The same daemon's word about what was between the two comes before its next answer. */
	SCIConnectInterrupt(sd, &none, cluster_node(8), 0, LATCHED + 9, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_INTNO);
	step_done(4);
	api_end(sd);
	return 0;
}

static void triggers_are_latched_or_counted(void **state)
{
	pid_t a, b;

	steps_reset();
	a = cluster_fork(*state, 8, receiver, NULL);
	b = cluster_fork(*state, 4, sender, NULL);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/* ---- wrong uses ---- */

static sci_callback_action_t never(void *arg, sci_local_interrupt_t interrupt, sci_error_t status)
{
	(void)arg;
	(void)interrupt;
	(void)status;
	return SCI_CALLBACK_CONTINUE;
}

static int wrong_uses(void *arg)
{
	sci_local_data_interrupt_t dint = NULL;
	sci_local_interrupt_t i = NULL;
	sci_remote_interrupt_t r = NULL;
	sci_desc_t sd = api_begin();
	unsigned number = LATCHED;
	sci_error_t error;

	(void)arg;
	SCICreateInterrupt(sd, NULL, 0, &number, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCICreateInterrupt(sd, &i, 0, NULL, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCICreateInterrupt(sd, &i, 0, &number, NULL, NULL, SCI_FLAG_USE_CALLBACK, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCICreateInterrupt(sd, &i, 1, &number, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_ADAPTERNO);
	SCICreateInterrupt(sd, &i, 0, &number, NULL, NULL, SCI_FLAG_BROADCAST, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	CHECK(i == NULL);
	SCICreateInterrupt(sd, &i, 0, &number, never, NULL,
			   SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO, &error);
	CHECK_OK(error);
	/* Data interrupts have numbers of their own. */
	SCICreateDataInterrupt(sd, &dint, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	CHECK_OK(error);
	SCIRemoveDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
	CHECK_IS(wait_for(i, 0), SCI_ERR_ILLEGAL_OPERATION);
	CHECK_IS(wait_for((sci_local_interrupt_t)sd, 0), SCI_ERR_ILLEGAL_PARAMETER);
	SCIConnectInterrupt(sd, &r, 4, 0, number, 0, SCI_FLAG_FIXED_INTNO, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCIConnectInterrupt(sd, NULL, 4, 0, number, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	r = reach(sd, SCI_LOCAL_HOST, number);
	SCITriggerInterrupt(r, 1, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCIRemoveInterrupt(i, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIDisconnectInterrupt(r, 0, &error);
	CHECK_OK(error);
	SCIDisconnectInterrupt(r, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCITriggerInterrupt(NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIRemoveInterrupt(i, 0, &error);
	CHECK_OK(error);
	SCIRemoveInterrupt(i, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	api_end(sd);
	return 0;
}

static void wrong_uses_are_refused(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, wrong_uses, NULL)), 0);
}

/* ---- callbacks ---- */

struct served {
	sci_desc_t sd;
	unsigned count;
	pthread_mutex_t mutex;
	pthread_cond_t condition;
};

/* Answers from inside: connect, trigger, disconnect. Cancels after the tenth. */
static sci_callback_action_t serve(void *arg, sci_local_interrupt_t interrupt, sci_error_t status)
{
	sci_remote_interrupt_t back;
	struct served *s = arg;
	sci_error_t error;
	unsigned count;

	CHECK(interrupt != NULL);
	CHECK_OK(status);
	back = reach(s->sd, 4, COUNTING);
	trigger(back, 1);
	SCIDisconnectInterrupt(back, 0, &error);
	CHECK_OK(error);
	pthread_mutex_lock(&s->mutex);
	count = ++s->count;
	pthread_cond_signal(&s->condition);
	pthread_mutex_unlock(&s->mutex);
	return count == 10 ? SCI_CALLBACK_CANCEL : SCI_CALLBACK_CONTINUE;
}

static int server(void *arg)
{
	struct served s = {.sd = api_begin(),
			   .mutex = PTHREAD_MUTEX_INITIALIZER,
			   .condition = PTHREAD_COND_INITIALIZER};
	unsigned number = LATCHED;
	sci_local_interrupt_t i = NULL;
	sci_error_t error;

	SCICreateInterrupt(s.sd, &i, 0, &number, serve, &s,
			   SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO | (unsigned)(uintptr_t)arg,
			   &error);
	CHECK_OK(error);
	step_done(0);
	pthread_mutex_lock(&s.mutex);
	while (s.count < 10)
		pthread_cond_wait(&s.condition, &s.mutex);
	pthread_mutex_unlock(&s.mutex);
	step_await(1);
	remove_when_free(i);
	CHECK(s.count == 10);
	api_end(s.sd);
	return 0;
}

static int customer(void *arg)
{
	bool at_once = arg != NULL;
	sci_desc_t sd = api_begin();
	sci_local_interrupt_t answers = listen_on(sd, COUNTING, SCI_FLAG_COUNTING_INT);
	sci_remote_interrupt_t r;
	sci_error_t error;

	step_await(0);
	r = reach(sd, cluster_node(8), LATCHED);
	if (at_once)
		trigger(r, 30);
	for (unsigned i = 0; i < 10; i++) {
		if (!at_once)
			trigger(r, 1);
		CHECK_OK(wait_for(answers, SCI_INFINITE_TIMEOUT));
	}
	/* It was cancelled. */
	trigger(r, 1);
	CHECK_IS(wait_for(answers, 20), SCI_ERR_TIMEOUT);
	SCIDisconnectInterrupt(r, 0, &error);
	CHECK_OK(error);
	step_done(1);
	remove_when_free(answers);
	api_end(sd);
	return 0;
}

static void serve_with(void **state, unsigned flags)
{
	pid_t a, b;

	steps_reset();
	a = cluster_fork(*state, 8, server, (void *)(uintptr_t)flags);
	b = cluster_fork(*state, 4, customer, (void *)(uintptr_t)flags);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

static void callbacks_make_any_call(void **state)
{
	serve_with(state, 0);
}

static void a_counting_callback_runs_for_each_trigger(void **state)
{
	serve_with(state, SCI_FLAG_COUNTING_INT);
}

/* ---- threads ---- */

struct waiting {
	sci_local_interrupt_t i;
	unsigned taken, ended; /* atomic */
};

static void *take_all(void *arg)
{
	struct waiting *w = arg;
	sci_error_t error;

	while ((error = wait_for(w->i, SCI_INFINITE_TIMEOUT)) == SCI_ERR_OK)
		if (__atomic_add_fetch(&w->taken, 1, __ATOMIC_SEQ_CST) == 2 * MANY)
			step_done(0);
	if (error != SCI_ERR_ILLEGAL_PARAMETER) /* it came after the removal */
		CHECK_IS(error, SCI_ERR_CANCELLED);
	__atomic_add_fetch(&w->ended, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *trigger_many(void *arg)
{
	trigger(arg, MANY);
	return NULL;
}

static int threads(void *arg)
{
	sci_desc_t sd = api_begin();
	struct waiting w = {.i = listen_on(sd, COUNTING, SCI_FLAG_COUNTING_INT)};
	sci_remote_interrupt_t r = reach(sd, 4, COUNTING);
	pthread_t wait[3], send[2];
	sci_error_t error;

	(void)arg;
	for (unsigned n = 0; n < 3; n++)
		CHECK(!pthread_create(&wait[n], NULL, take_all, &w));
	for (unsigned n = 0; n < 2; n++)
		CHECK(!pthread_create(&send[n], NULL, trigger_many, r));
	for (unsigned n = 0; n < 2; n++)
		pthread_join(send[n], NULL);
	step_await(0);
	SCIDisconnectInterrupt(r, 0, &error);
	CHECK_OK(error);
	SCIRemoveInterrupt(w.i, 0, &error);
	CHECK_OK(error);
	for (unsigned n = 0; n < 3; n++)
		pthread_join(wait[n], NULL);
	CHECK(w.taken == 2 * MANY && w.ended == 3);
	api_end(sd);
	return 0;
}

static void threads_share_an_interrupt(void **state)
{
	steps_reset();
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, threads, NULL)), 0);
}

/* ---- loss ---- */

static int dies_with_everything_open(void *arg)
{
	sci_desc_t sd = api_begin();

	(void)arg;
	listen_on(sd, LATCHED, 0);
	step_done(0);
	while (pause() < 0)
		;
	return 0;
}

static int loses(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_interrupt_t r;
	sci_error_t error;

	(void)arg;
	step_await(0);
	r = reach(sd, cluster_node(8), LATCHED);
	step_done(1);
	do {
		SCITriggerInterrupt(r, 0, &error);
	} while (error == SCI_ERR_OK);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	SCIDisconnectInterrupt(r, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_dead_receiver_is_told_and_frees_its_number(void **state)
{
	for (unsigned round = 0; round < 2; round++) {
		pid_t a, b;

		steps_reset();
		a = cluster_fork(*state, 8, dies_with_everything_open, NULL);
		b = cluster_fork(*state, 4, loses, NULL);
		step_await(1);
		kill(a, SIGKILL);
		assert_int_equal(cluster_wait(a), 128 + SIGKILL);
		assert_int_equal(cluster_wait(b), 0);
	}
}

static int waits_for_ever(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_interrupt_t i = listen_on(sd, LATCHED, 0);
	sci_error_t error;

	(void)arg;
	step_done(0);
	CHECK_IS(wait_for(i, SCI_INFINITE_TIMEOUT), SCI_ERR_NO_LINK_ACCESS);
	SCIRemoveInterrupt(i, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_wait_ends_when_the_own_host_crashes(void **state)
{
	pid_t a;

	cluster_needs(NEEDS_CRASH);
	steps_reset();
	a = cluster_fork(*state, 12, waits_for_ever, NULL);
	step_await(0);
	cluster_crash(*state, 12);
	assert_int_equal(cluster_wait(a), 0);
	assert_int_equal(cluster_restart(*state, 12, 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(triggers_are_latched_or_counted),
		API_TEST(wrong_uses_are_refused),
		API_TEST(callbacks_make_any_call),
		API_TEST(a_counting_callback_runs_for_each_trigger),
		API_TEST(threads_share_an_interrupt),
		API_TEST(a_dead_receiver_is_told_and_frees_its_number),
		API_TEST(a_wait_ends_when_the_own_host_crashes),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
