"""One task in a process of its own, on given cores; the answer goes out as JSON, the last line of what is printed."""

from __future__ import annotations

import json
import os
import sys

from benchmarks import tasks


def main() -> None:
    order = json.loads(sys.argv[1])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, order["cores"])
    found = getattr(tasks, order["task"])(order["start"], **order["arguments"])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
