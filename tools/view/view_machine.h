/* SPDX-License-Identifier: BSD-2-Clause */
/* How a view comes by its machines: for view.c. */
#ifndef TOOLS_VIEW_MACHINE_H
#define TOOLS_VIEW_MACHINE_H

#include "view/view.h"

/* Asks the machine room for each. A room that does not answer is no error. */
void tool_view_look_at_machines(struct tool_view *v);
void tool_view_forget_machines(struct tool_view *v);
/* view_lent.c: asks the hosts' daemons what machines lend; after they were looked at. */
void tool_view_look_at_lent(struct tool_view *v);
void tool_view_forget_lent(struct tool_view_machine *m);
/* Of a device that is present. */
enum tool_device_state tool_device_state_of(const struct sio_rep_dev_list *info);
/* Finds the value of a counter by its name. False: it is not counted. */
bool tool_room_value(const struct tool_room_part *p, const char *name, uint64_t *ret);

#endif
