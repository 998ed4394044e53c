// SPDX-License-Identifier: GPL-2.0-only
/*
 * A driver for tests of QEMU's edu device, which copies between its own memory and whatever it
 * reaches: here BARs of other devices. It knows the kernel's DMA API alone. Files of the function
 * in sysfs: "map" takes a physical address and bytes, and gives the device's address; "put" stores
 * a word there: offset, value; "get" takes an offset, and gives the word; "unmap".
 */
#include <linux/dma-mapping.h>
#include <linux/iopoll.h>
#include <linux/module.h>
#include <linux/pci.h>

#define FROM 0x80
#define TO 0x88
#define COUNT 0x90
#define COMMAND 0x98
#define START 1ULL
#define TO_HOST 2ULL
#define OWN 0x40000 /* its memory, a page, as it knows it */
#define LIMIT_US 30000000

struct edu {
	struct mutex lock;
	void __iomem *regs;
	u32 *word; /* of this host's memory */
	dma_addr_t word_at, target;
	phys_addr_t phys;
	size_t size; /* 0: nothing is mapped */
	u32 got;
};

static int copy(struct edu *e, u64 from, u64 to, u64 command)
{
	u64 still;

	writeq(from, e->regs + FROM);
	writeq(to, e->regs + TO);
	writeq(sizeof(u32), e->regs + COUNT);
	writeq(command | START, e->regs + COMMAND);
	return readq_poll_timeout(e->regs + COMMAND, still, !(still & START), 1000, LIMIT_US);
}

static int in(struct edu *e, u64 from)
{
	return copy(e, from, OWN, 0);
}

static int out(struct edu *e, u64 to)
{
	return copy(e, OWN, to, TO_HOST);
}

/* ---- files ---- */

static void unmap(struct device *dev, struct edu *e)
{
	if (e->size)
		dma_unmap_resource(dev, e->target, e->size, DMA_BIDIRECTIONAL, 0);
	e->size = 0;
}

static ssize_t map_store(struct device *dev, struct device_attribute *a, const char *text, size_t n)
{
	struct edu *e = dev_get_drvdata(dev);
	unsigned long long phys, size;
	int error = 0;

	if (sscanf(text, "%lli %lli", &phys, &size) != 2 || !size)
		return -EINVAL;
	mutex_lock(&e->lock);
	unmap(dev, e);
	e->target = dma_map_resource(dev, phys, size, DMA_BIDIRECTIONAL, 0);
	if (dma_mapping_error(dev, e->target))
		error = -EIO;
	else
		e->size = size;
	mutex_unlock(&e->lock);
	return error ? error : n;
}

static ssize_t map_show(struct device *dev, struct device_attribute *a, char *text)
{
	struct edu *e = dev_get_drvdata(dev);

	return e->size ? sysfs_emit(text, "%pad\n", &e->target) : -ENODATA;
}

static ssize_t put_store(struct device *dev, struct device_attribute *a, const char *text, size_t n)
{
	struct edu *e = dev_get_drvdata(dev);
	unsigned int offset, value;
	int error;

	if (sscanf(text, "%i %x", &offset, &value) != 2 || offset + sizeof(u32) > e->size)
		return -EINVAL;
	mutex_lock(&e->lock);
	*e->word = value;
	error = in(e, e->word_at);
	if (!error)
		error = out(e, e->target + offset);
	mutex_unlock(&e->lock);
	return error ? error : n;
}

static ssize_t get_store(struct device *dev, struct device_attribute *a, const char *text, size_t n)
{
	struct edu *e = dev_get_drvdata(dev);
	unsigned int offset;
	int error;

	if (kstrtouint(text, 0, &offset) || offset + sizeof(u32) > e->size)
		return -EINVAL;
	mutex_lock(&e->lock);
	error = in(e, e->target + offset);
	if (!error)
		error = out(e, e->word_at);
	e->got = READ_ONCE(*e->word);
	mutex_unlock(&e->lock);
	return error ? error : n;
}

static ssize_t get_show(struct device *dev, struct device_attribute *a, char *text)
{
	struct edu *e = dev_get_drvdata(dev);

	return sysfs_emit(text, "%08x\n", e->got);
}

static ssize_t unmap_store(struct device *dev, struct device_attribute *a, const char *text,
			   size_t n)
{
	struct edu *e = dev_get_drvdata(dev);

	mutex_lock(&e->lock);
	unmap(dev, e);
	mutex_unlock(&e->lock);
	return n;
}

static DEVICE_ATTR_RW(map);
static DEVICE_ATTR_WO(put);
static DEVICE_ATTR_RW(get);
static DEVICE_ATTR_WO(unmap);

static struct attribute *attrs[] = {
	&dev_attr_map.attr, &dev_attr_put.attr, &dev_attr_get.attr, &dev_attr_unmap.attr, NULL,
};
static const struct attribute_group group = {.attrs = attrs};
static const struct attribute_group *groups[] = {&group, NULL};

/* ---- life ---- */

static int edu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct edu *e = devm_kzalloc(&pdev->dev, sizeof(*e), GFP_KERNEL);
	int error = e ? pcim_enable_device(pdev) : -ENOMEM;

	if (!error)
		error = pcim_iomap_regions(pdev, BIT(0), "smartio_edu");
	if (!error)
		error = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (error)
		return error;
	mutex_init(&e->lock);
	e->regs = pcim_iomap_table(pdev)[0];
	e->word = dmam_alloc_coherent(&pdev->dev, sizeof(*e->word), &e->word_at, GFP_KERNEL);
	if (!e->word)
		return -ENOMEM;
	pci_set_drvdata(pdev, e);
	pci_set_master(pdev);
	return 0;
}

static void edu_remove(struct pci_dev *pdev)
{
	pci_clear_master(pdev);
	unmap(&pdev->dev, pci_get_drvdata(pdev));
}

static const struct pci_device_id ids[] = {{PCI_DEVICE(0x1234, 0x11e8)}, {}};

static struct pci_driver edu_driver = {
	.name = "smartio_edu",
	.id_table = ids,
	.probe = edu_probe,
	.remove = edu_remove,
	.dev_groups = groups,
};
module_pci_driver(edu_driver);
MODULE_DESCRIPTION("SmartIO: a driver of QEMU's edu device, for tests");
MODULE_LICENSE("GPL");
