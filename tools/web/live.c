/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/output.h"
#include "view/frame.h"
#include "web/live.h"

static struct json_object *document(const char *cluster, const char *state)
{
	struct json_object *o = tool_json_object();

	tool_json_string(o, "cluster", cluster);
	tool_json_string(o, "state", state);
	return o;
}

char *tool_web_looking(const char *cluster)
{
	return tool_json_text("web-live", document(cluster, "looking"));
}

char *tool_web_gone(const char *cluster, const struct sio_err *why)
{
	struct json_object *o = document(cluster, "gone");

	tool_json_string(o, "why", why->text);
	return tool_json_text("web-live", o);
}

char *tool_web_live(const char *cluster, uint64_t look, const struct tool_view *v,
		    const struct tool_sample *before, const struct tool_sample *now)
{
	struct json_object *o = document(cluster, "live");

	tool_json_number(o, "look", look);
	tool_json_add(o, "topology", tool_view_json(v));
	tool_json_add(o, "top", tool_frame_json(before, now, TOOL_SORT_NAME));
	return tool_json_text("web-live", o);
}
