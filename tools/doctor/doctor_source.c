/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor_source.h"
#include "base/output.h"

static bool path_of(const struct doctor_source *s, char path[PATH_MAX], const char *fmt, va_list ap)
{
	int root = snprintf(path, PATH_MAX, "%s", s->root), rest;

	if (root < 0 || root >= PATH_MAX)
		return false;
	rest = vsnprintf(path + root, (size_t)(PATH_MAX - root), fmt, ap);
	return rest >= 0 && rest < PATH_MAX - root;
}

#define PATH_OF(ok, s, path, fmt)                                                                  \
	do {                                                                                       \
		va_list ap_;                                                                       \
                                                                                                   \
		va_start(ap_, fmt);                                                                \
		(ok) = path_of(s, path, fmt, ap_);                                                 \
		va_end(ap_);                                                                       \
	} while (0)

bool doctor_exists(const struct doctor_source *s, const char *fmt, ...)
{
	char path[PATH_MAX];
	bool ok;

	PATH_OF(ok, s, path, fmt);
	return ok && access(path, F_OK) == 0;
}

bool doctor_line(const struct doctor_source *s, char ret[DOCTOR_LINE], const char *fmt, ...)
{
	char path[PATH_MAX];
	FILE *f;
	bool ok;

	*ret = '\0';
	PATH_OF(ok, s, path, fmt);
	f = ok ? fopen(path, "re") : NULL;
	if (!f)
		return false;
	ok = fgets(ret, DOCTOR_LINE, f) != NULL;
	ret[ok ? strcspn(ret, "\n") : 0] = '\0';
	fclose(f);
	return ok;
}

bool doctor_field(const struct doctor_source *s, const char *key, char ret[DOCTOR_LINE],
		  const char *fmt, ...)
{
	char path[PATH_MAX], line[4096], *value = NULL;
	size_t len = strlen(key);
	FILE *f;
	bool ok;

	*ret = '\0';
	PATH_OF(ok, s, path, fmt);
	f = ok ? fopen(path, "re") : NULL;
	while (f && !value && fgets(line, sizeof(line), f))
		if (strncmp(line, key, len) == 0)
			value = line + len;
	if (f)
		fclose(f);
	if (!value)
		return false;
	value += strspn(value, " \t:");
	snprintf(ret, DOCTOR_LINE, "%.*s", (int)strcspn(value, "\n"), value);
	return true;
}

bool doctor_link(const struct doctor_source *s, char ret[DOCTOR_LINE], const char *fmt, ...)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *slash;
	ssize_t n;
	bool ok;

	*ret = '\0';
	PATH_OF(ok, s, path, fmt);
	n = ok ? readlink(path, target, sizeof(target) - 1) : -1;
	if (n <= 0)
		return false;
	target[n] = '\0';
	slash = strrchr(target, '/');
	snprintf(ret, DOCTOR_LINE, "%.*s", DOCTOR_LINE - 1, slash ? slash + 1 : target);
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

ssize_t doctor_names(const struct doctor_source *s, char ***ret, const char *fmt, ...)
{
	char path[PATH_MAX], **names = NULL;
	struct dirent *entry;
	size_t n = 0;
	DIR *dir;
	bool ok;

	*ret = NULL;
	PATH_OF(ok, s, path, fmt);
	dir = ok ? opendir(path) : NULL;
	if (!dir)
		return -1;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		names = tool_grow(names, n + 1, sizeof(*names));
		names[n++] = tool_strdup(entry->d_name);
	}
	closedir(dir);
	if (n > 1)
		qsort(names, n, sizeof(*names), by_name);
	*ret = names;
	return (ssize_t)n;
}

void doctor_names_free(char **names, ssize_t n)
{
	for (ssize_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

bool doctor_limit(const struct doctor_source *s, pid_t pid, const char *name, uint64_t *ret)
{
	char text[DOCTOR_LINE], *end;

	if (!doctor_field(s, name, text, "/proc/%d/limits", (int)pid))
		return false;
	if (strncmp(text, "unlimited", 9) == 0) {
		*ret = UINT64_MAX;
		return true;
	}
	*ret = strtoull(text, &end, 10);
	return end != text;
}

bool doctor_has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || at[-1] == ' ' || at[-1] == '\t') &&
		    (at[len] == '\0' || at[len] == ' ' || at[len] == '\t'))
			return true;
	return false;
}

bool doctor_cpu_flag(const struct doctor_source *s, const char *flag)
{
	char path[PATH_MAX], *line = NULL;
	bool has = false, done = false;
	size_t size = 0;
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/proc/cpuinfo", s->root) >= (int)sizeof(path))
		return false;
	f = fopen(path, "re");
	while (f && !done && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		done = strncmp(line, "flags", 5) == 0;
		has = done && doctor_has_word(line, flag);
	}
	free(line);
	if (f)
		fclose(f);
	return has;
}
