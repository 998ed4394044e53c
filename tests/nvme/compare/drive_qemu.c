/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QEMU's NVMe device by QEMU's test protocol (docs/devel/qtest.rst of QEMU): a machine whose one
 * processor halts at its first instruction, registers read and written by a line of text each, and
 * memory shared with this process. Interrupts are messages, so their vectors write into that
 * memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drive.h"

#define RAM (64u << 20)
#define SLOT 4u
#define BAR 0xe0000000u
#define MEMORY_BAR 0xe4000000u /* the controller memory buffer */
#define MESSAGES 0x800000u     /* in RAM: a word for each vector */
#define ROM (64u << 10)
#define HALT 0xf4
#define ECAM 0xb0000000u	 /* where configuration space of 4 KiB each lies */
#define FUNCTION_BAR 0xe8000000u /* of the first virtual function */

struct qemu {
	struct drive d;
	pid_t pid;
	FILE *to, *from;
	uint8_t *ram;
	uint32_t table; /* offset of the interrupt table in the BAR */
};

/* One line there, one line back: "OK VALUE". */
__attribute__((format(printf, 2, 3))) static uint64_t ask(struct qemu *q, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vfprintf(q->to, fmt, ap);
	va_end(ap);
	fputc('\n', q->to);
	if (fflush(q->to) != 0 || !fgets(line, sizeof(line), q->from)) {
		fprintf(stderr, "QEMU ended\n");
		exit(1);
	}
	if (strncmp(line, "OK", 2) != 0) {
		fprintf(stderr, "QEMU says: %s", line);
		exit(1);
	}
	return strtoull(line + 2, NULL, 0);
}

static uint32_t config_read(struct qemu *q, unsigned offset)
{
	ask(q, "outl 0xcf8 %#x", 0x80000000u | SLOT << 11 | offset);
	return (uint32_t)ask(q, "inl 0xcfc");
}

static void config_write(struct qemu *q, unsigned offset, uint32_t value)
{
	ask(q, "outl 0xcf8 %#x", 0x80000000u | SLOT << 11 | offset);
	ask(q, "outl 0xcfc %#x", value);
}

static uint32_t qemu_read(struct drive *d, uint32_t offset)
{
	return (uint32_t)ask((struct qemu *)d, "readl %#x", BAR + offset);
}

static void qemu_write(struct drive *d, uint32_t offset, uint32_t value)
{
	ask((struct qemu *)d, "writel %#x %#x", BAR + offset, value);
}

static void qemu_write64(struct drive *d, uint32_t offset, uint64_t value)
{
	ask((struct qemu *)d, "writeq %#x %#llx", BAR + offset, (unsigned long long)value);
}

/* QEMU's main loop runs between two lines. */
static void qemu_turn(struct drive *d)
{
	qemu_read(d, 0x1c);
}

static uint32_t find_capability(struct qemu *q, uint8_t id)
{
	uint32_t at = config_read(q, 0x34) & 0xfc;

	while (at) {
		uint32_t word = config_read(q, at);

		if ((word & 0xff) == id)
			return at;
		at = word >> 8 & 0xfc;
	}
	fprintf(stderr, "QEMU's NVMe has no capability %#x\n", id);
	exit(1);
}

/* BAR, bus mastering, and each vector to a word of memory. */
static void configure(struct qemu *q)
{
	uint32_t msix = find_capability(q, 0x11);

	config_write(q, 0x10, BAR);
	config_write(q, 0x14, 0);
	config_write(q, 0x18, MEMORY_BAR);
	config_write(q, 0x1c, 0);
	config_write(q, 0x04, 0x6);
	q->table = config_read(q, msix + 4) & ~7u;
	for (uint32_t i = 0; i < DRIVE_VECTORS; i++) {
		uint32_t entry = q->table + i * 16;

		qemu_write(&q->d, entry, MESSAGES + i * 4);
		qemu_write(&q->d, entry + 4, 0);
		qemu_write(&q->d, entry + 8, 1);
		qemu_write(&q->d, entry + 12, 0);
	}
	config_write(q, msix, config_read(q, msix) | 0x80000000u);
}

/* By the one extended capability with this id, which only ECAM reaches. */
static uint32_t extended(struct qemu *q, uint16_t id)
{
	uint32_t at = 0x100;

	while (at) {
		uint32_t word = (uint32_t)ask(q, "readl %#x", ECAM + (SLOT << 15) + at);

		if ((word & 0xffff) == id)
			return ECAM + (SLOT << 15) + at;
		at = word >> 20;
	}
	fprintf(stderr, "QEMU's NVMe has no extended capability %#x\n", id);
	exit(1);
}

/* NumVFs, System Page Size and the first BAR; then VF Enable and VF MSE. */
static void qemu_functions(struct drive *d, unsigned n)
{
	struct qemu *q = (struct qemu *)d;
	uint32_t sriov = extended(q, 0x10);

	ask(q, "writew %#x 0", sriov + 0x08);
	ask(q, "writew %#x %#x", sriov + 0x10, n);
	ask(q, "writel %#x 1", sriov + 0x20);
	ask(q, "writel %#x %#x", sriov + 0x24, FUNCTION_BAR);
	ask(q, "writel %#x 0", sriov + 0x28);
	if (n)
		ask(q, "writew %#x 0x9", sriov + 0x08);
}

static void qemu_reset(struct drive *d)
{
	struct qemu *q = (struct qemu *)d;
	uint32_t express = find_capability(q, 0x10);

	config_write(q, express + 8, config_read(q, express + 8) | 0x8000);
	configure(q);
}

static uint32_t qemu_interrupts(struct drive *d)
{
	struct qemu *q = (struct qemu *)d;
	volatile uint32_t *word = (volatile uint32_t *)(q->ram + MESSAGES);
	uint32_t raised = 0;

	for (unsigned i = 0; i < DRIVE_VECTORS; i++) {
		raised |= word[i] ? 1u << i : 0;
		word[i] = 0;
	}
	return raised;
}

static void qemu_close(struct drive *d)
{
	struct qemu *q = (struct qemu *)d;

	if (q->to)
		fclose(q->to);
	if (q->from)
		fclose(q->from);
	if (q->pid > 0) {
		kill(q->pid, SIGTERM);
		waitpid(q->pid, NULL, 0);
	}
	if (q->ram)
		munmap(q->ram, RAM);
	free(q);
}

static int make_file(const char *name, uint32_t bytes, int fill)
{
	int fd = memfd_create(name, 0); /* QEMU inherits it */
	void *at;

	if (fd < 0 || ftruncate(fd, bytes) < 0)
		return -1;
	if (fill) {
		at = mmap(NULL, bytes, PROT_WRITE, MAP_SHARED, fd, 0);
		if (at == MAP_FAILED)
			return -1;
		memset(at, fill, bytes);
		munmap(at, bytes);
	}
	return fd;
}

/* The drive, its subsystem, and the namespace, which a drive alone has in itself. */
static void describe(bool functions, char device[256])
{
	const char *usual = "serial=" DRIVE_SERIAL ",mdts=8";

	if (functions)
		snprintf(device, 256,
			 "nvme,subsys=s,id=pf,%s,addr=%u,max_ioqpairs=%u,msix_qsize=%u,"
			 "sriov_max_vfs=%u,sriov_vq_flexible=%u,sriov_vi_flexible=%u",
			 usual, SLOT, 2 * DRIVE_FUNCTIONS + DRIVE_PAIRS,
			 DRIVE_FUNCTIONS + DRIVE_VECTORS, DRIVE_FUNCTIONS, 2 * DRIVE_FUNCTIONS,
			 DRIVE_FUNCTIONS);
	else
		snprintf(device, 256,
			 "nvme,drive=d,%s,addr=%u,max_ioqpairs=%u,msix_qsize=%u,cmb_size_mb=%u",
			 usual, SLOT, DRIVE_PAIRS, DRIVE_VECTORS, DRIVE_CMB >> 20);
}

static void run(const char *program, bool functions, int line, int ram, int rom, int disk)
{
	char memory[128], bios[64], drive[128], device[256];
	char *argv[] = {(char *)program,
			"-nodefaults",
			"-display",
			"none",
			"-machine",
			"q35,accel=tcg,memory-backend=m",
			"-m",
			"64",
			"-object",
			memory,
			"-bios",
			bios,
			"-drive",
			drive,
			"-qtest",
			"stdio",
			"-qtest-log",
			"none",
			"-device",
			functions ? "nvme-subsys,id=s" : device,
			functions ? "-device" : NULL,
			device,
			"-device",
			"nvme-ns,drive=d,bus=pf",
			NULL};

	snprintf(memory, sizeof(memory),
		 "memory-backend-file,id=m,size=64M,share=on,mem-path=/proc/self/fd/%d", ram);
	snprintf(bios, sizeof(bios), "/proc/self/fd/%d", rom);
	snprintf(drive, sizeof(drive), "if=none,id=d,format=raw,file=/proc/self/fd/%d", disk);
	describe(functions, device);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* it stays when its line is closed */
	dup2(line, 0);
	dup2(line, 1);
	execvp(program, argv);
	fprintf(stderr, "%s: %s\n", program, strerror(errno));
	_exit(127);
}

static int start(struct qemu *q, const char *program, bool functions)
{
	int ram = make_file("ram", RAM, 0), rom = make_file("rom", ROM, HALT);
	int disk = make_file("disk", DRIVE_MEDIA, 0), line[2];

	if (ram < 0 || rom < 0 || disk < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) < 0)
		return -errno;
	q->pid = fork();
	if (q->pid == 0)
		run(program, functions, line[1], ram, rom, disk);
	close(line[1]);
	close(rom);
	close(disk);
	q->to = fdopen(line[0], "w");
	q->from = fdopen(dup(line[0]), "r");
	q->ram = mmap(NULL, RAM, PROT_READ | PROT_WRITE, MAP_SHARED, ram, 0);
	close(ram);
	if (q->pid < 0 || !q->to || !q->from || q->ram == MAP_FAILED)
		return -ENOMEM;
	return 0;
}

struct drive *drive_qemu(const char *program, bool functions)
{
	struct qemu *q = calloc(1, sizeof(*q));
	int rc;

	if (!q)
		return NULL;
	signal(SIGPIPE, SIG_IGN);
	rc = start(q, program, functions);
	if (rc < 0) {
		fprintf(stderr, "%s cannot be started: %s\n", program, strerror(-rc));
		q->ram = q->ram == MAP_FAILED ? NULL : q->ram;
		qemu_close(&q->d);
		return NULL;
	}
	q->d = (struct drive){
		.memory = q->ram + DRIVE_MEMORY,
		.read = qemu_read,
		.write = qemu_write,
		.write64 = qemu_write64,
		.turn = qemu_turn,
		.function_reset = qemu_reset,
		.functions = functions ? qemu_functions : NULL,
		.interrupts = qemu_interrupts,
		.close = qemu_close,
	};
	/* The host bridge's register of ECAM. */
	ask(q, "outl 0xcf8 0x80000064");
	ask(q, "outl 0xcfc 0");
	ask(q, "outl 0xcf8 0x80000060");
	ask(q, "outl 0xcfc %#x", ECAM | 1);
	configure(q);
	return &q->d;
}
