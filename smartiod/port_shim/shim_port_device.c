/* SPDX-License-Identifier: BSD-2-Clause */
/* What sysfs says about a PCI function. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "smartiod/port_shim/shim_port_own.h"

#define NO_ID 0xffffu
#define FOLDER "/sys/bus/pci/devices"
#define RESOURCE_IS_MEMORY 0x200 /* in the kernel's flags of a BAR */

static int open_file(const char *name, const char *file, int flags)
{
	char path[256];

	snprintf(path, sizeof(path), FOLDER "/%s/%s", name, file);
	return open(path, flags | O_CLOEXEC);
}

/* Return: bytes, a NUL behind them; 0: nothing. Takes @fd, -1: none. */
static size_t read_all(int fd, char *buf, size_t size)
{
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (fd >= 0)
		close(fd);
	n = n < 0 ? 0 : n;
	buf[n] = '\0';
	return (size_t)n;
}

static size_t read_file(const char *name, const char *file, char *buf, size_t size)
{
	return read_all(open_file(name, file, O_RDONLY), buf, size);
}

static uint64_t number(const char *name, const char *file)
{
	char text[32];

	read_file(name, file, text, sizeof(text));
	return strtoull(text, NULL, 0);
}

/* ---- looking ---- */

void shim_device_bars(const char *text, struct sio_evt_device *evt)
{
	uint64_t start, end, flags;

	for (int i = 0; i < SIO_DEVICE_BARS && text; i++) {
		if (sscanf(text, "%" SCNx64 " %" SCNx64 " %" SCNx64, &start, &end, &flags) != 3)
			return;
		if (flags & RESOURCE_IS_MEMORY && end >= start) {
			evt->bar_addr[i] = start;
			evt->bar_size[i] = end - start + 1;
		}
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
}

static uint32_t get(const unsigned char *config, size_t offset, unsigned width)
{
	uint32_t value = 0;

	memcpy(&value, config + offset, width); /* both are little-endian */
	return value;
}

uint64_t shim_device_serial(const unsigned char *config, size_t len)
{
	size_t at = PCI_CFG_SPACE_SIZE;

	/* A list that leads back to where it was has an end, too. */
	for (int i = 0; i < 256 && at >= PCI_CFG_SPACE_SIZE && at + 12 <= len; i++) {
		uint32_t header = get(config, at, 4);

		if (PCI_EXT_CAP_ID(header) == PCI_EXT_CAP_ID_DSN)
			return get(config, at + 4, 4) | (uint64_t)get(config, at + 8, 4) << 32;
		at = PCI_EXT_CAP_NEXT(header);
	}
	return 0;
}

static void look_at_config(struct sio_evt_device *evt)
{
	unsigned char config[PCI_CFG_SPACE_EXP_SIZE + 1];
	size_t len = read_file(evt->name, "config", (char *)config, sizeof(config));

	if (len < PCI_STD_HEADER_SIZEOF)
		return;
	evt->vendor = get(config, PCI_VENDOR_ID, 2);
	evt->device = get(config, PCI_DEVICE_ID, 2);
	if (evt->vendor == NO_ID) { /* of a virtual function the kernel alone knows them */
		evt->vendor = number(evt->name, "vendor");
		evt->device = number(evt->name, "device");
	}
	evt->class_code = get(config, PCI_CLASS_REVISION, 4) >> 8;
	evt->subsys_vendor = get(config, PCI_SUBSYSTEM_VENDOR_ID, 2);
	evt->subsys_device = get(config, PCI_SUBSYSTEM_ID, 2);
	evt->serial = shim_device_serial(config, len);
}

/* "0000:01:00.0": the functions 0 to 7 that are there. */
static uint32_t count_functions(const char *name)
{
	char path[256];
	uint32_t n = 0;

	for (int i = 0; i < 8; i++) {
		snprintf(path, sizeof(path), FOLDER "/%.*s%d", (int)strlen(name) - 1, name, i);
		n += access(path, F_OK) == 0;
	}
	return n;
}

static uint32_t iommu_group(const char *name)
{
	char path[256], target[256];
	const char *slash;
	ssize_t n;

	snprintf(path, sizeof(path), FOLDER "/%s/iommu_group", name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return 0;
	target[n] = '\0';
	slash = strrchr(target, '/');
	return slash ? (uint32_t)strtoul(slash + 1, NULL, 10) : 0;
}

/* "0000:01:00.0": nothing else of "0000:01:". */
static bool alone_on_its_bus(const char *name)
{
	DIR *dir = opendir(FOLDER);
	struct dirent *e;
	unsigned n = 0;

	while (dir && (e = readdir(dir)))
		n += strncmp(e->d_name, name, 8) == 0;
	if (dir)
		closedir(dir);
	return n == 1;
}

uint32_t shim_device_resets(const char *methods, bool alone)
{
	uint32_t resets = 0;
	char word[32];
	int n;

	for (; sscanf(methods, "%31s%n", word, &n) == 1; methods += n) {
		bool bus = strcmp(word, "bus") == 0 || strcmp(word, "cxl_bus") == 0;

		if (!bus)
			resets |= 1u << SIO_RESET_FUNCTION;
		else if (alone)
			resets |= 1u << SIO_RESET_BUS;
	}
	return resets;
}

uint64_t shim_device_interrupts(const char *name)
{
	char path[256], text[1024];
	uint64_t sum = 0;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), FOLDER "/%s/msi_irqs", name);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		char *at = text;

		snprintf(path, sizeof(path), "/sys/kernel/irq/%.20s/per_cpu_count", e->d_name);
		if (!read_all(open(path, O_RDONLY | O_CLOEXEC), text, sizeof(text)))
			continue;
		do
			sum += strtoull(at, &at, 10);
		while (*at++ == ',');
	}
	if (dir)
		closedir(dir);
	return sum;
}

/*
 * Behind the root port each switch is two bridges, one below the other: the port that leads upwards
 * and one of those that lead downwards. The function itself is the last part.
 */
void shim_device_above_of(const char *path, uint32_t above[SIO_ABOVE])
{
	unsigned domain, bus, slot, function, n = 0, at = 0;
	uint32_t last = 0;

	memset(above, 0, SIO_ABOVE * sizeof(*above));
	for (; path; path = strchr(path + 1, '/')) {
		if (sscanf(path, "/%4x:%2x:%2x.%1x", &domain, &bus, &slot, &function) != 4)
			continue;
		/* What came before it is a bridge; of those every second is a way upwards. */
		if (n >= 2 && n % 2 == 0 && at < SIO_ABOVE)
			above[at++] = last;
		last = domain << 16 | bus << 8 | slot << 3 | function;
		n++;
	}
}

void shim_device_above(uint32_t bdf, uint32_t above[SIO_ABOVE])
{
	char name[64], *path;

	snprintf(name, sizeof(name), FOLDER "/%04x:%02x:%02x.%x", bdf >> 16, bdf >> 8 & 0xff,
		 bdf >> 3 & 0x1f, bdf & 7);
	path = realpath(name, NULL);
	shim_device_above_of(path, above);
	free(path);
}

void shim_device_look(struct sio_evt_device *evt)
{
	char text[1024];

	read_file(evt->name, "resource", text, sizeof(text));
	shim_device_bars(text, evt);
	look_at_config(evt);
	evt->slot = evt->bdf >> 3 & 0x1f;
	shim_device_above(evt->bdf, evt->above);
	evt->functions = count_functions(evt->name);
	evt->dma_bits = (uint32_t)number(evt->name, "dma_mask_bits");
	evt->iommu_group = iommu_group(evt->name);
	read_file(evt->name, "reset_method", text, sizeof(text));
	evt->resets = shim_device_resets(text, alone_on_its_bus(evt->name));
}

/* ---- CONFIG ---- */

/* What changes nobody else's view of the machine: error bits, and how the function sends. */
static uint32_t may_change(int fd, uint32_t offset)
{
	unsigned char config[PCI_CFG_SPACE_SIZE];
	uint32_t at;

	if (offset == PCI_COMMAND)
		return PCI_COMMAND_PARITY | PCI_COMMAND_SERR |
		       (uint32_t)(PCI_STATUS_PARITY | PCI_STATUS_SIG_TARGET_ABORT |
				  PCI_STATUS_REC_TARGET_ABORT | PCI_STATUS_REC_MASTER_ABORT |
				  PCI_STATUS_SIG_SYSTEM_ERROR | PCI_STATUS_DETECTED_PARITY)
			       << 16;
	if (pread(fd, config, sizeof(config), 0) != sizeof(config))
		return 0;
	at = config[PCI_CAPABILITY_LIST] & 0xfc;
	for (int i = 0; i < 64 && at >= PCI_STD_HEADER_SIZEOF; i++) {
		if (config[at] == PCI_CAP_ID_EXP && offset == at + PCI_EXP_DEVCTL)
			return PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN |
			       PCI_EXP_DEVCTL_READRQ |
			       (PCI_EXP_DEVSTA_CED | PCI_EXP_DEVSTA_NFED | PCI_EXP_DEVSTA_FED |
				PCI_EXP_DEVSTA_URD)
				       << 16;
		at = config[at + 1] & 0xfc;
	}
	return 0;
}

/* Return: 0; bits that may not be changed were refused; -errno. */
static int change(struct shim_call *c, int fd, const struct sio_req_config *m)
{
	uint32_t may = may_change(fd, m->offset & ~3u) >> 8 * (m->offset & 3), value = 0;

	may &= m->width == 4 ? UINT32_MAX : (1u << 8 * m->width) - 1;
	if (m->mask & ~may) {
		shim_call_refuse(c, -EACCES,
				 "CONFIG: bits %#x at %#x, those that may be changed there are %#x",
				 m->mask, m->offset, may);
		return -EACCES;
	}
	if (pread(fd, &value, m->width, m->offset) != (ssize_t)m->width)
		value = 0;
	/* Bits of a status register, which are the upper half, a 1 clears. */
	value &= ~m->mask & 0xffff >> 8 * (m->offset & 3);
	value |= m->value & m->mask;
	if (pwrite(fd, &value, m->width, m->offset) == (ssize_t)m->width)
		return 0;
	shim_call_refuse(c, -EIO, "CONFIG: %#x cannot be written", m->offset);
	return -EIO;
}

void shim_device_config(struct shim_call *c, const char *name, const struct sio_req_config *m)
{
	const struct sio_req_config req = *m;
	struct sio_evt_config *evt;
	uint32_t value = UINT32_MAX;
	int fd;

	if ((m->width != 1 && m->width != 2 && m->width != 4) || m->offset % m->width ||
	    m->offset >= PCI_CFG_SPACE_EXP_SIZE) {
		shim_call_refuse(
			c, -EINVAL,
			"CONFIG: %u bytes at %#x; 1, 2 or 4 at a multiple of that below %#x are right",
			m->width, m->offset, PCI_CFG_SPACE_EXP_SIZE);
		return;
	}
	fd = open_file(name, "config", O_RDWR);
	if (fd < 0) {
		shim_call_refuse(c, -ENODEV, "CONFIG: %s: %s", name, strerror(errno));
		return;
	}
	if (!(req.h.flags & SIO_CONFIG_WRITE) || change(c, fd, &req) == 0) {
		/* What is not there reads as ones. */
		if (pread(fd, &value, req.width, req.offset) != (ssize_t)req.width)
			value = UINT32_MAX;
		evt = shim_call_answer(c, sizeof(*evt));
		evt->value = req.width == 4 ? value : value & ((1u << 8 * req.width) - 1);
	}
	close(fd);
}
