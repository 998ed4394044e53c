/* SPDX-License-Identifier: BSD-2-Clause */
/* bench-nvme-worker: one process of the benchmark. bench.py starts it and talks to it. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker.h"

static const char *role = "worker";

void bench_fail(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "bench-nvme-worker %s: ", role);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

void bench_ready(void)
{
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
}

bool bench_next(struct bench_command *c)
{
	char line[256], *at = line, *end;

	if (!fgets(line, sizeof(line), stdin))
		return false;
	if (!strchr(line, '\n'))
		bench_fail("a command longer than %zu characters", sizeof(line) - 2);
	if (sscanf(line, "%31s", c->name) != 1)
		bench_fail("an empty command");
	at += strspn(at, " ");
	at += strlen(c->name);
	for (c->n = 0; c->n < BENCH_WORDS; c->n++) {
		errno = 0;
		c->arg[c->n] = strtoull(at, &end, 10);
		if (end == at)
			break;
		if (errno)
			bench_fail("'%s': a number is too large", line);
		at = end;
	}
	if (at[strspn(at, " \n")])
		bench_fail("'%s' is not a word and up to %d numbers", line, BENCH_WORDS);
	return true;
}

void bench_expect(const struct bench_command *c, const char *name, unsigned n)
{
	if (strcmp(c->name, name) != 0 || c->n != n)
		bench_fail("command '%s' with %u numbers is not known here", c->name, c->n);
}

void bench_sleep(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u),
			     .tv_nsec = (long)(ns % 1000000000u)};

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

struct bench_usage bench_usage(void)
{
	FILE *f = fopen("/proc/thread-self/schedstat", "r");
	struct bench_usage u = {.at = bench_now()};

	if (!f || fscanf(f, "%" SCNu64 " %" SCNu64, &u.ran, &u.waited) != 2)
		bench_fail("this kernel does not tell /proc/self/schedstat (CONFIG_SCHED_INFO)");
	fclose(f);
	return u;
}

void bench_print_usage(struct bench_usage before)
{
	struct bench_usage u = bench_usage();

	printf(",\"at\":%" PRIu64 ",\"took\":%" PRIu64 ",\"ran\":%" PRIu64 ",\"waited\":%" PRIu64,
	       before.at, u.at - before.at, u.ran - before.ran, u.waited - before.waited);
}

void bench_print_histogram(const struct bench_histogram *h)
{
	const char *comma = "";

	printf("\"count\":%" PRIu64 ",\"min\":%" PRIu64 ",\"max\":%" PRIu64 ",\"buckets\":[",
	       h->count, h->count ? h->min : 0, h->max);
	for (uint32_t i = 0; i < BENCH_HISTOGRAM_BUCKETS; i++)
		if (h->bucket[i]) {
			printf("%s[%" PRIu64 ",%" PRIu32 "]", comma, bench_histogram_value(i),
			       h->bucket[i]);
			comma = ",";
		}
	printf("]");
}

void bench_end_answer(void)
{
	printf("}\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} roles[] = {
		{"client", bench_role_client},
		{"bare-device", bench_role_bare_device},
		{"bare-client", bench_role_bare_client},
		{"line", bench_role_line},
		{"wake", bench_role_wake},
	};

	for (size_t i = 0; argc > 1 && i < sizeof(roles) / sizeof(roles[0]); i++)
		if (!strcmp(argv[1], roles[i].name)) {
			role = roles[i].name;
			return roles[i].run(argc - 2, argv + 2);
		}
	fprintf(stderr, "usage: bench-nvme-worker client DEVICE | bare-device FD CLIENTS | "
			"bare-client FD CLIENTS INDEX | line CPU CPU | wake CPU CPU\n"
			"bench.py starts these and talks to them.\n");
	return 2;
}
