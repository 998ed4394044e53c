/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs of the workloads have in common (work/life.h). */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <string.h>

#include "fabric/fabric.h"
#include "work/life.h"

bool sim_initialize(void)
{
	sci_error_t e;

	SIM_CALL(SCIInitialize, (0, &e), &e, SCI_ERR_NOT_INITIALIZED);
	return e == SCI_ERR_OK;
}

bool sim_live(const struct sim_life *life, void *state, sci_desc_t *sd)
{
	uint64_t acts = 10 + sim_pick(life->acts);
	sci_error_t e;

	if (!sim_initialize())
		return false;
	SIM_CALL(SCIOpen, (sd, 0, &e), &e);
	if (e != SCI_ERR_OK)
		return true;
	for (; acts > 0 && !sim_stopping_programs(); acts--) {
		life->act(state);
		sim_sleep(sim_pick(4) ? sim_pick(100000) : sim_pick(100 * SIM_MS));
	}
	if (!life->tear_down || sim_pick(4) == 0)
		return true;
	life->tear_down(state);
	SIM_CALL(SCIClose, (*sd, 0, &e), &e, life->close_may);
	return true;
}

void sim_terminate(struct sim_proc *p)
{
	sim_call("SCITerminate", 0);
	SCITerminate();
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
	if (p->n_fds)
		sim_fail("hardware", "%s: %u descriptors are open after SCITerminate()", p->name,
			 p->n_fds);
	p->result = 0;
}

void sim_exit(struct sim_proc *p)
{
	if (sim_pick(8) > 0)
		sim_terminate(p);
}

void sim_live_and_exit(struct sim_proc *p, const struct sim_life *life, void *state, sci_desc_t *sd)
{
	if (sim_live(life, state, sd))
		sim_exit(p);
}

bool sim_later(sci_error_t e)
{
	if (e != SCI_ERR_NODE_NOT_RESPONDING && e != SCI_ERR_NO_LINK_ACCESS && e != SCI_ERR_BUSY &&
	    e != SCI_ERR_NOSPC)
		return false;
	sim_sleep(SIM_MS);
	return sim_host_alive(sim_self()->host);
}

bool sim_is_drive(const struct sio_topo_device *d)
{
	return strcmp(d->type, "nvme") == 0;
}

bool sim_is_memory(const struct sio_topo_device *d)
{
	return strcmp(d->type, "memory") == 0;
}

const struct sio_topo_device *sim_pick_device(bool (*fits)(const struct sio_topo_device *d),
					      unsigned *ret_host)
{
	const struct sio_topology *t = sim_cluster->topology;
	const struct sio_topo_device *found = NULL;
	uint64_t n = 0;

	for (unsigned h = 0; h < t->n_hosts && h != sim_liar(); h++)
		for (unsigned i = 0; i < t->host[h].n_devices; i++)
			if (fits(&t->host[h].device[i]) && sim_pick(++n) == 0) {
				found = &t->host[h].device[i];
				*ret_host = h;
			}
	return found;
}

uint32_t sim_next_share(struct sim_shares *p)
{
	if (p->model != fabric_model())
		*p = (struct sim_shares){.model = fabric_model()};
	return p->next++;
}

static unsigned count_drives(void)
{
	unsigned n = 0;

	for (unsigned h = 0; h < sim_hosts() && h != sim_liar(); h++)
		for (unsigned i = 0; i < sim_cluster->topology->host[h].n_devices; i++)
			n += sim_is_drive(&sim_cluster->topology->host[h].device[i]);
	return n;
}

bool sim_has_drives(unsigned host)
{
	(void)host;
	return count_drives() > 0;
}

static const struct sio_topo_device *drive_at(unsigned wanted, unsigned *ret_host,
					      unsigned *ret_device)
{
	for (unsigned h = 0; h < sim_hosts(); h++)
		for (unsigned i = 0; i < sim_cluster->topology->host[h].n_devices; i++) {
			const struct sio_topo_device *d = &sim_cluster->topology->host[h].device[i];

			if (!sim_is_drive(d) || wanted-- > 0)
				continue;
			if (ret_host)
				*ret_host = h;
			if (ret_device)
				*ret_device = i;
			return d;
		}
	assert(!"as many drives as were counted");
	return NULL;
}

const struct sio_topo_device *sim_pick_drive(unsigned *ret_host, unsigned *ret_device)
{
	return drive_at((unsigned)sim_pick(count_drives()), ret_host, ret_device);
}

const struct sio_topo_device *sim_first_drive(unsigned *ret_host, unsigned *ret_device)
{
	return drive_at(0, ret_host, ret_device);
}

bool sim_drawn_apart(const char *name, uint64_t salt, unsigned seen_in)
{
	uint64_t seed = sim_options.seed ^ salt;

	return (sim_options.workload && strstr(sim_options.workload, name)) ||
	       sim_draw(&seed) % seen_in == 0;
}
