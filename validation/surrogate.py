"""The GRPO surrogate in plain torch: the definition that every faster version must match."""

from collections.abc import Callable

import torch
from torch import Tensor

from validation.policy import mean_per_run

# R runs, N samples, L tokens, K ratios of a completion: L of them at the level of tokens, else 1.


def _token(log_ratio_RNL: Tensor) -> Tensor:
    return log_ratio_RNL


def _sequence(log_ratio_RNL: Tensor) -> Tensor:
    return log_ratio_RNL.mean(dim=-1, keepdim=True)


def _sequence_product(log_ratio_RNL: Tensor) -> Tensor:
    return log_ratio_RNL.sum(dim=-1, keepdim=True)


_LEVELS: dict[str, Callable[[Tensor], Tensor]] = {
    "token": _token,
    "sequence": _sequence,
    "sequence_product": _sequence_product,
}


def importance_ratio(logp_RNL: Tensor, behavior_logp_RNL: Tensor, *, level: str) -> Tensor:
    """Ratio r of learner to behaviour policy, shape (R, N, K) [1], against the *recorded* behaviour log-probabilities.

    "token": one per token. "sequence": one per completion, the geometric mean of its tokens' (GSPO, arXiv:2507.18071,
    equation 7; TRL's name). "sequence_product": their product, the importance weight of the whole completion.
    """
    return _LEVELS[level](logp_RNL - behavior_logp_RNL).exp()


def surrogate(ratio_RNK: Tensor, advantages_RN: Tensor, *, epsilon: float | None) -> Tensor:
    """Surrogate to be maximised, shape (R,) [1]: the mean over ratios of min(r A, clip(r, 1-eps, 1+eps) A).

    With `epsilon` None there is no clip and the term is r A. All completions have the same length, so the mean over
    tokens is the mean over completions of GRPO.

    Source: GRPO, arXiv:2402.03300, section 4.1, without its KL term; the clip is PPO's, arXiv:1707.06347, equation 7.
    """
    advantages_RN1 = advantages_RN.unsqueeze(-1)
    terms_RNK = ratio_RNK * advantages_RN1
    if epsilon is not None:
        terms_RNK = torch.minimum(terms_RNK, ratio_RNK.clamp(1 - epsilon, 1 + epsilon) * advantages_RN1)
    return terms_RNK.mean(dim=(1, 2))


def clip_fraction(ratio_RNK: Tensor, advantages_RN: Tensor, *, epsilon: float | None) -> Tensor:
    """Share of ratios whose gradient the clip removes, shape (R,) [1]; NaN without a clip.

    Those are r > 1+eps with A > 0, and r < 1-eps with A < 0.
    """
    if epsilon is None:
        return torch.full(ratio_RNK.shape[:1], torch.nan)
    advantages_RN1 = advantages_RN.unsqueeze(-1)
    above = (ratio_RNK > 1 + epsilon) & (advantages_RN1 > 0)
    below = (ratio_RNK < 1 - epsilon) & (advantages_RN1 < 0)
    return mean_per_run((above | below).to(torch.float32))


def drift_metrics(logp_RNL: Tensor, behavior_logp_RNL: Tensor) -> dict[str, Tensor]:
    """Distance between learner and behaviour policy on the batch, each of shape (R,).

    `drift` [nat]: root mean square log-ratio of a token. `behavior_k3` [nat]: mean of r - 1 - log r over tokens.
    `effective_sample_size` [1]: (sum w)^2 / (N sum w^2) with w the product of the ratios of a completion, as a share of
    the N completions.
    """
    log_ratio_RNL = logp_RNL - behavior_logp_RNL
    log_weight_RN = log_ratio_RNL.sum(dim=-1)
    weight_RN = (log_weight_RN - log_weight_RN.amax(dim=1, keepdim=True)).exp()
    return {
        "drift": mean_per_run(log_ratio_RNL.square()).sqrt(),
        "behavior_k3": mean_per_run(log_ratio_RNL.exp() - 1 - log_ratio_RNL),
        "effective_sample_size": mean_per_run(weight_RN).square() / mean_per_run(weight_RN.square()),
    }
