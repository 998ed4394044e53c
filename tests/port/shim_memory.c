/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of smartio.ko: mappings, imports, pools, configuration space. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim.h"

#define HUGE (2u << 20)
#define SIZE (64 * SHIM_PAGE)

static struct sio_req_import *import_of(struct port_world *w, struct shim_ask *a, uint32_t kind)
{
	struct sio_req_import *m = (void *)&a->req;

	shim_good(w, a, SIO_OP_IMPORT, 0);
	m->kind = kind;
	m->access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
	return m;
}

static void end(struct port_world *w, uint32_t op, uint64_t id, int error)
{
	struct shim_ask a;

	shim_good(w, &a, op, 0);
	((struct sio_req_free *)(void *)&a.req)->id = id;
	shim_expect(w, &a, -1, error, "an end");
}

/* Memory that is freed stays for whoever has it mapped, and comes zeroed to the next. */
static void mapped_memory_stays(struct port_world *w)
{
	uint64_t used, id;
	struct shim_ask a;
	struct stat st;
	char *at;
	int fd;

	shim_good(w, &a, SIO_OP_ALLOC, 0);
	((struct sio_req_alloc *)(void *)&a.req)->size = SIZE;
	if (!shim_expect(w, &a, -1, 0, "ALLOC"))
		goto out;
	id = shim_id(&a);
	used = shim_count(w, SIO_KIND_MEM);
	at = shim_map(w, a.fd[0], SIZE, PROT_READ | PROT_WRITE);
	if (!at)
		goto out;
	shim_check(w, fstat(a.fd[0], &st) == 0 && st.st_size == SIZE, "fstat tells the size");
	shim_check(w, mmap(NULL, SIZE + SHIM_PAGE, PROT_READ, MAP_SHARED, a.fd[0], 0) == MAP_FAILED,
		   "no page more can be mapped");
	shim_check(w, mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, a.fd[0], 0) == MAP_FAILED,
		   "no private mapping");
	for (size_t i = 0; i < SIZE; i++)
		if (at[i])
			shim_check(w, false, "new memory is zero");
	memset(at, 0x5a, SIZE);
	fd = a.fd[0];
	end(w, SIO_OP_FREE, id, 0);
	end(w, SIO_OP_FREE, id, -ENOENT);
	close(fd);
	shim_check(w, shim_count(w, SIO_KIND_MEM) == used - 1, "one memory less");
	for (size_t i = 0; i < SIZE; i++)
		if (at[i] != 0x5a)
			shim_check(w, false, "mapped memory keeps its bytes");
	munmap(at, SIZE);
out:
	port_report(w, "freed memory stays mapped");
}

static void check_shared(struct port_world *w, int fd, const char *theirs, size_t size)
{
	char *at = shim_map(w, fd, size, PROT_READ | PROT_WRITE);

	if (!at)
		return;
	shim_check(w, memcmp(at, theirs, size) == 0, "the import shows what is there");
	at[size - 1] = 77;
	shim_check(w, theirs[size - 1] == 77, "and stores reach it");
	munmap(at, size);
}

static void import_memfd(struct port_world *w)
{
	int fd = memfd_create("import", MFD_CLOEXEC), other = open("/dev/null", O_RDWR);
	struct shim_ask a;
	char *at;

	if (fd < 0 || ftruncate(fd, SIZE) < 0)
		goto out;
	at = shim_map(w, fd, SIZE, PROT_READ | PROT_WRITE);
	memset(at, 0x11, SIZE);
	import_of(w, &a, SIO_IMPORT_MEMFD);
	shim_expect(w, &a, other, -EBADF, "IMPORT of /dev/null");
	import_of(w, &a, SIO_IMPORT_HUGETLB);
	shim_expect(w, &a, fd, -EBADF, "IMPORT of a memfd as hugetlb");
	import_of(w, &a, SIO_IMPORT_USER_PAGES);
	shim_expect(w, &a, fd, -EBADF, "IMPORT of a memfd as pins");
	import_of(w, &a, SIO_IMPORT_DMABUF);
	shim_expect(w, &a, fd, -EBADF, "IMPORT of a memfd as dma-buf");
	import_of(w, &a, SIO_IMPORT_MEMFD)->length = SIZE + SHIM_PAGE;
	shim_expect(w, &a, fd, -EINVAL, "IMPORT of more than there is");
	import_of(w, &a, SIO_IMPORT_MEMFD)->offset = ~0xfffULL;
	shim_expect(w, &a, fd, -EINVAL, "IMPORT far behind");
	import_of(w, &a, SIO_IMPORT_MEMFD)->offset = SHIM_PAGE;
	if (shim_expect(w, &a, fd, 0, "IMPORT of a memfd")) {
		check_shared(w, a.fd[0], at + SHIM_PAGE, SIZE - SHIM_PAGE);
		end(w, SIO_OP_FREE, shim_id(&a), 0);
		shim_close(&a);
	}
	munmap(at, SIZE);
out:
	close(fd);
	close(other);
	port_report(w, "a memfd is imported");
}

/* hugetlb pages become a pool, which cannot go while something of it is in use. */
static void hugetlb_pool(struct port_world *w)
{
	struct shim_ask a, b;
	FILE *f = fopen("/proc/sys/vm/nr_hugepages", "w");
	int fd = -1;

	if (f) {
		fputs("2\n", f);
		fclose(f);
		fd = memfd_create("pool", MFD_CLOEXEC | MFD_HUGETLB);
	}
	if (fd < 0 || ftruncate(fd, 2 * HUGE) < 0 || fallocate(fd, 0, 0, 2 * HUGE) < 0) {
		port_report(w, "a pool of hugetlb pages # SKIP this kernel has none to give");
		return;
	}
	shim_good(w, &b, SIO_OP_ALLOC, 0); /* nothing of the other pool is left */
	((struct sio_req_alloc *)(void *)&b.req)->kind = SIO_ALLOC_POOL;
	((struct sio_req_alloc *)(void *)&b.req)->size = 8u << 20;
	shim_expect(w, &b, -1, 0, "ALLOC of the other pool");
	shim_close(&b);
	import_of(w, &a, SIO_IMPORT_HUGETLB)->h.flags = SIO_IMPORT_POOL;
	shim_expect(w, &a, fd, 0, "IMPORT of a pool");
	close(fd);
	shim_good(w, &b, SIO_OP_ALLOC, 0);
	((struct sio_req_alloc *)(void *)&b.req)->kind = SIO_ALLOC_POOL;
	((struct sio_req_alloc *)(void *)&b.req)->size = HUGE;
	if (shim_expect(w, &b, -1, 0, "ALLOC of the pool")) {
		char *at = shim_map(w, b.fd[0], HUGE, PROT_READ | PROT_WRITE);

		end(w, SIO_OP_FREE, shim_id(&a), -EBUSY);
		end(w, SIO_OP_FREE, shim_id(&b), 0);
		end(w, SIO_OP_FREE, shim_id(&a), -EBUSY); /* it is mapped */
		if (at) {
			memset(at, 1, HUGE);
			munmap(at, HUGE);
		}
		shim_close(&b);
	}
	shim_expect(w, &b, -1, 0, "ALLOC of the pool again");
	end(w, SIO_OP_FREE, shim_id(&b), 0);
	shim_close(&b);
	end(w, SIO_OP_FREE, shim_id(&a), 0);
	port_things_end(w);
	port_report(w, "a pool of hugetlb pages");
}

/* The pool of the module's parameter: 8 MiB at 256 MiB, in one piece, for every device. */
static void reserved_pool(struct port_world *w)
{
	struct sio_req_alloc *m;
	struct sio_req_dmamap *map;
	struct shim_ask a, b;
	char *at;

	shim_good(w, &a, SIO_OP_ALLOC, 0);
	m = (void *)&a.req;
	m->kind = SIO_ALLOC_POOL;
	m->size = 9u << 20;
	shim_expect(w, &a, -1, -ENOSPC, "ALLOC of more than the pool");
	m->size = 7u << 20;
	if (!shim_expect(w, &a, -1, 0, "ALLOC of the pool"))
		goto out;
	shim_check(w, a.answer.words[6] >= 256u << 20 && a.answer.words[6] <= 257u << 20,
		   "it lies in the pool");
	at = shim_map(w, a.fd[0], 7u << 20, PROT_READ | PROT_WRITE);
	for (size_t i = 0; at && i < 7u << 20; i += SHIM_PAGE)
		shim_check(w, at[i] == 0 && (at[i] = 1), "it is zero");
	shim_good(w, &b, SIO_OP_DMAMAP, 0);
	map = (void *)&b.req;
	map->target = shim_id(&a);
	map->length = 7u << 20;
	if (shim_expect(w, &b, -1, 0, "DMAMAP of the pool"))
		end(w, SIO_OP_DMAUNMAP, shim_id(&b), 0);
	end(w, SIO_OP_FREE, shim_id(&a), 0);
	shim_good(w, &b, SIO_OP_ALLOC, 0);
	((struct sio_req_alloc *)(void *)&b.req)->kind = SIO_ALLOC_POOL;
	((struct sio_req_alloc *)(void *)&b.req)->size = 7u << 20;
	shim_expect(w, &b, -1, -ENOSPC, "ALLOC while it is mapped");
	munmap(at, 7u << 20);
	shim_close(&a);
	if (shim_expect(w, &b, -1, 0, "ALLOC when it is free")) {
		at = shim_map(w, b.fd[0], 7u << 20, PROT_READ);
		shim_check(w, at && at[SHIM_PAGE] == 0, "it is zero again");
		munmap(at, 7u << 20);
		end(w, SIO_OP_FREE, shim_id(&b), 0);
		shim_close(&b);
	}
out:
	port_report(w, "a pool kept from the kernel");
}

/* A program without privilege pins its own pages, as far as its limit goes. */
static int pin_as_nobody(int owner_fd, char *at)
{
	struct rlimit limit = {8 * SHIM_PAGE, 8 * SHIM_PAGE};
	struct sio_ioc_pin pin = {.address = (uintptr_t)at, .length = 8 * SHIM_PAGE, .access = 3};

	if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0 || setuid(1000) < 0)
		return 1;
	if (ioctl(owner_fd, SIO_IOC_PIN, &pin) < 0)
		return 2;
	if (ioctl(owner_fd, SIO_IOC_PIN, &pin) >= 0 || errno != ENOMEM)
		return 3; /* the limit holds */
	pin.reserved = 1;
	if (ioctl(owner_fd, SIO_IOC_PIN, &pin) >= 0 || errno != EINVAL)
		return 4;
	pin.reserved = 0;
	pin.address = 0x1000;
	pin.length = SHIM_PAGE;
	if (ioctl(owner_fd, SIO_IOC_PIN, &pin) >= 0 || errno != ENOMEM)
		return 5; /* over the limit, whatever is there */
	return 0;
}

static void user_pages(struct port_world *w)
{
	struct sio_ioc_pin pin = {.length = SIZE, .access = 3};
	char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t owner;
	int owner_fd = -1, fd, status = -1;
	struct shim_ask a;
	pid_t pid;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &owner_fd);
	memset(at, 0x22, SIZE);
	pin.address = (uintptr_t)at;
	fd = ioctl(owner_fd, SIO_IOC_PIN, &pin);
	shim_check(w, fd >= 0, "pages can be pinned");
	shim_check(w, mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED,
		   "pins cannot be mapped");
	import_of(w, &a, SIO_IMPORT_USER_PAGES)->h.owner = owner;
	if (shim_expect(w, &a, fd, 0, "IMPORT of pins")) {
		close(fd);
		check_shared(w, a.fd[0], at, SIZE);
		shim_close(&a);
	}
	pid = fork();
	if (pid == 0)
		_exit(pin_as_nobody(owner_fd, at));
	waitpid(pid, &status, 0);
	if (status)
		port_failed(w, "a program without privilege: step %d", WEXITSTATUS(status));
	close(owner_fd);
	shim_event(w, SIO_EV_OWNER_END, &a.answer);
	munmap(at, SIZE);
	port_report(w, "a program's pages");
}

static void config(struct port_world *w)
{
	struct shim_ask a;
	struct sio_req_config *m = (void *)&a.req;
	const struct sio_evt_config *evt = (const void *)&a.answer;

	shim_good(w, &a, SIO_OP_CONFIG, 0);
	m->device = w->thing[T_DEVICE];
	m->offset = 8;
	m->width = 4;
	if (shim_expect(w, &a, -1, 0, "CONFIG of the class"))
		shim_check(w, evt->value >> 8 == 0x010802, "it is a drive");
	m->width = 1;
	m->offset = 11;
	if (shim_expect(w, &a, -1, 0, "CONFIG of a byte"))
		shim_check(w, evt->value == 1, "it is storage");
	m->offset = 4095;
	shim_expect(w, &a, -1, 0, "CONFIG of the last byte");
	m->offset = 4096;
	shim_expect(w, &a, -1, -EINVAL, "CONFIG behind the end");
	m->width = 3;
	shim_expect(w, &a, -1, -EINVAL, "CONFIG of three bytes");
	m->width = 4;
	m->offset = 2;
	shim_expect(w, &a, -1, -EINVAL, "CONFIG across");
	a.req.req.flags = SIO_CONFIG_WRITE;
	m->offset = 0x10;
	m->mask = ~0u;
	shim_expect(w, &a, -1, -EACCES, "CONFIG of a BAR");
	m->offset = 4;
	m->mask = 4;
	shim_expect(w, &a, -1, -EACCES, "CONFIG of bus mastering among others");
	m->width = 2;
	if (shim_expect(w, &a, -1, 0, "CONFIG of bus mastering"))
		shim_check(w, !(evt->value & 4), "the device sends no more");
	m->value = 4;
	if (shim_expect(w, &a, -1, 0, "CONFIG of bus mastering again"))
		shim_check(w, evt->value & 4, "it may send");
	m->width = 4;
	m->mask = 0x100;
	m->value = 0x100;
	if (shim_expect(w, &a, -1, 0, "CONFIG of system errors"))
		shim_check(w, evt->value & 0x100, "the bit is set");
	m->value = 0;
	if (shim_expect(w, &a, -1, 0, "CONFIG of system errors again"))
		shim_check(w, !(evt->value & 0x100), "the bit is clear");
	port_report(w, "configuration space");
}

void shim_memory(struct port_world *w)
{
	mapped_memory_stays(w);
	import_memfd(w);
	reserved_pool(w);
	hugetlb_pool(w);
	user_pages(w);
	config(w);
}
