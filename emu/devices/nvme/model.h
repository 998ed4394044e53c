/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NVMe controller model, inside: one controller, one namespace, RAM for media. The files of
 * this folder share this header; the machine room sees emu_nvme_model of emu/devices/model.h only.
 *
 * What a host can write to (register page, doorbells, queue entries, PRP lists) is hostile: it is
 * read once into a local or into the model's own buffers, and the copy is checked.
 */
#ifndef EMU_DEVICES_NVME_MODEL_H
#define EMU_DEVICES_NVME_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nvme/types.h>

#include "core/types.h"
#include "emu/devices/model.h"
#include "emu/devices/nvme/entry.h"

/*
 * Red Hat's vendor id; with device 0x0010 pci.ids says "QEMU NVM Express Controller": the one pair
 * that drivers know as an emulated NVMe drive.
 */
#define EMU_NVME_PCI_VENDOR 0x1b36u
#define EMU_NVME_PCI_DEVICE 0x0010u
#define EMU_NVME_FIRMWARE "0.1.0   " /* 8 characters */
#define EMU_NVME_VERSION 0x00010400u /* 1.4.0 */
#define EMU_NVME_PAGE 4096u	     /* CAP.MPSMIN = CAP.MPSMAX = 0 */
#define EMU_NVME_NSID 1u
#define EMU_NVME_FORMATS 2u    /* blocks of 512, and of 4096 bytes */
#define EMU_NVME_MDTS 8u       /* 2^8 pages: 1 MiB */
#define EMU_NVME_FETCH 32u     /* most entries fetched by one read */
#define EMU_NVME_BURST_LOG2 5u /* Identify's recommended arbitration burst */
#define EMU_NVME_AERS 4u       /* Asynchronous Event Requests held at once */
#define EMU_NVME_ERRORS 64u    /* entries of the error log */
#define EMU_NVME_KELVIN 313u   /* the temperature, always */
#define EMU_NVME_WARN_KELVIN 343u
#define EMU_NVME_CRIT_KELVIN 353u

/*
 * Indices of the runs of BAR pages in the model's configuration. Behind them is the controller
 * memory buffer's, if there is one: struct emu_nvme_cmb.
 */
enum { EMU_NVME_RUN_REGISTERS, EMU_NVME_RUN_DOORBELLS, EMU_NVME_RUN_MSIX };
#define EMU_NVME_CMB_BAR 2u

#define emu_nvme_likely(x) __builtin_expect(!!(x), 1)
#define emu_nvme_unlikely(x) __builtin_expect(!!(x), 0)

/* Status of a completion without its phase bit; the same command again would fail again. */
#define EMU_NVME_FAIL(name) ((unsigned)NVME_SC_DNR | (unsigned)NVME_SC_##name)
#define EMU_NVME_FAIL_SPECIFIC(name)                                                               \
	((unsigned)NVME_SC_DNR | (unsigned)NVME_SCT_CMD_SPECIFIC << NVME_SCT_SHIFT |               \
	 (unsigned)NVME_SC_##name)
/* No status: the command's completion comes later. */
#define EMU_NVME_HELD 0xffffu
#define EMU_NVME_NO_VECTOR 0xffffffffu
#define EMU_NVME_MAX_VECTORS 2048u /* of MSI-X */

struct emu_nvme_cq {
	uint64_t addr;
	uint32_t size;		/* entries; 0: the queue does not exist */
	uint32_t tail, head;	/* next entry to post; the host's, as far as it was looked at */
	uint32_t doorbell_seen; /* so that a wrong value is told once */
	uint16_t phase;
	uint16_t id;
	unsigned users; /* submission queues that complete here */
	bool interrupts;
	uint16_t vector;
	uint32_t untold; /* entries posted since the vector was last thought of */
};

struct emu_nvme_sq {
	uint64_t addr;
	uint32_t size;
	uint32_t head, tail;
	uint32_t doorbell_seen;
	uint16_t id;
	uint32_t cost; /* of the last run of commands, units for each, rounded up */
	struct emu_nvme_cq *cq;
};

/* A completion of the admin queue that waits for a free entry. */
struct emu_nvme_done {
	uint32_t result;
	uint16_t cid, status;
};

/* An interrupt vector. Aggregated: entries of I/O queues that no interrupt told of yet. */
struct emu_nvme_vector {
	bool no_coalescing; /* feature 09h */
	uint32_t aggregated;
	uint64_t since; /* when the first of them was posted */
};

/* Asynchronous events of one type. */
struct emu_nvme_event {
	uint8_t pending; /* a bit per kind (the "information" field) */
	bool masked;	 /* told; silent until the host reads the log page */
};

/* Features that a host can change; a controller reset brings the defaults back. */
struct emu_nvme_features {
	uint32_t arbitration, power, recovery, coalescing, atomicity, events;
	uint16_t temp_over, temp_under;
};

/* Doorbells in the host's memory (Doorbell Buffer Config). */
struct emu_nvme_shadow {
	bool used;
	uint64_t values, events; /* where the host stores them, and where it is told to wake us */
	uint32_t *armed;	 /* what stands in @events, for each doorbell word */
};

/* Memory of the controller's own. */
struct emu_nvme_cmb {
	bool on;	/* it lies at @base on the bus, as the host said */
	uint32_t bytes; /* 0: there is none */
	uint64_t base;
	uint8_t *data;
	unsigned run;
};

struct emu_nvme_stats {
	uint64_t reads, writes, flushes, admin, failed;
	uint64_t compares, zeroes, deallocates, verifies, formats;
	uint64_t read_bytes, written_bytes, compared_bytes;
	uint64_t fatal, invalid_doorbells, lost_writes, resets, power_cycles, unsafe_shutdowns;
	uint64_t interrupts;
};

struct emu_nvme {
	/* What every command needs. */
	struct emu_dev *dev;
	volatile uint32_t *doorbells;
	volatile uint32_t *view; /* of the registers' holder; NULL: nobody has it */
	uint8_t *media;
	uint64_t blocks;
	uint32_t max_blocks; /* of one command */
	uint32_t burst;
	unsigned block_shift;
	unsigned n_active, next;
	struct emu_nvme_sq **active; /* the I/O submission queues that exist, in no order */
	bool running;		     /* enabled, not fatal, not shut down */
	bool attached;		     /* the pages below were asked for */
	unsigned n_aggregating;	     /* vectors with something aggregated */
	unsigned steps;
	unsigned pages; /* of data moved, after each command's first; wraps */
	struct emu_nvme_cmb cmb;
	struct emu_nvme_stats stats;

	/* What few commands need. */
	volatile uint32_t *mirror;
	struct emu_nvme_sq *sq; /* queue_pairs + 1 each; 0: admin */
	struct emu_nvme_cq *cq;
	uint32_t queue_pairs, queue_entries;
	struct emu_nvme_vector *vector;
	uint32_t vectors;	 /* 0: the drive has no interrupts */
	unsigned n_cqs;		 /* I/O completion queues that exist */
	bool queues_were_made;	 /* since the controller was enabled */
	unsigned doorbell_words; /* in the doorbell pages */
	unsigned doorbell_next;	 /* where the slow look goes on */
	unsigned register_next;
	uint64_t media_size;
	uint64_t born; /* when, in nanoseconds */
	char name[SIO_NAME_LEN];
	char serial[20]; /* padded with blanks */
	struct emu_nvme_features feature;
	struct emu_nvme_event event[2]; /* NVME_AER_ERROR, NVME_AER_SMART */
	bool hot;			/* the temperature is beyond a threshold: for its edge */
	uint16_t aer[EMU_NVME_AERS];
	unsigned n_aer;
	struct emu_nvme_done done[2]; /* of one admin command: an aborted one's and its own */
	unsigned n_done;
	uint64_t n_errors;
	struct nvme_error_log_page error[EMU_NVME_ERRORS]; /* n_errors % EMU_NVME_ERRORS is next */
	uint32_t reg[EMU_NVME_PAGE / 4];		   /* the registers as they are */
	struct emu_nvme_sqe fetched[EMU_NVME_FETCH] __attribute__((aligned(64)));
	struct emu_nvme_shadow shadow;
	uint64_t prp[EMU_NVME_PAGE / 8];
	uint8_t page[EMU_NVME_PAGE] __attribute__((aligned(64))); /* data structures to send */
};

/* base.c */
#define EMU_NVME_WORD(offset) ((unsigned)(offset) / 4) /* of a register */
void emu_nvme_log(struct emu_nvme *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* In view and mirror, too, where there are such. */
void emu_nvme_reg_set(struct emu_nvme *m, unsigned word, uint32_t value);
void emu_nvme_csts_set(struct emu_nvme *m, uint32_t value);
/* CSTS.CFS: the controller does nothing more until it is reset. */
void emu_nvme_fatal(struct emu_nvme *m);
bool emu_nvme_is_enabled(const struct emu_nvme *m);
uint32_t emu_nvme_cc(const struct emu_nvme *m);

/* model.c */
/* What a controller reset does to everything but the registers. */
void emu_nvme_controller_reset(struct emu_nvme *m);

/* regs.c */
void emu_nvme_regs_defaults(struct emu_nvme *m);
/* Put the registers as they are into view and mirror, where there are such. */
void emu_nvme_regs_publish(struct emu_nvme *m);
/* Act on a change of CC. Return: whether there was one. */
bool emu_nvme_regs_poll(struct emu_nvme *m);
/* Put right what the holder wrote to read-only registers, a slice of the page at a time. */
void emu_nvme_regs_scrub(struct emu_nvme *m);
/* So many slices are the page; @n of them are not looked at. */
unsigned emu_nvme_regs_slices(void);
void emu_nvme_regs_skip(struct emu_nvme *m, uint64_t n);

/* cmb.c */
/* Registers as they are after a reset that is not the controller's own. */
void emu_nvme_cmb_defaults(struct emu_nvme *m);
/* The host wrote to CMBMSC. */
void emu_nvme_cmb_control(struct emu_nvme *m);
int emu_nvme_cmb_read(struct emu_nvme *m, uint64_t addr, void *buf, size_t len);
int emu_nvme_cmb_write(struct emu_nvme *m, uint64_t addr, const void *buf, size_t len);

/* Not 0: it cannot be read, or something of it not be written. */
static inline int emu_nvme_read(struct emu_nvme *m, uint64_t addr, void *buf, size_t len)
{
	if (emu_nvme_unlikely(m->cmb.on))
		return emu_nvme_cmb_read(m, addr, buf, len);
	return m->dev->read(m->dev, addr, buf, len);
}

static inline int emu_nvme_write(struct emu_nvme *m, uint64_t addr, const void *buf, size_t len)
{
	if (emu_nvme_unlikely(m->cmb.on))
		return emu_nvme_cmb_write(m, addr, buf, len);
	return m->dev->write(m->dev, addr, buf, len);
}

/* queue.c */
/* @vector: EMU_NVME_NO_VECTOR: no interrupts. */
void emu_nvme_cq_init(struct emu_nvme *m, unsigned id, uint64_t addr, uint32_t size,
		      unsigned vector);
void emu_nvme_cq_fini(struct emu_nvme *m, unsigned id);
void emu_nvme_sq_init(struct emu_nvme *m, unsigned id, uint64_t addr, uint32_t size, unsigned cq);
void emu_nvme_sq_fini(struct emu_nvme *m, unsigned id);
void emu_nvme_queues_gone(struct emu_nvme *m);
/* Take the submission queue's doorbell. Return: entries that wait. */
uint32_t emu_nvme_sq_waiting(struct emu_nvme *m, struct emu_nvme_sq *sq);
/* Entries that may be posted; looks at the doorbell if those known are fewer than @wanted. */
uint32_t emu_nvme_cq_room(struct emu_nvme *m, struct emu_nvme_cq *cq, uint32_t wanted);
void emu_nvme_cq_poll(struct emu_nvme *m, struct emu_nvme_cq *cq);
/* Fetch @n entries from the head on, which must not wrap. False: the controller is fatal now. */
bool emu_nvme_fetch(struct emu_nvme *m, struct emu_nvme_sq *sq, uint32_t n);
/* The completion queue must have room. */
void emu_nvme_post(struct emu_nvme *m, const struct emu_nvme_sq *sq, __le16 cid, unsigned status,
		   uint32_t result);
/* Serve each I/O submission queue once, or until @budget units are done. Return: units done. */
unsigned emu_nvme_queues_run(struct emu_nvme *m, unsigned budget);
/* True: no command could be done before a doorbell changes. */
bool emu_nvme_queues_idle(const struct emu_nvme *m);

/*
 * interrupt.c: entries were posted to @cq, which has interrupts: raise its vector, or aggregate.
 * @urgent: one of them tells of a failure, which is never held back.
 */
void emu_nvme_interrupt(struct emu_nvme *m, struct emu_nvme_cq *cq, bool urgent);
/* Raise the vectors whose aggregation time is over; not for every step. */
void emu_nvme_interrupts_due(struct emu_nvme *m);
void emu_nvme_interrupts_forget(struct emu_nvme *m);

/* doorbell.c */
void emu_nvme_doorbells_zero(struct emu_nvme *m);
void emu_nvme_doorbell_zero(struct emu_nvme *m, unsigned word);
/* A wrong value at @word: of queue @id, which may not exist (@info: enum nvme_ae_info_error). */
void emu_nvme_doorbell_invalid(struct emu_nvme *m, unsigned word, uint32_t value, unsigned info);
/* Look at a slice of the doorbells that the data path does not read. */
void emu_nvme_doorbells_scan(struct emu_nvme *m);
/* So many slices are all of them; @n are not looked at. */
unsigned emu_nvme_doorbells_slices(const struct emu_nvme *m);
void emu_nvme_doorbells_skip(struct emu_nvme *m, uint64_t n);

/* shadow.c */
unsigned emu_nvme_doorbell_buffer(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
/* Take what the host's memory says into the doorbells. */
void emu_nvme_shadow_poll(struct emu_nvme *m);
/*
 * Before sleep: ask the host to ring for what comes next, and look once more, for what came
 * meanwhile. Return: whether that was needed.
 */
bool emu_nvme_shadow_arm(struct emu_nvme *m);
/* The queue of doorbell @word is a new one: the host may have zeroed what we told it. */
void emu_nvme_shadow_anew(struct emu_nvme *m, unsigned word);
void emu_nvme_shadow_forget(struct emu_nvme *m);

/* blocks.c: commands on blocks whose data do not move; format.c; a status each */
unsigned emu_nvme_compare(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
unsigned emu_nvme_write_zeroes(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
unsigned emu_nvme_verify(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
unsigned emu_nvme_dataset_management(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
unsigned emu_nvme_format(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
/* Blocks of 1 << @shift bytes, 9 or 12. */
void emu_nvme_set_blocks(struct emu_nvme *m, unsigned shift);
/* @len bytes from @offset on read as zeros. */
void emu_nvme_zero(struct emu_nvme *m, uint64_t offset, uint64_t len);

/* io.c: a status */
/* A command that is not for all namespaces is for @nsid: 0, or how that is wrong. */
unsigned emu_nvme_check_namespace(uint32_t nsid);
unsigned emu_nvme_io(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
/* The command comes soon: fetch what its data begin with. It is not checked yet. */
void emu_nvme_io_soon(const struct emu_nvme *m, const struct emu_nvme_sqe *sqe);

/* prp.c: move @len bytes between @buf and the memory that the entries name; a status. */
unsigned emu_nvme_prp_to_host(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, const void *buf,
			      size_t len);
unsigned emu_nvme_prp_from_host(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, void *buf,
				size_t len);
/* Compare Failure where they differ. */
unsigned emu_nvme_prp_compare(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, const void *buf,
			      size_t len);

/* admin.c: one command or event of the admin queue pair. Return: work done. */
unsigned emu_nvme_admin_run(struct emu_nvme *m);
bool emu_nvme_admin_idle(const struct emu_nvme *m);

/* admin_queue.c, identify.c, feature.c, log.c: a status each; *result is 0 before */
unsigned emu_nvme_create_sq(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
unsigned emu_nvme_create_cq(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
unsigned emu_nvme_delete_sq(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
unsigned emu_nvme_delete_cq(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
unsigned emu_nvme_identify(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
void emu_nvme_features_defaults(struct emu_nvme *m);
unsigned emu_nvme_get_features(struct emu_nvme *m, const struct emu_nvme_sqe *sqe,
			       uint32_t *result);
unsigned emu_nvme_set_features(struct emu_nvme *m, const struct emu_nvme_sqe *sqe,
			       uint32_t *result);
unsigned emu_nvme_get_log_page(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
/* Enter a failed command, or (@sqe NULL) an error that is no command's, into the error log. */
void emu_nvme_error(struct emu_nvme *m, unsigned sq_id, const struct emu_nvme_sqe *sqe,
		    unsigned status);
/* Bits of the SMART log's critical warning. */
uint8_t emu_nvme_critical_warning(const struct emu_nvme *m);

/* event.c */
void emu_nvme_event_raise(struct emu_nvme *m, unsigned type, unsigned info);
/* The host has read the log page of events of @type. */
void emu_nvme_event_unmask(struct emu_nvme *m, unsigned type);
/* After a change of thresholds: raise or forget the temperature event. */
void emu_nvme_event_temperature(struct emu_nvme *m);
/* Is there an event to tell, and a request to tell it by? */
bool emu_nvme_event_ready(const struct emu_nvme *m);
/* Complete a request with the next event; the admin completion queue must have room. */
void emu_nvme_event_tell(struct emu_nvme *m);
unsigned emu_nvme_async_event_request(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
unsigned emu_nvme_abort(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint32_t *result);

#endif
