/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines: a level for each room of smartiod, written to standard error or to the journal. The
 * room of a line is the folder of the source that wrote it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#ifdef SMARTIOD_JOURNAL
#define SD_JOURNAL_SUPPRESS_LOCATION /* the line's own is sent */
#include <systemd/sd-journal.h>
#endif

#include "smartiod/live/log.h"

/* smartiod's rooms; tests/cli holds them against its folders. */
static const char *const rooms[] = {SMARTIOD_ROOMS};
#define ROOMS (sizeof(rooms) / sizeof(rooms[0]))

static const char *const level_name[] = {"emergency", "alert",	"critical", "error",
					 "warning",   "notice", "info",	    "debug"};
#define LEVELS (sizeof(level_name) / sizeof(level_name[0]))

static int room_level[ROOMS];
static uint32_t log_node;
static bool to_journal;

static void list_rooms(char *text, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < ROOMS && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%s", i ? ", " : "", rooms[i]);
}

int live_log_level(const char *room, int level, struct sio_err *reterr)
{
	char names[256];
	bool found = false;

	for (size_t i = 0; i < ROOMS; i++) {
		if (room && strcmp(room, rooms[i]))
			continue;
		room_level[i] = level;
		found = true;
	}
	if (found)
		return 0;
	list_rooms(names, sizeof(names));
	return sio_fail(reterr, -EINVAL, "no room is called '%s'; there are %s", room, names);
}

static int parse_level(const char *text)
{
	for (size_t i = 0; i < LEVELS; i++)
		if (!strcasecmp(text, level_name[i]) || (text[0] == (char)('0' + i) && !text[1]))
			return (int)i;
	return -EINVAL;
}

int live_log_parse(const char *text, struct sio_err *reterr)
{
	const char *dot = strchr(text, '.');
	char room[32];
	int level = dot ? parse_level(dot + 1) : -EINVAL;

	if (!dot || dot == text || dot - text >= (ptrdiff_t)sizeof(room))
		return sio_fail(reterr, -EINVAL, "wanted ROOM.LEVEL, such as lender.debug");
	if (level < 0)
		return sio_fail(reterr, -EINVAL,
				"no level is called '%s'; there are emergency, alert, critical, "
				"error, warning, notice, info, debug, or 0 to 7",
				dot + 1);
	snprintf(room, sizeof(room), "%.*s", (int)(dot - text), text);
	return live_log_level(room, level, reterr);
}

/* systemd says in $JOURNAL_STREAM which file leads to the journal: is standard error that one? */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char ours[64];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st) < 0)
		return false;
	snprintf(ours, sizeof(ours), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return !strcmp(stream, ours);
}

void live_log_start(uint32_t node)
{
	log_node = node;
	to_journal = stderr_is_journal();
}

/* The folder that @file lies in: its number among the rooms; 0 for one that is none. */
static size_t room_of(const char *file)
{
	const char *end = strrchr(file, '/'), *name = end;

	while (name && name > file && name[-1] != '/')
		name--;
	for (size_t i = 0; end && i < ROOMS; i++)
		if (strlen(rooms[i]) == (size_t)(end - name) &&
		    !memcmp(rooms[i], name, (size_t)(end - name)))
			return i;
	return 0;
}

static bool write_journal(const char *file, size_t room, int level, const char *text)
{
#ifdef SMARTIOD_JOURNAL
	return sd_journal_send("MESSAGE=%s", text, "PRIORITY=%d", level, "SMARTIO_NODE=%" PRIu32,
			       log_node, "SMARTIO_ROOM=%s", rooms[room], "CODE_FILE=%s", file,
			       NULL) >= 0;
#else
	(void)file;
	(void)room;
	(void)level;
	(void)text;
	return false;
#endif
}

void live_log_write(const char *file, int level, const char *fmt, va_list ap)
{
	size_t room = room_of(file);
	char text[1024];

	if (level < LOG_EMERG || level > LOG_DEBUG)
		level = LOG_ERR;
	if (level > room_level[room])
		return;
	vsnprintf(text, sizeof(text), fmt, ap);
	if (to_journal && write_journal(file, room, level, text))
		return;
	fprintf(stderr, "smartiod node %" PRIu32 ": %s: %s\n", log_node, level_name[level], text);
}

void live_log_from(const char *file, int level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	live_log_write(file, level, fmt, ap);
	va_end(ap);
}
