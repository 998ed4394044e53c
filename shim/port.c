// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/smartio0: requests and their answers, and the module's init and exit. Every request is
 * checked here against the table of operations before its handler is called. A refusal gives its
 * reason as a text, and says which resource ran out.
 */
#include <linux/file.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "adapter.h"

struct sio_state sio = {
	.lock = __MUTEX_INITIALIZER(sio.lock),
	.objects = XARRAY_INIT(sio.objects, 0),
	.falling = LIST_HEAD_INIT(sio.falling),
	.devices = LIST_HEAD_INIT(sio.devices),
	.last_id = SIO_FIRST_ID,
	.daemon = {.o = {.state = SIO_STATE_LIVE, .refs = 1},
		   .objects = LIST_HEAD_INIT(sio.daemon.objects)},
};

static u64 boot_generation;
static u8 boot_id[16];

static bool is_open;

/* ---- refusals ---- */

static void refuse(struct sio_request *rq, u32 reason, const char *fmt, va_list ap)
{
	rq->reason = reason;
	vsnprintf(rq->text, sizeof(rq->text), fmt, ap);
}

int sio_fail(struct sio_request *rq, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	refuse(rq, SIO_OUT_OF_NOTHING, fmt, ap);
	va_end(ap);
	return error;
}

int sio_fail_exhausted(struct sio_request *rq, int error, u32 reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	refuse(rq, reason, fmt, ap);
	va_end(ap);
	return error;
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

/* ---- operations ---- */

/* How the device that a request's first field names must be; never under reset. */
enum device_rule {
	NO_DEVICE,
	ANY,   /* there, or not */
	BOUND, /* there */
	OPEN,
};

struct operation {
	const char *name;
	sio_handler *handler; /* NULL: not served */
	u32 size, answer;     /* of the request and of its answer */
	u32 flags;	      /* allowed */
	u32 reserved;	      /* offset of a further reserved 32-bit field; 0: none */
	u32 files;	      /* that may come along */
	u32 makes, ends;      /* SIO_KIND_* */
	bool holds;	      /* h.owner lives: it is to own something */
	bool gives_back;      /* it is served although there is no memory */
	enum device_rule device;
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
	   .flags = SIO_OWNER_CHILD, .holds = true, .makes = SIO_KIND_OWNER),
	OP(OWNER_CLOSE, sio_op_owner_close, owner_close, ok, .holds = true, .gives_back = true),
	OP(LIST, sio_op_list, list, list, RESERVED(list)),
	OP(ADAPTER, sio_op_adapter, adapter, adapter, RESERVED(adapter)),
	OP(ALLOC, sio_op_alloc, alloc, alloc, .flags = SIO_ALLOC_PART, .holds = true,
	   .makes = SIO_KIND_MEM),
	OP(FREE, sio_op_end, free, ok, .ends = SIO_KIND_MEM,
	   .gives_back = true),
	OP(GIVE, sio_op_give, give, ok),
	OP(HOLD, sio_op_hold, hold, ok),
	OP(IMPORT, sio_op_import, import, import,
	   .flags = SIO_IMPORT_POOL | SIO_IMPORT_ALL_RAM, .holds = true, .makes = SIO_KIND_MEM,
	   .files = 1),
	OP(APERTURE, sio_op_aperture, aperture, aperture, RESERVED(aperture), .holds = true,
	   .makes = SIO_KIND_MEM),
	OP(GRANT, sio_op_grant, grant, grant, RESERVED(grant), .holds = true,
	   .makes = SIO_KIND_GRANT),
	OP(UNGRANT, sio_op_ungrant, ungrant, ok, .flags = SIO_UNGRANT_KEEP_ADDRESS,
	   .ends = SIO_KIND_GRANT, .gives_back = true),
	OP(MAP, sio_op_map, map, map, .flags = SIO_MAP_DOORBELLS | SIO_MAP_BAR, .holds = true,
	   .makes = SIO_KIND_MAP),
	OP(UNMAP, sio_op_unmap, unmap, ok, .ends = SIO_KIND_MAP, .gives_back = true),
	OP(MCAST, sio_op_mcast, mcast, mcast, RESERVED(mcast), .holds = true),
	OP(STATS, sio_op_stats, stats, stats, RESERVED(stats)),
	OP(REQUESTER_ADD, sio_op_requester_add, requester_add, requester_add,
	   RESERVED(requester_add), .holds = true, .makes = SIO_KIND_REQUESTER),
	OP(REQUESTER_DEL, sio_op_end, requester_del, ok, .ends = SIO_KIND_REQUESTER,
	   .gives_back = true),
	OP(DEVICE_LIST, sio_op_device_list, device_list, device),
	OP(DEVICE_OPEN, sio_op_device_open, device_open, device, .flags = SIO_DEVICE_FORCE,
	   .holds = true, .device = BOUND),
	OP(DEVICE_CLOSE, sio_op_device_close, device_close, ok, .device = ANY,
	   .gives_back = true),
	OP(CONFIG, sio_op_config, config, config, RESERVED(config), .flags = SIO_CONFIG_WRITE,
	   .device = OPEN),
	OP(RESET, sio_op_reset, reset, reset, RESERVED(reset), .flags = SIO_RESET_KEEP_DOORBELLS,
	   .device = OPEN),
	OP(BAR, sio_op_bar, bar, bar, RESERVED(bar), .holds = true, .makes = SIO_KIND_BAR,
	   .device = OPEN),
	OP(BAR_CLOSE, sio_op_end, bar_close, ok, .ends = SIO_KIND_BAR,
	   .gives_back = true),
	OP(DMAMAP, sio_op_dmamap, dmamap, dmamap, .flags = SIO_DMAMAP_STRICT, .holds = true,
	   .makes = SIO_KIND_DMAMAP, .device = OPEN),
	OP(DMAUNMAP, sio_op_dmaunmap, dmaunmap, ok, .ends = SIO_KIND_DMAMAP,
	   .flags = SIO_DMAUNMAP_SETTLED | SIO_DMAUNMAP_KEEP_ADDRESS, .gives_back = true),
	OP(IRQ_NEW, sio_op_irq_new, irq_new, irq_new, .flags = SIO_IRQ_EVENTFD, .holds = true,
	   .makes = SIO_KIND_IRQ, .files = 1),
	OP(IRQ_FREE, sio_op_end, irq_free, ok, .ends = SIO_KIND_IRQ,
	   .gives_back = true),
	OP(DMA, sio_op_dma, dma, dma, RESERVED(dma), .holds = true, .makes = SIO_KIND_DMA),
	OP(DMA_FREE, sio_op_end, dma_free, ok, .ends = SIO_KIND_DMA, .gives_back = true),
	OP(DMA_ATTACH, sio_op_dma_attach, dma_attach, dma_attach, .holds = true,
	   .makes = SIO_KIND_DMA_RANGE),
	OP(DMA_DETACH, sio_op_end, dma_detach, ok, .ends = SIO_KIND_DMA_RANGE,
	   .gives_back = true),
	OP(VECTOR, sio_op_vector, vector, ok, RESERVED(vector), .holds = true, .device = OPEN),
	OP(STATUS, sio_op_status, status, status),
	OP(REOPEN, sio_op_reopen, reopen, reopen, RESERVED(reopen)),
	OP(SHADOW, sio_op_shadow, shadow, shadow, .flags = SIO_SHADOW_PEERS, .holds = true,
	   .makes = SIO_KIND_SHADOW),
	OP(SHADOW_DEL, sio_op_shadow_del, shadow_del, ok, .flags = SIO_SHADOW_LOST),
	OP(SHADOW_ANSWER, sio_op_shadow_answer, shadow_answer, ok, .gives_back = true),
	OP(SHADOW_PEER, sio_op_shadow_peer, shadow_peer, ok, RESERVED(shadow_peer)),
};
/* clang-format on */

static int op_info(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_info *m = msg;
	struct sio_evt_info *evt = answer;

	if (m->version_min > SIO_PORT_VERSION || m->version_max < SIO_PORT_VERSION)
		return sio_fail(rq, -EPROTO, "versions %u to %u, smartio.ko speaks %d",
				m->version_min, m->version_max, SIO_PORT_VERSION);
	evt->version = SIO_PORT_VERSION;
	evt->world = SIO_WORLD_SHIM;
	evt->page_size = PAGE_SIZE;
	evt->adapters = sio_adapters_count();
	/* As peers see it, where there are some. */
	evt->boot_generation = evt->adapters ? sio_adapters_boot() : boot_generation;
	memcpy(evt->boot_id, boot_id, sizeof(evt->boot_id));
	return 0;
}

/* ---- requests ---- */

/* What the form of every request of @op is. */
static int check_form(struct sio_request *rq, const struct operation *op)
{
	const struct sio_req *h = &rq->u.h;
	u32 reserved = 0;

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

/* The device that it names. */
static int check_device(struct sio_request *rq, const struct operation *op)
{
	u64 id = ((const struct sio_req_reset *)&rq->u)->device;
	struct sio_dev *d = sio_dev_find(id);

	if (d && d->resetting)
		return sio_fail(rq, -EAGAIN, "%s is being reset", pci_name(d->pdev));
	if (!d && op->device >= BOUND)
		return sio_fail(rq, -ENODEV, "no device %#llx is here", id);
	if (op->device == OPEN && !d->open)
		return sio_fail(rq, -EPERM, "%s is not open; DEVICE_OPEN first", pci_name(d->pdev));
	rq->dev = d;
	return 0;
}

static int check(struct sio_request *rq, const struct operation *op)
{
	u64 owner = rq->u.h.owner;
	int error = check_form(rq, op);

	if (!error && op->device)
		error = check_device(rq, op);
	if (error)
		return error;
	rq->ends = op->ends;
	rq->owner = sio_owner_find(owner);
	if (!rq->owner)
		return sio_fail(rq, -ENOENT, "no owner %#llx", owner);
	if (op->holds && rq->owner->o.state != SIO_STATE_LIVE)
		return sio_fail(rq, -EPERM, "owner %#llx has ended", owner);
	return 0;
}

/* With sio.lock. */
static int run(struct sio_request *rq, const struct operation *op)
{
	int error = check(rq, op);

	rq->a.h.size = op->answer;
	if (error)
		return error;
	if (op->makes)
		rq->obj = sio_obj_new(rq, op->makes);
	if (IS_ERR(rq->obj))
		return PTR_ERR(rq->obj);
	error = op->handler(rq, &rq->u, &rq->a);
	return op->makes ? sio_obj_made(rq, error) : error;
}

/* What failed in the kernel and not with us has no words yet. */
static void explain(struct sio_request *rq, int error)
{
	if (error == -ENOMEM)
		sio_fail_exhausted(rq, error, SIO_OUT_OF_MEMORY, "the kernel has no memory left");
	else if (error == -EMFILE)
		sio_fail_exhausted(rq, error, SIO_OUT_OF_DESCRIPTORS,
				   "no file descriptor is left of %lu (ulimit -n)",
				   rlimit(RLIMIT_NOFILE));
	else
		sio_fail(rq, error, "the kernel says %pe", ERR_PTR(error));
}

static void refused(struct sio_request *rq, int error, const char *name)
{
	if (!rq->text[0])
		explain(rq, error);
	memset(&rq->a.error, 0, sizeof(rq->a.error));
	rq->a.h.size = sizeof(rq->a.error);
	rq->a.h.reason = rq->reason;
	rq->a.h.error = error;
	snprintf(rq->a.error.text, sizeof(rq->a.error.text), "%s: %s", name, rq->text);
}

static const struct operation *find_operation(u32 op)
{
	return op < SIO_OP_COUNT && operations[op].handler ? &operations[op] : NULL;
}

static void serve(struct sio_request *rq)
{
	const struct operation *op = find_operation(rq->u.h.op);
	int error = -EOPNOTSUPP;
	u64 unsettled;

	if (op) {
		mutex_lock(&sio.lock);
		unsettled = sio.unsettled;
		error = run(rq, op);
		sio_fall();
		rq->unsettled = sio.unsettled != unsettled;
		mutex_unlock(&sio.lock);
	} else {
		sio_fail(rq, error, "operation %u is not served by smartio.ko", rq->u.h.op);
	}
	if (error)
		refused(rq, error, op ? op->name : "request");
	rq->a.h.op = rq->u.h.op;
	rq->a.h.cookie = rq->u.h.cookie;
	rq->a.h.owner = rq->u.h.owner;
}

/* The answer goes out whole, or not at all; then what its descriptors kept alive ends with them. */
static long hand_over(struct sio_request *rq, struct sio_ioc_packet *p, void __user *where)
{
	bool lost, good = !rq->a.h.error;

	p->size = rq->a.h.size;
	p->unsettled = rq->unsettled;
	p->reserved2 = 0;
	p->n_fds = good ? rq->n_out : 0;
	memset(p->fd, 0xff, sizeof(p->fd));
	memcpy(p->fd, rq->out_fd, p->n_fds * sizeof(p->fd[0]));
	lost = copy_to_user(u64_to_user_ptr(p->answer), &rq->a, rq->a.h.size) ||
	       copy_to_user(where, p, sizeof(*p));
	for (unsigned int i = 0; i < rq->n_out; i++) {
		if (good && !lost) {
			fd_install(rq->out_fd[i], rq->out[i]);
			continue;
		}
		put_unused_fd(rq->out_fd[i]);
		fput(rq->out[i]);
	}
	return lost ? -EFAULT : 0;
}

/* For requests that give something back while there is no memory: one after the other. */
static struct sio_request spare;
static DEFINE_MUTEX(spare_lock);

static struct sio_request *request_new(const struct sio_ioc_packet *p)
{
	struct sio_request *rq = kzalloc(sizeof(*rq), GFP_KERNEL_ACCOUNT);
	const struct operation *op;
	struct sio_req h;

	if (rq || copy_from_user(&h, u64_to_user_ptr(p->data), sizeof(h)))
		return rq;
	op = find_operation(h.op);
	if (!op || !op->gives_back)
		return NULL;
	mutex_lock(&spare_lock);
	memset(&spare, 0, sizeof(spare));
	return &spare;
}

static void request_free(struct sio_request *rq)
{
	if (rq->file)
		fput(rq->file);
	if (rq == &spare)
		mutex_unlock(&spare_lock);
	else
		kfree(rq);
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
	rq = request_new(&p);
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
free:
	request_free(rq);
	return error;
}

/* ---- the device node ---- */

static int port_open(struct inode *inode, struct file *f)
{
	if (!capable(CAP_SYS_RAWIO))
		return -EPERM;
	if (xchg(&is_open, true))
		return -EBUSY;
	sio_events_start();
	sio_asks_hear(true);
	return nonseekable_open(inode, f);
}

static int port_release(struct inode *inode, struct file *f)
{
	sio_asks_hear(false);
	xchg(&is_open, false);
	return 0;
}

static ssize_t port_read(struct file *f, char __user *to, size_t size, loff_t *pos)
{
	return sio_events_read(to, size);
}

static long port_ioctl(struct file *f, unsigned int cmd, unsigned long arg)
{
	if (cmd == SIO_IOC_PIN)
		return sio_pin(&sio.daemon, (const void __user *)arg);
	if (cmd == SIO_IOC_SETTLE)
		return sio_settle();
	return cmd == SIO_IOC_REQUEST ? request((void __user *)arg) : -ENOTTY;
}

static const struct file_operations port_fops = {
	.owner = THIS_MODULE,
	.open = port_open,
	.release = port_release,
	.read = port_read,
	.unlocked_ioctl = port_ioctl,
	.poll = sio_events_poll,
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
	struct sio_dev *d, *tmp;

	mutex_lock(&sio.lock);
	sio_owner_end(&sio.daemon);
	mutex_unlock(&sio.lock);
	WARN_ON(!xa_empty(&sio.objects));
	list_for_each_entry_safe(d, tmp, &sio.devices, node)
		kfree(d);
	sio_dmabufs_exit();
	sio_links_free(); /* its work asks the adapters */
	sio_adapters_free();
	xa_destroy(&sio.objects);
	sio_pool_exit();
	sio_engine_exit();
}

static int __init smartio_init(void)
{
	int error;

	BUILD_BUG_ON(BITS_PER_LONG != 64); /* ids index tables */
	boot_generation = ktime_get_real_seconds();
	get_random_bytes(boot_id, sizeof(boot_id));
	error = sio_links_init();
	if (!error)
		error = sio_engine_init();
	if (!error)
		error = sio_pool_init();
	if (!error)
		error = pci_register_driver(&sio_pci_driver);
	if (!error) {
		error = misc_register(&port_device);
		if (error)
			pci_unregister_driver(&sio_pci_driver);
	}
	if (error)
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
MODULE_VERSION("0.1.0"); /* as meson.build: smartio doctor compares */
