/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that is not linked with the library: it opens libsisci.so, looks up the decorated
 * names, and takes types and error codes from the headers, and nothing else. Its flags are its own.
 *
 * usage: names (on the node of both sides)
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sisci_error.h>
#include <sisci_types.h>

/* As such programs have copied them. */
#define SCI_FLAG_USE_CALLBACK 0x1
#define SCI_FLAG_FIXED_INTNO 0x2
#define SCI_INFINITE_TIMEOUT 0xffffffff
#define SEGMENT_ID 0x4200
#define SIZE 32
#define MAPPED 480 /* more than was asked for: segments are whole pages */

static void *library;

static void (*Initialize)(unsigned int, sci_error_t *);
static void (*Terminate)(void);
static void (*Open)(sci_desc_t *, unsigned int, sci_error_t *);
static void (*Close)(sci_desc_t, unsigned int, sci_error_t *);
static const char *(*GetErrorString)(sci_error_t);
static void (*GetLocalNodeId)(unsigned int, unsigned int *, unsigned int, sci_error_t *);
static void (*CreateSegment)(sci_desc_t, sci_local_segment_t *, unsigned int, size_t,
			     sci_cb_local_segment_t, void *, unsigned int, sci_error_t *);
static void (*RemoveSegment)(sci_local_segment_t, unsigned int, sci_error_t *);
static void (*PrepareSegment)(sci_local_segment_t, unsigned int, unsigned int, sci_error_t *);
static void (*SetSegmentAvailable)(sci_local_segment_t, unsigned int, unsigned int, sci_error_t *);
static void (*SetSegmentUnavailable)(sci_local_segment_t, unsigned int, unsigned int,
				     sci_error_t *);
static void *(*MapLocalSegment)(sci_local_segment_t, sci_map_t *, size_t, size_t, void *,
				unsigned int, sci_error_t *);
static volatile void *(*MapRemoteSegment)(sci_remote_segment_t, sci_map_t *, size_t, size_t, void *,
					  unsigned int, sci_error_t *);
static void (*UnmapSegment)(sci_map_t, unsigned int, sci_error_t *);
static void (*ConnectSegment)(sci_desc_t, sci_remote_segment_t *, unsigned int, unsigned int,
			      unsigned int, sci_cb_remote_segment_t, void *, unsigned int,
			      unsigned int, sci_error_t *);
static void (*DisconnectSegment)(sci_remote_segment_t, unsigned int, sci_error_t *);
static void (*CreateDataInterrupt)(sci_desc_t, sci_local_data_interrupt_t *, unsigned int,
				   unsigned int *, sci_cb_data_interrupt_t, void *, unsigned int,
				   sci_error_t *);
static void (*RemoveDataInterrupt)(sci_local_data_interrupt_t, unsigned int, sci_error_t *);
static void (*WaitForDataInterrupt)(sci_local_data_interrupt_t, void *, unsigned int *,
				    unsigned int, unsigned int, sci_error_t *);
static void (*ConnectDataInterrupt)(sci_desc_t, sci_remote_data_interrupt_t *, unsigned int,
				    unsigned int, unsigned int, unsigned int, unsigned int,
				    sci_error_t *);
static void (*DisconnectDataInterrupt)(sci_remote_data_interrupt_t, unsigned int, sci_error_t *);
static void (*TriggerDataInterrupt)(sci_remote_data_interrupt_t, void *, unsigned int, unsigned int,
				    sci_error_t *);

static void find(void *function, const char *kind, const char *name)
{
	char decorated[100];
	void *symbol;

	snprintf(decorated, sizeof(decorated), "_SISCI_PUBLIC_FUNC_%s_SCI%s", kind, name);
	symbol = dlsym(library, decorated);
	if (!symbol) {
		fprintf(stderr, "%s is not there\n", decorated);
		exit(1);
	}
	memcpy(function, &symbol, sizeof(symbol));
}

static void find_all(const char *kind)
{
#define FIND(name) find(&name, kind, #name)
	FIND(Initialize);
	FIND(Terminate);
	FIND(Open);
	FIND(Close);
	FIND(GetErrorString);
	FIND(GetLocalNodeId);
	FIND(CreateSegment);
	FIND(RemoveSegment);
	FIND(PrepareSegment);
	FIND(SetSegmentAvailable);
	FIND(SetSegmentUnavailable);
	FIND(MapLocalSegment);
	FIND(MapRemoteSegment);
	FIND(UnmapSegment);
	FIND(ConnectSegment);
	FIND(DisconnectSegment);
	FIND(CreateDataInterrupt);
	FIND(RemoveDataInterrupt);
	FIND(WaitForDataInterrupt);
	FIND(ConnectDataInterrupt);
	FIND(DisconnectDataInterrupt);
	FIND(TriggerDataInterrupt);
}

#define CALL(function, ...)                                                                        \
	do {                                                                                       \
		sci_error_t call_error;                                                            \
		function(__VA_ARGS__, &call_error);                                                \
		if (call_error != SCI_ERR_OK) {                                                    \
			fprintf(stderr, "line %d: SCI%s: %s\n", __LINE__, #function,               \
				GetErrorString(call_error));                                       \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Adapters are counted by asking until one is not there. */
static unsigned int count_adapters(unsigned int *node)
{
	unsigned int n = 0, id;
	sci_error_t error;

	for (;;) {
		GetLocalNodeId(n, &id, 0, &error);
		if (error != SCI_ERR_OK)
			return n;
		if (n++ == 0)
			*node = id;
	}
}

static void play(void)
{
	unsigned int node = 0, number = 9, length = 8;
	sci_local_data_interrupt_t receiver;
	sci_remote_data_interrupt_t sender;
	sci_remote_segment_t remote;
	sci_local_segment_t local;
	volatile char *there;
	sci_map_t near, far;
	char message[8];
	sci_desc_t sd;
	sci_error_t error;
	char *here;

	CALL(Initialize, 0);
	if (count_adapters(&node) != 1 || node % 4 || node == 0)
		exit(1);
	CALL(Open, &sd, 0);
	CALL(CreateSegment, sd, &local, SEGMENT_ID, SIZE, NULL, NULL, 0);
	CALL(PrepareSegment, local, 0, 0);
	here = MapLocalSegment(local, &near, 0, MAPPED, NULL, 0, &error);
	if (error != SCI_ERR_OK)
		exit(1);
	CALL(SetSegmentAvailable, local, 0, 0);
	do {
		ConnectSegment(sd, &remote, node, SEGMENT_ID, 0, NULL, NULL, SCI_INFINITE_TIMEOUT,
			       0, &error);
	} while (error == SCI_ERR_NO_SUCH_SEGMENT);
	there = MapRemoteSegment(remote, &far, 0, MAPPED, NULL, 0, &error);
	if (error != SCI_ERR_OK)
		exit(1);
	there[MAPPED - 1] = 'x';
	if (here[MAPPED - 1] != 'x')
		exit(1);
	CALL(CreateDataInterrupt, sd, &receiver, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO);
	CALL(ConnectDataInterrupt, sd, &sender, node, 0, number, 0, 0);
	CALL(TriggerDataInterrupt, sender, "request", 8, 0);
	CALL(DisconnectDataInterrupt, sender, 0);
	CALL(WaitForDataInterrupt, receiver, message, &length, SCI_INFINITE_TIMEOUT, 0);
	if (length != 8 || strcmp(message, "request"))
		exit(1);
	CALL(RemoveDataInterrupt, receiver, 0);
	CALL(UnmapSegment, far, 0);
	CALL(DisconnectSegment, remote, 0);
	CALL(UnmapSegment, near, 0);
	CALL(SetSegmentUnavailable, local, 0, 0);
	CALL(RemoveSegment, local, 0);
	CALL(Close, sd, 0);
	Terminate();
}

/* The host of a plugin closes it when it pleases; the library's thread is still there. */
static int stays_when_closed(void)
{
	CALL(Initialize, 0);
	return !dlclose(library) && dlopen("libsisci.so", RTLD_NOW | RTLD_NOLOAD);
}

int main(void)
{
	const unsigned int *flag;

	library = dlopen("libsisci.so", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	flag = dlsym(library, "_SISCI_PUBLIC_CONST_SCI_FLAG_USE_CALLBACK");
	if (!flag || *flag != SCI_FLAG_USE_CALLBACK)
		return 1;
	find_all("ST");
	play();
	find_all("MT");
	play();
	return stays_when_closed() ? 0 : 1;
}
