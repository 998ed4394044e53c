/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/output.h"
#include "base/state.h"
#include "cluster/keys.h"
#include "machine/addressed.h"
#include "machine/config.h"
#include "topofile/topofile.h"

const char *machine_address(const struct sio_topology *t, unsigned index,
			    char text[MACHINE_ADDRESS_TEXT])
{
	const struct sio_topo_address *own = &t->machine[index].address;

	if (own->port)
		return inet_ntop(own->v6 ? AF_INET6 : AF_INET, own->ip, text, MACHINE_ADDRESS_TEXT);
	snprintf(text, MACHINE_ADDRESS_TEXT, "10.74.0.%u", index + 1);
	return text;
}

/* The other end of a cable without a switch: HOST.INDEX. */
static void other_end(const struct sio_topology *t, const struct sio_topo_adapter *a, char *text,
		      size_t size)
{
	for (unsigned i = 0; i < t->n_machines; i++) {
		const struct sio_topo_host *h = &t->machine[i];

		for (unsigned k = 0; k < h->n_adapters; k++)
			if (&h->adapter[k] != a && h->adapter[k].attach == SIO_ATTACH_LINK &&
			    h->adapter[k].attach_index == a->attach_index)
				snprintf(text, size, "%s.%u", h->name, k);
	}
}

static struct json_object *adapter(const struct sio_topology *t, const struct sio_topo_host *h,
				   unsigned index)
{
	const struct sio_topo_adapter *a = &h->adapter[index];
	struct json_object *o = tool_json_object();
	char pci[32], to[SIO_NAME_LEN + 16] = "";

	snprintf(pci, sizeof(pci), "0000:00:%02x.0", MACHINE_SLOT_ADAPTER + index);
	tool_json_string(o, "pci", pci);
	if (a->attach == SIO_ATTACH_LINK)
		other_end(t, a, to, sizeof(to));
	else if (a->attach == SIO_ATTACH_SWITCH)
		snprintf(to, sizeof(to), "%s", t->sw[a->attach_index].name);
	if (*to)
		tool_json_string(o, "to", to);
	return o;
}

static struct json_object *host(const struct sio_topology *t, unsigned index)
{
	const struct sio_topo_host *h = &t->machine[index];
	struct json_object *o = tool_json_object(), *adapters = tool_json_array();
	char ip[MACHINE_ADDRESS_TEXT], text[MACHINE_ADDRESS_TEXT + 8];

	snprintf(text, sizeof(text), "%s:%d", machine_address(t, index, ip), MACHINE_PORT);
	tool_json_number(o, "node", h->node);
	tool_json_string(o, "address", text);
	for (unsigned i = 0; i < h->n_adapters; i++)
		tool_json_append(adapters, adapter(t, h, i));
	tool_json_add(o, "adapters", adapters);
	return o;
}

struct json_object *machine_cluster(const struct sio_topology *t)
{
	struct json_object *o = tool_json_object(), *hosts = tool_json_object(), *list, *link;
	struct json_object *access = tool_json_object();

	tool_json_string(o, "cluster", t->name);
	/* The machines share everything, as hosts of one emulated cluster do. */
	tool_json_string(access, "between_machines", "open");
	tool_json_add(o, "access", access);
	if (t->n_switches) {
		list = tool_json_array();
		for (unsigned i = 0; i < t->n_switches; i++)
			tool_json_append(list, tool_json_word(t->sw[i].name));
		tool_json_add(o, "switches", list);
	}
	if (t->n_trunks) {
		list = tool_json_array();
		for (unsigned i = 0; i < t->n_trunks; i++) {
			link = tool_json_object();
			tool_json_string(link, "from", t->sw[t->trunk[i].sw[0]].name);
			tool_json_string(link, "to", t->sw[t->trunk[i].sw[1]].name);
			tool_json_append(list, link);
		}
		tool_json_add(o, "links", list);
	}
	for (unsigned i = 0; i < t->n_machines; i++)
		tool_json_add(hosts, t->machine[i].name, host(t, i));
	tool_json_add(o, "hosts", hosts);
	return o;
}

static int write_file(const char *path, const char *text, struct sio_err *reterr)
{
	size_t len = strlen(text);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600), r = 0;

	if (fd < 0)
		return sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
	if (write(fd, text, len) != (ssize_t)len)
		r = sio_fail(reterr, -EIO, "%s: cannot be written: %s", path, strerror(errno));
	close(fd);
	return r;
}

/* Makes the cluster's file at @path. */
static int make_file(const char *path, const struct sio_topology *t, struct sio_err *reterr)
{
	struct json_object *o = machine_cluster(t);
	const char *text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY);
	char fresh[PATH_MAX];
	int r;

	r = tool_path(fresh, sizeof(fresh), reterr, "%s.new", path);
	if (r == 0)
		r = write_file(fresh, text, reterr);
	if (r == 0 && rename(fresh, path) < 0)
		r = sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
	json_object_put(o);
	return r;
}

/* Makes keys of all hosts of the cluster's file. */
static int make_keys(const struct machine_files *f, struct sio_err *reterr)
{
	struct sio_topology *t = NULL;
	int r = sio_topofile_read(f->cluster, &t, reterr);

	if (r == 0)
		r = tool_keys_make(f->keys, t, TOOL_KEYS_DAYS, reterr);
	sio_topology_free(t);
	return r;
}

static int make(const struct sio_topology *t, const struct machine_files *f, struct sio_err *reterr)
{
	int r = 0;

	if (!machine_is_addressed(t) && access(f->cluster, F_OK) < 0)
		r = make_file(f->cluster, t, reterr);
	if (r == 0 && access(f->keys, F_OK) < 0)
		r = make_keys(f, reterr);
	return r;
}

int machine_config(const char *dir, const struct sio_topology *t, struct machine_files *ret,
		   struct sio_err *reterr)
{
	bool addressed = machine_is_addressed(t);
	char lock[PATH_MAX];
	int fd, r;

	r = tool_path(ret->cluster, sizeof(ret->cluster), reterr, "%s/%s.yaml", dir,
		      addressed ? "topology" : "machine");
	if (r == 0)
		r = tool_path(ret->keys, sizeof(ret->keys), reterr, "%s/%s", dir,
			      addressed && t->n_hosts ? "keys" : "machine.keys");
	if (r == 0)
		r = tool_path(lock, sizeof(lock), reterr, "%s/machine.lock", dir);
	if (r < 0)
		return r;
	/* Two machines may be started at once. */
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		r = sio_fail(reterr, -errno, "%s: %s", lock, strerror(errno));
	else
		r = make(t, ret, reterr);
	if (fd >= 0)
		close(fd);
	return r;
}
