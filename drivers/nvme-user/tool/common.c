/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/uapi.h"
#include "document.h"
#include "tool.h"

#define SHOW_NS 500000000u
#define QUIET_MS 1000u /* that a manager is waited for without a word */

volatile int interrupted;
static void (*also_call)(void);
static bool system_log;

void log_to_system(void)
{
	openlog("smartio-nvme", LOG_PID, LOG_DAEMON);
	system_log = true;
}

int failed(const char *fmt, ...)
{
	char text[3072]; /* a manager's words may be long */
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	doc_keep_message(text);
	fprintf(stderr, "smartio-nvme: %s\n", text);
	if (system_log)
		syslog(LOG_ERR, "%s", text);
	return EXIT_FAILED;
}

int failed_nvme(void)
{
	return failed("%s", smartio_nvme_error());
}

bool parse_size(const char *text, uint64_t *ret)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *end;
	uint64_t v;

	/* strtoull takes a sign and blanks. */
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno)
		return false;
	if (*end) {
		unit = strchr(units, *end);
		if (!unit || end[1] ||
		    __builtin_mul_overflow(v, 1ull << 10 * (unit - units + 1), &v))
			return false;
	}
	*ret = v;
	return true;
}

int initialize(void)
{
	sci_error_t err;

	SCIInitialize(0, &err);
	if (err == SCI_ERR_OK)
		return EXIT_OK;
	return failed("no connection to this host's smartiod: %s (%s)", SCIGetErrorString(err),
		      smartio_last_error());
}

/* @word as a shell takes it for one; what is too long as it is. */
static const char *quoted(const char *word, char *text, size_t size)
{
	size_t n = 0;

	if (!word[strcspn(word, " \t\n\"#$&'()*;<>?[\\]`{|}~")] || 4 * strlen(word) + 3 > size)
		return word;
	text[n++] = '\'';
	for (const char *c = word; *c; c++) {
		const char *piece = *c == '\'' ? "'\\''" : c;
		size_t len = *c == '\'' ? 4 : 1;

		memcpy(text + n, piece, len);
		n += len;
	}
	text[n++] = '\'';
	text[n] = '\0';
	return text;
}

/* Why the drive cannot be opened, with a command that works where smartio was called. */
static const char *why_not(const struct options *o, int rc)
{
	const char *command = getenv("SMARTIO_COMMAND"), *host = getenv("SMARTIO_NODE");
	static char text[4096], word[1024]; /* with what the environment says, which has no end */
	const char *self = quoted(program_invocation_name, word, sizeof(word));

	if (rc != -ENOTCONN)
		return smartio_nvme_error();
	if (command && host)
		snprintf(text, sizeof(text),
			 "no manager serves %s; start one with: %s run -n %s -- %s manager %s "
			 "--background",
			 o->device, command, host, self, o->device);
	else
		snprintf(text, sizeof(text),
			 "no manager serves %s; start one with: %s manager %s --background",
			 o->device, self, o->device);
	return text;
}

static int wait_and_open(const struct options *o, struct smartio_nvme **ret)
{
	uint32_t quiet = o->wait_ms < QUIET_MS ? o->wait_ms : QUIET_MS, left = o->wait_ms - quiet;
	struct smartio_nvme_open_options oo = {.size = sizeof(oo),
					       .wait_ms = quiet,
					       .flags = o->multipath ? SMARTIO_NVME_MULTIPATH : 0};
	int rc = smartio_nvme_open_with(o->device, &oo, ret);

	if ((rc != -EBUSY && rc != -ENOTCONN) || left == 0)
		return rc;
	fprintf(stderr, "smartio-nvme: waiting for a manager for up to %.4g s more (%s)\n",
		left / 1e3, why_not(o, rc));
	oo.wait_ms = left;
	return smartio_nvme_open_with(o->device, &oo, ret);
}

int open_drive(const struct options *o, struct smartio_nvme **ret)
{
	int rc = initialize();

	if (rc)
		return rc;
	rc = wait_and_open(o, ret);
	if (rc == 0)
		return EXIT_OK;
	failed("%s", why_not(o, rc));
	SCITerminate();
	return EXIT_FAILED;
}

int open_pair(const struct options *o, struct smartio_nvme *n, bool measures,
	      struct smartio_nvme_queue_options *qo, struct smartio_nvme_queue **ret)
{
	int rc;

	/* What a command writes it may write twice: nobody else is to write there meanwhile. */
	if (o->survive > 0 || (o->survive < 0 && (o->multipath || !measures)))
		qo->flags |= SMARTIO_NVME_SURVIVE | (measures ? 0 : SMARTIO_NVME_ALONE);
	if (o->share)
		qo->flags |= SMARTIO_NVME_SHARED | SMARTIO_NVME_SURVIVE |
			     (measures ? 0 : SMARTIO_NVME_ALONE);
	qo->timeout_ms = o->timeout_ms;
	rc = smartio_nvme_queue_open(n, qo, ret);
	if (rc == -ENOSPC && smartio_nvme_exhausted() == SIO_OUT_OF_QUEUE_PAIRS &&
	    o->pair_wait_ms) {
		fprintf(stderr, "smartio-nvme: waiting for a queue pair for up to %.4g s (%s)\n",
			o->pair_wait_ms / 1e3, smartio_nvme_error());
		qo->wait_ms = o->pair_wait_ms;
		rc = smartio_nvme_queue_open(n, qo, ret);
	}
	return rc ? failed_nvme() : EXIT_OK;
}

void close_drive(struct smartio_nvme *n)
{
	smartio_nvme_close(n);
	SCITerminate();
}

int find_namespace(const struct options *o, struct smartio_nvme *n,
		   struct smartio_nvme_namespace *ns)
{
	for (uint32_t i = 0; smartio_nvme_get_namespace(n, i, ns) == 0; i++)
		if (ns->id == o->nsid)
			return ns->block_size ? EXIT_OK
					      : failed("namespace %u of %s has a format that this "
						       "driver does not know",
						       o->nsid, o->device);
	return failed("%s has no namespace %u", o->device, o->nsid);
}

static void on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
	if (also_call)
		also_call();
}

void catch_signals(void (*also)(void))
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	also_call = also;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

void progress_start(struct progress *p, const struct options *o, const char *what, uint64_t total)
{
	p->tty = isatty(STDERR_FILENO);
	p->on = o->progress || p->tty;
	p->total = total;
	p->what = what;
	p->next_ns = 0;
}

void progress_show(struct progress *p, uint64_t done)
{
	uint64_t now;

	if (!p->on)
		return;
	now = smartio_now_ns();
	if (now < p->next_ns)
		return;
	p->next_ns = now + SHOW_NS;
	if (p->total)
		fprintf(stderr, "%s%s: %.1f of %.1f MiB%s", p->tty ? "\r" : "", p->what,
			(double)done / 1048576, (double)p->total / 1048576, p->tty ? "" : "\n");
	else
		fprintf(stderr, "%s%s: %" PRIu64 "%s", p->tty ? "\r" : "", p->what, done,
			p->tty ? "" : "\n");
}

void progress_end(struct progress *p)
{
	if (p->on && p->tty && p->next_ns)
		fputs("\r\033[K", stderr);
}
