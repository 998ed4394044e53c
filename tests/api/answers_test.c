/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the library makes of answers that a live smartiod rarely gives: another version, each error
 * of the wire, and answers that are malformed. A child plays smartiod: it greets, and refuses all
 * else with an error that it is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/cluster.h"
#include "../lib/tempdir.h"
#include "smartio/uapi.h"
#include "wire/client.h"

/* In memory that the child shares. */
struct orders {
	uint32_t version; /* that it says it speaks */
	int greeting;	  /* errno that refuses HELLO; 0: none */
	int answer;	  /* errno that refuses the rest; 0: borrowing succeeds, and
			   * there is an adapter with nothing */
	/* Instead of the answer to a probe: the device's loss, its segment's, and the end. */
	enum { STAYS, ENDS, TELLS_DEVICE, TELLS_BOTH } farewell;
	/* What is wrong with an answer to a probe. */
	enum {
		NOTHING,
		TYPE,
		SIZE,
		REFUSAL_TYPE,
		REFUSAL_SIZE,
		ERROR,
		TEXT,
		REASON,
		REFUSAL_RESERVED,
		RESERVED, /* in the answer to another request: this one's has no such field */
	} wrong;
};

static struct orders *orders;
static char dir[80], socket_path[96]; /* the socket is alone in the directory */

/* ---- the child ---- */

static void send_with(int fd, const void *msg, size_t len, const int *fds, unsigned n)
{
	union {
		char buf[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = {.buf = {0}};
	struct iovec iov = {(void *)(uintptr_t)msg, len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n) {
		m.msg_control = control.buf;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fds, n * sizeof(int));
	}
	if (sendmsg(fd, &m, MSG_NOSIGNAL) < 0)
		perror("sendmsg");
}

static void refuse(int fd, const struct sio_msg *request, int error)
{
	struct sio_msg_error e = {.h = *request};

	e.h.size = sio_to_le32(sizeof(e));
	e.h.error = sio_to_le32((uint32_t)error);
	snprintf(e.text, sizeof(e.text), "refused with error %d", error);
	send_with(fd, &e, sizeof(e), NULL, 0);
}

static void answer_wrongly(int fd, const struct sio_msg *request)
{
	struct sio_msg_error e = {.h = *request, .text = "no"};
	bool refusal = orders->wrong > SIZE;
	size_t len = refusal ? sizeof(e) : sizeof(e.h);

	e.h.error = sio_to_le32(refusal ? ETIMEDOUT : 0);
	if (orders->wrong == TYPE || orders->wrong == REFUSAL_TYPE)
		e.h.type = sio_to_le32(SIO_MSG_BYE);
	else if (orders->wrong == SIZE)
		len += 8;
	else if (orders->wrong == REFUSAL_SIZE)
		len -= 8;
	else if (orders->wrong == ERROR)
		e.h.error = sio_to_le32(4096);
	else if (orders->wrong == TEXT)
		memset(e.text, 'x', sizeof(e.text));
	else if (orders->wrong == REFUSAL_RESERVED)
		e.reserved = sio_to_le32(5);
	else
		e.reason = sio_to_le32(SIO_OUT_OF_COUNT);
	e.h.size = sio_to_le32((uint32_t)len);
	send_with(fd, &e, len, NULL, 0);
}

static int status_page(void)
{
	struct sio_status_page page = {.magic = SIO_STATUS_MAGIC, .version = 1};
	int fd = memfd_create("status", MFD_CLOEXEC);

	if (fd < 0 || write(fd, &page, sizeof(page)) != sizeof(page) || ftruncate(fd, 4096) < 0)
		_exit(1);
	return fd;
}

static void greet(int fd, const struct sio_msg *request)
{
	struct sio_rep_hello rep = {.h = *request,
				    .version = sio_to_le32(orders->version),
				    .node = sio_to_le32(4),
				    .n_adapters = sio_to_le32(1),
				    .host = "one",
				    .cluster = "fake"};
	int fds[2] = {memfd_create("owner", MFD_CLOEXEC), status_page()};

	rep.h.size = sio_to_le32(sizeof(rep));
	send_with(fd, &rep, sizeof(rep), fds, 2);
	close(fds[0]);
	close(fds[1]);
}

static void lend(int fd, const struct sio_msg *request)
{
	struct sio_rep_dev_borrow rep = {.h = *request,
					 .handle = sio_to_le32(1),
					 .generation = sio_to_le32(1),
					 .borrower = sio_to_le64(1)};

	rep.h.size = sio_to_le32(sizeof(rep));
	send_with(fd, &rep, sizeof(rep), NULL, 0);
}

static void connect_to_device(int fd, const struct sio_msg *request)
{
	struct sio_rep_seg_connect rep = {.h = *request,
					  .handle = sio_to_le32(2),
					  .node = sio_to_le32(4),
					  .path = sio_to_le32(SIO_PATH_NONE),
					  .bytes = sio_to_le64(4096)};

	rep.h.size = sio_to_le32(sizeof(rep));
	send_with(fd, &rep, sizeof(rep), NULL, 0);
}

static void say_farewell(int fd)
{
	struct sio_evm_device device = {
		.h = {.size = sio_to_le32(sizeof(device)), .type = sio_to_le32(SIO_EVM_DEVICE)},
		.handle = sio_to_le32(1),
		.event = sio_to_le32(SIO_DEVICE_EV_LOST)};
	struct sio_evm_segment segment = {.h = {.size = sio_to_le32(sizeof(segment)),
						.type = sio_to_le32(SIO_EVM_SEGMENT_REMOTE)},
					  .handle = sio_to_le32(2),
					  .reason = sio_to_le32(SCI_CB_LOST),
					  .loss = sio_to_le32(1)};

	if (orders->farewell >= TELLS_DEVICE)
		send_with(fd, &device, sizeof(device), NULL, 0);
	if (orders->farewell >= TELLS_BOTH)
		send_with(fd, &segment, sizeof(segment), NULL, 0);
}

static void describe_adapter(int fd, const struct sio_msg *request)
{
	struct sio_rep_adapter rep = {.h = *request, .node = sio_to_le32(4)};

	rep.h.size = sio_to_le32(sizeof(rep));
	send_with(fd, &rep, sizeof(rep), NULL, 0);
}

static void give_queue(int fd, const struct sio_msg *request)
{
	struct sio_rep_queue_create rep = {
		.h = *request, .handle = sio_to_le32(3), .reserved = sio_to_le32(7)};

	rep.h.size = sio_to_le32(sizeof(rep));
	send_with(fd, &rep, sizeof(rep), NULL, 0);
}

static void serve(int fd)
{
	_Alignas(8) char buf[SIO_WIRE_MAX];
	struct sio_msg *request = (struct sio_msg *)buf;

	while (recv(fd, buf, sizeof(buf), 0) >= (ssize_t)sizeof(*request)) {
		if (sio_from_le32(request->type) == SIO_MSG_HELLO && !orders->greeting)
			greet(fd, request);
		else if (sio_from_le32(request->type) == SIO_MSG_DEV_BORROW && !orders->answer)
			lend(fd, request);
		else if (sio_from_le32(request->type) == SIO_MSG_DEV_SEG_CONNECT && !orders->answer)
			connect_to_device(fd, request);
		else if (sio_from_le32(request->type) == SIO_MSG_ADAPTER && !orders->answer)
			describe_adapter(fd, request);
		else if (sio_from_le32(request->type) == SIO_MSG_NODE_PROBE && orders->farewell)
			break;
		else if (sio_from_le32(request->type) == SIO_MSG_NODE_PROBE && orders->wrong)
			answer_wrongly(fd, request);
		else if (sio_from_le32(request->type) == SIO_MSG_QUEUE_CREATE &&
			 orders->wrong == RESERVED)
			give_queue(fd, request);
		else
			refuse(fd, request,
			       sio_from_le32(request->type) == SIO_MSG_HELLO ? orders->greeting
									     : orders->answer);
	}
	if (orders->farewell)
		say_farewell(fd);
	close(fd);
}

static int up(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	static pid_t pid;

	orders = mmap(NULL, sizeof(*orders), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (test_tempdir("answers", dir, sizeof(dir)) < 0)
		return -1;
	snprintf(socket_path, sizeof(socket_path), "%s/socket", dir);
	strcpy(address.sun_path, socket_path);
	if (fd < 0 || orders == MAP_FAILED ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 4) < 0)
		return -1;
	setenv("SMARTIO_SOCKET", socket_path, 1);
	pid = fork();
	if (pid == 0) {
		int client;

		while ((client = accept(fd, NULL, NULL)) >= 0)
			serve(client);
		_exit(1);
	}
	close(fd);
	*state = &pid;
	return pid < 0 ? -1 : 0;
}

static int down(void **state)
{
	unlink(socket_path);
	rmdir(dir);
	if (*state && kill(*(pid_t *)*state, SIGKILL) == 0)
		waitpid(*(pid_t *)*state, NULL, 0);
	return 0;
}

/* ---- the tests ---- */

static void greets(uint32_t version, int error)
{
	*orders = (struct orders){.version = version, .greeting = error};
}

static void versions_that_differ(void **state)
{
	sci_error_t error;

	(void)state;
	greets(SIO_CLIENT_VERSION, EPROTO);
	SCIInitialize(0, &error);
	assert_int_equal(error, SCI_ERR_INCONSISTENT_VERSIONS);
	greets(SIO_CLIENT_VERSION + 1, 0);
	SCIInitialize(0, &error);
	assert_int_equal(error, SCI_ERR_INCONSISTENT_VERSIONS);
	assert_non_null(strstr(smartio_last_error(), "version"));
	/* It can be tried again. */
	greets(SIO_CLIENT_VERSION, 0);
	SCIInitialize(0, &error);
	assert_int_equal(error, SCI_ERR_OK);
	SCITerminate();
}

static sci_desc_t sd;

static void begin(void)
{
	sci_error_t error;

	greets(SIO_CLIENT_VERSION, 0);
	SCIInitialize(0, &error);
	assert_int_equal(error, SCI_ERR_OK);
	SCIOpen(&sd, 0, &error);
	assert_int_equal(error, SCI_ERR_OK);
}
static sci_smartio_device_t device;

static sci_error_t connect_segment(void)
{
	sci_remote_segment_t segment = NULL;
	sci_error_t error;

	SCIConnectSegment(sd, &segment, 8, 1, 0, NULL, NULL, 0, 0, &error);
	assert_null(segment);
	return error;
}

static sci_error_t connect_interrupt(void)
{
	sci_remote_interrupt_t interrupt = NULL;
	sci_error_t error;

	SCIConnectInterrupt(sd, &interrupt, 8, 0, 1, 0, 0, &error);
	assert_null(interrupt);
	return error;
}

static sci_error_t connect_data_interrupt(void)
{
	sci_remote_data_interrupt_t interrupt = NULL;
	sci_error_t error;

	SCIConnectDataInterrupt(sd, &interrupt, 8, 0, 1, 0, 0, &error);
	assert_null(interrupt);
	return error;
}

static sci_error_t connect_device_segment(void)
{
	sci_remote_segment_t segment = NULL;
	sci_error_t error;

	SCIConnectDeviceSegment(device, &segment, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	assert_null(segment);
	return error;
}

static sci_error_t create_segment(void)
{
	sci_local_segment_t segment = NULL;
	sci_error_t error;

	SCICreateSegment(sd, &segment, 1, 4096, NULL, NULL, 0, &error);
	assert_null(segment);
	return error;
}

static sci_error_t create_queue(void)
{
	sci_dma_queue_t queue = NULL;
	sci_error_t error;

	SCICreateDMAQueue(sd, &queue, 0, 1, 0, &error);
	assert_null(queue);
	return error;
}

static sci_error_t create_interrupt(void)
{
	sci_local_interrupt_t interrupt = NULL;
	unsigned number = 0;
	sci_error_t error;

	SCICreateInterrupt(sd, &interrupt, 0, &number, NULL, NULL, 0, &error);
	assert_null(interrupt);
	return error;
}

static sci_error_t create_device_segment(void)
{
	sci_error_t error;

	SCICreateDeviceSegment(device, 1, 4096, SCI_MEMTYPE_SHARED, 0, 0, &error);
	return error;
}

static sci_error_t probe(void)
{
	sci_error_t error;

	assert_int_equal(SCIProbeNode(sd, 0, 8, 0, &error), 0);
	return error;
}

static sci_error_t borrow(void)
{
	sci_smartio_device_t other = NULL;
	sci_error_t error;

	SCIBorrowDevice(sd, &other, 1, 0, &error);
	assert_null(other);
	return error;
}

static void errors_by_their_names(void **state)
{
	static const struct {
		sci_error_t (*call)(void);
		int answer;
		sci_error_t error;
	} cases[] = {
		{connect_segment, ECONNREFUSED, SCI_ERR_CONNECTION_REFUSED},
		{connect_segment, ETIMEDOUT, SCI_ERR_NODE_NOT_RESPONDING},
		{connect_segment, EHOSTUNREACH, SCI_ERR_NO_SUCH_NODEID},
		{connect_segment, ENETDOWN, SCI_ERR_NO_LINK_ACCESS},
		{connect_segment, ENOENT, SCI_ERR_NO_SUCH_SEGMENT},
		{connect_segment, EDOM, SCI_ERR_SYSTEM},
		{connect_interrupt, ECONNREFUSED, SCI_ERR_CONNECTION_REFUSED},
		{connect_interrupt, ETIMEDOUT, SCI_ERR_NODE_NOT_RESPONDING},
		{connect_interrupt, ENETDOWN, SCI_ERR_NO_LINK_ACCESS},
		{connect_interrupt, ENOENT, SCI_ERR_NO_SUCH_INTNO},
		{connect_data_interrupt, ECONNREFUSED, SCI_ERR_CONNECTION_REFUSED},
		{connect_data_interrupt, ETIMEDOUT, SCI_ERR_NODE_NOT_RESPONDING},
		{connect_data_interrupt, EHOSTUNREACH, SCI_ERR_NO_SUCH_NODEID},
		{connect_data_interrupt, ENETDOWN, SCI_ERR_NO_LINK_ACCESS},
		{connect_device_segment, ECONNREFUSED, SCI_ERR_CONNECTION_REFUSED},
		{connect_device_segment, ETIMEDOUT, SCI_ERR_NODE_NOT_RESPONDING},
		{connect_device_segment, ENETDOWN, SCI_ERR_NO_LINK_ACCESS},
		{connect_device_segment, ECONNRESET, SCI_ERR_NOT_CONNECTED},
		{create_segment, ENOSPC, SCI_ERR_NOSPC},
		{create_segment, ENOMEM, SCI_ERR_NOSPC},
		{create_segment, EEXIST, SCI_ERR_SEGMENTID_USED},
		{create_queue, ENOSPC, SCI_ERR_HW_NOSPC},
		{create_queue, EOPNOTSUPP, SCI_ERR_DMA_NOT_AVAILABLE},
		{create_interrupt, EEXIST, SCI_ERR_INTNO_USED},
		{create_device_segment, ENOSPC, SCI_ERR_HW_NOSPC},
		{create_device_segment, ENOMEM, SCI_ERR_NOSPC},
		{create_device_segment, EEXIST, SCI_ERR_SEGMENTID_USED},
		{probe, ETIMEDOUT, SCI_ERR_NODE_NOT_RESPONDING},
		{borrow, ENODEV, SCI_ERR_NO_SUCH_FDID},
		{borrow, EBUSY, SCI_ERR_NOT_AVAILABLE},
		{borrow, EACCES, SCI_ERR_NOT_AVAILABLE},
		{borrow, EPERM, SCI_ERR_ACCESS},
	};
	sci_error_t error;

	(void)state;
	begin();
	SCIBorrowDevice(sd, &device, 1, 0, &error);
	assert_int_equal(error, SCI_ERR_OK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[64];

		orders->answer = cases[i].answer;
		error = cases[i].call();
		snprintf(text, sizeof(text), "refused with error %d", cases[i].answer);
		if (error != cases[i].error || !strstr(smartio_last_error(), text))
			fail_msg("case %zu, errno %d: %s, expected %s; text: %s", i,
				 cases[i].answer, SCIGetErrorString(error),
				 SCIGetErrorString(cases[i].error), smartio_last_error());
	}
	SCITerminate(); /* with a device and a descriptor left */
}

/* It is not believed, and says nothing of the next. */
static void a_malformed_answer_is_an_error(void **state)
{
	static const char *const says[] = {
		[TYPE] = "a reply of type",
		[SIZE] = "24 bytes, not 16",
		[REFUSAL_TYPE] = "a reply of type",
		[REFUSAL_SIZE] = "208 bytes, not 216",
		[ERROR] = "error 4096",
		[TEXT] = "a text without end",
		[REASON] = "reason",
		[REFUSAL_RESERVED] = "0x5, 0 is right",
		[RESERVED] = "reply to QUEUE_CREATE: reserved is 0x7, 0 is right",
	};

	(void)state;
	begin();
	for (unsigned wrong = TYPE; wrong <= RESERVED; wrong++) {
		orders->wrong = wrong;
		assert_int_equal(wrong == RESERVED ? create_queue() : probe(),
				 SCI_ERR_INCONSISTENT_VERSIONS);
		if (!strstr(smartio_last_error(), says[wrong]))
			fail_msg("%u: %s, expected %s", wrong, smartio_last_error(), says[wrong]);
	}
	orders->wrong = NOTHING;
	orders->answer = ETIMEDOUT;
	assert_int_equal(probe(), SCI_ERR_NODE_NOT_RESPONDING);
	SCITerminate();
}

static sci_error_t ask_adapter(unsigned subcommand, unsigned *value)
{
	sci_query_adapter_t q = {.subcommand = subcommand, .data = value};
	sci_error_t error;

	SCIQuery(SCI_Q_ADAPTER, &q, 0, &error);
	return error;
}

static void an_adapter_may_have_no_engine_and_no_cable(void **state)
{
	sci_dma_capabilities_t can = {.num_channels = 77};
	sci_dma_channel_t channel = NULL;
	sci_query_dma_t q = {0, SCI_Q_DMA_CAPABILITIES, &can};
	unsigned value = 77;
	sci_error_t error;

	(void)state;
	begin();
	SCIRequestDMAChannel(sd, &channel, 0, SCI_DMA_TYPE_ADAPTER, SCI_DMA_CHANNEL_ID_DONTCARE, 0,
			     &error);
	assert_int_equal(error, SCI_ERR_DMA_NOT_AVAILABLE);
	/* What the program does wrong comes before what the machine lacks. */
	SCIRequestDMAChannel(NULL, &channel, 0, SCI_DMA_TYPE_ADAPTER, SCI_DMA_CHANNEL_ID_DONTCARE,
			     0, &error);
	assert_int_equal(error, SCI_ERR_ILLEGAL_PARAMETER);
	assert_null(channel);
	assert_int_equal(ask_adapter(SCI_Q_ADAPTER_DMA_MTU, &value), SCI_ERR_DMA_NOT_AVAILABLE);
	assert_int_equal(ask_adapter(SCI_Q_ADAPTER_SUGGESTED_MIN_DMA_SIZE, &value),
			 SCI_ERR_DMA_NOT_AVAILABLE);
	assert_int_equal(value, 77);
	SCIQuery(SCI_Q_DMA, &q, 0, &error);
	assert_int_equal(error, SCI_ERR_DMA_NOT_AVAILABLE);
	assert_int_equal(can.num_channels, 77);
	q = (sci_query_dma_t){0, SCI_Q_DMA_AVAILABLE, &value};
	SCIQuery(SCI_Q_DMA, &q, 0, &error);
	assert_int_equal(error, SCI_ERR_OK);
	assert_int_equal(value, 0);
	value = 77;
	assert_int_equal(ask_adapter(SCI_Q_ADAPTER_LINK_CABLE_INSERTED, &value), SCI_ERR_OK);
	assert_int_equal(value, 0);
	SCITerminate();
}

static sem_t told;
static unsigned calls;
static sci_error_t told_status;

static sci_callback_action_t hears(void *arg, sci_remote_segment_t segment,
				   sci_segment_cb_reason_t reason, sci_error_t status)
{
	(void)arg;
	(void)segment;
	if (reason == SCI_CB_LOST) {
		calls++;
		told_status = status;
		sem_post(&told);
	}
	return SCI_CALLBACK_CONTINUE;
}

/* However much of it smartiod could say before its end, a callback hears of the loss once. */
static void the_end_comes_at_any_word(void **state)
{
	sci_remote_segment_t segment = NULL;
	sci_error_t error;

	(void)state;
	assert_int_equal(sem_init(&told, 0, 0), 0);
	for (unsigned farewell = ENDS; farewell <= TELLS_BOTH; farewell++) {
		begin();
		calls = 0;
		SCIBorrowDevice(sd, &device, 1, 0, &error);
		assert_int_equal(error, SCI_ERR_OK);
		SCIConnectDeviceSegment(device, &segment, 0, SCI_MEMTYPE_BAR, hears, NULL,
					SCI_FLAG_USE_CALLBACK, &error);
		assert_int_equal(error, SCI_ERR_OK);
		orders->farewell = farewell;
		assert_int_equal(probe(), SCI_ERR_NO_LINK_ACCESS);
		while (sem_wait(&told) < 0)
			assert_int_equal(errno, EINTR);
		SCIDisconnectSegment(segment, 0, &error);
		assert_int_equal(error, SCI_ERR_OK);
		SCITerminate();
		assert_int_equal(calls, 1);
		assert_int_equal(told_status, farewell == TELLS_BOTH ? SCI_ERR_NOT_CONNECTED
								     : SCI_ERR_NO_LINK_ACCESS);
	}
	sem_destroy(&told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_that_differ),
		cmocka_unit_test(errors_by_their_names),
		cmocka_unit_test(a_malformed_answer_is_an_error),
		cmocka_unit_test(an_adapter_may_have_no_engine_and_no_cable),
		cmocka_unit_test(the_end_comes_at_any_word),
	};

	return cmocka_run_group_tests(tests, up, down);
}
