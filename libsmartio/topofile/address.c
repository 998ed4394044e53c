/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of real hardware: the TCP address of a host's daemon, the PCI address of an adapter. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "topofile/draft.h"
#include "topofile/value.h"

/* IPv4:PORT or [IPv6]:PORT. */
static bool parse_address(const char *text, struct sio_topo_address *ret)
{
	struct sio_topo_address a = {.v6 = *text == '['};
	const char *ip = text + a.v6, *end = strrchr(text, ':');
	char copy[INET6_ADDRSTRLEN];
	uint64_t port;
	size_t len;

	if (!end || end - a.v6 < ip || (a.v6 && end[-1] != ']'))
		return false;
	len = (size_t)(end - a.v6 - ip);
	if (len >= sizeof(copy))
		return false;
	memcpy(copy, ip, len);
	copy[len] = '\0';
	if (inet_pton(a.v6 ? AF_INET6 : AF_INET, copy, a.ip) != 1 ||
	    !sio_value_digits(end + 1, strlen(end + 1), &port) || port == 0 || port > 65535)
		return false;
	a.port = (uint16_t)port;
	*ret = a;
	return true;
}

int sio_draft_read_address(struct sio_draft *d, unsigned host, struct sio_spot at)
{
	struct sio_source *s = d->source;
	const char *text = sio_source_text(at.value);
	size_t mark = sio_source_enter(s, "address", 0);

	if (!text || !parse_address(text, &d->t->host[host].address))
		return sio_source_fail(s, at,
				       "not an address; an IP address and a port, such as "
				       "192.0.2.7:7470 or \"[2001:db8::7]:7470\", is right (names "
				       "are not looked up)");
	d->host[host].address_at = at;
	sio_source_leave(s, mark);
	return 0;
}

static int fail_address(struct sio_draft *d, unsigned host, struct sio_spot at, const char *wrong,
			unsigned other)
{
	char path[SIO_DRAFT_PATH];

	snprintf(path, sizeof(path), "hosts.%s.address", d->t->host[host].name);
	return sio_source_fail_at(d->source, at, path, wrong, d->t->host[other].name,
				  d->host[other].at.key.line);
}

static bool is_same(const struct sio_topo_address *a, const struct sio_topo_address *b)
{
	return a->port == b->port && a->v6 == b->v6 && memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

int sio_draft_check_addresses(struct sio_draft *d)
{
	const struct sio_topo_host *h = d->t->host;
	unsigned with = 0;

	while (with < d->t->n_hosts && !h[with].address.port)
		with++;
	for (unsigned i = 0; i < d->t->n_hosts; i++) {
		struct sio_spot missing = sio_source_missing(d->host[i].at);

		if (h[i].machine && !h[i].address.port)
			continue;
		if (!h[i].address.port && with < d->t->n_hosts)
			return fail_address(d, i, missing,
					    "missing, and host '%s' (line %u) has one; an "
					    "address for each host, or none, is right",
					    with);
		if (h[i].real && !h[i].address.port)
			return fail_address(d, i, missing,
					    "missing, and the adapters of '%s' (line %u) have "
					    "'pci'; a real host's IP address and port is right",
					    i);
		for (unsigned j = 0; j < i; j++)
			if (h[i].address.port && is_same(&h[i].address, &h[j].address))
				return fail_address(d, i, d->host[i].address_at,
						    "the address of '%s' (line %u), too; one of "
						    "its own is right",
						    j);
	}
	return 0;
}

static bool is_hex(const char *text, const char *form)
{
	for (; *form; form++, text++) {
		if (*form != 'x' ? *text != *form : !strchr("0123456789abcdef", *text) || !*text)
			return false;
	}
	return !*text;
}

int sio_draft_read_pci(struct sio_source *s, struct sio_spot at, char *out)
{
	const char *text = sio_source_text(at.value);
	size_t mark = sio_source_enter(s, "pci", 0);

	/* 32 devices of a bus, 8 functions of a device. */
	if (!text || !is_hex(text, "xxxx:xx:xx.x") || text[8] > '1' || text[11] > '7')
		return sio_source_fail(s, at,
				       "not a PCI address; one as 'lspci -D' shows it, such as "
				       "0000:05:00.0, is right");
	memcpy(out, text, SIO_TOPO_PCI);
	sio_source_leave(s, mark);
	return 0;
}
