# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which point to evaluate next: those that may beat the best so far, by a model of all that is known.

It knows nothing of kernels: points are rows of numbers with a first guess each, and whoever asks says what
came of them. So a search can be replayed against recorded times.
"""

from collections.abc import Sequence

import numpy as np

from gpuprof.tuning.surrogate import Prediction, Vector, expected_improvement, predict

#: Of a first round, the part that is chosen for being far apart; the others for being promising.
_SPREAD = 0.67
#: Share by which a point may be nearer to those before it than the farthest, and be chosen: no seed is bound
#: to begin where others begin.
_LOOSE = 0.2
#: Points that are far enough in front to begin with, as a share of all.
PROMISING = 0.25
_FEWEST_PROMISING = 8


class Search:
    """One search.

    Args:
        features: A row for each point; columns are brought to one scale.
        prior: Logarithm of what each may take, up to a constant; all alike where nothing is known.
        first: Points to begin with in any case, such as the default.
        seed: Of choices among equals, and of points that lie apart.
        promising: Share of the points, by the guesses, among which the first ones are spread: all of them
            where guesses say little.
    """

    def __init__(
        self,
        features: Vector,
        prior: Vector,
        first: Sequence[int] = (),
        seed: int = 0,
        promising: float = PROMISING,
    ) -> None:
        self._promising = promising
        self._prior = np.asarray(prior, dtype=np.float64)
        self._features = scaled(features)
        self._first = list(dict.fromkeys(first))
        self._chance = np.random.default_rng(seed).random(len(self._prior))
        self._noise = self._chance * 1e-6
        self._values: dict[int, float] = {}
        self._closed: set[int] = set()

    @property
    def best(self) -> int | None:
        """The best point so far."""
        return min(self._values, key=self._values.__getitem__, default=None)

    def tell(self, index: int, value: float | None) -> None:
        """Say what a point takes; None for one that cannot be used."""
        self._closed.add(index)
        if value is not None:
            self._values[index] = float(np.log(value))

    def propose(self, count: int) -> list[int]:
        """The points to evaluate next, at most so many; none when all are known."""
        open_ = [index for index in range(len(self._prior)) if index not in self._closed]
        count = min(count, len(open_))
        chosen = [index for index in self._first if index not in self._closed][:count]
        if not self._values:
            return self._spread(chosen, open_, count)
        believed = dict(self._values)
        while len(chosen) < count:
            known = list(believed)
            prediction = self._predict(known, np.array([believed[index] for index in known]))
            gain = expected_improvement(prediction, min(believed.values())) + self._noise * 1e-6
            gain[[*self._closed, *chosen]] = -1.0
            index = int(np.argmax(gain))
            chosen.append(index)
            # As if it were as expected, so that the next one looks elsewhere.
            believed[index] = float(prediction.mean[index])
        return chosen

    def expected(self) -> Vector:
        """What each point takes, as far as is known: as it was told, else as the model expects it."""
        if not self._values:
            return np.exp(self._prior)
        known = list(self._values)
        values = np.array([self._values[index] for index in known])
        mean = self._predict(known, values).mean.copy()
        mean[known] = values
        found: Vector = np.exp(mean)
        return found

    def _predict(self, known: list[int], values: Vector) -> Prediction:
        return predict(self._features, self._prior, known, values)

    def _spread(self, chosen: list[int], open_: list[int], count: int) -> list[int]:
        """Promising points that lie apart: each is nearly the one farthest from those before it."""
        order = sorted(open_, key=lambda index: self._prior[index] + self._noise[index])
        few = max(_FEWEST_PROMISING, count, int(self._promising * len(order)))
        if not chosen:
            chosen = order[:1]
        best = round((1 - _SPREAD) * (count - len(chosen)))
        chosen += [index for index in order[: best + len(chosen)] if index not in chosen][:best]
        promising = [index for index in order[:few] if index not in chosen]
        while len(chosen) < count and promising:
            apart = np.min(
                np.linalg.norm(self._features[promising][:, None] - self._features[chosen][None], axis=2),
                axis=1,
            )
            loosely = apart * (1 + _LOOSE * self._chance[promising])
            chosen.append(promising.pop(int(np.argmax(loosely))))
        return chosen


def scaled(features: Vector) -> Vector:
    """Columns with mean 0 and deviation 1; those in which all points are alike are left out."""
    features = np.asarray(features, dtype=np.float64)
    spread = features.std(axis=0) if len(features) else np.zeros(features.shape[1])
    telling = spread > 1e-12
    if not telling.any():
        return np.zeros((len(features), 1))
    found: Vector = (features[:, telling] - features[:, telling].mean(axis=0)) / spread[telling]
    return found
