"""The page on new models runs as it stands, is short, and what it says of its model is true."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from meanfield import results
from meanfield.explore import presets
from meanfield.outcomes import Outcome

PAGE = (Path(__file__).parents[2] / "docs" / "new_model.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MPLBACKEND", "Agg")
        patch.setitem(presets.PRESETS, "fading memory", None)  # the page offers it; gone again afterwards
        for block in BLOCKS:
            exec(compile(block, "new_model.md", "exec"), found)  # the page is ours
        sys.modules["matplotlib.pyplot"].close("all")
    assert {path.name for path in folder.iterdir()} == {"fading_memory.png", "fading_explorer.png"}
    return found


def test_a_model_takes_under_twenty_lines():
    assert len(BLOCKS[0].splitlines()) < 20


def test_its_boundary_is_the_one_on_paper(names):
    """A small memory fades as exp(-c*tau) and feeds d' = m + k_w*d: solved by hand."""
    of, product = names["values"], names["product"]
    rise, fall = np.exp(of["k_w"] * product), np.exp(-of["c"] * product)
    growth = of["rho"] * fall + of["k_s"] * (rise - fall) / (of["k_w"] + of["c"])
    assert growth == pytest.approx(1.0, rel=1e-11)


def test_its_elasticities_say_that_fading_protects(names):
    moves = names["moves"]
    assert moves["c"] > 0.0 > max(moves["k_w"], moves["k_s"], moves["rho"])
    assert moves["R"] == 0.0
    assert moves["k_w"] + moves["k_s"] == pytest.approx(-1.0 - moves["c"], abs=1e-8)  # all have the unit 1/(eta*t)


def test_its_phase_diagram_collapses_above_the_line_only(names):
    grid = results.check(names["grid"], results.schema_of(names["grid"]))
    above = names["S"][:, np.newaxis] * names["rates"] > names["product"]
    collapsed = grid.outcome.values == Outcome.COLLAPSED.code
    assert collapsed.any()
    assert not np.any(collapsed & ~above)
    assert collapsed[:, -1].all()
