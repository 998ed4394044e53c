/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round trips between two processes on two hosts, in turns with what the system itself offers:
 * SCITriggerInterrupt() against an eventfd, data interrupts against Unix datagrams; and a cache
 * line that goes to and fro, for what is possible at all. Prints nanoseconds per round trip, a line
 * per round: "row who ns".
 *
 * usage: bench-sisci-int SOCKET NODE SOCKET NODE CPU CPU ROUNDS TRIPS
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

#define NUMBER 7u
#define MESSAGE 64u

struct side {
	bool first; /* begins each round trip, and measures */
	unsigned node, peer;
	int read_fd, write_fd, datagram;
	volatile uint32_t *mine, *theirs; /* words of two cache lines */
	sci_local_interrupt_t interrupt;
	sci_remote_interrupt_t trigger;
	sci_local_data_interrupt_t data;
	sci_remote_data_interrupt_t send;
};

/* ---- one step of each kind ---- */

static void event_send(struct side *s)
{
	uint64_t one = 1;

	if (write(s->write_fd, &one, sizeof(one)) != sizeof(one))
		fail("write");
}

static void event_wait(struct side *s)
{
	uint64_t count;

	if (read(s->read_fd, &count, sizeof(count)) != sizeof(count))
		fail("read");
}

static void int_send(struct side *s)
{
	sci_error_t error;

	SCITriggerInterrupt(s->trigger, 0, &error);
	check(error, "SCITriggerInterrupt");
}

static void int_wait(struct side *s)
{
	sci_error_t error;

	SCIWaitForInterrupt(s->interrupt, SCI_INFINITE_TIMEOUT, 0, &error);
	check(error, "SCIWaitForInterrupt");
}

static void datagram_send(struct side *s)
{
	char message[MESSAGE] = "datagram";

	if (send(s->datagram, message, sizeof(message), 0) != sizeof(message))
		fail("send");
}

static void datagram_wait(struct side *s)
{
	char message[MESSAGE];

	if (recv(s->datagram, message, sizeof(message), 0) != sizeof(message))
		fail("recv");
}

static void data_send(struct side *s)
{
	char message[MESSAGE] = "message";
	sci_error_t error;

	SCITriggerDataInterrupt(s->send, message, sizeof(message), 0, &error);
	check(error, "SCITriggerDataInterrupt");
}

static void data_wait(struct side *s)
{
	char message[MESSAGE];
	unsigned length = sizeof(message);
	sci_error_t error;

	SCIWaitForDataInterrupt(s->data, message, &length, SCI_INFINITE_TIMEOUT, 0, &error);
	check(error, "SCIWaitForDataInterrupt");
}

static void line_send(struct side *s)
{
	__atomic_store_n(s->theirs, *s->theirs + 1, __ATOMIC_RELEASE);
}

static void line_wait(struct side *s)
{
	static uint32_t seen; /* of this process */

	/* Yields, should both sides share a processor after all. */
	for (unsigned looks = 0; __atomic_load_n(s->mine, __ATOMIC_ACQUIRE) == seen;)
		if (++looks > 2000)
			sched_yield();
	seen++;
}

static const struct party {
	const char *row, *who;
	void (*send)(struct side *s);
	void (*wait)(struct side *s);
} parties[] = {
	{"trigger", "eventfd", event_send, event_wait},
	{"trigger", "sisci", int_send, int_wait},
	{"message", "datagram", datagram_send, datagram_wait},
	{"message", "sisci", data_send, data_wait},
	{"line", "line", line_send, line_wait},
};

static void run(struct side *s, unsigned rounds, unsigned trips)
{
	for (unsigned r = 0; r < rounds; r++) {
		for (size_t i = 0; i < sizeof(parties) / sizeof(parties[0]); i++) {
			/* Whoever came first in one round comes last in the next: within a row. */
			const struct party *p = &parties[i < 4 ? i ^ (r % 2) : i];
			uint64_t begin = now_ns();

			for (unsigned t = 0; t < trips; t++) {
				if (s->first)
					p->send(s);
				p->wait(s);
				if (!s->first)
					p->send(s);
			}
			if (s->first && r > 0) /* the first round warms up */
				printf("%s %s %.1f\n", p->row, p->who,
				       (double)(now_ns() - begin) / trips);
		}
	}
}

/* ---- setting up ---- */

static void connect_both(struct side *s, sci_desc_t sd)
{
	unsigned number = NUMBER;
	sci_error_t error;

	SCICreateInterrupt(sd, &s->interrupt, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	check(error, "SCICreateInterrupt");
	SCICreateDataInterrupt(sd, &s->data, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	check(error, "SCICreateDataInterrupt");
	do {
		SCIConnectInterrupt(sd, &s->trigger, s->peer, 0, NUMBER, 0, 0, &error);
		sched_yield();
	} while (error == SCI_ERR_NO_SUCH_INTNO || error == SCI_ERR_NO_SUCH_NODEID);
	check(error, "SCIConnectInterrupt");
	do {
		SCIConnectDataInterrupt(sd, &s->send, s->peer, 0, NUMBER, 0, 0, &error);
		sched_yield();
	} while (error == SCI_ERR_NO_SUCH_INTNO);
	check(error, "SCIConnectDataInterrupt");
}

static void play(struct side *s, const char *socket, const char *cpu, unsigned rounds,
		 unsigned trips)
{
	pin(cpu);
	setenv("SMARTIO_SOCKET", socket, 1);
	connect_both(s, begin());
	run(s, rounds, trips);
	SCITerminate();
}

int main(int argc, char **argv)
{
	int to[2], datagrams[2], status = 0;
	volatile uint32_t *lines;
	struct side a, b;
	pid_t child;

	if (argc != 9) {
		fprintf(stderr,
			"usage: bench-sisci-int SOCKET NODE SOCKET NODE CPU CPU ROUNDS TRIPS\n");
		return 2;
	}
	to[0] = eventfd(0, 0);
	to[1] = eventfd(0, 0);
	lines = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (to[0] < 0 || to[1] < 0 || lines == MAP_FAILED ||
	    socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams) < 0)
		fail("descriptors");
	a = (struct side){.first = true,
			  .node = (unsigned)atoi(argv[2]),
			  .peer = (unsigned)atoi(argv[4]),
			  .read_fd = to[0],
			  .write_fd = to[1],
			  .datagram = datagrams[0],
			  .mine = lines,
			  .theirs = lines + 64};
	b = (struct side){.node = a.peer,
			  .peer = a.node,
			  .read_fd = to[1],
			  .write_fd = to[0],
			  .datagram = datagrams[1],
			  .mine = lines + 64,
			  .theirs = lines};
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		play(&b, argv[3], argv[6], (unsigned)atoi(argv[7]), (unsigned)atoi(argv[8]));
		return 0;
	}
	play(&a, argv[1], argv[5], (unsigned)atoi(argv[7]), (unsigned)atoi(argv[8]));
	waitpid(child, &status, 0);
	return status ? 1 : 0;
}
