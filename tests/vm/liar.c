/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lender that lies, preloaded into its smartiod: where it has mapped another device's BAR for one
 * that it lends it says something else to the borrower, whose kernel must not believe it.
 *
 * /tmp/lie has one word: within, before, behind (of the device's window, which is what it has of
 * another host's memory), odd (no whole page), around (beyond the last address), last (up to the
 * last address). No such file: it says the truth. What was said is in /tmp/lies, a line each.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "smartio/uapi.h"

#define PAGE 4096
#define DEVICES 8

static struct window {
	uint64_t device, at, bytes;
} windows[DEVICES];

/* Of the device, or a place for it. */
static struct window *window_of(uint64_t device)
{
	struct window *w = windows;

	while (w < windows + DEVICES - 1 && w->device && w->device != device)
		w++;
	return w;
}

static uint64_t lie(const char *how, const struct window *w, uint64_t truth, uint64_t bytes)
{
	if (strcmp(how, "within") == 0)
		return w->at + PAGE;
	if (strcmp(how, "before") == 0)
		return w->at - PAGE;
	if (strcmp(how, "behind") == 0)
		return w->at + w->bytes - PAGE;
	if (strcmp(how, "odd") == 0)
		return truth + 8;
	if (strcmp(how, "around") == 0)
		return UINT64_MAX - PAGE + 1;
	return strcmp(how, "last") == 0 ? UINT64_MAX - bytes + 1 : truth;
}

static uint64_t say(const struct window *w, uint64_t truth, uint64_t bytes)
{
	FILE *f = fopen("/tmp/lie", "re"), *said;
	uint64_t told = truth;
	char how[16] = "";

	if (!f)
		return truth;
	if (fscanf(f, "%15s", how) == 1)
		told = lie(how, w, truth, bytes);
	fclose(f);
	said = fopen("/tmp/lies", "ae");
	if (!said)
		return truth;
	fprintf(said, "%s %#" PRIx64 " %#" PRIx64 "\n", how, truth, told);
	fclose(said);
	return told;
}

static void look(const struct sio_req_dmamap *req, struct sio_evt_dmamap *evt)
{
	if (req->h.op != SIO_OP_DMAMAP || evt->h.error)
		return;
	if (req->target_kind == SIO_KIND_MAP)
		*window_of(req->device) = (struct window){req->device, evt->iova, req->length};
	else if (req->target_kind == SIO_KIND_BAR)
		evt->iova = say(window_of(req->device), evt->iova, req->length);
}

int ioctl(int fd, unsigned long what, ...)
{
	int (*real)(int, unsigned long, ...);
	struct sio_ioc_packet *p;
	va_list more;
	int rc;

	*(void **)&real = dlsym(RTLD_NEXT, "ioctl");
	va_start(more, what);
	p = va_arg(more, void *);
	va_end(more);
	rc = real(fd, what, p);
	if (rc == 0 && what == SIO_IOC_REQUEST)
		look((const void *)(uintptr_t)p->data, (void *)(uintptr_t)p->answer);
	return rc;
}
