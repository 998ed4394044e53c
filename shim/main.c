// SPDX-License-Identifier: GPL-2.0-only
/* /dev/smartio0: requests in, events out; the module's beginning and end. */
#include <linux/file.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "smartio.h"

#if BITS_PER_LONG != 64
#error "ids have 64 bits, and index tables"
#endif

#define MAX_ANSWERS 4096 /* unread, or still to come */
#define MAX_NEWS 1024	 /* unread */

struct sio_state sio = {
	.lock = __MUTEX_INITIALIZER(sio.lock),
	.falling = LIST_HEAD_INIT(sio.falling),
	.ended = LIST_HEAD_INIT(sio.ended),
	.devices = LIST_HEAD_INIT(sio.devices),
	.last_id = SIO_FIRST_ID,
};

/* What waits for the daemon. */
static struct {
	spinlock_t lock;
	u64 session, last_session; /* session 0: nobody has the port open */
	struct list_head events;
	unsigned int n_answers, n_news;
	bool overflow;
	wait_queue_head_t wait;
	struct mutex
		reading; /* one reader at a time: an event that cannot be taken stays the next */
} port = {
	.lock = __SPIN_LOCK_UNLOCKED(port.lock),
	.events = LIST_HEAD_INIT(port.events),
	.wait = __WAIT_QUEUE_HEAD_INITIALIZER(port.wait),
	.reading = __MUTEX_INITIALIZER(port.reading),
};

/* ---- events ---- */

struct sio_event *sio_event_new(u32 room)
{
	struct sio_event *e;

	room = max_t(u32, room, sizeof(struct sio_evt_error));
	e = kzalloc(offsetof(struct sio_event, u) + room, GFP_KERNEL_ACCOUNT);
	if (e)
		e->room = room;
	return e;
}

void sio_event_free(struct sio_event *e)
{
	if (!e)
		return;
	for (unsigned int i = 0; i < e->n_files; i++)
		fput(e->file[i]);
	kfree(e);
}

void sio_send_answer(struct sio_event *e, u64 session)
{
	bool lost;

	spin_lock(&port.lock);
	e->answer = true;
	lost = port.session != session;
	if (!lost)
		list_add_tail(&e->node, &port.events);
	spin_unlock(&port.lock);
	if (lost)
		sio_event_free(e);
	else
		wake_up_interruptible(&port.wait);
}

void sio_send_news(struct sio_event *e, u32 op, u32 size)
{
	bool lost;

	e->u.h.op = op;
	e->u.h.size = size;
	spin_lock(&port.lock);
	lost = !port.session || port.overflow;
	if (!lost && ++port.n_news > MAX_NEWS) {
		port.overflow = true;
		e->u.h.op = SIO_EV_OVERFLOW;
		e->u.h.size = sizeof(struct sio_evt_ok);
		e->u.h.owner = 0;
	}
	if (port.overflow)
		sio.events_lost++;
	if (!lost)
		list_add_tail(&e->node, &port.events);
	spin_unlock(&port.lock);
	if (lost)
		sio_event_free(e);
	else
		wake_up_interruptible(&port.wait);
}

static struct sio_event *next_event(void)
{
	struct sio_event *e;

	spin_lock(&port.lock);
	e = list_first_entry_or_null(&port.events, struct sio_event, node);
	spin_unlock(&port.lock);
	return e;
}

static void taken(struct sio_event *e)
{
	spin_lock(&port.lock);
	list_del(&e->node);
	if (e->answer)
		port.n_answers--;
	else if (--port.n_news == 0)
		port.overflow = false;
	spin_unlock(&port.lock);
}

/* The event goes out whole, or stays. */
static int hand_over(struct sio_event *e, struct sio_ioc_packet *p, void __user *where)
{
	int fd[SIO_PORT_MAX_FDS], error = 0;
	unsigned int n = 0;

	p->n_fds = 0;
	memset(p->fd, 0xff, sizeof(p->fd));
	if (p->size < e->u.h.size) {
		p->size = e->u.h.size;
		return copy_to_user(where, p, sizeof(*p)) ? -EFAULT : -EMSGSIZE;
	}
	for (; n < e->n_files; n++) {
		fd[n] = get_unused_fd_flags(O_CLOEXEC);
		if (fd[n] < 0) {
			error = fd[n];
			goto put_fds;
		}
		p->fd[n] = fd[n];
	}
	p->size = e->u.h.size;
	p->n_fds = n;
	if (copy_to_user(u64_to_user_ptr(p->data), &e->u, e->u.h.size) ||
	    copy_to_user(where, p, sizeof(*p))) {
		error = -EFAULT;
		goto put_fds;
	}
	for (unsigned int i = 0; i < n; i++)
		fd_install(fd[i], e->file[i]);
	e->n_files = 0;
	return 0;

put_fds:
	while (n > 0)
		put_unused_fd(fd[--n]);
	return error;
}

static long read_event(struct file *f, void __user *where)
{
	struct sio_ioc_packet p;
	struct sio_event *e;
	int error;

	if (copy_from_user(&p, where, sizeof(p)))
		return -EFAULT;
	if (mutex_lock_interruptible(&port.reading))
		return -EINTR;
	while (!(e = next_event())) {
		mutex_unlock(&port.reading);
		if (f->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(port.wait, next_event()) ||
		    mutex_lock_interruptible(&port.reading))
			return -EINTR;
	}
	error = hand_over(e, &p, where);
	if (!error) {
		taken(e);
		sio_event_free(e);
	}
	mutex_unlock(&port.reading);
	return error;
}

/* ---- requests ---- */

/* Room for one more answer, or none. */
static bool expect_answer(u64 *ret_session)
{
	bool room;

	spin_lock(&port.lock);
	room = port.n_answers < MAX_ANSWERS;
	port.n_answers += room;
	*ret_session = port.session;
	spin_unlock(&port.lock);
	return room;
}

static void expect_none(void)
{
	spin_lock(&port.lock);
	port.n_answers--;
	spin_unlock(&port.lock);
}

static int take_files(struct sio_request *rq, const struct sio_ioc_packet *p)
{
	for (u32 i = 0; i < p->n_fds; i++) {
		struct file *f = fget(p->fd[i]);

		if (!f)
			return -EBADF;
		if (i == 0)
			rq->file = f, rq->fd = p->fd[i];
		else
			fput(f); /* refused later: no request has more than one */
		rq->n_files++;
	}
	return 0;
}

static long take_request(const void __user *where)
{
	struct sio_request *rq;
	struct sio_ioc_packet p;
	int error = -ENOMEM;

	if (copy_from_user(&p, where, sizeof(p)))
		return -EFAULT;
	if (p.size < sizeof(struct sio_req) || p.size > SIO_PORT_MAX_PACKET)
		return -EMSGSIZE;
	if (p.n_fds > SIO_PORT_MAX_FDS)
		return -EINVAL;
	rq = kzalloc(offsetof(struct sio_request, u) + p.size, GFP_KERNEL_ACCOUNT);
	if (!rq)
		return -ENOMEM;
	if (!expect_answer(&rq->session)) {
		kfree(rq);
		return -EAGAIN;
	}
	if (copy_from_user(&rq->u, u64_to_user_ptr(p.data), p.size)) {
		error = -EFAULT;
		goto refuse;
	}
	rq->answer = sio_event_new(sio_answer_room(rq->u.h.op));
	if (!rq->answer)
		goto refuse;
	error = take_files(rq, &p);
	if (error)
		goto refuse;
	rq->len = p.size;
	sio_request(rq);
	return 0;

refuse:
	expect_none();
	sio_event_free(rq->answer);
	if (rq->file)
		fput(rq->file);
	kfree(rq);
	return error;
}

/* ---- the device node ---- */

static int port_open(struct inode *inode, struct file *f)
{
	int error = 0;

	if (!capable(CAP_SYS_RAWIO))
		return -EPERM;
	spin_lock(&port.lock);
	if (port.session)
		error = -EBUSY;
	else
		port.session = ++port.last_session;
	spin_unlock(&port.lock);
	return error ? error : nonseekable_open(inode, f);
}

static int port_release(struct inode *inode, struct file *f)
{
	struct sio_event *e, *tmp;
	LIST_HEAD(unread);

	spin_lock(&port.lock);
	port.session = 0;
	list_splice_init(&port.events, &unread);
	port.n_answers = 0;
	port.n_news = 0;
	port.overflow = false;
	spin_unlock(&port.lock);
	list_for_each_entry_safe(e, tmp, &unread, node)
		sio_event_free(e);
	return 0;
}

static long port_ioctl(struct file *f, unsigned int cmd, unsigned long arg)
{
	switch (cmd) {
	case SIO_IOC_REQUEST:
		return take_request((const void __user *)arg);
	case SIO_IOC_EVENT:
		return read_event(f, (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static __poll_t port_poll(struct file *f, poll_table *wait)
{
	poll_wait(f, &port.wait, wait);
	return EPOLLOUT | EPOLLWRNORM | (next_event() ? EPOLLIN | EPOLLRDNORM : 0);
}

static const struct file_operations port_fops = {
	.owner = THIS_MODULE,
	.open = port_open,
	.release = port_release,
	.unlocked_ioctl = port_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = port_poll,
	.llseek = noop_llseek,
};

static struct miscdevice port_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "smartio0",
	.fops = &port_fops,
	.mode = 0600,
};

/* ---- life ---- */

static void end_everything(void)
{
	mutex_lock(&sio.lock);
	sio_owner_end(&sio.daemon);
	sio_fall();
	sio_owners_bury();
	mutex_unlock(&sio.lock);
	WARN_ON(!xa_empty(&sio.objects));
	sio_devices_free();
	xa_destroy(&sio.objects);
	destroy_workqueue(sio.work);
	sio_status_exit();
	sio_ones_exit();
	sio_pool_exit();
}

static int __init smartio_init(void)
{
	int error;

	xa_init(&sio.objects);
	sio_owner_init(&sio.daemon);
	sio.boot_generation = ktime_get_real_seconds();
	get_random_bytes(sio.boot_id, sizeof(sio.boot_id));
	error = sio_pool_init();
	if (error)
		return error;
	error = sio_ones_init();
	if (error)
		goto pool_exit;
	error = sio_status_init();
	if (error)
		goto ones_exit;
	error = -ENOMEM;
	sio.work = alloc_workqueue("smartio", WQ_UNBOUND, 0);
	if (!sio.work)
		goto status_exit;
	error = pci_register_driver(&sio_pci_driver);
	if (error)
		goto destroy_work;
	error = misc_register(&port_device);
	if (error)
		goto unregister_driver;
	return 0;

unregister_driver:
	pci_unregister_driver(&sio_pci_driver);
	end_everything();
	return error;
destroy_work:
	destroy_workqueue(sio.work);
status_exit:
	sio_status_exit();
ones_exit:
	sio_ones_exit();
pool_exit:
	sio_pool_exit();
	return error;
}

static void __exit smartio_exit(void)
{
	misc_deregister(&port_device);
	pci_unregister_driver(&sio_pci_driver);
	end_everything();
}

module_init(smartio_init);
module_exit(smartio_exit);
MODULE_DESCRIPTION("SmartIO: shares memory and PCIe functions with user space");
MODULE_LICENSE("GPL");
