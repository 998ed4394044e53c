#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What nvcc made of the kernels: each is there, and none of them contracts a product and a sum.

usage: cuda_test.py KERNELS.PTX TABLE.H
"""
import re
import sys
import unittest

PTX, TABLE = sys.argv[1:3]


class Cuda(unittest.TestCase):
    def setUp(self):
        with open(PTX, encoding="ascii") as f:
            self.ptx = f.read()

    def test_every_kernel_is_there(self):
        with open(TABLE, encoding="ascii") as f:
            names = {"accel_" + name for name in re.findall(r"^\s+X\(\w+, (\w+)\)", f.read(), re.M)}
        self.assertGreater(len(names), 5)
        self.assertEqual(set(re.findall(r"\.entry (\w+)\(", self.ptx)), names)

    def test_floats_have_the_bits_that_c_computes(self):
        self.assertIn("mul.rn.f32", self.ptx)
        self.assertNotIn("fma", self.ptx)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
