# SPDX-License-Identifier: BSD-2-Clause
"""A pair of machines whose adapters are smartio_ntb.ko's, on the Linux NTB API, as those of hardware with a driver in
Linux are. Here ntb_hw_smartio.ko is that driver; its own bridge, which can more, is off.

Used as the first of a test's bases: class Mine(OnNtbApi, Theirs).
"""
import paths  # noqa: F401
import shim
import ntb_clients

NODE = {"a": 4, "b": 8}
WINDOW = 4 << 20  # what the kernel gives in one piece, too


class OnNtbApi:
    def load_adapter(self, host):
        return (f"load smartio; load ntb; load ntb_hw_smartio bridge=0 window={WINDOW}; "
                f"load smartio_ntb node={NODE[host]} device_reads=1")

    def build_initrd(self, kernel, build, into):
        shim.ntb_client(kernel, build, ntb_clients.get(kernel))  # before the others' fill: it is in the same folder
        super().build_initrd(kernel, build, into)

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        image.add_file("/modules/smartio_ntb.ko", shim.ntb_client(kernel, build, ntb_clients.get(kernel)))
