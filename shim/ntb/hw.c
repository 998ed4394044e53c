// SPDX-License-Identifier: GPL-2.0-only
/* The virtual NTB's PCI function: registers, tables, vectors (docs/virtual-ntb.md). */
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/iopoll.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "vntb.h"

/* ---- tables ---- */

u32 vntb_peer_state(const struct vntb *v, u32 row)
{
	u32 state = vntb_read(v, SIO_VNTB_PEER(row) + SIO_VNTB_PEER_STATE);

	return state == ~0U ? 0 : state;
}

void vntb_entry_set(struct vntb *v, u32 entry, u32 row, u64 address, u64 start, u32 flags)
{
	u32 at = SIO_VNTB_LUT(entry);

	vntb_write64(v, at + SIO_VNTB_LUT_ADDRESS, address);
	vntb_write64(v, at + SIO_VNTB_LUT_START, start);
	vntb_write(v, at + SIO_VNTB_LUT_CONTROL,
		   SIO_VNTB_LUT_VALID | flags | SIO_VNTB_LUT_ROW(row));
}

void vntb_entry_clear(struct vntb *v, u32 entry)
{
	vntb_write(v, SIO_VNTB_LUT(entry) + SIO_VNTB_LUT_CONTROL, 0);
}

int vntb_range_set(struct vntb *v, u32 range, u32 row, u64 base, u64 size, u32 flags)
{
	u32 at = SIO_VNTB_RANGE(range);
	int error = vntb_range_clear(v, range, VNTB_BUSY_LIMIT_US);

	if (error)
		return error;
	vntb_write64(v, at + SIO_VNTB_RANGE_BASE, base);
	vntb_write64(v, at + SIO_VNTB_RANGE_SIZE, size);
	vntb_write(v, at + SIO_VNTB_RANGE_CONTROL,
		   SIO_VNTB_RANGE_VALID | flags | SIO_VNTB_RANGE_ROW(row));
	vntb_push(v, at + SIO_VNTB_RANGE_CONTROL);
	return 0;
}

/* A row's register says so. All ones: the function is dead, and with it the way to the row. */
static bool is_busy(struct vntb *v, u32 at, u32 busy)
{
	u32 control = vntb_read(v, at);

	return control & busy && control != ~0U;
}

static int clear(struct vntb *v, u32 at, u32 busy, u64 limit_us)
{
	bool some;

	vntb_write(v, at, 0);
	return read_poll_timeout(is_busy, some, !some, 100, limit_us, false, v, at, busy);
}

int vntb_range_clear(struct vntb *v, u32 range, u64 limit_us)
{
	return clear(v, SIO_VNTB_RANGE(range) + SIO_VNTB_RANGE_CONTROL, SIO_VNTB_RANGE_BUSY,
		     limit_us);
}

bool vntb_range_is_busy(struct vntb *v, u32 range)
{
	return is_busy(v, SIO_VNTB_RANGE(range) + SIO_VNTB_RANGE_CONTROL, SIO_VNTB_RANGE_BUSY);
}

int vntb_member_set(struct vntb *v, u32 member, u32 group, u64 base, u64 size)
{
	u32 at = SIO_VNTB_MEMBER(member);

	vntb_write64(v, at + SIO_VNTB_MEMBER_BASE, base);
	vntb_write64(v, at + SIO_VNTB_MEMBER_SIZE, size);
	vntb_write(v, at + SIO_VNTB_MEMBER_CONTROL,
		   SIO_VNTB_MEMBER_VALID | SIO_VNTB_MEMBER_GROUP(group));
	return vntb_read(v, at + SIO_VNTB_MEMBER_CONTROL) & SIO_VNTB_MEMBER_VALID ? 0 : -ERANGE;
}

void vntb_member_open(struct vntb *v, u32 member, bool yes)
{
	u32 at = SIO_VNTB_MEMBER(member) + SIO_VNTB_MEMBER_CONTROL;
	u32 control = vntb_read(v, at) & ~(SIO_VNTB_MEMBER_OPEN | SIO_VNTB_MEMBER_BUSY);

	vntb_write(v, at, control | (yes ? SIO_VNTB_MEMBER_OPEN : 0));
	vntb_push(v, at);
}

int vntb_member_clear(struct vntb *v, u32 member, u64 limit_us)
{
	return clear(v, SIO_VNTB_MEMBER(member) + SIO_VNTB_MEMBER_CONTROL, SIO_VNTB_MEMBER_BUSY,
		     limit_us);
}

bool vntb_member_is_busy(struct vntb *v, u32 member)
{
	return is_busy(v, SIO_VNTB_MEMBER(member) + SIO_VNTB_MEMBER_CONTROL, SIO_VNTB_MEMBER_BUSY);
}

/* ---- what happens ---- */

static irqreturn_t on_link(int irq, void *arg)
{
	vntb_api_link(arg);
	vntb_bridge_link(arg);
	return IRQ_HANDLED;
}

static irqreturn_t on_message(int irq, void *arg)
{
	vntb_api_message(arg);
	return IRQ_HANDLED;
}

static irqreturn_t on_doorbell(int irq, void *arg)
{
	struct vntb_doorbell *d = arg;

	vntb_api_doorbell(d->v, d->bit);
	return IRQ_HANDLED;
}

static const char *reason_name(u32 reason)
{
	static const char *const names[] = {
		[SIO_VNTB_REASON_ENTRY] = "the look-up entry is not valid",
		[SIO_VNTB_REASON_LINK] = "the link or the peer is down",
		[SIO_VNTB_REASON_START] = "the look-up entry is of another start of the peer",
		[SIO_VNTB_REASON_RANGE] = "nothing is granted there",
		[SIO_VNTB_REASON_RIGHT] = "it is not granted for this",
		[SIO_VNTB_REASON_PEER] = "the bus there refused it",
		[SIO_VNTB_REASON_LIMIT] = "too many accesses were under way",
	};

	return reason < ARRAY_SIZE(names) && names[reason] ? names[reason] : "for no known reason";
}

static void report_fault(struct vntb *v, const struct vntb_fault *f)
{
	dev_warn_ratelimited(&v->pdev->dev, "%s of %u bytes %s %#llx (peer %d) was stopped: %s\n",
			     f->kind & SIO_VNTB_FAULT_READ ? "read" : "write", f->length,
			     f->kind & SIO_VNTB_FAULT_IN ? "by a peer at" : "through the window at",
			     f->address, (int)f->peer, reason_name(f->reason));
}

/* In a thread: each of these registers may take as long as hundreds of ordinary ones. */
static irqreturn_t on_fault(int irq, void *arg)
{
	struct vntb *v = arg;

	/* Until it is empty: only then the next raises the vector. All ones: nothing is there. */
	for (;;) {
		u32 count = vntb_read(v, SIO_VNTB_FAULT_COUNT);
		struct vntb_fault f;

		if (count == 0 || count > SIO_VNTB_FAULTS)
			break;
		f.kind = vntb_read(v, SIO_VNTB_FAULT_KIND);
		f.peer = vntb_read(v, SIO_VNTB_FAULT_PEER);
		f.address = vntb_read64(v, SIO_VNTB_FAULT_ADDRESS);
		f.length = vntb_read(v, SIO_VNTB_FAULT_LENGTH);
		f.reason = vntb_read(v, SIO_VNTB_FAULT_REASON);
		vntb_write(v, SIO_VNTB_FAULT_COUNT, 1);
		report_fault(v, &f);
		vntb_bridge_fault(v, &f, reason_name(f.reason));
	}
	return IRQ_HANDLED;
}

/* ---- the function ---- */

static int read_identity(struct vntb *v)
{
	struct device *dev = &v->pdev->dev;
	u32 magic = vntb_read(v, SIO_VNTB_MAGIC), version = vntb_read(v, SIO_VNTB_VERSION);
	u64 window = pci_resource_len(v->pdev, SIO_VNTB_BAR_WINDOW);

	if (magic != SIO_VNTB_MAGIC_VALUE)
		return dev_err_probe(dev, -ENODEV, "magic %#x, %#x is right\n", magic,
				     SIO_VNTB_MAGIC_VALUE);
	if (version != SIO_VNTB_VERSION_VALUE)
		return dev_err_probe(dev, -ENODEV, "registers of version %u, %u is right\n",
				     version, SIO_VNTB_VERSION_VALUE);
	v->node = vntb_read(v, SIO_VNTB_NODE);
	v->adapter = vntb_read(v, SIO_VNTB_ADAPTER);
	v->peers = vntb_read(v, SIO_VNTB_PEERS);
	v->entries = vntb_read(v, SIO_VNTB_ENTRIES);
	v->entry_shift = vntb_read(v, SIO_VNTB_ENTRY_SHIFT);
	v->ranges = vntb_read(v, SIO_VNTB_RANGES);
	v->window = pci_resource_start(v->pdev, SIO_VNTB_BAR_WINDOW);
	if (v->peers > SIO_VNTB_MAX_PEERS || v->entries > SIO_VNTB_MAX_ENTRIES ||
	    v->ranges > SIO_VNTB_MAX_RANGES)
		return dev_err_probe(dev, -EINVAL,
				     "%u peers, %u entries, %u ranges; at most %u, %u, %u\n",
				     v->peers, v->entries, v->ranges, SIO_VNTB_MAX_PEERS,
				     SIO_VNTB_MAX_ENTRIES, SIO_VNTB_MAX_RANGES);
	if (v->entry_shift < PAGE_SHIFT || v->entry_shift > 48 ||
	    (u64)v->entries << v->entry_shift > window)
		return dev_err_probe(dev, -EINVAL,
				     "%u entries of 2^%u bytes, the window has %#llx\n", v->entries,
				     v->entry_shift, window);
	return 0;
}

static int map_function(struct vntb *v)
{
	struct pci_dev *pdev = v->pdev;
	int error = pcim_enable_device(pdev);

	if (error)
		return error;
	/*
	 * Not the window: what is lent through it hangs below it in the tree of resources, and
	 * nothing may be put below one that is busy.
	 */
	error = pcim_iomap_regions(pdev, BIT(SIO_VNTB_BAR_REGISTERS), KBUILD_MODNAME);
	if (error)
		return error;
	v->regs = pcim_iomap_table(pdev)[SIO_VNTB_BAR_REGISTERS];
	if (pci_resource_len(pdev, SIO_VNTB_BAR_REGISTERS) < SIO_VNTB_BAR0_SIZE)
		return dev_err_probe(&pdev->dev, -ENODEV, "BAR 0 has %#llx bytes, %#x are right\n",
				     (u64)pci_resource_len(pdev, SIO_VNTB_BAR_REGISTERS),
				     SIO_VNTB_BAR0_SIZE);
	error = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (error)
		return error;
	pci_set_master(pdev);
	return 0;
}

static void free_vectors(void *arg)
{
	pci_free_irq_vectors(arg);
}

/* All but the link's, which is the last to begin and the first to end. */
static int make_vectors(struct vntb *v)
{
	struct pci_dev *pdev = v->pdev;
	struct device *dev = &pdev->dev;
	int error, n = pci_alloc_irq_vectors(pdev, SIO_VNTB_VECTOR_PEERS, SIO_VNTB_VECTORS,
					     PCI_IRQ_MSIX);

	if (n < 0)
		return dev_err_probe(dev, n, "no %u vectors of MSI-X\n", SIO_VNTB_VECTOR_PEERS);
	v->vectors = n;
	error = devm_add_action_or_reset(dev, free_vectors, pdev);
	if (!error)
		error = devm_request_irq(dev, pci_irq_vector(pdev, SIO_VNTB_VECTOR_MESSAGE),
					 on_message, 0, "smartio-message", v);
	if (!error)
		error = devm_request_threaded_irq(dev, pci_irq_vector(pdev, SIO_VNTB_VECTOR_FAULT),
						  NULL, on_fault, IRQF_ONESHOT, "smartio-fault", v);
	for (int i = 0; !error && i < SIO_VNTB_DOORBELLS; i++) {
		v->doorbells[i] = (struct vntb_doorbell){.v = v, .bit = i};
		error = devm_request_irq(dev, pci_irq_vector(pdev, SIO_VNTB_VECTOR_DOORBELL + i),
					 on_doorbell, 0, "smartio-doorbell", &v->doorbells[i]);
	}
	return error;
}

static void reset(void *arg)
{
	vntb_write(arg, SIO_VNTB_RESET, 1);
}

static void vntb_remove(struct pci_dev *pdev)
{
	struct vntb *v = pci_get_drvdata(pdev);

	vntb_bridge_stop(v);
	free_irq(pci_irq_vector(pdev, SIO_VNTB_VECTOR_LINK), v);
	vntb_api_stop(v);
}

static int vntb_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct vntb *v = devm_kzalloc(&pdev->dev, sizeof(*v), GFP_KERNEL);
	int error;

	if (!v)
		return -ENOMEM;
	v->pdev = pdev;
	pci_set_drvdata(pdev, v);
	error = map_function(v);
	if (!error)
		error = read_identity(v);
	if (error)
		return error;
	/* What an earlier driver left, and what this one leaves. */
	reset(v);
	error = devm_add_action_or_reset(&pdev->dev, reset, v);
	if (!error)
		error = make_vectors(v);
	if (!error)
		error = vntb_api_start(v);
	if (error)
		return error;
	error = request_irq(pci_irq_vector(pdev, SIO_VNTB_VECTOR_LINK), on_link, 0, "smartio-link",
			    v);
	if (error) {
		vntb_api_stop(v);
		return error;
	}
	error = vntb_bridge_start(v);
	if (error) {
		vntb_remove(pdev);
		return error;
	}
	/* What changed before that interrupt was ours. */
	vntb_api_link(v);
	dev_info(&pdev->dev, "adapter %u of node %u: %u peers, %u of them NTB ports\n", v->adapter,
		 v->node, v->peers, v->api.peers);
	return 0;
}

static const struct pci_device_id vntb_ids[] = {{PCI_DEVICE(SIO_VNTB_VENDOR, SIO_VNTB_DEVICE)}, {}};
MODULE_DEVICE_TABLE(pci, vntb_ids);

static struct pci_driver vntb_driver = {
	.name = KBUILD_MODNAME,
	.id_table = vntb_ids,
	.probe = vntb_probe,
	.remove = vntb_remove,
};

/* ---- smartio.ko comes after us: udev loads this one, a boot's list the other ---- */

static int be_bridge(struct device *dev, void *arg)
{
	int error = 0;

	device_lock(dev); /* against probe and remove */
	if (dev->driver == &vntb_driver.driver)
		error = vntb_bridge_start(dev_get_drvdata(dev));
	device_unlock(dev);
	return error;
}

static void be_bridges(struct work_struct *work)
{
	int error = driver_for_each_device(&vntb_driver.driver, NULL, NULL, be_bridge);

	if (error)
		pr_warn("not all are adapters of smartio.ko (%pe)\n", ERR_PTR(error));
}
static DECLARE_WORK(late_work, be_bridges);

static int on_module(struct notifier_block *nb, unsigned long event, void *module)
{
	if (event == MODULE_STATE_LIVE && strcmp(((struct module *)module)->name, "smartio") == 0)
		schedule_work(&late_work);
	return NOTIFY_DONE;
}
static struct notifier_block modules = {.notifier_call = on_module};

static int __init vntb_init(void)
{
	int error = register_module_notifier(&modules);

	if (error)
		return error;
	error = pci_register_driver(&vntb_driver);
	if (error) {
		unregister_module_notifier(&modules);
		cancel_work_sync(&late_work);
	}
	return error;
}

static void __exit vntb_exit(void)
{
	unregister_module_notifier(&modules);
	cancel_work_sync(&late_work);
	pci_unregister_driver(&vntb_driver);
}

module_init(vntb_init);
module_exit(vntb_exit);
MODULE_DESCRIPTION("Virtual NTB of smartio-emu");
MODULE_LICENSE("GPL");
