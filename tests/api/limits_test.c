/* SPDX-License-Identifier: BSD-2-Clause */
/* docs/sisci-limits.md, row by row: what cannot be here says so, and changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "topology.h"

static int absent_functions(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_address_t address = {4, 0, 0};
	sci_remote_segment_t remote = NULL;
	sci_local_interrupt_t interrupt = NULL;
	unsigned counter = 77;
	sci_error_t error;

	(void)arg;
	SCIConnectSCISpace(sd, 0, &remote, address, 4096, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	CHECK(remote == NULL);
	SCIRegisterInterruptFlag(0, &interrupt, NULL, 0, NULL, NULL, SCI_FLAG_CONDITIONAL_INTERRUPT,
				 &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	CHECK(interrupt == NULL);
	SCIEnableConditionalInterrupt(interrupt, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCIDisableConditionalInterrupt(interrupt, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCIGetConditionalInterruptTrigCounter(interrupt, &counter, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	CHECK(counter == 77);
	CHECK(SCIGetCSRRegister(sd, 0, 4, 0, 0, &error) == 0);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCISetCSRRegister(sd, 0, 4, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	CHECK(SCIGetLocalCSR(sd, 0, 0, 0, &error) == 0);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCISetLocalCSR(sd, 0, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCIphDmaEnqueue(NULL, 64, 0, 4, 0, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	CHECK(SCIphDmaStart(NULL, NULL, NULL, 0, &error) == SCI_DMAQUEUE_ERROR);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	CHECK(smartio_last_error()[0] != '\0');
	api_end(sd);
	SCISetLocalCSR(sd, 0, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
	return 0;
}

static void what_cannot_be_is_not_supported(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, absent_functions, NULL)), 0);
}

static int flags_of_absent_features(void *arg)
{
	static const unsigned flags[] = {SCI_FLAG_CONDITIONAL_INTERRUPT_MAP,
					 SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP};
	sci_desc_t sd = api_begin();
	sci_local_segment_t local = NULL;
	sci_remote_segment_t remote = NULL;
	sci_map_t map = NULL;
	sci_error_t error;

	(void)arg;
	SCICreateSegment(sd, &local, 1, 4096, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(local, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(local, 0, 0, &error);
	CHECK_OK(error);
	SCIConnectSegment(sd, &remote, 4, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		CHECK(!SCIMapRemoteSegment(remote, &map, 0, 4096, NULL, flags[i], &error));
		CHECK_IS(error, SCI_ERR_FLAG_NOT_IMPLEMENTED);
	}
	CHECK(map == NULL);
	SCIDisconnectSegment(remote, 0, &error);
	CHECK_OK(error);
	do {
		SCIRemoveSegment(local, 0, &error);
	} while (error == SCI_ERR_BUSY);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void flags_of_what_cannot_be_are_not_implemented(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, flags_of_absent_features, NULL)), 0);
}

static int requesters(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_error_t error;

	(void)arg;
	SCIRegisterPCIeRequester(sd, 0, 1, 0x10, SCI_FLAG_PCIE_REQUESTER_GLOBAL, &error);
	CHECK_OK(error);
	SCIUnregisterPCIeRequester(sd, 0, 1, 0x10, 0, &error);
	CHECK_OK(error);
	SCIRegisterPCIeRequester(sd, 0, 256, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIRegisterPCIeRequester(sd, 0, 0, 256, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIRegisterPCIeRequester(sd, 3, 0, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_ADAPTERNO);
	SCIRegisterPCIeRequester(NULL, 0, 0, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIUnregisterPCIeRequester(sd, 0, 0, 0, 0x80, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	api_end(sd);
	return 0;
}

static void requesters_are_registered_by_themselves(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, requesters, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(what_cannot_be_is_not_supported),
		API_TEST(flags_of_what_cannot_be_are_not_implemented),
		API_TEST(requesters_are_registered_by_themselves),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
