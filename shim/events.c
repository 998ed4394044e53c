// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events for the daemon. The queue has room for a fixed number of events and allocates nothing.
 * When it is full, events are dropped, and so are all that follow until the daemon has read that
 * some were lost (SIO_EV_OVERFLOW). Then the daemon lists all objects, and events from then on are
 * queued again.
 */
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

#include "adapter.h"

#define EVENTS 256

union event {
	struct sio_evt h;
	struct sio_evt_link link;
	struct sio_evt_fault fault;
	struct sio_evt_device_state device;
	struct sio_evt_owner_gone gone;
	struct sio_evt_overflow overflow;
	struct sio_evt_shadow_config config;
};

static union event queue[EVENTS];
static unsigned int first, count;
static bool lost; /* some that came behind those in the queue */
static DEFINE_SPINLOCK(lock);
static DECLARE_WAIT_QUEUE_HEAD(wait_queue);

bool sio_event(u32 op, void *evt, u32 size)
{
	struct sio_evt *h = evt;
	unsigned long flags;
	bool dropped;

	h->op = op;
	h->size = size;
	spin_lock_irqsave(&lock, flags);
	lost |= count == EVENTS || WARN_ON_ONCE(size > sizeof(queue[0]));
	dropped = lost;
	if (!dropped)
		memcpy(&queue[(first + count++) % EVENTS], evt, size);
	spin_unlock_irqrestore(&lock, flags);
	wake_up_interruptible(&wait_queue);
	return !dropped;
}

void sio_events_start(void)
{
	spin_lock_irq(&lock);
	count = 0;
	lost = false;
	spin_unlock_irq(&lock);
	sio_links_report_again(true);
}

/* The next one. False: there is none. */
static bool next(union event *ret)
{
	bool some;

	spin_lock_irq(&lock);
	some = count || lost;
	if (count) {
		*ret = queue[first];
		first = (first + 1) % EVENTS;
		count--;
	} else if (lost) {
		memset(&ret->overflow, 0, sizeof(ret->overflow));
		ret->h.op = SIO_EV_OVERFLOW;
		ret->h.size = sizeof(ret->overflow);
		lost = false;
	}
	spin_unlock_irq(&lock);
	return some;
}

ssize_t sio_events_read(char __user *to, size_t size)
{
	union event evt;

	if (size < sizeof(evt))
		return -EINVAL;
	if (!next(&evt))
		return -EAGAIN;
	if (!copy_to_user(to, &evt, evt.h.size)) {
		if (evt.h.op == SIO_EV_OVERFLOW)
			sio_links_report_again(false);
		return evt.h.size;
	}
	spin_lock_irq(&lock);
	lost = true;
	spin_unlock_irq(&lock);
	return -EFAULT;
}

__poll_t sio_events_poll(struct file *f, poll_table *wait)
{
	__poll_t ready;

	poll_wait(f, &wait_queue, wait);
	spin_lock_irq(&lock);
	ready = count || lost ? EPOLLIN | EPOLLRDNORM : 0;
	spin_unlock_irq(&lock);
	return ready;
}
