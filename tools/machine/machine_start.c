/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio machine start. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/command.h"
#include "base/hint.h"
#include "base/output.h"
#include "base/state.h"
#include "cluster/start.h"
#include "machine/addressed.h"
#include "machine/asks.h"
#include "machine/config.h"
#include "machine/tsc.h"

#define MEMORY_MB 512u
#define LEAST_MB 256u

static const char *memory, *drive, *iommu;
static bool emulated;

/* "512M", "1G". Return: megabytes; 0: no such size. */
static unsigned read_memory(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || n > 65536)
		return 0;
	if (strcmp(end, "G") == 0)
		n *= 1024;
	else if (strcmp(end, "M") != 0)
		return 0;
	return n >= LEAST_MB && n <= 65536 ? (unsigned)n : 0;
}

static int check_drive(char path[PATH_MAX])
{
	struct stat st;

	if (!realpath(drive, path))
		return tool_error("--drive %s: %s; an empty one is made with: truncate -s 64M FILE",
				  drive, strerror(errno));
	if (stat(path, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)))
		return tool_error("--drive %s: neither a file nor a block device", drive);
	if (access(path, R_OK | W_OK) < 0)
		return tool_error("--drive %s: %s; the machine reads and writes it", drive,
				  strerror(errno));
	if (S_ISREG(st.st_mode) && (st.st_size < 1 << 20 || st.st_size % 4096))
		return tool_error(
			"--drive %s: %lld bytes; 1M or more, in whole blocks of 4096 bytes, "
			"is right",
			drive, (long long)st.st_size);
	return 0;
}

/* The file that we make for machines without addresses has no rules: they share all they have. */
static bool has_policy(const struct sio_policy *p)
{
	bool limits = false;

	for (unsigned i = 0; i < SIO_QUOTAS; i++)
		limits |= p->node[i].set || p->program[i].set;
	return p->n_rules || limits;
}

/* Whether the machine maps the pool of that host. */
static bool maps_pool(const struct machine *m, const struct sio_topo_host *h)
{
	struct sio_path way;

	return m->host->mapped && h->pool_size &&
	       sio_topology_paths(m->topology, m->host->node, h->node, &way, 1) > 0;
}

static unsigned count_pools(const struct machine *m)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->topology->n_hosts; i++)
		n += maps_pool(m, &m->topology->host[i]);
	return n;
}

/* Why the machine cannot be started now. */
static int check_start(const struct machine *m, struct sio_err *reterr)
{
	char hint[TOOL_HINT_TEXT], path[PATH_MAX];
	struct tool_program p;
	pid_t pid;
	int r;

	if (tool_state_program(m->dir, "emu", false, &p) < 0)
		return sio_fail(reterr, -ENOTCONN,
				"the machine room of cluster '%s' does not run, so no machine can "
				"start; take it down with: %s cluster down",
				m->topology->name, tool_hint(m->dir, hint));
	if (tool_state_machine(m->dir, m->host->node, &pid) == TOOL_MACHINE_RUNNING)
		return sio_fail(reterr, -EBUSY, "machine '%s' is running already (process %d)",
				m->host->name, (int)pid);
	if (machine_is_addressed(m->topology)) {
		r = machine_check_addresses(m->topology, m->host, reterr);
		if (r < 0)
			return r;
	} else if (has_policy(&m->topology->policy)) {
		return sio_fail(
			reterr, -EINVAL,
			"the file of cluster '%s' has rules or quotas, which machines follow that "
			"have it: each needs an 'address', as 10.74.0.1:7470, and 'pci' for its "
			"adapters, as 0000:00:%x.0 for the first",
			m->topology->name, MACHINE_SLOT_ADAPTER);
	}
	if (m->topology->n_machines > MACHINE_MAX)
		return sio_fail(reterr, -E2BIG,
				"cluster '%s' has %u machines; 'smartio machine' runs those of a "
				"cluster with %d at most",
				m->topology->name, m->topology->n_machines, MACHINE_MAX);
	if (count_pools(m) > MACHINE_POOLS)
		return sio_fail(
			reterr, -E2BIG,
			"machine '%s' is joined to %u emulated hosts with pools; at most %d are "
			"right, by more switches",
			m->host->name, count_pools(m), MACHINE_POOLS);
	r = tool_path(path, sizeof(path), reterr, "%s/machine.%u.ether.%u", m->dir, SIO_MAX_NODE,
		      SIO_MAX_NODE);
	if (r == 0 && strlen(path) > TOOL_SOCKET_PATH_MAX)
		r = sio_fail(reterr, -ENAMETOOLONG,
			     "%s: %zu bytes, but a socket's path holds %d; bring the cluster up in "
			     "a shorter directory with --state DIR",
			     path, strlen(path), TOOL_SOCKET_PATH_MAX);
	return r;
}

static void add_word(struct json_object *array, const char *dir, const char *name, unsigned index)
{
	char path[PATH_MAX];

	if (index == UINT32_MAX)
		snprintf(path, sizeof(path), "%.4000s/vfio.%.60s", dir, name);
	else
		snprintf(path, sizeof(path), "%.4000s/vfio.%.60s.%u", dir, name, index);
	tool_json_append(array, tool_json_word(path));
}

/* Adapters, devices, and networks to the other machines. */
static void add_hardware(struct json_object *o, const struct machine *m)
{
	struct json_object *adapters = tool_json_array(), *devices = tool_json_array();
	struct json_object *peers = tool_json_array(), *peer;
	unsigned own = (unsigned)(m->host - m->topology->machine);
	char ip[MACHINE_ADDRESS_TEXT];

	for (unsigned i = 0; i < m->host->n_adapters; i++)
		add_word(adapters, m->dir, m->host->name, i);
	for (unsigned i = 0; i < m->host->n_devices; i++)
		if (!m->host->device[i].physical)
			add_word(devices, m->dir, m->host->device[i].name, UINT32_MAX);
	for (unsigned i = 0; i < m->topology->n_machines; i++) {
		if (i == own)
			continue;
		peer = tool_json_object();
		tool_json_number(peer, "node", m->topology->machine[i].node);
		tool_json_string(peer, "address", machine_address(m->topology, i, ip));
		tool_json_append(peers, peer);
	}
	tool_json_string(o, "address", machine_address(m->topology, own, ip));
	if (machine_is_addressed(m->topology))
		tool_json_add(o, "hosts", machine_host_addresses(m->topology));
	tool_json_add(o, "adapters", adapters);
	tool_json_add(o, "devices", devices);
	tool_json_add(o, "peers", peers);
}

/*
 * Where the RAM of a machine lies in the file that has all machines' RAM: laid out as smartio-emu
 * does.
 */
static uint64_t ram_offset(const struct machine *m)
{
	uint64_t at = 0, step = 2u << 20;

	for (const struct sio_topo_host *h = m->topology->machine; h < m->host; h++)
		if (h->mapped)
			at += (h->ram_size + step - 1) / step * step;
	return at;
}

static void add_pools(struct json_object *o, const struct machine *m)
{
	struct json_object *list = tool_json_array();
	char path[PATH_MAX];

	for (unsigned i = 0; i < m->topology->n_hosts; i++) {
		if (!maps_pool(m, &m->topology->host[i]))
			continue;
		snprintf(path, sizeof(path), "%.4000s/memory.%.60s", m->dir,
			 m->topology->host[i].name);
		tool_json_append(list, tool_json_word(path));
	}
	tool_json_add(o, "pools", list);
}

static int add_programs(struct json_object *o, struct sio_err *reterr)
{
	static const char *const name[] = {"smartio", "smartiod", "smartio-nvme", "smartio-agent"};
	struct json_object *list = tool_json_array();
	char path[PATH_MAX];
	int r = 0;

	for (unsigned i = 0; r == 0 && i < sizeof(name) / sizeof(name[0]); i++) {
		r = tool_find_binary(name[i], path, sizeof(path), reterr);
		if (r == 0)
			tool_json_append(list, tool_json_word(path));
	}
	tool_json_add(o, "programs", list);
	return r;
}

static int start_machine(const struct machine *m, unsigned mb, const char *drive_path)
{
	struct machine_files files;
	struct json_object *asks;
	struct sio_err err;
	int r;

	r = check_start(m, &err);
	if (r == 0)
		r = machine_config(m->dir, m->topology, &files, &err);
	if (r < 0)
		return tool_fail(&err);
	asks = machine_asks(m->dir);
	tool_json_string(asks, "directory", m->dir);
	tool_json_string(asks, "cluster", files.cluster);
	tool_json_string(asks, "keys", files.keys);
	tool_json_string(asks, "name", m->host->name);
	tool_json_number(asks, "node", m->host->node);
	tool_json_number(asks, "memory", mb);
	tool_json_bool(asks, "emulated", emulated);
	tool_json_string(asks, "iommu", iommu ? iommu : "none");
	tool_json_number(asks, "tsc_khz", machine_tsc_khz());
	if (m->host->mapped)
		tool_json_number(asks, "ram_offset", ram_offset(m));
	add_pools(asks, m);
	if (drive_path)
		tool_json_string(asks, "drive", drive_path);
	add_hardware(asks, m);
	if (add_programs(asks, &err) < 0) {
		json_object_put(asks);
		return tool_fail(&err);
	}
	return machine_ask("start", asks, "machine-start");
}

static int start(const struct tool_command *self, int argc, char **argv)
{
	int first, status = 0;
	char path[PATH_MAX];
	struct machine m;
	unsigned mb;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	mb = memory ? read_memory(memory) : MEMORY_MB;
	if (mb == 0)
		return tool_usage(self->name, "--memory %s: %uM to 64G, as in 512M or 1G, is right",
				  memory, LEAST_MB);
	if (iommu && strcmp(iommu, "none") != 0 && strcmp(iommu, "intel") != 0 &&
	    strcmp(iommu, "amd") != 0)
		return tool_usage(self->name, "--iommu %s: none, intel or amd is right", iommu);
	status = machine_check_kernel(self);
	if (status == 0 && drive)
		status = check_drive(path);
	if (status == 0)
		status = machine_find(argv[first], &m);
	if (status != 0)
		return status;
	if (m.host->mapped && iommu && strcmp(iommu, "none") != 0)
		status = tool_usage(
			self->name,
			"--iommu %s: machine '%s' has 'window: mapped', through which peers "
			"reach its memory past an IOMMU; 'window: exact' is right",
			iommu, m.host->name);
	else if (m.host->mapped && memory)
		status = tool_usage(self->name,
				    "--memory: machine '%s' has 'window: mapped', so its memory is "
				    "'ram' of the topology file",
				    m.host->name);
	else
		status = start_machine(&m, m.host->mapped ? (unsigned)(m.host->ram_size >> 20) : mb,
				       drive ? path : NULL);
	machine_done(&m);
	return status;
}

static const struct tool_option start_options[] = {
	{"memory", .value = &memory, .takes = "SIZE", .text = "its memory; 512M if not given"},
	{"drive", .value = &drive, .takes = "FILE", .kind = TOOL_FILES,
	 .text = "an NVMe drive with this content, lent to the cluster as NODE/0000:00:08.0"},
	MACHINE_OPTION_KERNEL,
	{"iommu", .value = &iommu, .takes = "none|intel|amd", .kind = TOOL_CHOICES,
	 .text = "an IOMMU that translates for its devices; none if not given"},
	{"emulated", .flag = &emulated, .text = "emulate its processors, though there is /dev/kvm"},
	{.name = NULL}};

const struct tool_command tool_machine_start_command = {
	.name = "machine start",
	.summary = "Start the virtual machine of a host of kind machine",
	.help = "Returns when its smartiod answers. The machine stays until 'machine stop' or 'cluster down'.\n"
		"With /dev/kvm it has this machine's processors, otherwise emulated ones.\n",
	.page = "smartio-machine",
	.schemas = "machine-start",
	.options = start_options,
	.words = {{"NODE", TOOL_MACHINES}},
	.run = start};
