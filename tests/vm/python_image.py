# SPDX-License-Identifier: BSD-2-Clause
"""A script of ours for a machine, with the Python that runs this one and the modules that it imports."""
import os
import subprocess
import sys

FOLDER = "/scripts"
LIST = """import os
import sys
sys.path[:0] = sys.argv[1:]
import {module}
print(*{{m.__file__ for m in list(sys.modules.values()) if getattr(m, "__file__", None)}}, os.__file__, sep="\\n")
"""


def add_python(image, script, *folders):
    """@script, whose modules are in @folders. Return: the command that runs it in the machine."""
    module = os.path.basename(script)[:-3]
    where = [os.path.dirname(script), *folders]
    python = os.path.realpath(sys.executable)
    found = subprocess.run([python, "-ESBc", LIST.format(module=module), *where], check=True, capture_output=True, text=True).stdout
    image.add_program(python, python)
    for path in found.split():
        if os.path.dirname(path) in where:
            image.add_file(f"{FOLDER}/{os.path.basename(path)}", path)
        else:
            image.add_program(path, path)  # some are libraries
    return f"{python} -ESB {FOLDER}/{module}.py"
