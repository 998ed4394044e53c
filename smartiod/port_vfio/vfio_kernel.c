/* SPDX-License-Identifier: BSD-2-Clause */
/* VFIO's calls on a function, by the backend that opened it: mappings, interrupts, reset. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/iommufd_abi.h"
#include "core/vfio_hold.h"
#include "smartiod/port_shim/shim_port_own.h"
#include "smartiod/port_vfio/vfio_file.h"
#include "smartiod/port_vfio/vfio_live.h"

/* ---- backends ---- */

static const struct vfio_backend *const backends[] = {&vfio_by_iommufd, &vfio_by_group};
#define BACKENDS (sizeof(backends) / sizeof(backends[0]))

const struct vfio_backend *vfio_backend_of(uint32_t mode)
{
	for (unsigned i = 0; i < BACKENDS; i++)
		if (backends[i]->mode == mode)
			return backends[i];
	return &vfio_by_group;
}

const struct vfio_backend *vfio_backend_named(const char *name)
{
	for (unsigned i = 0; i < BACKENDS; i++)
		if (strcmp(backends[i]->name, name) == 0)
			return backends[i];
	return NULL;
}

static const struct vfio_backend *choose(const char *name)
{
	unsigned i = 0;

	while (!backends[i]->is_here(name)) /* the last one always is */
		i++;
	return backends[i];
}

/* ---- what sysfs tells ---- */

static uint32_t get(const unsigned char *config, size_t at, unsigned width)
{
	uint32_t value = 0;

	memcpy(&value, config + at, width); /* both are little-endian */
	return value;
}

static void find_msix(const unsigned char *config, struct sio_evt_device *ret)
{
	uint32_t at = config[PCI_CAPABILITY_LIST] & 0xfc;

	for (int i = 0; i < 48 && at >= PCI_STD_HEADER_SIZEOF; i++) {
		if (config[at] == PCI_CAP_ID_MSIX) {
			uint32_t table = get(config, at + PCI_MSIX_TABLE, 4);

			ret->msix_count =
				(get(config, at + PCI_MSIX_FLAGS, 2) & PCI_MSIX_FLAGS_QSIZE) + 1;
			ret->msix_bar = table & PCI_MSIX_TABLE_BIR;
			ret->msix_offset = table & PCI_MSIX_TABLE_OFFSET;
			return;
		}
		at = config[at + 1] & 0xfc;
	}
}

bool vfio_kernel_look(const char *name, const struct vfio_backend *by, struct sio_evt_device *ret)
{
	unsigned char config[PCI_CFG_SPACE_SIZE];
	unsigned domain, bus, slot, function;
	char path[256], target[256];
	const char *driver;
	ssize_t n;
	int fd;

	memset(ret, 0, sizeof(*ret));
	if (sscanf(name, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4)
		return false;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver", name);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	driver = strrchr(target, '/');
	if (!driver || strcmp(driver + 1, "vfio-pci") != 0)
		return false;
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	ret->bdf = domain << 16 | bus << 8 | slot << 3 | function;
	shim_device_look(ret);
	ret->iommu_mode = (by ? by : choose(name))->mode;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && pread(fd, config, sizeof(config), 0) == sizeof(config))
		find_msix(config, ret);
	if (fd >= 0)
		close(fd);
	return true;
}

/* ---- open ---- */

static int look_at_bars(struct vfio_unit *u, struct sio_err *reterr)
{
	for (uint32_t i = 0; i < SIO_DEVICE_BARS; i++) {
		struct vfio_region_info info = {.argsz = sizeof(info), .index = i};

		if (ioctl(u->fd[VFIO_DEVICE], VFIO_DEVICE_GET_REGION_INFO, &info) < 0)
			return sio_fail(reterr, -errno, "%s: BAR %u: %s", u->name, i,
					strerror(errno));
		u->bar[i].offset = info.offset;
		u->bar[i].size = info.size;
		u->bar[i].mappable = info.flags & VFIO_REGION_INFO_FLAG_MMAP;
	}
	return 0;
}

/* Return: 0; -errno; above 0: the machine has no more interrupts than that for it. */
static int set_irqs(const struct vfio_unit *u, uint32_t index, uint32_t start, uint32_t count,
		    const int32_t *fds)
{
	static const size_t head = sizeof(struct vfio_irq_set);
	size_t size = head + count * sizeof(*fds);
	struct vfio_irq_set *set = calloc(1, size);
	int r;

	if (!set)
		return -ENOMEM;
	set->argsz = (uint32_t)size;
	set->flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
	set->index = index;
	set->start = start;
	set->count = count;
	memcpy(set->data, fds, count * sizeof(*fds));
	r = ioctl(u->fd[VFIO_DEVICE], VFIO_DEVICE_SET_IRQS, set);
	r = r < 0 ? -errno : r;
	free(set);
	return r;
}

/* All vectors at once, of nobody yet: kernels before 6.4 add none later without losing others. */
static int take_vectors(struct vfio_unit *u, uint32_t *ret, struct sio_err *reterr)
{
	struct vfio_irq_info info = {.argsz = sizeof(info), .index = VFIO_PCI_MSIX_IRQ_INDEX};
	int32_t none[VFIO_VECTORS];
	int r;

	if (ioctl(u->fd[VFIO_DEVICE], VFIO_DEVICE_GET_IRQ_INFO, &info) < 0 || info.count == 0)
		return 0;
	*ret = info.count < VFIO_VECTORS ? info.count : VFIO_VECTORS;
	memset(none, 0xff, sizeof(none));
	memset(u->sinks, 0, sizeof(u->sinks));
	r = set_irqs(u, VFIO_PCI_MSIX_IRQ_INDEX, 0, *ret, none);
	if (r > 0) {
		vfio_log("%s: the machine has %d interrupts for it, of %u", u->name, r, info.count);
		*ret = (uint32_t)r;
		r = set_irqs(u, VFIO_PCI_MSIX_IRQ_INDEX, 0, *ret, none);
	}
	return r < 0 ? sio_fail(reterr, r, "%s: its %u interrupts cannot be set up: %s", u->name,
				info.count, strerror(-r))
		     : 0;
}

static int change_command(const struct vfio_unit *u, uint16_t set, uint16_t clear)
{
	struct vfio_region_info info = {.argsz = sizeof(info),
					.index = VFIO_PCI_CONFIG_REGION_INDEX};
	uint16_t command;

	if (ioctl(u->fd[VFIO_DEVICE], VFIO_DEVICE_GET_REGION_INFO, &info) < 0 ||
	    pread(u->fd[VFIO_DEVICE], &command, 2, (off_t)info.offset + PCI_COMMAND) != 2)
		return -errno;
	command = (uint16_t)((command | set) & ~clear);
	return pwrite(u->fd[VFIO_DEVICE], &command, 2, (off_t)info.offset + PCI_COMMAND) == 2
		       ? 0
		       : -errno;
}

static int become_master(const struct vfio_unit *u, struct sio_err *reterr)
{
	int r = change_command(u, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 0);

	return r < 0 ? sio_fail(reterr, r,
				"%s: bus mastering cannot be enabled in configuration space: %s",
				u->name, strerror(-r))
		     : 0;
}

/* The answer to what is read comes behind all that it wrote before. */
void vfio_kernel_stop(const struct vfio_unit *u)
{
	if (change_command(u, 0, PCI_COMMAND_MASTER) == 0)
		change_command(u, 0, 0);
}

/* ---- open and close ---- */

/* The kernel wants it back: old kernels never say so. */
static void hear_requests(const struct vfio_unit *u)
{
	const int32_t fd = u->request;

	set_irqs(u, VFIO_PCI_REQ_IRQ_INDEX, 0, 1, &fd);
}

static int copy_group(struct vfio_unit *u, const struct vfio_unit *partner, struct sio_err *reterr)
{
	if (partner->by != u->by)
		return sio_fail(
			reterr, -EOPNOTSUPP,
			"%s: %s of the same IOMMU group %u is served by %s, and both must use "
			"the same",
			u->name, partner->name, u->group_number, partner->by->name);
	for (unsigned i = VFIO_OF_GROUP; i < VFIO_PARTS && u->by->part[i]; i++) {
		u->fd[i] = fcntl(partner->fd[i], F_DUPFD_CLOEXEC, 3);
		if (u->fd[i] < 0)
			return sio_fail(reterr, -errno, "%s: %s", u->name, strerror(errno));
	}
	u->table = partner->table;
	return 0;
}

/* Where it is open it is not reset by being opened, and whoever has it goes on. */
static int open_unit(struct vfio_unit *u, const struct vfio_unit *partner, struct sio_err *reterr)
{
	int r = partner ? copy_group(u, partner, reterr) : 0;

	if (r == 0 && partner && vfio_kernel_is_held(u))
		r = sio_fail(reterr, -EBUSY, "%s: programs have it since before it was removed",
			     u->name);
	if (r == 0)
		r = u->by->open(u, partner, reterr);
	if (r == 0 && sio_vfio_hold(u->fd[VFIO_DEVICE], u->name) < 0)
		vfio_log("%s: device remove will not see who has it", u->name);
	return r;
}

int vfio_kernel_open(struct vfio_unit *u, const struct vfio_unit *partner, struct vfio_space *ret,
		     struct sio_err *reterr)
{
	int r;

	u->sink = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (u->sink < 0)
		return sio_fail(reterr, -errno, "%s: %s", u->name, strerror(errno));
	r = open_unit(u, partner, reterr);
	u->busy = r == -EBUSY;
	if (r == 0)
		r = look_at_bars(u, reterr);
	*ret = (struct vfio_space){.highest = 0};
	if (r == 0)
		r = u->by->space(u, ret, reterr);
	if (r == 0)
		r = take_vectors(u, &ret->vectors, reterr);
	if (r == 0)
		r = become_master(u, reterr);
	if (r == 0)
		hear_requests(u);
	else
		vfio_kernel_close(u);
	return r;
}

/* By its own node, if that is how it was opened; else by any file without a name. */
bool vfio_kernel_is_held(const struct vfio_unit *u)
{
	char path[sizeof(SIO_VFIO_CDEVS) + VFIO_NAME];
	bool held = sio_vfio_is_held(u->request, u->name);
	int fd;

	if (held || !*u->node)
		return held;
	snprintf(path, sizeof(path), SIO_VFIO_CDEVS "/%s", u->node);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	held = fd >= 0 && sio_vfio_is_held(fd, u->name);
	if (fd >= 0)
		close(fd);
	return held;
}

static void have_nothing(struct vfio_unit *u)
{
	for (unsigned i = 0; i < VFIO_PARTS; i++)
		u->fd[i] = -1;
}

int vfio_kernel_adopt(struct vfio_unit *u, const int fd[VFIO_PARTS], struct vfio_space *ret,
		      struct sio_err *reterr)
{
	int r = 0;

	u->sink = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (u->sink < 0)
		return sio_fail(reterr, -errno, "%s: %s", u->name, strerror(errno));
	memcpy(u->fd, fd, sizeof(u->fd));
	/* Of one that is cut off the kernel does not say which addresses it must not have. */
	r = u->by->attach ? u->by->attach(u) : 0;
	r = r < 0 ? sio_fail(reterr, r, "%s: cannot be attached to its page table: %s", u->name,
			     strerror(-r))
		  : look_at_bars(u, reterr);
	*ret = (struct vfio_space){.highest = 0};
	if (r == 0)
		r = u->by->space(u, ret, reterr);
	if (r == 0) {
		hear_requests(u);
		return 0;
	}
	close(u->sink);
	u->sink = -1;
	have_nothing(u);
	return r;
}

/* The last close of the device, here or in a program, stops and resets it. */
void vfio_kernel_close(struct vfio_unit *u)
{
	vfio_kernel_reset_join(u);
	for (unsigned i = 0; i < VFIO_PARTS; i++) /* the device first */
		if (u->fd[i] >= 0)
			close(u->fd[i]);
	have_nothing(u);
	if (u->sink >= 0)
		close(u->sink);
	u->sink = -1;
}

/* ---- mappings ---- */

static int mapped(const struct vfio_unit *u, struct sio_dev_addr iova, int error,
		  struct sio_err *reterr)
{
	if (error == -ENOMEM)
		return sio_fail_exhausted(reterr, error, SIO_OUT_OF_LOCKED_MEMORY,
					  "DMAMAP: the pages cannot be held in place (ulimit -l)");
	if (error == -ENOSPC)
		return sio_fail_exhausted(reterr, error, SIO_OUT_OF_IOVA,
					  "DMAMAP: the kernel takes no more mappings of %s: %s",
					  u->name, u->by->no_space);
	return error ? sio_fail(reterr, error, "DMAMAP: %#" PRIx64 " of %s: %s", iova.addr, u->name,
				strerror(-error))
		     : 0;
}

/* The pages are pinned when the call returns: where we have them mapped is of no interest. */
int vfio_kernel_map(const struct vfio_unit *u, int fd, const struct sio_req_dmamap *m,
		    struct sio_dev_addr iova, struct sio_err *reterr)
{
	int prot = PROT_READ | (m->access & SIO_ACCESS_WRITE ? PROT_WRITE : 0), error;
	/* What is too much is not touched. */
	uint64_t page = vfio_file_page(fd), extra = m->offset % page;
	uint64_t length = (extra + m->length + page - 1) / page * page;
	char *at = mmap(NULL, length, prot, MAP_SHARED, fd, (off_t)(m->offset - extra));
	const struct vfio_pages p = {
		.at = at + extra, .iova = iova, .length = m->length, .access = m->access};

	if (at == MAP_FAILED)
		return sio_fail(reterr, -errno, "DMAMAP: the memory cannot be mapped: %s",
				strerror(errno));
	error = u->by->map(u, &p);
	munmap(at, length);
	return mapped(u, iova, error, reterr);
}

int vfio_kernel_map_bar(const struct vfio_unit *u, const struct vfio_unit *other, uint32_t bar,
			uint64_t offset, const struct sio_req_dmamap *m, struct sio_dev_addr iova,
			struct sio_err *reterr)
{
	const struct vfio_pages p = {.iova = iova, .length = m->length, .access = m->access};
	int error = u->by->map_bar(u, other, bar, offset, &p);

	if (error == -EOPNOTSUPP)
		return sio_fail(reterr, error,
				"DMAMAP: %s is had by iommufd, which maps memory alone on this "
				"kernel: smartio-vfio --backend group maps %s's registers for it",
				u->name, other->name);
	return mapped(u, iova, error, reterr);
}

/* An earlier process may have unmapped it, and died before it wrote so. */
int vfio_kernel_unmap(const struct vfio_unit *u, struct sio_dev_addr iova, uint64_t length)
{
	uint64_t n = length;
	int r = u->by->unmap(u, iova, &n);

	return r < 0 || n == length || n == 0 ? r : -ENOENT;
}

int vfio_kernel_unmap_all(const struct vfio_unit *u, struct sio_dev_addr iova, uint64_t length)
{
	return u->by->unmap(u, iova, &length);
}

/*
 * A vector without a descriptor is masked, and the function keeps what it would have sent and sends
 * it when it is unmasked. So one that is nobody's goes to a sink; and one that never was somebody's
 * does first, too.
 */
int vfio_kernel_vector(struct vfio_unit *u, uint32_t vector, int fd, struct sio_err *reterr)
{
	const int32_t sink = u->sink, to = fd < 0 ? u->sink : fd;
	int r = 0;

	if (!u->sinks[vector])
		r = set_irqs(u, VFIO_PCI_MSIX_IRQ_INDEX, vector, 1, &sink);
	u->sinks[vector] |= r == 0;
	if (r == 0)
		r = set_irqs(u, VFIO_PCI_MSIX_IRQ_INDEX, vector, 1, &to);
	r = r > 0 ? -ENOSPC : r;
	return r < 0 ? sio_fail(reterr, r, "VECTOR: vector %u of %s: %s", vector, u->name,
				strerror(-r))
		     : 0;
}

/* ---- reset ---- */

static void *reset_thread(void *data)
{
	struct vfio_unit *u = data;
	struct vfio_reset_done done = {.id = u->id};

	if (ioctl(u->fd[VFIO_DEVICE], VFIO_DEVICE_RESET) < 0)
		done.error = errno == EAGAIN ? -EBUSY : -errno;
	else if (u->by->attach) /* what a program cut off is whole again for the next one */
		done.error = u->by->attach(u);
	/* A pipe takes that much at once; whoever reads it lives as long as we do. */
	if (write(u->done, &done, sizeof(done)) != sizeof(done))
		abort();
	return NULL;
}

int vfio_kernel_reset(struct vfio_unit *u, struct sio_err *reterr)
{
	int r = -pthread_create(&u->thread, NULL, reset_thread, u);

	if (r < 0)
		return sio_fail(reterr, r, "RESET: no thread for it: %s", strerror(-r));
	u->resetting = true;
	return 0;
}

void vfio_kernel_reset_join(struct vfio_unit *u)
{
	if (u->resetting)
		pthread_join(u->thread, NULL);
	u->resetting = false;
}
