/* SPDX-License-Identifier: BSD-2-Clause */
/* The path of a file that a device keeps data in. The file itself is opened by the device. */
#include <stdlib.h>
#include <string.h>

#include "topofile/draft.h"

#define MOST 1023u /* bytes of a path */

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

int sio_draft_read_file(struct sio_draft *d, struct sio_spot at, const char *key,
			const char *device, const char **ret)
{
	size_t mark = sio_source_enter(d->source, key, 0);
	const char *text = sio_source_text(at.value);
	size_t len = text ? strlen(text) : 0;
	struct sio_topo_file *file;

	if (len == 0 || len > MOST || text[0] != '/' || !is_plain(text))
		return sio_source_fail(d->source, at,
				       "not an absolute path; one such as /var/lib/disk.img, of at "
				       "most %u characters, is right",
				       MOST);
	for (file = d->t->files; file; file = file->next)
		if (strcmp(file->path, text) == 0)
			return sio_source_fail(d->source, at,
					       "device '%s' has this file; one of its own for each "
					       "namespace is right",
					       file->device);
	file = calloc(1, sizeof(*file) + len + 1);
	if (!file)
		return sio_source_no_memory(d->source);
	memcpy(file->device, device, strlen(device) + 1);
	memcpy(file->path, text, len + 1);
	file->next = d->t->files;
	d->t->files = file;
	*ret = file->path;
	sio_source_leave(d->source, mark);
	return 0;
}
