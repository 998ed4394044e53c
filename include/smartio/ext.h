/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * SmartIO extensions to the SISCI API: what a driver that shares a device needs and SISCI lacks.
 *
 * All functions may be called from any thread. Those that can fail have a last parameter @error
 * that is always written, as in SISCI. Handles are those of sisci_api.h.
 */
#ifndef SMARTIO_EXT_H
#define SMARTIO_EXT_H

#include <stddef.h>
#include <stdint.h>

#include "sisci_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The text that explains this thread's last failed call, with names and numbers; "" if none. To be
 * looked at after a failure: a call that succeeds clears it, or leaves it (SCIMemCpy() does).
 * Valid until the thread's next SISCI or smartio call. Never NULL.
 */
const char *smartio_last_error(void);

/**
 * What ran out, if this thread's last call failed for that: SIO_OUT_OF_* of smartio/uapi.h, whoever
 * refused: this process, a host's smartiod or port, or the lender's. SIO_OUT_OF_NOTHING (0): no
 * call failed, or for another reason. smartio_last_error() then begins with "out of NAME: " and
 * says how many there are, and whose they are where that is known.
 */
unsigned int smartio_last_exhausted(void);
/** "look-up entries" for SIO_OUT_OF_LUT_ENTRIES; "" for 0 and unknown numbers. Static storage. */
const char *smartio_exhausted_name(unsigned int what);

/** Name of this host and of its cluster; "" before SCIInitialize. Static storage. */
const char *smartio_host_name(void);
const char *smartio_cluster_name(void);

/** Monotonic time in nanoseconds. One call to the kernel's vDSO; never fails. */
uint64_t smartio_now_ns(void);
/** Let another thread run; what a poller does that found nothing. */
void smartio_yield(void);
/** 64 random bits, for names and back-off; not for secrets. */
uint64_t smartio_random(void);

/**
 * The number of this process, another one in a child of fork(). For libraries above this one: what
 * they have in a child are copies, and to act on them would be to act for the parent. No system
 * call. Source: our own.
 */
uint32_t smartio_process(void);

/** A thread that the library has started for its caller. */
typedef struct smartio_thread *smartio_thread_t;

/**
 * Run @fn(@arg) in a thread of the library: for calls of this API that may wait for other hosts, in
 * a program that polls and must not wait. Signals of the program do not come there. Each such
 * thread ends with smartio_thread_join(), which waits until @fn has returned, and which must be
 * called before SCITerminate(); after fork() there is no such thread in the child. In simulated
 * time it is a coroutine, so a driver that starts its threads here runs there unchanged.
 * Errors of the first: SCI_ERR_NOSPC, SCI_ERR_ILLEGAL_PARAMETER, SCI_ERR_NOT_INITIALIZED. The
 * second never fails; NULL is nothing. Source: our own.
 */
void smartio_thread_start(void (*fn)(void *arg), void *arg, smartio_thread_t *thread,
			  sci_error_t *error);
void smartio_thread_join(smartio_thread_t thread);

/**
 * Find a device by the name that its lender gave it (topology file, or smartio device add), or by
 * number ("0x4f4093").
 * Errors: SCI_ERR_NO_SUCH_FDID, SCI_ERR_NOT_INITIALIZED, SCI_ERR_ILLEGAL_PARAMETER.
 */
void smartio_find_device(const char *name, unsigned int *fdid, sci_error_t *error);

/** What smartio_await_device() waits for; each includes those before it. */
enum smartio_await {
	SMARTIO_AWAIT_THERE = 0,    /* its lender offers it: smartio_find_device() finds it */
	SMARTIO_AWAIT_SHARED = 1,   /* a path leads there, and nobody has it exclusively */
	SMARTIO_AWAIT_EXCLUSIVE = 2 /* nobody has borrowed it */
};

/**
 * Wait until a device is in a state, without polling: this host's smartiod, which hears of all
 * changes of all devices, answers when it is. So nothing is sent while nothing changes, however
 * long that takes. It promises nothing for the time after it: others may be faster, so borrow, and
 * if that is SCI_ERR_NOT_AVAILABLE wait again. What programs of other hosts have just borrowed or
 * returned it may hear a few milliseconds later, but never after such a refusal. A reset of the
 * device is not waited for here, because a borrow waits until it is over. Memory of a device that
 * is kept for queues of a drive (smartio_device_hold()) counts as free, and the borrow is
 * SCI_ERR_NOT_AVAILABLE: so pause before you wait a second time, or that is a loop without a sleep.
 * @name: as for smartio_find_device(), and also one that no device has yet: a device that is added
 * later, or whose host is down, is waited for. @state: enum smartio_await. @timeout_ms:
 * milliseconds; 0 looks, SCI_INFINITE_TIMEOUT waits for ever. @fdid: set on success alone.
 * It waits on while smartiod is started again, and then @timeout_ms begins anew. It ends by
 * SCITerminate() of another thread, and goes on after a signal. In a callback it keeps all other
 * callbacks from being called. A program may have 1,024 of these, and of other calls, waiting.
 * Errors: SCI_ERR_TIMEOUT, and smartio_last_error() says what the device lacks;
 * SCI_ERR_ILLEGAL_PARAMETER NULL, no such state, or a name that none can have;
 * SCI_ERR_NO_LINK_ACCESS no smartiod is there, or the library was terminated; SCI_ERR_NOSPC too
 * many calls wait; SCI_ERR_NOT_INITIALIZED. Source: our own.
 */
void smartio_await_device(const char *name, unsigned int state, unsigned int timeout_ms,
			  unsigned int *fdid, sci_error_t *error);

/**
 * localAdapterNo of SCICreateDataInterrupt(): the interrupt has its number at each adapter of this
 * host, where that must be free, and is reached by whatever way a message comes. For who tells
 * others of the number without knowing how they come.
 */
#define SMARTIO_ALL_ADAPTERS 0xffffffffu

/**
 * A flag of SCICreateDeviceSegment(), with SCI_MEMTYPE_SHARED: the segment lies in the lender's
 * memory and outlives its maker. When the maker's program has ended, but the device may still reach
 * what it had mapped, the segment stays, with its id, for whoever has the device's registers, and
 * for nobody else (SCI_ERR_ACCESS); until smartio_device_settled() of that borrow or of all, or a
 * reset. So who takes the place of a program that had queues of the device finds what that had
 * written down.
 * Where the maker may be alive without the lender's knowledge, because its path was lost, no other
 * program has it, for both would use it: that one alone, which may have the registers over another
 * path. When its host is lost, too, it ends. Behind smartio.ko, today, it is a shared segment like
 * others. Without a connection it ends while its maker lives. Source: our own.
 */
#define SMARTIO_FLAG_LASTING 0x00400000U

/**
 * As SCIBorrowDevice(), over adapter @adapter of this host alone: maps of BARs, device segments in
 * memory of the lender or of this host, and what is mapped for the device of those, take no other
 * way, nor another adapter of the lender's than what the borrow has already. (A local segment or an
 * interrupt is mapped or tied over the adapter that its own call names.) When the link there goes
 * down this borrow is lost, though another way to the device is up; and one over another adapter,
 * of the same program too, is not. So a program that has one over each of two adapters keeps the
 * device. Of a device of this host: the same as SCIBorrowDevice().
 * @flags: as there. Errors: as there, and SCI_ERR_NO_SUCH_ADAPTERNO, SCI_ERR_NO_LINK_ACCESS the
 * link there is down, SCI_ERR_NO_SUCH_NODEID that adapter does not lead to the device's host.
 * Source: section 6.3 of the paper (a client behind two adapters); our own call.
 */
void smartio_borrow_device_over(sci_desc_t sd, sci_smartio_device_t *device, unsigned int fdid,
				unsigned int adapter, unsigned int flags, sci_error_t *error);

/** This borrow's number at the lender; unique for ever at that lender. 0 for a NULL handle. */
uint64_t smartio_borrower_id(sci_smartio_device_t device);

/**
 * Counts resets of the device: queues made under another number are gone. A load from memory of
 * this process, no system call; goes up when the lender or the queue owner reset the device, or
 * when it is lost. Odd numbers do not occur.
 */
uint32_t smartio_device_generation(sci_smartio_device_t device);
/**
 * Where smartio_device_generation() reads, for a data path that compares on every doorbell. Valid
 * until SCIReturnDevice(); only the library writes there. NULL: wrong handle.
 */
const volatile uint32_t *smartio_device_generation_word(sci_smartio_device_t device);
/** 0 while the device can be reached; 1 when this borrow is lost (SMARTIO_DEVICE_LOST). A load. */
int smartio_device_lost(sci_smartio_device_t device);

#define SMARTIO_ALL_BORROWERS (~0ULL)

enum smartio_device_event_kind {
	SMARTIO_DEVICE_BORROWER_GONE = 1, /* @borrower ended: delete its queues, then settle it */
	SMARTIO_DEVICE_RESET = 2,	  /* the generation changed */
	/*
	 * This borrow is lost, for good: device or lender is gone, or the path that it went over.
	 * Return it; a device that is there can be borrowed again over another path.
	 */
	SMARTIO_DEVICE_LOST = 3,
	SMARTIO_DEVICE_NOTICE = 4 /* smartio_device_notify(); several may be told as one */
};

struct smartio_device_event {
	uint32_t kind; /* enum smartio_device_event_kind */
	uint32_t generation;
	uint64_t borrower;
};

/**
 * Wait for the next event of a borrowed device. BORROWER_GONE goes to the holder of the device's
 * registers only, of each borrow that ends; those that ended before it held them, or while a daemon
 * was away, and have memory that the device may still use, are told when it takes them, or when the
 * daemon is back. Of others smartio_device_settled() says whether they have ended.
 * @timeout_ms: 0 looks, SCI_INFINITE_TIMEOUT waits for ever.
 * Errors: SCI_ERR_TIMEOUT, SCI_ERR_CANCELLED (handle returned meanwhile),
 * SCI_ERR_ILLEGAL_PARAMETER.
 */
void smartio_wait_device_event(sci_smartio_device_t device, struct smartio_device_event *event,
			       unsigned int timeout_ms, sci_error_t *error);

/**
 * A descriptor that polls readable while a device event is waiting. The library's; do not close.
 * -1: wrong handle.
 */
int smartio_device_event_fd(sci_smartio_device_t device);

/**
 * The word that ends a quarantine: the device has no queue left that uses what @borrower had mapped
 * for it (SMARTIO_ALL_BORROWERS: of all that ended, after a reset; then the generation goes up and
 * every borrower is told). Only the owner of the registers may say it. Source: the teardown order
 * submission queues, completion queues, DMA windows, memory (docs/control-path.md).
 * After the word about all, maps of the device's doorbells lead nowhere, the caller's own too: they
 * read as ones, and stores to them are lost. Map them again. Those of its registers stay.
 * Errors: SCI_ERR_ACCESS not the holder, SCI_ERR_ILLEGAL_PARAMETER that borrow has not ended; of
 * others, as SCI_ERR_NOSPC, something may be left in quarantine: say it again.
 */
void smartio_device_settled(sci_smartio_device_t device, uint64_t borrower, sci_error_t *error);

/**
 * Have all other borrowers of the device get SMARTIO_DEVICE_NOTICE: what they share is to be looked
 * at again. So a manager tells those who wait for one that it serves, and nobody has to poll. Those
 * who borrow later do not get it; those whose smartiod is away get it when that is back, perhaps a
 * second time. When this returns it is on its way. Only the owner of the registers may ask.
 * Errors: SCI_ERR_ACCESS not the owner of the registers, SCI_ERR_ILLEGAL_PARAMETER wrong handle,
 * SCI_ERR_NOT_CONNECTED the device is lost, SCI_ERR_NODE_NOT_RESPONDING its lender does not answer,
 * SCI_ERR_NO_LINK_ACCESS, SCI_ERR_NOSPC, SCI_ERR_NOT_INITIALIZED. Source: our own.
 */
void smartio_device_notify(sci_smartio_device_t device, sci_error_t *error);

/**
 * Before a queue of the device is made in memory that a borrower named: ask its lender whether that
 * borrower has mapped it, and have it stay mapped. One live mapping of the live borrow @borrower
 * must cover all of [ioaddr, ioaddr + bytes), an address as the device sees it. Until *hold is
 * released, unmapping it fails with SCI_ERR_BUSY, and what a death leaves waits for
 * smartio_device_settled() anyway: no queue points to memory that was given back. Who tells the
 * number of a borrow may lie; what this says may be relied on.
 * Only the owner of the registers may ask; the hold outlives it, as queues do. It ends by
 * smartio_device_unhold(), smartio_device_settled() for @borrower or for all, or a reset. A mapping
 * may be held several times. One of another device's BAR is SCI_ERR_NOT_SUPPORTED, because it can
 * be cut; except memory of a device of the same host that all of its borrowers have, or, of a class
 * that smartiod does not know, that an exclusive borrow has: when its borrow ends that is kept,
 * lent to nobody, until the hold is released. By VFIO there is no such exception.
 * Errors: SCI_ERR_OUT_OF_RANGE not mapped by that borrower, SCI_ERR_NO_SUCH_SEGMENT pages of a
 * device that were taken away, SCI_ERR_ILLEGAL_PARAMETER no live borrow has it, SCI_ERR_ACCESS
 * not the owner of the registers, SCI_ERR_BUSY being reset.
 */
void smartio_device_hold(sci_smartio_device_t device, uint64_t borrower, sci_ioaddr_t ioaddr,
			 size_t bytes, uint64_t *hold, sci_error_t *error);

/**
 * The queue that smartio_device_hold() was for is deleted. Any owner of the registers may say so.
 * Errors: SCI_ERR_ILLEGAL_PARAMETER nothing is held by this number (any more: a reset ended it),
 * SCI_ERR_ACCESS not the owner of the registers.
 */
void smartio_device_unhold(sci_smartio_device_t device, uint64_t hold, sci_error_t *error);

/**
 * Of a BAR whose pages the holder of the device's registers alone has, as the controller memory
 * buffer of an NVMe drive: let borrower @borrower have [offset, offset + bytes) as well, whole
 * pages, which it then maps as it maps doorbells. They are its own until its borrow ends, or until
 * they are assigned to another one, which is refused while it has one of them mapped: so nobody
 * maps a page that another one has. Resets end neither the assignment nor the mapping; what lies
 * there afterwards is the device's matter. Only the holder may ask; the assignment outlives it.
 * Errors: SCI_ERR_BUSY another borrower has some of them mapped, or its end is not seen to yet; or
 * @borrower itself has them mapped as part of others than these,
 * SCI_ERR_OUT_OF_RANGE not whole pages of such a BAR, SCI_ERR_ILLEGAL_PARAMETER no live borrow has
 * this number, or it is the caller's, SCI_ERR_ACCESS not the owner of the registers,
 * SCI_ERR_NOT_SUPPORTED a device of a real host, SCI_ERR_NOSPC. Source: our own; what it is for is
 * in section 7.4.1 of the paper (a submission queue in the drive's own memory).
 */
void smartio_device_assign(sci_smartio_device_t device, uint64_t borrower, unsigned int bar,
			   size_t offset, size_t bytes, sci_error_t *error);

/** 1 if this process has a map of this device's registers that can be written, else 0. */
int smartio_holds_registers(sci_smartio_device_t device);

/**
 * Function reset by the lender. Needs the registers, or an exclusive borrow, or a device that
 * nobody holds the registers of. Settles all borrowers; the generation goes up. Maps of its
 * doorbells lead nowhere afterwards, as after smartio_device_settled() of all.
 * Errors: SCI_ERR_ACCESS, SCI_ERR_NOT_SUPPORTED, SCI_ERR_TIMEOUT.
 */
void smartio_device_reset(sci_smartio_device_t device, sci_error_t *error);

/**
 * A descriptor that polls readable when a data interrupt (without callback) may have a message.
 * The library's; do not close or read. Use SCIWaitForDataInterrupt(timeout 0) to take messages.
 * -1: wrong handle.
 */
int smartio_data_interrupt_fd(sci_local_data_interrupt_t interrupt);
/**
 * A descriptor that polls readable when an interrupt without data (and without callback) has been
 * triggered; on a real host also for a driver in the kernel to be woken by (smartio/disk.h). The
 * library's; do not close or read. Use SCIWaitForInterrupt() to take what it was triggered for.
 * -1: wrong handle, or an imported one.
 */
int smartio_interrupt_fd(sci_local_interrupt_t interrupt);

/**
 * A device of an emulated cluster sleeps when nobody uses it. A plain store to its doorbells or
 * registers wakes it, where the system lets it (docs/waking.md). Where not, it looks by itself
 * again and again, unless the program that stores promises to do so itself. This call is the
 * promise, for all stores through @map. NULL: nothing is to be done; this is so on hardware, too.
 * Else the word that says whether the device sleeps; after each store that it must see:
 *
 * 	sio_full_barrier();
 * 	if (sio_read32(word))
 * 		smartio_map_wake(map);
 *
 * The word is valid until SCIUnmapSegment(); after a loss it may say anything. @map: of a BAR, else
 * NULL is returned. Ask again: the same answer.
 */
const volatile uint32_t *smartio_map_sleep_word(sci_map_t map);
/** Wake the device behind @map: one write to a descriptor. A wrong handle is ignored. */
void smartio_map_wake(sci_map_t map);

#define SMARTIO_ANY_VECTOR (~0u)

/**
 * Tie an interrupt vector of a borrowed device to an interrupt without data, of any host: each
 * message that the device sends for the vector triggers it, without a call or a daemon in between.
 * The device becomes one more sender: SCIRemoveInterrupt() of it is SCI_ERR_BUSY until the tie
 * ends.
 * @vector: of the device, as PCI numbers those of MSI-X; SMARTIO_ANY_VECTOR: the lowest free one
 * but 0 is taken, and stored there. A vector belongs to the borrower that tied it.
 * @interrupt: a connection to it (SCIConnectInterrupt()), as the right to trigger it; it may be of
 * this very process. It may be disconnected afterwards.
 * What the device sent before, while the vector was nobody's, is not told. The tie ends by
 * smartio_disconnect_device_interrupt(), SCIReturnDevice(), the end of this process, or with the
 * interrupt or the way to its host; not by resets of the device, and not with @interrupt.
 * Errors: SCI_ERR_BUSY the vector is taken, SCI_ERR_HW_NOSPC all are, or a table is full,
 * SCI_ERR_ILLEGAL_PARAMETER wrong handle, or no such vector, SCI_ERR_NO_SUCH_INTNO the interrupt is
 * gone, SCI_ERR_NOT_CONNECTED it was lost meanwhile, SCI_ERR_NOT_SUPPORTED the device has no
 * vectors, SCI_ERR_NO_LINK_ACCESS, SCI_ERR_NODE_NOT_RESPONDING.
 * Source: PCI Express base specification, MSI-X; our own extension.
 */
void smartio_connect_device_interrupt(sci_smartio_device_t device, unsigned int *vector,
				      sci_remote_interrupt_t interrupt, sci_error_t *error);

/**
 * End a tie of this borrow. When it returns, no message of the device for @vector is on its way.
 * Errors: SCI_ERR_ILLEGAL_PARAMETER wrong handle, or this borrow has no such vector (any more):
 * also while smartio_connect_device_interrupt() has not told it, and when that failed for want of
 * an answer, for what such an answer brings is undone.
 */
void smartio_disconnect_device_interrupt(sci_smartio_device_t device, unsigned int vector,
					 sci_error_t *error);

#define SMARTIO_ALL_MEMORY 1u /* flags of smartio_plug_in() */
#define SMARTIO_PEERS 2u
#define SMARTIO_PLUG_VECTORS 16u

/**
 * Device Lending: put a device of another host into this host's PCI tree, where its stock driver
 * binds to it and knows nothing (docs/device-lending.md). Real hosts only.
 * @device: borrowed exclusively; nothing of it connected or mapped for it.
 * @interrupts: @n of this process (0: the driver gets no vectors), SMARTIO_PLUG_VECTORS at most,
 * without data, number i tied to vector i of the device (smartio_connect_device_interrupt()). They
 * are the driver's until smartio_unplug(), and count nothing.
 * @window: where an IOMMU translates what comes through this host's adapter: bytes that the driver
 * can have mapped at a time, whole MiB; the device's host reaches what is mapped, while it is.
 * @flags: where there is none SMARTIO_ALL_MEMORY must be given, with @window 0: the driver maps
 * whatever memory it likes, so the device's host gets access to all memory of this one. With
 * SMARTIO_PEERS its driver may have it read and write BARs (dma_map_resource()): of devices that
 * any process of this host has plugged in with this flag, and, with a @window, of this host's own.
 * @place: set to where it is: domain << 16 | bus << 8 | device << 3 | function.
 * It ends by smartio_unplug() or with this process: first the driver is unbound. When the device,
 * its host or the way there is lost it goes by itself. A restart of smartiod here or there is no
 * loss. One at a time for a process.
 * After a failure nothing of it stays, and the process may try again.
 * Errors: SCI_ERR_NOT_SUPPORTED smartio_lend.ko is not loaded, an emulated cluster, or a device of
 * this host, or there is an IOMMU for SMARTIO_ALL_MEMORY, or none for @window; SCI_ERR_ACCESS
 * neither is given, or the borrow is not exclusive; SCI_ERR_BUSY this process has one, or the one
 * that it had is being ended;
 * SCI_ERR_HW_NOSPC a window of one of the two hosts, or I/O addresses, are too few for @window or
 * the memory of this host; SCI_ERR_ILLEGAL_PARAMETER; SCI_ERR_NODE_NOT_RESPONDING.
 * Source: Device Lending's DMA window (the SmartIO paper, section 4.3).
 */
void smartio_plug_in(sci_smartio_device_t device, const sci_local_interrupt_t *interrupts,
		     unsigned int n, uint64_t window, unsigned int flags, uint32_t *place,
		     sci_error_t *error);

/**
 * The opposite. When it returns, no driver has the device, which can be returned.
 * Errors: SCI_ERR_ILLEGAL_PARAMETER wrong handle, or it is not plugged in.
 */
void smartio_unplug(sci_smartio_device_t device, sci_error_t *error);

/** One counter of the fabric, as `smartio stats` shows it. */
struct smartio_counter {
	char name[32]; /* NUL-terminated */
	uint64_t value;
};

/**
 * What the fabric has counted at a device since power-on: transactions and bytes, by PCIe's rules
 * (docs/emulation.md). A question to the lender's daemon: not for a data path.
 * @fdid: the device; it need not be borrowed. Up to @max counters are stored in @counters.
 * Return: how many were stored; 0 on error.
 * Errors: SCI_ERR_NO_SUCH_FDID, SCI_ERR_NOT_SUPPORTED (this hardware does not count),
 * SCI_ERR_NOT_INITIALIZED, SCI_ERR_ILLEGAL_PARAMETER, SCI_ERR_NODE_NOT_RESPONDING.
 */
unsigned int smartio_device_counters(unsigned int fdid, struct smartio_counter *counters,
				     unsigned int max, sci_error_t *error);

#define SMARTIO_NO_ADAPTER 0xffffffffu

/** What is near something else, and the way there: of fewest chips, of those that are up. */
struct smartio_near {
	unsigned int id;      /* of a device its fdid; of memory the node id of its host */
	unsigned int hops;    /* chips between: chassis, roots of hosts, adapters, switches */
	unsigned int adapter; /* that the way leaves the first host by; SMARTIO_NO_ADAPTER: the */
	unsigned int peer_adapter; /* two are in one host; and enters the other host by */
};

/**
 * Devices, those with the fewest chips between them and the memory of host @node first, then by
 * fdid; those that no way leads to are left out: the order of `smartio device list --near`. What
 * access hints weigh, too. A question to daemons for each device: not for a data path.
 * @node: 0: this host. @pci_class: of these alone, as SCIQuery(SCI_Q_DEVICE) tells it (0x010802:
 * NVMe); 0: all. Up to @max are stored in @near, which may be NULL with @max 0.
 * Return: how many there are, which may be more than @max; 0 on error.
 * Errors: SCI_ERR_NO_SUCH_NODEID, SCI_ERR_NO_LINK_ACCESS no way leads to that host's daemon, who
 * would know, SCI_ERR_NODE_NOT_RESPONDING it does not answer, SCI_ERR_ILLEGAL_PARAMETER,
 * SCI_ERR_NOT_INITIALIZED. Source: sections 4.3 and 6.3 of the paper; our
 * own call.
 */
unsigned int smartio_devices_near(unsigned int node, unsigned int pci_class,
				  struct smartio_near *near, unsigned int max, sci_error_t *error);

/**
 * The opposite: hosts, those whose memory has the fewest chips to device @fdid first, then by node
 * id; those that no way leads to are left out. For who chooses where memory is made that a device
 * reads. Return, errors: as smartio_devices_near(), and SCI_ERR_NO_SUCH_FDID.
 */
unsigned int smartio_memory_near(unsigned int fdid, struct smartio_near *near, unsigned int max,
				 sci_error_t *error);

/**
 * From device @fdid to device @target, as for its DMA to the other's BARs: peer-to-peer.
 * near->id is @target. Errors: SCI_ERR_NO_SUCH_FDID, SCI_ERR_NO_SUCH_NODEID nothing joins their
 * hosts, SCI_ERR_NO_LINK_ACCESS no way is up, SCI_ERR_NODE_NOT_RESPONDING,
 * SCI_ERR_ILLEGAL_PARAMETER the same device twice, SCI_ERR_NOT_INITIALIZED.
 */
void smartio_device_distance(unsigned int fdid, unsigned int target, struct smartio_near *near,
			     sci_error_t *error);

/**
 * Make memory of a borrowed device a member of a multicast group: a copy of what is written to the
 * group goes to [@offset, @offset + @size) of @bar, whole pages, which a connection by
 * SCIConnectDeviceSegment() with SCI_MEMTYPE_BAR leads to. The member is on the lender's host,
 * adapter 0, whichever host the program is on. Members in memory of hosts are segments with
 * SCI_FLAG_BROADCAST; both may be in a group, and on one host. @group: its segment id, 0 to 7.
 *
 * Only memory that this borrow may write: RAM of a memory device or an accelerator; a drive's
 * controller memory buffer, if this borrow holds the registers. On a real host also prefetchable
 * BARs of devices of a class that smartiod does not know, if this borrow holds the registers (it
 * has the device exclusively, or has mapped some of it to be written). No registers, doorbells,
 * interrupt tables. What the device itself writes to the group does not come back to it. A borrow
 * has one member of each group. It ends with smartio_leave_group(); with the device, or the borrow,
 * it is gone, and nothing else of the group changes. A member in memory that goes with the
 * registers keeps these for this borrow, as a map of that memory does. SCIDisconnectSegment() is
 * SCI_ERR_BUSY while @bar has a member. @flags: 0.
 *
 * Groups must be exact (topology key `multicast`). Errors: SCI_ERR_NOT_SUPPORTED they are fused, or
 * the lender is a real host whose adapter has none; SCI_ERR_ACCESS not memory of this borrow's, or
 * the cluster's file refuses that number; SCI_ERR_SEGMENTID_USED the borrow has a member of the
 * group; SCI_ERR_OUT_OF_RANGE beyond the BAR, or the group has members and is smaller;
 * SCI_ERR_SIZE_ALIGNMENT @size 0; SCI_ERR_ILLEGAL_PARAMETER @bar is no BAR, no such group, not
 * whole pages; SCI_ERR_NOT_CONNECTED the device is lost, SCI_ERR_NO_LINK_ACCESS just now, with the
 * link to its lender;
 * SCI_ERR_NODE_NOT_RESPONDING, SCI_ERR_NOSPC (also: the group has no members yet, and no host has
 * RAM of @size, which who writes to it needs addresses of), SCI_ERR_SYSTEM, SCI_ERR_ILLEGAL_FLAG,
 * SCI_ERR_NOT_INITIALIZED. Source: sections 4.3 and 7.4.2 of the
 * paper; multicast overlay of the PCI Express Base Specification; our own call.
 */
void smartio_join_group(sci_remote_segment_t bar, unsigned int group, size_t offset, size_t size,
			unsigned int flags, sci_error_t *error);

/**
 * The end of that. When it returns nothing is written to @bar for the group any more. Of a device
 * that is lost it is no error.
 * Errors: SCI_ERR_ILLEGAL_OPERATION @bar has no member of @group; SCI_ERR_NODE_NOT_RESPONDING,
 * SCI_ERR_NOSPC: @bar has it still, ask again; SCI_ERR_ILLEGAL_PARAMETER, SCI_ERR_ILLEGAL_FLAG,
 * SCI_ERR_NOT_INITIALIZED.
 */
void smartio_leave_group(sci_remote_segment_t bar, unsigned int group, unsigned int flags,
			 sci_error_t *error);

#define SMARTIO_READY_DEVICE 1u	   /* smartio_wait_device_event() may have an event */
#define SMARTIO_READY_INTERRUPT 2u /* SCIWaitForDataInterrupt() may have a message */
#define SMARTIO_READY_WAKE 4u	   /* somebody called smartio_wake() */

/**
 * Wait for several things at once, without a thread per thing: until @device has an event, or
 * @interrupt (created without a callback) has a message, or somebody woke the device's handle, or
 * @timeout_ms have passed. It takes neither event nor message: do that with
 * smartio_wait_device_event() and SCIWaitForDataInterrupt(), timeout 0, until they say
 * SCI_ERR_TIMEOUT. It may say "ready" when there is nothing, but never sleeps while there is
 * something. @device or @interrupt may be NULL: not waited for; both: a plain sleep.
 * @timeout_ms: 0 looks, SCI_INFINITE_TIMEOUT waits for ever.
 *
 * Return: set of SMARTIO_READY_*; 0 on error. SMARTIO_READY_WAKE is reported once per
 * smartio_wake(), several wakes may be reported as one.
 * Errors: SCI_ERR_TIMEOUT, SCI_ERR_CANCELLED (a handle was removed meanwhile or is lost, or the
 * connection to smartiod is; a lost interrupt may be "ready" before, until
 * SCIWaitForDataInterrupt() has reported the loss), SCI_ERR_ILLEGAL_PARAMETER (wrong handle, or the
 * interrupt has a callback).
 */
unsigned int smartio_wait_events(sci_smartio_device_t device, sci_local_data_interrupt_t interrupt,
				 unsigned int timeout_ms, sci_error_t *error);

/**
 * Make a smartio_wait_events() that waits on @device return, or the next one that is called.
 * Async-signal-safe: sets a flag of the handle and writes to its event descriptor, no lock, no
 * errno. The handle must be live; a wrong one is ignored.
 */
void smartio_wake(sci_smartio_device_t device);

#ifdef __cplusplus
}
#endif
#endif
