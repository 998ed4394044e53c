/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio-machine, the script that fetches what machines need and starts QEMU (main.py); its output
 * is printed like that of any other command.
 */
#ifndef TOOLS_MACHINE_HELPER_H
#define TOOLS_MACHINE_HELPER_H

#include <json-c/json.h>

/*
 * Runs it: smartio-machine @verb @asks. Its progress is printed as lines on standard error, its
 * failure by tool_error().
 * @ret_result: set on success; the caller releases it.
 * Return: exit status.
 */
int machine_helper(const char *verb, struct json_object *asks, struct json_object **ret_result);
/*
 * Replaces this process by it: for verbs that use the terminal. Return: exit status; it could not
 * be started.
 */
int machine_helper_exec(const char *verb, struct json_object *asks);

#endif
