/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What PCIe and processors may do to our protocols, and what not. Outcomes that are forbidden must
 * never be seen, those that are allowed at least once: else the model would not find the mistake.
 * Source: PCI Express Base Specification 4.0, 2.4.1 (ordering), 2.2.9; Intel SDM volume 3, 8.2,
 * 11.3.
 *
 *   litmus_test [SEEDS]
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/litmus.h"
#include "smartio/io.h"
#include "wire/ring.h"

/* Variants, by what is left out or done beside. */
enum { ALL, NO_TO, NO_FROM, NO_FULL, FLUSH, COPY, LOCAL };

static bool without(unsigned what)
{
	return M.variant == what;
}

/* ---- message passing: a writes y of b, b reads ---- */
static enum litmus_next mp_writer(unsigned n)
{
	switch (n) {
	case 0:
		sio_write32(M.y, 1);
		return NEXT;
	case 1:
		if (!without(NO_TO))
			sio_to_fabric_barrier();
		return NEXT;
	case 2:
		sio_write32(M.y + 128, 1);
		return NEXT;
	}
	return DONE;
}

static enum litmus_next mp_reader(unsigned n)
{
	switch (n) {
	case 0:
		M.r[0] = sio_read32(M.y + 128);
		return M.r[0] ? NEXT : WAIT;
	case 1:
		if (!without(NO_FROM))
			sio_from_fabric_barrier();
		M.r[1] = sio_read32(M.y);
	}
	return DONE;
}

static bool mp_stale(void)
{
	return M.r[1] == 0;
}

/* Two copies of a line each, to the own host's memory; no word tells. */
static enum litmus_next copy_writer(unsigned n)
{
	uint8_t data[64];

	memset(data, 1, sizeof(data));
	switch (n) {
	case 0:
		sio_copy_to(M.x, data, sizeof(data));
		return NEXT;
	case 1:
		if (!without(NO_TO))
			sio_to_fabric_barrier();
		return NEXT;
	case 2:
		sio_write32(M.x + 128, 1);
		return NEXT;
	}
	return DONE;
}

static enum litmus_next copy_reader(unsigned n)
{
	switch (n) {
	case 0:
		M.r[0] = sio_read32(M.x + 128);
		return M.r[0] ? NEXT : WAIT;
	case 1:
		sio_from_fabric_barrier();
		M.r[1] = sio_read64(M.x) == 0x0101010101010101 &&
			 sio_read64(M.x + 56) == 0x0101010101010101;
	}
	return DONE;
}

/* ---- "I announce that I sleep, then look once more", on one host ---- */
static enum litmus_next sleep_first(unsigned n)
{
	if (n == 0) {
		sio_write32(M.x, 1);
		if (!without(NO_FULL))
			sio_full_barrier();
		return NEXT;
	}
	M.r[0] = sio_read32(M.x + 64);
	return DONE;
}

static enum litmus_next sleep_second(unsigned n)
{
	if (n == 0) {
		sio_write32(M.x + 64, 1);
		if (!without(NO_FULL))
			sio_full_barrier();
		return NEXT;
	}
	M.r[1] = sio_read32(M.x);
	return DONE;
}

static bool both_missed(void)
{
	return M.r[0] == 0 && M.r[1] == 0;
}

/* ---- a's program gives b's device a command, which lies in @at ---- */
static enum litmus_next command_in(uint8_t *at, unsigned n)
{
	switch (n) {
	case 0:
		for (unsigned i = 0; i < 64; i += 8)
			sio_write64(at + i, 7);
		return NEXT;
	case 1:
		if (!without(NO_TO))
			sio_to_fabric_barrier();
		if (M.variant == FLUSH)
			M.r[7] = sio_read32(at + 64);
		return NEXT;
	case 2:
		sio_write32(M.bell, 1);
		return NEXT;
	}
	return DONE;
}

static enum litmus_next command_near_device(unsigned n)
{
	return command_in(M.y, n);
}

static enum litmus_next command_near_program(unsigned n)
{
	return command_in(M.x, n);
}

static enum litmus_next command_elsewhere(unsigned n)
{
	return command_in(M.z, n);
}

/* Its own register first, as the room's; then by PCIe. */
static enum litmus_next device_fetches(const uint8_t *at)
{
	uint64_t sqe[8];

	fabric_act(FABRIC_NOBODY);
	if (sio_read32(M.bell) == 0)
		return WAIT;
	fabric_act(DEVICE_B);
	sio_copy_from(sqe, at, sizeof(sqe));
	M.r[0] = 1;
	for (unsigned i = 0; i < 8; i++)
		M.r[0] &= sqe[i] == 7;
	return DONE;
}

static enum litmus_next fetch_near_device(unsigned n)
{
	(void)n;
	return device_fetches(M.y);
}

static enum litmus_next fetch_near_program(unsigned n)
{
	(void)n;
	return device_fetches(M.x);
}

static enum litmus_next fetch_elsewhere(unsigned n)
{
	(void)n;
	return device_fetches(M.z);
}

static bool wrong_command(void)
{
	return M.r[0] == 0;
}

/* Two doorbells: the second never comes before the first. */
static enum litmus_next two_doorbells(unsigned n)
{
	sio_write32(M.bell + n, 1);
	return n == 1 ? DONE : NEXT;
}

static enum litmus_next device_looks(unsigned n)
{
	(void)n;
	fabric_act(FABRIC_NOBODY);
	M.r[1] = sio_read32(M.bell + 1);
	M.r[0] = sio_read32(M.bell);
	return M.r[1] ? DONE : WAIT;
}

/* ---- b's device writes data, a completion, and interrupts a ---- */
static enum litmus_next device_answers(uint8_t *data_at)
{
	uint8_t data[512];
	uint64_t cqe[2] = {9, 9};

	memset(data, 3, sizeof(data));
	sio_copy_to(data_at, data, sizeof(data));
	sio_write64(M.x + 1024, cqe[0]);
	sio_write64(M.x + 1032, cqe[1]);
	fabric_act_signal(HOST_A, 0);
	return DONE;
}

static enum litmus_next answer_near_program(unsigned n)
{
	(void)n;
	return device_answers(M.x);
}

static enum litmus_next answer_elsewhere(unsigned n)
{
	(void)n;
	return device_answers(M.z);
}

static bool data_is_there(const uint8_t *at)
{
	uint64_t word[2];

	sio_copy_from(&word[0], at, 8);
	sio_copy_from(&word[1], at + 504, 8);
	return word[0] == 0x0303030303030303 && word[1] == 0x0303030303030303;
}

static enum litmus_next poll_completion(const uint8_t *data_at, unsigned n)
{
	switch (n) {
	case 0:
		M.r[0] = sio_read64(M.x + 1032);
		return M.r[0] ? NEXT : WAIT;
	case 1:
		if (!without(NO_FROM))
			sio_from_fabric_barrier();
		M.r[1] = data_is_there(data_at);
	}
	return DONE;
}

static enum litmus_next poll_near(unsigned n)
{
	return poll_completion(M.x, n);
}

static enum litmus_next poll_elsewhere(unsigned n)
{
	return poll_completion(M.z, n);
}

static enum litmus_next wait_for_interrupt(unsigned n)
{
	/* Interrupts come of themselves; nobody has to look at memory for that. */
	fabric_settle(fabric_access->now());
	if (n == 0)
		return M.interrupts ? NEXT : WAIT;
	fabric_core_sync(fabric_access->core());
	M.r[0] = sio_read64(M.x + 1032);
	sio_from_fabric_barrier();
	M.r[1] = M.r[0] && data_is_there(M.x);
	return DONE;
}

static bool no_data(void)
{
	return M.r[1] == 0;
}

/* The device says by a register that it is done. */
static enum litmus_next answer_by_register(unsigned n)
{
	uint8_t data[512];

	(void)n;
	memset(data, 3, sizeof(data));
	sio_copy_to(M.x, data, sizeof(data));
	fabric_act(FABRIC_NOBODY);
	sio_write32(M.bell, 1);
	return DONE;
}

static enum litmus_next poll_register(unsigned n)
{
	if (n == 0)
		return sio_read32(M.bell) ? NEXT : WAIT;
	sio_from_fabric_barrier();
	M.r[1] = data_is_there(M.x);
	return DONE;
}

/* ---- data interrupts: the real ring, from a to b ---- */
#define MESSAGES 5u
static struct sio_ring sender, receiver;

static enum litmus_next ring_send(unsigned n)
{
	uint8_t data[100];

	if (n == 0)
		sio_ring_init(&sender, M.y);
	memset(data, (int)n + 1, sizeof(data));
	if (sio_ring_push(&sender, data, 20 * n + 3) < 0)
		return WAIT;
	/* The trigger: in the simulator a system call, then a posted write. */
	fabric_core_signal(fabric_access->core(), HOST_B, 0);
	return n + 1 == MESSAGES ? DONE : NEXT;
}

static bool is_message(const uint8_t *data, int len, unsigned n)
{
	if (len != (int)(20 * n + 3))
		return false;
	for (int i = 0; i < len; i++)
		if (data[i] != n + 1)
			return false;
	return true;
}

/* r[0]: nonsense; r[1]: a message is announced that is not there; r[2]: messages taken. */
static enum litmus_next ring_receive(unsigned n)
{
	uint8_t data[SIO_RING_MESSAGE];
	uint32_t len;
	unsigned told;
	int rc;

	if (n == 0) {
		sio_ring_init(&receiver, M.y);
		return NEXT;
	}
	fabric_settle(fabric_access->now());
	told = M.interrupts;
	fabric_core_sync(fabric_access->core());
	rc = sio_ring_pop(&receiver, data, sizeof(data), &len);
	if (rc == -11) {
		M.r[1] |= told > M.r[2];
		return WAIT;
	}
	M.r[0] |= rc < 0 || !is_message(data, rc, (unsigned)M.r[2]);
	return ++M.r[2] == MESSAGES || M.r[0] ? DONE : NEXT;
}

static bool ring_broken(void)
{
	return M.r[0] != 0;
}

static bool ring_silent(void)
{
	return M.r[1] != 0;
}

/* ---- sequence: a stores to b, and asks whether the link held. r[0]: it did ---- */
static enum litmus_next sequence_writer(unsigned n)
{
	switch (n) {
	case 0:
		M.r[1] = sio_read32(M.status);
		sio_from_fabric_barrier();
		return NEXT;
	case 1:
		sio_write32(M.y, 1);
		return NEXT;
	case 2:
		if (!without(NO_TO))
			sio_to_fabric_barrier();
		if (M.variant == FLUSH)
			sio_push_stores(M.y + 64);
		else
			sio_full_barrier();
		return NEXT;
	case 3:
		M.r[0] = M.r[1] == 0 && sio_read32(M.status) == 0;
	}
	return DONE;
}

/* The link goes down, and what is on its way with it; first the page says so. */
static enum litmus_next link_breaks(unsigned n)
{
	if (n < 3)
		return NEXT;
	sio_write32(M.status, 1);
	fabric_paths_cut(HOST_A, 0);
	M.link_up = false;
	return DONE;
}

/* Much later: is it there? */
static enum litmus_next look_later(unsigned n)
{
	if (n == 0)
		return M.link_up ? WAIT : NEXT;
	if (n < 60) {
		fabric_access->wait(500);
		return NEXT;
	}
	fabric_act(FABRIC_NOBODY);
	M.r[2] = sio_read32(M.y);
	return DONE;
}

static bool sequence_lied(void)
{
	return M.r[0] && M.r[2] == 0;
}

/* ---- a's DMA engine copies x to y, says so in its ring; a's program tells b ---- */
static enum litmus_next engine_copies(unsigned n)
{
	(void)n;
	if (sio_read32(M.ring) == 0)
		return WAIT;
	sio_copy_across(M.y, M.x, 512);
	sio_write32(M.ring + 4, 1);
	return DONE;
}

static enum litmus_next dma_program(uint8_t *flag_at, unsigned n)
{
	uint8_t data[512];

	memset(data, 3, sizeof(data));
	switch (n) {
	case 0:
		sio_copy_to(M.x, data, sizeof(data));
		return NEXT;
	case 1:
		if (!without(NO_TO))
			sio_to_fabric_barrier();
		sio_write32(M.ring, 1);
		return NEXT;
	case 2:
		return sio_read32(M.ring + 4) ? NEXT : WAIT;
	case 3:
		sio_write32(flag_at, 1);
		sio_to_fabric_barrier();
	}
	return DONE;
}

static enum litmus_next dma_notifies_b(unsigned n)
{
	return dma_program(M.y + 1024, n);
}

static enum litmus_next dma_notifies_c(unsigned n)
{
	return dma_program(M.z + 1024, n);
}

static enum litmus_next dma_notified(const uint8_t *flag_at, unsigned n)
{
	if (n == 0)
		return sio_read32(flag_at) ? NEXT : WAIT;
	sio_from_fabric_barrier();
	M.r[1] = data_is_there(M.y);
	return DONE;
}

static enum litmus_next dma_notified_b(unsigned n)
{
	return dma_notified(M.y + 1024, n);
}

static enum litmus_next dma_notified_c(unsigned n)
{
	return dma_notified(M.z + 1024, n);
}

/* The engine brings data home and says so: its program polls. */
static enum litmus_next engine_fetches(unsigned n)
{
	uint8_t data[512];

	(void)n;
	memset(data, 3, sizeof(data));
	sio_copy_to(M.x, data, sizeof(data));
	sio_write32(M.ring + 4, 1);
	return DONE;
}

static enum litmus_next dma_poll(unsigned n)
{
	if (n == 0)
		return sio_read32(M.ring + 4) ? NEXT : WAIT;
	if (!without(NO_FROM))
		sio_from_fabric_barrier();
	M.r[1] = data_is_there(M.x);
	return DONE;
}

#define TWO(a, fa, b, fb)                                                                          \
	{                                                                                          \
		{a, fa},                                                                           \
		{                                                                                  \
			b, fb                                                                      \
		}                                                                                  \
	}

static const struct litmus tests[] = {
	{"message passing", ALL, false, TWO(HOST_A, mp_writer, HOST_B, mp_reader), mp_stale},
	{"message passing, the writer without a barrier", NO_TO, true,
	 TWO(HOST_A, mp_writer, HOST_B, mp_reader), mp_stale},
	{"message passing, the reader without a barrier", NO_FROM, true,
	 TWO(HOST_A, mp_writer, HOST_B, mp_reader), mp_stale},
	{"message passing within a host", ALL, false, TWO(HOST_B, mp_writer, HOST_B, mp_reader),
	 mp_stale},
	{"message passing within a host, words, the writer without a barrier", NO_TO, false,
	 TWO(HOST_B, mp_writer, HOST_B, mp_reader), mp_stale},
	{"a copy, then a word, within a host", ALL, false,
	 TWO(HOST_A, copy_writer, HOST_A, copy_reader), no_data},
	{"a copy, then a word, within a host, without a barrier", NO_TO, true,
	 TWO(HOST_A, copy_writer, HOST_A, copy_reader), no_data},
	{"both announce and look", ALL, false, TWO(HOST_A, sleep_first, HOST_A, sleep_second),
	 both_missed},
	{"both announce and look, without a barrier", NO_FULL, true,
	 TWO(HOST_A, sleep_first, HOST_A, sleep_second), both_missed},
	{"command near the device, then doorbell: the same path", ALL, false,
	 TWO(HOST_A, command_near_device, DEVICE_B, fetch_near_device), wrong_command},
	{"command near the device, then doorbell, without a barrier", NO_TO, true,
	 TWO(HOST_A, command_near_device, DEVICE_B, fetch_near_device), wrong_command},
	{"command in own memory, then doorbell", ALL, false,
	 TWO(HOST_A, command_near_program, DEVICE_B, fetch_near_program), wrong_command},
	{"command in a third host, then doorbell: different paths", ALL, true,
	 TWO(HOST_A, command_elsewhere, DEVICE_B, fetch_elsewhere), wrong_command},
	{"the same, with a read of the third host before the doorbell", FLUSH, false,
	 TWO(HOST_A, command_elsewhere, DEVICE_B, fetch_elsewhere), wrong_command},
	{"two doorbells change places", ALL, false,
	 TWO(HOST_A, two_doorbells, DEVICE_B, device_looks), wrong_command},
	{"data, completion, polled", ALL, false,
	 TWO(HOST_A, poll_near, DEVICE_B, answer_near_program), no_data},
	{"data, completion, polled without a barrier", NO_FROM, true,
	 TWO(HOST_A, poll_near, DEVICE_B, answer_near_program), no_data},
	{"data in a third host, completion here: different paths", ALL, true,
	 TWO(HOST_A, poll_elsewhere, DEVICE_B, answer_elsewhere), no_data},
	{"data, completion, MSI", ALL, false,
	 TWO(HOST_A, wait_for_interrupt, DEVICE_B, answer_near_program), no_data},
	{"data, then a register that says so", ALL, false,
	 TWO(HOST_A, poll_register, DEVICE_B, answer_by_register), no_data},
	{"data-interrupt ring: a broken message", ALL, false,
	 TWO(HOST_A, ring_send, HOST_B, ring_receive), ring_broken},
	{"data-interrupt ring: an interrupt before its message", ALL, false,
	 TWO(HOST_A, ring_send, HOST_B, ring_receive), ring_silent},
	{"sequence checked",
	 FLUSH,
	 false,
	 {{HOST_A, sequence_writer}, {FABRIC_NOBODY, link_breaks}, {FABRIC_NOBODY, look_later}},
	 sequence_lied},
	{"sequence checked without waiting for the stores",
	 ALL,
	 true,
	 {{HOST_A, sequence_writer}, {FABRIC_NOBODY, link_breaks}, {FABRIC_NOBODY, look_later}},
	 sequence_lied},
	{"what a program wrote, sent by DMA, told by a word",
	 ALL,
	 false,
	 {{HOST_A, dma_notifies_b}, {ENGINE_A, engine_copies}, {HOST_B, dma_notified_b}},
	 no_data},
	{"the same, a copy handed to the engine without a barrier",
	 NO_TO,
	 true,
	 {{HOST_A, dma_notifies_b}, {ENGINE_A, engine_copies}, {HOST_B, dma_notified_b}},
	 no_data},
	{"the same, told by a word in a third host: different paths",
	 ALL,
	 true,
	 {{HOST_A, dma_notifies_c}, {ENGINE_A, engine_copies}, {HOST_C, dma_notified_c}},
	 no_data},
	{"brought home by DMA, polled", ALL, false, TWO(HOST_A, dma_poll, ENGINE_A, engine_fetches),
	 no_data},
	{"brought home by DMA, polled without a barrier", NO_FROM, true,
	 TWO(HOST_A, dma_poll, ENGINE_A, engine_fetches), no_data},
};

int main(int argc, char **argv)
{
	unsigned seeds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 3000;
	unsigned wrong = litmus_run(tests, sizeof(tests) / sizeof(tests[0]), seeds);

	if (wrong)
		fprintf(stderr, "%u litmus tests went wrong\n", wrong);
	return wrong ? 1 : 0;
}
