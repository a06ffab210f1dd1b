import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield import kernels
from tests.support import references
from tests.support.tolerances import CLOSED_FORM


def exit_clocks(products, num_cycles, *, C, R, h, u0):
    products = np.asarray(products, dtype=np.float64)
    clocks = np.full(products.size, np.nan)
    kernels.exit_clocks(products, np.full(products.size, num_cycles), C, R, h, u0, clocks)
    return clocks


@pytest.mark.parametrize("kappa", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("h", [0.0, 0.05])
def test_memory_path_matches_its_twin(kappa, h):
    memory = np.full(200, np.nan)
    kernels.memory_path(kappa, h, 1e-3, memory)
    np.testing.assert_allclose(memory, references.memory_path(kappa, h, 1e-3, 200), rtol=CLOSED_FORM)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(
    product=st.one_of(st.floats(1e-3, 10.0), st.just(np.inf)),
    C=st.floats(0.01, 10.0),
    R=st.floats(1e-3, 100.0),
    h=st.sampled_from([0.0, 1e-3, 0.05, 2.0]),
    u0=st.sampled_from([0.0, 1e-6, 1e-3, 0.3, 1.0]),
    num_cycles=st.sampled_from([1, 2, 7, 400]),
)
def test_exit_clocks_match_their_twin(product, C, R, h, u0, num_cycles):
    (found,) = exit_clocks([product], num_cycles, C=C, R=R, h=h, u0=u0)
    expected = references.exit_clock(product, C=C, R=R, h=h, u0=u0, num_cycles=num_cycles)
    if np.isfinite(expected):
        assert found == pytest.approx(expected, rel=1e-11)  # at most 400 additions
    else:  # the twin stops at the last cycle; the kernel may have followed a settled memory beyond it
        assert found >= product * num_cycles * (1.0 - CLOSED_FORM)


def test_a_settled_memory_is_followed_to_its_exit():
    """Walking a hundred cycles is enough for an exit that is a hundred million cycles away."""
    (found,) = exit_clocks([2.0], 100, C=1.0, R=2e8, h=0.0, u0=1.0)
    settled = references.memory_path(2.0, 0.0, 1.0, 100)[-1]
    assert found == pytest.approx(2e8 / settled, rel=1e-8)


def test_a_memory_that_still_changes_is_not_followed_further():
    clocks = [exit_clocks([1.0], cycles, C=1.0, R=10.0, h=0.0, u0=0.5)[0] for cycles in (10, 1000)]
    assert np.isinf(clocks[0])
    assert clocks[1] == pytest.approx(references.exit_clock(1.0, C=1.0, R=10.0, h=0.0, u0=0.5, num_cycles=1000))


@pytest.mark.parametrize("product", [0.5, 2.0, np.inf])
def test_nothing_moves_without_signal_and_memory(product):
    assert np.isinf(exit_clocks([product], 1000, C=1.0, R=1.0, h=0.0, u0=0.0)).all()
