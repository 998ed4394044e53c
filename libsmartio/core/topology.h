/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster as its topology file describes it, checked and completed, and the paths through it.
 * Pure data and logic; the file is read in libsmartio/topofile.
 */
#ifndef CORE_TOPOLOGY_H
#define CORE_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/policy.h"
#include "core/types.h"

/*
 * What a device's BARs may take of its host's physical map, and their alignment; see
 * sio_topology_bar_space().
 */
#define SIO_TOPO_BAR_SPACE (16u << 20)

#define SIO_TOPO_PCI 13 /* "0000:05:00.0" */

/* Where a host's daemon listens for those of other hosts: TCP, never looked up by name. */
struct sio_topo_address {
	uint8_t ip[16]; /* the first 4 bytes of an IPv4 address */
	uint16_t port;	/* 0: none; daemons meet at local sockets */
	bool v6;
};

enum sio_attach_kind { SIO_ATTACH_NONE, SIO_ATTACH_SWITCH, SIO_ATTACH_LINK };

struct sio_topo_adapter {
	uint64_t window_base, window_size; /* the aperture in this host's physical map */
	uint32_t lut_entries;		   /* window_size / lut_entries: an entry, a power of 2 */
	uint32_t requesters;		   /* requester entries; two belong to the CPUs */
	uint32_t link_width, link_generation;
	uint32_t latency; /* nanoseconds that it adds to a packet, as core/timing.h has it */
	uint32_t bdf;
	char pci[SIO_TOPO_PCI]; /* where a real host has it, "0000:05:00.0"; "": emulated */
	enum sio_attach_kind attach;
	unsigned attach_index; /* of the switch or of the link */
	unsigned port;	       /* of a switch with numbered ports: the first that it takes */
	unsigned in;	       /* number of the chassis + 1; 0: a slot of the host itself */
};

/*
 * A transparent switch between a host and devices of it: an expansion chassis, or a card that leads
 * to one.
 */
struct sio_topo_chassis {
	char name[SIO_NAME_LEN];
	unsigned in;	       /* number of the chassis that it is behind + 1, which is less */
	uint32_t ports, lanes; /* ports: 0: as many as are needed; lanes of each */
	uint32_t link_width, link_generation; /* of the link towards the host */
	uint32_t latency;		      /* as of an adapter */
	uint64_t aperture; /* addresses that it passes on; 0: as many as are needed */
	/* where in the host's physical map these are; of size 0: nothing is behind it */
	uint64_t range_base, range_size;
};

/* As in smartio/uapi.h. */
enum sio_topo_reset { SIO_TOPO_RESET_NONE, SIO_TOPO_RESET_FUNCTION, SIO_TOPO_RESET_BUS };

#define SIO_TOPO_NAMESPACES 32 /* of a drive */
#define SIO_TOPO_OWN 8	       /* values of keys that a type alone knows */

struct sio_devtype;
struct sio_topo_device {
	char name[SIO_DEVICE_NAME_LEN]; /* unique in the cluster */
	char type[SIO_NAME_LEN];	/* "nvme", "memory", "accelerator", ... */
	const struct sio_devtype *keys; /* the type's; NULL: the device is of no file */
	uint32_t bdf, slot;
	uint32_t fdid;	     /* cluster-wide device id: sio_topology_fdid() */
	uint64_t bar_base;   /* where the device's BARs begin in the host's map */
	uint64_t size;	     /* nvme: bytes of its namespaces; others: of the RAM in its BAR */
	uint32_t block_size; /* nvme: 512 or 4096; of the first */
	/* nvme: where the blocks of its only namespace are; NULL: in memory. The topology's. */
	const char *file;
	/*
	 * nvme: several namespaces, as @n_namespaces says; 0: there is one, of @size and
	 * @block_size.
	 */
	uint32_t n_namespaces;
	struct sio_topo_namespace {
		uint64_t size; /* bytes */
		uint32_t block_size;
		const char *file; /* as above */
	} namespaces[SIO_TOPO_NAMESPACES];
	uint32_t queue_pairs;	/* nvme: I/O queue pairs */
	uint32_t queue_entries; /* nvme: largest queue */
	uint64_t cmb;		/* nvme: bytes of its controller memory buffer; 0: it has none */
	uint32_t units;		/* accelerator: compute units; others: 0 */
	/* Of a type with keys that no one else reads: as its table has them. */
	uint64_t own_size[SIO_TOPO_OWN];
	uint32_t own_number[SIO_TOPO_OWN];
	uint32_t vectors;  /* interrupts that it can distinguish; 0: it has none */
	uint32_t dma_bits; /* width of addresses the device can send */
	uint32_t reset;	   /* how it can be reset: enum sio_topo_reset */
	/*
	 * SR-IOV: each virtual function is a device of its host, too, listed behind all devices
	 * that the file names; for a virtual function: the index of its physical function in the
	 * host's devices + 1, else 0.
	 */
	uint32_t virtual_functions, physical;
	uint32_t link_width, link_generation;
	unsigned in; /* as of an adapter */
	char serial[24];
};

struct sio_topo_host {
	char name[SIO_NAME_LEN];
	uint32_t node; /* multiple of 4, from 4 on */
	uint64_t ram_base, ram_size;
	/*
	 * An emulated host beside machines with mapped windows: so many bytes at the start of its
	 * RAM are one file, which these map. 0: it has no pool.
	 */
	uint64_t pool_size;
	bool iommu;
	struct sio_topo_address address; /* all hosts of a cluster have one, or none has */
	bool real;			 /* its adapters are those of a machine, by smartio.ko */
	bool machine;			 /* a virtual machine, joined by virtual NTBs */
	bool mapped;			 /* a machine: its RAM is in the file that its peers map */
	unsigned n_adapters, n_devices;
	struct sio_topo_adapter adapter[SIO_MAX_ADAPTERS];
	struct sio_topo_device *device;
	unsigned n_chassis;
	struct sio_topo_chassis *chassis;
};

/*
 * A cluster switch. A link takes as many ports as its lanes need, beginning at a multiple of that
 * number.
 */
struct sio_topo_switch {
	char name[SIO_NAME_LEN];
	uint32_t ports, lanes; /* ports: 0: as many as are needed, not numbered; lanes of each */
	uint32_t latency;      /* as of an adapter */
};

/* A link between two cluster switches. */
struct sio_topo_trunk {
	unsigned sw[2], port[2];
	uint32_t link_width, link_generation;
};

/* A file that the topology names, for one namespace of @device. */
struct sio_topo_file {
	struct sio_topo_file *next;
	char device[SIO_DEVICE_NAME_LEN];
	char path[];
};

struct sio_topology {
	struct sio_topo_file *files; /* the last one first */
	char name[SIO_NAME_LEN];
	uint32_t max_payload;		   /* bytes; 256 */
	uint32_t max_read_request;	   /* bytes; 512 */
	uint32_t read_completion_boundary; /* bytes; 64 */
	bool exact_multicast;		   /* each member of a group has memory of its own */
	bool apart;			   /* hosts that nothing joins are meant, and no mistake */
	unsigned n_hosts, n_switches, n_links;
	struct sio_topo_host *host; /* ascending by node */
	struct sio_topo_switch *sw;
	unsigned n_trunks;
	struct sio_topo_trunk *trunk;
	/*
	 * Trunks between every two switches, by sio_topology_measure(): [a * n_switches + b]. NULL:
	 * no switch is linked to another.
	 */
	uint8_t *distance;
	struct sio_policy policy; /* who may do what, and how much */
	unsigned n_machines;
	struct sio_topo_host *machine; /* behind the hosts, in their array */
};

/* One path from a host to another: adapters at both ends, and what lies between. */
struct sio_path {
	unsigned adapter, peer_adapter; /* indices at the two hosts */
	unsigned hops; /* links crossed: 1 back to back, else 1 more than there are switches */
};

/*
 * The API's device id (fdid) of a device of node @node: made of the node and a number that is
 * unique among the host's devices, 1 to SIO_TOPO_NUMBERS. It follows from the device alone and not
 * from its place in the list, so it stays when other devices come and go.
 */
#define SIO_TOPO_NUMBERS 0xfffffu
static inline uint32_t sio_topology_fdid(uint32_t node, uint32_t number)
{
	return node << 20 | number;
}
/* The node of a device id. */
static inline uint32_t sio_topology_fdid_node(uint32_t fdid)
{
	return fdid >> 20;
}
/*
 * The number of the device that the file calls @name. Names that differ only in a number at their
 * end have numbers that differ by as much; the file's reader checks that no two devices share one.
 */
uint32_t sio_topology_number(const char *name);
/* The number of a real host's device, by its PCI address: domain << 16 | bus << 8 | devfn. */
uint32_t sio_topology_place_number(uint32_t bdf);
/* The space that @d's BARs need in its host's physical map, and their alignment: a power of 2. */
uint64_t sio_topology_bar_space(const struct sio_topo_device *d);
/* Finds a host by node id or name; NULL: none. */
const struct sio_topo_host *sio_topology_host(const struct sio_topology *t, uint32_t node);
/* The same among hosts and machines. */
const struct sio_topo_host *sio_topology_member(const struct sio_topology *t, uint32_t node);
/*
 * Makes machines count among the hosts, too: @all of them, as pictures show them; or those that
 * have an address, as daemons see a cluster: the inside of such a machine is not described here, so
 * it is a real host without devices. Pointers to hosts and machines are stale afterwards.
 */
void sio_topology_include_machines(struct sio_topology *t, bool all);
const struct sio_topo_host *sio_topology_host_by_name(const struct sio_topology *t,
						      const char *name);
const struct sio_topo_device *sio_topology_device(const struct sio_topology *t, uint32_t fdid,
						  const struct sio_topo_host **ret_host);
/*
 * Lists paths between two nodes (hosts or machines), fewest hops first, then lowest adapters; at
 * most @max are written.
 * Return: how many there are; 0: not connected, or the same node.
 */
unsigned sio_topology_paths(const struct sio_topology *t, uint32_t from, uint32_t to,
			    struct sio_path *path, unsigned max);
/* The distance of switches that no path connects. */
#define SIO_TOPO_FAR UINT8_MAX
/*
 * Measures the distance between every two switches, without the trunks whose element of @out is set
 * (NULL: with all). @distance: n_switches * n_switches, SIO_TOPO_FAR where there is no path.
 */
void sio_topology_distances(const struct sio_topology *t, const bool *out, uint8_t *distance);
/* Sets @distance of a topology that has trunks: paths use them from now on. -ENOMEM. */
int sio_topology_measure(struct sio_topology *t);
/* Finds a cluster switch by its name; n_switches: none. */
unsigned sio_topology_switch(const struct sio_topology *t, const char *name);
/*
 * Finds the trunk that joins the same ports as trunk @index of @of does; of several, the one that
 * has as many of them before it. Switches are the same if their names are. n_trunks: none.
 */
unsigned sio_topology_trunk(const struct sio_topology *t, const struct sio_topology *of,
			    unsigned index);
/* Ports that a link of @width lanes takes, where each port has @lanes. */
unsigned sio_topology_ports(uint32_t width, uint32_t lanes);
/* Are the two on different machines? Those without an address, or with the same one, are not. */
bool sio_topology_apart(const struct sio_topo_host *a, const struct sio_topo_host *b);
/*
 * Puts each host of @t where @to has the one of the same node id, those of other ids behind them.
 * Where @to has one that @t lacks, @t has an empty place: a host without name, adapters and
 * devices, whose node id is that of before. For who knows hosts by their numbers while another file
 * takes the place of one. Neither has machines. -ENOMEM.
 */
int sio_topology_align(struct sio_topology *t, const struct sio_topology *to);
/* Is this an empty place? */
static inline bool sio_topology_is_vacant(const struct sio_topo_host *h)
{
	return h->name[0] == '\0';
}
/* Frees all that a topology holds; NULL is fine. */
void sio_topology_free(struct sio_topology *t);

#endif
