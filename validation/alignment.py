"""How gradients point, and how far the weights have moved: what the mean-field picture is about, measured.

All on raw gradients: consecutive Adam updates share nine tenths of their first moment, so their cosine is near 0.9
whatever the gradients do.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from validation.policy import Parameters

# R runs, P parameters of one run.


class GradientAlignment:
    """Cosines of raw gradients within a cycle and from cycle to cycle, for runs side by side.

    `observe` is called once per optimizer step; a run's cycle is its steps from one synchronization to the next.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.previous_RP = torch.zeros_like(flat(parameters))
        self.unit_sum_RP = torch.zeros_like(self.previous_RP)
        self.sum_RP = torch.zeros_like(self.previous_RP)
        self.last_cycle_RP = torch.zeros_like(self.previous_RP)
        self.count_R = torch.zeros(len(self.previous_RP))

    def observe(self, gradients: Parameters, *, ends: Sequence[bool]) -> dict[str, Tensor]:
        """Metrics of one step, each of shape (R,) [1], NaN where they are not defined.

        `gradient_cosine`: with the gradient of the step before. At the last step of a cycle (`ends`) also
        `pair_cosine`: mean over all pairs of gradients of the cycle, which is (|sum of units|^2 - n) / (n (n - 1)), and
        `cycle_cosine`: of the cycle's mean gradient with that of the cycle before. A gradient of zero has no direction
        and counts in none of them.
        """
        gradient_RP = flat(gradients)
        unit_RP = _unit(gradient_RP)
        metrics = {"gradient_cosine": _cosine(unit_RP, self.previous_RP)}
        self.previous_RP = unit_RP
        self.unit_sum_RP += unit_RP
        self.sum_RP += gradient_RP
        self.count_R += (_dot(unit_RP, unit_RP) > 0).to(torch.float32)
        metrics |= self._close(torch.tensor(ends)) if any(ends) else {}
        return metrics

    def _close(self, ends_R: Tensor) -> dict[str, Tensor]:
        pairs_R = self.count_R * (self.count_R - 1)
        pair_R = (_dot(self.unit_sum_RP, self.unit_sum_RP) - self.count_R) / pairs_R
        mean_RP = _unit(self.sum_RP)
        cycle_R = _cosine(mean_RP, self.last_cycle_RP)
        self.last_cycle_RP[ends_R] = mean_RP[ends_R]
        for state in (self.unit_sum_RP, self.sum_RP, self.count_R):
            state[ends_R] = 0
        return {
            "pair_cosine": torch.where(ends_R & (pairs_R > 0), pair_R, math.nan),
            "cycle_cosine": torch.where(ends_R, cycle_R, math.nan),
        }


class Displacement:
    """Euclidean distance of the learner's weights from the last synchronization and from the start."""

    def __init__(self, learner: Parameters) -> None:
        self.start_RP = flat(learner)
        self.sync_RP = self.start_RP.clone()

    def synchronize(self, learner: Parameters, due: Sequence[bool]) -> None:
        """Note the weights of the runs that synchronize now."""
        rows = torch.tensor(due)
        self.sync_RP[rows] = flat(learner)[rows]

    def measure(self, learner: Parameters) -> dict[str, Tensor]:
        """`displacement_since_sync` and `displacement_since_start`, each of shape (R,), in units of the weights."""
        weights_RP = flat(learner)
        from_sync_RP, from_start_RP = weights_RP - self.sync_RP, weights_RP - self.start_RP
        return {
            "displacement_since_sync": _dot(from_sync_RP, from_sync_RP).sqrt(),
            "displacement_since_start": _dot(from_start_RP, from_start_RP).sqrt(),
        }


def flat(parameters: Parameters) -> Tensor:
    """All parameters of each run as one row, shape (R, P), detached."""
    return torch.cat([value.detach().flatten(1) for value in parameters.values()], dim=1)


def _dot(one_RP: Tensor, other_RP: Tensor) -> Tensor:
    """Row-wise dot product, shape (R,), each run summed as if it were alone."""
    return torch.stack([row_P.sum() for row_P in one_RP * other_RP])


def _unit(vectors_RP: Tensor) -> Tensor:
    """Rows of norm one; a row of zeros stays."""
    norm_R = _dot(vectors_RP, vectors_RP).sqrt()
    return vectors_RP / torch.where(norm_R > 0, norm_R, 1.0).unsqueeze(1)


def _cosine(unit_RP: Tensor, other_unit_RP: Tensor) -> Tensor:
    """Cosine of rows of norm one, NaN where a row is zero."""
    defined_R = (_dot(unit_RP, unit_RP) > 0) & (_dot(other_unit_RP, other_unit_RP) > 0)
    return torch.where(defined_R, _dot(unit_RP, other_unit_RP), math.nan)
