# SPDX-License-Identifier: BSD-2-Clause
"""What a drive reads of submission queues by where they lie (paper, section 7.4.1): counted, of a client on another host.

Reads of one page, one after the other, have no lists of data: what the drive requests is its queue's entries, and a few
for its manager.
"""
import os
import sys

from parts import BENCH, COUNTED, Failed, bars, table

sys.path.insert(0, os.path.join(BENCH, "base"))
from cluster_base import Cluster  # noqa: E402

TOPOLOGY = """\
cluster: queues
switches: [sw0]
hosts:
  lender:
    ram: 64M
    iommu: on
    devices: {nvme0: {type: nvme, size: 16M, cmb: 16K}, mem0: {type: memory, size: 1M}}
  borrower: {ram: 64M, iommu: on}
"""
PLACES = (("borrower's RAM", "local"), ("lender's RAM", "lender"), ("device beside the drive", "device:mem0"),
          ("drive's own memory", "cmb"))


def requests(cluster):
    """Read requests of the drive, and those that pass the borrower's adapter."""
    found = cluster.stats()
    return found["devices"]["nvme0"]["rd_req"], found["adapters"]["borrower.0"]["rd_req"]


def queues(c):
    """Requests for 1,000 commands and more, by place of the queue."""
    count = c.pick(1000, 1000, 20000)
    rows = []
    try:
        with Cluster(c.build, TOPOLOGY) as cluster:
            cluster.manager("lender", "nvme0")
            for name, place in PLACES:
                before = requests(cluster)
                cluster.run("borrower", cluster.nvme, "bench", "nvme0", "-c", str(count), "--warmup", "0", "-d", "1",
                            "--sq", place)
                rows.append([name, *(after - n for after, n in zip(requests(cluster), before))])
    except AssertionError as e:
        raise Failed(str(e)) from e
    return ([table(f"Read requests for {count} commands of one page", ["queue in", "of the drive", "across the borrower's link"],
                   [[name, *map(str, n)] for name, *n in rows])],
            [bars("Read requests of the drive", COUNTED, "requests a command",
                  {"by place of the submission queue": [(name, drive / count) for name, drive, _ in rows]})])
