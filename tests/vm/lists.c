/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the port has, and what smartiod has lent: a line for each thing, to be compared with later.
 * Of the daemon's own numbers nothing is printed, for the next one counts again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/client.h"
#include "smartio/uapi.h"

static const struct {
	uint32_t kind;
	const char *name;
} kinds[] = {
	{SIO_LIST_BORROWS, "borrow"},
	{SIO_LIST_DMA_MAPS, "mapped"},
	{SIO_LIST_PORT + SIO_KIND_OWNER, "owner"},
	{SIO_LIST_PORT + SIO_KIND_MEM, "memory"},
	{SIO_LIST_PORT + SIO_KIND_GRANT, "grant"},
	{SIO_LIST_PORT + SIO_KIND_MAP, "map"},
	{SIO_LIST_PORT + SIO_KIND_REQUESTER, "requester"},
	{SIO_LIST_PORT + SIO_KIND_DEVICE, "device"},
	{SIO_LIST_PORT + SIO_KIND_BAR, "view"},
	{SIO_LIST_PORT + SIO_KIND_DMAMAP, "dmamap"},
	{SIO_LIST_PORT + SIO_KIND_IRQ, "interrupt"},
	{SIO_LIST_PORT + SIO_KIND_VECTOR, "vector"},
};

static int print_kind(struct tool_client *c, uint32_t kind, const char *name)
{
	struct sio_wire_row *row;
	struct sio_err err;
	size_t n;

	if (tool_client_list(c, kind, &row, &n, &err) < 0) {
		fprintf(stderr, "lists: %s: %s\n", name, err.text);
		return -1;
	}
	for (size_t i = 0; i < n; i++)
		printf("%s %" PRIx64 " owner %" PRIx64 " bytes %" PRIx64 " at %" PRIx64
		       " id %x refs %u flags %x\n",
		       name, sio_from_le64(row[i].key), sio_from_le64(row[i].owner),
		       sio_from_le64(row[i].bytes), sio_from_le64(row[i].address),
		       sio_from_le32(row[i].id), sio_from_le32(row[i].refs),
		       sio_from_le32(row[i].flags));
	free(row);
	return 0;
}

int main(void)
{
	struct tool_client c;
	struct sio_err err;
	int rc = 0;

	if (tool_client_open(&c, "/run/smartiod", 0, SIO_CLIENT_TOOL, &err) < 0) {
		fprintf(stderr, "lists: %s\n", err.text);
		return 1;
	}
	for (size_t i = 0; rc == 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		rc = print_kind(&c, kinds[i].kind, kinds[i].name);
	tool_client_close(&c);
	return rc ? 1 : 0;
}
