// SPDX-License-Identifier: GPL-2.0-only
/* A count that programs wait for, with the semantics of an eventfd. */
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "smartio.h"

void sio_count_init(struct sio_count *c)
{
	init_waitqueue_head(&c->wait);
}

void sio_count_add(struct sio_count *c, u64 n)
{
	unsigned long flags;

	spin_lock_irqsave(&c->wait.lock, flags);
	c->n = n < U64_MAX - c->n ? c->n + n : U64_MAX - 1;
	wake_up_locked_poll(&c->wait, EPOLLIN);
	spin_unlock_irqrestore(&c->wait.lock, flags);
}

ssize_t sio_count_read(struct sio_count *c, struct kiocb *iocb, struct iov_iter *to)
{
	bool wait = !(iocb->ki_flags & IOCB_NOWAIT || iocb->ki_filp->f_flags & O_NONBLOCK);
	int error = -EAGAIN;
	u64 n;

	if (iov_iter_count(to) < sizeof(n))
		return -EINVAL;
	spin_lock_irq(&c->wait.lock);
	if (wait)
		error = wait_event_interruptible_locked_irq(c->wait, c->n);
	n = c->n;
	c->n = 0;
	spin_unlock_irq(&c->wait.lock);
	if (!n)
		return error;
	return copy_to_iter(&n, sizeof(n), to) == sizeof(n) ? sizeof(n) : -EFAULT;
}

int sio_count_get(const char __user *from, size_t size, u64 *ret)
{
	if (size < sizeof(*ret))
		return -EINVAL;
	if (copy_from_user(ret, from, sizeof(*ret)))
		return -EFAULT;
	return *ret == U64_MAX ? -EINVAL : 0;
}

__poll_t sio_count_poll(struct sio_count *c, struct file *f, poll_table *wait)
{
	__poll_t ready = f->f_mode & FMODE_WRITE ? EPOLLOUT | EPOLLWRNORM : 0;

	poll_wait(f, &c->wait, wait);
	if (f->f_mode & FMODE_READ && READ_ONCE(c->n))
		ready |= EPOLLIN | EPOLLRDNORM;
	return ready;
}
