// SPDX-License-Identifier: GPL-2.0-only
/*
 * Paths to peers: the status page, which programs read, and LINK events. The page is changed first
 * when a path goes down, and last when it comes up: what a program reads through a window is good
 * if the page says so before and after.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/vmalloc.h>

#include "adapter.h"

#define PAGE_BYTES (16 * PAGE_SIZE)
#define ROOM ((PAGE_BYTES - sizeof(struct sio_status_page)) / sizeof(struct sio_status_path))
#define TURN_SHIFT 24 /* of SIO_LINK_START() */

/* Guarded by sio.lock. */
static struct sio_status_page *page;
static u32 changes[ROOM]; /* the bridge's count, as of when it was asked last */
static u32 told[ROOM];	  /* the path's generation when the daemon was told last */
static bool anew;	  /* the daemon knows nothing */
static void report_again(struct work_struct *work);
static DECLARE_WORK(again, report_again);

/* ---- events ---- */

static bool send(u32 i, u32 state)
{
	const struct sio_status_path *p = &page->path[i];
	struct sio_evt_link evt = {.adapter = p->adapter,
				   .peer_node = p->peer_node,
				   .peer_adapter = p->peer_adapter,
				   .state = state,
				   .turn = p->peer_boot >> TURN_SHIFT};

	if (state == SIO_LINK_UP)
		evt.generation = p->peer_boot & ((1 << TURN_SHIFT) - 1);
	return sio_event(SIO_EV_LINK, &evt, sizeof(evt));
}

/* What is dropped SIO_EV_OVERFLOW has told again. */
static void tell(u32 i)
{
	if (send(i, page->path[i].state))
		told[i] = page->path[i].generation;
}

void sio_link_report(const struct smartio_adapter *a)
{
	struct sio_evt_link evt = {.adapter = a->index,
				   .peer_node = a->node,
				   .peer_adapter = a->index,
				   .state = a->link ? SIO_LINK_UP : SIO_LINK_DOWN,
				   .generation = a->link ? a->boot : 0};

	sio_event(SIO_EV_LINK, &evt, sizeof(evt));
}

/* A path that is up may have been down, which is told then, too. */
static void report_again(struct work_struct *work)
{
	mutex_lock(&sio.lock);
	if (xchg(&anew, false))
		memset(told, 0, sizeof(told));
	sio_adapters_report();
	for (u32 i = 0; i < page->count; i++) {
		if (told[i] == page->path[i].generation)
			continue;
		if (told[i] && page->path[i].state == SIO_LINK_UP)
			send(i, SIO_LINK_DOWN);
		tell(i);
	}
	mutex_unlock(&sio.lock);
}

void sio_links_report_again(bool all)
{
	if (all)
		WRITE_ONCE(anew, true);
	schedule_work(&again);
}

/* ---- paths ---- */

/* The path's place, which it has had before or is given now; ROOM: there is none. */
static u32 place(const struct smartio_adapter *a, const struct smartio_bridge_peer *peer)
{
	struct sio_status_path *p;
	u32 i;

	for (i = 0; i < page->count; i++) {
		p = &page->path[i];
		if (p->adapter == a->index && p->peer_node == peer->node &&
		    p->peer_adapter == peer->adapter)
			return i;
	}
	if (i == ROOM)
		return i;
	page->path[i] = (struct sio_status_path){
		.adapter = a->index, .peer_node = peer->node, .peer_adapter = peer->adapter};
	changes[i] = peer->changes;
	smp_store_release(&page->count, i + 1); /* pairs with paths() in libsmartio */
	return i;
}

/*
 * The state first: who has the generation of a path that went down sees that it is down, or up
 * again, and who sees it up again finds another generation. The barriers pair with those in
 * sio_sequence_begin() and judge_path() of libsmartio.
 */
static void set_state(u32 i, u32 state)
{
	WRITE_ONCE(page->path[i].state, state);
	smp_wmb(); /* see above */
	WRITE_ONCE(page->path[i].generation, page->path[i].generation + 1);
	smp_wmb(); /* before what follows is to be seen */
}

static void change_maps(struct smartio_adapter *a, const struct sio_status_path *p, bool up)
{
	struct sio_obj *o;

	list_for_each_entry(o, &a->objects, of_adapter) {
		struct sio_map *m = (struct sio_map *)o;

		if (o->kind != SIO_KIND_MAP || o->node != p->peer_node ||
		    m->peer_adapter != p->peer_adapter)
			continue;
		if (up)
			sio_map_up(m, p->peer_boot);
		else
			sio_map_down(m);
	}
}

static void path_down(struct smartio_adapter *a, u32 i)
{
	a->path_changes++;
	set_state(i, SIO_LINK_DOWN);
	change_maps(a, &page->path[i], false);
	tell(i);
}

static void path_up(struct smartio_adapter *a, u32 i, u64 start)
{
	a->path_changes++;
	WRITE_ONCE(page->path[i].peer_boot, start);
	change_maps(a, &page->path[i], true);
	smp_wmb(); /* whose boot it is, then that it is up: pairs with judge_path() */
	set_state(i, SIO_LINK_UP);
	tell(i);
}

static void look_at(struct smartio_adapter *a, const struct smartio_bridge_peer *peer)
{
	u64 start = SIO_LINK_START(peer->boot, peer->turn);
	u32 i = place(a, peer);
	struct sio_status_path *p = &page->path[i];

	if (i == ROOM) {
		pr_warn_once("smartio: no room in the status page for a path to node %u\n",
			     peer->node);
		return;
	}
	WRITE_ONCE(p->errors, peer->errors);
	if (p->state == SIO_LINK_UP &&
	    (!peer->up || changes[i] != peer->changes || p->peer_boot != start))
		path_down(a, i);
	if (p->state == SIO_LINK_DOWN && !peer->up && changes[i] != peer->changes)
		change_maps(a, p, false); /* what was mapped while it was up, unseen */
	if (p->state == SIO_LINK_DOWN && peer->up)
		path_up(a, i, start);
	changes[i] = peer->changes;
}

void sio_links_look(struct smartio_adapter *a)
{
	struct smartio_bridge_info info = {};
	struct smartio_bridge_peer peer = {};

	a->ops->info(a->bridge, &info);
	a->boot = info.boot;
	if (info.link_up != a->link) {
		a->link = info.link_up;
		sio_link_report(a);
	}
	for (u32 i = 0; a->ops->peer(a->bridge, i, &peer) == 0; i++)
		look_at(a, &peer);
}

void sio_links_lose(struct smartio_adapter *a)
{
	for (u32 i = 0; i < page->count; i++)
		if (page->path[i].adapter == a->index && page->path[i].state == SIO_LINK_UP)
			path_down(a, i);
	a->link = false;
	sio_link_report(a);
}

int sio_link_find(struct sio_request *rq, struct smartio_adapter *a, u32 node, u32 adapter,
		  struct smartio_bridge_peer *ret)
{
	for (u32 i = 0; a->ops->peer(a->bridge, i, ret) == 0; i++)
		if (ret->node == node && ret->adapter == adapter)
			return 0;
	return sio_fail(rq, -EHOSTUNREACH,
			"no path from adapter %u of node %u to adapter %u of node %u", a->index,
			a->node, adapter, node);
}

/* ---- STATUS ---- */

static int status_mmap(struct file *f, struct vm_area_struct *vma)
{
	return remap_vmalloc_range(vma, page, vma->vm_pgoff);
}

static const struct file_operations status_fops = {
	.owner = THIS_MODULE,
	.mmap = status_mmap,
};

int sio_op_status(struct sio_request *rq, const void *msg, void *answer)
{
	struct sio_evt_status *evt = answer;
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct file *f;

	if (fd < 0)
		return fd;
	f = anon_inode_getfile("[smartio status]", &status_fops, NULL, O_RDONLY);
	if (IS_ERR(f)) {
		put_unused_fd(fd);
		return PTR_ERR(f);
	}
	evt->size = PAGE_BYTES;
	rq->out_fd[rq->n_out] = fd;
	rq->out[rq->n_out++] = f;
	return 0;
}

int sio_links_init(void)
{
	page = vmalloc_user(PAGE_BYTES);
	if (!page)
		return -ENOMEM;
	page->magic = SIO_STATUS_MAGIC;
	page->version = SIO_PORT_VERSION;
	page->room = ROOM;
	return 0;
}

void sio_links_free(void)
{
	cancel_work_sync(&again);
	vfree(page);
}
