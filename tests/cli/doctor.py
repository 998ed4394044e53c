# SPDX-License-Identifier: BSD-2-Clause
"""What `smartio doctor` finds, for those who bring it about."""
import subprocess
import base

OK, WARNING, BAD = 0, 1, 2


class Examined(base.CommandTest):
    def findings(self, *options, status=None, **more):
        """What is wrong, or to be noted: by state. Each has cause, evidence and what mends it."""
        done = self.smartio("doctor", "--json", *options, status=status, **more)
        data = self.document(done.stdout)
        wrong = [f for f in data["findings"] if f["verdict"] in ("warning", "bad")]
        for f in wrong:
            for key in ("title", "cause", "evidence", "mend"):
                self.assertTrue(f[key], f)
            self.assertNotRegex(f["mend"], r"\{[\w-]+\}", f)
            self.assertEqual(subprocess.run(["sh", "-n", "-c", f["mend"]], check=False).returncode, 0, f)
        expected = {f["verdict"] for f in wrong}
        self.assertEqual(data["verdict"], "bad" if "bad" in expected else
                         "warning" if "warning" in expected else "ok")
        self.assertEqual(done.returncode, BAD if "bad" in expected else
                         WARNING if "warning" in expected else OK)
        return {f["state"]: f for f in wrong}

    def only(self, state, *options, **more):
        """Exactly this is wrong: its finding."""
        found = self.findings(*options, **more)
        self.assertEqual(list(found), [state], found)
        return found[state]
