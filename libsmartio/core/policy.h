/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access rules and quotas of a cluster: the sections "access" and "quotas" of its file
 * (docs/policy.md). Pure data and logic: the caller turns names of users and groups into the
 * numbers of its machine, and smartiod/policy/ counts what is used.
 */
#ifndef CORE_POLICY_H
#define CORE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/types.h"

#define SIO_POLICY_RULES 256
#define SIO_POLICY_PEOPLE 64	     /* users of a rule, or groups */
#define SIO_POLICY_NOBODY UINT32_MAX /* this machine has none of that name */

enum sio_policy_kind { SIO_POLICY_DEVICE, SIO_POLICY_SEGMENTS, SIO_POLICY_INTERRUPTS };

/* A user, or a group. */
struct sio_policy_person {
	char name[SIO_NAME_LEN]; /* as the file has it; "": it has the number */
	uint32_t id;
};

struct sio_policy_rule {
	enum sio_policy_kind kind;
	unsigned line;			  /* of the file */
	uint32_t host;			  /* node that has the thing; 0: any */
	char device[SIO_DEVICE_NAME_LEN]; /* DEVICE; "": each */
	uint32_t first, last;		  /* SEGMENTS, INTERRUPTS: both belong to it */
	/*
	 * Which other nodes have access: those in the list; all; or (neither) as if there were no
	 * rule.
	 */
	bool has_nodes, all_nodes;
	unsigned n_nodes, n_users, n_groups;
	uint32_t *node;
	/* Which programs have access, on whichever host they run; neither: every program. */
	bool has_people;
	struct sio_policy_person *user, *group;
};

/* What can be limited. Bytes: DMA and EXPORTED. */
enum sio_quota {
	SIO_QUOTA_BORROWS,  /* devices borrowed */
	SIO_QUOTA_WINDOWS,  /* a node: grants to it; a program: mappings of other hosts' memory */
	SIO_QUOTA_DMA,	    /* mapped for devices */
	SIO_QUOTA_EXPORTED, /* a node: memory granted to it; a program: segments that it made */
	SIO_QUOTAS
};

struct sio_limit {
	bool set; /* else there is none */
	uint64_t most;
};

/* All zero: no rules, no limits. */
struct sio_policy {
	bool open; /* between machines, what no rule is about */
	unsigned n_rules;
	struct sio_policy_rule *rule;
	struct sio_limit node[SIO_QUOTAS], program[SIO_QUOTAS]; /* of each */
};

/* The object of an access. */
struct sio_policy_thing {
	enum sio_policy_kind kind;
	uint32_t host;	    /* node that has it, */
	const char *at;	    /* and that host's name */
	const char *device; /* DEVICE: its name */
	uint32_t number;    /* of the segment or interrupt */
};

/* The identity of a program, as the kernel reports it. */
struct sio_policy_person_of {
	uint32_t uid, gid;
	const uint32_t *groups; /* supplementary ones */
	unsigned n_groups;
};

/* Frees the contents of @p, not @p itself. */
void sio_policy_done(struct sio_policy *p);
/* The first rule about @thing; NULL: none. */
const struct sio_policy_rule *sio_policy_rule_of(const struct sio_policy *p,
						 const struct sio_policy_thing *thing);
/*
 * May node @node reach @thing? Its own host may. @apart: they are on different machines.
 * Return: 0; -EACCES, with a text that says who may, and by which rule.
 */
int sio_policy_node(const struct sio_policy *p, const struct sio_policy_thing *thing, uint32_t node,
		    bool apart, struct sio_err *reterr);
/* May this program reach @thing? Root has no special rights. Return: as above. */
int sio_policy_program(const struct sio_policy *p, const struct sio_policy_thing *thing,
		       const struct sio_policy_person_of *who, struct sio_err *reterr);
/* The name of a quota, as in the file: "borrows". */
const char *sio_quota_name(enum sio_quota quota);
static inline bool sio_quota_is_bytes(enum sio_quota quota)
{
	return quota == SIO_QUOTA_DMA || quota == SIO_QUOTA_EXPORTED;
}

#endif
