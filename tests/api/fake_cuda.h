/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CUDA's driver library, played by the program that has this in it: what libsmartio asks of CUDA's
 * driver, answered from what the test has said. No GPU, and nothing is copied by it.
 */
#ifndef TESTS_FAKE_CUDA_H
#define TESTS_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

enum { FAKE_CUDA_INVALID = 1, FAKE_CUDA_NO_DEVICE = 100, FAKE_CUDA_NOT_REGISTERED = 713 };
enum fake_cuda_kind {
	FAKE_CUDA_NONE,
	FAKE_CUDA_REGISTERED,
	FAKE_CUDA_ALLOCATED,
	FAKE_CUDA_DEVICE,
	FAKE_CUDA_MANAGED
};
enum fake_cuda_call { FAKE_CUDA_INIT, FAKE_CUDA_EXPORT, FAKE_CUDA_REGISTER, FAKE_CUDA_CALLS };

struct fake_cuda {
	/* The one range that it knows. */
	enum fake_cuda_kind kind;
	uint64_t at;
	size_t size;
	int fd;			    /* a copy of it is what an export gives; -1: none */
	int fails[FAKE_CUDA_CALLS]; /* the error of such a call; 0: it works */
	unsigned calls[FAKE_CUDA_CALLS], unregistered;
	size_t exported;      /* bytes of the last one */
	unsigned flags;	      /* of the last cuMemHostRegister() */
	unsigned synchronous; /* SYNC_MEMOPS was set */
};
extern struct fake_cuda fake_cuda;

#endif
