// SPDX-License-Identifier: GPL-2.0-only
/* Interrupts: a count with eventfd semantics, and the vectors of devices that add to it. */
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "smartio.h"

struct sio_irq {
	struct sio_obj o;
	wait_queue_head_t wait; /* its lock guards count */
	u64 count;
};

/* o.target: its interrupt; o.length: its number. */
struct sio_vector {
	struct sio_obj o;
	bool mask;
	bool cut; /* the function sends no more of it */
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

static ssize_t irq_read(struct kiocb *iocb, struct iov_iter *to)
{
	bool wait = !(iocb->ki_flags & IOCB_NOWAIT || iocb->ki_filp->f_flags & O_NONBLOCK);
	struct sio_irq *q = iocb->ki_filp->private_data;
	int error = -EAGAIN;
	u64 count;

	if (iov_iter_count(to) < sizeof(count))
		return -EINVAL;
	spin_lock_irq(&q->wait.lock);
	if (wait)
		error = wait_event_interruptible_locked_irq(q->wait, q->count);
	count = q->count;
	q->count = 0;
	spin_unlock_irq(&q->wait.lock);
	if (!count)
		return error;
	return copy_to_iter(&count, sizeof(count), to) == sizeof(count) ? sizeof(count) : -EFAULT;
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
	.read_iter = irq_read,
	.write = irq_write,
	.poll = irq_poll,
	.release = sio_file_release,
};

const struct sio_kind sio_kind_irq = {
	.name = "interrupt",
	.size = sizeof(struct sio_irq),
	.fops = &irq_fops,
};

int sio_op_irq_new(struct sio_request *rq, const void *msg, void *answer)
{
	init_waitqueue_head(&((struct sio_irq *)rq->obj)->wait);
	return 0;
}

/*
 * ---- vectors ----
 * Once one is wanted, all lines that the function has and the kernel can spare are ours: what is
 * sent by one that is nobody's is swallowed, not kept for the next.
 */

static irqreturn_t on_interrupt(int line, void *arg)
{
	struct sio_irq *q = READ_ONCE(*(struct sio_irq **)arg);

	if (q)
		add(q, 1);
	return IRQ_HANDLED;
}

/* With @mask what comes is kept, and told when it is unmasked. */
static void set(struct sio_vector *v, struct sio_obj *irq, bool mask)
{
	struct sio_dev *d = v->o.dev;
	int line = pci_irq_vector(d->pdev, v->o.length);

	if (!v->mask)
		disable_irq(line);
	if (irq)
		irq->refs++;
	if (v->o.target)
		sio_obj_unref(v->o.target);
	v->o.target = irq;
	d->told[v->o.length] = (struct sio_irq *)irq;
	if (!mask)
		enable_irq(line);
	v->mask = mask;
}

static void vector_end(struct sio_obj *o)
{
	struct sio_vector *v = (struct sio_vector *)o;

	if (!v->cut && o->target)
		set(v, NULL, false);
}

const struct sio_kind sio_kind_vector = {
	.name = "interrupt vector",
	.size = sizeof(struct sio_vector),
	.end = vector_end,
};

static struct sio_vector *find_vector(struct sio_dev *d, u64 number)
{
	struct sio_obj *o;

	list_for_each_entry(o, &d->objects, of_dev)
		if (o->kind == SIO_KIND_VECTOR && o->length == number &&
		    !((struct sio_vector *)o)->cut)
			return (struct sio_vector *)o;
	return NULL;
}

void sio_vectors_free(struct sio_dev *d)
{
	struct sio_obj *o;

	for (unsigned int i = 0; i < d->n_told; i++)
		free_irq(pci_irq_vector(d->pdev, i), &d->told[i]);
	list_for_each_entry(o, &d->objects, of_dev)
		if (o->kind == SIO_KIND_VECTOR)
			((struct sio_vector *)o)->cut = true;
	pci_free_irq_vectors(d->pdev);
	kfree(d->told);
	d->told = NULL;
	d->n_told = 0;
}

static void make_lines(struct sio_dev *d)
{
	int n = pci_alloc_irq_vectors(d->pdev, 1, d->msix_count, PCI_IRQ_MSIX);

	d->told = n > 0 ? kcalloc(n, sizeof(*d->told), GFP_KERNEL) : NULL;
	for (int i = 0; d->told && i < n; i++) {
		if (request_irq(pci_irq_vector(d->pdev, i), on_interrupt, 0, "smartio",
				&d->told[i]))
			break;
		d->n_told++;
	}
	if (!d->n_told)
		sio_vectors_free(d);
}

static int check_vector(struct sio_request *rq, const struct sio_req_vector *m,
			const struct sio_vector *old)
{
	if (m->vector >= rq->dev->msix_count)
		return sio_fail(rq, -EINVAL, "%s has %u vectors, %u is none of them",
				pci_name(rq->dev->pdev), rq->dev->msix_count, m->vector);
	if (m->mask > 1)
		return sio_fail(rq, -EINVAL, "mask %u, 0 or 1 is right", m->mask);
	if (m->irq && (m->address || m->data))
		return sio_fail(rq, -EINVAL, "name an interrupt, or address and data, not both");
	if (m->address)
		return sio_fail(rq, -EOPNOTSUPP,
				"messages to %#llx; they go to interrupts of this host",
				m->address);
	if (!m->irq && (m->data || m->mask))
		return sio_fail(rq, -EINVAL,
				"data %#x and mask %u without an interrupt, 0 is right", m->data,
				m->mask);
	if (old && m->h.owner && old->o.owner != rq->owner)
		return sio_fail(rq, -EBUSY, "vector %u belongs to owner %#llx", m->vector,
				old->o.owner->o.id);
	return 0;
}

int sio_op_vector(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_vector *m = msg;
	struct sio_vector *v = find_vector(rq->dev, m->vector);
	int error = check_vector(rq, m, v);
	struct sio_obj *irq = NULL;

	if (error)
		return error;
	if (m->irq)
		irq = sio_obj_find(rq, SIO_KIND_IRQ, m->irq, true);
	if (IS_ERR(irq))
		return PTR_ERR(irq);
	if (irq && !rq->dev->told)
		make_lines(rq->dev);
	if (irq && m->vector >= rq->dev->n_told)
		return sio_fail_exhausted(
			rq, -ENOSPC, SIO_OUT_OF_VECTORS,
			"the kernel has interrupts for %u vectors of %s, this is %u",
			rq->dev->n_told, pci_name(rq->dev->pdev), m->vector);
	if (irq && !v) {
		v = sio_obj_new(rq, SIO_KIND_VECTOR);
		if (IS_ERR(v))
			return PTR_ERR(v);
		sio_obj_tie(&v->o, rq->dev, NULL);
		v->o.length = m->vector;
	}
	if (irq)
		set(v, irq, m->mask);
	else if (v)
		sio_obj_end(&v->o);
	return 0;
}
