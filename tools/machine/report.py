# SPDX-License-Identifier: BSD-2-Clause
"""What the user is told."""


class Failed(Exception):
    """Why it cannot be done, for the user."""


def say(text):
    print(text, flush=True)
