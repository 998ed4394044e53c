/* SPDX-License-Identifier: BSD-2-Clause */
/* The calling thread's last failure: a number with the text that explains it. */
#ifndef NVME_USER_ERROR_H
#define NVME_USER_ERROR_H

#include <errno.h>
#include <stdint.h>

#include "../base/memory.h"
#include "sisci_api.h"

/* Keeps the text for smartio_nvme_error(). Return: @code, which is -errno. A long text is cut. */
int sio_nvme_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* With -ENOMEM: @fmt names what there was no memory for. */
#define sio_nvme_no_memory(fmt, ...)                                                               \
	sio_nvme_fail(-ENOMEM, "no memory for " fmt ": " SIO_DRIVER_MORE_MEMORY, ##__VA_ARGS__)
/* The same for a request that another process refused because @reason (SIO_OUT_OF_*) ran out. */
int sio_nvme_fail_exhausted(int code, uint32_t reason, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * The same for a call of the API that has just failed: appends the API's text, and returns its
 * -errno.
 */
int sio_nvme_fail_sci(sci_error_t err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
