# SPDX-License-Identifier: BSD-2-Clause
"""How far measured values lie apart: from order statistics alone, whatever their distribution is."""
import math
import statistics


def median_interval(values):
    """The median, and the interval that holds it with 95 % or more; least and most where there are too few values."""
    values, n = sorted(values), len(values)
    # How many are left out at either end, and the chance that the median lies there.
    outside, cut = 2 / 2 ** n, 0
    while cut < (n - 1) // 2 and outside + 2 * math.comb(n, cut + 1) / 2 ** n <= 0.05:
        cut += 1
        outside += 2 * math.comb(n, cut) / 2 ** n
    return statistics.median(values), values[cut], values[n - 1 - cut]


def quartiles(values):
    """A quarter of @values is below the first, a quarter above the second."""
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high
