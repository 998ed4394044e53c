/* SPDX-License-Identifier: BSD-2-Clause */
/* The audit's judgement: a cluster in which all agrees, then one thing wrong at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "doctor/audit.h"
#include "base/output.h"

#define LIVE SIO_ROW_LIVE
#define UP (SIO_ROW_LIVE | SIO_ROW_UP)
#define QUARANTINED SIO_ROW_QUARANTINED

static void add(struct audit_list *l, struct audit_row row)
{
	l->row = tool_grow(l->row, l->n + 1, sizeof(*l->row));
	l->row[l->n++] = row;
}

#define DAEMON(h, kind, ...) add(&(h)->daemon[kind], (struct audit_row){__VA_ARGS__})
#define PORT(h, kind, ...) add(&(h)->port[kind], (struct audit_row){__VA_ARGS__})

/*
 * Host a lends device 0x401 to process 200 of host b, which also has a segment that the device
 * writes to (window, requester, DMA map) and a process 100 of a that is connected to it.
 */
static struct audit *agreeing(void)
{
	struct audit *x = tool_alloc(1, sizeof(*x));
	struct audit_host *a = &x->host[0], *b = &x->host[1];

	x->n_hosts = 2;
	x->room.runs = true;
	*a = (struct audit_host){.name = "a", .node = 4, .n_devices = 1, .n_adapters = 1};
	*b = (struct audit_host){.name = "b", .node = 8, .n_adapters = 1};
	for (unsigned i = 0; i < 2; i++) {
		struct audit_host *h = &x->host[i];

		h->up = h->process.runs = true;
		h->port_socket = h->node_socket = h->peer_socket = true;
		DAEMON(h, SIO_LIST_NODES, .key = 4, .node = 4, .flags = UP);
		DAEMON(h, SIO_LIST_NODES, .key = 8, .node = 8, .flags = UP);
	}
	DAEMON(a, SIO_LIST_CLIENTS, .key = 1, .owner = 11, .pid = 100, .flags = LIVE);
	PORT(a, SIO_KIND_OWNER, .key = 11, .flags = LIVE);
	PORT(a, SIO_KIND_OWNER, .key = 12, .flags = LIVE);
	DAEMON(a, SIO_LIST_BORROWS, .key = 1, .owner = 12, .id = 0x401, .node = 8, .pid = 200,
	       .flags = LIVE);
	PORT(a, SIO_KIND_DEVICE, .key = 13, .id = 0x401, .flags = LIVE);
	DAEMON(a, SIO_LIST_DMA_MAPS, .key = 14, .owner = 12, .bytes = 4096, .id = 0x401, .node = 8,
	       .flags = LIVE);
	PORT(a, SIO_KIND_DMAMAP, .key = 14, .owner = 12, .bytes = 4096, .id = 0x401, .flags = LIVE);
	PORT(a, SIO_KIND_MAP, .key = 15, .owner = 12, .bytes = 4096, .address = 0x9000, .node = 8,
	     .flags = LIVE);
	PORT(a, SIO_KIND_REQUESTER, .key = 16, .id = 0x401, .flags = LIVE);
	DAEMON(a, SIO_LIST_CONNECTIONS, .key = 2, .owner = 11, .bytes = 4096, .address = 0xa000,
	       .id = 7, .node = 8, .pid = 100, .flags = LIVE, .name = "remote");
	PORT(a, SIO_KIND_MAP, .key = 17, .owner = 11, .bytes = 4096, .address = 0xa000, .node = 8,
	     .flags = LIVE);

	DAEMON(b, SIO_LIST_CLIENTS, .key = 1, .owner = 21, .pid = 200, .flags = LIVE);
	PORT(b, SIO_KIND_OWNER, .key = 21, .flags = LIVE);
	DAEMON(b, SIO_LIST_SEGMENTS, .key = 1, .owner = 21, .bytes = 4096, .address = 0x1000,
	       .id = 7, .node = 8, .pid = 200, .flags = LIVE);
	PORT(b, SIO_KIND_MEM, .key = 22, .owner = 21, .bytes = 4096, .address = 0x1000,
	     .flags = LIVE);
	PORT(b, SIO_KIND_GRANT, .key = 23, .bytes = 4096, .node = 4, .flags = LIVE);
	PORT(b, SIO_KIND_GRANT, .key = 24, .bytes = 4096, .node = 4, .flags = LIVE);
	/* A data interrupt with one sender: its ring is memory that is no segment. */
	DAEMON(b, SIO_LIST_DINTS, .key = 3, .owner = 21, .id = 1, .refs = 1, .flags = LIVE);
	PORT(b, SIO_KIND_IRQ, .key = 25, .owner = 21, .flags = LIVE);
	PORT(b, SIO_KIND_MEM, .key = 26, .owner = 21, .bytes = 65536, .address = 0x2000,
	     .flags = LIVE);
	return x;
}

static struct audit_row *port_row(struct audit *x, unsigned host, unsigned kind, unsigned i)
{
	assert_true(i < x->host[host].port[kind].n);
	return &x->host[host].port[kind].row[i];
}

static struct audit_row *daemon_row(struct audit *x, unsigned host, unsigned kind, unsigned i)
{
	assert_true(i < x->host[host].daemon[kind].n);
	return &x->host[host].daemon[kind].row[i];
}

static void drop(struct audit_list *l)
{
	assert_true(l->n > 0);
	l->n--;
}

/* Judge and free @x: exactly the problems @want, NULL at their end, each as a part of a line. */
static void expect(struct audit *x, const char *const *want)
{
	struct audit_report r = {0};
	size_t n = 0;

	audit_check(x, &r);
	for (; want[n]; n++) {
		bool found = false;

		for (size_t i = 0; i < r.n_problems; i++)
			found |= strstr(r.problem[i], want[n]) != NULL;
		if (!found)
			fail_msg("nothing says '%s', but: %s", want[n],
				 r.n_problems ? r.problem[0] : "nothing");
	}
	for (size_t i = n; i < r.n_problems; i++)
		print_message("beyond expectation, perhaps: %s\n", r.problem[i]);
	assert_int_equal(r.n_problems, n);
	audit_report_done(&r);
	audit_free(x);
}

#define EXPECT(x, ...) expect(x, (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void all_agrees(void **state)
{
	(void)state;
	EXPECT(agreeing());
}

static void owners(void **state)
{
	struct audit *x = agreeing();

	(void)state;
	PORT(&x->host[0], SIO_KIND_OWNER, .key = 99, .flags = LIVE);
	EXPECT(x, "a: the port has live owner 99, which smartiod does not know");
	x = agreeing();
	drop(&x->host[0].port[SIO_KIND_OWNER]);
	EXPECT(x, "a: borrower 1 has owner 12, which the port does not know",
	       "a: object 14 of kind 8 belongs to owner 12",
	       "a: object 15 of kind 4 belongs to owner 12");
	x = agreeing();
	daemon_row(x, 0, SIO_LIST_CLIENTS, 0)->owner = 0;
	EXPECT(x, "a: the port has live owner 11, which smartiod does not know");
	x = agreeing();
	daemon_row(x, 1, SIO_LIST_CLIENTS, 0)->flags |= AUDIT_DEAD;
	EXPECT(x, "b: client 200 is no process any more");
}

static void memory(void **state)
{
	struct audit *x = agreeing();

	(void)state;
	PORT(&x->host[1], SIO_KIND_MEM, .key = 90, .owner = 21, .bytes = 4096, .address = 0x8000);
	EXPECT(x, "b: 1 pieces of memory of owner 21 at the port are neither segment nor ring");
	x = agreeing();
	port_row(x, 1, SIO_KIND_MEM, 0)->bytes = 8192;
	EXPECT(x, "b: segment 0x7 has 4096 bytes, its memory 8192");
	x = agreeing();
	DAEMON(&x->host[1], SIO_LIST_SEGMENTS, .key = 9, .owner = 21, .bytes = 4096,
	       .address = 0xf000, .id = 9);
	EXPECT(x, "b: segment 0x9 has no memory at the port");
}

static void dma(void **state)
{
	struct audit *x = agreeing();

	(void)state;
	drop(&x->host[0].port[SIO_KIND_DMAMAP]);
	EXPECT(x, "a: DMA map 14 of device 0x401 is not at the port");
	x = agreeing();
	port_row(x, 0, SIO_KIND_DMAMAP, 0)->flags = QUARANTINED;
	EXPECT(x, "a: DMA map 14 of device 0x401 is quarantined without a borrower that ended");
	x = agreeing();
	drop(&x->host[0].daemon[SIO_LIST_DMA_MAPS]);
	EXPECT(x, "a: DMA map 14 of device 0x401 at the port is unknown to smartiod",
	       "a: device 0x401 has a requester entry and no window");
}

static void queues(void **state)
{
	struct audit *x = agreeing();
	struct audit_device *dev = tool_alloc(1, sizeof(*dev));

	(void)state;
	x->host[0].device = dev;
	*dev = (struct audit_device){.name = "nvme0", .fdid = 0x401, .queue_pairs = 1};
	daemon_row(x, 0, SIO_LIST_DMA_MAPS, 0)->refs = 2;
	EXPECT(x);
	x = agreeing();
	x->host[0].device = dev = tool_alloc(1, sizeof(*dev));
	*dev = (struct audit_device){.name = "nvme0", .fdid = 0x401, .queue_pairs = 2};
	daemon_row(x, 0, SIO_LIST_DMA_MAPS, 0)->refs = 3;
	EXPECT(x, "a: nvme0 has 2 queue pairs in use, but memory is held for 3 queues");
	x = agreeing();
	x->host[0].device = dev = tool_alloc(1, sizeof(*dev));
	*dev = (struct audit_device){.name = "nvme0", .fdid = 0x402, .queue_pairs = 1};
	daemon_row(x, 0, SIO_LIST_DMA_MAPS, 0)->refs = 2; /* of another device */
	EXPECT(x, "a: nvme0 has 1 queue pairs in use, but memory is held for 0 queues");
}

/* The borrower was killed: all that its device may still reach is in quarantine, and that is right.
 */
static void quarantine_is_no_problem(void **state)
{
	struct audit *x = agreeing();

	(void)state;
	daemon_row(x, 0, SIO_LIST_BORROWS, 0)->flags = QUARANTINED;
	daemon_row(x, 0, SIO_LIST_DMA_MAPS, 0)->flags = QUARANTINED;
	port_row(x, 0, SIO_KIND_DMAMAP, 0)->flags = QUARANTINED;
	port_row(x, 0, SIO_KIND_OWNER, 1)->flags = QUARANTINED;
	drop(&x->host[1].daemon[SIO_LIST_CLIENTS]);
	daemon_row(x, 1, SIO_LIST_SEGMENTS, 0)->flags = QUARANTINED;
	port_row(x, 1, SIO_KIND_OWNER, 0)->flags = QUARANTINED;
	port_row(x, 1, SIO_KIND_MEM, 0)->flags = QUARANTINED;
	EXPECT(x);
}

/* Its lender was lost, and is there again: grants wait for its word. */
static void so_is_what_is_orphaned(void **state)
{
	struct audit *x = agreeing();

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		port_row(x, 1, SIO_KIND_GRANT, i)->flags = QUARANTINED;
	EXPECT(x);
	x = agreeing();
	port_row(x, 1, SIO_KIND_GRANT, 0)->flags = QUARANTINED;
	drop(&x->host[0].port[SIO_KIND_MAP]);
	daemon_row(x, 0, SIO_LIST_CONNECTIONS, 0)->address = 0;
	EXPECT(x);
	x = agreeing();
	port_row(x, 1, SIO_KIND_GRANT, 0)->flags = QUARANTINED;
	PORT(&x->host[0], SIO_KIND_MAP, .key = 18, .owner = 11, .bytes = 4096, .node = 8);
	EXPECT(x, "b granted 1 ranges to a, which mapped 3 of it");
	/* A ring of an interrupt that is no more, of a program that is gone. */
	x = agreeing();
	PORT(&x->host[1], SIO_KIND_OWNER, .key = 40, .flags = QUARANTINED);
	PORT(&x->host[1], SIO_KIND_MEM, .key = 41, .owner = 40, .bytes = 65536, .address = 0x30000,
	     .flags = QUARANTINED);
	PORT(&x->host[1], SIO_KIND_GRANT, .key = 42, .owner = 40, .bytes = 65536,
	     .address = 0x30000, .node = 4, .flags = QUARANTINED);
	EXPECT(x);
	x = agreeing();
	PORT(&x->host[1], SIO_KIND_MEM, .key = 41, .owner = 21, .bytes = 65536, .address = 0x30000);
	PORT(&x->host[1], SIO_KIND_GRANT, .key = 42, .owner = 21, .bytes = 65536,
	     .address = 0x40000, .node = 4, .flags = QUARANTINED);
	EXPECT(x, "b: 1 pieces of memory of owner 21 at the port are neither segment nor ring");
	/* With an IOMMU the address alone: it explains no memory that happens to lie there. */
	x = agreeing();
	PORT(&x->host[1], SIO_KIND_GRANT, .key = 42, .bytes = 65536, .address = 0x30000, .node = 4,
	     .flags = QUARANTINED, .name = "grant");
	EXPECT(x);
	x = agreeing();
	PORT(&x->host[1], SIO_KIND_MEM, .key = 41, .bytes = 65536, .address = 0x30000);
	PORT(&x->host[1], SIO_KIND_GRANT, .key = 42, .bytes = 65536, .address = 0x30000, .node = 4,
	     .flags = QUARANTINED, .name = "grant");
	EXPECT(x, "b: 1 pieces of memory of owner 0 at the port are neither segment nor ring");
	x = agreeing();
	PORT(&x->host[1], SIO_KIND_GRANT, .key = 42, .owner = 21, .bytes = 65536, .node = 4,
	     .flags = QUARANTINED, .name = "grant");
	EXPECT(x, "b: grant 42 is of nothing, and owner 21's");
}

static void windows(void **state)
{
	struct audit *x = agreeing();

	(void)state;
	drop(&x->host[1].port[SIO_KIND_GRANT]);
	EXPECT(x, "b granted 1 ranges to a, which mapped 2 of it");
	x = agreeing();
	port_row(x, 1, SIO_KIND_GRANT, 0)->bytes = 8192;
	EXPECT(x, "b granted 12288 bytes to a, which mapped 8192");
	x = agreeing();
	daemon_row(x, 0, SIO_LIST_CONNECTIONS, 0)->address = 0xb000;
	EXPECT(x, "has a window that the port does not know");
	x = agreeing();
	daemon_row(x, 0, SIO_LIST_CONNECTIONS, 0)->id = 8;
	EXPECT(x, "a: process 100 is connected to segment 0x8 of b, which is not there");
}

/* Host a crashed: b must have forgotten it. */
static void host_down(void **state)
{
	struct audit *x = agreeing();
	struct audit_host *a = &x->host[0], *b = &x->host[1];

	(void)state;
	a->up = a->process.runs = a->node_socket = a->peer_socket = false;
	for (unsigned i = 0; i < AUDIT_DAEMON_KINDS; i++)
		a->daemon[i].n = 0;
	for (unsigned i = 0; i < AUDIT_PORT_KINDS; i++)
		a->port[i].n = 0;
	b->daemon[SIO_LIST_NODES].row[0].flags = LIVE;
	b->port[SIO_KIND_GRANT].n = 0;
	EXPECT(x);
	x = agreeing();
	x->host[1].up = false;
	EXPECT(x, "b: smartiod runs, but does not answer", "a says that b is up, but it is down",
	       "b granted 0 ranges to a, which mapped 2 of it (down)",
	       "a: device 0x401 is lent to process 200 of node 8, which is no client there",
	       "a: process 100 is connected to segment 0x7 of b, which is not there");
}

static void nodes_and_borrowers(void **state)
{
	struct audit *x = agreeing();

	(void)state;
	daemon_row(x, 0, SIO_LIST_NODES, 1)->flags = LIVE;
	EXPECT(x, "a says that b is down, but b says that a is up");
	x = agreeing();
	daemon_row(x, 0, SIO_LIST_BORROWS, 0)->pid = 201;
	EXPECT(x, "device 0x401 is lent to process 201 of node 8, which is no client there");
	x = agreeing();
	drop(&x->host[1].port[SIO_KIND_IRQ]);
	EXPECT(x, "b: the port has 0 interrupts, smartiod 1 data interrupts");
	x = agreeing();
	drop(&x->host[0].port[SIO_KIND_DEVICE]);
	EXPECT(x, "a: 0 devices are open at the port, the host has 1");
}

static void the_system(void **state)
{
	struct audit *x = agreeing();

	(void)state;
	x->room.runs = false;
	x->orphans = 2;
	x->strangers = 1;
	x->host[0].peer_socket = false;
	EXPECT(x, "the machine room does not run", "2 programs outlived the keeper that tied them",
	       "1 file in the state directory", "a: node.4 or peer.4 is missing");
}

/* On a machine of a cluster the other hosts are seen from here alone. */
static void another_machine_is_counted_there(void **state)
{
	struct audit *x = agreeing();

	(void)state;
	x->machine = true;
	x->room.runs = false;
	x->host[1].far = true;
	x->host[1].up = x->host[1].process.runs = false;
	x->host[1].node_socket = x->host[1].peer_socket = false;
	EXPECT(x);
	x = agreeing();
	x->machine = true;
	x->host[1].far = true;
	x->host[0].node_socket = false;
	EXPECT(x, "a: node.4 or peer.4 is missing");
}

/* Ids, addresses and process numbers differ; the summary must not. */
static void summaries_of_equal_situations_are_equal(void **state)
{
	struct audit_report one = {0}, two = {0};
	struct audit *x = agreeing();

	(void)state;
	audit_summary(x, &one);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < AUDIT_PORT_KINDS; k++)
			for (size_t j = 0; j < x->host[i].port[k].n; j++) {
				x->host[i].port[k].row[j].key += 1000;
				x->host[i].port[k].row[j].owner += 1000;
				x->host[i].port[k].row[j].address += 0x100000;
			}
		for (size_t j = 0; j < x->host[i].daemon[SIO_LIST_CLIENTS].n; j++)
			x->host[i].daemon[SIO_LIST_CLIENTS].row[j].pid += 7;
	}
	audit_summary(x, &two);
	assert_true(one.n_lines > 60);
	assert_int_equal(one.n_lines, two.n_lines);
	for (size_t i = 0; i < one.n_lines; i++) {
		assert_string_equal(one.line[i].where, two.line[i].where);
		assert_string_equal(one.line[i].what, two.line[i].what);
		assert_int_equal(one.line[i].count, two.line[i].count);
	}
	audit_report_done(&two);
	drop(&x->host[1].port[SIO_KIND_MEM]);
	audit_summary(x, &two);
	assert_int_equal(one.n_lines, two.n_lines);
	for (size_t i = 0, different = 0; i < one.n_lines; i++) {
		different += one.line[i].count != two.line[i].count;
		if (i + 1 == one.n_lines)
			assert_int_equal(different, 2); /* how many, and their bytes */
	}
	audit_report_done(&one);
	audit_report_done(&two);
	audit_free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_agrees),
		cmocka_unit_test(owners),
		cmocka_unit_test(memory),
		cmocka_unit_test(dma),
		cmocka_unit_test(queues),
		cmocka_unit_test(quarantine_is_no_problem),
		cmocka_unit_test(so_is_what_is_orphaned),
		cmocka_unit_test(windows),
		cmocka_unit_test(host_down),
		cmocka_unit_test(nodes_and_borrowers),
		cmocka_unit_test(the_system),
		cmocka_unit_test(another_machine_is_counted_there),
		cmocka_unit_test(summaries_of_equal_situations_are_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
