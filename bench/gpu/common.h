/* SPDX-License-Identifier: BSD-2-Clause */
/* What the programs for GPUs share: ends with words, numbers, which device. */
#ifndef BENCH_GPU_COMMON_H
#define BENCH_GPU_COMMON_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smartio/accel.h"
#include "smartio/accelgpu.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define PAGE 4096u

static inline void must_gpu(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, smartio_gpu_error());
	exit(1);
}

static inline void must_sci(sci_error_t error, const char *what)
{
	if (error == SCI_ERR_OK)
		return;
	fprintf(stderr, "%s: %s: %s\n", what, SCIGetErrorString(error), smartio_last_error());
	exit(1);
}

static inline sci_desc_t begin_sisci(void)
{
	sci_error_t error;
	sci_desc_t sd;

	SCIInitialize(0, &error);
	must_sci(error, "SmartIO");
	SCIOpen(&sd, 0, &error);
	must_sci(error, "SmartIO");
	return sd;
}

static inline uint64_t number(const char *text, uint64_t most)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (end != text && !*end && errno == 0 && *text != '-' && n <= most)
		return n;
	fprintf(stderr, "%s: a number up to %llu is right\n", text, (unsigned long long)most);
	exit(2);
}

/* "cpu", or the number of a GPU, which must be there. */
static inline int device_of(const char *text)
{
	int n, device;

	if (strcmp(text, "cpu") == 0)
		return SMARTIO_GPU_HERE;
	device = (int)number(text, INT_MAX);
	n = smartio_gpu_count();
	must_gpu(n, "CUDA");
	if (device < n)
		return device;
	fprintf(stderr, "GPU %d: there are %d, from 0 on; or cpu\n", device, n);
	exit(1);
}

static inline size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

#endif
