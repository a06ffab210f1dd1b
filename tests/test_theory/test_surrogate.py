"""The enumerated surrogate against plain loops over all groups; its bias, curvature and bound; a real learner."""

import itertools
import re

import numpy as np
import pytest
import torch

from tests.support.tolerances import CLOSED_FORM
from theory.checks.bound import sampled_run
from theory.checks.surrogate import fitted_order
from theory.errors import InputError
from theory.surrogate import ratios
from theory.surrogate.bound import bias_constants
from theory.surrogate.curvature import cross_token_curvature, curvature, reward_hessian
from theory.surrogate.exact import Clip, Surrogate
from theory.surrogate.groups import Groups, mean_and_std, mean_only, reward_only
from theory.surrogate.policies import TabularPolicy
from theory.surrogate.split import bias_split
from theory.surrogate.trajectories import run_grpo, sampled_gradient
from validation.rollouts import group_advantages
from validation.surrogate import importance_ratio, surrogate

DIFFERENCE = 1e-8
"""A central difference of J over 2e-6: rounding of 1e-16 over the step, and the square of the step."""
SLOPE = 0.02
POLICIES = (TabularPolicy.per_position, TabularPolicy.per_prefix, TabularPolicy.markov)
LEVELS = (ratios.token, ratios.sequence, ratios.sequence_product)
ADVANTAGES = (reward_only, mean_only, mean_and_std)
LAGS = np.geomspace(1e-3, 1e-2, 5)


def make(policy, *, advantage=mean_only, level=ratios.token, clip=None, group_size=4, num_levels=3, seed=0):
    rewards = np.random.default_rng(seed).integers(0, num_levels, len(policy.tokens)).astype(float)
    return Surrogate(policy, rewards, Groups(advantage, group_size), level, clip)


def draw(policy, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=policy.shape), 0.3 * rng.normal(size=policy.shape)


def plain_softmax(row):
    weights = [np.exp(value) for value in row]
    return [weight / sum(weights) for weight in weights]


def plain_value(made, theta, b):
    """J by its definition: every group of G sequences, every ratio, one at a time; only the tables are shared."""
    policy, size = made.policy, made.groups.group_size
    token_p = [
        [
            [plain_softmax(table[c])[v] for c, v in zip(*row, strict=True)]
            for row in zip(policy.contexts, policy.tokens, strict=True)
        ]
        for table in (theta, b)
    ]
    chance = [np.prod(row) for row in token_p[1]]
    total = 0.0
    for group in itertools.product(range(len(chance)), repeat=size):
        rewards = np.array([made.rewards[one] for one in group])
        spread = rewards.std(ddof=1)
        for one, reward in zip(group, rewards, strict=True):
            advantage = reward
            if made.groups.advantage is not reward_only:
                advantage = reward - rewards.mean()
            if made.groups.advantage is mean_and_std:
                advantage = advantage / spread if spread > 0 else 0.0
            quotients = [p / q for p, q in zip(token_p[0][one], token_p[1][one], strict=True)]
            product = np.prod(quotients)
            used = {
                ratios.token: quotients,
                ratios.sequence: [product ** (1 / len(quotients))],
                ratios.sequence_product: [product],
            }[made.level]
            terms = []
            for r in used:
                clipped = r if made.clip is None else min(max(r, 1 - made.clip.low), 1 + made.clip.high)
                terms.append(min(r * advantage, clipped * advantage))
            total += np.prod([chance[other] for other in group]) * np.mean(terms) / size
    return total


@pytest.mark.parametrize("clip", [None, Clip(0.1, 0.15)], ids=["free", "clipped"])
@pytest.mark.parametrize("level", LEVELS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("advantage", ADVANTAGES, ids=lambda one: one.__name__)
def test_the_surrogate_is_the_sum_over_all_groups(advantage, level, clip):
    policy = TabularPolicy.per_prefix(2, 2)
    made = make(policy, advantage=advantage, level=level, clip=clip, group_size=3)
    theta, move = draw(policy)
    assert made.value(theta, theta - move) == pytest.approx(plain_value(made, theta, theta - move), rel=CLOSED_FORM)


@pytest.mark.parametrize("clip", [None, Clip(0.2, 0.28)], ids=["free", "clipped"])
@pytest.mark.parametrize("level", LEVELS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("advantage", ADVANTAGES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", POLICIES, ids=lambda one: one.__name__)
def test_both_derivatives_are_differences_of_the_surrogate(kind, advantage, level, clip):
    policy = kind(3, 3)
    made = make(policy, advantage=advantage, level=level, clip=clip)
    theta, move = draw(policy)
    b, (_, direction), h = theta - move, draw(policy, 5), 1e-6
    by_theta = (made.value(theta + h * direction, b) - made.value(theta - h * direction, b)) / (2 * h)
    by_b = (made.value(theta, b + h * direction) - made.value(theta, b - h * direction)) / (2 * h)
    assert (made.learner_gradient(theta, b) * direction).sum() == pytest.approx(by_theta, abs=DIFFERENCE)
    assert (made.behavior_gradient(theta, b) * direction).sum() == pytest.approx(by_b, abs=DIFFERENCE)


@pytest.mark.parametrize("group_size", [2, 5])
def test_groups_of_two_take_any_rewards_and_larger_ones_few(group_size):
    policy = TabularPolicy.per_position(3, 2)
    made = Surrogate(policy, np.random.default_rng(0).normal(size=9), Groups(mean_and_std, 2), ratios.token)
    theta, _ = draw(policy)
    plus, minus = made.parts(theta)
    assert np.all(plus + minus <= 1 / np.sqrt(2) + CLOSED_FORM)  # in a group of 2 an advantage is +-1/sqrt(2) or 0
    assert policy.probabilities(theta) @ (plus - minus) == pytest.approx(0.0, abs=CLOSED_FORM)


def test_the_parts_add_to_the_bias_and_a_single_token_misses_no_ratio():
    policy = TabularPolicy.per_prefix(3, 3)
    made = make(policy, advantage=mean_and_std, clip=Clip(0.2, 0.2))
    theta, move = draw(policy)
    bias = made.learner_gradient(theta, theta - move) - made.learner_gradient(theta, theta)
    split = bias_split(made, theta, theta - move)
    np.testing.assert_allclose(split.total, bias, atol=1e-15)
    assert min(np.linalg.norm(part) for part in (split.ratios, split.normalisation, split.clip)) > 1e-3
    single = make(TabularPolicy.per_position(4, 1), advantage=mean_and_std)
    theta, move = draw(single.policy)
    assert np.linalg.norm(bias_split(single, theta, theta - move).ratios) < 1e-15


@pytest.mark.parametrize("seed", range(4))
def test_token_and_normalisation_part_are_of_first_order_in_the_interval_times_the_rate(seed):
    """S - 1 plain steps along the learner's own gradient: the distance is (S - 1)*eta*|g|, so lag and S*eta agree."""
    policy = TabularPolicy.markov(4, 3)
    made = make(policy, advantage=mean_and_std, seed=seed)
    theta, _ = draw(policy, seed)
    drift = made.learner_gradient(theta, theta)
    splits = [bias_split(made, theta, theta - product * drift / np.linalg.norm(drift)) for product in LAGS]
    for part in ("ratios", "normalisation"):
        sizes = np.array([np.linalg.norm(getattr(split, part)) for split in splits])
        assert fitted_order(sizes) == pytest.approx(1.0, abs=SLOPE)


def test_the_surrogate_is_continuous_where_its_gradient_jumps():
    policy = TabularPolicy.per_position(3, 3)
    made = make(policy, clip=Clip(0.2, 0.2))
    theta, move = draw(policy)
    lags = np.linspace(0.0, 3.0, 2001)
    values = np.array([made.value(theta, theta - x * move) for x in lags])
    clipped = np.array([np.linalg.norm(bias_split(made, theta, theta - x * move).clip) for x in lags])
    reach = np.array([np.abs(made.log_ratios(theta, theta - x * move)).max() for x in lags])
    assert np.all(clipped[reach < np.log(1.2)] == 0.0)
    assert clipped.max() > 0.01
    assert np.abs(np.diff(values)).max() < 20 * np.abs(np.diff(values)).mean()
    assert np.diff(clipped).max() > 100 * np.median(np.abs(np.diff(clipped)))


def test_the_stale_share_of_the_curvature_grows_with_the_length():
    """Median over 20 random joint rewards and policies of two symbols: 0.49, 0.88 and 0.91 for 2, 4 and 6 tokens."""
    medians = []
    for length in (2, 4, 6):
        shares = []
        for seed in range(20):
            policy = TabularPolicy.per_position(2, length)
            rng = np.random.default_rng(seed)
            rewards = rng.normal(size=len(policy.tokens)).round()
            token = Surrogate(policy, rewards, Groups(mean_only, 2), ratios.token)
            theta = rng.normal(size=policy.shape)
            shares.append(curvature(token, theta).stale_share)
            product = Surrogate(policy, rewards, Groups(mean_only, 2), ratios.sequence_product)
            assert curvature(product, theta).stale_share < CLOSED_FORM
        medians.append(np.median(shares))
    assert 0.4 < medians[0] < 0.7 < medians[1] < medians[2] < 1.0


def test_rows_that_are_shared_leave_stale_curvature_on_the_diagonal_blocks():
    policy = TabularPolicy.markov(3, 3)
    made = make(policy)
    theta, _ = draw(policy)
    block = np.kron(np.eye(policy.shape[0]), np.ones((3, 3)))
    stale = curvature(made, theta).stale
    assert np.linalg.norm(stale * block) > 0.01 * np.linalg.norm(stale)
    gain = (1 - 1 / made.groups.group_size) / policy.length
    np.testing.assert_allclose(stale, gain * cross_token_curvature(made, theta), atol=1e-14)


def test_the_geometric_mean_keeps_all_but_one_share_of_the_score_products_stale():
    """H_b = (1 - 1/L)*gain*E[R s s^T], s the score of the sequence: products of a token with itself are in it too."""
    policy = TabularPolicy.markov(3, 3)
    made = make(policy, level=ratios.sequence)
    theta, _ = draw(policy)
    score = policy.scores(theta).sum(axis=1)
    centred = made.rewards - made.expected_reward(theta)
    products = np.einsum("n,np,nq->pq", policy.probabilities(theta) * centred, score, score)
    gain = (1 - 1 / made.groups.group_size) / policy.length
    np.testing.assert_allclose(curvature(made, theta).stale, gain * (1 - 1 / 3) * products, atol=1e-14)


def test_division_by_the_spread_makes_the_exact_ratio_stale_away_from_a_stationary_point_only():
    policy = TabularPolicy.per_position(2, 2)
    parity = Surrogate(policy, np.array([0.0, 1.0, 1.0, 0.0]), Groups(mean_and_std, 4), ratios.sequence_product)
    stationary = np.zeros(policy.shape)
    assert np.linalg.norm(parity.reward_gradient(stationary)) < 1e-15
    assert curvature(parity, stationary).stale_share < CLOSED_FORM
    elsewhere, _ = draw(policy)
    stale = curvature(parity, elsewhere).stale
    assert np.linalg.matrix_rank(stale, tol=1e-10) == 1


def test_the_hessian_is_symmetric_and_zero_for_a_constant_reward():
    policy = TabularPolicy.per_prefix(2, 3)
    theta, _ = draw(policy)
    hessian = reward_hessian(make(policy), theta)
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-15)
    constant = Surrogate(policy, np.ones(8), Groups(mean_only, 2), ratios.token)
    assert np.abs(reward_hessian(constant, theta)).max() < 1e-15


@pytest.mark.parametrize("kind", POLICIES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("advantage", [mean_only, mean_and_std], ids=lambda one: one.__name__)
@pytest.mark.parametrize("rate", [1e-3, 1e-2, 1e-1])
def test_the_bound_is_never_violated_along_sampled_runs(kind, advantage, rate):
    """It is loose: 80 to 500 times at rates up to 0.01, more at larger ones, where the radius enters exponentially."""
    run = sampled_run(kind(3, 3), advantage, learning_rate=rate, seed=1)
    share = run.bias[run.lag > 0] / run.bound
    assert np.all(share <= 1.0)
    assert np.all(share > 0.0)
    assert run.bias[run.lag == 0].max() == 0.0


@pytest.mark.parametrize("advantage", [mean_only, mean_and_std], ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", POLICIES, ids=lambda one: one.__name__)
def test_the_constants_bound_what_they_name(kind, advantage):
    """Gradient of a sample, total variation, and movement of that gradient with all else and with advantages fixed.

    None is more than ten times too large for centred advantages, so a constant that lost a part would be seen.
    """
    policy = kind(2, 2)
    made = make(policy, advantage=advantage)
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(300):
        theta, direction = 2 * rng.normal(size=policy.shape), rng.normal(size=policy.shape)
        distance = rng.uniform(0.01, 0.1)
        b = theta - distance * direction / np.linalg.norm(direction)
        constants = bias_constants(made, distance)
        variation = 0.5 * np.abs(policy.probabilities(theta) - policy.probabilities(b)).sum()
        integrands = []
        for behavior in (b, theta):
            plus, minus = made.parts(behavior)
            weights = (plus - minus)[:, None] * np.exp(made.log_ratios(theta, behavior)) / policy.length
            integrands.append(np.einsum("nt,ntp->np", weights, policy.scores(theta)))
        moved = np.linalg.norm(integrands[0] - integrands[1], axis=1).max()
        shares.append(
            (
                np.linalg.norm(integrands[0], axis=1).max() / constants.gradient_bound,
                variation / constants.distribution_smoothness / distance,
                moved / constants.integrand_smoothness / distance,
            )
        )
    largest = np.max(shares, axis=0)
    assert np.all(largest <= 1.0)
    assert advantage is mean_and_std or np.all(largest > 0.1)


def test_sampled_gradients_average_to_the_exact_one():
    """4,000 batches; each cell within 4.5 standard errors, which fails by chance once in 10,000 runs of this test."""
    policy = TabularPolicy.per_position(3, 2)
    made = make(policy, advantage=mean_and_std)
    theta, move = draw(policy)
    rng = np.random.default_rng(3)
    batches = np.stack([sampled_gradient(made, theta, theta - move, 4, rng) for _ in range(4000)])
    error = batches.mean(axis=0) - made.learner_gradient(theta, theta - move)
    assert np.all(np.abs(error) <= 4.5 * batches.std(axis=0) / np.sqrt(len(batches)))


def test_it_is_the_surrogate_of_the_real_learner():
    """The same batch through the learner's own advantages and surrogate, gradient by autograd in float64."""
    policy = TabularPolicy.markov(3, 3)
    made = make(policy)
    theta, move = draw(policy)
    b = theta - move
    drawn = np.random.default_rng(7).choice(27, size=(6, 4), p=policy.probabilities(b))
    mine = sampled_gradient(made, theta, b, 6, np.random.default_rng(7))
    logits = torch.tensor(theta, requires_grad=True)
    sequences = torch.as_tensor(drawn.ravel())
    table = logits.log_softmax(dim=-1)
    logp = table[torch.as_tensor(policy.contexts[drawn.ravel()]), torch.as_tensor(policy.tokens[drawn.ravel()])]
    recorded = torch.as_tensor(policy.token_logp(b))[sequences]
    advantages = group_advantages(torch.as_tensor(made.rewards[drawn])[None], scale_rewards=False).reshape(1, -1)
    ratio = importance_ratio(logp[None], recorded[None], level="token")
    surrogate(ratio, advantages, epsilon=None).sum().backward()
    np.testing.assert_allclose(mine, logits.grad.numpy(), atol=1e-15)


def test_a_group_of_equal_rewards_has_no_advantage_whatever_the_rounding():
    """Three times 0.1 over three is not 0.1 in floats; fractions say 0.115 for the negative part."""
    _, minus = Groups(mean_and_std, 3).parts(np.array([0.1, 0.7]), np.array([0.9, 0.1]))
    alone, pair = 2 * 0.9 * 0.1 * 1 / np.sqrt(3), 0.1**2 * 2 / np.sqrt(3)
    assert minus[0] == pytest.approx(alone + pair, rel=CLOSED_FORM)
    for size in (3, 6, 7):
        assert Groups(mean_and_std, size).parts(np.array([0.1]), np.array([1.0])) == ([0.0], [0.0])


def test_a_run_without_lag_has_no_bias_and_no_bound_to_hold():
    made = make(SMALL)
    run = run_grpo(
        made,
        np.zeros((2, 2)),
        sync_interval=1,
        learning_rate=0.1,
        num_steps=3,
        num_groups=2,
        generator=np.random.default_rng(0),
    )
    assert run.bias.tolist() == [0.0, 0.0, 0.0]
    assert run.bound.size == 0


SMALL = TabularPolicy.per_position(2, 2)
BAD = [
    (lambda: TabularPolicy.per_prefix(1, 3), "vocabulary must be a whole number >= 2, got 1."),
    (lambda: TabularPolicy.per_prefix(4, 7), "vocabulary**length must be at most 4096, got 16384."),
    (lambda: SMALL.probabilities(np.zeros((2, 3))), "parameters must be finite logits of shape (2, 2), got (2, 3)."),
    (lambda: Groups(mean_only, 1), "group_size must be a whole number from 2 to 1000, got 1."),
    (lambda: Clip(0.2, -0.1), "high must be positive, got -0.1."),
    (lambda: Clip(1.0, 0.2), "low must be between 0 and 1, got 1.0."),
    (lambda: Surrogate(SMALL, np.ones(3), Groups(mean_only, 2), ratios.token), "rewards must be finite, of shape (4,)"),
    (lambda: bias_constants(make(SMALL, level=ratios.sequence), 0.1), "surrogate must be at token level"),
    (lambda: bias_constants(make(SMALL), -1.0), "radius must be from 0 to 100.0, got -1.0."),
    (
        lambda: Groups(mean_only, 60).parts(np.arange(5.0), np.full(5, 0.2)),
        "group_size must leave at most 200000 ways to fall over 5 reward levels, got 60.",
    ),
    (
        lambda: run_grpo(
            make(SMALL),
            np.zeros((2, 2)),
            sync_interval=0,
            learning_rate=0.1,
            num_steps=1,
            num_groups=1,
            generator=np.random.default_rng(0),
        ),
        "sync_interval must be an integer >= 1, got 0.",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message.split(" ")[0] for _, message in BAD])
def test_bad_input_names_rule_and_value(call, message):
    with pytest.raises(InputError, match=re.escape(message)):
        call()
