// SPDX-License-Identifier: GPL-2.0-only
/* Interrupts: a count with eventfd semantics, and the addresses by which peers add to it. */
#include <linux/eventfd.h>
#include <linux/file.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/module.h>

#include "adapter.h"
#include "use.h"

struct sio_irq {
	struct sio_obj o;
	struct sio_count count;
	struct sio_shadow *shadow; /* whose driver it is for; NULL: it is counted */
	unsigned int vector;	   /* of that */
	struct eventfd_ctx
		*event; /* the program's, which is triggered instead; NULL: it is counted */
};

int sio_irq_chain(struct sio_irq *q, struct sio_shadow *s, unsigned int vector)
{
	if (q->shadow)
		return -EBUSY;
	q->vector = vector;
	smp_store_release(&q->shadow, s); /* with the vector: pairs with goes_to_shadow() */
	return 0;
}

void sio_irq_unchain(struct sio_irq *q, const struct sio_shadow *s)
{
	if (q->shadow == s)
		WRITE_ONCE(q->shadow, NULL);
}

static bool goes_to_shadow(struct sio_irq *q)
{
	struct sio_shadow *s;

	rcu_read_lock();
	s = smp_load_acquire(&q->shadow); /* pairs with sio_irq_chain() */
	if (s)
		sio_shadow_interrupt(s, q->vector);
	rcu_read_unlock();
	return s;
}

static void signal_event(struct eventfd_ctx *event)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
	eventfd_signal(event, 1);
#else
	eventfd_signal(event);
#endif
}

void sio_irq_add(struct sio_irq *q, u64 n)
{
	if (goes_to_shadow(q))
		return;
	if (q->event)
		signal_event(q->event);
	else
		sio_count_add(&q->count, n);
}

/* ---- files ---- */

static ssize_t irq_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct sio_irq *q = iocb->ki_filp->private_data;

	return sio_count_read(&q->count, iocb, to);
}

static ssize_t irq_write(struct file *f, const char __user *from, size_t size, loff_t *pos)
{
	u64 n;
	int error = sio_count_get(from, size, &n);

	if (error)
		return error;
	sio_irq_add(f->private_data, n);
	return sizeof(n);
}

static __poll_t irq_poll(struct file *f, poll_table *wait)
{
	struct sio_irq *q = f->private_data;

	return sio_count_poll(&q->count, f, wait);
}

static const struct file_operations irq_fops = {
	.owner = THIS_MODULE,
	.read_iter = irq_read,
	.write = irq_write,
	.poll = irq_poll,
	.release = sio_file_release,
};

static void irq_free(struct sio_obj *o)
{
	struct sio_irq *q = (struct sio_irq *)o;

	if (q->event)
		eventfd_ctx_put(q->event);
}

const struct sio_kind sio_kind_irq = {
	.name = "interrupt",
	.size = sizeof(struct sio_irq),
	.free = irq_free,
	.fops = &irq_fops,
};

int sio_op_irq_new(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_irq_new *m = msg;
	struct sio_irq *q = (struct sio_irq *)rq->obj;
	struct eventfd_ctx *event;

	sio_count_init(&q->count);
	if (!(m->h.flags & SIO_IRQ_EVENTFD))
		return 0;
	event = rq->file ? eventfd_ctx_fileget(rq->file) : ERR_PTR(-EINVAL);
	if (IS_ERR(event))
		return sio_fail(rq, -EINVAL, "no eventfd came along");
	q->event = event;
	return 0;
}

/* ---- other modules ---- */

struct smartio_listener {
	wait_queue_entry_t wait;
	struct file *file;
	void (*heard)(void *arg);
	void *arg;
};

/* With the lock of what it waits for. */
static int on_wake(wait_queue_entry_t *wait, unsigned int mode, int flags, void *key)
{
	struct smartio_listener *l = container_of(wait, struct smartio_listener, wait);

	l->heard(l->arg);
	return 0;
}

struct smartio_listener *smartio_listen(int fd, void (*heard)(void *arg), void *arg)
{
	struct smartio_listener *l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);
	int error = -EBADF;
	struct sio_irq *q;

	if (!l)
		return ERR_PTR(-ENOMEM);
	l->file = fget(fd);
	if (!l->file)
		goto free;
	error = -EINVAL;
	if (l->file->f_op != &irq_fops || !(l->file->f_mode & FMODE_READ))
		goto put;
	l->heard = heard;
	l->arg = arg;
	q = l->file->private_data;
	init_waitqueue_func_entry(&l->wait, on_wake);
	add_wait_queue(&q->count.wait, &l->wait);
	return l;
put:
	fput(l->file);
free:
	kfree(l);
	return ERR_PTR(error);
}
EXPORT_SYMBOL_GPL(smartio_listen);

void smartio_unlisten(struct smartio_listener *l)
{
	if (!l)
		return;
	remove_wait_queue(&((struct sio_irq *)l->file->private_data)->count.wait, &l->wait);
	fput(l->file);
	kfree(l);
}
EXPORT_SYMBOL_GPL(smartio_unlisten);

/* ---- lines of peers ---- */

static irqreturn_t on_message(int number, void *arg)
{
	sio_irq_add(((struct sio_line *)arg)->irq, 1);
	return IRQ_HANDLED;
}

static struct sio_line *find_line(const struct smartio_adapter *a, const struct sio_irq *irq)
{
	struct sio_line *l;

	list_for_each_entry(l, &a->lines, of_adapter)
		if (l->irq == irq)
			return l;
	return NULL;
}

static void on_bell(void *arg)
{
	sio_irq_add(((struct sio_line *)arg)->irq, 1);
}

/* Peers know the message: the kernel must not choose another processor for it. */
static int line_start(struct smartio_adapter *a, struct sio_line *l)
{
	int error;

	if (a->ops->bell_get) {
		l->number = a->ops->bell_get(a->bridge, on_bell, l, &l->address, &l->data);
		return l->number < 0 ? l->number : 0;
	}
	l->number = a->ops->vector_get(a->bridge);
	if (l->number < 0)
		return l->number;
	error = request_irq(l->number, on_message, 0, "smartio peers", l);
	if (error) {
		a->ops->vector_put(a->bridge, l->number);
		return error;
	}
	irq_set_status_flags(l->number, IRQ_NO_BALANCING);
	a->ops->vector_message(a->bridge, l->number, &l->address, &l->data);
	return 0;
}

struct sio_line *sio_line_get(struct smartio_adapter *a, struct sio_irq *irq)
{
	struct sio_line *l = find_line(a, irq);
	int error;

	if (l) {
		l->users++;
		return l;
	}
	l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);
	if (!l)
		return ERR_PTR(-ENOMEM);
	l->irq = irq;
	l->users = 1;
	error = line_start(a, l);
	if (error) {
		kfree(l);
		return ERR_PTR(error);
	}
	list_add_tail(&l->of_adapter, &a->lines);
	return l;
}

static long do_nothing(void *arg)
{
	return 0;
}

/*
 * A message that came before has been handled: work runs with interrupts on, so what was pending on
 * that processor has been taken. free_irq() waits for handlers that have begun alone.
 */
static void line_drain(const struct sio_line *l)
{
	struct irq_data *data = irq_get_irq_data(l->number);
	unsigned int cpu = cpumask_first(irq_data_get_effective_affinity_mask(data));

	if (cpu < nr_cpu_ids)
		work_on_cpu_safe(cpu, do_nothing, NULL);
}

void sio_line_put(struct smartio_adapter *a, struct sio_line *l)
{
	if (--l->users)
		return;
	list_del(&l->of_adapter);
	if (a->ops->bell_put) {
		a->ops->bell_put(a->bridge, l->number);
		kfree(l);
		return;
	}
	line_drain(l);
	irq_clear_status_flags(l->number, IRQ_NO_BALANCING);
	free_irq(l->number, l);
	a->ops->vector_put(a->bridge, l->number);
	kfree(l);
}
