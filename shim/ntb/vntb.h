/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ntb_hw_smartio.ko: what its files share. hw.c has the PCI function, its registers and vectors,
 * and tells what happens to the parts that use them: ntb_api.c, the Linux NTB API, and bridge.c,
 * the bridge of smartio.ko, with mapped.c.
 *
 * Who has what of the tables: the first look-up entries and granted ranges are the NTB API's
 * (v->api), as are doorbells, messages, scratchpads and SIO_VNTB_ENABLE. The others, the vectors
 * from SIO_VNTB_VECTOR_PEERS on and the requester table are for a bridge of smartio.ko.
 */
#ifndef SHIM_VNTB_H
#define SHIM_VNTB_H

#include <linux/bits.h>
#include <linux/io.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/ntb.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include <smartio/vntb.h>

/* Windows of the NTB API to each peer. All drivers of a fabric have the same, see ntb_api.c. */
#define VNTB_API_WINDOWS 2
#define VNTB_API_PEERS 64 /* bits of ntb_link_is_up() */

/* What a peer's access to one of this host's devices may take: twice what it is given. */
#define VNTB_BUSY_LIMIT_US 4000000

struct vntb {
	struct ntb_dev ntb;
	struct pci_dev *pdev;
	void __iomem *regs;
	phys_addr_t window;
	u32 node, adapter;
	u32 peers, entries, entry_shift, ranges, vectors;
	struct vntb_bridge *bridge; /* NULL: smartio.ko is not there */
	struct vntb_doorbell {
		struct vntb *v;
		int bit;
	} doorbells[SIO_VNTB_DOORBELLS];
	/* The NTB API's part. */
	struct {
		bool registered;
		u32 peers;		  /* those that are machines */
		u32 rows[VNTB_API_PEERS]; /* of the table of peers, in their order */
		int ports[VNTB_API_PEERS];
		int port; /* of this host */
		u32 window_entries;
		u32 entries, ranges; /* how many it has: the first ones */
		spinlock_t mask_lock;
		u32 db_mask, msg_mask; /* as stored */
	} api;
};

/* One access that was stopped. */
struct vntb_fault {
	u32 kind, peer, length, reason;
	u64 address;
};

static inline u32 vntb_read(const struct vntb *v, u32 reg)
{
	return readl(v->regs + reg);
}

static inline void vntb_write(struct vntb *v, u32 reg, u32 value)
{
	writel(value, v->regs + reg);
}

static inline u64 vntb_read64(const struct vntb *v, u32 reg)
{
	return readq(v->regs + reg);
}

static inline void vntb_write64(struct vntb *v, u32 reg, u64 value)
{
	writeq(value, v->regs + reg);
}

/*
 * Stores are posted. When this returns, the function has taken those that were made before: who
 * hears of a row by another way than this function, a peer or another device, finds it as it is.
 */
static inline void vntb_push(const struct vntb *v, u32 reg)
{
	vntb_read(v, reg);
}

/* hw.c */
/* SIO_VNTB_PEER_* of a row; 0 if the function does not answer any more. */
u32 vntb_peer_state(const struct vntb *v, u32 row);
/*
 * Where a look-up entry leads, in the peer's start @start (0: in any). @address as in the register.
 * Both are posted: vntb_push() follows the last of several.
 */
void vntb_entry_set(struct vntb *v, u32 entry, u32 row, u64 address, u64 start, u32 flags);
void vntb_entry_clear(struct vntb *v, u32 entry);
/*
 * Let the peer of this row reach a range, in place of what the range's row let through before.
 * Return: 0; -ETIMEDOUT: that does not end.
 */
int vntb_range_set(struct vntb *v, u32 range, u32 row, u64 base, u64 size, u32 flags);
/*
 * End it; sleeps for @limit_us at most. Return: 0: no access to it is under way; -ETIMEDOUT: there
 * still is one, which is the case only if one of this host's devices does not answer; never for
 * plain memory.
 */
int vntb_range_clear(struct vntb *v, u32 range, u64 limit_us);
/* What has been ended: is an access to it still under way? */
bool vntb_range_is_busy(struct vntb *v, u32 range);

/*
 * Bytes of this host at bus address @base become a member of a group, closed. Return: 0; -ERANGE:
 * the group is shorter. Clear, is busy: as of a range.
 */
int vntb_member_set(struct vntb *v, u32 member, u32 group, u64 base, u64 size);
void vntb_member_open(struct vntb *v, u32 member, bool yes);
int vntb_member_clear(struct vntb *v, u32 member, u64 limit_us);
bool vntb_member_is_busy(struct vntb *v, u32 member);

/*
 * ntb_api.c. Start: 0, also if no peer is a machine and there is no NTB device; the layout of
 * v->api is made in any case. The others do nothing then.
 */
int vntb_api_start(struct vntb *v);
void vntb_api_stop(struct vntb *v);
void vntb_api_link(struct vntb *v);
void vntb_api_message(struct vntb *v);
void vntb_api_doorbell(struct vntb *v, int bit);

/*
 * mapped.c: what of the peers' memory is plain memory here, in a BAR of another function. Open: 0,
 * *ret NULL: nothing; -ENOMEM. Find: is that range of a peer in it? *ret: where. NULL is fine.
 */
struct vntb_mapped;
int vntb_mapped_open(struct vntb *v, struct vntb_mapped **ret);
void vntb_mapped_close(struct vntb_mapped *m);
bool vntb_mapped_find(const struct vntb_mapped *m, u32 row, u64 bus, u64 length, phys_addr_t *ret);

/*
 * bridge.c. Start: 0, also without smartio.ko; -ENOMEM. The vectors of link and fault must be ours
 * from before it until after the end. The others do nothing then.
 */
int vntb_bridge_start(struct vntb *v);
void vntb_bridge_stop(struct vntb *v);
void vntb_bridge_link(struct vntb *v);
void vntb_bridge_fault(struct vntb *v, const struct vntb_fault *f, const char *reason);

#endif
