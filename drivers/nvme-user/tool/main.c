/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio-nvme: one NVMe drive shared by many hosts. Reads the command line. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "document.h"
#include "tool.h"

#define WAIT_MS 5000u /* for a manager that is on its way, unless told otherwise */

enum option_bit {
	TAKES_OFFSET = 1 << 0,
	TAKES_LENGTH = 1 << 1,
	TAKES_DEPTH = 1 << 2,
	TAKES_JSON = 1 << 3,
	TAKES_PROGRESS = 1 << 4,
	TAKES_NAMESPACE = 1 << 5,
	TAKES_OUTPUT = 1 << 6,
	TAKES_INPUT = 1 << 7,
	TAKES_BENCH = 1 << 8,
	TAKES_ONCE = 1 << 9,
	TAKES_FILE = 1 << 10, /* a second argument */
	NEEDS_LENGTH = 1 << 11,
	TAKES_WAIT = 1 << 12, /* a client's */
	TAKES_YES = 1 << 13,
	TAKES_FORMAT = 1 << 14,
	TAKES_MANAGER = 1 << 15,
	TAKES_PATHS = 1 << 16, /* whoever has a queue pair */
	TAKES_DISK = 1 << 17,
	TAKES_FORCE = 1 << 18,
	NO_DEVICE = 1 << 19,
};

struct command {
	const char *name, *arguments, *summary, *help;
	unsigned takes;
	int (*run)(const struct options *o);
};

#define HELP_NAMESPACE "  -n, --namespace N    namespace; default 1\n"
#define HELP_OFFSET "  -s, --offset BYTES   where on the namespace to begin; default 0\n"
#define HELP_LENGTH "  -l, --length BYTES   how much\n"
#define HELP_DEPTH "  -d, --depth N        commands in flight at once\n"
#define HELP_PROGRESS "  -p, --progress       show progress although stderr is no terminal\n"
#define HELP_JSON "  -j, --json           for programs\n"
/* clang-format off */
#define HELP_WAIT \
	"      --wait[=SECONDS] wait so long for a manager that is on its way, default 5, 0: not;\n" \
	"                       and then for a queue pair if all are taken, without it: not\n"
/* clang-format on */

/* clang-format off */
#define HELP_PATHS \
	"      --multipath      use two adapters of this host: go on over one when the other's link\n" \
	"                       goes\n" \
	"      --survive on|off go on when the drive is reset; default: on, of bench: off\n" \
	"      --share          where all queue pairs are taken, share one with programs of this host\n" \
	"      --timeout MS     abort commands that take longer; default: none is\n"
/* clang-format on */

#define HELP_YES "  -y, --yes            do not ask\n"
#define ERASE_TAKES                                                                                \
	(TAKES_OFFSET | TAKES_LENGTH | TAKES_NAMESPACE | TAKES_JSON | TAKES_WAIT | TAKES_PATHS)

static const struct command commands[] = {
	{"manager", "DEVICE", "reset a drive and serve its clients until SIGINT or SIGTERM",
	 "Prints a line that begins with \"ready\" when clients can come. One manager per drive, on\n"
	 "any host. When it ends in order, the drive is shut down and clients lose their queues; when\n"
	 "it is killed, clients' I/O goes on until the next manager comes.\n\n"
	 "  -1, --once           end when clients have come and the last one has left\n"
	 "      --background     go on in the background: the command ends when clients can come, or\n"
	 "                       with the error that there was; SIGTERM ends the manager\n"
	 "      --standby        where another manager serves, wait for its end and take its place\n"
	 "      --allow-vendor   clients may have vendors' commands given while nobody has a queue\n" HELP_JSON,
	 TAKES_ONCE | TAKES_MANAGER | TAKES_JSON, cmd_manager},
	{"identify", "DEVICE", "show what a drive is", HELP_JSON HELP_WAIT, TAKES_JSON | TAKES_WAIT,
	 cmd_identify},
	{"read", "DEVICE --length BYTES", "read from a drive to a file or stdout",
	 "  -o, --output FILE    default: stdout\n" HELP_OFFSET HELP_LENGTH HELP_NAMESPACE
		 HELP_DEPTH HELP_PROGRESS HELP_JSON HELP_WAIT HELP_PATHS,
	 TAKES_OFFSET | TAKES_LENGTH | NEEDS_LENGTH | TAKES_OUTPUT | TAKES_NAMESPACE | TAKES_DEPTH |
		 TAKES_PROGRESS | TAKES_JSON | TAKES_WAIT | TAKES_PATHS,
	 cmd_copy_out},
	{"write", "DEVICE", "write a file or stdin to a drive",
	 "  -i, --input FILE     default: stdin\n" HELP_OFFSET HELP_LENGTH
	 "                       default: to the end of the file\n" HELP_NAMESPACE HELP_DEPTH
		 HELP_PROGRESS HELP_JSON HELP_WAIT HELP_PATHS,
	 TAKES_OFFSET | TAKES_LENGTH | TAKES_INPUT | TAKES_NAMESPACE | TAKES_DEPTH |
		 TAKES_PROGRESS | TAKES_JSON | TAKES_WAIT | TAKES_PATHS,
	 cmd_copy_in},
	{"copy-in", "DEVICE FILE", "copy a file to a drive",
	 "A last block that the file fills in part keeps its other bytes. FILE - is stdin.\n\n" HELP_OFFSET
		 HELP_LENGTH HELP_NAMESPACE HELP_DEPTH HELP_PROGRESS HELP_JSON HELP_WAIT HELP_PATHS,
	 TAKES_OFFSET | TAKES_LENGTH | TAKES_FILE | TAKES_NAMESPACE | TAKES_DEPTH | TAKES_PROGRESS |
		 TAKES_JSON | TAKES_WAIT | TAKES_PATHS,
	 cmd_copy_in},
	{"copy-out", "DEVICE FILE --length BYTES", "copy from a drive to a file",
	 "FILE - is stdout.\n\n" HELP_OFFSET HELP_LENGTH HELP_NAMESPACE HELP_DEPTH HELP_PROGRESS
		 HELP_JSON HELP_WAIT HELP_PATHS,
	 TAKES_OFFSET | TAKES_LENGTH | NEEDS_LENGTH | TAKES_FILE | TAKES_NAMESPACE | TAKES_DEPTH |
		 TAKES_PROGRESS | TAKES_JSON | TAKES_WAIT | TAKES_PATHS,
	 cmd_copy_out},
	{"bench", "DEVICE", "measure I/O per second, bandwidth and latency",
	 "  -d, --depth N        commands in flight at once; default 1\n"
	 "  -b, --size BYTES     of each command; default 4K\n"
	 "  -t, --seconds S      how long; default 1\n"
	 "  -c, --count N        how many commands instead\n"
	 "      --warmup N       commands before that, not measured; default 100\n"
	 "      --read           the default\n"
	 "      --write          overwrites what is on the drive\n"
	 "      --random         at random places instead of one after the other\n"
	 "      --interrupt      sleep until the drive interrupts, instead of polling\n"
	 "      --hybrid[=US]    poll first, for US microseconds, and sleep then; default:\n"
	 "                       for as long as a sleep costs, as measured\n"
	 "      --sq PLACE       of the submission queue: auto, local, lender, cmb, or\n"
	 "                       device:NAME, in the memory of a device beside the drive\n"
	 "      --queues N       submission queues, of one completion queue; default 1\n" HELP_OFFSET
		 HELP_LENGTH
	 "                       default: to the end of the namespace\n" HELP_NAMESPACE
		 HELP_PROGRESS
	 "      --counters       also what the fabric counted at the drive meanwhile\n" HELP_JSON
		 HELP_WAIT HELP_PATHS,
	 TAKES_OFFSET | TAKES_LENGTH | TAKES_DEPTH | TAKES_BENCH | TAKES_JSON | TAKES_NAMESPACE |
		 TAKES_PROGRESS | TAKES_WAIT | TAKES_PATHS,
	 cmd_bench},
	{"smart", "DEVICE", "show the drive's health", HELP_JSON HELP_WAIT, TAKES_JSON | TAKES_WAIT,
	 cmd_smart},
	{"errors", "DEVICE", "show what the drive keeps of failed commands, newest first",
	 HELP_JSON HELP_WAIT, TAKES_JSON | TAKES_WAIT, cmd_errors},
	{"queues", "DEVICE", "show who has which queue pair", HELP_JSON HELP_WAIT,
	 TAKES_JSON | TAKES_WAIT, cmd_queues},
	{"leases", "DEVICE", "show who has which range of blocks", HELP_JSON HELP_WAIT,
	 TAKES_JSON | TAKES_WAIT, cmd_leases},
	{"zero", "DEVICE --length BYTES", "make blocks zeros",
	 HELP_OFFSET HELP_LENGTH HELP_NAMESPACE HELP_YES HELP_JSON HELP_WAIT HELP_PATHS,
	 ERASE_TAKES | NEEDS_LENGTH | TAKES_YES, cmd_zero},
	{"trim", "DEVICE --length BYTES", "tell the drive that blocks are not needed any more",
	 HELP_OFFSET HELP_LENGTH HELP_NAMESPACE HELP_YES HELP_JSON HELP_WAIT HELP_PATHS,
	 ERASE_TAKES | NEEDS_LENGTH | TAKES_YES, cmd_trim},
	{"verify", "DEVICE --length BYTES", "have the drive read blocks and check them",
	 HELP_OFFSET HELP_LENGTH HELP_NAMESPACE HELP_JSON HELP_WAIT HELP_PATHS,
	 ERASE_TAKES | NEEDS_LENGTH, cmd_verify},
	{"format", "DEVICE", "format a namespace: destroys all that is on it",
	 "Only while no client has a queue pair.\n\n"
	 "  -f, --format N       which of the namespace's formats; default 0\n" HELP_NAMESPACE
		 HELP_YES HELP_JSON HELP_WAIT,
	 TAKES_NAMESPACE | TAKES_FORMAT | TAKES_YES | TAKES_JSON | TAKES_WAIT, cmd_format},
	{"attach", "DEVICE", "make queue pairs a disk of this host, /dev/smartio-nvme0 and so on",
	 "Needs smartio_blk.ko, and a device by smartio.ko. A process in the background holds the queue\n"
	 "pairs, until detach. The disk is the whole namespace, or a range that nobody else gets.\n\n"
	 "  -s, --offset BYTES   where the range begins; default: where there is room\n" HELP_LENGTH
	 "                       default: the whole namespace\n"
	 "      --lease NAME     of the range, by which others see it; default: this host's\n"
	 "      --read-only      nothing is written\n"
	 "      --timeout MS     after which a command is given up, and the disk; default 30000\n" HELP_NAMESPACE
		 HELP_DEPTH HELP_JSON HELP_WAIT,
	 TAKES_OFFSET | TAKES_LENGTH | TAKES_NAMESPACE | TAKES_DEPTH | TAKES_DISK | TAKES_JSON |
		 TAKES_WAIT,
	 cmd_attach},
	{"detach", "DISK", "end a disk that attach made",
	 "Refused while it is open.\n\n"
	 "      --force          all the same: its I/O fails\n" HELP_JSON,
	 TAKES_FORCE | TAKES_JSON, cmd_detach},
	{"disks", "", "show the disks that attach made on this host", HELP_JSON,
	 TAKES_JSON | NO_DEVICE, cmd_disks},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void help(FILE *to)
{
	fprintf(to,
		"usage: smartio-nvme COMMAND DEVICE [OPTION...]\n\n"
		"One NVMe drive shared by many hosts. DEVICE is its name in the cluster, or its\n"
		"number. Run it on a host of a cluster: smartio run -n HOST -- smartio-nvme ...\n\n");
	for (unsigned i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fprintf(to, "\nBYTES may end in K, M, G or T. smartio-nvme COMMAND --help tells more.\n");
}

static void help_command(const struct command *c)
{
	printf("usage: smartio-nvme %s%s%s [OPTION...]\n\n%c%s.\n\n%s", c->name,
	       *c->arguments ? " " : "", c->arguments, c->summary[0] - 'a' + 'A', c->summary + 1,
	       c->help);
}

__attribute__((format(printf, 2, 3))) static int usage(const struct command *c, const char *fmt,
						       ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	doc_keep_message(text);
	fprintf(stderr, "smartio-nvme: %s (%s %s%s--help tells more)\n", text,
		program_invocation_name, c ? c->name : "", c ? " " : "");
	return EXIT_USAGE;
}

enum {
	OPT_WARMUP = 256,
	OPT_READ,
	OPT_WRITE,
	OPT_RANDOM,
	OPT_COUNTERS,
	OPT_INTERRUPT,
	OPT_SQ,
	OPT_QUEUES,
	OPT_WAIT,
	OPT_BACKGROUND,
	OPT_VENDOR,
	OPT_STANDBY,
	OPT_MULTIPATH,
	OPT_SURVIVE,
	OPT_SHARE,
	OPT_TIMEOUT,
	OPT_LEASE,
	OPT_READ_ONLY,
	OPT_ALONE,
	OPT_POLL,
	OPT_FORCE,
	OPT_HYBRID
};

static const struct {
	struct option o;
	unsigned needs;
} options[] = {
	{{"help", no_argument, NULL, 'h'}, 0},
	{{"offset", required_argument, NULL, 's'}, TAKES_OFFSET},
	{{"length", required_argument, NULL, 'l'}, TAKES_LENGTH},
	{{"depth", required_argument, NULL, 'd'}, TAKES_DEPTH},
	{{"namespace", required_argument, NULL, 'n'}, TAKES_NAMESPACE},
	{{"json", no_argument, NULL, 'j'}, TAKES_JSON},
	{{"progress", no_argument, NULL, 'p'}, TAKES_PROGRESS},
	{{"once", no_argument, NULL, '1'}, TAKES_ONCE},
	{{"background", no_argument, NULL, OPT_BACKGROUND}, TAKES_ONCE},
	{{"yes", no_argument, NULL, 'y'}, TAKES_YES},
	{{"format", required_argument, NULL, 'f'}, TAKES_FORMAT},
	{{"allow-vendor", no_argument, NULL, OPT_VENDOR}, TAKES_MANAGER},
	{{"standby", no_argument, NULL, OPT_STANDBY}, TAKES_MANAGER},
	{{"wait", optional_argument, NULL, OPT_WAIT}, TAKES_WAIT},
	{{"multipath", no_argument, NULL, OPT_MULTIPATH}, TAKES_PATHS},
	{{"survive", required_argument, NULL, OPT_SURVIVE}, TAKES_PATHS | TAKES_DISK},
	{{"share", no_argument, NULL, OPT_SHARE}, TAKES_PATHS},
	{{"timeout", required_argument, NULL, OPT_TIMEOUT}, TAKES_PATHS | TAKES_DISK},
	{{"output", required_argument, NULL, 'o'}, TAKES_OUTPUT},
	{{"input", required_argument, NULL, 'i'}, TAKES_INPUT},
	{{"size", required_argument, NULL, 'b'}, TAKES_BENCH},
	{{"seconds", required_argument, NULL, 't'}, TAKES_BENCH},
	{{"count", required_argument, NULL, 'c'}, TAKES_BENCH},
	{{"warmup", required_argument, NULL, OPT_WARMUP}, TAKES_BENCH},
	{{"read", no_argument, NULL, OPT_READ}, TAKES_BENCH},
	{{"write", no_argument, NULL, OPT_WRITE}, TAKES_BENCH},
	{{"random", no_argument, NULL, OPT_RANDOM}, TAKES_BENCH},
	{{"counters", no_argument, NULL, OPT_COUNTERS}, TAKES_BENCH},
	{{"interrupt", no_argument, NULL, OPT_INTERRUPT}, TAKES_BENCH},
	{{"hybrid", optional_argument, NULL, OPT_HYBRID}, TAKES_BENCH},
	{{"sq", required_argument, NULL, OPT_SQ}, TAKES_BENCH},
	{{"queues", required_argument, NULL, OPT_QUEUES}, TAKES_BENCH | TAKES_DISK},
	{{"lease", required_argument, NULL, OPT_LEASE}, TAKES_DISK},
	{{"read-only", no_argument, NULL, OPT_READ_ONLY}, TAKES_DISK},
	{{"alone", no_argument, NULL, OPT_ALONE}, TAKES_DISK},
	{{"poll", no_argument, NULL, OPT_POLL}, TAKES_DISK},
	{{"force", no_argument, NULL, OPT_FORCE}, TAKES_FORCE},
};
#define OPTIONS (sizeof(options) / sizeof(options[0]))

static int number(const struct command *c, const char *name, const char *text, uint64_t least,
		  uint64_t most, uint64_t *ret)
{
	if (parse_size(text, ret) && *ret >= least && *ret <= most)
		return EXIT_OK;
	if (most == UINT64_MAX)
		return usage(c, "--%s %s: a number is wanted, perhaps with K, M, G or T", name,
			     text);
	return usage(c, "--%s %s: a number from %llu to %llu is wanted", name, text,
		     (unsigned long long)least, (unsigned long long)most);
}

static int number32(const struct command *c, const char *name, uint32_t least, uint32_t most,
		    uint32_t *ret)
{
	uint64_t v;
	int rc = number(c, name, optarg, least, most, &v);

	if (rc == EXIT_OK)
		*ret = (uint32_t)v;
	return rc;
}

static int seconds(const struct command *c, const char *text, double *ret)
{
	char *end;

	*ret = strtod(text, &end);
	if (end == text || *end || !(*ret > 0) || *ret > 1e6)
		return usage(c, "--seconds %s: a number above 0 is wanted", text);
	return EXIT_OK;
}

static int wait_seconds(const struct command *c, const char *text, uint32_t *ret_ms)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= 0) || v > 1e6)
		return usage(c, "--wait=%s: seconds from 0 to 1000000 are wanted", text);
	*ret_ms = (uint32_t)(v * 1e3);
	return EXIT_OK;
}

static int on_or_off(const struct command *c, const char *name, const char *text, int *ret)
{
	*ret = !strcmp(text, "on");
	if (*ret || !strcmp(text, "off"))
		return EXIT_OK;
	return usage(c, "--%s %s: on or off is wanted", name, text);
}

/* Where the submission queue is to lie. */
static int place(const struct command *c, const char *text, struct options *o)
{
	static const char *const name[] = {[SMARTIO_NVME_PLACE_AUTO] = "auto",
					   [SMARTIO_NVME_PLACE_DEVICE] = "lender",
					   [SMARTIO_NVME_PLACE_LOCAL] = "local",
					   [SMARTIO_NVME_PLACE_CMB] = "cmb"};

	o->sq_placement = SMARTIO_NVME_PLACE_AUTO;
	o->sq_device = !strncmp(text, "device:", 7) && text[7] ? text + 7 : NULL;
	if (o->sq_device)
		return EXIT_OK;
	for (uint32_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		if (!strcmp(text, name[i])) {
			o->sq_placement = i;
			return EXIT_OK;
		}
	return usage(c, "--sq %s: one of auto, local, lender, cmb, device:NAME is wanted", text);
}

/* One that has no value. */
static int take_flag(struct options *o, int opt)
{
	o->json |= opt == 'j';
	o->yes |= opt == 'y';
	o->allow_vendor |= opt == OPT_VENDOR;
	o->standby |= opt == OPT_STANDBY;
	o->multipath |= opt == OPT_MULTIPATH;
	o->share |= opt == OPT_SHARE;
	o->progress |= opt == 'p';
	o->once |= opt == '1';
	o->write |= opt == OPT_WRITE;
	o->random |= opt == OPT_RANDOM;
	o->counters |= opt == OPT_COUNTERS;
	o->interrupt |= opt == OPT_INTERRUPT;
	o->background |= opt == OPT_BACKGROUND;
	o->read_only |= opt == OPT_READ_ONLY;
	o->alone |= opt == OPT_ALONE;
	o->poll |= opt == OPT_POLL;
	o->force |= opt == OPT_FORCE;
	return EXIT_OK;
}

/* One option; it was checked that the command takes it. */
static int take_option(const struct command *c, struct options *o, int opt)
{
	int rc = EXIT_OK;

	switch (opt) {
	case 's':
		o->has_offset = true;
		return number(c, "offset", optarg, 0, UINT64_MAX, &o->offset);
	case 'l':
		o->has_length = true;
		return number(c, "length", optarg, 0, UINT64_MAX, &o->length);
	case 'd':
		return number(c, "depth", optarg, 1, 65534, &o->depth);
	case 'n':
		return number32(c, "namespace", 1, UINT32_MAX - 1, &o->nsid);
	case 'f':
		return number32(c, "format", 0, 15, &o->format);
	case 'b':
		return number(c, "size", optarg, 1, 1u << 30, &o->size);
	case 'c':
		return number(c, "count", optarg, 1, UINT64_MAX / 2, &o->count);
	case OPT_WARMUP:
		return number(c, "warmup", optarg, 0, UINT64_MAX / 2, &o->warmup);
	case 't':
		return seconds(c, optarg, &o->seconds);
	case OPT_SQ:
		return place(c, optarg, o);
	case OPT_QUEUES:
		return number32(c, "queues", 1, BENCH_QUEUES, &o->queues);
	case OPT_TIMEOUT:
		return number32(c, "timeout", 1, 3600000, &o->timeout_ms);
	case OPT_LEASE:
		o->lease = optarg;
		return EXIT_OK;
	case OPT_HYBRID:
		o->hybrid = true;
		return optarg ? number32(c, "hybrid", 1, UINT32_MAX, &o->poll_us) : EXIT_OK;
	case OPT_SURVIVE:
		return on_or_off(c, "survive", optarg, &o->survive);
	case OPT_WAIT:
		if (optarg)
			rc = wait_seconds(c, optarg, &o->wait_ms);
		o->bare_wait = !optarg;
		o->pair_wait_ms = o->wait_ms;
		return rc;
	case 'o':
	case 'i':
		o->file = optarg;
		return EXIT_OK;
	}
	return take_flag(o, opt);
}

/* getopt's tables for what the command takes. */
static void tables(const struct command *c, struct option *longs, char *shorts)
{
	unsigned n = 0;

	*shorts++ = ':';
	for (unsigned i = 0; i < OPTIONS; i++) {
		if (options[i].needs && !(c->takes & options[i].needs))
			continue;
		longs[n++] = options[i].o;
		if (options[i].o.val < 256) {
			*shorts++ = (char)options[i].o.val;
			if (options[i].o.has_arg)
				*shorts++ = ':';
		}
	}
	memset(&longs[n], 0, sizeof(longs[n]));
	*shorts = '\0';
}

/* EXIT_OK; EXIT_USAGE; -1: help was shown. */
static int parse(const struct command *c, int argc, char **argv, struct options *o)
{
	struct option longs[OPTIONS + 1];
	char shorts[2 * OPTIONS + 2];
	int opt, rc;

	tables(c, longs, shorts);
	opterr = 0;
	optind = 1;
	while ((opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (opt == 'h') {
			help_command(c);
			return -1;
		}
		if (opt == ':')
			return usage(c, "%s needs a value", argv[optind - 1]);
		if (opt == '?')
			return usage(c, "%s does not know the option %s", c->name,
				     argv[optind - 1]);
		rc = take_option(c, o, opt);
		if (rc)
			return rc;
	}
	if (optind == argc && !(c->takes & NO_DEVICE))
		return usage(c, "%s needs a %s", c->name,
			     c->takes & TAKES_FORCE ? "DISK" : "DEVICE");
	if (!(c->takes & NO_DEVICE))
		o->device = argv[optind++];
	if (c->takes & TAKES_FILE) {
		if (optind == argc)
			return usage(c, "%s needs a FILE", c->name);
		o->file = argv[optind++];
	}
	if (optind < argc)
		return usage(c, "%s is one argument too many%s", argv[optind],
			     o->bare_wait ? "; seconds stand behind a '=', as --wait=10" : "");
	if (c->takes & NEEDS_LENGTH && !o->has_length)
		return usage(c, "%s needs --length BYTES", c->name);
	return EXIT_OK;
}

/* Wrong words may stand before it. */
static bool wants_json(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--json") || !strcmp(argv[i], "-j"))
			return true;
	return false;
}

static int print_version(bool json)
{
	struct json_object *data;

	if (!json) {
		printf("smartio-nvme %s\n", SMARTIO_VERSION);
		return EXIT_OK;
	}
	data = doc_object();
	doc_string(data, "version", SMARTIO_VERSION);
	doc_print("version", data);
	return EXIT_OK;
}

/* *ret_command: its name, once it is known. */
static int run(int argc, char **argv, struct options *o, const char **ret_command)
{
	int rc;

	if (argc < 2)
		return usage(NULL, "a command is missing");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		help(stdout);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "--version"))
		return print_version(wants_json(argc, argv));
	for (unsigned i = 0; i < COMMANDS; i++) {
		if (strcmp(argv[1], commands[i].name) != 0)
			continue;
		*ret_command = commands[i].name;
		rc = parse(&commands[i], argc - 1, argv + 1, o);
		if (rc)
			return rc < 0 ? EXIT_OK : rc;
		rc = commands[i].run(o);
		if (fflush(stdout) != 0 && rc == EXIT_OK)
			rc = failed("cannot write to stdout: %s", strerror(errno));
		return rc;
	}
	return usage(NULL, "there is no command %s", argv[1]);
}

int main(int argc, char **argv)
{
	struct options o = {
		.nsid = 1, .size = 4096, .warmup = 100, .wait_ms = WAIT_MS, .survive = -1};
	const char *command = "";
	int rc = run(argc, argv, &o, &command);

	if (rc && (o.json || (rc == EXIT_USAGE && wants_json(argc, argv))))
		doc_failed(command, rc);
	return rc;
}
