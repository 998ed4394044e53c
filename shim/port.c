// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/smartio0: requests and their answers, and news. Every request is checked the same way, in
 * this order: operation, size, reserved fields, flags, descriptors, owner. Only then does its
 * handler see it. And the module's beginning and end.
 */
#include <linux/file.h>
#include <linux/kfifo.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "smartio.h"

#if BITS_PER_LONG != 64
#error "ids have 64 bits, and index tables"
#endif

struct sio_state sio = {
	.lock = __MUTEX_INITIALIZER(sio.lock),
	.objects = XARRAY_INIT(sio.objects, 0),
	.falling = LIST_HEAD_INIT(sio.falling),
	.ended = LIST_HEAD_INIT(sio.ended),
	.devices = LIST_HEAD_INIT(sio.devices),
	.last_id = SIO_FIRST_ID,
};

static u64 boot_generation;
static u8 boot_id[16];

/* ---- news; with sio.lock ---- */

static DEFINE_KFIFO(news, union sio_news, 1024);
static DECLARE_WAIT_QUEUE_HEAD(news_wait);
static bool is_open, overflow;

void sio_tell(union sio_news *n, u32 op, u32 size)
{
	if (!is_open || overflow)
		return;
	if (kfifo_avail(&news) == 1) {
		*n = (union sio_news){};
		overflow = true;
	}
	n->h.op = overflow ? SIO_EV_OVERFLOW : op;
	n->h.size = overflow ? sizeof(n->h) : size;
	kfifo_put(&news, *n);
	wake_up_interruptible(&news_wait);
}

static ssize_t port_read(struct file *f, char __user *to, size_t size, loff_t *pos)
{
	union sio_news n;
	bool got;

	if (size < sizeof(n))
		return -EINVAL;
	mutex_lock(&sio.lock);
	got = kfifo_get(&news, &n);
	if (kfifo_is_empty(&news))
		overflow = false;
	mutex_unlock(&sio.lock);
	if (!got)
		return -EAGAIN;
	return copy_to_user(to, &n, n.h.size) ? -EFAULT : n.h.size;
}

static __poll_t port_poll(struct file *f, poll_table *wait)
{
	poll_wait(f, &news_wait, wait);
	return kfifo_is_empty(&news) ? 0 : EPOLLIN | EPOLLRDNORM;
}

/* ---- operations ---- */

/* What an operation wants its h.owner to be. */
enum owner_rule {
	ASKS,	 /* the daemon (0), or who asks, ended or not */
	HOLDS,	 /* the daemon (0) or a live owner: the new resource hangs on it */
	SUBJECT, /* the operation is about it: the handler looks */
};

struct operation {
	const char *name;
	sio_handler *handler;
	u32 size, answer; /* of the request and of its answer */
	u32 flags;	  /* allowed */
	u32 reserved;	  /* offset of a further reserved 32-bit field; 0: none */
	u32 files;	  /* that may come along */
	enum owner_rule rule;
	bool device; /* it is about req_reset.device, which must not be under reset */
};

static sio_handler op_info;

#define OP(what, fn, type, result, ...)                                                            \
	[SIO_OP_##what] = {.name = #what,                                                          \
			   .handler = (fn),                                                        \
			   .size = sizeof(struct sio_req_##type),                                  \
			   .answer = sizeof(struct sio_evt_##result),                              \
			   __VA_ARGS__}
#define RESERVED(type) .reserved = offsetof(struct sio_req_##type, reserved2)

/* clang-format off */
static const struct operation operations[SIO_OP_COUNT] = {
	OP(INFO, op_info, info, info),
	OP(OWNER_NEW, sio_op_owner_new, owner_new, owner_new, RESERVED(owner_new),
	   .flags = SIO_OWNER_CHILD, .rule = SUBJECT),
	OP(OWNER_CLOSE, sio_op_owner_close, owner_close, ok, .rule = SUBJECT),
	OP(LIST, sio_op_list, list, list, RESERVED(list)),
	OP(ALLOC, sio_op_alloc, alloc, alloc, .rule = HOLDS),
	OP(FREE, sio_op_end, free, ok),
	OP(IMPORT, sio_op_import, import, import, .flags = SIO_IMPORT_POOL, .rule = HOLDS,
	   .files = 1),
	OP(DEVICE_LIST, sio_op_device_list, device_list, device),
	OP(DEVICE_OPEN, sio_op_device_open, device_open, device, .flags = SIO_DEVICE_FORCE,
	   .rule = HOLDS, .device = true),
	OP(DEVICE_CLOSE, sio_op_end, device_close, ok, .device = true),
	OP(RESET, sio_op_reset, reset, reset, RESERVED(reset), .device = true),
	OP(BAR, sio_op_bar, bar, bar, RESERVED(bar), .rule = HOLDS, .device = true),
	OP(BAR_CLOSE, sio_op_end, bar_close, ok),
	OP(DMAMAP, sio_op_dmamap, dmamap, dmamap, .flags = SIO_DMAMAP_STRICT, .rule = HOLDS,
	   .device = true),
	OP(DMAUNMAP, sio_op_end, dmaunmap, ok),
	OP(IRQ_NEW, sio_op_irq_new, irq_new, irq_new, .rule = HOLDS),
	OP(IRQ_FREE, sio_op_end, irq_free, ok),
	OP(VECTOR, sio_op_vector, vector, ok, RESERVED(vector), .rule = HOLDS, .device = true),
	OP(SETTLE, sio_op_settle, settle, settle, RESERVED(settle), .flags = SIO_SETTLE_ALL,
	   .rule = SUBJECT, .device = true),
	OP(IDENTIFY, sio_op_identify, identify, identify, .files = 1),
	OP(REOPEN, sio_op_reopen, reopen, reopen, RESERVED(reopen)),
};
/* clang-format on */

static int op_info(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_info *m = msg;
	struct sio_evt_info *evt = answer;
	u64 total, left;

	if (m->version_min > SIO_PORT_VERSION || m->version_max < SIO_PORT_VERSION)
		return sio_fail(rq, -EPROTO, "versions %u to %u, smartio.ko speaks %d",
				m->version_min, m->version_max, SIO_PORT_VERSION);
	sio_pool_sizes(&total, &left);
	evt->version = SIO_PORT_VERSION;
	evt->world = SIO_WORLD_SHIM;
	evt->page_size = PAGE_SIZE;
	evt->boot_generation = boot_generation;
	memcpy(evt->boot_id, boot_id, sizeof(evt->boot_id));
	for (unsigned int i = 0; i < SIO_OP_COUNT; i++)
		evt->served |= operations[i].handler ? BIT_ULL(i) : 0;
	evt->ram_total = total + sio_mem_limit();
	evt->ram_free = left + sio_mem_limit() - min(sio_mem_limit(), sio_mem_used());
	return 0;
}

/* ---- checks ---- */

int sio_fail(struct sio_request *rq, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(rq->text, sizeof(rq->text), fmt, ap);
	va_end(ap);
	return error;
}

int sio_check(struct sio_request *rq, const char *what, u32 value, u32 low, u32 high)
{
	if (value >= low && value <= high)
		return 0;
	return sio_fail(rq, -EINVAL, "%s %u, %u to %u are right", what, value, low, high);
}

int sio_check_range(struct sio_request *rq, const char *of, u64 offset, u64 length, u64 size)
{
	if (!length || !PAGE_ALIGNED(offset | length))
		return sio_fail(rq, -EINVAL, "range %#llx + %#llx is not of whole pages", offset,
				length);
	if (offset > size || length > size - offset)
		return sio_fail(rq, -EINVAL, "range %#llx + %#llx ends behind %s of %#llx bytes",
				offset, length, of, size);
	return 0;
}

/* What needs no knowledge of the host's state. */
static int check_form(struct sio_request *rq)
{
	const struct sio_req *h = &rq->u.h;
	const struct operation *op;
	u32 reserved = 0;

	if (h->op >= SIO_OP_COUNT || !operations[h->op].name)
		return sio_fail(rq, -EOPNOTSUPP, "operation %u is not served", h->op);
	op = &operations[h->op];
	if (h->size != op->size || rq->len != op->size)
		return sio_fail(rq, -EINVAL, "size %u in a packet of %u bytes, %u is right",
				h->size, rq->len, op->size);
	if (op->reserved)
		memcpy(&reserved, (const char *)h + op->reserved, sizeof(reserved));
	if (h->reserved || reserved)
		return sio_fail(rq, -EINVAL, "h.reserved is %#x, reserved2 is %#x, 0 is right",
				h->reserved, reserved);
	if (h->flags & ~op->flags)
		return sio_fail(rq, -EINVAL, "flags %#x, allowed are %#x", h->flags, op->flags);
	if (rq->n_files > op->files)
		return sio_fail(rq, -EINVAL, "%u descriptors came along, at most %u are right",
				rq->n_files, op->files);
	return 0;
}

/* With sio.lock. */
static int check_state(struct sio_request *rq, const struct operation *op)
{
	struct sio_dev *d = NULL;
	u64 id = rq->u.h.owner;

	if (op->device)
		d = sio_dev_find(((const struct sio_req_reset *)&rq->u)->device);
	if (d && d->resetting)
		return sio_fail(rq, -EAGAIN, "device %#llx is under reset", d->id);
	rq->owner = sio_owner_find(id);
	if (op->rule == SUBJECT)
		return 0;
	if (!rq->owner)
		return sio_fail(rq, -ENOENT, "no owner %#llx", id);
	if (op->rule == HOLDS && rq->owner->o.state != SIO_STATE_LIVE)
		return sio_fail(rq, -EPERM, "owner %#llx has ended", id);
	return 0;
}

/* ---- requests ---- */

static void serve(struct sio_request *rq)
{
	const struct operation *op = NULL;
	int error = check_form(rq);

	if (!error) {
		op = &operations[rq->u.h.op];
		mutex_lock(&sio.lock);
		error = check_state(rq, op);
		if (!error)
			error = op->handler(rq, &rq->u, &rq->a);
		sio_fall();
		sio_owners_bury();
		mutex_unlock(&sio.lock);
	}
	rq->a.h.size = op ? op->answer : 0;
	if (error) {
		memset(&rq->a.error, 0, sizeof(rq->a.error));
		scnprintf(rq->a.error.text, sizeof(rq->a.error.text), "%s: %s",
			  op ? op->name : "request", rq->text[0] ? rq->text : "out of memory");
		rq->a.h.size = sizeof(rq->a.error);
		rq->a.h.error = error;
	}
	rq->a.h.op = rq->u.h.op;
	rq->a.h.cookie = rq->u.h.cookie;
	rq->a.h.owner = rq->u.h.owner;
}

/* The answer goes out whole, or not at all; then what its descriptors kept alive ends with them. */
static long hand_over(struct sio_request *rq, struct sio_ioc_packet *p, void __user *where)
{
	bool lost, keep = !rq->a.h.error;

	p->size = rq->a.h.size;
	p->n_fds = keep ? rq->n_out : 0;
	memset(p->fd, 0xff, sizeof(p->fd));
	memcpy(p->fd, rq->out_fd, p->n_fds * sizeof(p->fd[0]));
	lost = copy_to_user(u64_to_user_ptr(p->answer), &rq->a, rq->a.h.size) ||
	       copy_to_user(where, p, sizeof(*p));
	for (unsigned int i = 0; i < rq->n_out; i++) {
		if (keep && !lost) {
			fd_install(rq->out_fd[i], rq->out[i]);
			continue;
		}
		put_unused_fd(rq->out_fd[i]);
		fput(rq->out[i]);
	}
	return lost ? -EFAULT : 0;
}

static long request(void __user *where)
{
	struct sio_ioc_packet p;
	struct sio_request *rq;
	long error = -EFAULT;

	if (copy_from_user(&p, where, sizeof(p)))
		return -EFAULT;
	if (p.size < sizeof(struct sio_req) || p.size > SIO_PORT_MAX_PACKET)
		return -EMSGSIZE;
	if (p.n_fds > SIO_PORT_MAX_FDS)
		return -EINVAL;
	rq = kzalloc(sizeof(*rq), GFP_KERNEL_ACCOUNT);
	if (!rq)
		return -ENOMEM;
	rq->len = p.size;
	rq->n_files = p.n_fds;
	rq->fd = p.fd[0];
	if (copy_from_user(&rq->u, u64_to_user_ptr(p.data), min_t(u32, p.size, sizeof(rq->u))))
		goto free;
	error = -EBADF;
	if (rq->n_files)
		rq->file = fget(rq->fd);
	if (rq->n_files && !rq->file)
		goto free;
	serve(rq);
	error = hand_over(rq, &p, where);
	if (rq->file)
		fput(rq->file);
free:
	kfree(rq);
	return error;
}

/* ---- the device node ---- */

static int port_open(struct inode *inode, struct file *f)
{
	int error = 0;

	if (!capable(CAP_SYS_RAWIO))
		return -EPERM;
	mutex_lock(&sio.lock);
	if (is_open)
		error = -EBUSY;
	is_open = true;
	mutex_unlock(&sio.lock);
	return error ? error : nonseekable_open(inode, f);
}

static int port_release(struct inode *inode, struct file *f)
{
	mutex_lock(&sio.lock);
	is_open = false;
	overflow = false;
	kfifo_reset(&news);
	mutex_unlock(&sio.lock);
	return 0;
}

static long port_ioctl(struct file *f, unsigned int cmd, unsigned long arg)
{
	switch (cmd) {
	case SIO_IOC_REQUEST:
		return request((void __user *)arg);
	case SIO_IOC_PIN:
		return sio_pin(&sio.daemon, (const void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations port_fops = {
	.owner = THIS_MODULE,
	.open = port_open,
	.release = port_release,
	.read = port_read,
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
	sio_owners_bury();
	mutex_unlock(&sio.lock);
	WARN_ON(!xa_empty(&sio.objects));
	sio_devices_free();
	xa_destroy(&sio.objects);
	sio_pool_exit();
}

static int __init smartio_init(void)
{
	int error;

	sio_owner_init(&sio.daemon);
	boot_generation = ktime_get_real_seconds();
	get_random_bytes(boot_id, sizeof(boot_id));
	error = sio_pool_init();
	if (error)
		return error;
	error = pci_register_driver(&sio_pci_driver);
	if (error) {
		sio_pool_exit();
		return error;
	}
	error = misc_register(&port_device);
	if (!error)
		return 0;
	pci_unregister_driver(&sio_pci_driver);
	end_everything();
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
