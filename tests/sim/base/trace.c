/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The trace: one line for each event, always hashed, and written to a file where one is asked for.
 * A line holds no address, no descriptor and nothing that depends on the order of a hash table, so
 * that the same seed gives the same hash. Texts are only made for a file; the hash takes format and
 * arguments.
 *
 * The second file is for Perfetto's viewer (ui.perfetto.dev): a track for each first word of a
 * line, spans from sim_span_begin() to sim_span_end(), all else instants.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sim.h"

#define TRACKS 512
#define FNV_START 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

static uint64_t hash;
static FILE *lines, *perfetto;
static char track[TRACKS][32];
static unsigned n_tracks;

void sim_trace_start(void)
{
	hash = FNV_START;
}

/*
 * Each takes the hash so far, for a variable that characters may not alias, and returns the new
 * one.
 */
static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * FNV_PRIME;
	return h ^ h >> 29;
}

static uint64_t mix_text(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * FNV_PRIME;
	return h;
}

static bool is_flag(char c)
{
	return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == ' ' || c == '#' || c == '.' ||
	       c == 'h' || c == 'l' || c == 'z';
}

/* Format and arguments, as vsnprintf() would take them: %d %u %x %c with h, l, ll, z; %s; %%. */
static uint64_t mix_format(uint64_t h, const char *fmt, va_list ap)
{
	for (; *fmt; fmt++) {
		bool wide = false;

		if (*fmt != '%') {
			h = (h ^ (unsigned char)*fmt) * FNV_PRIME;
			continue;
		}
		for (fmt++; is_flag(*fmt); fmt++)
			wide |= *fmt == 'l' || *fmt == 'z';
		assert(*fmt);
		if (*fmt == 's')
			h = mix_text(h, va_arg(ap, const char *));
		else if (*fmt == '%')
			h = mix(h, '%');
		else if (strchr("diuxXc", *fmt))
			h = mix(h, wide ? va_arg(ap, uint64_t) : va_arg(ap, unsigned));
		else
			assert(!"a conversion that the trace does not know");
	}
	return h;
}

static unsigned track_of(const char *name, size_t len)
{
	unsigned i;

	if (len >= sizeof(track[0]))
		len = sizeof(track[0]) - 1;
	for (i = 0; i < n_tracks; i++)
		if (strncmp(track[i], name, len) == 0 && !track[i][len])
			return i + 1;
	if (n_tracks == TRACKS)
		return 0;
	memcpy(track[n_tracks++], name, len);
	fprintf(perfetto,
		",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":\"%."
		"*s\"}}",
		n_tracks, (int)len, name);
	return n_tracks;
}

static void clean(char *text)
{
	for (; *text; text++)
		if (*text == '"' || *text == '\\' || *text < ' ')
			*text = '\'';
}

static void perfetto_event(char phase, char *text)
{
	size_t word = strcspn(text, " :");
	size_t number = text[word] == ' ' ? strspn(text + word + 1, "0123456789") : 0;
	char *result = phase == 'E' ? strstr(text, ": ") : NULL;
	unsigned tid;

	/* "daemon 4" is a track, too. */
	if (number)
		word += 1 + number;
	tid = track_of(text, word);
	clean(text);
	/* The viewer ends a span by the name that it began with. */
	if (result)
		*result = '\0';
	fprintf(perfetto,
		",\n{\"ph\":\"%c\",\"pid\":1,\"tid\":%u,\"ts\":%" PRIu64 ".%03u,\"name\":\"%s\"",
		phase, tid, sim_now() / 1000, (unsigned)(sim_now() % 1000), text);
	if (result)
		fprintf(perfetto, ",\"args\":{\"result\":\"%s\"}", result + 2);
	fprintf(perfetto, "%s}", phase == 'i' ? ",\"s\":\"t\"" : "");
}

static void trace(char phase, const char *fmt, va_list ap)
{
	char text[600];
	va_list again;

	va_copy(again, ap);
	hash = mix_format(mix(hash, sim_now()), fmt, again);
	va_end(again);
	if (!lines && !perfetto)
		return;
	vsnprintf(text, sizeof(text), fmt, ap);
	if (lines)
		fprintf(lines, "%" PRIu64 ".%09u %s%s\n", sim_now() / 1000000000,
			(unsigned)(sim_now() % 1000000000), phase == 'E' ? "end of " : "", text);
	if (perfetto)
		perfetto_event(phase, text);
}

void sim_trace(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	trace('i', fmt, ap);
	va_end(ap);
}

void sim_span_begin(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	trace('B', fmt, ap);
	va_end(ap);
}

void sim_span_end(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	trace('E', fmt, ap);
	va_end(ap);
}

uint64_t sim_trace_hash(void)
{
	return hash;
}

int sim_trace_file(const char *path)
{
	lines = fopen(path, "w");
	return lines ? 0 : -1;
}

int sim_perfetto_file(const char *path)
{
	perfetto = fopen(path, "w");
	if (!perfetto)
		return -1;
	fprintf(perfetto, "[{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":"
			  "\"smartio-sim\"}}");
	return 0;
}

void sim_trace_end(void)
{
	if (perfetto)
		fprintf(perfetto, "]\n");
	if (lines)
		fclose(lines);
	if (perfetto)
		fclose(perfetto);
	lines = perfetto = NULL;
}
