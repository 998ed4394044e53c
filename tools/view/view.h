/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The present state of a cluster: each host, each link and each device, for all commands that show
 * it.
 */
#ifndef TOOLS_VIEW_H
#define TOOLS_VIEW_H

#include <stdbool.h>

#include "base/hosts.h"
#include "core/outage.h"

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

struct tool_view {
	struct tool_hosts *hosts;
	const struct sio_topology *topology;
	struct sio_outage *outage; /* NULL: there is no room to ask */
	bool room; /* an emulated cluster's machine room runs; true on a real machine */
	unsigned n;
	struct tool_view_host host[SIO_MAX_HOSTS];
};

/* Queries the cluster of the command; a silent host gets a line on stderr. */
int tool_view_open(struct tool_view **ret, struct sio_err *reterr);
/* The same for the cluster in @dir. */
int tool_view_open_dir(const char *dir, struct tool_view **ret, struct sio_err *reterr);
/* Frees the view and closes its hosts. NULL is fine. */
void tool_view_close(struct tool_view *v);

/* "up", "down", "unknown". */
const char *tool_link_state_name(enum tool_link_state state);
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
/* How its lender can reset a device that is present: "function", "bus", "none". */
const char *tool_device_reset_name(const struct tool_view_device *d);
/* By which interface VFIO serves the device: "group", "iommufd"; NULL: it is not VFIO's. */
const char *tool_device_vfio_name(const struct tool_view_host *h, const struct tool_view_device *d);
/* The name of a virtual function's physical one; NULL: the device is not a virtual function. */
const char *tool_physical_function(const struct tool_view_host *h,
				   const struct tool_view_device *d);
/* The reset state of the device: "clean", "used", "reset failed", ... */
const char *tool_device_use_name(const struct tool_view_device *d);
/* "1/2 up"; "" if the host cannot be asked. */
#define TOOL_LINKS_TEXT 24
const char *tool_view_links(const struct tool_view_host *h, char text[TOOL_LINKS_TEXT]);

/* The chassis of @h, one in another, down to @in (of the topology, not 0): "card/box/shelf". */
#define TOOL_CHASSIS_TEXT (SIO_MAX_CHASSIS * SIO_NAME_LEN)
const char *tool_view_chassis(const struct sio_topo_host *h, unsigned in,
			      char text[TOOL_CHASSIS_TEXT]);

/* "name", "node" and "state" of a host, the same in all documents. */
struct json_object;
void tool_view_host_json(struct json_object *o, const struct tool_view_host *h);
/* An adapter with its link, and the free entries of its tables. */
struct json_object *tool_view_adapter_json(const struct tool_view_adapter *a, unsigned index);
/* A device and its borrowers. */
struct json_object *tool_view_device_json(const struct tool_view_host *h,
					  const struct tool_view_device *d);
/* The whole view: the data of smartio/topology. */
struct json_object *tool_view_json(const struct tool_view *v);

#endif
