/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * Accessors and barriers for fabric memory, device registers and doorbells.
 *
 * Memory that was mapped with SCIMapRemoteSegment(), and local segments that a device or another
 * host writes to, are touched only by these. In production each is one plain load or store; the
 * simulator replaces them (SIO_IO_HOOKS) to model what PCIe may reorder.
 *
 * A barrier is named for its purpose and says which observers it orders. Thread-safety: none of
 * these takes a lock; a location has one writer at a time unless its protocol says otherwise.
 * No function here fails. Sources: PCI Express Base Specification 4.0, section 2.4 (ordering);
 * Intel SDM volume 3, section 11 (write combining).
 */
#ifndef SMARTIO_IO_H
#define SMARTIO_IO_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef SIO_IO_HOOKS
uint32_t sio_hook_read(const volatile void *addr, unsigned width);
uint64_t sio_hook_read64(const volatile void *addr);
void sio_hook_write(volatile void *addr, uint64_t value, unsigned width);
void sio_hook_copy_to(volatile void *dst, const void *src, size_t len);
void sio_hook_copy_from(void *dst, const volatile void *src, size_t len);
void sio_hook_copy_across(volatile void *dst, const volatile void *src, size_t len);
void sio_hook_barrier(int which);
uint32_t sio_hook_compare_exchange32(volatile void *addr, uint32_t expected, uint32_t desired);
#endif

/** Read 32 bits, once. @addr: aligned to 4. Order with later reads needs a barrier. */
static inline uint32_t sio_read32(const volatile void *addr)
{
#ifdef SIO_IO_HOOKS
	return sio_hook_read(addr, 4);
#else
	return *(const volatile uint32_t *)addr;
#endif
}

/** Read 16 bits, once. @addr: aligned to 2. */
static inline uint16_t sio_read16(const volatile void *addr)
{
#ifdef SIO_IO_HOOKS
	return (uint16_t)sio_hook_read(addr, 2);
#else
	return *(const volatile uint16_t *)addr;
#endif
}

/** Read 8 bits, once. */
static inline uint8_t sio_read8(const volatile void *addr)
{
#ifdef SIO_IO_HOOKS
	return (uint8_t)sio_hook_read(addr, 1);
#else
	return *(const volatile uint8_t *)addr;
#endif
}

/** Read 64 bits, once. @addr: aligned to 8. */
static inline uint64_t sio_read64(const volatile void *addr)
{
#ifdef SIO_IO_HOOKS
	return sio_hook_read64(addr);
#else
	return *(const volatile uint64_t *)addr;
#endif
}

/** Write 8 bits as one transaction. */
static inline void sio_write8(volatile void *addr, uint8_t value)
{
#ifdef SIO_IO_HOOKS
	sio_hook_write(addr, value, 1);
#else
	*(volatile uint8_t *)addr = value;
#endif
}

/** Write 16 bits as one transaction. @addr: aligned to 2. */
static inline void sio_write16(volatile void *addr, uint16_t value)
{
#ifdef SIO_IO_HOOKS
	sio_hook_write(addr, value, 2);
#else
	*(volatile uint16_t *)addr = value;
#endif
}

/** Write 32 bits as one transaction. @addr: aligned to 4. */
static inline void sio_write32(volatile void *addr, uint32_t value)
{
#ifdef SIO_IO_HOOKS
	sio_hook_write(addr, value, 4);
#else
	*(volatile uint32_t *)addr = value;
#endif
}

/** Write 64 bits as one transaction. @addr: aligned to 8. */
static inline void sio_write64(volatile void *addr, uint64_t value)
{
#ifdef SIO_IO_HOOKS
	sio_hook_write(addr, value, 8);
#else
	*(volatile uint64_t *)addr = value;
#endif
}

/**
 * Copy @len bytes to fabric memory by the C library's memcpy(): posted writes of any width, in no
 * promised order among themselves, and a byte may be written twice. Not for registers.
 */
static inline void sio_copy_to(volatile void *dst, const void *src, size_t len)
{
#ifdef SIO_IO_HOOKS
	sio_hook_copy_to(dst, src, len);
#else
	memcpy((void *)(uintptr_t)dst, src, len);
#endif
}

/**
 * Copy @len bytes from fabric memory by the C library's memcpy(), which may read a byte twice: not
 * for registers. @src may change meanwhile: check the copy, not @src.
 */
static inline void sio_copy_from(void *dst, const volatile void *src, size_t len)
{
#ifdef SIO_IO_HOOKS
	sio_hook_copy_from(dst, src, len);
#else
	memcpy(dst, (const void *)(uintptr_t)src, len);
#endif
}

/**
 * Copy @len bytes, where both sides may be fabric memory and may overlap; else as the two above.
 */
static inline void sio_copy_across(volatile void *dst, const volatile void *src, size_t len)
{
#ifdef SIO_IO_HOOKS
	sio_hook_copy_across(dst, src, len);
#else
	memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, len);
#endif
}

/**
 * What was written to the fabric before is seen there before what is written after: data, then the
 * doorbell or tail that announces it. Orders write-combined stores too (a C11 release does not).
 * Pairs with sio_from_fabric_barrier() at the reader, or with a device's own ordering.
 */
static inline void sio_to_fabric_barrier(void)
{
#ifdef SIO_IO_HOOKS
	sio_hook_barrier(1);
#elif defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("sfence" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/**
 * What is read after is at least as new as what was read before: a valid bit, phase or tail, then
 * the data it announces.
 */
static inline void sio_from_fabric_barrier(void)
{
#ifdef SIO_IO_HOOKS
	sio_hook_barrier(2);
#elif defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("" ::: "memory"); /* x86 keeps loads in order */
#else
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

/**
 * Stores before are visible to other observers before loads after are done: "I announce that I
 * sleep, then look once more".
 */
static inline void sio_full_barrier(void)
{
#ifdef SIO_IO_HOOKS
	sio_hook_barrier(3);
#elif defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("mfence" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/**
 * Wait until what this processor wrote through a window before has arrived: all that is on its way
 * there is pushed by a read of the window, which is answered behind it. What is read after is read
 * after that.
 * @window: any place of the window, aligned to 4, that may be read without harm.
 * Return: what was read there; all ones if nobody answered.
 */
static inline uint32_t sio_push_stores(const volatile void *window)
{
	uint32_t answer;

	sio_full_barrier(); /* the read pushes the stores: pairs with the order of the fabric */
	answer = sio_read32(window);
	sio_from_fabric_barrier(); /* pairs with what the other end did before it answered */
	return answer;
}

/* ---- memory of this host that its programs share: no window, no device ---- */
/**
 * Read 32 bits; what is read or written after is read or written after that. @addr: aligned to 4,
 * in a local segment. Pairs with sio_write32_release() and sio_compare_exchange32().
 */
static inline uint32_t sio_read32_acquire(const volatile void *addr)
{
#ifdef SIO_IO_HOOKS
	const uint32_t value = sio_hook_read(addr, 4);

	sio_hook_barrier(2);
	return value;
#else
	return __atomic_load_n((const volatile uint32_t *)addr, __ATOMIC_ACQUIRE);
#endif
}

/**
 * Write 32 bits; what was read or written before was read or written before that, but for what a
 * sio_copy_to() or a window combines: that needs sio_to_fabric_barrier(). @addr: aligned to 4, in a
 * local segment. Pairs with sio_read32_acquire().
 */
static inline void sio_write32_release(volatile void *addr, uint32_t value)
{
#ifdef SIO_IO_HOOKS
	sio_hook_write(addr, value, 4);
#else
	__atomic_store_n((volatile uint32_t *)addr, value, __ATOMIC_RELEASE);
#endif
}

/**
 * Write @desired if @expected is there, as one operation among this host's processors; never on
 * another host's memory, or a device's. It acquires and, if it writes, releases: pairs with
 * another, or with those above. @addr: aligned to 4, in a local segment. Return: what was there.
 */
static inline uint32_t sio_compare_exchange32(volatile void *addr, uint32_t expected,
					      uint32_t desired)
{
#ifdef SIO_IO_HOOKS
	return sio_hook_compare_exchange32(addr, expected, desired);
#else
	__atomic_compare_exchange_n((volatile uint32_t *)addr, &expected, desired, 0,
				    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	return expected;
#endif
}

#ifdef __cplusplus
}
#endif
#endif
