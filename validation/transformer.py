"""A small decoder-only transformer, evaluated for many runs at once.

It reads the prompt, a separator and the completed tokens: learned token and position embeddings, pre-norm blocks of
causal attention and a ReLU network of four times the width, a last norm and a linear head. Left out on purpose:
biases, and gains of the RMS norms, which the next weight can absorb.

Samples come last in memory, so that every sum over features or positions is vectorized over samples and every run's
part of a tensor starts at a multiple of 64 bytes when N and `hidden_size` are multiples of 16. Then a run has the same
bits beside any other runs. For the same reason no sum runs over two dimensions at once.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from theory.errors import InputError
from validation.policy import Parameters

# R runs, N samples, L tokens, l completed tokens, V symbols, S input symbols (V and the separator), H hidden units,
# A heads, D units of a head, T positions of the input, Q last positions that are asked for, M = Q*N or T*N.
_NORM_FLOOR = 1e-5
_MLP_FACTOR = 4


@dataclass(frozen=True)
class Transformer:
    """Sizes of the network. Weights multiply from the left, as in torch.nn.Linear: y_HM = w_HH x_HM."""

    num_symbols: int
    length: int
    hidden_size: int
    num_layers: int
    num_heads: int

    def __post_init__(self) -> None:
        if self.num_heads < 1 or self.hidden_size % self.num_heads:
            rule = f"be a divisor of hidden_size, which is {self.hidden_size}"
            raise InputError("num_heads", rule, self.num_heads, "For one head as wide as the network use 1.")

    def initial_parameters(self, generator: torch.Generator) -> Parameters:
        """Random weights for one run (R = 1): normal with variance 1 / number of inputs, embeddings with variance 1.

        What a block adds to its input starts smaller by the root of the number of such sums, two per layer.
        """
        H, branch = self.hidden_size, 1 / math.sqrt(2 * self.num_layers)
        shapes = {"token": (H, self.num_symbols + 1, 1.0), "position": (H, 2 * self.length, 1.0)}
        for layer in range(self.num_layers):
            shapes[f"query{layer}"] = (H, H, 1 / math.sqrt(H))
            shapes[f"key_value{layer}"] = (2 * H, H, 1 / math.sqrt(H))
            shapes[f"out{layer}"] = (H, H, branch / math.sqrt(H))
            shapes[f"up{layer}"] = (_MLP_FACTOR * H, H, 1 / math.sqrt(H))
            shapes[f"down{layer}"] = (H, _MLP_FACTOR * H, branch / math.sqrt(_MLP_FACTOR * H))
        shapes["head"] = (self.num_symbols, H, 1 / math.sqrt(H))
        return {name: std * torch.randn(1, a, b, generator=generator) for name, (a, b, std) in shapes.items()}

    def next_logits(self, parameters: Parameters, prompts_RNL: Tensor, completed_RNl: Tensor) -> Tensor:
        """Logits of the token that follows the completed ones (l = 0 to L - 1 of them), shape (R, N, V)."""
        logits_RVQN = self._last_logits(parameters, self._inputs(prompts_RNL, completed_RNl), 1)
        return logits_RVQN.squeeze(2).transpose(1, 2).contiguous()

    def log_probabilities(self, parameters: Parameters, prompts_RNL: Tensor, completions_RNL: Tensor) -> Tensor:
        """Log-probabilities [nat] of all symbols at every token of given completions, shape (R, N, L, V)."""
        inputs_RTN = self._inputs(prompts_RNL, completions_RNL[..., :-1])
        logits_RVQN = self._last_logits(parameters, inputs_RTN, self.length)
        return logits_RVQN.log_softmax(dim=1).permute(0, 3, 2, 1).contiguous()

    def _inputs(self, prompts_RNL: Tensor, completed_RNl: Tensor) -> Tensor:
        """Prompt, separator and completed tokens, shape (R, T, N)."""
        separator_RN1 = torch.full_like(prompts_RNL[..., :1], self.num_symbols)
        return torch.cat((prompts_RNL, separator_RN1, completed_RNl), dim=-1).transpose(1, 2).contiguous()

    def _last_logits(self, parameters: Parameters, inputs_RTN: Tensor, num_last: int) -> Tensor:
        """Logits at the last positions, shape (R, V, Q, N). The last block answers for those positions alone."""
        x_RHTN = _embed(parameters["token"], parameters["position"], inputs_RTN)
        for layer in range(self.num_layers):
            num_queries = num_last if layer == self.num_layers - 1 else inputs_RTN.shape[1]
            x_RHTN = self._block(parameters, layer, x_RHTN, num_queries)
        return _dense(parameters["head"], _norm(x_RHTN[:, :, -num_last:]))

    def _block(self, parameters: Parameters, layer: int, x_RHTN: Tensor, num_queries: int) -> Tensor:
        """Attention and feed-forward network at the last `num_queries` positions, shape (R, H, Q, N)."""
        normed_RHTN = _norm(x_RHTN)
        heads = (self.num_heads, self.hidden_size // self.num_heads)
        query_RADQN = _dense(parameters[f"query{layer}"], normed_RHTN[:, :, -num_queries:]).unflatten(1, heads)
        key_RADTN, value_RADTN = (
            _dense(parameters[f"key_value{layer}"], normed_RHTN).unflatten(1, (2, *heads)).unbind(1)
        )
        mixed_RHQN = _attention(query_RADQN, key_RADTN, value_RADTN).flatten(1, 2)
        x_RHQN = x_RHTN[:, :, -num_queries:] + _dense(parameters[f"out{layer}"], mixed_RHQN)
        active_RHQN = torch.relu(_dense(parameters[f"up{layer}"], _norm(x_RHQN)))
        return x_RHQN + _dense(parameters[f"down{layer}"], active_RHQN)


def _embed(token_RHS: Tensor, position_RHT: Tensor, inputs_RTN: Tensor) -> Tensor:
    """Sum of the embeddings of token and position, shape (R, H, T, N)."""
    symbols_S = torch.arange(token_RHS.shape[2])
    one_hot_RSTN = (inputs_RTN.unsqueeze(1) == symbols_S[:, None, None]).to(torch.float32)
    return _dense(token_RHS, one_hot_RSTN) + position_RHT[:, :, : inputs_RTN.shape[1], None]


def _dense(weight: Tensor, x_RHTN: Tensor) -> Tensor:
    """Every run's own weight, shape (R, outputs, H), times its features at all positions of all samples."""
    return torch.bmm(weight, x_RHTN.flatten(2)).view(*weight.shape[:2], *x_RHTN.shape[2:])


def _norm(x_RHTN: Tensor) -> Tensor:
    """Divide by the root mean square over features."""
    return x_RHTN * (x_RHTN.square().mean(dim=1, keepdim=True) + _NORM_FLOOR).rsqrt()


def _attention(query_RADQN: Tensor, key_RADTN: Tensor, value_RADTN: Tensor) -> Tensor:
    """Causal attention of the last Q of T positions, shape (R, A, D, Q, N), as products of whole vectors of samples.

    Position T - Q + q sees the positions up to itself. A masked weight is exactly zero.
    """
    D, Q, T = query_RADQN.shape[2], query_RADQN.shape[3], key_RADTN.shape[3]
    scores_RAQTN = (query_RADQN.unsqueeze(4) * key_RADTN.unsqueeze(3)).sum(dim=2) / math.sqrt(D)
    future_QT = torch.full((Q, T), -math.inf).triu(1 + T - Q)
    weights_RAQTN = (scores_RAQTN + future_QT.unsqueeze(-1)).softmax(dim=3)
    return (weights_RAQTN.unsqueeze(2) * value_RADTN.unsqueeze(3)).sum(dim=4)
