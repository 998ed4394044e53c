/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The models of drives, memory devices and accelerators, between the room and the fabric: their
 * reads push their writes, their writes are posted, a drive's commands take time.
 *
 * The model does a command at once, in no time. What it writes for it is held until the command
 * would be over: reads take a round trip, one after the other; then one of a few units of the media
 * is busy. Completions come in the order in which commands began.
 *
 * Drives look at their doorbells for ever. One that would find nothing is not asked: its looks are
 * counted, and made up for when somebody has stored into its pages.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emu/devices/model.h"
#include "fabric/fabric.h"
#include "smartio/io.h"
#include "edge/edge.h"
#include "edge/trouble.h"

void (*fabric_on_dma)(const struct sio_topo_device *device, uint64_t at, size_t len, bool write);
void (*fabric_on_reached)(const struct sio_topo_device *device, uint64_t at, size_t len,
			  const struct fabric_mem *mem);

#define CQE_BYTES 16u
/* longer transfers are data; shorter ones are commands, completions or lists */
#define DATA_BYTES 512u
#define CC 0x14u
#define CC_EN 1u
#define UNITS 64u

struct drive {
	struct emu_dev dev; /* the device as the model knows it */
	struct emu_dev *real;
	const struct emu_dev_model *kind;
	void *model;
	struct trouble *trouble; /* NULL: no faults are wanted */
	const struct sio_topo_device *topo;
	unsigned requester, registers, doorbells, full_look;
	uint64_t busy_until; /* of reads */
	uint64_t hold;	     /* nothing is sent before this time */
	uint64_t unit[UNITS];
	bool has_read, has_written; /* data were read or written for the command under way */

	/* Its pages; NULL: there are none, or nobody holds the registers. */
	const struct fabric_mem *view, *bells;
	uint64_t stores; /* to both kinds of pages, as of the last look */
	/* to registers anywhere: while this does not change, no store to these has come */
	uint64_t all_stores;
	unsigned nothing; /* looks since then that found nothing */
	bool reads;	  /* a look makes a read, so writes that are due arrive first */
	uint64_t skipped; /* looks that the model was spared */
};

/* The others have no media, no commands that take time, and no trouble. */
static bool is_drive(const struct drive *d)
{
	return d->kind == &emu_nvme_model;
}

/* ---- what the drive's model calls ---- */
static void media(struct drive *d, uint64_t ns)
{
	unsigned u = 0;
	uint64_t start;

	for (unsigned i = 1; i < fabric_params.media_units && i < UNITS; i++)
		if (d->unit[i] < d->unit[u])
			u = i;
	start = fabric_actor.clock > d->unit[u] ? fabric_actor.clock : d->unit[u];
	d->unit[u] = start + ns;
	if (fabric_actor.hold < d->unit[u])
		fabric_actor.hold = d->unit[u];
}

/*
 * An accelerator has the room copy between the fabric and its own memory, which is fabric memory
 * here: its words are loaded before the write is sent, and stored when the read has come back.
 */
static void *bounce_new(const void *buf, size_t len)
{
	void *at = fabric_is_ours(buf) ? malloc(len) : NULL;

	assert(at || !fabric_is_ours(buf));
	return at;
}

static int read_fabric(struct drive *d, uint64_t addr, void *buf, size_t len)
{
	void *bounce = bounce_new(buf, len);
	int rc = d->real->read(d->real, addr, bounce ? bounce : buf, len);

	if (bounce && rc == 0)
		sio_copy_to(buf, bounce, len);
	free(bounce);
	return rc;
}

static int dma_read(struct emu_dev *dev, uint64_t addr, void *buf, size_t len)
{
	struct drive *d = (struct drive *)dev;
	int rc;

	if (d->trouble && trouble_fails(d->trouble, addr, len))
		return -EFAULT;
	if (fabric_on_dma)
		fabric_on_dma(d->topo, addr, len, false);
	fabric_actor.far = true;
	fabric_actor.last = NULL;
	rc = read_fabric(d, addr, buf, len);
	fabric_actor.far = false;
	if (rc == 0 && fabric_actor.last && fabric_on_reached)
		fabric_on_reached(d->topo, addr, len, fabric_actor.last);
	if (rc == 0 && d->trouble)
		trouble_saw(d->trouble, addr, buf, len);
	if (rc == 0 && fabric_actor.last && fabric_actor.who != FABRIC_NOBODY)
		fabric_actor.clock += fabric_read_time(fabric_actor.who, fabric_actor.last, len);
	d->has_read |= len >= DATA_BYTES;
	return rc;
}

int fabric_dev_write(struct emu_dev *real, const struct sio_topo_device *topo, uint64_t addr,
		     const void *buf, size_t len)
{
	void *bounce = bounce_new(buf, len);
	int rc;

	if (bounce)
		sio_copy_from(bounce, buf, len);
	fabric_actor.sent = NULL;
	rc = real->write(real, addr, bounce ? bounce : buf, len);
	free(bounce);
	if (rc == 0 && fabric_actor.sent && fabric_on_reached)
		fabric_on_reached(topo, addr, len, fabric_actor.sent);
	return rc;
}

static int dma_write(struct emu_dev *dev, uint64_t addr, const void *buf, size_t len)
{
	struct drive *d = (struct drive *)dev;
	bool ends = len == CQE_BYTES;
	int rc;

	if (fabric_on_dma)
		fabric_on_dma(d->topo, addr, len, true);
	if (!is_drive(d))
		ends = false; /* without media: writes are sent at once */
	else if (len >= DATA_BYTES && !d->has_written)
		media(d, fabric_params.media_read_ns);
	else if (ends && d->has_read && !d->has_written)
		media(d, fabric_params.media_write_ns);
	d->has_written |= len >= DATA_BYTES;
	if (ends) {
		fabric_actor.hold = (fabric_actor.hold > fabric_actor.clock ? fabric_actor.hold
									    : fabric_actor.clock) +
				    fabric_params.command_ns;
		d->has_read = d->has_written = false;
	}
	fabric_actor.far = true;
	rc = ends && d->trouble ? trouble_complete(d->trouble, addr, buf)
				: fabric_dev_write(d->real, d->topo, addr, buf, len);
	fabric_actor.far = false;
	return rc;
}

static void interrupt(struct emu_dev *dev, unsigned vector)
{
	struct drive *d = (struct drive *)dev;

	fabric_actor.far = true;
	d->real->interrupt(d->real, vector);
	fabric_actor.far = false;
}

static uint64_t now(struct emu_dev *dev)
{
	struct drive *d = (struct drive *)dev;

	return d->real->now(d->real);
}

static unsigned functions(struct emu_dev *dev)
{
	struct drive *d = (struct drive *)dev;

	return d->real->functions(d->real);
}

static void log_line(struct emu_dev *dev, const char *text)
{
	struct drive *d = (struct drive *)dev;

	d->real->log(d->real, text);
}

static void *bulk_new(struct emu_dev *dev, uint64_t size)
{
	struct drive *d = (struct drive *)dev;

	return d->real->bulk_new(d->real, size);
}

static void bulk_free(struct emu_dev *dev, void *data, uint64_t size)
{
	struct drive *d = (struct drive *)dev;

	d->real->bulk_free(d->real, data, size);
}

static void bulk_zero(struct emu_dev *dev, void *data, uint64_t size)
{
	struct drive *d = (struct drive *)dev;

	d->real->bulk_zero(d->real, data, size);
}

static void zero(struct emu_dev *dev, unsigned index)
{
	struct drive *d = (struct drive *)dev;

	d->real->zero(d->real, index);
}

static volatile void *view(struct emu_dev *dev, unsigned index)
{
	struct drive *d = (struct drive *)dev;

	return d->real->view(d->real, index);
}

static volatile void *mirror(struct emu_dev *dev, unsigned index)
{
	struct drive *d = (struct drive *)dev;

	return d->real->mirror(d->real, index);
}

/* ---- what the room calls ---- */
static unsigned find_pages(const struct emu_dev_config *config, enum emu_page_kind kind)
{
	unsigned i = 0;

	while (i < config->n_pages && config->pages[i].kind != kind)
		i++;
	assert(i < config->n_pages);
	return i;
}

static int create(const struct emu_dev_model *kind, struct emu_dev *dev,
		  const struct sio_topo_device *topo, struct emu_dev_config *config, void **ret,
		  struct sio_err *reterr)
{
	struct drive *d = calloc(1, sizeof(*d));
	int rc;

	assert(d);
	d->real = dev;
	d->kind = kind;
	d->topo = topo;
	d->dev = (struct emu_dev){
		.room = dev->room,
		.physical = dev->physical ? ((struct drive *)dev->physical)->model : NULL,
		.read = dma_read,
		.write = dma_write,
		.interrupt = interrupt,
		.now = now,
		.functions = dev->functions ? functions : NULL,
		.log = log_line,
		.bulk_new = dev->bulk_new ? bulk_new : NULL,
		.bulk_free = dev->bulk_free ? bulk_free : NULL,
		.bulk_zero = dev->bulk_zero ? bulk_zero : NULL,
		.zero = dev->zero ? zero : NULL,
		.view = view,
		.mirror = mirror,
	};
	d->requester = fabric_device_requester(topo);
	rc = d->kind->create(&d->dev, topo, config, &d->model, reterr);
	if (rc < 0) {
		free(d);
		return rc;
	}
	d->registers = find_pages(config, EMU_PAGE_REGISTERS);
	d->doorbells = find_pages(config, EMU_PAGE_DOORBELLS);
	d->full_look = config->full_look;
	if (trouble_wanted && is_drive(d))
		d->trouble = trouble_new(dev, topo, d->requester);
	*ret = d;
	return 0;
}

static int create_drive(struct emu_dev *dev, const struct sio_topo_device *topo,
			struct emu_dev_config *config, void **ret, struct sio_err *reterr)
{
	return create(&emu_nvme_model, dev, topo, config, ret, reterr);
}

static int create_memory(struct emu_dev *dev, const struct sio_topo_device *topo,
			 struct emu_dev_config *config, void **ret, struct sio_err *reterr)
{
	return create(&emu_memdev_model, dev, topo, config, ret, reterr);
}

static int create_accelerator(struct emu_dev *dev, const struct sio_topo_device *topo,
			      struct emu_dev_config *config, void **ret, struct sio_err *reterr)
{
	return create(&emu_accel_model, dev, topo, config, ret, reterr);
}

static void destroy(void *model)
{
	struct drive *d = model;

	d->kind->destroy(d->model);
	if (d->trouble)
		trouble_free(d->trouble);
	free(d);
}

/* ---- looks that find nothing ---- */
static const struct fabric_mem *pages(const volatile void *at)
{
	return at ? fabric_look(at, 1, false).mem : NULL;
}

static void attach(struct drive *d)
{
	d->view = pages(d->real->view(d->real, d->registers));
	d->bells = pages(d->real->view(d->real, d->doorbells));
	d->nothing = 0;
}

static uint64_t stores(const struct drive *d)
{
	return (d->view ? d->view->stores : 0) + (d->bells ? d->bells->stores : 0);
}

/* Can nothing but a store make the next look find something? */
static bool can_rest(const struct drive *d)
{
	return d->kind->idle(d->model) && !(d->trouble && trouble_is_late(d->trouble));
}

static void looked(struct drive *d, unsigned work)
{
	if (work || d->stores != stores(d))
		d->nothing = 0;
	else if (d->nothing + 1 < d->full_look || can_rest(d))
		d->nothing++;
	d->reads = d->trouble || fabric_actor.last;
	d->stores = stores(d);
	d->all_stores = fabric_register_stores;
}

static bool rests(struct drive *d)
{
	if (d->nothing < d->full_look)
		return false;
	if (d->reads)
		fabric_settle(fabric_access->now());
	if (d->all_stores == fabric_register_stores)
		return true;
	d->all_stores = fabric_register_stores;
	return d->stores == stores(d);
}

static void catch_up(struct drive *d)
{
	if (d->skipped)
		d->kind->skip_steps(d->model, d->skipped);
	d->skipped = 0;
}

/* While the controller is being disabled, pending writes of its commands are dropped. */
static void drop_if_disabled(struct drive *d)
{
	const volatile uint8_t *at = d->real->view(d->real, d->registers);

	if (is_drive(d) && d->hold > fabric_access->now() && at &&
	    !(sio_hook_read(at + CC, 4) & CC_EN)) {
		fabric_paths_cut(d->requester, fabric_access->now());
		d->hold = d->busy_until = 0;
		memset(d->unit, 0, sizeof(d->unit));
	}
}

/* Nobody may hold the registers: then what all can read counts. */
static void look_for_trouble(struct drive *d)
{
	const volatile uint8_t *at;

	if (!d->trouble)
		return;
	at = d->real->view(d->real, d->registers);
	if (!at)
		at = d->real->mirror(d->real, d->registers);
	trouble_look(d->trouble, at, d->doorbells);
}

static unsigned look(struct drive *d, unsigned budget)
{
	unsigned work;

	catch_up(d);
	drop_if_disabled(d);
	look_for_trouble(d);
	if (d->busy_until > fabric_access->now())
		return 0;
	fabric_act(d->requester);
	fabric_actor.far = false;
	if (fabric_actor.hold < d->hold)
		fabric_actor.hold = d->hold;
	if (d->trouble) {
		fabric_actor.far = true;
		trouble_due(d->trouble);
		fabric_actor.far = false;
	}
	work = d->kind->step(d->model, budget);
	d->hold = fabric_actor.hold;
	d->busy_until = fabric_actor.clock;
	looked(d, work);
	fabric_act(FABRIC_NOBODY);
	if (d->busy_until > fabric_access->now())
		fabric_access->look(d->busy_until);
	return work;
}

static unsigned step(void *model, unsigned budget)
{
	struct drive *d = model;

	if (!rests(d))
		return look(d, budget);
	d->skipped++;
	return 0;
}

/*
 * Also at surprise removal, where the port reports that the device is gone, or that a mapping of it
 * has ended, when what it had sent has arrived (include/smartio/uapi.h); no report takes less time
 * than this.
 */
static void reset(void *model, bool power)
{
	struct drive *d = model;

	fabric_paths_cut(d->requester, fabric_access->now());
	fabric_paths_hasten(d->requester, fabric_access->now() + SIM_LATENCY_MIN);
	d->hold = d->busy_until = 0;
	memset(d->unit, 0, sizeof(d->unit));
	if (d->trouble)
		trouble_forget(d->trouble);
	catch_up(d);
	d->kind->reset(d->model, power);
	attach(d);
}

static void view_changed(void *model, unsigned index)
{
	struct drive *d = model;

	catch_up(d);
	d->kind->view_changed(d->model, index);
	attach(d);
}

static bool idle(void *model)
{
	struct drive *d = model;

	return d->kind->idle(d->model);
}

static unsigned counters(void *model, char (*name)[32], uint64_t *value, unsigned max)
{
	struct drive *d = model;

	return d->kind->counters(d->model, name, value, max);
}

static const struct emu_dev_model nvme = {
	.type = "nvme",
	.create = create_drive,
	.destroy = destroy,
	.step = step,
	.reset = reset,
	.view_changed = view_changed,
	.idle = idle,
	.counters = counters,
};

static const struct emu_dev_model memory = {
	.type = "memory",
	.create = create_memory,
	.destroy = destroy,
	.step = step,
	.reset = reset,
	.view_changed = view_changed,
	.idle = idle,
	.counters = counters,
};

static const struct emu_dev_model accelerator = {
	.type = "accelerator",
	.create = create_accelerator,
	.destroy = destroy,
	.step = step,
	.reset = reset,
	.view_changed = view_changed,
	.idle = idle,
	.counters = counters,
};

/* In place of emu/machine/models.c. */
extern const struct emu_dev_model *const emu_models[];
const struct emu_dev_model *const emu_models[] = {&nvme, &memory, &accelerator, NULL};
