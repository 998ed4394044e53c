/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network plugin of a collective library, as such plugins are written: a listener that takes one
 * message per connection, mailboxes larger than the segments that they were asked for, memory of
 * the program's own that is registered, DMA without flags and without a map, a state that is
 * polled, and an end that tells nobody.
 *
 * usage: plugin server FIFO | plugin client FIFO   (the library's own way to pass a handle on)
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>

#include <sisci_api.h>

#define NO_FLAGS 0
#define NO_CALLBACK NULL
#define NO_ARG NULL
#define NO_OFFSET 0
#define CONNECTIONS 3u
#define MAILBOX_SIZE 32u /* asked for */
#define SLOTS 15u	 /* used: 480 bytes */
#define PAGE 4096u

#define CHECKED(function, ...)                                                                     \
	do {                                                                                       \
		sci_error_t e_;                                                                    \
		function(__VA_ARGS__, &e_);                                                        \
		if (e_ != SCI_ERR_OK)                                                              \
			fail(__LINE__, #function, e_);                                             \
	} while (0)

static void fail(int line, const char *what, sci_error_t error)
{
	fprintf(stderr, "plugin.c:%d: %s: %s\n", line, what, SCIGetErrorString(error));
	exit(1);
}

/* What the library passes from the listener to who connects. */
typedef struct {
	unsigned int node, interrupt;
} handle_t;

/* The one message of a connection; the answer is the same. */
typedef struct {
	unsigned int node, interrupt, mailbox;
} greeting_t;

/* In the receiver's and in the sender's mailbox. */
typedef struct {
	volatile uint32_t segment, size; /* receiver to sender: into this memory */
	volatile uint32_t posted;	 /* its number, when all above is there */
	volatile uint32_t done;		 /* sender to receiver: bytes that came, plus 1 */
	uint32_t unused[4];
} slot_t;

typedef struct {
	sci_local_segment_t own;
	sci_remote_segment_t remote;
	sci_map_t own_map, remote_map;
	slot_t *in;
	volatile slot_t *out;
	sci_dma_queue_t queue;
	unsigned int peer, sent, received;
} connection_t;

typedef struct {
	sci_local_segment_t segment;
	unsigned int id;
	uint8_t *data;
	size_t size;
} memory_t;

static sci_desc_t sd;
static unsigned int adapter, node, next_id; /* ids: of this process, wherever the other is */

/* ---- the device ---- */

/* Every adapter until one is not there; ids are multiples of four, ranks are made of them. */
static void find_adapters(void)
{
	struct {
		uint16_t bdf, guard;
	} at = {.guard = 0xbeef};
	unsigned int n, id;
	sci_query_adapter_t q;
	sci_error_t error;

	for (n = 0;; n++) {
		SCIGetLocalNodeId(n, &id, NO_FLAGS, &error);
		if (error != SCI_ERR_OK)
			break;
		adapter = n;
		node = id;
	}
	if (n == 0 || node == 0 || node % 4 || (node >> 2) - 1 > 62)
		fail(__LINE__, "no adapter, or not a node's id", error);
	/* The port is not set, and the answer has 16 bits. */
	q.localAdapterNo = adapter;
	q.subcommand = SCI_Q_ADAPTER_BDF;
	q.data = &at.bdf;
	CHECKED(SCIQuery, SCI_Q_ADAPTER, &q, NO_FLAGS);
	if (at.guard != 0xbeef)
		fail(__LINE__, "more than 16 bits of BDF", SCI_ERR_OK);
}

/* ---- memory ---- */

/* First as the memory of a graphics card, which it is not. */
static void register_memory(memory_t *m, size_t size)
{
	sci_error_t error;

	m->size = (size + PAGE - 1) / PAGE * PAGE;
	m->data = aligned_alloc(PAGE, m->size);
	m->id = node << 16 | ++next_id;
	CHECKED(SCICreateSegment, sd, &m->segment, m->id, m->size, NO_CALLBACK, NO_ARG,
		SCI_FLAG_EMPTY);
	SCIAttachPhysicalMemory(0, m->data, 0, m->size, m->segment, SCI_FLAG_CUDA_BUFFER, &error);
	if (error == SCI_ERR_OK)
		fail(__LINE__, "there is no card", error);
	CHECKED(SCIRegisterSegmentMemory, m->data, m->size, m->segment, SCI_FLAG_LOCK_USER_MEM);
	CHECKED(SCIPrepareSegment, m->segment, adapter, NO_FLAGS);
	CHECKED(SCISetSegmentAvailable, m->segment, adapter, NO_FLAGS);
}

/* The peer may be connected still: nobody is told, removal is asked for until it left. */
static void remove_segment(sci_local_segment_t segment)
{
	sci_error_t error;

	do {
		SCIRemoveSegment(segment, NO_FLAGS, &error);
	} while (error == SCI_ERR_BUSY);
	if (error != SCI_ERR_OK)
		fail(__LINE__, "SCIRemoveSegment", error);
}

static void deregister_memory(memory_t *m)
{
	CHECKED(SCISetSegmentUnavailable, m->segment, adapter, NO_FLAGS);
	remove_segment(m->segment);
	free(m->data);
}

/* ---- connections ---- */

static void make_mailbox(connection_t *c, unsigned int *id)
{
	sci_error_t error;

	memset(c, 0, sizeof(*c));
	*id = node << 16 | ++next_id;
	CHECKED(SCICreateSegment, sd, &c->own, *id, MAILBOX_SIZE, NO_CALLBACK, NO_ARG, NO_FLAGS);
	CHECKED(SCIPrepareSegment, c->own, adapter, NO_FLAGS);
	c->in = SCIMapLocalSegment(c->own, &c->own_map, NO_OFFSET, SLOTS * sizeof(slot_t), NULL,
				   NO_FLAGS, &error);
	if (error != SCI_ERR_OK)
		fail(__LINE__, "SCIMapLocalSegment", error);
	CHECKED(SCISetSegmentAvailable, c->own, adapter, NO_FLAGS);
	CHECKED(SCICreateDMAQueue, sd, &c->queue, adapter, 1, NO_FLAGS);
}

static sci_remote_segment_t reach(unsigned int peer, unsigned int id)
{
	sci_remote_segment_t segment = NULL;
	sci_error_t error;

	do {
		SCIConnectSegment(sd, &segment, peer, id, adapter, NO_CALLBACK, NO_ARG,
				  SCI_INFINITE_TIMEOUT, NO_FLAGS, &error);
	} while (error == SCI_ERR_NO_SUCH_SEGMENT);
	if (error != SCI_ERR_OK)
		fail(__LINE__, "SCIConnectSegment", error);
	return segment;
}

static void reach_mailbox(connection_t *c, unsigned int peer, unsigned int id)
{
	sci_error_t error;

	c->peer = peer;
	c->remote = reach(peer, id);
	c->out = SCIMapRemoteSegment(c->remote, &c->remote_map, NO_OFFSET, SLOTS * sizeof(slot_t),
				     NULL, NO_FLAGS, &error);
	if (error != SCI_ERR_OK)
		fail(__LINE__, "SCIMapRemoteSegment", error);
}

/* The sender leaves at once; what it said stays. */
static void say(unsigned int peer, unsigned int interrupt, greeting_t g)
{
	sci_remote_data_interrupt_t to = NULL;
	sci_error_t error;

	do {
		SCIConnectDataInterrupt(sd, &to, peer, adapter, interrupt, SCI_INFINITE_TIMEOUT,
					NO_FLAGS, &error);
	} while (error == SCI_ERR_NO_SUCH_INTNO);
	if (error != SCI_ERR_OK)
		fail(__LINE__, "SCIConnectDataInterrupt", error);
	CHECKED(SCITriggerDataInterrupt, to, &g, sizeof(g), NO_FLAGS);
	CHECKED(SCIDisconnectDataInterrupt, to, NO_FLAGS);
}

static greeting_t hear(sci_local_data_interrupt_t from)
{
	unsigned int length = sizeof(greeting_t);
	greeting_t g;

	CHECKED(SCIWaitForDataInterrupt, from, &g, &length, SCI_INFINITE_TIMEOUT, NO_FLAGS);
	if (length != sizeof(g))
		fail(__LINE__, "a greeting in part", SCI_ERR_OK);
	return g;
}

static void accept_one(connection_t *c, sci_local_data_interrupt_t listener)
{
	greeting_t g = hear(listener), answer = {.node = node};

	make_mailbox(c, &answer.mailbox);
	say(g.node, g.interrupt, answer);
	reach_mailbox(c, g.node, g.mailbox);
}

static void connect_one(connection_t *c, const handle_t *to)
{
	sci_local_data_interrupt_t mine = NULL;
	greeting_t g = {.node = node};

	make_mailbox(c, &g.mailbox);
	CHECKED(SCICreateDataInterrupt, sd, &mine, adapter, &g.interrupt, NO_CALLBACK, NO_ARG,
		NO_FLAGS);
	say(to->node, to->interrupt, g);
	reach_mailbox(c, to->node, hear(mine).mailbox);
	CHECKED(SCIRemoveDataInterrupt, mine, NO_FLAGS);
}

/*
 * Each side leaves the other's mailbox, and removes its own, whatever the other does. The plugin
 * does so once; a peer that gets no processor for 50 ms would fail that, so here it is asked again.
 * tests/api/segment_test.c has those that leave in time.
 */
static void close_connection(connection_t *c)
{
	CHECKED(SCIUnmapSegment, c->remote_map, NO_FLAGS);
	CHECKED(SCIDisconnectSegment, c->remote, NO_FLAGS);
	CHECKED(SCIRemoveDMAQueue, c->queue, NO_FLAGS);
	CHECKED(SCIUnmapSegment, c->own_map, NO_FLAGS);
	remove_segment(c->own);
}

/* ---- messages ---- */

static void post_receive(connection_t *c, const memory_t *m, size_t size)
{
	volatile slot_t *s = &c->out[c->received % SLOTS];

	c->in[c->received % SLOTS].done = 0;
	s->segment = m->id;
	s->size = (uint32_t)size;
	SCIFlush(NULL, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY);
	s->posted = ++c->received;
	SCIFlush(NULL, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY);
}

static size_t await_receive(connection_t *c)
{
	volatile slot_t *s = &c->in[(c->received - 1) % SLOTS];

	while (s->done == 0)
		sched_yield();
	return s->done - 1;
}

/* Finished is what is idle or done; anything else would be waited for, for ever. */
static int finished(sci_dma_queue_t queue)
{
	sci_dma_queue_state_t state = SCIDMAQueueState(queue);

	return state == SCI_DMAQUEUE_IDLE || state == SCI_DMAQUEUE_DONE;
}

static void send_message(connection_t *c, const memory_t *m, size_t size)
{
	volatile slot_t *s = &c->in[c->sent % SLOTS];
	sci_remote_segment_t into;

	while (s->posted != c->sent + 1)
		sched_yield();
	__sync_synchronize();
	if (s->size < size)
		fail(__LINE__, "no room is offered", SCI_ERR_OK);
	into = reach(c->peer, s->segment);
	CHECKED(SCIStartDmaTransfer, c->queue, m->segment, into, 0, size, 0, NO_CALLBACK, NO_ARG,
		NO_FLAGS);
	while (!finished(c->queue))
		sched_yield();
	c->out[c->sent++ % SLOTS].done = (uint32_t)size + 1;
	SCIFlush(NULL, NO_FLAGS);
	CHECKED(SCIDisconnectSegment, into, NO_FLAGS);
}

/* ---- what the library makes of it ---- */

static uint8_t byte_of(size_t i, unsigned int seed)
{
	return (uint8_t)(i * 7 + i / 509 + seed);
}

static void send_all(connection_t *c, size_t size, unsigned int seed)
{
	memory_t m;

	register_memory(&m, size);
	for (size_t i = 0; i < size; i++)
		m.data[i] = byte_of(i, seed);
	send_message(c, &m, size);
	deregister_memory(&m);
}

static void receive_all(connection_t *c, size_t size, unsigned int seed)
{
	memory_t m;
	size_t came;

	register_memory(&m, size);
	memset(m.data, 0, m.size);
	post_receive(c, &m, size);
	came = await_receive(c);
	__sync_synchronize();
	for (size_t i = 0; i < m.size; i++)
		if (came != size || m.data[i] != (i < size ? byte_of(i, seed) : 0))
			fail(__LINE__, "other bytes than were sent", SCI_ERR_OK);
	deregister_memory(&m);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {1, 7, 4096, 5000, 65536, 300001, 1 << 20};
	int server = argc == 3 && !strcmp(argv[1], "server");
	sci_local_data_interrupt_t listener = NULL;
	connection_t c[CONNECTIONS];
	FILE *fifo = argc == 3 ? fopen(argv[2], server ? "w" : "r") : NULL;
	handle_t handle = {0};

	if (!fifo)
		return 2;
	next_id = server ? 0x8000 : 0;
	CHECKED(SCIInitialize, NO_FLAGS);
	find_adapters();
	CHECKED(SCIOpen, &sd, NO_FLAGS);
	if (server) {
		handle.node = node;
		CHECKED(SCICreateDataInterrupt, sd, &listener, adapter, &handle.interrupt,
			NO_CALLBACK, NO_ARG, NO_FLAGS);
	}
	if ((server ? fwrite(&handle, sizeof(handle), 1, fifo)
		    : fread(&handle, sizeof(handle), 1, fifo)) != 1)
		return 1;
	fclose(fifo);
	for (unsigned int i = 0; i < CONNECTIONS; i++) {
		if (server)
			accept_one(&c[i], listener);
		else
			connect_one(&c[i], &handle);
	}
	/* More messages than a mailbox has slots, in turns, over all connections. */
	for (unsigned int n = 0; n < 3 * SLOTS; n++) {
		size_t size = sizes[n % (sizeof(sizes) / sizeof(sizes[0]))];

		for (unsigned int turn = 0; turn < 2; turn++) {
			if (server == (turn == 0))
				receive_all(&c[n % CONNECTIONS], size, n);
			else
				send_all(&c[n % CONNECTIONS], size, n);
		}
	}
	for (unsigned int i = 0; i < CONNECTIONS; i++)
		close_connection(&c[i]);
	if (listener)
		CHECKED(SCIRemoveDataInterrupt, listener, NO_FLAGS);
	CHECKED(SCIClose, sd, NO_FLAGS);
	return 0;
}
