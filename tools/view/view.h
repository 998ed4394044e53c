/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The present state of a cluster: each host, each link and each device, for all commands that show
 * it.
 */
#ifndef TOOLS_VIEW_H
#define TOOLS_VIEW_H

#include <stdbool.h>

#include "base/hosts.h"
#include "base/room.h"
#include "core/outage.h"

#define TOOL_LINKS_TEXT 24 /* room for "1/2 up" */

enum tool_link_state {
	TOOL_LINK_UNKNOWN, /* its host cannot be asked */
	TOOL_LINK_UP,
	TOOL_LINK_DOWN,
};

enum tool_device_state {
	TOOL_DEVICE_UNKNOWN, /* its host is silent */
	TOOL_DEVICE_HOST_DOWN,
	TOOL_DEVICE_OUT, /* not in its slot */
	TOOL_DEVICE_FREE,
	TOOL_DEVICE_SHARED,
	TOOL_DEVICE_EXCLUSIVE,
};

struct tool_view_adapter {
	const struct sio_topo_adapter *topo;
	enum tool_link_state link;
	struct sio_rep_adapter info; /* valid unless the link is unknown */
};

struct tool_view_device {
	const struct sio_topo_device *topo;
	enum tool_device_state state;
	struct sio_rep_dev_list info; /* valid from TOOL_DEVICE_FREE on */
};

struct tool_view_host {
	struct tool_host *host;
	const struct sio_topo_host *topo;
	unsigned links_up;
	struct tool_view_adapter adapter[SIO_MAX_ADAPTERS];
	struct tool_view_device *device; /* topo->n_devices */
};

/* A host of kind machine, as the machine room knows it: no daemon of this cluster is behind it. */
struct tool_view_machine {
	const struct sio_topo_host *topo;
	bool known; /* the room has said what follows */
	bool up;    /* QEMU, or another initiator, has one of its adapters or devices */
	unsigned links_up;
	int64_t at; /* when it was asked, in nanoseconds of the monotonic clock */
	struct tool_room_part adapter[SIO_MAX_ADAPTERS];
	struct tool_room_part *device; /* topo->n_devices */
	/* What its kernel lends, which is not in the file: a host of these devices alone. */
	struct tool_view_host lender;
	struct sio_topo_host lent;
	struct tool_host daemon;
};

struct tool_view {
	struct tool_hosts *hosts;
	const struct sio_topology *topology;
	struct sio_outage *outage; /* NULL: there is no room to ask */
	bool room; /* an emulated cluster's machine room runs; true on a real machine */
	unsigned n;
	struct tool_view_host host[SIO_MAX_HOSTS];
	unsigned n_machines;
	struct tool_view_machine *machine;
};

/* Queries the cluster of the command; a silent host gets a line on stderr. */
int tool_view_open(struct tool_view **ret, struct sio_err *reterr);
/* The same; of other machines' hosts only @node, a name or an id, is asked; NULL: all. */
int tool_view_open_only(const char *node, struct tool_view **ret, struct sio_err *reterr);
/* The same for the cluster in @dir. */
int tool_view_open_dir(const char *dir, struct tool_view **ret, struct sio_err *reterr);
/* Frees the view and closes its hosts. NULL is fine. */
void tool_view_close(struct tool_view *v);

/* "up", "down", "unknown". */
const char *tool_link_state_name(enum tool_link_state state);
/* "up", "down"; "unknown": the machine room does not say. */
const char *tool_machine_name_of_state(const struct tool_view_machine *m);
enum tool_link_state tool_machine_link(const struct tool_view_machine *m, unsigned adapter);
/* Of a device of its own: "attached", "detached", "unknown". */
const char *tool_machine_device_state(const struct tool_view_machine *m, unsigned device);
/* "1/2 up"; "" if nothing is known. */
const char *tool_machine_links(const struct tool_view_machine *m, char text[TOOL_LINKS_TEXT]);
/* Is a link between two switches down, or does a switch at one of its ends have no power? */
bool tool_trunk_is_down(const struct tool_view *v, unsigned trunk);
/* "free", "host down", ... */
const char *tool_device_state_name(enum tool_device_state state);
/* Is the device present, used or not? */
bool tool_device_is_in(const struct tool_view_device *d);
/* Finds a device by name or id; otherwise -ENODEV with the names that there are. */
int tool_view_find_device(const struct tool_view *v, const char *name,
			  const struct tool_view_host **ret_host,
			  const struct tool_view_device **ret, struct sio_err *reterr);
/* The same among what machines lend. False: there is none of that name or id. */
bool tool_view_find_lent(const struct tool_view *v, const char *name,
			 const struct tool_view_host **ret_host,
			 const struct tool_view_device **ret);
bool tool_device_is_named(const struct tool_view_device *d, const char *name);
/* How its lender can reset a device that is present: "function", "bus", "none". */
const char *tool_device_reset_name(const struct tool_view_device *d);
/* By which interface VFIO serves the device: "group", "iommufd"; NULL: it is not VFIO's. */
const char *tool_device_vfio_name(const struct tool_view_host *h, const struct tool_view_device *d);
/* The name of a virtual function's physical one; NULL: the device is not a virtual function. */
const char *tool_physical_function(const struct tool_view_host *h,
				   const struct tool_view_device *d);
/* The reset state of the device: "as found", "clean", "used", ... */
const char *tool_device_use_name(const struct tool_view_device *d);
/* "1/2 up"; "" if the host cannot be asked. */
const char *tool_view_links(const struct tool_view_host *h, char text[TOOL_LINKS_TEXT]);

/* The chassis of @h, one in another, down to @in (of the topology, not 0): "card/box/shelf". */
#define TOOL_CHASSIS_TEXT (SIO_MAX_CHASSIS * SIO_NAME_LEN)
const char *tool_view_chassis(const struct sio_topo_host *h, unsigned in,
			      char text[TOOL_CHASSIS_TEXT]);

/* "name", "node" and "state" of a host, the same in all documents. */
struct json_object;
void tool_view_host_json(struct json_object *o, const struct tool_view_host *h);
/* The same of a machine, and its kind; an adapter of it; all of it, as smartio/topology has it. */
void tool_machine_head_json(struct json_object *o, const struct tool_view_machine *m);
struct json_object *tool_machine_adapter_json(const struct tool_view_machine *m, unsigned index);
struct json_object *tool_machine_json(const struct tool_view *v, const struct tool_view_machine *m);
/* An adapter with its link, and the free entries of its tables. */
struct json_object *tool_view_adapter_json(const struct tool_view_adapter *a, unsigned index);
/* What an adapter is joined to: a switch by name, a cable by its number. */
void tool_view_attachment_json(struct json_object *o, const struct tool_view *v,
			       const struct sio_topo_adapter *a);
/* A device and its borrowers. */
struct json_object *tool_view_device_json(const struct tool_view_host *h,
					  const struct tool_view_device *d);
/* The whole view: the data of smartio/topology. */
struct json_object *tool_view_json(const struct tool_view *v);

#endif
