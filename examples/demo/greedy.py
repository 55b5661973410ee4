"""Greedy decoding: the most probable token, again and again. Knows no model."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

# Maps new tokens [1, n] to the logits [vocabulary] of the token after them.
NextLogits = Callable[[Tensor], Tensor]


def forbid(tokens: list[int], *, vocabulary: int, device: torch.device) -> Tensor:
    """What to add to logits so that none of `tokens` can win."""
    bias = torch.zeros(vocabulary)
    bias[tokens] = -torch.inf
    return bias.to(device)


def greedy(
    next_logits: NextLogits,
    prompt: Tensor,
    *,
    max_new_tokens: int,
    end_token: int,
    bias: Tensor | None = None,
    first_bias: Tensor | None = None,
) -> list[int]:
    """The tokens after `prompt` [1, n], without the end token.

    Args:
        next_logits: the model with its cache; it sees each token once.
        bias: added to the logits of every step.
        first_bias: added to the logits of the first step as well.
    """
    tokens: list[int] = []
    fed = prompt
    for step in range(max_new_tokens):
        logits = next_logits(fed).float()
        if bias is not None:
            logits = logits + bias
        if first_bias is not None and step == 0:
            logits = logits + first_bias
        best = logits.argmax()
        token = int(best)
        if token == end_token:
            break
        tokens.append(token)
        fed = best.view(1, 1)
    return tokens
