from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.support.plain_alignment import plain_alignment, plain_displacement
from validation.alignment import Displacement, GradientAlignment
from validation.policy import Parameters

INTERVALS = (1, 2, 3, 5, 64)
NUM_STEPS = 21
# float32 sums of 29 terms and of at most five gradients
ROUNDING = {"rtol": 0, "atol": 2e-6}


def parameters(vectors: Tensor) -> Parameters:
    """Rows of 29 numbers as a weight of 4 by 6 and a bias of 5."""
    return {"w": vectors[:, :24].reshape(-1, 4, 6).clone(), "b": vectors[:, 24:].reshape(-1, 1, 5).clone()}


def draw_gradients() -> Tensor:
    """A common direction, much noise and very different sizes, shape (num_runs, num_steps, 29)."""
    generator = torch.Generator().manual_seed(3)
    noise = torch.randn((len(INTERVALS), NUM_STEPS, 29), generator=generator)
    size = torch.exp(3 * torch.randn((len(INTERVALS), NUM_STEPS, 1), generator=generator))
    return size * (noise + torch.linspace(-1, 1, 29))


def observe(gradients: Tensor, intervals: Sequence[int]) -> dict[str, np.ndarray]:
    """Metrics of runs side by side, NaN at steps that have none, shape (num_runs, num_steps)."""
    num_runs, num_steps, _ = gradients.shape
    alignment = GradientAlignment(parameters(gradients[:, 0]))
    names = ("gradient_cosine", "pair_cosine", "cycle_cosine")
    out = {name: np.full((num_runs, num_steps), np.nan) for name in names}
    for step in range(num_steps):
        ends = [(step + 1) % interval == 0 for interval in intervals]
        for name, value in alignment.observe(parameters(gradients[:, step]), ends=ends).items():
            out[name][:, step] = value.numpy()
    return out


def assert_follows_the_twin(gradients: Tensor) -> dict[str, np.ndarray]:
    metrics = observe(gradients, INTERVALS)
    for run, interval in enumerate(INTERVALS):
        for name, expected in plain_alignment(gradients[run].numpy(), interval).items():
            np.testing.assert_allclose(metrics[name][run], expected, **ROUNDING, err_msg=f"{name} at S = {interval}")
    return metrics


def test_cosines_are_those_of_all_pairs_of_stored_gradients() -> None:
    metrics = assert_follows_the_twin(draw_gradients())
    for run, interval in enumerate(INTERVALS):
        ends = np.arange(1, NUM_STEPS + 1) % interval == 0
        assert np.flatnonzero(np.isnan(metrics["gradient_cosine"][run])).tolist() == [0]
        np.testing.assert_array_equal(~np.isnan(metrics["pair_cosine"][run]), ends & (interval > 1))
        later = ends & (np.arange(1, NUM_STEPS + 1) > interval)
        np.testing.assert_array_equal(~np.isnan(metrics["cycle_cosine"][run]), later)
    assert np.nanstd(metrics["pair_cosine"]) > 0.05


def test_gradients_of_zero_have_no_direction() -> None:
    """At the first step, at the first and last of a cycle, at all but one of a cycle, through whole cycles."""
    gradients = draw_gradients()
    gradients[:, 0] = 0
    gradients[1, [3, 6, 10, 11]] = 0  # S = 2: single ones; all of cycle 6
    gradients[2, [3, 5, 9, 10, 15, 16, 17]] = 0  # S = 3: two of cycle 2 and of 4; all of cycle 6
    gradients[3, 5:15] = 0  # S = 5: cycles 2 and 3
    metrics = assert_follows_the_twin(gradients)
    assert np.isnan(metrics["pair_cosine"][2, [5, 11, 17]]).all()
    assert np.isnan(metrics["cycle_cosine"][3, [9, 14, 19]]).all()
    assert np.isfinite(metrics["cycle_cosine"][2, [5, 8, 11, 14]]).all()


@pytest.mark.parametrize(("turn", "expected"), [(0.0, 1.0), (90.0, 0.0), (180.0, -1.0), (60.0, 0.5)])
def test_two_gradients_at_an_angle(turn: float, expected: float) -> None:
    """The second cycle is turned against the first; sizes differ a thousandfold and do not matter."""
    gradients = torch.zeros((1, 4, 29))
    gradients[:, :2, 0] = torch.tensor([1.0, 1000.0])
    gradients[:, 2:, 0] = np.cos(np.radians(turn)) * torch.tensor([1.0, 1000.0])
    gradients[:, 2:, 1] = np.sin(np.radians(turn)) * torch.tensor([1.0, 1000.0])
    metrics = observe(gradients, [2])
    np.testing.assert_allclose(metrics["pair_cosine"][0, [1, 3]], 1, atol=1e-6)
    for name, step in (("gradient_cosine", 2), ("cycle_cosine", 3)):
        assert metrics[name][0, step] == pytest.approx(expected, abs=1e-6)


def test_a_cycle_whose_gradients_cancel_has_a_pair_cosine_but_no_direction() -> None:
    gradients = torch.ones((1, 6, 29)) * torch.tensor([1.0, -1.0, 1.0, 1.0, 1.0, 1.0])[:, None]
    metrics = observe(gradients, [2])
    np.testing.assert_allclose(metrics["pair_cosine"][0, 1::2], [-1, 1, 1], atol=1e-6)
    np.testing.assert_allclose(metrics["cycle_cosine"][0, 1::2], [np.nan, np.nan, 1], atol=1e-6)


def test_a_run_has_the_same_bits_alone() -> None:
    gradients = draw_gradients()
    together = observe(gradients, INTERVALS)
    for run, interval in enumerate(INTERVALS):
        for name, value in observe(gradients[run : run + 1], [interval]).items():
            np.testing.assert_array_equal(value[0], together[name][run], err_msg=name)


def test_displacement_is_that_of_all_stored_weights() -> None:
    steps = torch.randn((len(INTERVALS), NUM_STEPS + 1, 29), generator=torch.Generator().manual_seed(4))
    weights = steps.cumsum(dim=1)
    displacement = Displacement(parameters(weights[:, 0]))
    out: dict[str, list[Tensor]] = {"displacement_since_sync": [], "displacement_since_start": []}
    for step in range(1, NUM_STEPS + 1):
        due = [(step - 1) % interval == 0 for interval in INTERVALS]
        displacement.synchronize(parameters(weights[:, step - 1]), due)
        for name, value in displacement.measure(parameters(weights[:, step])).items():
            out[name].append(value)
    for name, values in out.items():
        for run, interval in enumerate(INTERVALS):
            expected = plain_displacement(weights[run].numpy(), interval)[name]
            np.testing.assert_allclose(torch.stack(values)[:, run], expected, rtol=1e-5, err_msg=f"{name}, {interval}")
