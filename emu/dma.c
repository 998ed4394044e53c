/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device reads and writes. This is the data path: an access within a page that was translated
 * before is one look into a small table, a few additions and one copy. A kept translation holds
 * while the room's generation stands still; whatever is taken away or re-routed moves it.
 *
 * Counting: at the device's port what it sends; at each adapter passed, on the way out and in, the
 * same, because neither switches nor windows split packets. Where an access ends in a fault, what
 * was sent counts as far as it came; a read is then answered by a completion without data.
 */
#include "emu/internal.h"
#include "smartio/io.h"

static inline void add(struct emu_count *to, const struct sio_pcie_count *c)
{
	to->pcie.write_tlps += c->write_tlps;
	to->pcie.read_requests += c->read_requests;
	to->pcie.completions += c->completions;
	to->pcie.write_bytes += c->write_bytes;
	to->pcie.read_bytes += c->read_bytes;
}

/* What an access within a page makes. Whole pages and short ones need no division. */
static inline void packets(const struct emu_room *r, uint64_t addr, size_t len, uint32_t access,
			   struct sio_pcie_count *c)
{
	memset(c, 0, sizeof(*c));
	if (access == SIO_ACCESS_READ) {
		if (len == EMU_PAGE)
			*c = r->page_read;
		else if (len <= 64) /* with the bytes before, less than the smallest limit */
			*c = (struct sio_pcie_count){
				.read_requests = 1, .completions = 1, .read_bytes = len};
		else
			sio_pcie_read(&r->pcie, addr, len, c);
	} else {
		if (len == EMU_PAGE)
			*c = r->page_write;
		else if (len <= 64)
			*c = (struct sio_pcie_count){.write_tlps = 1, .write_bytes = len};
		else
			sio_pcie_write(&r->pcie, addr, len, c);
	}
}

static void count_fault(struct emu_device *d, uint64_t addr, size_t len, uint32_t access,
			const struct emu_target *t)
{
	struct sio_pcie_count c;

	packets(d->room, addr, len, access, &c);
	if (access == SIO_ACCESS_READ) {
		c.completions = c.read_requests;
		c.read_bytes = 0;
	}
	add(&d->count, &c);
	for (unsigned i = 0; i < t->n_hops; i++)
		add(t->hop[i], &c);
}

static const struct emu_xlat *translate_page(struct emu_device *d, uint64_t addr, uint32_t access,
					     struct emu_target *t)
{
	struct emu_xlat *x = &d->xlat[(addr / EMU_PAGE) % EMU_XLATS];

	d->xlat_misses++;
	if (emu_translate(d, addr & ~(EMU_PAGE - 1), access, t) < 0)
		return NULL;
	x->page = addr / EMU_PAGE;
	x->gen = d->room->gen;
	x->data = t->data;
	x->access = t->access;
	x->n_hops = t->n_hops;
	for (unsigned i = 0; i < EMU_HOPS; i++)
		x->hop[i] = t->hop[i];
	return x;
}

/* The page that @addr lies in, if @access is allowed there; NULL: *t says why not. */
static inline const struct emu_xlat *page_of(struct emu_device *d, uint64_t addr, uint32_t access,
					     struct emu_target *t)
{
	const struct emu_xlat *x = &d->xlat[(addr / EMU_PAGE) % EMU_XLATS];

	if (__builtin_expect(x->gen == d->room->gen && x->page == addr / EMU_PAGE &&
				     (x->access & access),
			     1))
		return x;
	return translate_page(d, addr, access, t);
}

/*
 * Small writes go word by word, lowest first, each whole: who polls for the last word of a
 * completion finds the others there. The fence keeps what was written before ahead of them.
 */
static inline void copy_out(uint8_t *to, const void *from, size_t len)
{
	if (len <= 64 && len % 8 == 0 && ((uintptr_t)to | (uintptr_t)from) % 8 == 0) {
		sio_to_fabric_barrier();
		for (size_t i = 0; i < len; i += 8)
			sio_write64(to + i, *(const uint64_t *)((const uint8_t *)from + i));
		return;
	}
	sio_copy_to(to, from, len);
}

static inline void pass(struct emu_device *d, const struct emu_xlat *x, uint64_t addr, size_t len,
			uint32_t access)
{
	struct sio_pcie_count c;

	packets(d->room, addr, len, access, &c);
	add(&d->count, &c);
	for (unsigned i = 0; i < x->n_hops; i++)
		add(x->hop[i], &c);
	if (EMU_CHECK)
		emu_check_access(d, addr, len, access, x->data + addr % EMU_PAGE);
}

static int fault(struct emu_device *d, uint64_t addr, size_t len, uint32_t access,
		 const struct emu_target *t)
{
	count_fault(d, addr, len, access, t);
	if (EMU_CHECK)
		emu_check_access(d, addr, len, access, NULL);
	emu_fault_record(d, addr, len, access, t);
	return -EFAULT;
}

static size_t within_page(uint64_t addr, size_t len)
{
	size_t room = EMU_PAGE - addr % EMU_PAGE;

	return len < room ? len : room;
}

static int wraps(struct emu_device *d, uint64_t addr, size_t len, uint32_t access)
{
	struct emu_target t = {.node = d->host->topo->node,
			       .reason = "the access wraps around the end of the address space"};

	emu_fault_record(d, addr, len, access, &t);
	return -EFAULT;
}

int emu_dma_read(struct emu_dev *dev, uint64_t addr, void *buf, size_t len)
{
	struct emu_device *d = dev->room;
	struct emu_target t;
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
	for (uint8_t *to = buf; len > 0;) {
		size_t n = within_page(addr, len);
		const struct emu_xlat *x = page_of(d, addr, SIO_ACCESS_READ, &t);

		if (__builtin_expect(!x, 0))
			return fault(d, addr, n, SIO_ACCESS_READ, &t);
		pass(d, x, addr, n, SIO_ACCESS_READ);
		sio_copy_from(to, x->data + addr % EMU_PAGE, n);
		addr += n;
		to += n;
		len -= n;
	}
	return 0;
}

/* Posted: each page's packets arrive or vanish on their own. */
int emu_dma_write(struct emu_dev *dev, uint64_t addr, const void *buf, size_t len)
{
	struct emu_device *d = dev->room;
	struct emu_target t;
	uint64_t last;
	int rc = 0;

	if (len == 0)
		return 0;
	if (__builtin_add_overflow(addr, len - 1, &last))
		return wraps(d, addr, len, SIO_ACCESS_WRITE);
	for (const uint8_t *from = buf; len > 0;) {
		size_t n = within_page(addr, len);
		const struct emu_xlat *x = page_of(d, addr, SIO_ACCESS_WRITE, &t);

		if (__builtin_expect(x != NULL, 1)) {
			pass(d, x, addr, n, SIO_ACCESS_WRITE);
			copy_out(x->data + addr % EMU_PAGE, from, n);
		} else {
			rc = fault(d, addr, n, SIO_ACCESS_WRITE, &t);
		}
		addr += n;
		from += n;
		len -= n;
	}
	return rc;
}
