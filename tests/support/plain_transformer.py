"""The slow, obvious twin of the batched transformer: one run, the whole sequence, torch's own parts."""

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear, rms_norm, scaled_dot_product_attention

from validation.transformer import Transformer


def plain_log_probabilities(
    model: Transformer, weights: dict[str, Tensor], prompts: Tensor, completions: Tensor
) -> Tensor:
    """Log-probabilities of given completions, shape (N, L, V), from the weights of one run without a run axis."""
    N, L = completions.shape
    separator = torch.full((N, 1), model.num_symbols)
    tokens = torch.cat((prompts, separator, completions[:, :-1]), dim=1)
    x = embedding(tokens, weights["token"].T) + weights["position"].T
    for layer in range(model.num_layers):
        query = linear(_norm(x), weights[f"query{layer}"])
        key, value = linear(_norm(x), weights[f"key_value{layer}"]).chunk(2, dim=-1)
        heads = [part.unflatten(-1, (model.num_heads, -1)).transpose(1, 2) for part in (query, key, value)]
        mixed = scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(-2)
        x = x + linear(mixed, weights[f"out{layer}"])
        x = x + linear(torch.relu(linear(_norm(x), weights[f"up{layer}"])), weights[f"down{layer}"])
    return linear(_norm(x), weights["head"])[:, L:].log_softmax(dim=-1)


def _norm(x: Tensor) -> Tensor:
    return rms_norm(x, x.shape[-1:], eps=1e-5)
