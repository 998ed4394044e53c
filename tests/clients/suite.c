/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A performance suite as such programs are written: a server that offers resources by messages, and
 * experiments that order them. The server works in the callback of its data interrupt: there it
 * makes segments, interrupts and data interrupts, connects back to whoever asked, answers, and
 * removes what is no longer wanted.
 *
 * usage: suite server | suite client NODE-OF-SERVER
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sisci_api.h>

#define NO_FLAGS 0
#define NO_CALLBACK NULL
#define NO_ARG NULL
#define ADAPTER_NO 0
#define ORDERS 42u     /* the server's data interrupt */
#define DELIVERIES 43u /* the client's */
#define SLOTS 16u
#define SEGMENT_SIZE (2u << 20)
#define PINGS 2000u
#define TRIGGERS 200000u

#define SEOE(function, ...)                                                                        \
	do {                                                                                       \
		sci_error_t seoe_error;                                                            \
		function(__VA_ARGS__, &seoe_error);                                                \
		if (seoe_error != SCI_ERR_OK) {                                                    \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #function,          \
				SCIGetErrorString(seoe_error));                                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

enum command { CREATE_SEGMENT, CREATE_INTERRUPT, CREATE_DATA_INTERRUPT, REMOVE, END };

typedef struct {
	enum command command;
	unsigned int node; /* who asks */
	unsigned int size; /* of a segment */
	unsigned int slot; /* to be removed */
} order_t;

typedef struct {
	unsigned int slot;
	unsigned int id; /* of the segment, or the interrupt's number */
} delivery_t;

/* ---- server ---- */

typedef struct {
	enum command kind;
	int used;
	sci_local_segment_t segment;
	sci_map_t map;
	sci_local_interrupt_t interrupt;
	sci_local_data_interrupt_t data_interrupt;
} slot_t;

static sci_desc_t server_sd;
static slot_t slots[SLOTS];
static volatile int ended;

static unsigned int free_slot(void)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		if (!slots[i].used)
			return i;
	fprintf(stderr, "no slot is free\n");
	exit(1);
}

static void deliver(unsigned int node, delivery_t delivery)
{
	sci_remote_data_interrupt_t back;
	sci_error_t error;

	do {
		SCIConnectDataInterrupt(server_sd, &back, node, ADAPTER_NO, DELIVERIES,
					SCI_INFINITE_TIMEOUT, NO_FLAGS, &error);
	} while (error != SCI_ERR_OK);
	SEOE(SCITriggerDataInterrupt, back, &delivery, sizeof(delivery), NO_FLAGS);
	SEOE(SCIDisconnectDataInterrupt, back, NO_FLAGS);
}

static unsigned int make_segment(slot_t *slot, unsigned int size)
{
	void *memory;
	sci_error_t error;

	SEOE(SCICreateSegment, server_sd, &slot->segment, 0, size, NO_CALLBACK, NO_ARG,
	     SCI_FLAG_AUTO_ID);
	SEOE(SCIPrepareSegment, slot->segment, ADAPTER_NO, NO_FLAGS);
	memory = SCIMapLocalSegment(slot->segment, &slot->map, 0, size, NULL, NO_FLAGS, &error);
	if (error != SCI_ERR_OK)
		exit(1);
	memset(memory, 0xa5, size);
	SEOE(SCISetSegmentAvailable, slot->segment, ADAPTER_NO, NO_FLAGS);
	return SCIGetLocalSegmentId(slot->segment);
}

/* A callback without the flag is ignored. */
static sci_callback_action_t never(void *arg, sci_local_interrupt_t interrupt, sci_error_t status)
{
	(void)arg;
	(void)interrupt;
	(void)status;
	fprintf(stderr, "a callback that was not asked for\n");
	exit(1);
}

static void make(const order_t *order)
{
	delivery_t delivery = {.slot = free_slot()};
	slot_t *slot = &slots[delivery.slot];

	slot->used = 1;
	slot->kind = order->command;
	if (order->command == CREATE_SEGMENT)
		delivery.id = make_segment(slot, order->size);
	else if (order->command == CREATE_INTERRUPT)
		SEOE(SCICreateInterrupt, server_sd, &slot->interrupt, ADAPTER_NO, &delivery.id,
		     never, NO_ARG, NO_FLAGS);
	else
		SEOE(SCICreateDataInterrupt, server_sd, &slot->data_interrupt, ADAPTER_NO,
		     &delivery.id, NO_CALLBACK, NO_ARG, NO_FLAGS);
	deliver(order->node, delivery);
}

static void take_away(unsigned int number)
{
	slot_t *slot = &slots[number];
	sci_error_t error;

	do {
		if (slot->kind == CREATE_SEGMENT) {
			if (slot->map)
				SEOE(SCIUnmapSegment, slot->map, NO_FLAGS);
			slot->map = NULL;
			SCIRemoveSegment(slot->segment, NO_FLAGS, &error);
		} else if (slot->kind == CREATE_INTERRUPT) {
			SCIRemoveInterrupt(slot->interrupt, NO_FLAGS, &error);
		} else {
			SCIRemoveDataInterrupt(slot->data_interrupt, NO_FLAGS, &error);
		}
	} while (error == SCI_ERR_BUSY);
	if (error != SCI_ERR_OK)
		exit(1);
	slot->used = 0;
}

static sci_callback_action_t on_order(void IN *arg, sci_local_data_interrupt_t interrupt,
				      void *data, unsigned int length, sci_error_t status)
{
	order_t order;

	(void)arg;
	(void)interrupt;
	if (status != SCI_ERR_OK || length != sizeof(order))
		exit(1);
	memcpy(&order, data, sizeof(order));
	switch (order.command) {
	case CREATE_SEGMENT:
	case CREATE_INTERRUPT:
	case CREATE_DATA_INTERRUPT:
		make(&order);
		break;
	case REMOVE:
		take_away(order.slot);
		deliver(order.node, (delivery_t){.slot = order.slot});
		break;
	case END:
		ended = 1;
		return SCI_CALLBACK_CANCEL;
	}
	return SCI_CALLBACK_CONTINUE;
}

static int serve(void)
{
	sci_local_data_interrupt_t orders;
	unsigned int number = ORDERS;

	SEOE(SCIOpen, &server_sd, NO_FLAGS);
	SEOE(SCICreateDataInterrupt, server_sd, &orders, ADAPTER_NO, &number, on_order, NO_ARG,
	     SCI_FLAG_FIXED_INTNO | SCI_FLAG_USE_CALLBACK);
	while (!ended)
		usleep(1000);
	/* As such programs do: everything is still open. */
	SCITerminate();
	return 0;
}

/* ---- client ---- */

typedef struct {
	sci_desc_t sd;
	unsigned int node, server;
	sci_remote_data_interrupt_t orders;
	sci_local_data_interrupt_t deliveries;
} client_t;

static delivery_t ask(client_t *c, order_t order)
{
	delivery_t delivery;
	unsigned int length = sizeof(delivery);

	order.node = c->node;
	SEOE(SCITriggerDataInterrupt, c->orders, &order, sizeof(order), NO_FLAGS);
	SEOE(SCIWaitForDataInterrupt, c->deliveries, &delivery, &length, SCI_INFINITE_TIMEOUT,
	     NO_FLAGS);
	if (length != sizeof(delivery))
		exit(1);
	return delivery;
}

static void experiment_memory(client_t *c)
{
	delivery_t got = ask(c, (order_t){.command = CREATE_SEGMENT, .size = SEGMENT_SIZE});
	static unsigned char buffer[4096];
	sci_remote_segment_t segment;
	volatile uint64_t *words;
	sci_sequence_t sequence;
	sci_error_t error;
	sci_map_t map;

	do {
		SCIConnectSegment(c->sd, &segment, c->server, got.id, ADAPTER_NO, NO_CALLBACK,
				  NO_ARG, SCI_INFINITE_TIMEOUT, NO_FLAGS, &error);
	} while (error != SCI_ERR_OK);
	if (SCIGetRemoteSegmentId(segment) != got.id ||
	    SCIGetRemoteSegmentSize(segment) < SEGMENT_SIZE)
		exit(1);
	words = (volatile uint64_t *)SCIMapRemoteSegment(segment, &map, 0, SEGMENT_SIZE, NULL,
							 NO_FLAGS, &error);
	if (error != SCI_ERR_OK || words[0] != 0xa5a5a5a5a5a5a5a5u)
		exit(1);
	SEOE(SCICreateMapSequence, map, &sequence, NO_FLAGS);
	while (SCIStartSequence(sequence, NO_FLAGS, &error) != SCI_SEQ_OK)
		if (error != SCI_ERR_OK)
			exit(1);
	for (unsigned int i = 0; i < PINGS; i++) {
		words[i] = i;
		switch (SCICheckSequence(sequence, NO_FLAGS, &error)) {
		case SCI_SEQ_OK:
			break;
		case SCI_SEQ_RETRIABLE:
		case SCI_SEQ_NOT_RETRIABLE:
		case SCI_SEQ_PENDING:
			exit(1);
		}
	}
	memset(buffer, 0x77, sizeof(buffer));
	SEOE(SCIMemCpy, sequence, buffer, map, SEGMENT_SIZE - sizeof(buffer), sizeof(buffer),
	     NO_FLAGS);
	memset(buffer, 0, sizeof(buffer));
	SEOE(SCIMemCpy, sequence, buffer, map, SEGMENT_SIZE - sizeof(buffer), sizeof(buffer),
	     SCI_FLAG_BLOCK_READ);
	if (buffer[0] != 0x77 || buffer[sizeof(buffer) - 1] != 0x77)
		exit(1);
	SCIFlush(sequence, NO_FLAGS);
	SEOE(SCICacheSync, NULL, buffer, sizeof(buffer),
	     SCI_FLAG_CACHE_FLUSH | SCI_FLAG_CACHE_INVALIDATE);
	/* The map before its sequence: programs do that. */
	SEOE(SCIUnmapSegment, map, NO_FLAGS);
	SEOE(SCIRemoveSequence, sequence, NO_FLAGS);
	SEOE(SCIDisconnectSegment, segment, NO_FLAGS);
	ask(c, (order_t){.command = REMOVE, .slot = got.slot});
}

/* Triggers in a row that nobody waits for. */
static void experiment_interrupts(client_t *c)
{
	delivery_t got = ask(c, (order_t){.command = CREATE_INTERRUPT});
	sci_remote_interrupt_t interrupt;

	SEOE(SCIConnectInterrupt, c->sd, &interrupt, c->server, ADAPTER_NO, got.id,
	     SCI_INFINITE_TIMEOUT, NO_FLAGS);
	for (unsigned int i = 0; i < TRIGGERS; i++)
		SEOE(SCITriggerInterrupt, interrupt, NO_FLAGS);
	SEOE(SCIDisconnectInterrupt, interrupt, NO_FLAGS);
	ask(c, (order_t){.command = REMOVE, .slot = got.slot});
}

/* Messages until the queue is full, which is no failure. */
static void experiment_messages(client_t *c)
{
	delivery_t got = ask(c, (order_t){.command = CREATE_DATA_INTERRUPT});
	sci_remote_data_interrupt_t interrupt;
	unsigned int sent = 0, full = 0;
	char message[50] = "message";
	sci_error_t error;

	SEOE(SCIConnectDataInterrupt, c->sd, &interrupt, c->server, ADAPTER_NO, got.id,
	     SCI_INFINITE_TIMEOUT, NO_FLAGS);
	while (full < 100) {
		SCITriggerDataInterrupt(interrupt, message, sizeof(message), NO_FLAGS, &error);
		if (error == SCI_ERR_OK)
			sent++;
		else if (error == SCI_ERR_NOSPC)
			full++;
		else
			exit(1);
	}
	if (sent < 100)
		exit(1);
	SEOE(SCIDisconnectDataInterrupt, interrupt, NO_FLAGS);
	ask(c, (order_t){.command = REMOVE, .slot = got.slot});
}

static int order_all(unsigned int server)
{
	client_t c = {.server = server};
	sci_query_adapter_t query = {.subcommand = SCI_Q_ADAPTER_NODEID, .data = &c.node};
	unsigned int number = DELIVERIES;
	delivery_t kept[SLOTS - 2];
	sci_error_t error;

	SEOE(SCIQuery, SCI_Q_ADAPTER, &query, NO_FLAGS);
	SEOE(SCIOpen, &c.sd, NO_FLAGS);
	SEOE(SCICreateDataInterrupt, c.sd, &c.deliveries, ADAPTER_NO, &number, NO_CALLBACK, NO_ARG,
	     SCI_FLAG_FIXED_INTNO);
	do {
		SCIConnectDataInterrupt(c.sd, &c.orders, server, ADAPTER_NO, ORDERS, 0, NO_FLAGS,
					&error);
	} while (error != SCI_ERR_OK);
	for (unsigned int round = 0; round < 5; round++) {
		experiment_memory(&c);
		experiment_interrupts(&c);
		experiment_messages(&c);
	}
	/* Dozens of one kind on one descriptor, removed in another order. */
	for (unsigned int i = 0; i < SLOTS - 2; i++)
		kept[i] = ask(&c, (order_t){.command = CREATE_SEGMENT, .size = 32});
	for (unsigned int i = 0; i < SLOTS - 2; i++)
		ask(&c, (order_t){.command = REMOVE, .slot = kept[(i * 5) % (SLOTS - 2)].slot});
	SEOE(SCITriggerDataInterrupt, c.orders, &(order_t){.command = END}, sizeof(order_t),
	     NO_FLAGS);
	SEOE(SCIDisconnectDataInterrupt, c.orders, NO_FLAGS);
	SEOE(SCIRemoveDataInterrupt, c.deliveries, NO_FLAGS);
	SEOE(SCIClose, c.sd, NO_FLAGS);
	SCITerminate();
	return 0;
}

int main(int argc, char **argv)
{
	SEOE(SCIInitialize, NO_FLAGS);
	if (argc == 2 && !strcmp(argv[1], "server"))
		return serve();
	if (argc == 3 && !strcmp(argv[1], "client"))
		return order_all((unsigned int)atoi(argv[2]));
	fprintf(stderr, "usage: suite server | suite client NODE\n");
	return 2;
}
