"""The page on the engine runs as it stands, and what it prints is what it says."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")


def test_the_code_of_the_page_runs_as_one_script(tmp_path):
    """As a file of its own, for worker processes import it again."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    (said,) = re.findall(r"print\(run\.exit, run\.collapse_step\)  # (.*)", PAGE)
    assert done.stdout.splitlines()[0] == said


def test_every_file_the_page_links_exists():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", PAGE) if not link.startswith("http")]
    assert len(links) >= 2
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
