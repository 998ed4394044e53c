/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that returns from main() or calls exit() with everything open ends cleanly, and those
 * whose segments it is connected to are notified. In the shared library only.
 */
#include "sisci/base/library.h"

__attribute__((destructor)) static void at_exit(void)
{
	struct sio_library *lib = sio_library_get();

	if (lib && sio_library_is_up(lib))
		sio_session_bye(lib->session);
}
