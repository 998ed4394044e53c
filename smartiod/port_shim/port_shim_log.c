/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA faults from the kernel's log. The IOMMU drivers limit their lines to a few a second, so at
 * least one fault of each burst is seen here.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <syslog.h>
#include <unistd.h>

#include "smartiod/port_shim/port_shim.h"

#define LINE 1024
#define BATCH 32

static void tell(struct port_shim *p, const char *text, uint32_t bdf, uint64_t address,
		 uint32_t access)
{
	struct sio_evt_fault evt = {
		.h = {.size = sizeof(evt), .op = SIO_EV_FAULT},
		.address = address,
		.nearest = SIO_PORT_ANY,
		.access = access,
	};
	unsigned i = 0;

	while (i < p->n_devices && (p->device[i].bdf & 0xffff) != bdf)
		i++;
	if (i == p->n_devices)
		return; /* another driver's device */
	evt.device = p->device[i].id;
	snprintf(evt.reason, sizeof(evt.reason), "%.*s", (int)sizeof(evt.reason) - 1, text);
	smartiod_port_event(p->live->daemon, &evt, sizeof(evt), NULL, 0);
}

/* A record is "priority,number,time,flags;text\n", then lines about it. */
static void take_record(struct port_shim *p, char *record)
{
	char *text = strchr(record, ';');
	uint32_t bdf, access;
	uint64_t address;

	if (!text)
		return;
	text++;
	text[strcspn(text, "\n")] = '\0';
	if (port_shim_parse_fault(text, &bdf, &address, &access))
		tell(p, text, bdf, address, access);
}

static int on_log(sd_event_source *s, int fd, uint32_t events, void *data)
{
	struct port_shim *p = data;
	char record[LINE];
	ssize_t n;

	(void)events;
	for (int i = 0; i < BATCH; i++) {
		n = read(fd, record, sizeof(record) - 1);
		if (n < 0 && (errno == EPIPE || errno == EINVAL))
			continue; /* records were overwritten before we came; one too long for us */
		if (n <= 0) {
			if (n == 0 || (errno != EAGAIN && errno != EINTR))
				sd_event_source_set_enabled(s, SD_EVENT_OFF);
			break;
		}
		record[n] = '\0';
		take_record(p, record);
	}
	return 0;
}

void port_shim_log_open(struct port_shim *p)
{
	int r = 0;

	p->log_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (p->log_fd < 0 || lseek(p->log_fd, 0, SEEK_END) < 0)
		r = -errno;
	else
		r = sd_event_add_io(p->live->event, &p->log, p->log_fd, EPOLLIN, on_log, p);
	if (r >= 0)
		return;
	live_log(p->live, LOG_WARNING,
		 "/dev/kmsg: %s: DMA faults that only the kernel's log reports are not seen here",
		 strerror(-r));
	port_shim_log_close(p);
}

void port_shim_log_close(struct port_shim *p)
{
	p->log = sd_event_source_disable_unref(p->log);
	if (p->log_fd >= 0)
		close(p->log_fd);
	p->log_fd = -1;
}
