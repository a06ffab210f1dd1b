"""Compiled models of the tests go into a folder of their own, so that a second run finds them."""

import os
from pathlib import Path

os.environ.setdefault("DRIFTLAW_CACHE", str(Path(__file__).parent.parent / ".pytest_cache" / "models"))
