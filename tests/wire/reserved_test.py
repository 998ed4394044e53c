#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The rows of the lists of messages name each reserved field, so that the generic check looks at it.

reserved_test.py FOLDER     with client.h, peer.h and wire.h
"""
import pathlib
import re
import sys
import unittest

# Version first: a program, or a daemon, of another one is told that, and nothing else is looked at before.
AFTER_THE_VERSION = {"sio_msg_hello", "sio_peer_hello"}
# Each error, of any message.
REFUSAL = {"sio_msg_error"}


def structures(text):
    """{name: [its reserved fields]}"""
    found = {}
    for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.S | re.M):
        found[name] = re.findall(r"\breserved\w*", re.sub(r"/\*.*?\*/", "", body, flags=re.S))
    return found


def rows(text):
    """Pairs of structure and field, from X(NAME, ...) of the lists."""
    for row in re.findall(r"^\tX\(([A-Z_]+, .*?)\)", text, re.S | re.M):
        words = re.sub(r"\\\n", "", row).replace(",", " ").split()
        if len(words) == 4:  # an event
            yield words[2], words[3]
        else:
            yield words[3], words[4]
            yield words[5], words[6]


class Reserved(unittest.TestCase):
    def test_each_is_named(self):
        folder = pathlib.Path(sys.argv[1])
        texts = [(folder / name).read_text() for name in ("wire.h", "client.h", "peer.h")]
        fields, named = {}, {}
        for text in texts:
            fields.update(structures(text))
        for text in texts[1:]:
            for struct, field in rows(text):
                self.assertIn(struct, fields)
                self.assertEqual(named.setdefault(struct, field), field, f"struct {struct}")
        self.assertGreater(len(named), 80)
        for struct, reserved in fields.items():
            if struct in AFTER_THE_VERSION | REFUSAL:
                self.assertEqual(reserved, ["reserved"])
            elif reserved:
                self.assertEqual([named.get(struct)], reserved, f"rows of struct {struct}: its field is not named")
            elif struct in named:
                self.assertIn(named[struct], ("h", "size"), f"rows of struct {struct}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
