/* SPDX-License-Identifier: BSD-2-Clause */
/* Data interrupts between hosts: order, full queues, many senders, callbacks, removal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <cmocka.h>

#include "dataint.h"

#define NUMBER 17u

/* ---- order, bounds, a sender that leaves, a full queue ---- */

#define SENT 3000u

static int receiver(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_data_interrupt_t dint = listen_on(sd, NUMBER, 0), same = NULL;
	unsigned char data[300];
	unsigned length, number = NUMBER;
	struct pollfd p;
	sci_error_t error;

	(void)arg;
	SCICreateDataInterrupt(sd, &same, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	CHECK_IS(error, SCI_ERR_INTNO_USED);
	length = sizeof(data);
	SCIWaitForDataInterrupt(dint, data, &length, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	SCIWaitForDataInterrupt(dint, data, &length, 10, 0, &error);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	step_done(0);

	/* Sent before anybody waited, by a sender that is gone. */
	step_await(1);
	p = (struct pollfd){.fd = smartio_data_interrupt_fd(dint), .events = POLLIN};
	CHECK(poll(&p, 1, 0) == 1);
	length = 3;
	SCIWaitForDataInterrupt(dint, data, &length, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	CHECK(length == 5);
	SCIWaitForDataInterrupt(dint, data, &length, 0, 0, &error);
	CHECK_OK(error);
	CHECK(length == 5 && !memcmp(data, "first", 5));
	length = sizeof(data);
	SCIWaitForDataInterrupt(dint, data, &length, 0, 0, &error);
	CHECK_OK(error);
	CHECK(length == 6 && !memcmp(data, "second", 6));
	step_done(2);

	for (unsigned i = 0; i < SENT; i++) {
		unsigned value;

		length = sizeof(data);
		SCIWaitForDataInterrupt(dint, data, &length, SCI_INFINITE_TIMEOUT, 0, &error);
		CHECK_OK(error);
		CHECK(length == 4 + i % 90);
		memcpy(&value, data, sizeof(value));
		CHECK(value == i);
	}
	step_done(3);
	step_await(4);
	/* A full queue kept all that it took. */
	for (unsigned i = 0;; i++) {
		unsigned value;

		length = sizeof(data);
		SCIWaitForDataInterrupt(dint, data, &length, 0, 0, &error);
		if (error == SCI_ERR_TIMEOUT) {
			CHECK(i > 1000);
			break;
		}
		CHECK_OK(error);
		memcpy(&value, data, sizeof(value));
		CHECK(value == i);
	}
	step_done(5);
	step_await(6);
	SCIRemoveDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
	step_done(7);
	api_end(sd);
	return 0;
}

static int sender(void *arg)
{
	sci_remote_data_interrupt_t dint = NULL;
	sci_desc_t sd = api_begin();
	char data[8193] = {0};
	sci_error_t error;
	unsigned i;

	(void)arg;
	step_await(0);
	SCIConnectDataInterrupt(sd, &dint, cluster_node(8), 0, NUMBER + 1, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_INTNO);
	dint = reach(sd, cluster_node(8), NUMBER);
	SCITriggerDataInterrupt(dint, (void *)(uintptr_t) "first", 5, 0, &error);
	CHECK_OK(error);
	SCIDisconnectDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
	SCITriggerDataInterrupt(dint, data, 5, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	dint = reach(sd, cluster_node(8), NUMBER);
	SCITriggerDataInterrupt(dint, (void *)(uintptr_t) "second", 6, 0, &error);
	CHECK_OK(error);
	step_done(1);
	step_await(2);
	SCITriggerDataInterrupt(dint, data, sizeof(data), 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	for (i = 0; i < SENT; i++) {
		memcpy(data, &i, sizeof(i));
		do {
			SCITriggerDataInterrupt(dint, data, 4 + i % 90, 0, &error);
		} while (error == SCI_ERR_NOSPC);
		CHECK_OK(error);
	}
	step_await(3);
	for (i = 0; error == SCI_ERR_OK; i++) {
		memcpy(data, &i, sizeof(i));
		SCITriggerDataInterrupt(dint, data, 8, 0, &error);
	}
	CHECK_IS(error, SCI_ERR_NOSPC);
	step_done(4);
	step_await(5);
	step_done(6);
	step_await(7);
	/* Nobody is there any more, and we are told; until then the queue may fill. */
	do {
		SCITriggerDataInterrupt(dint, data, 1, 0, &error);
	} while (error == SCI_ERR_OK || error == SCI_ERR_NOSPC);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	SCIDisconnectDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void messages_arrive_in_order(void **state)
{
	pid_t a, b;

	steps_reset();
	a = cluster_fork(*state, 8, receiver, NULL);
	b = cluster_fork(*state, 4, sender, NULL);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/* ---- many senders that die ---- */

#define SENDERS 12u
#define EACH 200u

static int one_of_many(void *arg)
{
	unsigned message[2] = {(unsigned)(uintptr_t)arg, 0};
	sci_remote_data_interrupt_t dint = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	step_await(0);
	dint = reach(sd, cluster_node(8), NUMBER);
	for (; message[1] < EACH; message[1]++) {
		do {
			SCITriggerDataInterrupt(dint, message, sizeof(message), 0, &error);
		} while (error == SCI_ERR_NOSPC);
		CHECK_OK(error);
	}
	_exit(0); /* what was sent counts */
}

static int receiver_of_many(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_data_interrupt_t dint = listen_on(sd, NUMBER, 0);
	unsigned seen[SENDERS] = {0}, message[2], length;
	sci_error_t error;

	(void)arg;
	for (unsigned i = 0; i < SENDERS; i++)
		step_done(0);
	for (unsigned i = 0; i < SENDERS * EACH; i++) {
		length = sizeof(message);
		SCIWaitForDataInterrupt(dint, message, &length, SCI_INFINITE_TIMEOUT, 0, &error);
		CHECK_OK(error);
		CHECK(length == sizeof(message) && message[0] < SENDERS);
		CHECK(message[1] == seen[message[0]]++);
	}
	SCIRemoveDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void many_senders_lose_nothing_by_dying(void **state)
{
	pid_t a, b[SENDERS];

	steps_reset();
	a = cluster_fork(*state, 8, receiver_of_many, NULL);
	for (unsigned i = 0; i < SENDERS; i++)
		b[i] = cluster_fork(*state, 4 + i % 3 * 4, one_of_many, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < SENDERS; i++)
		assert_int_equal(cluster_wait(b[i]), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/* ---- callbacks ---- */

struct served {
	sci_desc_t sd;
	unsigned count;
	pthread_mutex_t mutex;
	pthread_cond_t condition;
};

/* Answers from inside: connect, trigger, disconnect. Cancels after the tenth. */
static sci_callback_action_t serve(void *arg, sci_local_data_interrupt_t interrupt, void *data,
				   unsigned length, sci_error_t status)
{
	struct served *s = arg;
	sci_remote_data_interrupt_t back;
	unsigned message[2];
	sci_error_t error;

	(void)interrupt;
	CHECK_OK(status);
	CHECK(length == sizeof(message));
	memcpy(message, data, sizeof(message));
	CHECK(message[0] == s->count);
	back = reach(s->sd, 4, message[1]);
	SCITriggerDataInterrupt(back, message, sizeof(message), 0, &error);
	CHECK_OK(error);
	SCIDisconnectDataInterrupt(back, 0, &error);
	CHECK_OK(error);
	pthread_mutex_lock(&s->mutex);
	s->count++;
	pthread_cond_signal(&s->condition);
	pthread_mutex_unlock(&s->mutex);
	return message[0] == 9 ? SCI_CALLBACK_CANCEL : SCI_CALLBACK_CONTINUE;
}

static int server(void *arg)
{
	struct served s = {.sd = api_begin(),
			   .mutex = PTHREAD_MUTEX_INITIALIZER,
			   .condition = PTHREAD_COND_INITIALIZER};
	sci_local_data_interrupt_t dint = NULL;
	unsigned number = NUMBER, length = sizeof(number);
	sci_error_t error;

	(void)arg;
	SCICreateDataInterrupt(s.sd, &dint, 0, &number, serve, &s,
			       SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO, &error);
	CHECK_OK(error);
	CHECK(smartio_data_interrupt_fd(dint) == -1);
	SCIWaitForDataInterrupt(dint, &number, &length, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	step_done(0);
	pthread_mutex_lock(&s.mutex);
	while (s.count < 10)
		pthread_cond_wait(&s.condition, &s.mutex);
	pthread_mutex_unlock(&s.mutex);
	step_await(1);
	SCIRemoveDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
	CHECK(s.count == 10);
	api_end(s.sd);
	return 0;
}

static int customer(void *arg)
{
	sci_local_data_interrupt_t answers = NULL;
	sci_remote_data_interrupt_t dint = NULL;
	sci_desc_t sd = api_begin();
	unsigned message[2], number = 0, length;
	sci_error_t error;

	(void)arg;
	SCICreateDataInterrupt(sd, &answers, 0, &number, NULL, NULL, 0, &error);
	CHECK_OK(error);
	step_await(0);
	dint = reach(sd, cluster_node(8), NUMBER);
	for (unsigned i = 0; i < 10; i++) {
		message[0] = i;
		message[1] = number;
		SCITriggerDataInterrupt(dint, message, sizeof(message), 0, &error);
		CHECK_OK(error);
		length = sizeof(message);
		SCIWaitForDataInterrupt(answers, message, &length, SCI_INFINITE_TIMEOUT, 0, &error);
		CHECK_OK(error);
		CHECK(message[0] == i);
	}
	SCITriggerDataInterrupt(dint, message, sizeof(message), 0, &error);
	CHECK_OK(error);
	length = sizeof(message);
	SCIWaitForDataInterrupt(answers, message, &length, 20, 0, &error);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	step_done(1);
	SCIRemoveDataInterrupt(answers, 0, &error);
	CHECK_OK(error);
	SCIDisconnectDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void callbacks_make_any_call(void **state)
{
	pid_t a, b;

	steps_reset();
	a = cluster_fork(*state, 8, server, NULL);
	b = cluster_fork(*state, 4, customer, NULL);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/* ---- removal wakes who waits; several threads wait ---- */

struct waiters {
	sci_local_data_interrupt_t dint;
	sci_remote_data_interrupt_t remote;
	unsigned messages, cancelled; /* atomic */
};

static void *wait_for_all(void *arg)
{
	struct waiters *w = arg;
	sci_error_t error;
	unsigned value, length;

	for (;;) {
		length = sizeof(value);
		SCIWaitForDataInterrupt(w->dint, &value, &length, SCI_INFINITE_TIMEOUT, 0, &error);
		if (error == SCI_ERR_CANCELLED || error == SCI_ERR_ILLEGAL_PARAMETER)
			break;
		CHECK_OK(error);
		if (__atomic_add_fetch(&w->messages, 1, __ATOMIC_SEQ_CST) == 4000)
			step_done(0);
	}
	__atomic_add_fetch(&w->cancelled, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *send_many(void *arg)
{
	struct waiters *w = arg;
	sci_error_t error;

	for (unsigned i = 0; i < 2000; i++) {
		do {
			SCITriggerDataInterrupt(w->remote, &i, sizeof(i), 0, &error);
		} while (error == SCI_ERR_NOSPC);
		CHECK_OK(error);
	}
	return NULL;
}

static int threads(void *arg)
{
	sci_desc_t sd = api_begin();
	struct waiters w = {.dint = listen_on(sd, NUMBER, 0), .remote = reach(sd, 4, NUMBER)};
	pthread_t wait[3], send[2];
	sci_error_t error;

	(void)arg;
	for (unsigned i = 0; i < 3; i++)
		CHECK(!pthread_create(&wait[i], NULL, wait_for_all, &w));
	for (unsigned i = 0; i < 2; i++)
		CHECK(!pthread_create(&send[i], NULL, send_many, &w));
	for (unsigned i = 0; i < 2; i++)
		pthread_join(send[i], NULL);
	step_await(0);
	SCIRemoveDataInterrupt(w.dint, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(wait[i], NULL);
	CHECK(w.messages == 4000 && w.cancelled == 3);
	SCIDisconnectDataInterrupt(w.remote, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void threads_share_handles(void **state)
{
	steps_reset();
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, threads, NULL)), 0);
}

/* Whoever has its message waits no more: another one has the next. */

static void *wait_for_one(void *arg)
{
	struct waiters *w = arg;
	unsigned value, length = sizeof(value);
	sci_error_t error;

	step_done(0);
	SCIWaitForDataInterrupt(w->dint, &value, &length, 60000, 0, &error);
	CHECK_OK(error);
	step_done(1);
	return NULL;
}

static int hands_over(void *arg)
{
	sci_desc_t sd = api_begin();
	struct waiters w = {.dint = listen_on(sd, NUMBER, 0), .remote = reach(sd, 4, NUMBER)};
	pthread_t wait[5];
	sci_error_t error;

	(void)arg;
	for (unsigned i = 0; i < 5; i++)
		CHECK(!pthread_create(&wait[i], NULL, wait_for_one, &w));
	for (unsigned i = 0; i < 5; i++)
		step_await(0);
	for (unsigned i = 0; i < 5; i++) {
		SCITriggerDataInterrupt(w.remote, &i, sizeof(i), 0, &error);
		CHECK_OK(error);
		step_await(1);
	}
	for (unsigned i = 0; i < 5; i++)
		pthread_join(wait[i], NULL);
	SCIRemoveDataInterrupt(w.dint, 0, &error);
	CHECK_OK(error);
	SCIDisconnectDataInterrupt(w.remote, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void each_thread_takes_one(void **state)
{
	steps_reset();
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, hands_over, NULL)), 0);
}

/* ---- senders that come and go, and nobody waits ---- */

#define CYCLES 2000u

static int idle_receiver(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_data_interrupt_t dint = listen_on(sd, NUMBER, 0);
	unsigned char data[16];
	unsigned length = sizeof(data);
	sci_error_t error;

	(void)arg;
	step_done(0);
	step_await(1);
	/* What somebody left that is gone is still there. */
	SCIWaitForDataInterrupt(dint, data, &length, 0, 0, &error);
	CHECK_OK(error);
	CHECK(length == 4 && !memcmp(data, "left", 4));
	remove_empty(dint);
	api_end(sd);
	return 0;
}

static int comes_and_goes(void *arg)
{
	const unsigned *node = arg;
	sci_desc_t sd = api_begin();
	sci_remote_data_interrupt_t dint = NULL;
	sci_error_t error;

	for (unsigned i = 0; i < CYCLES; i++) {
		/* Memory is short while a receiver that gets no processor has not let go of it. */
		do {
			SCIConnectDataInterrupt(sd, &dint, *node, 0, NUMBER, 0, 0, &error);
		} while (error == SCI_ERR_HW_NOSPC);
		CHECK_OK(error);
		SCIDisconnectDataInterrupt(dint, 0, &error);
		CHECK_OK(error);
	}
	dint = reach(sd, *node, NUMBER);
	SCITriggerDataInterrupt(dint, (char[]){"left"}, 4, 0, &error);
	CHECK_OK(error);
	SCIDisconnectDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void idle_receivers_keep_no_empty_rings(void **state)
{
	unsigned node = cluster_node(8);
	pid_t receiver;
	long n;

	for (unsigned from = 4; from <= 8; from += 4) {
		steps_reset();
		receiver = cluster_fork(*state, node, idle_receiver, NULL);
		step_await(0);
		assert_int_equal(cluster_wait(cluster_fork(*state, from, comes_and_goes, &node)),
				 0);
		/* The ring of the last one, who left a message; in time. */
		while ((n = cluster_count(*state, "two: port memory")) > 1)
			;
		assert_int_equal(n, 1);
		step_done(1);
		assert_int_equal(cluster_wait(receiver), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(messages_arrive_in_order), API_TEST(many_senders_lose_nothing_by_dying),
		API_TEST(callbacks_make_any_call),  API_TEST(threads_share_handles),
		API_TEST(each_thread_takes_one),    API_TEST(idle_receivers_keep_no_empty_rings),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
