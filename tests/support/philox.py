"""Philox 4x32-10 and Box-Muller in plain Python, after the paper of Salmon et al. (2011): the twin of the kernel's."""

import math
from itertools import count, islice

MASK = 0xFFFFFFFF


def philox(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        first, second = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (second >> 32) ^ c1 ^ k0, second & MASK, (first >> 32) ^ c3 ^ k1, first & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


def normal_numbers(seed, number, size=None):
    """The standard normal numbers of one member with one noisy state, in the order of its steps."""

    def endless():
        for draw in count():
            words = philox((draw & MASK, draw >> 32, number & MASK, number >> 32), (seed & MASK, seed >> 32))
            a, b, c, d = ((word + 0.5) * 2.0**-32 for word in words)
            for radius, turn in ((a, b), (c, d)):
                yield math.sqrt(-2.0 * math.log(radius)) * math.cos(2.0 * math.pi * turn)
                yield math.sqrt(-2.0 * math.log(radius)) * math.sin(2.0 * math.pi * turn)

    return islice(endless(), size)
