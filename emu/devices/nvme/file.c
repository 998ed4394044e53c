/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on namespaces whose blocks are in a file (NVMe 1.4, sections 6.6 to 6.16): what job.c
 * has to do for each. The system's cache of the file is the drive's volatile write cache: Flush,
 * Force Unit Access, a shutdown and the feature that switches it off (section 5.21.1.6) reach the
 * disk.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "emu/devices/nvme/job.h"

#define FUA (1u << 30) /* of dword 12 */

static bool is_durable(const struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	return !m->feature.write_cache || le32toh(sqe->cdw12) & FUA;
}

int emu_nvme_files_open(struct emu_nvme *m, const struct sio_topo_device *t, struct sio_err *reterr)
{
	struct emu_store *s = m->dev->store;
	struct emu_nvme_files *f = NULL;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < m->n_ns; i++) {
		const char *path = t->n_namespaces ? t->namespaces[i].file : t->file;

		if (!path)
			continue;
		if (!s)
			return sio_fail(reterr, -ENOTSUP, "%s: no file can back it here", t->name);
		if (!f)
			f = m->files = calloc(1, sizeof(*f));
		if (!f)
			return sio_fail(reterr, -ENOMEM,
					"%s: no memory for commands on files: " SIO_MORE_MEMORY,
					t->name);
		f->store = s;
		rc = s->ops->open(s, path, m->ns[i].size, &m->ns[i].file, reterr);
	}
	for (unsigned i = 0; f && i < EMU_NVME_JOBS; i++) {
		f->job[i].next = f->free;
		f->free = &f->job[i];
	}
	return rc;
}

void emu_nvme_files_close(struct emu_nvme *m)
{
	struct emu_nvme_files *f = m->files;

	if (!f)
		return;
	emu_nvme_jobs_drain(m);
	for (uint32_t i = 0; i < m->n_ns; i++)
		if (m->ns[i].file)
			f->store->ops->close(f->store, m->ns[i].file);
	free(f);
	m->files = NULL;
}

/* On @count blocks from @lba on, which were checked. NULL: no memory for its data. */
static struct emu_nvme_job *on_blocks(struct emu_nvme *m, const struct emu_nvme_sqe *sqe,
				      uint64_t lba, uint64_t count, size_t data)
{
	uint32_t ns = le32toh(sqe->nsid) - 1;
	unsigned shift = m->ns[ns].block_shift;
	struct emu_nvme_job *j = emu_nvme_job_new(m, sqe, ns, data);

	if (j)
		j->all = j->range =
			(struct emu_nvme_range){.at = lba << shift, .end = (lba + count) << shift};
	return j;
}

unsigned emu_nvme_file_read(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint64_t lba,
			    uint32_t count)
{
	size_t bytes = (size_t)count << m->ns[le32toh(sqe->nsid) - 1].block_shift;
	bool verify = sqe->opcode == nvme_cmd_verify;
	struct emu_nvme_job *j = on_blocks(
		m, sqe, lba, count, verify && bytes > EMU_NVME_PIECE ? EMU_NVME_PIECE : bytes);

	if (!j)
		return NVME_SC_INTERNAL;
	j->op = EMU_STORE_READ;
	j->discard = verify;
	/* What it returns must be on the media. */
	j->sync_first = le32toh(sqe->cdw12) & FUA;
	return emu_nvme_job_begin(m, j);
}

unsigned emu_nvme_file_write(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint64_t lba,
			     uint32_t count)
{
	size_t bytes = (size_t)count << m->ns[le32toh(sqe->nsid) - 1].block_shift;
	struct emu_nvme_job *j = on_blocks(m, sqe, lba, count, bytes);
	unsigned status;

	if (!j)
		return NVME_SC_INTERNAL;
	status = emu_nvme_prp_from_host(m, sqe, j->data, bytes);
	if (status) {
		emu_nvme_job_drop(m, j);
		return status;
	}
	j->op = EMU_STORE_WRITE;
	j->changes = true;
	j->durable = is_durable(m, sqe);
	return emu_nvme_job_begin(m, j);
}

unsigned emu_nvme_file_zero(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint64_t lba,
			    uint32_t count)
{
	struct emu_nvme_job *j = on_blocks(m, sqe, lba, count, 0);

	j->op = EMU_STORE_ZERO;
	j->changes = true;
	j->sync_last = is_durable(m, sqe);
	return emu_nvme_job_begin(m, j);
}

unsigned emu_nvme_file_deallocate(struct emu_nvme *m, const struct emu_nvme_sqe *sqe,
				  const struct nvme_dsm_range *r, unsigned n)
{
	struct emu_nvme_job *j = on_blocks(m, sqe, 0, 0, 0);
	unsigned shift = m->ns[j->ns].block_shift;

	j->ranges = calloc(n, sizeof(*j->ranges));
	if (!j->ranges) {
		emu_nvme_job_drop(m, j);
		return NVME_SC_INTERNAL;
	}
	j->n_ranges = n;
	j->all.at = UINT64_MAX;
	for (unsigned i = 0; i < n; i++) {
		struct emu_nvme_range *out = &j->ranges[i];

		out->at = le64toh(r[i].slba) << shift;
		out->end = out->at + ((uint64_t)le32toh(r[i].nlb) << shift);
		j->all.at = out->at < j->all.at ? out->at : j->all.at;
		j->all.end = out->end > j->all.end ? out->end : j->all.end;
	}
	j->op = EMU_STORE_ZERO;
	j->changes = true;
	j->sync_last = !m->feature.write_cache;
	return emu_nvme_job_begin(m, j);
}

/* Of namespaces [@first, @end); 0: none of them is in a file. */
static struct emu_nvme_job *on_namespaces(struct emu_nvme *m, const struct emu_nvme_sqe *sqe,
					  uint32_t first, uint32_t end)
{
	struct emu_nvme_job *j;

	while (first < end && !m->ns[first].file)
		first++;
	if (!m->files || first == end)
		return NULL;
	j = emu_nvme_job_new(m, sqe, first, 0);
	j->ns_end = end;
	j->sync_last = true;
	return j;
}

unsigned emu_nvme_files_flush(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint32_t first,
			      uint32_t end)
{
	struct emu_nvme_job *j = on_namespaces(m, sqe, first, end);

	return j ? emu_nvme_job_begin(m, j) : 0;
}

unsigned emu_nvme_files_empty(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	struct emu_nvme_job *j = on_namespaces(m, sqe, 0, m->n_ns);

	if (!j)
		return 0;
	j->changes = true;
	j->all.end = UINT64_MAX;
	return emu_nvme_job_begin(m, j);
}

unsigned emu_nvme_files_format(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint32_t first,
			       uint32_t end)
{
	struct emu_nvme_job *j = on_namespaces(m, sqe, first, end);

	if (!j)
		return 0;
	j->op = EMU_STORE_ZERO;
	j->changes = true;
	j->whole = true;
	j->all.end = UINT64_MAX;
	j->range.end = m->ns[j->ns].size;
	return emu_nvme_job_begin(m, j);
}

bool emu_nvme_files_shutdown(struct emu_nvme *m)
{
	const struct emu_nvme_sqe none = {0};

	if (!m->files || !m->files->free)
		return false;
	m->serving = NULL;
	return emu_nvme_files_empty(m, &none) == EMU_NVME_HELD;
}
