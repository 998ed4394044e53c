/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices for virtual machines (smartio/guest.h). */
#include <string.h>

#include "sisci/device/device.h"
#include "smartio/guest.h"

static void fill(const struct sio_rep_dev_list *rep, struct smartio_device_layout *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->vendor = sio_from_le32(rep->vendor);
	ret->device = sio_from_le32(rep->device);
	ret->subsystem_vendor = sio_from_le32(rep->subsys_vendor);
	ret->subsystem_device = sio_from_le32(rep->subsys_device);
	ret->class_code = sio_from_le32(rep->class_code);
	for (unsigned i = 0; i < 6; i++)
		ret->bar_size[i] = sio_from_le64(rep->bar_size[i]);
	ret->msix_count = sio_from_le32(rep->msix_count);
	ret->msix_bar = sio_from_le32(rep->msix_bar);
	ret->msix_offset = sio_from_le32(rep->msix_offset);
	ret->adapter = sio_from_le32(rep->adapter);
	ret->translated = sio_from_le32(rep->iommu) != 0;
	ret->resets = sio_from_le32(rep->resets) != 0;
}

void smartio_device_layout(unsigned int fdid, struct smartio_device_layout *layout,
			   sci_error_t *error)
{
	struct sio_rep_dev_list rep;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? sio_check_pointer(layout, "layout", &err) : err.code;

	if (!rc && fdid == 0)
		rc = sio_refuse(&err, SCI_ERR_NO_SUCH_FDID, "no device has number 0");
	if (!rc)
		rc = sio_device_next(lib, fdid - 1, &rep, &err);
	if (!rc && sio_from_le32(rep.fdid) != fdid)
		rc = sio_refuse(&err, SCI_ERR_NO_SUCH_FDID, "there is no device %#x", fdid);
	if (!rc)
		fill(&rep, layout);
	sio_api_leave(error, rc, &err);
}

void smartio_device_restart(sci_smartio_device_t device, sci_error_t *error)
{
	struct sio_msg_handle req = {.flags = sio_to_le32(SIO_RESET_KEEP)};
	struct sio_device_call c;
	struct sio_msg rep;

	sio_device_enter(&c, device);
	sio_device_ask(&c, SIO_MSG_DEV_RESET, &req, sizeof(req), &req.handle, &rep, sizeof(rep));
	sio_device_leave(&c, error);
}
