/* SPDX-License-Identifier: BSD-2-Clause */
/* Who may do what: rules against what they say in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "core/policy.h"
#include "prng.h"

static const struct sio_policy_thing drive = {
	.kind = SIO_POLICY_DEVICE, .host = 4, .at = "a", .device = "nvme0"};

static struct sio_policy_thing segment(uint32_t host, uint32_t id)
{
	return (struct sio_policy_thing){
		.kind = SIO_POLICY_SEGMENTS, .host = host, .at = "a", .device = "", .number = id};
}

static void without_rules_one_machine_is_open_and_others_are_closed(void **state)
{
	struct sio_policy p = {.open = false};
	struct sio_policy_person_of who = {.uid = 1000};
	struct sio_err err;

	(void)state;
	assert_int_equal(sio_policy_node(&p, &drive, 8, false, &err), 0);
	assert_int_equal(sio_policy_node(&p, &drive, 8, true, &err), -EACCES);
	assert_string_equal(err.text, "node 8 may not borrow device a/nvme0: it is on another "
				      "machine, and the cluster's file allows no node to "
				      "('access')");
	assert_int_equal(sio_policy_node(&p, &drive, 4, true, &err), 0);
	assert_int_equal(sio_policy_program(&p, &drive, &who, &err), 0);
	p.open = true;
	assert_int_equal(sio_policy_node(&p, &drive, 8, true, &err), 0);
}

static void a_list_of_nodes_holds_on_one_machine_too(void **state)
{
	uint32_t nodes[] = {4, 12};
	struct sio_policy_rule rule = {.kind = SIO_POLICY_DEVICE,
				       .device = "nvme0",
				       .line = 7,
				       .has_nodes = true,
				       .node = nodes,
				       .n_nodes = 2};
	struct sio_policy p = {.open = true, .rule = &rule, .n_rules = 1};
	struct sio_err err;

	(void)state;
	for (unsigned apart = 0; apart < 2; apart++) {
		assert_int_equal(sio_policy_node(&p, &drive, 12, apart, &err), 0);
		assert_int_equal(sio_policy_node(&p, &drive, 8, apart, &err), -EACCES);
		assert_string_equal(err.text,
				    "node 8 may not borrow device a/nvme0: allowed: nodes "
				    "4, 12; see line 7 of the cluster's file");
	}
	strcpy(rule.device, "a/nvme0");
	assert_int_equal(sio_policy_node(&p, &drive, 8, false, &err), -EACCES);
	strcpy(rule.device, "b/nvme0");
	assert_int_equal(sio_policy_node(&p, &drive, 8, false, &err), 0);
	rule.device[0] = '\0';
	assert_int_equal(sio_policy_node(&p, &drive, 8, false, &err), -EACCES);
	rule.n_nodes = 0;
	assert_int_equal(sio_policy_node(&p, &drive, 12, false, &err), -EACCES);
	assert_non_null(strstr(err.text, "allowed: no node;"));
	assert_int_equal(sio_policy_node(&p, &drive, 4, false, &err), 0);
	rule.all_nodes = true;
	assert_int_equal(sio_policy_node(&p, &drive, 8, true, &err), 0);
}

static void users_and_groups_are_programs_of_any_host(void **state)
{
	struct sio_policy_person user[] = {{"alice", 1000}, {"gone", SIO_POLICY_NOBODY}},
				 group[] = {{"", 44}};
	struct sio_policy_rule rule = {.kind = SIO_POLICY_SEGMENTS,
				       .first = 16,
				       .last = 31,
				       .line = 9,
				       .has_people = true,
				       .user = user,
				       .n_users = 2,
				       .group = group,
				       .n_groups = 1};
	struct sio_policy p = {.rule = &rule, .n_rules = 1};
	uint32_t more[] = {5, 44};
	struct sio_policy_person_of who = {.uid = 1000, .gid = 1000};
	struct sio_policy_thing s = segment(4, 16), other = segment(4, 32);
	struct sio_err err;

	(void)state;
	assert_int_equal(sio_policy_program(&p, &s, &who, &err), 0);
	who.uid = SIO_POLICY_NOBODY; /* no user has that number */
	assert_int_equal(sio_policy_program(&p, &s, &who, &err), -EACCES);
	who.uid = 0;
	assert_int_equal(sio_policy_program(&p, &s, &who, &err), -EACCES);
	assert_string_equal(err.text,
			    "user 0 may not have segment 0x10 of a: allowed: users alice, gone, "
			    "groups 44; see line 9 of the cluster's file");
	assert_int_equal(sio_policy_program(&p, &other, &who, &err), 0);
	who.gid = 44;
	assert_int_equal(sio_policy_program(&p, &s, &who, &err), 0);
	who = (struct sio_policy_person_of){.uid = 7, .gid = 7, .groups = more, .n_groups = 2};
	assert_int_equal(sio_policy_program(&p, &s, &who, &err), 0);
	who.n_groups = 1;
	assert_int_equal(sio_policy_program(&p, &s, &who, &err), -EACCES);
	/* Nodes are as if there were no rule. */
	assert_int_equal(sio_policy_node(&p, &s, 8, false, &err), 0);
	assert_int_equal(sio_policy_node(&p, &s, 8, true, &err), -EACCES);
}

/* Texts pass through replies: they are no longer, however long the lists are. */
static void a_long_list_is_cut(void **state)
{
	struct sio_policy_person user[SIO_POLICY_PEOPLE];
	uint32_t nodes[SIO_MAX_HOSTS];
	struct sio_policy_rule rule = {.kind = SIO_POLICY_DEVICE,
				       .line = 99999,
				       .has_nodes = true,
				       .node = nodes,
				       .n_nodes = SIO_MAX_HOSTS,
				       .has_people = true,
				       .user = user,
				       .n_users = SIO_POLICY_PEOPLE};
	struct sio_policy p = {.rule = &rule, .n_rules = 1};
	struct sio_policy_person_of who = {.uid = 4294967294u};
	struct sio_err err;

	(void)state;
	for (unsigned i = 0; i < SIO_MAX_HOSTS; i++)
		nodes[i] = 8 + 4 * i;
	for (unsigned i = 0; i < SIO_POLICY_PEOPLE; i++)
		user[i] = (struct sio_policy_person){"someone-with-a-name", i};
	assert_int_equal(sio_policy_node(&p, &drive, 4 + 4 * SIO_MAX_HOSTS + 4, false, &err),
			 -EACCES);
	assert_true(strlen(err.text) < 192);
	assert_non_null(strstr(err.text, "..."));
	assert_int_equal(sio_policy_program(&p, &drive, &who, &err), -EACCES);
	assert_true(strlen(err.text) < 192);
}

/* Many rules at random: the first that is about an id decides, as one by one. */
static void the_first_rule_counts(void **state)
{
	struct sio_policy_rule rule[12];
	struct sio_policy p = {.rule = rule};
	unsigned rounds = prng_start(1, 2000);

	(void)state;
	for (unsigned round = 0; round < rounds; round++) {
		p.n_rules = prng_below(12);
		for (unsigned i = 0; i < p.n_rules; i++) {
			rule[i] =
				(struct sio_policy_rule){.kind = SIO_POLICY_DEVICE + prng_below(3),
							 .host = prng_below(3) * 4,
							 .first = prng_below(8),
							 .has_nodes = true,
							 .all_nodes = prng_below(2)};
			rule[i].last = rule[i].first + prng_below(4);
		}
		for (uint32_t host = 4; host <= 8; host += 4)
			for (uint32_t id = 0; id < 12; id++) {
				struct sio_policy_thing t = segment(host, id);
				const struct sio_policy_rule *want = NULL;

				for (unsigned i = p.n_rules; i-- > 0;)
					if (rule[i].kind == SIO_POLICY_SEGMENTS &&
					    (rule[i].host == 0 || rule[i].host == host) &&
					    id >= rule[i].first && id <= rule[i].last)
						want = &rule[i];
				assert_ptr_equal(sio_policy_rule_of(&p, &t), want);
				assert_int_equal(sio_policy_node(&p, &t, 12, true, NULL),
						 want && want->all_nodes ? 0 : -EACCES);
			}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_rules_one_machine_is_open_and_others_are_closed),
		cmocka_unit_test(a_list_of_nodes_holds_on_one_machine_too),
		cmocka_unit_test(users_and_groups_are_programs_of_any_host),
		cmocka_unit_test(a_long_list_is_cut),
		cmocka_unit_test(the_first_rule_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
