"""The GRPO surrogate in plain torch: the definition that every faster version must match."""

import torch
from torch import Tensor

from validation.policy import mean_per_run

# R runs, N samples, L tokens.


def surrogate(logp_RNL: Tensor, behavior_logp_RNL: Tensor, advantages_RN: Tensor, *, epsilon: float | None) -> Tensor:
    """Token-level surrogate to be maximised, shape (R,) [1]: the mean over tokens of min(r A, clip(r, 1-eps, 1+eps) A).

    r = exp(logp - behaviour logp) per token, against the log-probabilities *recorded* by the behaviour policy when it
    sampled. With `epsilon` None there is no clip and the token's term is r A. All completions have the same length, so
    the mean over tokens is the mean over completions of GRPO.

    Source: GRPO, arXiv:2402.03300, section 4.1, without its KL term; the clip is PPO's, arXiv:1707.06347, equation 7.
    """
    ratio_RNL = (logp_RNL - behavior_logp_RNL).exp()
    advantages_RN1 = advantages_RN.unsqueeze(-1)
    terms_RNL = ratio_RNL * advantages_RN1
    if epsilon is not None:
        terms_RNL = torch.minimum(terms_RNL, ratio_RNL.clamp(1 - epsilon, 1 + epsilon) * advantages_RN1)
    return terms_RNL.mean(dim=(1, 2))


def ratio_metrics(
    logp_RNL: Tensor, behavior_logp_RNL: Tensor, advantages_RN: Tensor, *, epsilon: float | None
) -> dict[str, Tensor]:
    """Distance between learner and behaviour policy on the batch, each of shape (R,).

    `drift` [nat]: root mean square log-ratio. `behavior_k3` [nat]: mean of r - 1 - log r. `clip_fraction` [1]: share
    of tokens whose gradient the clip removes (r > 1+eps with A > 0, or r < 1-eps with A < 0); NaN without a clip.
    """
    log_ratio_RNL = logp_RNL - behavior_logp_RNL
    ratio_RNL = log_ratio_RNL.exp()
    if epsilon is None:
        clip_fraction_R = torch.full(logp_RNL.shape[:1], torch.nan)
    else:
        advantages_RN1 = advantages_RN.unsqueeze(-1)
        above = (ratio_RNL > 1 + epsilon) & (advantages_RN1 > 0)
        below = (ratio_RNL < 1 - epsilon) & (advantages_RN1 < 0)
        clip_fraction_R = mean_per_run((above | below).to(torch.float32))
    return {
        "drift": mean_per_run(log_ratio_RNL.square()).sqrt(),
        "behavior_k3": mean_per_run(ratio_RNL - 1 - log_ratio_RNL),
        "clip_fraction": clip_fraction_R,
    }
