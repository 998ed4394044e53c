/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of the types of devices (core/devtype.h), which are written by hand in each model's
 * keys.h: names are given once, presets are values that are right, keys that others name exist, and
 * no two keys set the same bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "topofile/type.h"
#include "topofile/types.h"

static const struct sio_devkey *find(const struct sio_devkey *key, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(key[i].name, name) == 0)
			return &key[i];
	return NULL;
}

static bool is_right(const struct sio_devkey *k, uint64_t value)
{
	if (k->choice[0])
		return value == k->choice[0] || value == k->choice[1];
	if (value < k->min || value > k->max)
		return false;
	if (k->step == SIO_DEVKEY_POWER)
		return (value & (value - 1)) == 0;
	return k->step == 0 || value % k->step == 0;
}

static size_t bytes_of(const struct sio_devkey *k)
{
	static const size_t bytes[] = {[SIO_DEVKEY_SIZE] = sizeof(uint64_t),
				       [SIO_DEVKEY_NUMBER] = sizeof(uint32_t),
				       [SIO_DEVKEY_FILE] = sizeof(const char *)};

	return k->kind == SIO_DEVKEY_LIST ? k->max * k->item_size : bytes[k->kind];
}

static void check_value(const struct sio_devkey *k)
{
	assert_true(k->min <= k->max);
	if (k->kind == SIO_DEVKEY_NUMBER) {
		assert_true(k->max <= UINT32_MAX);
		assert_true(k->preset <= UINT32_MAX);
	}
	/* A preset that no file can give has a meaning of its own, which is said to users. */
	if (!k->required && !is_right(k, k->preset))
		assert_non_null(k->absent);
	assert_int_equal(k->n_items, 0);
}

/* @size: of what the keys set. */
static void check_table(const struct sio_devkey *key, unsigned n, size_t size)
{
	assert_in_range(n, 1, SIO_DEVKEY_KEYS);
	for (unsigned i = 0; i < n; i++) {
		const struct sio_devkey *k = &key[i];

		assert_ptr_equal(find(key, n, k->name), k);
		assert_true(k->text[0] && k->text[strlen(k->text) - 1] != '.');
		assert_in_range(k->kind, SIO_DEVKEY_SIZE, SIO_DEVKEY_FILE);
		assert_int_equal(k->offset % (k->kind == SIO_DEVKEY_NUMBER ? 4 : 8), 0);
		assert_true(k->offset + bytes_of(k) <= size);
		for (unsigned j = 0; j < i; j++)
			assert_true(k->offset + bytes_of(k) <= key[j].offset ||
				    key[j].offset + bytes_of(&key[j]) <= k->offset);
		if (k->kind == SIO_DEVKEY_SIZE || k->kind == SIO_DEVKEY_NUMBER)
			check_value(k);
		if (k->needs)
			assert_non_null(find(key, n, k->needs));
		for (unsigned j = 0; j < 3 && k->instead_of[j]; j++)
			assert_non_null(find(key, n, k->instead_of[j]));
	}
}

static void check_list(const struct sio_devkey *list)
{
	assert_in_range(list->min, 1, list->max);
	assert_true(list->count + sizeof(uint32_t) <= sizeof(struct sio_topo_device));
	check_table(list->item, list->n_items, list->item_size);
	for (unsigned i = 0; i < list->n_items; i++)
		assert_int_not_equal(list->item[i].kind, SIO_DEVKEY_LIST);
}

static void tables_are_consistent(void **state)
{
	unsigned n = 0;

	(void)state;
	for (const struct sio_devtype *const *t = sio_device_types; *t; t++, n++) {
		check_table((*t)->key, (*t)->n_keys, sizeof(struct sio_topo_device));
		for (unsigned i = 0; i < (*t)->n_keys; i++) {
			const struct sio_devkey *k = &(*t)->key[i];

			for (const struct sio_field *f = sio_draft_device_field; f->name; f++)
				assert_string_not_equal(f->name, k->name);
			if (k->kind == SIO_DEVKEY_LIST)
				check_list(k);
			else
				assert_false(k->required);
		}
	}
	assert_in_range(n, 3, 100);
}

static void types_have_names_of_their_own(void **state)
{
	(void)state;
	for (const struct sio_devtype *const *t = sio_device_types; *t; t++) {
		assert_true(strncmp((*t)->title, "a ", 2) == 0 ||
			    strncmp((*t)->title, "an ", 3) == 0);
		assert_non_null(strstr(sio_device_type_names, (*t)->name));
		for (const struct sio_devtype *const *other = sio_device_types; other < t; other++)
			assert_string_not_equal((*other)->name, (*t)->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_consistent),
		cmocka_unit_test(types_have_names_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
