/* SPDX-License-Identifier: BSD-2-Clause */
/* Identify data structures, field by field (NVM Express Base Specification 1.4, section 5.15.2). */
#include <stdio.h>
#include <string.h>

#include "script.h"

struct field {
	const char *name;
	unsigned offset, bytes;
	bool text;
};

static const struct field controller[] = {
	{"vid", 0, 2, false},	      {"ssvid", 2, 2, false},	    {"sn", 4, 20, true},
	{"rab", 72, 1, false},	      {"cmic", 76, 1, false},	    {"mdts", 77, 1, false},
	{"cntlid", 78, 2, false},     {"ver", 80, 4, false},	    {"rtd3r", 84, 4, false},
	{"rtd3e", 88, 4, false},      {"oaes", 92, 4, false},	    {"ctratt", 96, 4, false},
	{"rrls", 100, 2, false},      {"cntrltype", 111, 1, false}, {"crdt1", 128, 2, false},
	{"oacs", 256, 2, false},      {"acl", 258, 1, false},	    {"aerl", 259, 1, false},
	{"frmw", 260, 1, false},      {"lpa", 261, 1, false},	    {"elpe", 262, 1, false},
	{"npss", 263, 1, false},      {"avscc", 264, 1, false},	    {"apsta", 265, 1, false},
	{"wctemp", 266, 2, false},    {"cctemp", 268, 2, false},    {"mtfa", 270, 2, false},
	{"hmpre", 272, 4, false},     {"hmmin", 276, 4, false},	    {"rpmbs", 312, 4, false},
	{"edstt", 316, 2, false},     {"fwug", 319, 1, false},	    {"kas", 320, 2, false},
	{"hctma", 322, 2, false},     {"sanicap", 328, 4, false},   {"anatt", 342, 1, false},
	{"nanagrpid", 348, 4, false}, {"sqes", 512, 1, false},	    {"cqes", 513, 1, false},
	{"maxcmd", 514, 2, false},    {"nn", 516, 4, false},	    {"oncs", 520, 2, false},
	{"fuses", 522, 2, false},     {"fna", 524, 1, false},	    {"vwc", 525, 1, false},
	{"awun", 526, 2, false},      {"awupf", 528, 2, false},	    {"nvscc", 530, 1, false},
	{"nwpc", 531, 1, false},      {"acwu", 532, 2, false},	    {"sgls", 536, 4, false},
	{"mnan", 540, 4, false},
};

static const struct field namespace[] = {
	{"nsze", 0, 8, false},	  {"ncap", 8, 8, false},       {"nuse", 16, 8, false},
	{"nsfeat", 24, 1, false}, {"nlbaf", 25, 1, false},     {"flbas", 26, 1, false},
	{"mc", 27, 1, false},	  {"dpc", 28, 1, false},       {"dps", 29, 1, false},
	{"nmic", 30, 1, false},	  {"rescap", 31, 1, false},    {"fpi", 32, 1, false},
	{"dlfeat", 33, 1, false}, {"nawun", 34, 2, false},     {"nawupf", 36, 2, false},
	{"nacwu", 38, 2, false},  {"nabsn", 40, 2, false},     {"nabo", 42, 2, false},
	{"noiob", 46, 2, false},  {"npwg", 64, 2, false},      {"anagrpid", 92, 4, false},
	{"nsattr", 99, 1, false}, {"nvmsetid", 100, 2, false}, {"endgid", 102, 2, false},
	{"lbaf0", 128, 4, false},
};

static const struct field primary[] = {
	{"cntlid", 0, 2, false}, {"portid", 2, 2, false},  {"crt", 4, 1, false},
	{"vqfrt", 32, 4, false}, {"vqrfa", 36, 4, false},  {"vqrfap", 40, 2, false},
	{"vqprt", 42, 2, false}, {"vqfrsm", 44, 2, false}, {"vqgran", 46, 2, false},
	{"vifrt", 64, 4, false}, {"virfa", 68, 4, false},  {"virfap", 72, 2, false},
	{"viprt", 74, 2, false}, {"vifrsm", 76, 2, false}, {"vigran", 78, 2, false},
};

/* Entries of 32 bytes each. */
static const struct field secondary[] = {
	{"num", 0, 1, false},	  {"scid", 32, 2, false},  {"pcid", 34, 2, false},
	{"scs", 36, 1, false},	  {"vfn", 40, 2, false},   {"nvq", 42, 2, false},
	{"nvi", 44, 2, false},	  {"scid2", 64, 2, false}, {"scs2", 68, 1, false},
	{"vfn2", 72, 2, false},	  {"scid3", 96, 2, false}, {"scs3", 100, 1, false},
	{"scid4", 128, 2, false},
};

static const struct field list[] = {
	{"first", 0, 4, false}, {"second", 4, 4, false}, {"third", 8, 4, false}};

/* Descriptors of the kinds that the specification numbers; their ids are each drive's own. */
static const struct field descriptor[] = {{"length", 1, 1, false}};

static void line(const char *name, unsigned number, const struct field *f, const uint8_t *data)
{
	uint64_t value = 0;

	if (f->text) {
		printf("%s %u %s '%.*s'\n", name, number, f->name, (int)f->bytes,
		       (const char *)data + f->offset);
		return;
	}
	for (unsigned i = f->bytes; i-- > 0;)
		value = value << 8 | data[f->offset + i];
	printf("%s %u %s %#llx\n", name, number, f->name, (unsigned long long)value);
}

bool fields_show(const char *name, unsigned number, unsigned cns, const uint8_t *data)
{
	const struct field *f = list;
	size_t n = sizeof(list) / sizeof(list[0]);

	if (cns == 0) {
		f = namespace;
		n = sizeof(namespace) / sizeof(namespace[0]);
	} else if (cns == 1) {
		f = controller;
		n = sizeof(controller) / sizeof(controller[0]);
	} else if (cns == 0x14) {
		f = primary;
		n = sizeof(primary) / sizeof(primary[0]);
	} else if (cns == 0x15) {
		f = secondary;
		n = sizeof(secondary) / sizeof(secondary[0]);
	} else if (cns == 3) {
		f = descriptor;
		n = sizeof(descriptor) / sizeof(descriptor[0]);
	}
	for (size_t i = 0; i < n; i++)
		line(name, number, &f[i], data);
	return true;
}
