/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/pci_regs.h>

#include "ntbs.h"

#define RAM_FD 100
#define EVENT_FD 1000 /* and above: one for each vector */

static void must(bool right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "not so: %s\n", what);
	abort();
}

/* ---- the edge ---- */

static int map(void *ctx, int fd, uint64_t offset, const struct sio_vfio_range *range, void **ret)
{
	struct ntbs_machine *m = ctx;

	(void)fd;
	if (offset > NTBS_RAM_BYTES || range->size > NTBS_RAM_BYTES - offset)
		return -EINVAL;
	m->mapped++;
	*ret = m->ram + offset;
	return 0;
}

static void unmap(void *ctx, void *data, uint64_t size)
{
	(void)data;
	(void)size;
	((struct ntbs_machine *)ctx)->mapped--;
}

static void take_ask(struct ntbs_machine *m, const struct sio_vfio_header *head,
		     const uint8_t *message)
{
	struct ntbs_ask *a = &m->ask[m->n_asks % NTBS_ASKS];
	struct sio_vfio_dma dma;

	memcpy(&dma, message + sizeof(*head), sizeof(dma));
	*a = (struct ntbs_ask){.id = head->id,
			       .read = head->command == SIO_VFIO_DMA_READ,
			       .address = dma.address,
			       .len = dma.count};
	must(a->read || head->size == sizeof(*head) + sizeof(dma) + dma.count, "data of a write");
	if (!a->read)
		memcpy(a->data, message + sizeof(*head) + sizeof(dma),
		       a->len < sizeof(a->data) ? a->len : sizeof(a->data));
	m->n_asks++;
}

static void send_message(void *ctx, const void *message, size_t len, int fd)
{
	struct ntbs_machine *m = ctx;
	struct sio_vfio_header head;

	(void)fd;
	must(len >= sizeof(head), "a whole head");
	memcpy(&head, message, sizeof(head));
	must(head.size == len && sio_vfio_check_head(&head, NULL) == 0, "a right head");
	if (!(head.flags & SIO_VFIO_REPLY)) {
		take_ask(m, &head, message);
		return;
	}
	m->replied = head.id == m->id;
	m->reply_id = head.id;
	m->reply_error = head.error;
	m->n_replies++;
	m->reply_len = len - sizeof(head);
	memcpy(m->reply, (const uint8_t *)message + sizeof(head),
	       m->reply_len < sizeof(m->reply) ? m->reply_len : sizeof(m->reply));
}

static bool is_event(void *ctx, int fd)
{
	(void)ctx;
	return fd >= EVENT_FD;
}

static void signal_event(void *ctx, int fd)
{
	((struct ntbs_machine *)ctx)->signals[fd - EVENT_FD]++;
}

static void close_fd(void *ctx, int fd)
{
	(void)fd;
	((struct ntbs_machine *)ctx)->fds--;
}

static void say(void *ctx, const char *text)
{
	(void)ctx;
	must(*text, "a text");
}

static const struct sio_vfio_session_ops session_ops = {.memory = {map, unmap},
							.send = send_message,
							.is_event = is_event,
							.signal = signal_event,
							.close = close_fd,
							.log = say};

static uint64_t now(void *ctx)
{
	return ((struct ntbs *)ctx)->now;
}

static void set_alarm(void *ctx, uint64_t when)
{
	struct ntbs *s = ctx;

	if (!s->alarm || when < s->alarm)
		s->alarm = when;
}

static int outward(void *ctx, const struct emu_ntb_outward *x, uint8_t **ret)
{
	struct ntbs *s = ctx;

	s->n_outward++;
	s->outward = *x;
	if (x->address == NTBS_HOST_RAM + NTBS_HOST_BYTES) {
		s->n_messages += x->data != NULL;
		return x->data ? 1 : -EPERM;
	}
	if (x->address < NTBS_HOST_RAM || x->address + x->len > NTBS_HOST_RAM + NTBS_HOST_BYTES)
		return -EACCES;
	*ret = s->host_ram + (x->address - NTBS_HOST_RAM);
	return 0;
}

static void power(void *ctx, uint32_t node, unsigned adapter, uint64_t start)
{
	struct ntbs *s = ctx;

	must(adapter < s->host[0].n_adapters, "one of its adapters");
	if (adapter > 0)
		return;
	must(start != s->power[node / 4 - 1], "news");
	s->power[node / 4 - 1] = start;
	s->n_power++;
}

static const struct emu_ntb_ops ntb_ops = {
	.outward = outward, .power = power, .now = now, .alarm = set_alarm, .log = say};

/* ---- machines ---- */

/* A mapped window beside emulated hosts: these have pools. */
static struct ntbs *make(unsigned hosts, unsigned n, unsigned adapters, bool mapped, bool exact)
{
	struct ntbs *s = calloc(1, sizeof(*s));

	must(s != NULL, "memory");
	s->n = n * adapters;
	s->topo = (struct sio_topology){.name = "t",
					.max_payload = 256,
					.max_read_request = 512,
					.read_completion_boundary = 64,
					.n_hosts = hosts,
					.n_machines = n,
					.host = s->host,
					.exact_multicast = exact,
					.n_switches = 1};
	s->topo.machine = s->host + hosts;
	for (unsigned i = 0; i < hosts + n; i++) {
		snprintf(s->host[i].name, sizeof(s->host[i].name), "m%u", i);
		s->host[i].node = 4 * (i + 1);
		s->host[i].machine = i >= hosts;
		s->host[i].mapped = mapped && i >= hosts;
		s->host[i].ram_base = i < hosts ? 1ull << 32 : 0;
		s->host[i].ram_size = 2u << 20;
		s->host[i].pool_size = mapped && i < hosts ? 1u << 20 : 0;
		s->host[i].n_adapters = adapters;
		for (unsigned k = 0; k < adapters; k++)
			s->host[i].adapter[k] = (struct sio_topo_adapter){
				.window_size = (uint64_t)NTBS_ENTRY * NTBS_ENTRIES,
				.lut_entries = NTBS_ENTRIES,
				.requesters = 8,
				.link_width = 8,
				.link_generation = 3,
				.attach = SIO_ATTACH_SWITCH,
			};
	}
	must(emu_ntb_new(&s->topo, &ntb_ops, s, &s->ntb, NULL) == 0, "NTBs");
	must(emu_ntb_adapters(s->ntb) == s->n, "those of each");
	for (unsigned i = 0; i < s->n; i++) {
		s->machine[i].all = s;
		s->machine[i].index = i;
		s->machine[i].adapter = emu_ntb_at(s->ntb, i);
	}
	return s;
}

struct ntbs *ntbs_new(unsigned n, bool mapped)
{
	return make(0, n, 1, mapped, false);
}

struct ntbs *ntbs_new_beside(unsigned n)
{
	return make(1, n, 1, false, false);
}

struct ntbs *ntbs_new_pool(unsigned n)
{
	return make(1, n, 1, true, false);
}

struct ntbs *ntbs_new_exact(unsigned n)
{
	return make(0, n, 1, false, true);
}

struct ntbs *ntbs_new_two(void)
{
	return make(0, 1, 2, false, true);
}

void ntbs_free(struct ntbs *s)
{
	for (unsigned i = 0; i < s->n; i++)
		ntbs_disconnect(s, i);
	emu_ntb_free(s->ntb);
	free(s);
}

int ntbs_tell(struct ntbs_machine *m, unsigned command, uint32_t flags, const void *body,
	      size_t len, int fd, unsigned n_fds)
{
	struct sio_vfio_header head = {.id = ++m->id,
				       .command = (uint16_t)command,
				       .size = (uint32_t)(sizeof(head) + len),
				       .flags = flags};
	uint8_t *message = malloc(sizeof(head) + len);
	int fds[SIO_VFIO_MAX_FDS], rc;

	must(message != NULL, "memory");
	memcpy(message, &head, sizeof(head));
	if (len)
		memcpy(message + sizeof(head), body, len);
	for (unsigned i = 0; i < n_fds; i++)
		fds[i] = fd + (int)i;
	m->fds += (int)n_fds;
	m->replied = false;
	rc = sio_vfio_session_take(m->session, message, head.size, fds, n_fds);
	free(message);
	return rc;
}

static void tell_ok(struct ntbs_machine *m, unsigned command, const void *body, size_t len, int fd,
		    unsigned n_fds)
{
	must(ntbs_tell(m, command, 0, body, len, fd, n_fds) == 0, "the session goes on");
	must(m->replied && m->reply_error == 0, "it is answered");
}

void ntbs_connect(struct ntbs *s, unsigned machine)
{
	struct ntbs_machine *m = &s->machine[machine];
	const struct sio_vfio_version version = {0};
	struct sio_vfio_dma_map dma = {.argsz = sizeof(dma), .flags = 3};
	uint16_t command = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;

	m->session = sio_vfio_session_new(&emu_ntb_function, m->adapter, &session_ops, m);
	must(m->session != NULL, "memory");
	emu_ntb_attach(m->adapter, m->session);
	m->n_asks = 0;
	tell_ok(m, SIO_VFIO_VERSION, &version, sizeof(version), -1, 0);
	dma.address = NTBS_RAM;
	dma.size = NTBS_RAM_BYTES;
	tell_ok(m, SIO_VFIO_DMA_MAP, &dma, sizeof(dma), RAM_FD, 1);
	dma.address = NTBS_DEVICE;
	dma.size = NTBS_DEVICE_BYTES;
	tell_ok(m, SIO_VFIO_DMA_MAP, &dma, sizeof(dma), -1, 0);
	for (unsigned i = 0; i < SIO_VNTB_VECTORS; i += SIO_VFIO_MAX_FDS) {
		struct sio_vfio_irq_set set = {.argsz = sizeof(set),
					       .flags = SIO_VFIO_SET_EVENTFD | SIO_VFIO_SET_TRIGGER,
					       .index = SIO_VFIO_MSIX,
					       .start = i,
					       .count = SIO_VFIO_MAX_FDS};

		tell_ok(m, SIO_VFIO_SET_IRQS, &set, sizeof(set), EVENT_FD + (int)i,
			SIO_VFIO_MAX_FDS);
	}
	ntbs_write(s, machine, SIO_VFIO_CONFIG, PCI_COMMAND, &command, sizeof(command));
}

void ntbs_disconnect(struct ntbs *s, unsigned machine)
{
	struct ntbs_machine *m = &s->machine[machine];

	if (!m->session)
		return;
	emu_ntb_attach(m->adapter, NULL);
	sio_vfio_session_free(m->session);
	m->session = NULL;
	must(m->fds == 0 && m->mapped == 0, "all is given back");
}

bool ntbs_read(struct ntbs *s, unsigned machine, unsigned region, uint64_t offset, void *buf,
	       size_t len)
{
	struct ntbs_machine *m = &s->machine[machine];
	const struct sio_vfio_access a = {
		.offset = offset, .region = region, .count = (uint32_t)len};

	must(ntbs_tell(m, SIO_VFIO_REGION_READ, 0, &a, sizeof(a), -1, 0) == 0, "it goes on");
	if (m->replied) {
		must(m->reply_error == 0 && m->reply_len == sizeof(a) + len, "what was asked for");
		memcpy(buf, m->reply + sizeof(a), len);
	}
	return m->replied;
}

void ntbs_write(struct ntbs *s, unsigned machine, unsigned region, uint64_t offset, const void *buf,
		size_t len)
{
	struct sio_vfio_access a = {.offset = offset, .region = region, .count = (uint32_t)len};
	uint8_t body[sizeof(a) + 64];

	memcpy(body, &a, sizeof(a));
	memcpy(body + sizeof(a), buf, len);
	tell_ok(&s->machine[machine], SIO_VFIO_REGION_WRITE, body, sizeof(a) + len, -1, 0);
}

uint32_t ntbs_get(struct ntbs *s, unsigned machine, uint64_t reg)
{
	uint32_t value = 0;

	must(ntbs_read(s, machine, NTBS_REGISTERS, reg, &value, sizeof(value)), "a register");
	return value;
}

uint64_t ntbs_get64(struct ntbs *s, unsigned machine, uint64_t reg)
{
	uint64_t value = 0;

	must(ntbs_read(s, machine, NTBS_REGISTERS, reg, &value, sizeof(value)), "a register");
	return value;
}

void ntbs_set(struct ntbs *s, unsigned machine, uint64_t reg, uint32_t value)
{
	ntbs_write(s, machine, NTBS_REGISTERS, reg, &value, sizeof(value));
}

void ntbs_set64(struct ntbs *s, unsigned machine, uint64_t reg, uint64_t value)
{
	ntbs_write(s, machine, NTBS_REGISTERS, reg, &value, sizeof(value));
}

void ntbs_answer(struct ntbs *s, unsigned machine, unsigned ask, int rc, const void *data)
{
	struct ntbs_machine *m = &s->machine[machine];
	const struct ntbs_ask *a = &m->ask[ask % NTBS_ASKS];
	struct sio_vfio_header head = {.id = a->id,
				       .command = a->read ? SIO_VFIO_DMA_READ : SIO_VFIO_DMA_WRITE,
				       .flags = SIO_VFIO_REPLY | (rc ? SIO_VFIO_ERROR : 0),
				       .error = (uint32_t)-rc};
	struct sio_vfio_dma dma = {.address = a->address, .count = a->len};
	uint8_t message[sizeof(head) + sizeof(dma) + 64];

	head.size = (uint32_t)sizeof(head);
	if (!rc) {
		head.size += (uint32_t)(sizeof(dma) + (a->read ? a->len : 0));
		memcpy(message + sizeof(head), &dma, sizeof(dma));
		if (a->read)
			memcpy(message + sizeof(head) + sizeof(dma), data, a->len);
	}
	memcpy(message, &head, sizeof(head));
	must(sio_vfio_session_take(m->session, message, head.size, NULL, 0) == 0, "a reply");
}

void ntbs_rest(struct ntbs *s)
{
	s->now = s->alarm;
	s->alarm = 0;
	emu_ntb_expire(s->ntb);
}

void ntbs_refuse(struct ntbs *s, unsigned machine, unsigned ask)
{
	const struct ntbs_machine *m = &s->machine[machine];
	unsigned n;

	do {
		n = m->n_asks;
		s->alarm = 0;
		ntbs_answer(s, machine, ask, -EFAULT, NULL);
		if (s->alarm)
			ntbs_rest(s);
		ask = m->n_asks - 1;
	} while (m->n_asks > n);
}

void ntbs_grant(struct ntbs *s, unsigned machine, unsigned range, unsigned row, uint64_t base,
		uint64_t size, uint32_t rights)
{
	ntbs_set(s, machine, SIO_VNTB_RANGE(range) + SIO_VNTB_RANGE_CONTROL, 0);
	ntbs_set64(s, machine, SIO_VNTB_RANGE(range) + SIO_VNTB_RANGE_BASE, base);
	ntbs_set64(s, machine, SIO_VNTB_RANGE(range) + SIO_VNTB_RANGE_SIZE, size);
	ntbs_set(s, machine, SIO_VNTB_RANGE(range) + SIO_VNTB_RANGE_CONTROL,
		 SIO_VNTB_RANGE_VALID | rights | SIO_VNTB_RANGE_ROW(row));
}

void ntbs_lead(struct ntbs *s, unsigned machine, unsigned entry, unsigned row, uint64_t address,
	       uint32_t flags)
{
	ntbs_set64(s, machine, SIO_VNTB_LUT(entry) + SIO_VNTB_LUT_ADDRESS, address);
	ntbs_set(s, machine, SIO_VNTB_LUT(entry) + SIO_VNTB_LUT_CONTROL,
		 SIO_VNTB_LUT_VALID | flags | SIO_VNTB_LUT_ROW(row));
}
