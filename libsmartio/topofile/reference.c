/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The build's program that writes what users and editors read of the types of devices, from their
 * tables: topofile-reference schema|page TEMPLATE copies the template to standard output, with the
 * types in place of its line @DEVICE_TYPES@.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topofile/type.h"
#include "topofile/types.h"

/* What is right, as "1M to 16T, a multiple of 4K", and what it means to leave the key out: "4M". */
static void describe(const struct sio_devkey *k, char right[SIO_RIGHT_TEXT],
		     char absent[SIO_RIGHT_TEXT])
{
	char size[SIO_SIZE_TEXT];
	struct sio_field f;
	size_t len;

	sio_type_fields(k, 1, &f);
	if (k->kind == SIO_DEVKEY_LIST)
		snprintf(right, SIO_RIGHT_TEXT, "%" PRIu64 " to %" PRIu64 " mappings", k->min,
			 k->max);
	else if (k->kind == SIO_DEVKEY_FILE)
		snprintf(right, SIO_RIGHT_TEXT, "an absolute path");
	else
		sio_value_right(&f, right);
	len = strlen(right);
	if (len && right[len - 1] == ',')
		right[len - 1] = '\0';
	if (k->required)
		snprintf(absent, SIO_RIGHT_TEXT, "an error");
	else if (k->absent)
		snprintf(absent, SIO_RIGHT_TEXT, "%s", k->absent);
	else if (k->kind == SIO_DEVKEY_SIZE)
		snprintf(absent, SIO_RIGHT_TEXT, "%s", sio_value_size_text(k->preset, size));
	else
		snprintf(absent, SIO_RIGHT_TEXT, "%" PRIu64, k->preset);
}

/* ---- the schema ---- */

static void put_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

static void put_description(const struct sio_devkey *k)
{
	char right[SIO_RIGHT_TEXT], absent[SIO_RIGHT_TEXT], text[3 * SIO_RIGHT_TEXT];

	describe(k, right, absent);
	snprintf(text, sizeof(text), "%s: %s; left out: %s", k->text, right, absent);
	printf("\"description\": ");
	put_string(text);
}

/* What is right for a key whose value is no list. */
static void put_value(const struct sio_devkey *k)
{
	if (k->choice[0])
		printf("{\"enum\": [%" PRIu64 ", %" PRIu64 "], ", k->choice[0], k->choice[1]);
	else if (k->kind == SIO_DEVKEY_SIZE)
		printf("{\"$ref\": \"#/$defs/size\", ");
	else if (k->kind == SIO_DEVKEY_FILE)
		printf("{\"$ref\": \"#/$defs/file\", ");
	else
		printf("{\"type\": \"integer\", \"minimum\": %" PRIu64 ", \"maximum\": %" PRIu64
		       ", ",
		       k->min, k->max);
	put_description(k);
	putchar('}');
}

static void put_list(const struct sio_devkey *k)
{
	const char *between = "";

	printf("{\"type\": \"array\", \"minItems\": %" PRIu64 ", \"maxItems\": %" PRIu64 ", ",
	       k->min, k->max);
	put_description(k);
	printf(",\n          \"items\": {\"type\": \"object\", \"additionalProperties\": false, "
	       "\"required\": [");
	for (unsigned i = 0; i < k->n_items; i++)
		if (k->item[i].required) {
			printf("%s\"%s\"", between, k->item[i].name);
			between = ", ";
		}
	printf("], \"properties\": {");
	for (unsigned i = 0; i < k->n_items; i++) {
		printf("%s\n            \"%s\": ", i ? "," : "", k->item[i].name);
		put_value(&k->item[i]);
	}
	printf("}}}");
}

static void put_type(const struct sio_devtype *t)
{
	printf("    \"device_%s\": {\n      \"description\": ", t->name);
	put_string(t->text);
	printf(",\n      \"additionalProperties\": false,\n      \"properties\": {\n"
	       "        \"type\": {\"const\": \"%s\"}",
	       t->name);
	for (unsigned i = 0; i < t->n_keys; i++) {
		printf(",\n        \"%s\": ", t->key[i].name);
		(t->key[i].kind == SIO_DEVKEY_LIST ? put_list : put_value)(&t->key[i]);
	}
	for (const struct sio_field *f = sio_draft_device_field; f->name; f++)
		if (strcmp(f->name, "type") != 0)
			printf(",\n        \"%s\": {\"$ref\": "
			       "\"#/$defs/each_device/properties/%s\"}",
			       f->name, f->name);
	printf("\n      }\n    },\n");
}

static void put_schema(void)
{
	printf("    \"device\": {\n      \"type\": \"object\",\n      \"required\": [\"type\"],\n"
	       "      \"properties\": {\"type\": {\"enum\": [");
	for (const struct sio_devtype *const *t = sio_device_types; *t; t++)
		printf("%s\"%s\"", t == sio_device_types ? "" : ", ", (*t)->name);
	printf("]}},\n      \"allOf\": [");
	for (const struct sio_devtype *const *t = sio_device_types; *t; t++)
		printf("%s\n        {\"if\": {\"properties\": {\"type\": {\"const\": \"%s\"}}},\n"
		       "         \"then\": {\"$ref\": \"#/$defs/device_%s\"}}",
		       t == sio_device_types ? "" : ",", (*t)->name, (*t)->name);
	printf("\n      ]\n    },\n");
	for (const struct sio_devtype *const *t = sio_device_types; *t; t++)
		put_type(*t);
}

/* ---- the manual page ---- */

static void put_key(const struct sio_devkey *k, const char *list)
{
	char right[SIO_RIGHT_TEXT], absent[SIO_RIGHT_TEXT];

	describe(k, right, absent);
	printf("*%s%s%s*\n\t%s: %s. Left out: %s.\n\n", list, *list ? "[]." : "", k->name, k->text,
	       right, absent);
}

static void put_page(void)
{
	for (const struct sio_devtype *const *t = sio_device_types; *t; t++) {
		printf("## type: %s\n\nThis is %s: %s.\n\n", (*t)->name, (*t)->title, (*t)->text);
		for (unsigned i = 0; i < (*t)->n_keys; i++) {
			const struct sio_devkey *k = &(*t)->key[i];

			put_key(k, "");
			for (unsigned j = 0; j < k->n_items; j++)
				put_key(&k->item[j], k->name);
		}
	}
}

int main(int argc, char **argv)
{
	bool page = argc == 3 && strcmp(argv[1], "page") == 0;
	char line[1024];
	FILE *template;

	if (argc != 3 || (!page && strcmp(argv[1], "schema") != 0)) {
		fprintf(stderr, "usage: topofile-reference schema|page TEMPLATE\n");
		return 2;
	}
	template = fopen(argv[2], "r");
	if (!template) {
		perror(argv[2]);
		return 1;
	}
	while (fgets(line, sizeof(line), template))
		if (strcmp(line, "@DEVICE_TYPES@\n") == 0)
			(page ? put_page : put_schema)();
		else
			fputs(line, stdout);
	if (ferror(template) || fflush(stdout) || ferror(stdout)) {
		perror(argv[2]);
		return 1;
	}
	fclose(template);
	return 0;
}
