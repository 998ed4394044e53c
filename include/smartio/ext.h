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
 * Find a device by the name that its lender gave it (topology file, or smartio device add), or by
 * number ("0x401").
 * Errors: SCI_ERR_NO_SUCH_FDID, SCI_ERR_NOT_INITIALIZED, SCI_ERR_ILLEGAL_PARAMETER.
 */
void smartio_find_device(const char *name, unsigned int *fdid, sci_error_t *error);

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
 * Not where the maker may be alive without the lender's knowledge (its path or its host was lost):
 * then it ends at once, for both would use it. Nor, today, behind smartio.ko: there it is a shared
 * segment like others. Without a connection it ends while its maker lives. Source: our own.
 */
#define SMARTIO_FLAG_LASTING 0x00400000U

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
	 * Return it; a device that is there can be borrowed anew over another path.
	 */
	SMARTIO_DEVICE_LOST = 3
};

struct smartio_device_event {
	uint32_t kind; /* enum smartio_device_event_kind */
	uint32_t generation;
	uint64_t borrower;
};

/**
 * Wait for the next event of a borrowed device. BORROWER_GONE goes to the holder of the device's
 * registers only; those that came before it held them are told at once when it takes them.
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
 * every borrower is told). Only the holder of the registers may say it. Source: the teardown order
 * submission queues, completion queues, DMA windows, memory (docs/control-path.md).
 * After the word about all, maps of the device's doorbells lead nowhere, the caller's own too: they
 * read as ones, and stores to them are lost. Map them again. Those of its registers stay.
 * Errors: SCI_ERR_ACCESS not the holder, SCI_ERR_ILLEGAL_PARAMETER that borrow has not ended; of
 * others, as SCI_ERR_NOSPC, something may be left in quarantine: say it again.
 */
void smartio_device_settled(sci_smartio_device_t device, uint64_t borrower, sci_error_t *error);

/**
 * Before a queue of the device is made in memory that a borrower named: ask its lender whether that
 * borrower has mapped it, and have it stay mapped. One live mapping of the live borrow @borrower
 * must cover all of [ioaddr, ioaddr + bytes), an address as the device sees it. Until *hold is let
 * go of, unmapping it fails with SCI_ERR_BUSY, and what a death leaves waits for
 * smartio_device_settled() anyway: no queue points to memory that was given back. Who tells the
 * number of a borrow may lie; what this says may be relied on.
 * Only the holder of the registers may ask; the hold outlives it, as queues do. It ends by
 * smartio_device_unhold(), smartio_device_settled() for @borrower or for all, or a reset. A mapping
 * may be held several times; one of another device's BAR is SCI_ERR_NOT_SUPPORTED: it can be cut.
 * Errors: SCI_ERR_OUT_OF_RANGE not mapped by that borrower, SCI_ERR_ILLEGAL_PARAMETER no live
 * borrow has this number, SCI_ERR_ACCESS not the holder of the registers, SCI_ERR_BUSY being reset.
 */
void smartio_device_hold(sci_smartio_device_t device, uint64_t borrower, sci_ioaddr_t ioaddr,
			 size_t bytes, uint64_t *hold, sci_error_t *error);

/**
 * The queue that smartio_device_hold() was for is deleted. Any holder of the registers may say so.
 * Errors: SCI_ERR_ILLEGAL_PARAMETER nothing is held by this number (any more: a reset ended it),
 * SCI_ERR_ACCESS not the holder of the registers.
 */
void smartio_device_unhold(sci_smartio_device_t device, uint64_t hold, sci_error_t *error);

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

#define SMARTIO_ALL_MEMORY 1u /* flag of smartio_plug_in() */
#define SMARTIO_PLUG_VECTORS 16u

/**
 * Device Lending: put a device of another host into this host's PCI tree, where its stock driver
 * binds to it and knows nothing (docs/device-lending.md). Real hosts only.
 * @device: borrowed exclusively; nothing of it connected or mapped for it.
 * @interrupts: @n of this process, a power of 2 (0: the driver gets no vectors),
 * SMARTIO_PLUG_VECTORS at most, without data, number i tied to vector i of the device
 * (smartio_connect_device_interrupt()). They are the driver's until smartio_unplug(), and count
 * nothing.
 * @flags: SMARTIO_ALL_MEMORY must be given: the driver maps whatever memory it likes, so the
 * device's host gets access to all memory of this one.
 * @place: set to where it is: domain << 16 | bus << 8 | device << 3 | function.
 * It ends by smartio_unplug() or with this process: first the driver is unbound. When the device,
 * its host or the way there is lost it goes by itself. One at a time for a process.
 * After a failure what was done of it stays until the process closes its session.
 * Errors: SCI_ERR_NOT_SUPPORTED smartio_lend.ko is not loaded, an emulated cluster, or a device of
 * this host; SCI_ERR_ACCESS SMARTIO_ALL_MEMORY is not given, or the borrow is not exclusive;
 * SCI_ERR_BUSY this process has one; SCI_ERR_HW_NOSPC a window of one of the two hosts is too small
 * for the memory of this one; SCI_ERR_ILLEGAL_PARAMETER; SCI_ERR_NODE_NOT_RESPONDING.
 */
void smartio_plug_in(sci_smartio_device_t device, const sci_local_interrupt_t *interrupts,
		     unsigned int n, unsigned int flags, uint32_t *place, sci_error_t *error);

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
 * Return: set of SMARTIO_READY_*; 0 on error. SMARTIO_READY_WAKE is told once per smartio_wake(),
 * several wakes may be told as one.
 * Errors: SCI_ERR_TIMEOUT, SCI_ERR_CANCELLED (a handle was removed meanwhile or is lost, or the
 * connection to smartiod is; a lost interrupt may be "ready" before, until
 * SCIWaitForDataInterrupt() has told of the loss), SCI_ERR_ILLEGAL_PARAMETER (wrong handle, or the
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
