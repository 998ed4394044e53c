// SPDX-License-Identifier: GPL-2.0-only
/* Interrupts: a count with eventfd semantics, and the vectors of devices that add to it. */
#include <linux/interrupt.h>
#include <linux/uaccess.h>

#include "smartio.h"

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

const struct file_operations sio_irq_fops = {
	.owner = THIS_MODULE,
	.read = irq_read,
	.write = irq_write,
	.poll = irq_poll,
	.release = sio_file_release,
	.llseek = noop_llseek,
};

int sio_irq_files(struct sio_request *rq, struct sio_irq *q)
{
	int error = sio_answer_file(
		rq, sio_file_new(&q->o, "[smartio interrupt]", &sio_irq_fops, O_RDONLY, 0));

	if (error)
		return error;
	return sio_answer_file(
		rq, sio_file_new(&q->o, "[smartio trigger]", &sio_irq_fops, O_WRONLY, 0));
}

/* ---- IRQ_NEW and IRQ_FREE ---- */

int sio_op_irq_new(struct sio_request *rq, const void *msg)
{
	struct sio_irq *q = sio_obj_new(rq, SIO_KIND_IRQ, sizeof(*q));
	struct sio_evt_irq_new *evt;
	int error;

	if (!q)
		return rq->error;
	init_waitqueue_head(&q->wait);
	error = sio_irq_files(rq, q);
	if (error) {
		sio_obj_drop(&q->o);
		return error;
	}
	evt = sio_answer(rq, sizeof(*evt));
	evt->id = q->o.id;
	return 0;
}

/* ---- vectors ---- */

static irqreturn_t on_interrupt(int line, void *arg)
{
	struct sio_vector *v = arg;

	atomic64_inc(&v->dev->interrupts);
	add(v->irq, 1);
	return IRQ_HANDLED;
}

static void set_mask(struct sio_vector *v, bool mask)
{
	if (mask && !v->mask)
		disable_irq(v->line);
	else if (!mask && v->mask)
		enable_irq(v->line); /* and what came meanwhile is told */
	v->mask = mask;
}

static void set_target(struct sio_vector *v, struct sio_irq *q)
{
	disable_irq(v->line);
	sio_obj_ref(&q->o);
	sio_obj_unref(&v->irq->o);
	v->irq = q;
	enable_irq(v->line);
}

/* The function sends no more of it. */
static void cut(struct sio_vector *v)
{
	if (v->cut)
		return;
	free_irq(v->line, v);
	v->dev->vector[v->number] = NULL;
	v->cut = true;
}

void sio_vector_end(struct sio_vector *v)
{
	cut(v);
	sio_obj_unref(&v->irq->o);
	sio_obj_unref(&v->dev->opened->o);
}

void sio_vectors_free(struct sio_dev *d)
{
	if (!d->vector)
		return;
	for (unsigned int i = 0; i < d->n_vectors; i++)
		if (d->vector[i])
			cut(d->vector[i]);
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
		return sio_fail(rq, n, "the kernel has no interrupt left for %s",
				pci_name(d->pdev));
	}
	d->n_vectors = n;
	return 0;
}

static int check_vector(struct sio_request *rq, const struct sio_req_vector *m,
			struct sio_dev **ret)
{
	int error = sio_dev_get(rq, m->device, ret);
	const struct sio_vector *v;

	if (error)
		return error;
	if (m->vector >= (*ret)->msix_count)
		return sio_fail(rq, -EINVAL, "%s has %u vectors, %u is none of them",
				pci_name((*ret)->pdev), (*ret)->msix_count, m->vector);
	if (m->mask > 1)
		return sio_fail(rq, -EINVAL, "mask %u, 0 or 1 is right", m->mask);
	if (m->irq && (m->address || m->data))
		return sio_fail(rq, -EINVAL, "name an interrupt, or address and data, not both");
	if (m->address)
		return sio_fail(rq, -EOPNOTSUPP, "messages go to interrupts of this host");
	if (!m->irq && (m->data || m->mask))
		return sio_fail(rq, -EINVAL,
				"data %#x and mask %u without an interrupt, 0 is right", m->data,
				m->mask);
	error = make_vectors(rq, *ret);
	if (error)
		return error;
	if (m->vector >= (*ret)->n_vectors)
		return sio_fail(rq, -ENOSPC, "vector %u, the kernel could spare %u for %s",
				m->vector, (*ret)->n_vectors, pci_name((*ret)->pdev));
	v = (*ret)->vector[m->vector];
	if (v && m->h.owner && v->o.owner != rq->owner)
		return sio_fail(rq, -EBUSY, "vector %u of %s belongs to owner %#llx, not to %#llx",
				m->vector, pci_name((*ret)->pdev), v->o.owner->o.id, m->h.owner);
	return 0;
}

static int new_vector(struct sio_request *rq, const struct sio_req_vector *m, struct sio_dev *d,
		      struct sio_irq *q)
{
	struct sio_vector *v = sio_obj_new(rq, SIO_KIND_VECTOR, sizeof(*v));
	int error;

	if (!v)
		return rq->error;
	v->dev = d;
	v->irq = q;
	v->number = m->vector;
	v->line = pci_irq_vector(d->pdev, m->vector);
	error = request_irq(v->line, on_interrupt, 0, "smartio", v);
	if (error) {
		sio_obj_drop(&v->o);
		return sio_fail(rq, error, "the kernel refuses interrupt %d", v->line);
	}
	d->vector[m->vector] = v;
	sio_obj_ref(&q->o);
	sio_obj_ref(&d->opened->o);
	set_mask(v, m->mask);
	return 0;
}

int sio_op_vector(struct sio_request *rq, const void *msg)
{
	const struct sio_req_vector *m = msg;
	struct sio_irq *q = NULL;
	struct sio_vector *old;
	struct sio_dev *d;
	int error = check_vector(rq, m, &d);

	if (error)
		return error;
	if (m->irq)
		q = sio_obj_find_live(rq, SIO_KIND_IRQ, m->irq);
	if (m->irq && !q)
		return rq->error;
	old = d->vector[m->vector];
	if (!old)
		return q ? new_vector(rq, m, d, q) : 0;
	if (!q) {
		sio_obj_end(&old->o);
		return 0;
	}
	set_target(old, q);
	set_mask(old, m->mask);
	return 0;
}
