// SPDX-License-Identifier: BSD-2-Clause
// A C++ program that throws error codes and catches them, and owns handles by objects.
//
// usage: throws server | throws client NODE-OF-SERVER
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <sisci_api.h>
#include <dis_types.h>

static const unsigned SEGMENT = 0xba0000;
static const unsigned EVENTS = 5;
static const size_t BYTES = 64 * 1024;

// Codes stand in static arrays.
static const unsigned known[] = {
	SCI_ERR_BUSY,	    SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_TIMEOUT, SCI_ERR_NOT_SUPPORTED,
	SCI_ERR_DEPRECATED, SCI_ERR_EWOULD_BLOCK,    SCI_ERR_ALL_BUSY};

static void check(sci_error_t error)
{
	if (error != SCI_ERR_OK)
		throw error;
}

static bool is_known(sci_error_t error)
{
	for (unsigned code : known)
		if (code == static_cast<unsigned>(error))
			return true;
	return false;
}

class Device
{
      public:
	Device()
	{
		sci_error_t error;
		SCIOpen(&sd, 0, &error);
		check(error);
	}
	~Device()
	{
		sci_error_t error;
		SCIClose(sd, 0, &error);
		if (error != SCI_ERR_OK)
			std::abort();
	}
	sci_desc_t sd = nullptr;
};

class Exported
{
      public:
	Exported(Device &device, unsigned id, size_t bytes)
	{
		sci_error_t error;
		SCICreateSegment(device.sd, &segment, id, bytes, nullptr, nullptr, 0, &error);
		check(error);
		SCIPrepareSegment(segment, 0, 0, &error);
		check(error);
		memory = static_cast<char *>(
			SCIMapLocalSegment(segment, &map, 0, bytes, nullptr, 0, &error));
		check(error);
		SCISetSegmentAvailable(segment, 0, 0, &error);
		check(error);
	}
	~Exported()
	{
		sci_error_t error;
		SCIUnmapSegment(map, 0, &error);
		do
			SCIRemoveSegment(segment, 0, &error);
		while (error == SCI_ERR_BUSY);
	}
	sci_local_segment_t segment = nullptr;
	sci_map_t map = nullptr;
	char *memory = nullptr;
};

class Imported
{
      public:
	Imported(Device &device, unsigned node, unsigned id)
	{
		sci_error_t error;
		SCIConnectSegment(device.sd, &segment, node, id, 0, nullptr, nullptr,
				  SCI_INFINITE_TIMEOUT, 0, &error);
		check(error);
		memory = SCIMapRemoteSegment(segment, &map, 0, SCIGetRemoteSegmentSize(segment),
					     nullptr, 0, &error);
		check(error);
	}
	~Imported()
	{
		sci_error_t error;
		SCIUnmapSegment(map, 0, &error);
		SCIDisconnectSegment(segment, 0, &error);
	}
	sci_remote_segment_t segment = nullptr;
	sci_map_t map = nullptr;
	volatile void *memory = nullptr;
};

static volatile bool told;

static sci_callback_action_t on_message(void *arg, sci_local_data_interrupt_t, void *data,
					unsigned length, sci_error_t status)
{
	auto *text = static_cast<std::string *>(arg);

	check(status);
	text->assign(static_cast<char *>(data), length);
	told = true;
	return SCI_CALLBACK_CANCEL;
}

static int serve()
{
	sci_local_data_interrupt_t events;
	unsigned number = EVENTS;
	sci_error_t error;
	std::string text;
	Device device;
	Exported memory(device, SEGMENT, BYTES);

	SCICreateDataInterrupt(device.sd, &events, 0, &number, (sci_cb_data_interrupt_t)on_message,
			       &text, SCI_FLAG_FIXED_INTNO | SCI_FLAG_USE_CALLBACK, &error);
	check(error);
	while (!told)
		;
	SCIRemoveDataInterrupt(events, 0, &error);
	check(error);
	return text == "written" && std::strcmp(memory.memory + BYTES - 8, "written") == 0 ? 0 : 1;
}

// Each failure comes as the code that it is.
static void fails_as_it_should(Device &device, unsigned node)
{
	unsigned caught = 0;

	try {
		Imported none(device, node, SEGMENT + 1);
	} catch (sci_error_t error) {
		caught += error == SCI_ERR_NO_SUCH_SEGMENT && is_known(error);
	}
	try {
		Imported none(device, 200, SEGMENT);
	} catch (sci_error_t error) {
		caught += error == SCI_ERR_NO_SUCH_NODEID;
	}
	try {
		Exported one(device, 7, 100);
		Exported two(device, 7, 100);
	} catch (sci_error_t error) {
		std::string text = SCIGetErrorString(error);
		caught += error == SCI_ERR_SEGMENTID_USED && !text.empty();
	}
	if (caught != 3)
		throw SCI_ERR_SYSTEM;
}

static int write_to(unsigned node)
{
	sci_remote_data_interrupt_t events = nullptr;
	char text[] = "written";
	sci_error_t error;
	Device device;

	for (;;) {
		try {
			Imported there(device, node, SEGMENT);
			fails_as_it_should(device, node);
			SCIMemCpy(nullptr, text, there.map, BYTES - 8, 8, 0, &error);
			check(error);
			break;
		} catch (sci_error_t again) {
			if (again != SCI_ERR_NO_SUCH_SEGMENT)
				throw;
		}
	}
	do
		SCIConnectDataInterrupt(device.sd, &events, node, 0, EVENTS, 1000, 0, &error);
	while (error == SCI_ERR_NO_SUCH_INTNO);
	check(error);
	SCITriggerDataInterrupt(events, text, 7, 0, &error);
	check(error);
	SCIDisconnectDataInterrupt(events, 0, &error);
	check(error);
	return 0;
}

int main(int argc, char **argv)
{
	int status = 2;

	try {
		sci_error_t error;
		SCIInitialize(0, &error);
		check(error);
		if (argc == 2 && std::string(argv[1]) == "server")
			status = serve();
		if (argc == 3 && std::string(argv[1]) == "client")
			status = write_to(static_cast<unsigned>(std::atoi(argv[2])));
		SCITerminate();
	} catch (sci_error_t error) {
		std::fprintf(stderr, "%s (%#x)\n", SCIGetErrorString(error),
			     static_cast<unsigned>(error));
		return 1;
	}
	return status;
}
