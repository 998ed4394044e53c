/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes of devices. This is the data path: an access within a page that was translated
 * before is one look-up in a small table, a few additions and one copy. A cached translation is
 * valid while the room's generation stands still; whatever is taken away or re-routed increments
 * it.
 *
 * Counting: what a device sends is counted at its port; at each adapter that the access passes, on
 * the way out and in, the same is counted, because neither switches nor windows split packets.
 * Where an access ends in a fault, what was sent counts as far as it came; a read is then answered
 * by a completion without data.
 */
#include "emu/engine/engine.h"
#include "smartio/io.h"

#define likely(c) __builtin_expect(!!(c), 1)
#define unlikely(c) __builtin_expect(!!(c), 0)
#define APART __attribute__((noinline)) /* so that the short way has no stack to set up */

/* Packets of a read within a page. Whole pages and short ones need no division. */
static inline void read_packets(const struct emu_room *r, uint64_t addr, size_t len,
				struct sio_pcie_count *c)
{
	if (len == EMU_PAGE) {
		c->read_requests += r->page_read.read_requests;
		c->completions += r->page_read.completions;
	} else if (len <= 64) { /* with the bytes before, less than the smallest limit */
		c->read_requests++;
		c->completions++;
	} else {
		sio_pcie_read(&r->pcie, addr, len, c);
		return;
	}
	c->read_bytes += len;
}

static inline void write_packets(const struct emu_room *r, uint64_t addr, size_t len,
				 struct sio_pcie_count *c)
{
	if (len == EMU_PAGE) {
		c->write_tlps += r->page_write.write_tlps;
	} else if (len <= 64) {
		c->write_tlps++;
	} else {
		sio_pcie_write(&r->pcie, addr, len, c);
		return;
	}
	c->write_bytes += len;
}

/* What was sent, as far as it came; a read was answered by completions without data. */
static void count_fault(struct emu_device *d, uint64_t addr, size_t len, uint32_t access,
			const struct emu_target *t)
{
	struct sio_pcie_count *c[1 + EMU_HOPS] = {&d->count.pcie}, sent = {0};

	if (access == SIO_ACCESS_READ)
		read_packets(d->room, addr, len, &sent);
	else
		write_packets(d->room, addr, len, &sent);
	sent.completions = sent.read_requests;
	sent.read_bytes = 0;
	for (unsigned i = 0; i < t->n_hops; i++)
		c[1 + i] = &t->hop[i]->pcie;
	for (unsigned i = 0; i < 1u + t->n_hops; i++) {
		c[i]->read_requests += sent.read_requests;
		c[i]->completions += sent.read_requests;
		c[i]->write_tlps += sent.write_tlps;
		c[i]->write_bytes += sent.write_bytes;
	}
	if (t->far)
		emu_way_count(&t->way, d->room, &sent);
}

static const struct emu_xlat *translate_page(struct emu_device *d, uint64_t addr, uint32_t access,
					     struct emu_target *t)
{
	struct emu_xlat *x = &d->xlat[(addr / EMU_PAGE) % EMU_XLATS];

	d->xlat_misses++;
	d->unchecked = UINT32_MAX; /* so that this access is compared with the list */
	if (emu_translate(d, (struct sio_dev_addr){addr & ~(EMU_PAGE - 1)}, access, t) < 0)
		return NULL;
	if (t->sender) {
		d->to_group =
			(struct emu_xlat){.sender = t->sender, .sender_offset = t->sender_offset};
		return &d->to_group;
	}
	x->page = addr / EMU_PAGE;
	x->gen = t->fleeting ? 0 : d->room->gen; /* the room's is never 0 */
	x->data = t->data;
	x->access = t->access;
	x->n_hops = t->n_hops;
	for (unsigned i = 0; i < EMU_HOPS; i++)
		x->hop[i] = t->hop[i];
	x->far = t->far;
	x->way = t->way;
	return x;
}

/* The page that @addr lies in, if it was translated before and @access is allowed there. */
static inline const struct emu_xlat *kept(const struct emu_device *d, uint64_t addr,
					  uint32_t access)
{
	const struct emu_xlat *x = &d->xlat[(addr / EMU_PAGE) % EMU_XLATS];

	if (likely(x->gen == d->room->gen && x->page == addr / EMU_PAGE && (x->access & access)))
		return x;
	return NULL;
}

/* The same, translated now if necessary; NULL: *t has the reason. */
static inline const struct emu_xlat *page_of(struct emu_device *d, uint64_t addr, uint32_t access,
					     struct emu_target *t)
{
	const struct emu_xlat *x = kept(d, addr, access);

	return likely(x != NULL) ? x : translate_page(d, addr, access, t);
}

/*
 * The compiler would put a string instruction here, knowing that few bytes can come; what the C
 * library has for this processor is up to a tenth faster. So it is not told.
 */
static inline void copy_to(uint8_t *to, const void *from, size_t len)
{
	__asm__("" : "+r"(len));
	sio_copy_to(to, from, len);
}

static inline void copy_from(void *to, const uint8_t *from, size_t len)
{
	__asm__("" : "+r"(len));
	sio_copy_from(to, from, len);
}

/*
 * Small writes go word by word, lowest first, each whole: who polls for the last word of a
 * completion finds the others there. The fence keeps what was written before ahead of them, also
 * where the library copied much with streaming stores. Pairs with the reader's barrier: took() and
 * take() of the NVMe driver.
 */
static inline void copy_out(uint8_t *to, const void *from, size_t len)
{
	if (len <= 64 && len % 8 == 0 && ((uintptr_t)to | (uintptr_t)from) % 8 == 0) {
		sio_to_fabric_barrier();
		for (size_t i = 0; i < len; i += 8)
			sio_write64(to + i, *(const uint64_t *)((const uint8_t *)from + i));
		return;
	}
	copy_to(to, from, len);
}

static inline void check(struct emu_device *d, const struct emu_xlat *x, uint64_t addr, size_t len,
			 uint32_t access)
{
	if (EMU_CHECK && x->gen && unlikely((++d->unchecked & d->room->check_mask) == 0))
		emu_check_access(d, (struct sio_dev_addr){addr}, len, access,
				 x->data + addr % EMU_PAGE);
}

/* Of a way that has more than adapters. */
APART static void pass_far(struct emu_device *d, const struct emu_xlat *x, uint64_t addr,
			   size_t len, uint32_t access)
{
	struct sio_pcie_count c = {0};

	if (access == SIO_ACCESS_READ)
		read_packets(d->room, addr, len, &c);
	else
		write_packets(d->room, addr, len, &c);
	emu_way_count(&x->way, d->room, &c);
}

/* Count and check what goes within a page. Return: its place. */
static inline uint8_t *pass_read(struct emu_device *d, const struct emu_xlat *x, uint64_t addr,
				 size_t len)
{
	read_packets(d->room, addr, len, &d->count.pcie);
	for (unsigned i = 0; i < x->n_hops; i++)
		read_packets(d->room, addr, len, &x->hop[i]->pcie);
	if (unlikely(x->far))
		pass_far(d, x, addr, len, SIO_ACCESS_READ);
	check(d, x, addr, len, SIO_ACCESS_READ);
	return x->data + addr % EMU_PAGE;
}

static inline uint8_t *pass_write(struct emu_device *d, const struct emu_xlat *x, uint64_t addr,
				  size_t len)
{
	write_packets(d->room, addr, len, &d->count.pcie);
	for (unsigned i = 0; i < x->n_hops; i++)
		write_packets(d->room, addr, len, &x->hop[i]->pcie);
	if (unlikely(x->far))
		pass_far(d, x, addr, len, SIO_ACCESS_WRITE);
	check(d, x, addr, len, SIO_ACCESS_WRITE);
	return x->data + addr % EMU_PAGE;
}

/* Bytes of the host's memory that follow one another: pages are counted singly, copied together. */
struct run {
	uint8_t *at; /* NULL: what goes there vanishes */
	size_t len;
};

static inline bool run_grows(struct run *run, const uint8_t *at, size_t len)
{
	if (!run->at || at != run->at + run->len)
		return false;
	run->len += len;
	return true;
}

/* Return: how far that went. */
static size_t read_run(const struct run *run, void *to)
{
	if (run->len)
		copy_from(to, run->at, run->len);
	return run->len;
}

static size_t write_run(const struct run *run, const void *from)
{
	if (run->at)
		copy_out(run->at, from, run->len);
	return run->len;
}

static int fault(struct emu_device *d, uint64_t addr, size_t len, uint32_t access,
		 const struct emu_target *t)
{
	count_fault(d, addr, len, access, t);
	if (EMU_CHECK)
		emu_check_access(d, (struct sio_dev_addr){addr}, len, access, NULL);
	emu_fault_record(d, (struct sio_dev_addr){addr}, len, access, t);
	return -EFAULT;
}

static inline size_t within_page(uint64_t addr, size_t len)
{
	size_t room = EMU_PAGE - addr % EMU_PAGE;

	return len < room ? len : room;
}

static int wraps(struct emu_device *d, uint64_t addr, size_t len, uint32_t access)
{
	struct emu_target t = {.node = d->host->topo->node,
			       .reason = "the access wraps around the end of the address space"};

	emu_fault_record(d, (struct sio_dev_addr){addr}, len, access, &t);
	return -EFAULT;
}

APART static int read_any(struct emu_device *d, uint64_t addr, uint8_t *to, size_t len)
{
	struct emu_target t;
	struct run run = {0};
	uint64_t last;

	if (len == 0)
		return 0;
	if (__builtin_add_overflow(addr, len - 1, &last))
		return wraps(d, addr, len, SIO_ACCESS_READ);
	/* More than a page: look at all first, so that a read that fails has read nothing. */
	if (last / EMU_PAGE != addr / EMU_PAGE)
		for (uint64_t page = addr; page <= last;) {
			size_t n = within_page(page, last - page + 1);

			if (!page_of(d, page, SIO_ACCESS_READ, &t))
				return fault(d, page, n, SIO_ACCESS_READ, &t);
			if (__builtin_add_overflow(page, n, &page))
				break;
		}
	while (len > 0) {
		size_t n = within_page(addr, len);
		const struct emu_xlat *x = page_of(d, addr, SIO_ACCESS_READ, &t);
		uint8_t *from;

		if (!x)
			return fault(d, addr, n, SIO_ACCESS_READ, &t);
		from = pass_read(d, x, addr, n);
		if (!run_grows(&run, from, n)) {
			to += read_run(&run, to);
			run = (struct run){.at = from, .len = n};
		}
		addr += n;
		len -= n;
	}
	read_run(&run, to);
	return 0;
}

static void passed_by_device(struct emu_adapter *a, const struct sio_pcie_count *c)
{
	a->count.pcie.write_tlps += c->write_tlps;
	a->count.pcie.write_bytes += c->write_bytes;
}

/* Within a page of addresses that lead to a multicast group. */
static int write_group(struct emu_device *d, const struct emu_xlat *x, uint64_t addr,
		       const uint8_t *from, size_t len)
{
	struct sio_pcie_count c = {0};
	struct emu_target t;
	int rc;

	write_packets(d->room, addr, len, &c);
	d->count.pcie.write_tlps += c.write_tlps;
	d->count.pcie.write_bytes += c.write_bytes;
	rc = emu_group_write(d, x->sender, x->sender_offset + addr % EMU_PAGE, from, len, &c,
			     passed_by_device, &t);
	if (rc < 0)
		emu_fault_record(d, (struct sio_dev_addr){addr}, len, SIO_ACCESS_WRITE, &t);
	return rc;
}

/* Posted: each page's packets arrive or vanish on their own. */
APART static int write_any(struct emu_device *d, uint64_t addr, const uint8_t *from, size_t len)
{
	struct emu_target t;
	struct run run = {0};
	uint64_t last;
	int rc = 0;

	if (len == 0)
		return 0;
	if (__builtin_add_overflow(addr, len - 1, &last))
		return wraps(d, addr, len, SIO_ACCESS_WRITE);
	while (len > 0) {
		size_t n = within_page(addr, len);
		const struct emu_xlat *x = page_of(d, addr, SIO_ACCESS_WRITE, &t);
		bool to_group = x && x->sender;
		uint8_t *to = x && !to_group ? pass_write(d, x, addr, n) : NULL;

		if (to_group) { /* behind what was written before */
			from += write_run(&run, from);
			run = (struct run){.len = n};
			if (write_group(d, x, addr, from, n) < 0)
				rc = -EFAULT;
			addr += n;
			len -= n;
			continue;
		}
		if (!to)
			rc = fault(d, addr, n, SIO_ACCESS_WRITE, &t);
		if (!run_grows(&run, to, n)) {
			from += write_run(&run, from);
			run = (struct run){.at = to, .len = n};
		}
		addr += n;
		len -= n;
	}
	write_run(&run, from);
	return rc;
}

/* At least one byte, and none beyond the page of the first: then nothing wraps, either. */
static inline bool in_one_page(uint64_t addr, size_t len)
{
	return len - 1 < EMU_PAGE - addr % EMU_PAGE;
}

int emu_dma_read(struct emu_dev *dev, uint64_t addr, void *buf, size_t len)
{
	struct emu_device *d = dev->room;
	const struct emu_xlat *x = kept(d, addr, SIO_ACCESS_READ);

	if (unlikely(!x || !in_one_page(addr, len)))
		return read_any(d, addr, buf, len);
	copy_from(buf, pass_read(d, x, addr, len), len);
	return 0;
}

int emu_dma_write(struct emu_dev *dev, uint64_t addr, const void *buf, size_t len)
{
	struct emu_device *d = dev->room;
	const struct emu_xlat *x = kept(d, addr, SIO_ACCESS_WRITE);

	if (unlikely(!x || !in_one_page(addr, len)))
		return write_any(d, addr, buf, len);
	copy_out(pass_write(d, x, addr, len), buf, len);
	return 0;
}
