// SPDX-License-Identifier: GPL-2.0-only
/* Interrupts: a count with eventfd semantics, and the vectors of devices that add to it. */
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "smartio.h"

struct sio_irq {
	struct sio_obj o;
	wait_queue_head_t wait; /* its lock guards count */
	u64 count;
};

/* o.target: its interrupt; o.length: its number. */
struct sio_vector {
	struct sio_obj o;
	int line; /* 0: the function sends no more of it */
	bool mask;
	struct completion *old; /* the first message is of before, and told to nobody */
};

static void add(struct sio_irq *q, u64 n)
{
	unsigned long flags;

	spin_lock_irqsave(&q->wait.lock, flags);
	q->count = n < U64_MAX - q->count ? q->count + n : U64_MAX - 1;
	wake_up_locked_poll(&q->wait, EPOLLIN);
	spin_unlock_irqrestore(&q->wait.lock, flags);
}

/* ---- files ---- */

static ssize_t irq_read(struct file *f, char __user *to, size_t size, loff_t *pos)
{
	struct sio_irq *q = f->private_data;
	int error = 0;
	u64 count;

	if (size < sizeof(count))
		return -EINVAL;
	spin_lock_irq(&q->wait.lock);
	if (!q->count && f->f_flags & O_NONBLOCK)
		error = -EAGAIN;
	else if (!q->count)
		error = wait_event_interruptible_locked_irq(q->wait, q->count);
	count = q->count;
	if (!error)
		q->count = 0;
	spin_unlock_irq(&q->wait.lock);
	if (error)
		return error;
	return copy_to_user(to, &count, sizeof(count)) ? -EFAULT : sizeof(count);
}

static ssize_t irq_write(struct file *f, const char __user *from, size_t size, loff_t *pos)
{
	u64 n;

	if (size < sizeof(n))
		return -EINVAL;
	if (copy_from_user(&n, from, sizeof(n)))
		return -EFAULT;
	if (n == U64_MAX)
		return -EINVAL;
	add(f->private_data, n);
	return sizeof(n);
}

static __poll_t irq_poll(struct file *f, poll_table *wait)
{
	struct sio_irq *q = f->private_data;
	__poll_t ready = f->f_mode & FMODE_WRITE ? EPOLLOUT | EPOLLWRNORM : 0;

	poll_wait(f, &q->wait, wait);
	if (f->f_mode & FMODE_READ && READ_ONCE(q->count))
		ready |= EPOLLIN | EPOLLRDNORM;
	return ready;
}

static const struct file_operations irq_fops = {
	.owner = THIS_MODULE,
	.read = irq_read,
	.write = irq_write,
	.poll = irq_poll,
	.release = sio_file_release,
	.llseek = noop_llseek,
};

const struct sio_kind sio_kind_irq = {
	.name = "interrupt",
	.size = sizeof(struct sio_irq),
	.fops = &irq_fops,
};

int sio_op_irq_new(struct sio_request *rq, const void *msg, void *answer)
{
	struct sio_irq *q = sio_obj_new(rq, SIO_KIND_IRQ, 0);
	struct sio_evt_irq_new *evt = answer;

	if (IS_ERR(q))
		return PTR_ERR(q);
	init_waitqueue_head(&q->wait);
	evt->id = q->o.id;
	return sio_obj_made(rq, &q->o, 0);
}

/* ---- vectors ---- */

static irqreturn_t on_interrupt(int line, void *arg)
{
	struct sio_vector *v = arg;
	struct completion *old = xchg(&v->old, NULL);

	if (old) {
		complete(old);
		return IRQ_HANDLED;
	}
	atomic64_inc(&v->o.dev->interrupts);
	add((struct sio_irq *)v->o.target, 1);
	return IRQ_HANDLED;
}

/* With @mask what comes is kept, and told when it is unmasked. */
static void set(struct sio_vector *v, struct sio_obj *irq, bool mask)
{
	if (!v->mask)
		disable_irq(v->line);
	if (irq != v->o.target) {
		sio_obj_ref(irq);
		sio_obj_unref(v->o.target);
		v->o.target = irq;
	}
	if (!mask)
		enable_irq(v->line);
	v->mask = mask;
}

static void vector_end(struct sio_obj *o)
{
	struct sio_vector *v = (struct sio_vector *)o;

	if (!v->line)
		return;
	free_irq(v->line, v);
	v->line = 0;
	o->dev->vector[o->length] = NULL;
}

const struct sio_kind sio_kind_vector = {
	.name = "interrupt vector",
	.size = sizeof(struct sio_vector),
	.end = vector_end,
};

void sio_vectors_free(struct sio_dev *d)
{
	if (!d->vector)
		return;
	for (unsigned int i = 0; i < d->n_vectors; i++)
		if (d->vector[i])
			vector_end(&d->vector[i]->o);
	pci_free_irq_vectors(d->pdev);
	kfree(d->vector);
	d->vector = NULL;
	d->n_vectors = 0;
}

/* All that the function has and the kernel can spare, once one is wanted. */
static int make_vectors(struct sio_request *rq, struct sio_dev *d)
{
	int n;

	if (d->vector)
		return 0;
	d->vector = kcalloc(d->msix_count, sizeof(*d->vector), GFP_KERNEL);
	if (!d->vector)
		return -ENOMEM;
	n = pci_alloc_irq_vectors(d->pdev, 1, d->msix_count, PCI_IRQ_MSIX);
	if (n < 0) {
		kfree(d->vector);
		d->vector = NULL;
		return sio_fail(rq, n, "the kernel has no interrupt left");
	}
	d->n_vectors = n;
	return 0;
}

static int check_vector(struct sio_request *rq, const struct sio_req_vector *m, struct sio_dev *d)
{
	const struct sio_vector *v;
	int error;

	if (m->vector >= d->msix_count)
		return sio_fail(rq, -EINVAL, "vector %u, it has %u vectors", m->vector,
				d->msix_count);
	error = sio_check(rq, "mask", m->mask, 0, 1);
	if (error)
		return error;
	if (m->irq && (m->address || m->data))
		return sio_fail(rq, -EINVAL, "name an interrupt, or address and data, not both");
	if (m->address)
		return sio_fail(rq, -EOPNOTSUPP, "messages go to interrupts of this host");
	if (!m->irq && (m->data || m->mask))
		return sio_fail(rq, -EINVAL, "data or mask without an interrupt");
	error = make_vectors(rq, d);
	if (error)
		return error;
	if (m->vector >= d->n_vectors)
		return sio_fail(rq, -ENOSPC, "vector %u, the kernel could spare %u", m->vector,
				d->n_vectors);
	v = d->vector[m->vector];
	if (v && m->h.owner && v->o.owner != rq->owner)
		return sio_fail(rq, -EBUSY, "vector %u belongs to owner %#llx", m->vector,
				v->o.owner->o.id);
	return 0;
}

/* Something was sent while the vector was masked; it will come when it is not. */
static bool is_pending(struct pci_dev *pdev, unsigned int number)
{
	void __iomem *bits;
	bool pending;
	u32 where;

	pci_read_config_dword(pdev, pdev->msix_cap + PCI_MSIX_PBA, &where);
	bits = ioremap(pci_resource_start(pdev, where & PCI_MSIX_PBA_BIR) +
			       (where & PCI_MSIX_PBA_OFFSET) + number / 32 * 4,
		       4);
	if (!bits)
		return false;
	pending = readl(bits) >> number % 32 & 1;
	iounmap(bits);
	return pending;
}

/* What came while the vector was nobody's is swallowed: its interrupt is told of what comes from now on. */
static int request_line(struct sio_vector *v, struct pci_dev *pdev, int line)
{
	bool pending = is_pending(pdev, v->o.length);
	DECLARE_COMPLETION_ONSTACK(old);
	int error;

	v->old = pending ? &old : NULL;
	error = request_irq(line, on_interrupt, 0, "smartio", v);
	if (!error && pending && !wait_for_completion_timeout(&old, HZ / 10) &&
	    !xchg(&v->old, NULL))
		wait_for_completion(&old); /* the handler has it in its hands */
	return error;
}

static int new_vector(struct sio_request *rq, const struct sio_req_vector *m, struct sio_dev *d,
		      struct sio_obj *irq)
{
	struct sio_vector *v = sio_obj_new(rq, SIO_KIND_VECTOR, 0);
	int line = pci_irq_vector(d->pdev, m->vector), error;

	if (IS_ERR(v))
		return PTR_ERR(v);
	sio_obj_tie(&v->o, d, irq);
	v->o.length = m->vector;
	error = request_line(v, d->pdev, line);
	if (error) {
		sio_fail(rq, error, "the kernel refuses interrupt %d", line);
		return sio_obj_made(rq, &v->o, error);
	}
	v->line = line;
	d->vector[m->vector] = v;
	if (m->mask)
		set(v, irq, true);
	return 0;
}

int sio_op_vector(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_vector *m = msg;
	struct sio_obj *irq = NULL;
	struct sio_vector *old;
	struct sio_dev *d;
	int error = sio_dev_get(rq, m->device, &d);

	if (!error)
		error = check_vector(rq, m, d);
	if (error)
		return error;
	if (m->irq)
		irq = sio_obj_find_live(rq, SIO_KIND_IRQ, m->irq);
	if (IS_ERR(irq))
		return PTR_ERR(irq);
	old = d->vector[m->vector];
	if (old && irq)
		set(old, irq, m->mask);
	else if (old)
		sio_obj_end(&old->o);
	else if (irq)
		return new_vector(rq, m, d, irq);
	return 0;
}
