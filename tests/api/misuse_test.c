/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every function with one thing wrong: a handle that is NULL, of another kind, removed or none at
 * all, a flag that it does not take, a pointer that is NULL, no room for its error. The calls are
 * made of docs/sisci-coverage.md, so a new function is here as soon as it is there. What is left
 * as it was shows in the end, when each object is removed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "misuse.h"
#include "misuse_calls.h"

#define N_CALLS (sizeof(calls) / sizeof(calls[0]))
#define UNSET ((sci_error_t)0x7777)

#define HINTS                                                                                      \
	(SCI_FLAG_IO_MAP_IOSPACE | SCI_FLAG_LOCK_OPERATION | SCI_FLAG_SHARED_MAP |                 \
	 SCI_FLAG_NO_MEMORY_LOOPBACK | SCI_FLAG_WRITE_BACK_CACHE_MAP |                             \
	 SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP | SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP |               \
	 SCI_FLAG_DMOVE_MAP | SCI_FLAG_WRITES_DISABLE_GATHER_MAP |                                 \
	 SCI_FLAG_DISABLE_128_BYTES_PACKETS | SCI_FLAG_BROADCAST)

#define NO_MAPS (SCI_FLAG_CONDITIONAL_INTERRUPT_MAP | SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP)

/* What need not be there, and flags that stand in no row of docs/sisci-coverage.md. */
static const struct {
	const char *name;
	const char *pointer;	      /* may be NULL, or something else is wrong with it */
	unsigned null_ok, not_looked; /* bits: these handles */
	unsigned flags;
	unsigned never; /* flags that are known, and not implemented */
} free_to[] = {
	{"SCIMemCpy", .null_ok = 1},
	{"SCIRegisterSegmentMemory", .pointer = "address"},
	{"SCIAttachPhysicalMemory", .pointer = "address"},
	{"SCICacheSync", .null_ok = 1, .not_looked = 1},
	{"SCIGetNodeIdByAdapterName", .pointer = "type"},
	{"SCIGetNodeInfoByAdapterName", .pointer = "type"},
	{"SCIAttachLocalSegment", .pointer = "size"},
	{"SCIWaitForLocalSegmentEvent", .pointer = "sourcenodeId"},
	{"SCIWaitForLocalSegmentEvent", .pointer = "localAdapterNo"},
	{"SCIWaitForRemoteSegmentEvent", .pointer = "status"},
	{"SCIGetDeviceList", .pointer = "filter"},
	{"SCIMapRemoteSegment", .flags = HINTS, .never = NO_MAPS},
	{"SCIMapLocalSegment", .flags = HINTS, .never = NO_MAPS},
	{"SCICreateSegment", .never = SCI_FLAG_PHYSICAL},
	{"SCIAttachLocalSegment", .never = SCI_FLAG_BROADCAST},
	{"SCICreateDMAQueue", .never = SCI_FLAG_DMA_PHDMA},
	{"SCICreateDeviceSegment", .flags = SMARTIO_FLAG_LASTING},
	{"SCIConnectDeviceSegment", .never = SCI_FLAG_SPECIFY_PATH | SCI_FLAG_SPECIFY_SLOT},
	/* Programs pass those of the start here, too. */
	{"SCIWaitForDMAQueue", .flags = SCI_FLAG_USE_CALLBACK | SCI_FLAG_DMA_POST |
					SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_RESET | SCI_FLAG_DMA_READ |
					SCI_FLAG_DMA_GLOBAL | SCI_FLAG_DMA_SYSDMA |
					SCI_FLAG_DMA_ADAPTER},
};
#define N_FREE (sizeof(free_to) / sizeof(free_to[0]))

struct bench {
	struct objects good, removed;
	uint8_t room[65536]; /* what pointers point to */
};

static struct bench bench;

static void nothing_wrong(struct misuse *m, const struct call *c, sci_error_t *error)
{
	*error = UNSET;
	*m = (struct misuse){.node = cluster_node(4), .error = error};
	for (unsigned i = 0; i < c->n_handles; i++)
		m->handle[i] = bench.good.of[c->handle[i]];
	for (unsigned i = 0; i < c->n_pointers; i++)
		m->pointer[i] = bench.room;
	memset(bench.room, 0, sizeof(bench.room));
	bench.room[0] = '@'; /* a name, or how long something is */
}

/* Some machines have no DMA engine. */
static bool has_objects(const struct call *c, unsigned but)
{
	for (unsigned i = 0; i < c->n_handles; i++)
		if (i != but && !bench.good.of[c->handle[i]])
			return false;
	return true;
}

/* @which: a bit of a flag, or the parameter's number. */
static void judge(const struct call *c, const struct misuse *m, sci_error_t expected,
		  const char *what, unsigned which)
{
	bool nothing = m->result == 0 ||
		       (m->result == SCI_DMAQUEUE_ERROR && !strcmp(c->name, "SCIDMAQueueState"));
	sci_error_t got = *m->error;

	if (c->absent)
		expected = SCI_ERR_NOT_SUPPORTED;
	if (c->has_error ? got == expected : !c->returns || nothing)
		return;
	fprintf(stderr, "%s, %s %#x: %s (%#x), result %#llx, expected %s\n", c->name, what, which,
		c->has_error ? SCIGetErrorString(got) : "no error", (unsigned)got,
		(unsigned long long)m->result, SCIGetErrorString(expected));
	exit(1);
}

/* ---- handles ---- */

static bool handle_may_be(const struct call *c, unsigned i, const void *handle)
{
	for (unsigned f = 0; f < N_FREE; f++)
		if (!strcmp(free_to[f].name, c->name) &&
		    ((handle ? 0 : free_to[f].null_ok) | free_to[f].not_looked) >> i & 1)
			return true;
	return false;
}

static void one_handle(const struct call *c, unsigned i, void *handle, const char *what)
{
	struct misuse m;
	sci_error_t error;

	if (handle_may_be(c, i, handle))
		return;
	nothing_wrong(&m, c, &error);
	m.handle[i] = handle;
	c->make(&m);
	judge(c, &m, SCI_ERR_ILLEGAL_PARAMETER, what, i);
}

static void wrong_handles(const struct call *c, unsigned i)
{
	static char lies[64];
	void *const none[] = {(void *)1, (void *)UINTPTR_MAX, (void *)0xdeadbeef0, lies};

	if (!has_objects(c, i))
		return;
	one_handle(c, i, NULL, "NULL for handle");
	for (unsigned n = 0; n < sizeof(none) / sizeof(none[0]); n++)
		one_handle(c, i, none[n], "nothing like a handle for handle");
	for (unsigned kind = 0; kind < KINDS; kind++) {
		if (bench.removed.of[kind])
			one_handle(c, i, bench.removed.of[kind], "a removed object for handle");
		if (kind != c->handle[i] && bench.good.of[kind])
			one_handle(c, i, bench.good.of[kind], "another kind for handle");
	}
}

static void all_handles(void)
{
	for (unsigned k = 0; k < N_CALLS; k++)
		for (unsigned i = 0; i < calls[k].n_handles; i++)
			wrong_handles(&calls[k], i);
}

/* ---- flags ---- */

static unsigned taken(const struct call *c, unsigned *never)
{
	unsigned flags = c->lawful;

	*never = 0;
	for (unsigned f = 0; f < N_FREE; f++) {
		if (strcmp(free_to[f].name, c->name) != 0)
			continue;
		flags |= free_to[f].flags;
		*never |= free_to[f].never;
	}
	return flags & ~*never;
}

static void all_flags(void)
{
	for (unsigned k = 0; k < N_CALLS; k++) {
		const struct call *c = &calls[k];
		unsigned never, lawful = taken(c, &never);

		for (unsigned bit = 1; c->has_flags && has_objects(c, HANDLES) && bit; bit <<= 1) {
			struct misuse m;
			sci_error_t error;

			if (lawful & bit)
				continue;
			nothing_wrong(&m, c, &error);
			m.flags = bit;
			c->make(&m);
			judge(c, &m,
			      never & bit ? SCI_ERR_FLAG_NOT_IMPLEMENTED : SCI_ERR_ILLEGAL_FLAG,
			      "flag", bit);
		}
	}
}

/* ---- pointers ---- */

static bool pointer_may_be_null(const struct call *c, unsigned i)
{
	for (unsigned f = 0; f < N_FREE; f++)
		if (!strcmp(free_to[f].name, c->name) && free_to[f].pointer &&
		    !strcmp(free_to[f].pointer, c->pointer[i]))
			return true;
	return false;
}

static void all_pointers(void)
{
	for (unsigned k = 0; k < N_CALLS; k++) {
		const struct call *c = &calls[k];

		for (unsigned i = 0; i < c->n_pointers; i++) {
			struct misuse m;
			sci_error_t error;

			if (!has_objects(c, HANDLES) || pointer_may_be_null(c, i))
				continue;
			nothing_wrong(&m, c, &error);
			m.pointer[i] = NULL;
			c->make(&m);
			judge(c, &m, SCI_ERR_ILLEGAL_PARAMETER, "NULL for pointer", i);
		}
	}
}

/* Nobody is told, and nothing happens: a flag or a handle is wrong, too. */
static void no_room_for_an_error(void)
{
	for (unsigned k = 0; k < N_CALLS; k++) {
		struct misuse m = {.node = cluster_node(4)};

		if (calls[k].n_handles == 0 && calls[k].has_flags)
			m.flags = 0x80000000;
		for (unsigned i = 0; i < calls[k].n_pointers; i++)
			m.pointer[i] = bench.room;
		calls[k].make(&m);
	}
}

static int misuses(void *arg)
{
	bool engine = !cluster_is_machine();
	sci_desc_t sd = api_begin();

	(void)arg;
	/* What comes later stands where these stood in the table of handles. */
	objects_make(&bench.removed, 5);
	if (engine)
		objects_make_engine(&bench.removed);
	objects_remove(&bench.removed);
	objects_make(&bench.good, 5);
	if (engine)
		objects_make_engine(&bench.good);
	all_handles();
	all_flags();
	all_pointers();
	no_room_for_an_error();
	objects_remove(&bench.good);
	api_end(sd);
	return 0;
}

static void each_function_refuses_what_is_wrong(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, misuses, NULL)), 0);
}

/* Before the library is there, and after it: still a word, and no crash. */
static int too_early(void *arg)
{
	(void)arg;
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned k = 0; k < N_CALLS; k++) {
			sci_error_t error = UNSET;
			struct misuse m = {.node = cluster_node(4), .error = &error};

			if (!calls[k].has_error || !strcmp(calls[k].name, "SCIInitialize"))
				continue;
			for (unsigned i = 0; i < calls[k].n_pointers; i++)
				m.pointer[i] = bench.room;
			calls[k].make(&m);
			if (error != SCI_ERR_NOT_INITIALIZED)
				fprintf(stderr, "%s:\n", calls[k].name);
			CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
		}
		if (round == 0)
			api_end(api_begin());
	}
	return 0;
}

static void each_function_wants_a_library(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, too_early, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(each_function_refuses_what_is_wrong),
		API_TEST(each_function_wants_a_library),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
