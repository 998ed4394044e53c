/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "smartiod/live/clusterfile.h"
#include "smartiod/live/live.h"
#include "smartiod/live/local.h"
#include "smartiod/live/names.h"
#include "smartiod/live/transport.h"
#include "topofile/topofile.h"

#define LARGEST (1 << 20) /* the reader of the text refuses less */

/* Nobody keeps us waiting: what is not a file is not read. */
static int open_file(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = -EINVAL;
	else if (st.st_size > LARGEST)
		r = -EFBIG;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

static int read_all(int fd, struct live_file *f)
{
	ssize_t n;

	while (f->len <= LARGEST) {
		n = read(fd, f->text + f->len, LARGEST + 1 - f->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		f->len += (size_t)n;
	}
	return -EFBIG;
}

static int read_text(const char *path, struct live_file *ret)
{
	struct live_file f = {.text = malloc(LARGEST + 1)};
	int fd, r;
	char *less;

	if (!f.text)
		return -ENOMEM;
	fd = open_file(path);
	r = fd < 0 ? fd : read_all(fd, &f);
	if (fd >= 0)
		close(fd);
	if (r < 0) {
		free(f.text);
		return r;
	}
	less = realloc(f.text, f.len + 1);
	f.text = less ? less : f.text;
	*ret = f;
	return 0;
}

int live_file_read(const char *path, const struct sio_topology *before, struct live_file *ret,
		   struct sio_topology **ret_t, struct sio_err *reterr)
{
	struct live_file f = {.text = NULL};
	int r = read_text(path, &f);

	if (r < 0)
		return sio_fail(reterr, r, "%s: cannot be read: %s", path, strerror(-r));
	r = sio_topofile_parse_next(path, f.text, f.len, before, ret_t, reterr);
	if (r < 0) {
		free(f.text);
		return r;
	}
	sio_topology_include_machines(*ret_t, false);
	live_names_find(&(*ret_t)->policy);
	*ret = f;
	return 0;
}

void live_file_learn(struct sio_topology *t, uint32_t node)
{
	for (unsigned i = 0; i < t->n_hosts; i++)
		if (t->host[i].node == node && t->host[i].real)
			t->host[i].ram_size = local_ram();
}

void live_file_done(struct live_file *f)
{
	free(f->text);
	*f = (struct live_file){.text = NULL};
}

/* Whoever may connect may not also say what is in force: root may, and whoever the daemon is. */
static int may_ask(uint32_t uid, struct sio_err *reterr)
{
	if (uid == 0 || uid == geteuid())
		return 0;
	return sio_fail(reterr, -EPERM,
			"user %u may not have the cluster's file read anew: root may, and user %u, "
			"as whom smartiod runs",
			uid, geteuid());
}

int live_op_file_read(void *ctx, uint32_t uid, bool next, struct sio_topology **ret,
		      struct sio_err *reterr)
{
	struct live *l = ctx;
	char path[LIVE_PATH + sizeof(LIVE_FILE_NEXT)];
	int r = may_ask(uid, reterr);

	if (r < 0)
		return r;
	if (!l->options.topology)
		return sio_fail(reterr, -EOPNOTSUPP,
				"this machine is in no cluster: there is no cluster's file");
	snprintf(path, sizeof(path), "%s%s", l->options.topology, next ? LIVE_FILE_NEXT : "");
	live_file_done(&l->next);
	r = live_file_read(path, l->topology, &l->next, ret, reterr);
	if (r == 0)
		live_file_learn(*ret, l->host->node);
	return r;
}

void live_op_file_keep(void *ctx, const struct sio_topology *t)
{
	struct live *l = ctx;

	live_file_done(&l->file);
	l->file = l->next;
	l->host = sio_topology_host(t, l->host->node);
	l->topology = t;
	l->next = (struct live_file){.text = NULL};
	if (l->transport->digest)
		l->transport->digest(l);
}

const char *live_op_file_text(void *ctx, size_t *ret_len)
{
	struct live *l = ctx;

	*ret_len = l->file.len;
	return l->file.text;
}
