#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio-vfio says which argument was wrong, and what would be right."""
import subprocess
import sys
import unittest


class Arguments(unittest.TestCase):
    def test_wrong_values(self):
        bytes_right = "bytes are wanted, 1 or more"
        for option, value, right in (("--backend", "cdev", "iommufd or group is right"),
                                     ("--memory-limit", "0", bytes_right), ("--memory-limit", "-1", bytes_right),
                                     ("--memory-limit", "64M", bytes_right), ("--memory-limit", "9223372036854775808", bytes_right),
                                     ("--ready-fd", "1000000", "an open descriptor is wanted")):
            with self.subTest(option=option, value=value):
                done = subprocess.run([sys.argv[1], option, value], capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 2)
                self.assertTrue(done.stderr.startswith(f"smartio-vfio: {option} {value}: {right}\nusage: "), done.stderr)

    def test_one_too_many(self):
        done = subprocess.run([sys.argv[1], "nvme0"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (2, "smartio-vfio: argument nvme0: not expected\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
