/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupts with callbacks: a server that sleeps until it is asked. A question comes as a data
 * interrupt with the number of the asker's own, through which the answer goes back; the server's
 * callback connects, answers and disconnects. A plain interrupt ends it.
 *
 * usage: interrupts serve | interrupts ask SERVER-NODE MY-NODE QUESTIONS
 */
#include <stdint.h>
#include <string.h>

#include "example.h"

#define QUESTIONS 1 /* numbers of interrupts: data, and without */
#define STOP 2

struct question {
	uint32_t node, answer_to; /* who asks: node, number of the data interrupt */
	uint64_t value;
};

/* Runs on a thread of the library's; any call may be made from here. */
static sci_callback_action_t on_question(void *arg, sci_local_data_interrupt_t interrupt,
					 void *data, unsigned int length, sci_error_t status)
{
	sci_remote_data_interrupt_t asker;
	struct question q;
	sci_error_t error;
	uint64_t answer;

	(void)interrupt;
	check(status, "a question");
	if (length != sizeof(q))
		return SCI_CALLBACK_CONTINUE;
	memcpy(&q, data, sizeof(q)); /* @data is ours for this call alone */
	answer = q.value * q.value;
	SCIConnectDataInterrupt(*(sci_desc_t *)arg, &asker, q.node, ADAPTER, q.answer_to,
				SCI_INFINITE_TIMEOUT, 0, &error);
	check(error, "SCIConnectDataInterrupt");
	SCITriggerDataInterrupt(asker, &answer, sizeof(answer), 0, &error);
	check(error, "SCITriggerDataInterrupt");
	/* What was sent is delivered, although we leave at once. */
	SCIDisconnectDataInterrupt(asker, 0, &error);
	check(error, "SCIDisconnectDataInterrupt");
	return SCI_CALLBACK_CONTINUE;
}

static void serve(sci_desc_t sd)
{
	unsigned questions = QUESTIONS, stop = STOP;
	sci_local_data_interrupt_t question;
	sci_local_interrupt_t stopped;
	sci_error_t error;

	SCICreateDataInterrupt(sd, &question, ADAPTER, &questions, on_question, &sd,
			       SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO, &error);
	check(error, "SCICreateDataInterrupt");
	SCICreateInterrupt(sd, &stopped, ADAPTER, &stop, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	check(error, "SCICreateInterrupt");
	SCIWaitForInterrupt(stopped, SCI_INFINITE_TIMEOUT, 0, &error);
	check(error, "SCIWaitForInterrupt");
	/* When this returns, the callback does not run and will not. */
	SCIRemoveDataInterrupt(question, 0, &error);
	check(error, "SCIRemoveDataInterrupt");
	do {
		SCIRemoveInterrupt(stopped, 0, &error);
	} while (error == SCI_ERR_BUSY);
	check(error, "SCIRemoveInterrupt");
}

static void stop_server(sci_desc_t sd, unsigned server)
{
	sci_remote_interrupt_t stop;
	sci_error_t error;

	do { /* it makes this one second */
		SCIConnectInterrupt(sd, &stop, server, ADAPTER, STOP, SCI_INFINITE_TIMEOUT, 0,
				    &error);
		sched_yield();
	} while (error == SCI_ERR_NO_SUCH_INTNO);
	check(error, "SCIConnectInterrupt");
	SCITriggerInterrupt(stop, 0, &error);
	check(error, "SCITriggerInterrupt");
	SCIDisconnectInterrupt(stop, 0, &error);
	check(error, "SCIDisconnectInterrupt");
}

static void ask(sci_desc_t sd, unsigned server, unsigned node, unsigned questions)
{
	sci_remote_data_interrupt_t question;
	sci_local_data_interrupt_t answer;
	struct question q = {.node = node};
	sci_error_t error;

	SCICreateDataInterrupt(sd, &answer, ADAPTER, &q.answer_to, NULL, NULL, 0, &error);
	check(error, "SCICreateDataInterrupt");
	do {
		SCIConnectDataInterrupt(sd, &question, server, ADAPTER, QUESTIONS,
					SCI_INFINITE_TIMEOUT, 0, &error);
		sched_yield();
	} while (error == SCI_ERR_NO_SUCH_INTNO);
	check(error, "SCIConnectDataInterrupt");
	for (q.value = 1; q.value <= questions; q.value++) {
		unsigned length = sizeof(uint64_t);
		uint64_t value;

		SCITriggerDataInterrupt(question, &q, sizeof(q), 0, &error);
		check(error, "SCITriggerDataInterrupt");
		SCIWaitForDataInterrupt(answer, &value, &length, SCI_INFINITE_TIMEOUT, 0, &error);
		check(error, "SCIWaitForDataInterrupt");
		if (length != sizeof(value) || value != q.value * q.value) {
			fprintf(stderr, "a wrong answer\n");
			exit(1);
		}
	}
	printf("%u answers\n", questions);
	SCIDisconnectDataInterrupt(question, 0, &error);
	check(error, "SCIDisconnectDataInterrupt");
	stop_server(sd, server);
	SCIRemoveDataInterrupt(answer, 0, &error);
	check(error, "SCIRemoveDataInterrupt");
}

int main(int argc, char **argv)
{
	sci_desc_t sd;

	if (argc != 2 && argc != 5) {
		fprintf(stderr, "usage: interrupts serve | interrupts ask SERVER-NODE MY-NODE "
				"QUESTIONS\n");
		return 2;
	}
	sd = begin();
	if (argc == 2)
		serve(sd);
	else
		ask(sd, (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
	end(sd);
	return 0;
}
