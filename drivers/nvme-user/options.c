/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "error.h"
#include "options.h"

#define LARGEST 4096u

int sio_nvme_options(void *options, size_t size, const void *given)
{
	const unsigned char *bytes = given;
	size_t theirs = size;

	memset(options, 0, size);
	if (!given)
		return 0;
	memcpy(&theirs, given, sizeof(theirs));
	if (theirs < sizeof(theirs) || theirs > LARGEST)
		return sio_nvme_fail(-EINVAL, "the options' size is %zu, this library's %zu",
				     theirs, size);
	for (size_t i = size; i < theirs; i++)
		if (bytes[i])
			return sio_nvme_fail(-EINVAL,
					     "an option at byte %zu is set that this "
					     "library does not know",
					     i);
	memcpy(options, given, theirs < size ? theirs : size);
	return 0;
}
