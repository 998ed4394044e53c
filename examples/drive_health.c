/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admin commands of a client: its manager gives them to the drive. A log page and a feature are
 * read; what would change the drive for all clients is refused unless it is confirmed.
 *
 * usage: drive_health DRIVE
 */
#include <errno.h>
#include <inttypes.h>

#include "example.h"
#include "example_nvme.h"

/* NVM Express Base Specification 1.4, sections 5.13, 5.14.1.2 and 5.21.1.4 */
#define GET_LOG_PAGE 0x02u
#define SET_FEATURES 0x09u
#define GET_FEATURES 0x0au
#define HEALTH 0x02u
#define TEMPERATURE_THRESHOLD 0x04u

struct health { /* its first bytes, little-endian */
	uint8_t critical_warning, temperature[2], spare, spare_threshold, used, reserved[26];
	uint64_t units_read[2], units_written[2], reads[2], writes[2];
	uint8_t more[512 - 96];
};
_Static_assert(sizeof(struct health) == 512, "a log page of 512 bytes");

static void read_health(struct smartio_nvme *n, struct health *h)
{
	const struct smartio_nvme_admin command = {
		.size = sizeof(command),
		.opcode = GET_LOG_PAGE,
		.nsid = 0xffffffff, /* of the drive */
		.cdw10 = (sizeof(*h) / 4 - 1) << 16 | HEALTH,
		.bytes = sizeof(*h),
		.data = h,
	};

	must_nvme(smartio_nvme_admin(n, &command, NULL, NULL), "Get Log Page");
}

/* Return: its value; also what smartio_nvme_get_feature() does. */
static uint32_t read_threshold(struct smartio_nvme *n)
{
	const struct smartio_nvme_admin command = {
		.size = sizeof(command),
		.opcode = GET_FEATURES,
		.cdw10 = TEMPERATURE_THRESHOLD,
	};
	uint32_t value;

	must_nvme(smartio_nvme_admin(n, &command, &value, NULL), "Get Features");
	return value & 0xffff;
}

static void try_to_change(struct smartio_nvme *n)
{
	const struct smartio_nvme_admin command = {
		.size = sizeof(command),
		.opcode = SET_FEATURES, /* and no SMARTIO_NVME_CONFIRMED */
		.cdw10 = TEMPERATURE_THRESHOLD,
		.cdw11 = 300,
	};
	int rc = smartio_nvme_admin(n, &command, NULL, NULL);

	if (rc != -EACCES) {
		fprintf(stderr, "a change was not refused: %d\n", rc);
		exit(1);
	}
	printf("refused: %s\n", smartio_nvme_error());
}

int main(int argc, char **argv)
{
	sci_desc_t sd = begin();
	struct smartio_nvme *n;
	struct health h;

	if (argc != 2) {
		fprintf(stderr, "usage: drive_health DRIVE\n");
		return 2;
	}
	must_nvme(smartio_nvme_open_wait(argv[1], 10000, &n), argv[1]);
	read_health(n, &h);
	printf("%u K of %u K, %u %% of its spare, %" PRIu64 " reads, %" PRIu64 " writes\n",
	       h.temperature[0] | h.temperature[1] << 8, read_threshold(n), h.spare, h.reads[0],
	       h.writes[0]);
	try_to_change(n);
	smartio_nvme_close(n);
	end(sd);
	return 0;
}
