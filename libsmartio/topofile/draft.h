/* SPDX-License-Identifier: BSD-2-Clause */
/* A topology that is being read: its parts so far, and the place of each part in the file. */
#ifndef TOPOFILE_DRAFT_H
#define TOPOFILE_DRAFT_H

#include "core/topology.h"
#include "topofile/source.h"

#define SIO_KIB 1024ull
#define SIO_MIB (1024 * SIO_KIB)
#define SIO_GIB (1024 * SIO_MIB)
#define SIO_TIB (1024 * SIO_GIB)
#define SIO_DRAFT_LARGEST (16 * SIO_TIB)   /* RAM of a host, a window, a device */
#define SIO_DRAFT_HIGHEST (4096 * SIO_TIB) /* end of a host's addresses: 52 bits */

#define SIO_DRAFT_PORTS 256	  /* of a switch, or a chassis */
#define SIO_DRAFT_DEVICES 31	  /* per host; as many as a PCI bus takes beside its bridge */
#define SIO_DRAFT_LATENCY 1000000 /* nanoseconds of a chip */

struct sio_draft_adapter {
	char to[SIO_NAME_LEN]; /* switch or host; "": the only switch */
	int to_index;	       /* adapter of that host, port of that switch; -1: any */
	struct sio_spot at, to_at, base_at, in_at;
};

struct sio_draft_device {
	struct sio_spot at, slot_at, base_at, serial_at, in_at, functions_at;
};

struct sio_draft_chassis {
	struct sio_spot at, aperture_at;
};

/* A link between two switches. */
struct sio_draft_trunk {
	char to[2][SIO_NAME_LEN];
	int port[2]; /* -1: any */
	struct sio_spot at, end_at[2];
};

struct sio_draft_host {
	struct sio_spot at, node_at, base_at, pool_at, address_at;
	struct sio_draft_adapter adapter[SIO_MAX_ADAPTERS];
	struct sio_draft_device device[SIO_DRAFT_DEVICES];
	struct sio_draft_chassis chassis[SIO_MAX_CHASSIS];
};

struct sio_draft {
	struct sio_source *source;
	struct sio_topology *t;	       /* hosts in the file's order */
	struct sio_draft_host *host;   /* as in t->host */
	struct sio_draft_trunk *trunk; /* as in t->trunk */
	unsigned max_hosts;	       /* t->host and host have memory for them */
	bool no_switches;	       /* the file does not say which there are */
	/*
	 * What is in force, and goes on by this file: slots and addresses that the file leaves to
	 * us stay as they are there. NULL: nothing.
	 */
	const struct sio_topology *before;
};

#define SIO_DRAFT_TO_RIGHT                                                                         \
	"not where an adapter can lead; a switch, SWITCH.PORT, a host, or HOST.INDEX with an "     \
	"adapter's index from 0 to %d is right"

/*
 * adapter.c, device.c: read those of host @host; without the key "adapters" there is one adapter,
 * with defaults.
 */
int sio_draft_read_adapters(struct sio_draft *d, unsigned host, struct sio_spot at);
void sio_draft_default_adapter(struct sio_draft *d, unsigned host);
int sio_draft_read_devices(struct sio_draft *d, unsigned host, struct sio_spot at);
/* The host with a device of this name, and the line of the file that it is in; NULL: none yet. */
const struct sio_topo_host *sio_draft_find_device(const struct sio_draft *d, const char *name,
						  size_t *ret_line);
/* before.c: that host, or that device of it, in what is in force; NULL: it has none. */
const struct sio_topo_host *sio_draft_host_before(const struct sio_draft *d, const char *host);
const struct sio_topo_device *sio_draft_device_before(const struct sio_draft *d, const char *host,
						      const char *name);
/* backing.c: reads @key of @device, the path of a file; *ret is owned by the topology. */
int sio_draft_read_file(struct sio_draft *d, struct sio_spot at, const char *key,
			const char *device, const char **ret);
/* function.c: adds the virtual functions of all devices of host @host, which have their slots. */
int sio_draft_add_functions(struct sio_draft *d, unsigned host);
/* address.c: reads "IP:PORT" of the host, the last one in the topology. */
int sio_draft_read_address(struct sio_draft *d, unsigned host, struct sio_spot at);
/* Checks that all hosts have an address or none has, no two the same; real hosts need one. */
int sio_draft_check_addresses(struct sio_draft *d);
/* address.c: reads "0000:05:00.0", of an adapter; @out: SIO_TOPO_PCI bytes. */
int sio_draft_read_pci(struct sio_source *s, struct sio_spot at, char *out);
/* host.c: reads one host, appended to the topology, with its adapters and devices. */
int sio_draft_add_host(struct sio_draft *d, yaml_node_t *key, yaml_node_t *value);
/* switch.c: reads the switches, and the links between them. */
int sio_draft_read_switches(struct sio_draft *d, struct sio_spot at);
int sio_draft_read_links(struct sio_draft *d, struct sio_spot at);
/* Parses NAME or NAME.INDEX, where INDEX is less than @most; without it -1. False: neither. */
bool sio_draft_parse_end(struct sio_spot at, unsigned most, char name[SIO_NAME_LEN], int *ret);
/* The index of a switch; -1: there is none of this name. */
int sio_draft_find_switch(const struct sio_topology *t, const char *name);
/*
 * ports.c: gives each link of a switch with numbered ports its own ports; refuses too many lanes.
 */
int sio_draft_number_ports(struct sio_draft *d);
/* chassis.c: reads those of host @host, before its adapters and devices. */
int sio_draft_read_chassis(struct sio_draft *d, unsigned host, struct sio_spot at);
/*
 * Reads in which chassis an adapter or a device is, as in the topology; @at: of the value, or
 * without one.
 */
int sio_draft_read_in(struct sio_draft *d, unsigned host, struct sio_spot at, unsigned *ret);
/* Checks that the devices in each chassis of the host fit there: lanes, and addresses. */
int sio_draft_check_chassis(struct sio_draft *d, unsigned host);
/* policy.c: reads access rules and quotas; each may be missing. All hosts and devices are known. */
int sio_draft_read_policy(struct sio_draft *d, struct sio_spot access, struct sio_spot quotas);
/*
 * apart.c: checks that no part of the cluster is isolated, unless the file says that this is
 * intended.
 */
int sio_draft_check_apart(struct sio_draft *d);
/* join.c: resolves what each adapter is connected to. */
int sio_draft_join(struct sio_draft *d);
/*
 * pool.c: gives each emulated host beside machines with mapped windows its pool; refuses one
 * elsewhere.
 */
int sio_draft_give_pools(struct sio_draft *d);
/* layout.c: assigns addresses to each host's RAM, windows and BARs; refuses overlaps. */
int sio_draft_lay_out(struct sio_draft *d);

/* "hosts.H.adapters[I].KEY", "hosts.H.devices.D.KEY": for errors. */
#define SIO_DRAFT_PATH 160
const char *sio_draft_adapter_path(const struct sio_topo_host *h, unsigned index, const char *key,
				   char *out);
const char *sio_draft_device_path(const struct sio_topo_host *h, unsigned index, const char *key,
				  char *out);

#endif
