/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio-vfio's descriptors and records in systemd's descriptor store, where they outlive the
 * process: a memfd with the records, and each descriptor under a name.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "smartiod/port_vfio/vfio_live.h"

#define DEVICES 1024
#define RECORDS 4096 /* more at a time */
#define RECORDS_NAME "records"
#define NAME 64
/*
 * All names come to the next process in one variable, and where one is longer than 128 KiB the
 * kernel starts no process any more. Bytes for objects, then besides for owners; what is left is
 * enough for the devices.
 */
#define NAMES (80u << 10)
#define OWNERS_NAMES (8u << 10)

struct store {
	uint64_t magic, n_records;
	struct vfio_head head;
	struct vfio_device_record device[DEVICES];
	struct vfio_tables table[DEVICES]; /* of device 1 and so on */
	struct vfio_record record[];
};

static uint64_t magic(void)
{
	return vfio_layout() ^ sizeof(struct store) << 16 ^ offsetof(struct store, record);
}

/* An object that has a record, by its number. */
struct kept {
	uint64_t id;
	unsigned at; /* of its record */
	bool has_fd; /* in the store */
	UT_hash_handle hh;
};

/* A descriptor that an earlier process left. */
struct found {
	int fd;
	char name[NAME];
	UT_hash_handle hh;
};

struct vfio_store {
	struct store *at;
	size_t size;
	int fd;
	struct kept *kept;
	struct found *found;
	unsigned free;	/* there is no free record below it */
	unsigned names; /* bytes of those of objects */
	bool full;	/* some had no room */
};

/* ---- names ---- */

static void object_name(char ret[NAME], uint64_t id)
{
	snprintf(ret, NAME, "%" PRIx64, id);
}

/* What is of the group has one for all of its devices: the store would drop a second copy. */
static void device_name(char ret[NAME], const struct vfio_unit *u, unsigned part)
{
	if (part < VFIO_OF_GROUP)
		snprintf(ret, NAME, "%" PRIx64 "-%s", u->id, u->by->part[part]);
	else
		snprintf(ret, NAME, "g%u-%s", u->group_number, u->by->part[part]);
}

/* ---- the store ---- */

/* FDPOLL=0: that the other end of a pipe was closed is for us to hear. */
static int push(const char *name, int fd)
{
	char text[NAME + 64];
	int r;

	snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	r = sd_pid_notify_with_fds(0, 0, text, &fd, 1);
	if (r <= 0)
		vfio_log("%s is not kept: %s", name, r < 0 ? strerror(-r) : "there is no systemd");
	return r > 0 ? 0 : -EIO;
}

static void pull(const char *name)
{
	sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
}

static int take(struct vfio_store *s, const char *name)
{
	struct found *f = NULL;
	int fd;

	HASH_FIND_STR(s->found, name, f);
	if (!f)
		return -1;
	fd = f->fd;
	HASH_DEL(s->found, f);
	free(f);
	return fd;
}

/* With what comes before the next one. */
static unsigned name_bytes(const char *name)
{
	return (unsigned)strlen(name) + 1;
}

static int take_object(void *ctx, uint64_t id)
{
	struct vfio_live *l = ctx;
	struct kept *k = NULL;
	char name[NAME];
	int fd;

	object_name(name, id);
	fd = take(l->store, name);
	HASH_FIND(hh, l->store->kept, &id, sizeof(id), k);
	if (k)
		k->has_fd = fd >= 0;
	if (k && k->has_fd)
		l->store->names += name_bytes(name);
	return fd;
}

static void push_object(struct vfio_store *s, struct kept *k, int fd, bool is_owner)
{
	char name[NAME];

	object_name(name, k->id);
	if (s->names + name_bytes(name) > NAMES + (is_owner ? OWNERS_NAMES : 0)) {
		if (!s->full)
			vfio_log("too much to keep: a restart will end what comes from now on");
		s->full = true;
		return;
	}
	k->has_fd = push(name, fd) == 0;
	s->names += k->has_fd ? name_bytes(name) : 0;
}

static void pull_object(struct vfio_store *s, const struct kept *k)
{
	char name[NAME];

	object_name(name, k->id);
	pull(name);
	s->names -= name_bytes(name);
}

/* ---- records ---- */

static size_t store_size(uint64_t n_records)
{
	return sizeof(struct store) + n_records * sizeof(struct vfio_record);
}

static int store_map(struct vfio_store *s, uint64_t n_records)
{
	size_t size = store_size(n_records);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	if (s->at)
		munmap(s->at, s->size);
	s->at = at;
	s->size = size;
	return 0;
}

static int store_grow(struct vfio_store *s, uint64_t n_records)
{
	int r = ftruncate(s->fd, (off_t)store_size(n_records)) < 0 ? -errno : 0;

	if (r == 0)
		r = store_map(s, n_records);
	if (r == 0)
		s->at->n_records = n_records;
	return r;
}

static struct kept *kept_new(struct vfio_store *s, uint64_t id, unsigned at)
{
	struct kept *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->id = id;
	k->at = at;
	HASH_ADD(hh, s->kept, id, sizeof(k->id), k);
	if (k->hh.tbl)
		return k;
	free(k);
	return NULL;
}

/* Where nothing is, or is going to be. */
static struct kept *new_row(struct vfio_store *s, uint64_t id)
{
	unsigned n = (unsigned)s->at->n_records;

	while (s->free < n && s->at->record[s->free].id)
		s->free++;
	if (s->free == n && store_grow(s, n + RECORDS) < 0)
		return NULL;
	return kept_new(s, id, s->free++);
}

/*
 * Its number is written last: without it there is no record. No other process reads meanwhile: each
 * release here pairs with the end of this one, at whatever instruction, before go_on() of the next.
 */
static void write_record(struct vfio_record *to, const struct vfio_record *r)
{
	struct vfio_record rest = *r;

	rest.id = to->id;
	*to = rest;
	__atomic_store_n(&to->id, r->id, __ATOMIC_RELEASE);
}

void vfio_store_keep(void *ctx, const struct vfio_record *r, int fd)
{
	struct vfio_live *l = ctx;
	struct vfio_store *s = l->store;
	struct kept *k = NULL;
	struct vfio_source *owner = NULL;

	if (!s)
		return;
	if (r->kind == SIO_KIND_OWNER) {
		HASH_FIND(hh, l->owners, &r->id, sizeof(r->id), owner);
		fd = owner ? owner->fd : -1;
	}
	HASH_FIND(hh, s->kept, &r->id, sizeof(r->id), k);
	if (!k)
		k = new_row(s, r->id);
	if (!k) {
		vfio_log("no memory to keep what there is: a restart will lose some of it");
		return;
	}
	/* A descriptor without a record is closed by the next process; a record needs its own. */
	if (fd >= 0 && !k->has_fd)
		push_object(s, k, fd, r->kind == SIO_KIND_OWNER);
	write_record(&s->at->record[k->at], r);
}

void vfio_store_forget(void *ctx, uint64_t id)
{
	struct vfio_live *l = ctx;
	struct vfio_store *s = l->store;
	struct kept *k = NULL;

	if (s)
		HASH_FIND(hh, s->kept, &id, sizeof(id), k);
	if (!k)
		return;
	/* pairs with go_on() of the next smartiod */
	__atomic_store_n(&s->at->record[k->at].id, 0, __ATOMIC_RELEASE);
	if (k->at < s->free)
		s->free = k->at;
	if (k->has_fd)
		pull_object(s, k);
	HASH_DEL(s->kept, k);
	free(k);
}

void vfio_store_keep_head(void *ctx, const struct vfio_head *h)
{
	const struct vfio_live *l = ctx;

	if (l->store)
		l->store->at->head = *h;
}

void vfio_store_keep_device(void *ctx, const struct vfio_device_record *r)
{
	const struct vfio_live *l = ctx;
	struct vfio_device_record *to = l->store ? l->store->at->device : NULL;
	struct vfio_device_record rest = *r;

	for (unsigned i = 0; to && i < DEVICES; i++, to++) {
		if (to->info.id && to->info.id != r->info.id)
			continue;
		rest.info.id = to->info.id;
		*to = rest;
		/* pairs with go_on() of the next smartiod */
		__atomic_store_n(&to->info.id, r->info.id, __ATOMIC_RELEASE);
		return;
	}
	if (to)
		vfio_log("%s is not kept: %d devices are", r->info.name, DEVICES);
}

/* ---- what of a device is open ---- */

/* Parts that it does not have with another one that is open: of all, or of its own. */
static unsigned parts_alone(const struct vfio_live *l, const struct vfio_unit *u)
{
	return vfio_unit_partner(l, u) ? VFIO_OF_GROUP : VFIO_PARTS;
}

/* They are numbered from 1 on, and later ones have no record. */
void vfio_store_device(struct vfio_live *l, const struct vfio_unit *u)
{
	char name[NAME];

	if (!l->store || u->id > DEVICES)
		return;
	l->store->at->table[u->id - 1] = u->table;
	for (unsigned i = 0; i < parts_alone(l, u) && u->by->part[i]; i++) {
		device_name(name, u, i);
		push(name, u->fd[i]);
	}
}

void vfio_store_device_closed(struct vfio_live *l, const struct vfio_unit *u)
{
	char name[NAME];

	for (unsigned i = 0; l->store && i < parts_alone(l, u) && u->by->part[i]; i++) {
		device_name(name, u, i);
		pull(name);
	}
}

/* Copies: what is of the group may be another one's, too. What nobody has in the end is pulled. */
static int copy_part(const struct vfio_live *l, const struct vfio_unit *u, unsigned part)
{
	struct found *f = NULL;
	char name[NAME];

	device_name(name, u, part);
	HASH_FIND_STR(l->store->found, name, f);
	return f ? fcntl(f->fd, F_DUPFD_CLOEXEC, 3) : -1;
}

static bool is_part(const struct vfio_live *l, const char *found)
{
	char name[NAME];

	for (const struct vfio_unit *u = l->units; u; u = u->next)
		for (unsigned i = 0; i < VFIO_PARTS && u->by->part[i]; i++) {
			device_name(name, u, i);
			if (u->fd[i] >= 0 && strcmp(name, found) == 0)
				return true;
		}
	return false;
}

int vfio_store_take_device(struct vfio_live *l, struct vfio_unit *u, int ret[VFIO_PARTS])
{
	int r = 0;

	if (u->id <= DEVICES)
		u->table = l->store->at->table[u->id - 1];
	for (unsigned i = 0; i < VFIO_PARTS; i++) {
		ret[i] = u->by->part[i] ? copy_part(l, u, i) : -1;
		if (u->by->part[i] && ret[i] < 0)
			r = -ENOENT;
	}
	return r;
}

/* ---- start ---- */

static int find_descriptors(struct vfio_live *l)
{
	struct vfio_store *s = l->store;
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names), r = n < 0 ? n : 0;

	for (int i = 0; i < n; i++) {
		struct found *f = calloc(1, sizeof(*f));
		int fd = SD_LISTEN_FDS_START + i;

		if (f) {
			f->fd = fd;
			snprintf(f->name, sizeof(f->name), "%s", names[i]);
			HASH_ADD_STR(s->found, name, f);
		}
		if (!f || !f->hh.tbl) {
			free(f);
			close(fd);
			r = -ENOMEM;
		}
	}
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return r;
}

/* Records of this layout; else there is nothing to go on with. */
static int open_store(struct vfio_store *s)
{
	struct stat st;
	uint64_t n;

	if (fstat(s->fd, &st) < 0 || (size_t)st.st_size < sizeof(struct store) ||
	    store_map(s, 0) < 0)
		return -EIO;
	n = s->at->n_records;
	if (s->at->magic != magic() || n > UINT32_MAX || (size_t)st.st_size < store_size(n))
		return -EPROTO;
	return store_map(s, n);
}

static int new_store(struct vfio_store *s)
{
	int r;

	s->fd = memfd_create("smartio-vfio", MFD_CLOEXEC);
	r = s->fd < 0 ? -errno : store_grow(s, RECORDS);
	if (r < 0)
		return r;
	s->at->magic = magic();
	return push(RECORDS_NAME, s->fd);
}

static int go_on(struct vfio_live *l)
{
	struct vfio_store *s = l->store;
	struct vfio_kept k = {.head = s->at->head,
			      .n_devices = DEVICES,
			      .n_records = (unsigned)s->at->n_records,
			      .take_fd = take_object};
	struct store *copy = malloc(s->size);
	int r = copy ? 0 : -ENOMEM;

	if (copy)
		memcpy(copy, s->at, s->size);
	for (unsigned i = 0; r == 0 && i < k.n_records; i++)
		if (copy->record[i].id && !kept_new(s, copy->record[i].id, i))
			r = -ENOMEM;
	if (r == 0) {
		k.device = copy->device;
		k.record = copy->record;
		r = vfio_port_restore(l->port, &k);
	}
	free(copy);
	return r;
}

/*
 * What nobody asked for, but for the listener, is of something that has @ended; or the next
 * process's, if memory was short in this one. Of devices' parts these are copies.
 */
static void close_rest(struct vfio_live *l, bool ended)
{
	struct found *f, *tmp;

	HASH_ITER (hh, l->store->found, f, tmp) {
		if (strcmp(f->name, "port") == 0) {
			l->listener.fd = f->fd;
		} else {
			if (ended && !is_part(l, f->name))
				pull(f->name);
			close(f->fd);
		}
		HASH_DEL(l->store->found, f);
		free(f);
	}
}

int vfio_store_open(struct vfio_live *l)
{
	struct vfio_store *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	l->store = s;
	r = find_descriptors(l);
	s->fd = take(s, RECORDS_NAME);
	if (s->fd >= 0 && open_store(s) < 0) {
		vfio_log("what another version kept is given up: programs lose their devices");
		pull(RECORDS_NAME);
		close(s->fd);
		s->fd = -1;
	}
	if (r == 0)
		r = s->fd >= 0 ? go_on(l) : new_store(s);
	close_rest(l, r != -ENOMEM);
	return r;
}

void vfio_store_close(struct vfio_live *l)
{
	struct vfio_store *s = l->store;
	struct kept *k, *tmp;

	l->store = NULL; /* from now on what is closed is kept */
	if (!s)
		return;
	HASH_ITER (hh, s->kept, k, tmp) {
		HASH_DEL(s->kept, k);
		free(k);
	}
	if (s->at)
		munmap(s->at, s->size);
	close(s->fd);
	free(s);
}
