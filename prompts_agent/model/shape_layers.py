"""From a flat list of weights to one layer's weights, and how many layers there are.

Layers are stacked under `lax.scan` (a dim of their number, first or second) or lie side by side.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prompts_agent.model.shape_names import Role, layer_index, pattern, role_of

__all__ = ["LayerShapes", "Weight", "split_layers"]


@dataclass(frozen=True)
class Weight:
    """A weight matrix; `count` of them are in a layer, or outside of the layers."""

    tokens: tuple[str, ...]
    dims: tuple[int, ...]
    count: int = 1

    @property
    def role(self) -> Role | None:
        """What its name says."""
        return role_of(self.tokens)

    @property
    def size(self) -> int:
        """Elements of all `count`."""
        return math.prod(self.dims) * self.count


@dataclass(frozen=True)
class LayerShapes:
    """`inside`: one layer's weights, the layer dim taken off; `outside`: tables and heads.

    `vectors` are norms and biases that were stacked; others have rank 1 and never come here.
    """

    layers: int
    inside: tuple[Weight, ...]
    outside: tuple[Weight, ...]
    vectors: tuple[Weight, ...] = ()


_TABLES = {Role.EMBEDDING, Role.HEAD, Role.POSITIONS}
# Tables outside of the layers: token table, output projection, positions.
_MOST_OUTSIDE = 3
_MOST_LAYERS = 1000


def split_layers(weights: Sequence[Weight]) -> LayerShapes | None:
    """Find the layers in weights of rank 2 and more; None where no arrangement explains them."""
    return _stacked(weights) or _numbered(weights) or _repeated(weights)


def _stacked(weights: Sequence[Weight]) -> LayerShapes | None:
    """Every weight of rank 3 and more has the number of layers in the same place."""
    deep = [weight for weight in weights if len(weight.dims) >= 3]
    for axis in (0, 1):
        sizes = {weight.dims[axis] for weight in deep}
        if len(sizes) != 1:
            continue
        layers = sizes.pop()
        inside: list[Weight] = []
        outside: list[Weight] = []
        for weight in weights:
            here = len(weight.dims) >= 3 and weight.role not in _TABLES
            (inside if here else outside).append(weight)
        # Stacked norms and biases are matrices too: (layers, embed).
        vectors = [w for w in outside if _stacked_vector(w, axis, layers)]
        outside = [w for w in outside if w not in vectors]
        if not 1 <= layers <= _MOST_LAYERS or len(outside) > _MOST_OUTSIDE or not inside:
            continue
        stripped = (Weight(w.tokens, w.dims[:axis] + w.dims[axis + 1 :], w.count) for w in inside)
        one = tuple(Weight(w.tokens, (w.dims[1 - axis],)) for w in vectors)
        return LayerShapes(layers, _merged(stripped), tuple(outside), one)
    return None


def _stacked_vector(weight: Weight, axis: int, layers: int) -> bool:
    return len(weight.dims) == 2 and weight.dims[axis] == layers and weight.role not in _TABLES


def _numbered(weights: Sequence[Weight]) -> LayerShapes | None:
    """The names carry layer numbers."""
    inside = [weight for weight in weights if layer_index(weight.tokens) is not None]
    if not inside:
        return None
    layers = len({layer_index(weight.tokens) for weight in inside})
    groups: Counter[tuple[tuple[str, ...], tuple[int, ...]]] = Counter()
    for weight in inside:
        groups[pattern(weight.tokens), weight.dims] += weight.count
    if any(number % layers for number in groups.values()):
        return None
    outside = [weight for weight in weights if layer_index(weight.tokens) is None]
    one = (Weight(tokens, dims, number // layers) for (tokens, dims), number in groups.items())
    return LayerShapes(layers, tuple(one), tuple(outside))


def _repeated(weights: Sequence[Weight]) -> LayerShapes | None:
    """No names: a shape that a layer has k times is there k x layers times."""
    by_shape: Counter[tuple[int, ...]] = Counter()
    for weight in weights:
        by_shape[weight.dims] += weight.count
    often = {dims: number for dims, number in by_shape.items() if number > _MOST_OUTSIDE - 1}
    layers = math.gcd(*often.values()) if often else 0
    if layers < 2:
        return None
    inside = tuple(Weight((), dims, number // layers) for dims, number in often.items())
    outside = [weight for weight in weights if weight.dims not in often]
    if sum(weight.count for weight in outside) > _MOST_OUTSIDE:
        return None
    return LayerShapes(layers, inside, tuple(outside))


def _merged(weights: Iterable[Weight]) -> tuple[Weight, ...]:
    """Equal nameless shapes counted together; named ones stay apart."""
    counts: Counter[tuple[tuple[str, ...], tuple[int, ...]]] = Counter()
    for weight in weights:
        counts[weight.tokens if weight.role else (), weight.dims] += weight.count
    return tuple(Weight(tokens, dims, number) for (tokens, dims), number in counts.items())
