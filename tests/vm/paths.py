# SPDX-License-Identifier: BSD-2-Clause
"""Imported for what it does: the modules of tools/machine, which `smartio machine` uses too, can be imported then."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(1, os.path.join(ROOT, "tools", "machine"))
