/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An NVMe controller after the NVM Express Base Specification 1.4: what the machine room calls.
 * docs/nvme-model.md says what is implemented and what is approximated.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/devices/nvme/keys.h"
#include "emu/devices/nvme/model.h"

#define SUBDEVICE 0x1100u
#define CLASS_NVME 0x010802u
#define DOORBELLS 0x1000u /* offset in BAR 0 */
#define BAR_MIN 0x4000u
#define MSIX_ENTRY 16u
/*
 * What the data path does not read (read-only registers, doorbells of completion queues and of
 * queues that do not exist) is looked at each so many steps: seldom enough to cost it nothing.
 */
#define LOOK_IDLE 8u
#define LOOK_BUSY 64u

/* The drive's @i-th; of one that names none, what it says of itself. */
static struct sio_topo_namespace get_namespace(const struct sio_topo_device *t, uint32_t i)
{
	if (t->n_namespaces)
		return t->namespaces[i];
	return (struct sio_topo_namespace){
		.size = t->size, .block_size = t->block_size, .file = t->file};
}

static uint32_t count_namespaces(const struct sio_topo_device *t)
{
	return t->n_namespaces ? t->n_namespaces : 1;
}

static int check_namespace(const struct sio_topo_device *t, const struct sio_topo_namespace *ns,
			   struct sio_err *reterr)
{
	if (ns->block_size != 512 && ns->block_size != 4096)
		return sio_fail(reterr, -EINVAL, "%s: block is %" PRIu32 ", 512 or 4096 is right",
				t->name, ns->block_size);
	if (ns->size == 0 || ns->size % ns->block_size)
		return sio_fail(reterr, -EINVAL,
				"%s: size is %" PRIu64 ", a multiple of its block of %" PRIu32
				" bytes is right",
				t->name, ns->size, ns->block_size);
	/* So that each begins with a page. */
	if (t->n_namespaces && ns->size % EMU_NVME_PAGE)
		return sio_fail(reterr, -EINVAL,
				"%s: size of a namespace is %" PRIu64 ", a multiple of %u is right",
				t->name, ns->size, EMU_NVME_PAGE);
	return 0;
}

static int check_namespaces(const struct sio_topo_device *t, struct sio_err *reterr)
{
	int rc = 0;

	if (t->n_namespaces > EMU_NVME_NAMESPACES)
		return sio_fail(reterr, -EINVAL, "%s: %" PRIu32 " namespaces, 1 to %u is right",
				t->name, t->n_namespaces, EMU_NVME_NAMESPACES);
	for (uint32_t i = 0; rc == 0 && i < count_namespaces(t); i++) {
		const struct sio_topo_namespace ns = get_namespace(t, i);

		rc = check_namespace(t, &ns, reterr);
	}
	return rc;
}

static int check(const struct sio_topo_device *t, struct sio_err *reterr)
{
	int rc = check_namespaces(t, reterr);

	if (rc < 0)
		return rc;
	if (t->queue_pairs < 1 || t->queue_pairs > 65535)
		return sio_fail(reterr, -EINVAL,
				"%s: queue_pairs is %" PRIu32 ", 1 to 65535 is right", t->name,
				t->queue_pairs);
	if (t->queue_entries < 2 || t->queue_entries > 65536)
		return sio_fail(reterr, -EINVAL,
				"%s: queue_entries is %" PRIu32 ", 2 to 65536 is right", t->name,
				t->queue_entries);
	if (t->cmb > SIO_TOPO_BAR_SPACE / 2 || t->cmb % EMU_NVME_PAGE || t->cmb & (t->cmb - 1))
		return sio_fail(reterr, -EINVAL,
				"%s: cmb is %" PRIu64 ", 0 or a power of 2 from %u to %u is right",
				t->name, t->cmb, EMU_NVME_PAGE, SIO_TOPO_BAR_SPACE / 2);
	if (t->vectors > EMU_NVME_VECTORS)
		return sio_fail(reterr, -EINVAL, "%s: vectors is %" PRIu32 ", 0 to %u is right",
				t->name, t->vectors, EMU_NVME_VECTORS);
	return 0;
}

/* Registers and doorbells, a slice of each at a time. */
static unsigned full_look(const struct emu_nvme *m)
{
	unsigned registers = emu_nvme_regs_slices(), doorbells = emu_nvme_doorbells_slices(m);

	return LOOK_IDLE * (1 + (registers > doorbells ? registers : doorbells));
}

/* A serial number for PCI's capability, out of the drive's (FNV-1a). */
static uint64_t hash(const char *text, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)text[i]) * 0x100000001b3u;
	return h;
}

static void describe(struct emu_nvme *m, struct emu_dev_config *config)
{
	uint64_t doorbells = (uint64_t)m->doorbell_words * 4, bar = BAR_MIN;
	/* The table of vectors, then the bits of those that are pending. */
	uint64_t table = m->vectors * MSIX_ENTRY + (m->vectors + 63) / 64 * 8;

	table = (table + EMU_NVME_PAGE - 1) / EMU_NVME_PAGE * EMU_NVME_PAGE;
	while (bar < DOORBELLS + doorbells + table)
		bar *= 2;
	*config = (struct emu_dev_config){
		.vendor = EMU_NVME_PCI_VENDOR,
		.device = EMU_NVME_PCI_DEVICE,
		.subsys_vendor = EMU_NVME_PCI_VENDOR,
		.subsys_device = SUBDEVICE,
		.class_code = CLASS_NVME,
		.serial = hash(m->serial, sizeof(m->serial)),
		.bar_size = {bar},
		.n_pages = m->vectors ? 3 : 2,
		.msix_count = m->vectors,
		.full_look = full_look(m),
	};
	config->pages[EMU_NVME_RUN_REGISTERS] = (struct emu_dev_pages){
		.kind = EMU_PAGE_REGISTERS, .offset = 0, .length = EMU_NVME_PAGE};
	config->pages[EMU_NVME_RUN_DOORBELLS] = (struct emu_dev_pages){
		.kind = EMU_PAGE_DOORBELLS, .offset = DOORBELLS, .length = doorbells};
	config->pages[EMU_NVME_RUN_MSIX] = (struct emu_dev_pages){
		.kind = EMU_PAGE_MSIX, .offset = DOORBELLS + doorbells, .length = table};
	if (m->cmb.bytes == 0)
		return;
	m->cmb.run = config->n_pages++;
	config->bar_size[EMU_NVME_CMB_BAR] = m->cmb.bytes;
	config->pages[m->cmb.run] = (struct emu_dev_pages){
		.bar = EMU_NVME_CMB_BAR, .kind = EMU_PAGE_MEMORY, .length = m->cmb.bytes};
}

static void set_namespaces(struct emu_nvme *m, const struct sio_topo_device *t)
{
	m->n_ns = count_namespaces(t);
	for (uint32_t i = 0; i < m->n_ns; i++) {
		const struct sio_topo_namespace ns = get_namespace(t, i);

		m->ns[i].size = ns.size;
		m->media_size += ns.file ? 0 : ns.size;
		emu_nvme_set_blocks(&m->ns[i], ns.block_size == 512 ? 9 : 12);
	}
}

static void *media_new(struct emu_dev *dev, uint64_t size)
{
	return dev->bulk_new ? dev->bulk_new(dev, size) : calloc(1, size);
}

static void media_free(const struct emu_nvme *m)
{
	if (m->media_size == 0)
		return;
	if (m->media && m->dev->bulk_free)
		m->dev->bulk_free(m->dev, m->media, m->media_size);
	else
		free(m->media);
}

static void destroy(void *model)
{
	struct emu_nvme *m = model;

	if (!m)
		return;
	emu_nvme_function_leave(m);
	if (!m->physical) {
		emu_nvme_files_close(m);
		media_free(m);
	}
	emu_nvme_shadow_forget(m);
	free(m->faults);
	free(m->active);
	free(m->vector);
	free(m->cq);
	free(m->sq);
	free(m);
}

static void init(struct emu_nvme *m, const struct sio_topo_device *t)
{
	size_t words = ((size_t)t->queue_pairs + 1) * 2, per_page = EMU_NVME_PAGE / 4;
	size_t len = strnlen(t->serial, sizeof(m->serial));

	memcpy(m->name, t->name, sizeof(m->name));
	m->name[sizeof(m->name) - 1] = '\0';
	memset(m->serial, ' ', sizeof(m->serial));
	memcpy(m->serial, t->serial, len);
	m->queue_pairs = t->queue_pairs;
	m->queue_entries = t->queue_entries;
	m->vectors = t->vectors;
	m->cmb.bytes = (uint32_t)t->cmb;
	m->doorbell_words = (unsigned)((words + per_page - 1) / per_page * per_page);
	m->stats.power_cycles = 1;
	emu_nvme_regs_defaults(m);
	emu_nvme_features_defaults(m);
}

static int create(struct emu_dev *dev, const struct sio_topo_device *t,
		  struct emu_dev_config *config, void **ret, struct sio_err *reterr)
{
	size_t n = (size_t)t->queue_pairs + 1;
	struct emu_nvme *m;
	int r = check(t, reterr);

	if (r < 0)
		return r;
	m = calloc(1, sizeof(*m));
	if (!m)
		return sio_fail(reterr, -ENOMEM,
				"%s: no memory for the controller: " SIO_MORE_MEMORY, t->name);
	m->dev = dev;
	m->answers = &emu_nvme_answers;
	set_namespaces(m, t);
	m->sq = calloc(n, sizeof(m->sq[0]));
	m->cq = calloc(n, sizeof(m->cq[0]));
	m->active = calloc(n, sizeof(m->active[0]));
	m->vector = calloc(t->vectors + 1, sizeof(m->vector[0]));
	m->physical = dev->physical;
	r = m->physical ? 0 : emu_nvme_files_open(m, t, reterr);
	if (r < 0) {
		destroy(m);
		return r;
	}
	if (m->media_size)
		emu_nvme_place(m, m->physical ? m->physical->media : media_new(dev, m->media_size));
	if (!m->sq || !m->cq || !m->active || !m->vector || (m->media_size && !m->media)) {
		destroy(m);
		return sio_fail(reterr, -ENOMEM,
				"%s: no memory for %" PRIu64 " bytes of media and %" PRIu32
				" queue pairs: " SIO_MORE_MEMORY,
				t->name, t->size, t->queue_pairs);
	}
	init(m, t);
	emu_nvme_function_join(m, m->physical);
	m->born = dev->now(dev);
	describe(m, config);
	*ret = m;
	return 0;
}

static unsigned queues_run(struct emu_nvme *m, unsigned budget)
{
	unsigned done;

	if (emu_nvme_likely(!m->shadow.used))
		return emu_nvme_queues_run(m, budget);
	emu_nvme_shadow_poll(m);
	done = emu_nvme_queues_run(m, budget);
	if (done == 0 && m->running && emu_nvme_shadow_arm(m))
		done = emu_nvme_queues_run(m, budget);
	return done;
}

static unsigned step(void *model, unsigned budget)
{
	struct emu_nvme *m = model;
	unsigned done = 0;

	if (emu_nvme_unlikely(!m->attached))
		emu_nvme_attach(m);
	if (emu_nvme_unlikely(!m->doorbells))
		return 0;
	if (emu_nvme_unlikely(emu_nvme_regs_poll(m)))
		done++;
	if (m->running && done < budget)
		done += emu_nvme_admin_run(m);
	if (m->running && done < budget)
		done += queues_run(m, budget - done);
	if (emu_nvme_unlikely(m->faults) && m->running)
		done += emu_nvme_held_run(m);
	if (emu_nvme_unlikely(m->files))
		done += emu_nvme_jobs_run(m);
	if (emu_nvme_unlikely(m->n_aggregating) && m->running)
		emu_nvme_interrupts_due(m);
	if (emu_nvme_unlikely(++m->steps % (done ? LOOK_BUSY : LOOK_IDLE) == 0)) {
		emu_nvme_regs_scrub(m);
		if (m->running)
			emu_nvme_doorbells_scan(m);
	}
	return done;
}

static void skip_steps(void *model, uint64_t n)
{
	struct emu_nvme *m = model;
	uint64_t looks = (m->steps % LOOK_IDLE + n) / LOOK_IDLE;

	m->steps += (unsigned)n;
	emu_nvme_regs_skip(m, looks);
	if (m->running)
		emu_nvme_doorbells_skip(m, looks);
}

/*
 * New media where memory allows: the old pages need not be touched to be zero again. What is in
 * files stays.
 */
static void media_forget(struct emu_nvme *m)
{
	uint8_t *fresh;

	if (m->media_size == 0)
		return;
	fresh = media_new(m->dev, m->media_size);
	if (!fresh) {
		memset(m->media, 0, m->media_size);
		return;
	}
	media_free(m);
	emu_nvme_place(m, fresh);
	emu_nvme_functions_follow(m);
}

static void reset(void *model, bool power)
{
	struct emu_nvme *m = model;
	bool was_in_use = emu_nvme_is_enabled(m) && m->running;

	if (power) {
		m->stats.power_cycles++;
		m->stats.unsafe_shutdowns += was_in_use;
		m->n_errors = 0;
		memset(m->error, 0, sizeof(m->error));
		if (!m->physical)
			media_forget(m);
	}
	/* A function that comes again comes online. */
	if (power || !emu_nvme_is_there(m))
		m->offline = false;
	emu_nvme_function_reset(m);
	emu_nvme_functions_renew(m);
}

/* Registers are the new view's at once: what stands in it is nobody's word. */
static void view_changed(void *model, unsigned index)
{
	struct emu_nvme *m = model;

	if (index == EMU_NVME_RUN_DOORBELLS)
		m->doorbells = m->dev->view(m->dev, index);
	else
		emu_nvme_attach(m);
}

static void stored(void *model, unsigned index)
{
	struct emu_nvme *m = model;

	(void)index; /* there is one page of registers */
	if (!m->attached)
		emu_nvme_attach(m);
	emu_nvme_regs_poll(m);
	for (unsigned i = 0; i < emu_nvme_regs_slices(); i++)
		emu_nvme_regs_scrub(m);
}

static bool idle(void *model)
{
	const struct emu_nvme *m = model;

	return emu_nvme_jobs_idle(m) &&
	       (!m->running || (emu_nvme_admin_idle(m) && emu_nvme_queues_idle(m) &&
				!m->n_aggregating && !emu_nvme_held_any(m)));
}

static int fault(void *model, const struct emu_dev_fault *f, struct sio_err *reterr)
{
	return emu_nvme_fault_set(model, f, reterr);
}

static unsigned io_queues(const struct emu_nvme *m)
{
	return m->n_active > m->n_cqs ? m->n_active : m->n_cqs;
}

static unsigned counters(void *model, char (*name)[32], uint64_t *value, unsigned max)
{
	const struct emu_nvme *m = model;
	const struct emu_dev_counter all[] = {
		{"commands_read", m->stats.reads},
		{"commands_write", m->stats.writes},
		{"commands_flush", m->stats.flushes},
		{"commands_admin", m->stats.admin},
		{"commands_failed", m->stats.failed},
		{"commands_compare", m->stats.compares},
		{"commands_write_zeroes", m->stats.zeroes},
		{"commands_deallocate", m->stats.deallocates},
		{"commands_verify", m->stats.verifies},
		{"formats", m->stats.formats},
		{"bytes_read", m->stats.read_bytes},
		{"bytes_written", m->stats.written_bytes},
		{"queue_pairs", io_queues(m)},
		{"queue_pairs_max", m->queue_pairs},
		{"fatal", m->stats.fatal},
		{"invalid_doorbells", m->stats.invalid_doorbells},
		{"lost_writes", m->stats.lost_writes},
		{"controller_resets", m->stats.resets},
		{"interrupts", m->stats.interrupts},
		{"faults_asked_for", m->stats.faults},
		{"commands_aborted", m->stats.aborted},
	};

	return emu_dev_counters(all, sizeof(all) / sizeof(all[0]), name, value, max);
}

const struct emu_dev_model emu_nvme_model = {
	.type = EMU_NVME_TYPE,
	.create = create,
	.destroy = destroy,
	.step = step,
	.skip_steps = skip_steps,
	.reset = reset,
	.view_changed = view_changed,
	.stored = stored,
	.fault = fault,
	.idle = idle,
	.counters = counters,
};
