/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "machine/addressed.h"
#include "machine/config.h"

static const uint8_t ours[4] = {127, 0, 0, 1}, qemu[3] = {10, 0, 2};

bool machine_is_addressed(const struct sio_topology *t)
{
	return t->n_machines && t->machine[0].address.port;
}

static const char *text_of(const struct sio_topo_host *h, char text[INET6_ADDRSTRLEN])
{
	return inet_ntop(h->address.v6 ? AF_INET6 : AF_INET, h->address.ip, text, INET6_ADDRSTRLEN);
}

static int check_emulated(const struct sio_topo_host *h, const struct sio_topo_host *machine,
			  struct sio_err *reterr)
{
	char text[INET6_ADDRSTRLEN];

	if (h->node > machine->node)
		return sio_fail(
			reterr, -EINVAL,
			"host '%s' has node id %u and machine '%s' %u: the daemon of the higher "
			"one connects, and nothing of this computer leads into a machine; "
			"machines behind the emulated hosts in the file, or a lower 'node' "
			"for '%s', are right",
			h->name, h->node, machine->name, machine->node, h->name);
	if (h->address.v6 || (h->address.ip[0] == ours[0] && memcmp(h->address.ip, ours, 4) != 0))
		return sio_fail(
			reterr, -EINVAL,
			"host '%s' has the address %s, to which QEMU's network does not lead "
			"machines; 127.0.0.1 or another IPv4 address of this computer, with a "
			"port of its own, is right",
			h->name, text_of(h, text));
	return 0;
}

static int check_machine(const struct sio_topo_host *h, struct sio_err *reterr)
{
	char text[INET6_ADDRSTRLEN], pci[SIO_TOPO_PCI];

	if (h->address.v6 || h->address.ip[0] == ours[0] ||
	    memcmp(h->address.ip, qemu, sizeof(qemu)) == 0)
		return sio_fail(
			reterr, -EINVAL,
			"machine '%s' has the address %s; an IPv4 address that nothing else has, "
			"not in 127.0.0.0/8 nor in 10.0.2.0/24 (QEMU's network between it "
			"and this computer), is right, as 10.74.0.1",
			h->name, text_of(h, text));
	for (unsigned i = 0; i < h->n_adapters; i++) {
		snprintf(pci, sizeof(pci), "0000:00:%02x.0", MACHINE_SLOT_ADAPTER + i);
		if (strcmp(h->adapter[i].pci, pci) != 0)
			return sio_fail(
				reterr, -EINVAL,
				"adapter %u of machine '%s' has 'pci' %s, by which the machine finds "
				"it; 'pci: %s' is right",
				i, h->name, *h->adapter[i].pci ? h->adapter[i].pci : "left out",
				pci);
	}
	return 0;
}

int machine_check_addresses(const struct sio_topology *t, const struct sio_topo_host *h,
			    struct sio_err *reterr)
{
	int r = check_machine(h, reterr);

	for (unsigned i = 0; r == 0 && i < t->n_hosts; i++)
		r = check_emulated(&t->host[i], h, reterr);
	return r;
}

struct json_object *machine_host_addresses(const struct sio_topology *t)
{
	struct json_object *list = tool_json_array();

	for (unsigned i = 0; i < t->n_hosts; i++) {
		char text[INET6_ADDRSTRLEN];
		bool again = false;

		for (unsigned k = 0; k < i && !again; k++)
			again = memcmp(t->host[k].address.ip, t->host[i].address.ip, 4) == 0;
		if (!again)
			tool_json_append(list, tool_json_word(text_of(&t->host[i], text)));
	}
	return list;
}
