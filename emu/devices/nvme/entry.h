/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue entries of NVM Express 1.4 (sections 4.2 and 4.6), which <nvme/types.h> lacks. */
#ifndef EMU_DEVICES_NVME_ENTRY_H
#define EMU_DEVICES_NVME_ENTRY_H

#include <stdint.h>

#include <linux/types.h>

struct emu_nvme_sqe {
	__u8 opcode;
	__u8 flags; /* FUSE 1:0, PSDT 7:6 */
	__le16 cid;
	__le32 nsid;
	__le32 cdw2, cdw3;
	__le64 mptr;
	__le64 prp1, prp2;
	__le32 cdw10, cdw11, cdw12, cdw13, cdw14, cdw15;
};
_Static_assert(sizeof(struct emu_nvme_sqe) == 64, "NVMe 1.4, figure 105");

struct emu_nvme_cqe {
	__le32 result;
	__le32 reserved;
	__le16 sq_head;
	__le16 sq_id;
	__le16 cid;
	__le16 status; /* phase in bit 0 */
};
_Static_assert(sizeof(struct emu_nvme_cqe) == 16, "NVMe 1.4, figure 121");

#endif
