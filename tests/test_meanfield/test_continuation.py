"""Curves that are known exactly: circle, tanh curves, crossing lines; and why each one ends."""

import math

import numpy as np
import pytest

from meanfield.engine.branch_points import crossing_tangents
from meanfield.engine.branches import Ending, Kind
from meanfield.engine.continuation import (
    TOLERANCE,
    Monitor,
    Steps,
    continue_curve,
    differentiated,
    fold_monitor,
)
from theory.errors import InputError

ON_THE_CURVE = 1e-12
"""Residual of a point whose last Newton step was below 1e-10: the square of that, and rounding."""
DIFFERENCES = 1e-8
"""A special point that rests on central differences of the residual with a step of 1e-6."""
FIRST_ORDER = 1.00001
"""An error bar is of first order: at an error of 1e-7 the second is below 1e-5 of it."""

WIDE = {"lower": [-10.0, -10.0], "upper": [10.0, 10.0], "scale": [1.0, 1.0]}


def circle(point):
    x, p = point
    return np.array([x**2 + p**2 - 1.0]), np.array([[2.0 * x, 2.0 * p]])


def tanh_curve(h):
    """x = tanh(h + p*x), the fixed points of the memory map."""

    def system(point):
        x, p = point
        slope = 1.0 - math.tanh(h + p * x) ** 2
        return np.array([math.tanh(h + p * x) - x]), np.array([[p * slope - 1.0, x * slope]])

    return system


def crossing(point):
    """The lines x = 0 and x = p - 1."""
    x, p = point
    return np.array([x * (p - 1.0 - x)]), np.array([[p - 1.0 - 2.0 * x, x]])


def tanh_fold(h):
    """Where x = tanh(h + p*x) touches: p*(1 - x^2) = 1 and h = atanh(x) - p*x, by bisection in x."""
    low, high = 0.0, 1.0 - 1e-12
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (middle, high) if math.atanh(middle) - middle / (1.0 - middle**2) > h else (low, middle)
    return low, 1.0 / (1.0 - low**2)


def test_a_circle_is_followed_round_its_folds_and_closes():
    curve = continue_curve(circle, [1.0, 0.0], direction=[0.0, 1.0], monitors=(fold_monitor(1),), **WIDE)
    assert curve.ending is Ending.CLOSED
    np.testing.assert_array_equal(curve.points[-1], curve.points[0])
    assert np.max(np.abs(np.hypot(*curve.points.T) - 1.0)) < ON_THE_CURVE
    turns = np.unwrap(np.arctan2(curve.points[:, 1], curve.points[:, 0]))
    assert turns[-1] - turns[0] == pytest.approx(2.0 * math.pi, rel=1e-12)
    assert np.all(np.diff(turns) > 0.0)
    assert [item.kind for item in curve.special] == [Kind.FOLD, Kind.FOLD]
    np.testing.assert_allclose([item.point for item in curve.special], [[0.0, 1.0], [0.0, -1.0]], atol=1e-12)


def test_the_steps_keep_to_their_limits():
    steps = Steps(first=0.01, largest=0.03, largest_turn=0.02)
    curve = continue_curve(circle, [1.0, 0.0], direction=[0.0, 1.0], steps=steps, **WIDE)
    turns = np.arccos(np.clip(np.sum(curve.tangents[1:-1] * curve.tangents[:-2], axis=1), -1.0, 1.0))
    assert turns.max() <= 0.02 + 1e-9
    assert turns.max() > 0.01  # else the steps are shorter than they need be
    loose = continue_curve(circle, [1.0, 0.0], direction=[0.0, 1.0], **WIDE)
    assert len(loose.points) < len(curve.points) / 2


@pytest.mark.parametrize("h", [-0.05, -0.3, -1.0])
def test_folds_of_the_tanh_curve_lie_where_the_closed_form_has_them(h):
    x, p = tanh_fold(h)
    curve = continue_curve(
        tanh_curve(h), [0.999, p + 3.0], direction=[0.0, -1.0], monitors=(fold_monitor(1),),
        lower=[-1.0, 0.0], upper=[1.0, 10.0], scale=[1.0, 10.0],
    )  # fmt: skip
    (fold,) = curve.special
    assert fold.kind is Kind.FOLD
    assert abs(fold.point[0] - x) <= fold.error[0] < 1e-6
    assert abs(fold.point[1] - p) <= fold.error[1] < 1e-10
    assert fold.residual < TOLERANCE / 10.0
    assert curve.ending is Ending.EDGE


def test_the_error_bar_grows_with_the_error_of_the_equations_and_holds_it():
    """Equations that are off by 1e-7: the bar has to hold the shift of the fold, in p and in x."""
    off = 1e-7
    exact = np.array(tanh_fold(-0.3))

    def shifted(point):
        residual, jacobian = tanh_curve(-0.3)(point)
        return residual + off, jacobian + off

    curve = continue_curve(
        shifted, [0.999, 5.0], direction=[0.0, -1.0], monitors=(fold_monitor(1),), accuracy=lambda _point: off,
        lower=[-1.0, 0.0], upper=[1.0, 10.0], scale=[1.0, 10.0],
    )  # fmt: skip
    (fold,) = curve.special
    shift = np.abs(fold.point - exact)
    assert np.all(shift > 1e-9)
    assert np.all(shift <= fold.error * FIRST_ORDER)
    assert np.all(fold.error < 20.0 * shift)


def test_a_crossing_is_a_branch_point_on_both_lines_and_no_fold():
    monitors = (fold_monitor(1),)
    for start, direction in (([0.0, 0.0], [0.0, 1.0]), ([-1.0, 0.0], [0.0, 1.0])):
        curve = continue_curve(crossing, start, direction=direction, monitors=monitors, **WIDE)
        assert [item.kind for item in curve.special] == [Kind.BRANCH]
        np.testing.assert_allclose(curve.special[0].point, [0.0, 1.0], atol=1e-9)
        assert np.all(curve.special[0].error < 1e-6)
        assert curve.ending is Ending.EDGE
        slope = 0.0 if start[0] == 0.0 else 1.0
        np.testing.assert_allclose(curve.points[:, 0], slope * (curve.points[:, 1] - 1.0), atol=1e-9)


def test_a_pitchfork_is_passed_on_both_branches():
    monitors = (fold_monitor(1),)
    box = {"lower": [-1.0, 0.1], "upper": [1.0, 3.0], "scale": [1.0, 1.0]}
    rest = continue_curve(tanh_curve(0.0), [0.0, 0.5], direction=[0.0, 1.0], monitors=monitors, **box)
    alive = continue_curve(tanh_curve(0.0), [0.9, 1.7], direction=[0.0, -1.0], monitors=monitors, **box)
    for curve in (rest, alive):
        assert [item.kind for item in curve.special] == [Kind.BRANCH]
        np.testing.assert_allclose(curve.special[0].point, [0.0, 1.0], atol=1e-7)
    assert np.max(np.abs(rest.points[:, 0])) < ON_THE_CURVE
    x, p = alive.points[(np.abs(alive.points[:, 0]) > 1e-3)].T
    np.testing.assert_allclose(p, np.arctanh(x) / x, rtol=1e-9)
    assert x.min() < -0.9  # it went round the pitchfork to the mirrored side


def test_the_tangents_at_a_crossing():
    exact = np.array([[0.0, 1.0], [math.sqrt(0.5), math.sqrt(0.5)]])
    found = crossing_tangents(crossing, np.array([0.0, 1.0]), np.ones(2))
    for tangent in exact:
        assert max(abs(float(tangent @ item)) for item in found) == pytest.approx(1.0, abs=1e-12)
    assert abs(float(found[0] @ found[1])) == pytest.approx(math.sqrt(0.5), abs=1e-7)
    assert crossing_tangents(circle, np.array([1.0, 0.0]), np.ones(2)) is None  # regular
    lonely = crossing_tangents(lambda point: (point @ point, 2.0 * point[None, :]), np.zeros(2), np.ones(2))
    assert lonely is None  # x^2 + p^2 = 0: a point, no curve


def test_a_special_point_that_cannot_be_located_has_the_step_as_its_error_bar():
    """Numbers fail around the fold; a step leads over it."""

    def gap(point):
        residual, jacobian = circle(point)
        return (residual * np.nan if abs(point[0]) < 0.03 else residual), jacobian

    steps = Steps(first=0.2, largest=0.2, largest_turn=0.5)
    curve = continue_curve(gap, [1.0, 0.0], direction=[0.0, 1.0], monitors=(fold_monitor(1),), steps=steps, **WIDE)
    first = curve.special[0]
    assert math.isnan(first.residual)
    assert np.all(np.abs(first.point - [0.0, 1.0]) < first.error)
    assert np.all(first.error > 0.05)


def test_a_curve_without_a_written_jacobian():
    system = differentiated(lambda point: tanh_curve(-0.3)(point)[0], [1.0, 10.0])
    curve = continue_curve(
        system, [0.999, 5.0], direction=[0.0, -1.0], monitors=(fold_monitor(1),),
        lower=[-1.0, 0.0], upper=[1.0, 10.0], scale=[1.0, 10.0],
    )  # fmt: skip
    np.testing.assert_allclose(curve.special[0].point, tanh_fold(-0.3), rtol=DIFFERENCES)


def test_a_line_in_space_with_its_own_monitor():
    """Two equations in three unknowns: a helix that rises by 2*pi a turn; its monitor is zero at every half turn."""

    def helix(point):
        x, y, z = point
        rows = [[1.0, 0.0, math.sin(z)], [0.0, 1.0, -math.cos(z)]]
        return np.array([x - math.cos(z), y - math.sin(z)]), np.array(rows)

    half_turn = Monitor(Kind.FLIP, lambda jacobian: float(jacobian[0, 2]))
    curve = continue_curve(
        helix, [1.0, 0.0, 0.5], direction=[0, 0, 1.0], monitors=(half_turn,),
        lower=[-2.0, -2.0, 0.0], upper=[2.0, 2.0, 10.0], scale=[1.0, 1.0, 2.0],
    )  # fmt: skip
    np.testing.assert_allclose([item.point[2] for item in curve.special], np.pi * np.arange(1, 4), rtol=1e-9)
    assert [item.after for item in curve.special] == sorted(item.after for item in curve.special)
    for item in curve.special:
        assert curve.points[item.after, 2] <= item.point[2] <= curve.points[item.after + 1, 2]
    assert curve.points[-1, 2] == pytest.approx(10.0, rel=1e-12)


def test_scales_change_no_curve():
    """The same circle in units of which one is a millionth of the other."""

    def squeezed(point):
        residual, jacobian = circle(point * [1.0, 1e6])
        return residual, jacobian * [1.0, 1e6]

    plain = continue_curve(circle, [1.0, 0.0], direction=[0.0, 1.0], **WIDE)
    small = continue_curve(
        squeezed, [1.0, 0.0], direction=[0.0, 1.0], lower=[-10, -1e-5], upper=[10, 1e-5], scale=[1.0, 1e-6]
    )
    np.testing.assert_allclose(small.points * [1.0, 1e6], plain.points, atol=1e-12)


# --- why a curve ends


def test_the_edge_is_met_exactly():
    box = {**WIDE, "upper": [10.0, 0.5]}
    curve = continue_curve(circle, [1.0, 0.0], direction=[0.0, 1.0], **box)
    assert curve.ending is Ending.EDGE
    np.testing.assert_allclose(curve.points[-1], [math.sqrt(0.75), 0.5], rtol=1e-12)


def test_a_start_on_the_edge_that_leads_out_is_one_point():
    box = {**WIDE, "upper": [10.0, 0.0]}
    curve = continue_curve(circle, [1.0, 0.0], direction=[0.0, 1.0], **box)
    assert curve.ending is Ending.EDGE
    assert curve.points.shape == (1, 2)
    inwards = continue_curve(circle, [1.0, 0.0], direction=[0.0, -1.0], **box)
    np.testing.assert_allclose(inwards.points[-1], [-1.0, 0.0], atol=1e-9)


def test_enough_points_end_a_curve():
    curve = continue_curve(circle, [1.0, 0.0], direction=[0.0, 1.0], steps=Steps(num_points=7), **WIDE)
    assert curve.ending is Ending.POINTS
    assert len(curve.points) == 7


def test_equations_that_stop_being_numbers_end_a_curve_at_the_last_point_before():
    def broken(point):
        residual, jacobian = circle(point)
        return (residual if point[1] < 0.5 else residual * np.nan), jacobian

    curve = continue_curve(broken, [1.0, 0.0], direction=[0.0, 1.0], **WIDE)
    assert curve.ending is Ending.STEP
    assert 0.5 - 1e-6 < curve.points[-1, 1] < 0.5


def test_a_corner_ends_a_curve():
    """|x| = p has no tangent at its corner: the turn is too sharp for any step."""

    def corner(point):
        return np.array([abs(point[0]) - point[1]]), np.array([[np.sign(point[0]), -1.0]])

    curve = continue_curve(corner, [1.0, 1.0], direction=[-1.0, 0.0], **WIDE)
    assert curve.ending is Ending.STEP
    assert abs(curve.points[-1, 0]) < 1e-5


def test_every_ending_and_kind_explains_itself():
    for member in (*Ending, *Kind):
        assert member.sentence.endswith(".")


# --- what cannot be used


def test_a_start_that_is_no_start_is_refused():
    with pytest.raises(InputError, match="start must lie near the curve, got"):
        continue_curve(lambda point: (circle(point)[0] * np.nan, circle(point)[1]), [1, 0], direction=[0, 1], **WIDE)
    with pytest.raises(InputError, match=r"start must lie in the box, got .* Widen lower and upper"):
        continue_curve(circle, [1.0, 0.0], direction=[0.0, 1.0], **{**WIDE, "upper": [0.5, 1.0]})
    with pytest.raises(InputError, match="scale must be positive and finite"):
        continue_curve(circle, [1.0, 0.0], direction=[0.0, 1.0], **{**WIDE, "scale": [0.0, 1.0]})


def test_the_tolerance_is_met():
    curve = continue_curve(circle, [1.01, 0.0], direction=[0.0, 1.0], steps=Steps(num_points=2), **WIDE)
    assert abs(curve.points[0, 0] - 1.0) < TOLERANCE
