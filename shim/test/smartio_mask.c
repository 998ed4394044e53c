// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests: as long as it is loaded, interrupt @irq of this host is disabled, as its driver could
 * do by disable_irq(): the kernel masks it when it comes the first time.
 */
#include <linux/interrupt.h>
#include <linux/module.h>

static unsigned int irq;
module_param(irq, uint, 0444);
MODULE_PARM_DESC(irq, "number, as in /proc/interrupts");

static int __init mask_init(void)
{
	disable_irq(irq);
	return 0;
}

static void __exit mask_exit(void)
{
	enable_irq(irq);
}

module_init(mask_init);
module_exit(mask_exit);
MODULE_DESCRIPTION("SmartIO: an interrupt is disabled, for tests");
MODULE_LICENSE("GPL");
