/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NVMe controller model, inside: one controller, RAM or files for media. The files of
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
 * Red Hat's vendor id; for device 0x0010 pci.ids says "QEMU NVM Express Controller": the one pair
 * that drivers recognise as an emulated NVMe drive.
 */
#define EMU_NVME_PCI_VENDOR 0x1b36u
#define EMU_NVME_PCI_DEVICE 0x0010u
#define EMU_NVME_FIRMWARE "0.1.0   "		/* 8 characters */
#define EMU_NVME_VERSION 0x00010400u		/* 1.4.0 */
#define EMU_NVME_PAGE 4096u			/* CAP.MPSMIN = CAP.MPSMAX = 0 */
#define EMU_NVME_NAMESPACES SIO_TOPO_NAMESPACES /* at most; their ids begin with 1 */
#define EMU_NVME_FORMATS 2u			/* blocks of 512, and of 4096 bytes */
#define EMU_NVME_MDTS 8u			/* 2^8 pages: 1 MiB */
#define EMU_NVME_FETCH 32u			/* most entries fetched by one read */
#define EMU_NVME_BURST_LOG2 5u			/* Identify's recommended arbitration burst */
#define EMU_NVME_AERS 4u			/* Asynchronous Event Requests held at once */
#define EMU_NVME_ERRORS 64u			/* entries of the error log */
#define EMU_NVME_KELVIN 313u			/* the temperature, always */
#define EMU_NVME_WARN_KELVIN 343u
#define EMU_NVME_CRIT_KELVIN 353u

/*
 * Indices of the runs of BAR pages in the model's configuration. The next one is the controller
 * memory buffer's, if there is one: struct emu_nvme_cmb.
 */
enum { EMU_NVME_RUN_REGISTERS, EMU_NVME_RUN_DOORBELLS, EMU_NVME_RUN_MSIX };
#define EMU_NVME_CMB_BAR 2u

#define emu_nvme_likely(x) __builtin_expect(!!(x), 1)
#define emu_nvme_unlikely(x) __builtin_expect(!!(x), 0)

/*
 * The status of a completion without its phase bit, with Do Not Retry: the same command would fail
 * again.
 */
#define EMU_NVME_FAIL(name) ((unsigned)NVME_SC_DNR | (unsigned)NVME_SC_##name)
#define EMU_NVME_FAIL_SPECIFIC(name)                                                               \
	((unsigned)NVME_SC_DNR | (unsigned)NVME_SCT_CMD_SPECIFIC << NVME_SCT_SHIFT |               \
	 (unsigned)NVME_SC_##name)
/* Not a status: the command's completion follows later. */
#define EMU_NVME_HELD 0xffffu
/* The most completions that one admin command makes: an aborted command's, and its own twice. */
#define EMU_NVME_DONE 3u
#define EMU_NVME_NO_VECTOR 0xffffffffu

struct emu_nvme_cq {
	uint64_t addr;
	uint32_t size;		/* entries; 0: the queue does not exist */
	uint32_t tail, head;	/* next entry to post; the host's, as far as it was looked at */
	uint32_t doorbell_seen; /* so that a wrong value is logged once */
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

/* An interrupt vector. Aggregated: entries of I/O queues for which no interrupt was sent yet. */
struct emu_nvme_vector {
	bool no_coalescing; /* feature 09h */
	uint32_t aggregated;
	uint64_t since; /* when the first of them was posted */
};

/* Asynchronous events of one type. */
struct emu_nvme_event {
	uint8_t pending; /* a bit per kind (the "information" field) */
	bool masked;	 /* reported; silent until the host reads the log page */
};

/* Features that a host can change; a controller reset restores the defaults. */
struct emu_nvme_features {
	bool write_cache; /* of files: enabled */
	uint32_t arbitration, power, coalescing, atomicity, events;
	uint32_t recovery[EMU_NVME_NAMESPACES]; /* of each namespace */
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
	uint64_t faults, aborted, media_errors;
};

#define EMU_NVME_FAULTS 8u	 /* at once */
#define EMU_NVME_HELD_MOST 1024u /* commands that wait for their time; more are not delayed */

struct emu_nvme;
struct emu_nvme_files;
struct emu_nvme_answers;

/*
 * Executes a command, unless @status is an error, and completes it @times times as command @cid: as
 * often as there is room for.
 */
typedef void emu_nvme_complete(struct emu_nvme *m, struct emu_nvme_sq *sq,
			       const struct emu_nvme_sqe *sqe, __le16 cid, unsigned status,
			       unsigned times);

/* A command that is delayed. */
struct emu_nvme_held {
	struct emu_nvme_sqe sqe;
	struct emu_nvme_sq *sq;
	emu_nvme_complete *complete;
	uint64_t due;
};

/* The faults that are set, for tests of drivers. */
struct emu_nvme_faults {
	unsigned n, n_held;
	struct emu_dev_fault fault[EMU_NVME_FAULTS];
	struct emu_nvme_held held[EMU_NVME_HELD_MOST]; /* in the order in which they came */
};

/* How a command that is being carried out is completed, if not as usual. */
struct emu_nvme_reply {
	__le16 cid;
	unsigned times;
};

struct emu_nvme_ns {
	uint8_t *media; /* NULL: its blocks are in: */
	void *file;	/* of the store */
	uint64_t blocks;
	uint32_t max_blocks; /* of one command */
	unsigned block_shift;
	uint64_t size; /* bytes */
};

struct emu_nvme {
	/* Fields that every command needs. */
	struct emu_dev *dev;
	volatile uint32_t *doorbells;
	volatile uint32_t *view; /* of the registers' owner; NULL: nobody has it */
	uint32_t burst;
	uint32_t n_ns;
	struct emu_nvme_ns ns[EMU_NVME_NAMESPACES]; /* ns[0] has id 1 */
	unsigned n_active, next;
	struct emu_nvme_sq **active; /* the I/O submission queues that exist, in no order */
	bool running;		     /* enabled, not fatal, not shut down */
	bool attached;		     /* the pages below were asked for */
	unsigned n_aggregating;	     /* vectors with something aggregated */
	unsigned steps;
	unsigned pages;			/* of data moved, after each command's first; wraps */
	struct emu_nvme_faults *faults; /* NULL: there never was one */
	struct emu_nvme_files *files;	/* NULL: no namespace is in a file; the physical's */
	struct emu_nvme_sq *serving;	/* whose command is being carried out */
	const struct emu_nvme_answers *answers;
	const struct emu_nvme_reply *reply; /* NULL: as usual */
	unsigned n_ready;		    /* jobs that have ended, and were not looked at */
	struct emu_nvme_cmb cmb;
	struct emu_nvme_stats stats;

	/* Fields that few commands need. */
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
	uint8_t *media; /* of all namespaces, one behind the other */
	uint64_t media_size;
	uint64_t born; /* when, in nanoseconds */
	char name[SIO_NAME_LEN];
	char serial[20];	   /* padded with blanks */
	struct emu_nvme *physical; /* a virtual function: whose media it shares; else NULL */
	/* Of a physical function: its first virtual one; of a virtual function: the next one. */
	struct emu_nvme *next_function;
	bool left;	     /* a virtual function whose physical one is gone */
	bool offline;	     /* a secondary controller that no host may use */
	uint16_t controller; /* id of the drive's controller: 0, or the number of the function */
	struct emu_nvme_features feature;
	struct emu_nvme_event event[2]; /* NVME_AER_ERROR, NVME_AER_SMART */
	bool hot;			/* the temperature is beyond a threshold: for its edge */
	uint16_t aer[EMU_NVME_AERS];
	unsigned n_aer;
	struct emu_nvme_done done[EMU_NVME_DONE];
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
/* Sets a register, in view and mirror, too, where they exist. */
void emu_nvme_reg_set(struct emu_nvme *m, unsigned word, uint32_t value);
void emu_nvme_csts_set(struct emu_nvme *m, uint32_t value);
/* Sets CSTS.CFS: the controller does nothing more until it is reset. */
void emu_nvme_fatal(struct emu_nvme *m);
bool emu_nvme_is_enabled(const struct emu_nvme *m);
uint32_t emu_nvme_cc(const struct emu_nvme *m);

/* function.c: controllers of one drive. */
/* Adds a new controller to those of @physical (NULL: it is the first). */
void emu_nvme_function_join(struct emu_nvme *m, struct emu_nvme *physical);
/* @m is destroyed; the others may still be there. */
void emu_nvme_function_leave(struct emu_nvme *m);
/*
 * Tells the drive's other controllers that its media or its block size have changed, as @m has
 * them.
 */
void emu_nvme_functions_follow(struct emu_nvme *m);
/* Are there secondary controllers, which this one is the primary of (section 8.5)? */
static inline bool emu_nvme_is_primary(const struct emu_nvme *m)
{
	return !m->physical && m->next_function;
}
/* Has the SR-IOV capability enabled its function? */
static inline bool emu_nvme_is_there(const struct emu_nvme *m)
{
	struct emu_dev *pf = m->physical && !m->left ? m->physical->dev : NULL;

	return !pf || !pf->functions || pf->functions(pf) >= m->controller;
}
/* A reset of the primary controller's function: all secondary ones are as at the start. */
void emu_nvme_functions_renew(struct emu_nvme *m);
/* Is another controller of the drive enabled? */
bool emu_nvme_functions_busy(struct emu_nvme *m);
/* Are there other controllers? */
static inline bool emu_nvme_functions(const struct emu_nvme *m)
{
	return m->physical || m->next_function;
}

/* virtual.c: of the primary controller; they return a status. */
unsigned emu_nvme_identify_primary(struct emu_nvme *m);
/* Those with ids from @first on. */
unsigned emu_nvme_identify_secondaries(struct emu_nvme *m, uint32_t first);
unsigned emu_nvme_virtualization(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);

/* file.c: commands on namespaces that are in a file; they return a status. Blocks were checked. */
/* Opens the files that @t names; those that are open stay so on failure. */
int emu_nvme_files_open(struct emu_nvme *m, const struct sio_topo_device *t,
			struct sio_err *reterr);
/* Waits for what is under way, and closes them. */
void emu_nvme_files_close(struct emu_nvme *m);
/* Read, Compare, Verify. */
unsigned emu_nvme_file_read(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint64_t lba,
			    uint32_t count);
unsigned emu_nvme_file_write(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint64_t lba,
			     uint32_t count);
unsigned emu_nvme_file_zero(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint64_t lba,
			    uint32_t count);
unsigned emu_nvme_file_deallocate(struct emu_nvme *m, const struct emu_nvme_sqe *sqe,
				  const struct nvme_dsm_range *r, unsigned n);
/* Of namespaces [@first, @end); 0 at once if none of them is in a file. */
unsigned emu_nvme_files_flush(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint32_t first,
			      uint32_t end);
/* The same for all of them, and for the commands that are under way, too. */
unsigned emu_nvme_files_empty(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
unsigned emu_nvme_files_format(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint32_t first,
			       uint32_t end);
/* Begins what a shutdown must write. False: nothing; else emu_nvme_shutdown_done() follows. */
bool emu_nvme_files_shutdown(struct emu_nvme *m);

/* answer.c */
extern const struct emu_nvme_answers emu_nvme_answers;

/* job.c */
/* Continues and answers jobs. Return: work done. */
unsigned emu_nvme_jobs_run(struct emu_nvme *m);
/* True: none can go on before the store wakes the room. */
bool emu_nvme_jobs_idle(const struct emu_nvme *m);
/* Are there fewer than @n free ones? */
bool emu_nvme_jobs_full(const struct emu_nvme *m, uint32_t n);
uint32_t emu_nvme_jobs_room(const struct emu_nvme *m);
/* Nobody waits for the jobs of @sq, which is deleted; NULL: all, without completions. */
void emu_nvme_jobs_end(struct emu_nvme *m, const struct emu_nvme_sq *sq);
/*
 * Ends one that has not ended, of an I/O queue, with Command Abort Requested. False: there is none,
 * or no room for its completion.
 */
bool emu_nvme_jobs_abort(struct emu_nvme *m, const struct emu_nvme_sq *sq, __le16 cid);
/* Waits for all that is under way, and forgets it. */
void emu_nvme_jobs_drain(struct emu_nvme *m);

/* reset.c */
/* What a controller reset does to everything but the registers. */
void emu_nvme_controller_reset(struct emu_nvme *m);
/* A reset of its function, of which there may be no pages just now. */
void emu_nvme_function_reset(struct emu_nvme *m);
/* Asks the room for the pages, which change only with view_changed() and reset(). */
void emu_nvme_attach(struct emu_nvme *m);
void emu_nvme_regs_defaults(struct emu_nvme *m);
/* Writes the registers into view and mirror, where they exist. */
void emu_nvme_regs_publish(struct emu_nvme *m);

/* regs.c */
/* All is on the disk that a shutdown must write. */
void emu_nvme_shutdown_done(struct emu_nvme *m);
/* Acts on a change of CC. Return: whether there was one. */
bool emu_nvme_regs_poll(struct emu_nvme *m);
/*
 * Restores what the owner of the registers wrote to read-only registers, a slice of the page at a
 * time.
 */
void emu_nvme_regs_scrub(struct emu_nvme *m);
/* The number of slices of the page; the second function skips @n of them. */
unsigned emu_nvme_regs_slices(void);
void emu_nvme_regs_skip(struct emu_nvme *m, uint64_t n);

/* cmb.c */
/* Sets the registers as they are after a reset other than the controller's own. */
void emu_nvme_cmb_defaults(struct emu_nvme *m);
/* The host has written to CMBMSC. */
void emu_nvme_cmb_control(struct emu_nvme *m);
int emu_nvme_cmb_read(struct emu_nvme *m, uint64_t addr, void *buf, size_t len);
int emu_nvme_cmb_write(struct emu_nvme *m, uint64_t addr, const void *buf, size_t len);

/* Reads or writes; not 0: it cannot be read, or part of it cannot be written. */
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
/* Takes the submission queue's doorbell. Return: entries that wait. */
uint32_t emu_nvme_sq_waiting(struct emu_nvme *m, struct emu_nvme_sq *sq);
/* Entries that may be posted; reads the doorbell if fewer than @wanted are known. */
uint32_t emu_nvme_cq_room(struct emu_nvme *m, struct emu_nvme_cq *cq, uint32_t wanted);
void emu_nvme_cq_poll(struct emu_nvme *m, struct emu_nvme_cq *cq);
/*
 * Fetches @n entries from the head on, which must not wrap. False: the controller is in fatal state
 * now.
 */
bool emu_nvme_fetch(struct emu_nvme *m, struct emu_nvme_sq *sq, uint32_t n);
/* The completion queue must have room. */
void emu_nvme_post(struct emu_nvme *m, const struct emu_nvme_sq *sq, __le16 cid, unsigned status,
		   uint32_t result);
/* Serves each I/O submission queue once, or until @budget units are done. Return: units done. */
unsigned emu_nvme_queues_run(struct emu_nvme *m, unsigned budget);
/* True: no command can be executed before a doorbell changes. */
bool emu_nvme_queues_idle(const struct emu_nvme *m);

/*
 * interrupt.c: entries were posted to @cq, which has interrupts: raises its vector, or aggregates.
 * @urgent: one of them reports a failure, which is never delayed.
 */
void emu_nvme_interrupt(struct emu_nvme *m, struct emu_nvme_cq *cq, bool urgent);
/* Raises the vectors whose aggregation time is over; not to be called in every step. */
void emu_nvme_interrupts_due(struct emu_nvme *m);
void emu_nvme_interrupts_forget(struct emu_nvme *m);

/* fault.c */
int emu_nvme_fault_set(struct emu_nvme *m, const struct emu_dev_fault *f, struct sio_err *reterr);
/*
 * Does a fault apply to the command? Then the fault completes it, now or later by @complete.
 * @failed: see interrupt.c
 */
bool emu_nvme_fault_takes(struct emu_nvme *m, struct emu_nvme_sq *sq,
			  const struct emu_nvme_sqe *sqe, emu_nvme_complete *complete,
			  bool *failed);
/* Does a fault hide the new tail of @sq? */
bool emu_nvme_fault_hides(struct emu_nvme *m, const struct emu_nvme_sq *sq);
/* Executes commands whose delay is over. Return: how many. */
unsigned emu_nvme_held_run(struct emu_nvme *m);
bool emu_nvme_held_any(const struct emu_nvme *m);
/*
 * Completes a delayed command with @status instead. False: no such command waits, or it cannot be
 * posted now.
 */
bool emu_nvme_held_abort(struct emu_nvme *m, const struct emu_nvme_sq *sq, __le16 cid,
			 unsigned status);
/* Drops the delayed commands of @sq, which is deleted; NULL: all, without completions. */
void emu_nvme_held_end(struct emu_nvme *m, const struct emu_nvme_sq *sq);

/* doorbell.c */
void emu_nvme_doorbells_zero(struct emu_nvme *m);
void emu_nvme_doorbell_zero(struct emu_nvme *m, unsigned word);
/*
 * Reports a wrong value at @word: of queue @id, which may not exist (@info: enum
 * nvme_ae_info_error).
 */
void emu_nvme_doorbell_invalid(struct emu_nvme *m, unsigned word, uint32_t value, unsigned info);
/* Checks a slice of the doorbells that the data path does not read. */
void emu_nvme_doorbells_scan(struct emu_nvme *m);
/* The number of slices of all doorbells; the second function skips @n of them. */
unsigned emu_nvme_doorbells_slices(const struct emu_nvme *m);
void emu_nvme_doorbells_skip(struct emu_nvme *m, uint64_t n);

/* shadow.c */
unsigned emu_nvme_doorbell_buffer(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
/* Copies the doorbells in the host's memory into the model's. */
void emu_nvme_shadow_poll(struct emu_nvme *m);
/*
 * Before sleep: asks the host to ring for its next entry, and checks once more for entries that
 * came meanwhile. Return: whether there were any.
 */
bool emu_nvme_shadow_arm(struct emu_nvme *m);
/* The queue of doorbell @word is new: the host may have zeroed what the controller wrote. */
void emu_nvme_shadow_anew(struct emu_nvme *m, unsigned word);
void emu_nvme_shadow_forget(struct emu_nvme *m);

/* blocks.c: commands on blocks that move no data; format.c; they return a status. */
unsigned emu_nvme_compare(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
unsigned emu_nvme_write_zeroes(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
unsigned emu_nvme_verify(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
unsigned emu_nvme_dataset_management(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
unsigned emu_nvme_format(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
/* Blocks of 1 << @shift bytes, 9 or 12. */
void emu_nvme_set_blocks(struct emu_nvme_ns *ns, unsigned shift);
/* Makes @len bytes of the namespace from @offset on read as zeros. */
void emu_nvme_zero(struct emu_nvme *m, struct emu_nvme_ns *ns, uint64_t offset, uint64_t len);
/* Places each namespace within @media. */
void emu_nvme_place(struct emu_nvme *m, uint8_t *media);

/* io.c: a status */
/* NULL: there is none with this id. */
static inline struct emu_nvme_ns *emu_nvme_ns(struct emu_nvme *m, uint32_t nsid)
{
	return emu_nvme_likely(nsid - 1 < m->n_ns) ? &m->ns[nsid - 1] : NULL;
}
/* The status of a command for namespace @nsid, which does not exist. */
unsigned emu_nvme_no_namespace(uint32_t nsid);
unsigned emu_nvme_io(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
/* A command will be executed soon: prefetches the start of its data. It is not checked yet. */
void emu_nvme_io_soon(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);

/* The direction of the data; EMU_NVME_LOOK: none, only the addresses are checked. */
enum emu_nvme_direction { EMU_NVME_TO_HOST, EMU_NVME_FROM_HOST, EMU_NVME_COMPARE, EMU_NVME_LOOK };
/* prp.c: moves @len bytes at @addr; returns a status. */
unsigned emu_nvme_move(struct emu_nvme *m, enum emu_nvme_direction dir, uint64_t addr, uint8_t *buf,
		       size_t len);
/* sgl.c: the same for the data that the command's scatter gather list names. */
unsigned emu_nvme_sgl_move(struct emu_nvme *m, enum emu_nvme_direction dir,
			   const struct emu_nvme_sqe *sqe, uint8_t *buf, size_t len);
#define EMU_NVME_PSDT 0xc0u /* of a command's flags: 0: PRP entries; 0xc0: reserved; else SGLs */

/* prp.c: moves @len bytes between @buf and the memory that the entries name; returns a status. */
unsigned emu_nvme_prp_to_host(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, const void *buf,
			      size_t len);
unsigned emu_nvme_prp_from_host(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, void *buf,
				size_t len);
/* Compares; Compare Failure where they differ. */
unsigned emu_nvme_prp_compare(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, const void *buf,
			      size_t len);

/* admin.c: handles one command or event of the admin queue pair. Return: work done. */
unsigned emu_nvme_admin_run(struct emu_nvme *m);
/* Completes a command that was held. */
void emu_nvme_admin_done(struct emu_nvme *m, __le16 cid, unsigned status, unsigned times);
bool emu_nvme_admin_idle(const struct emu_nvme *m);

/* admin_queue.c, identify.c, feature.c, log.c: each returns a status; *result is 0 before. */
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
/* Adds a failed command, or (@sqe NULL) an error without a command, to the error log. */
void emu_nvme_error(struct emu_nvme *m, unsigned sq_id, const struct emu_nvme_sqe *sqe,
		    unsigned status);
/* Returns the bits of the SMART log's critical warning. */
uint8_t emu_nvme_critical_warning(const struct emu_nvme *m);

/* event.c */
void emu_nvme_event_raise(struct emu_nvme *m, unsigned type, unsigned info);
/* The host has read the log page of events of @type. */
void emu_nvme_event_unmask(struct emu_nvme *m, unsigned type);
/* After a change of thresholds: raises or drops the temperature event. */
void emu_nvme_event_temperature(struct emu_nvme *m);
/* Is there an event to report, and a request to report it by? */
bool emu_nvme_event_ready(const struct emu_nvme *m);
/* Completes a request with the next event; the admin completion queue must have room. */
void emu_nvme_event_report(struct emu_nvme *m);
unsigned emu_nvme_async_event_request(struct emu_nvme *m, const struct emu_nvme_sqe *sqe);
unsigned emu_nvme_abort(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint32_t *result);

#endif
