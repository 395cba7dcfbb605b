# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A Gaussian process over few evaluations: what the others will take, and how far that may be off.

C. E. Rasmussen and C. K. I. Williams, "Gaussian processes for machine learning" (2006), equations 2.23 to
2.30 for the prediction and 5.8 for the likelihood, by which the scales of a small grid are weighed: with
twenty values the single best of them would often be wrong. D. R. Jones, M. Schonlau and W. J. Welch,
"Efficient global optimization of expensive black-box functions" (Journal of Global Optimization 13, 1998),
for the expected improvement.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

#: Scales of distance that are tried, as a multiple of the typical distance between two points. A scale of
#: each feature's own finds nothing that these do not: twenty values do not tell which features count.
_REACHES = (0.4, 0.8, 1.6, 3.0)
#: Part of the variance that is no function of the features: how the compiler happens to order code, and
#: measuring.
_NOISES = (0.005, 0.05)
#: Part that is linear in the features, which carries a trend farther than distance does.
_TRENDS = (0.0, 0.3, 0.7)
#: Part of the first guesses that is believed.
_TRUSTS = (0.0, 0.5, 1.0)
#: Choices of scales that a prediction is made of; the others hardly count.
_MOST_FITS = 6
#: Evaluations that are used, at most: work grows with their cube. Scales are weighed by all of them too: a
#: tenth of the bounds of a space chooses scales that carry them on worse.
_MOST_KNOWN = 600
#: Numbers of the matrices that are in memory at a time.
_MOST_NUMBERS = 2**21
_SQRT_5 = 5.0**0.5


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is expected of each point.

    Args:
        mean: Of the logarithm.
        deviation: How far it may be off, one standard deviation.
    """

    mean: Vector
    deviation: Vector


def predict(features: Vector, prior: Vector, known: list[int], values: Vector) -> Prediction:
    """Predict every point from some.

    Args:
        features: A row of each point.
        prior: What is expected of each without any evaluation, up to a constant.
        known: Which points are evaluated, at least one.
        values: Their logarithms.
    """
    kept = _evenly(len(known), _MOST_KNOWN)
    own, told, guessed = features[known][kept], values[kept], prior[known][kept]
    apart = _distances(features, own)
    scales = _all_scales(float(np.median(apart)) or 1.0)
    # No scales are known for certain after few values: each counts by how well it explains them.
    among = apart[known][kept]
    likelihoods = _likelihoods(scales, among, own, told, guessed)
    best = np.argsort(-likelihoods)[:_MOST_FITS]
    weights = np.exp(likelihoods[best] - likelihoods[best[0]])
    weights /= weights.sum()
    distances = among, apart
    found = [
        _extended(scales.some(slice(each, each + 1)), features, prior, own, (told, guessed), distances)
        for each in best
    ]
    means = np.array([mean for mean, _ in found])
    mean = weights @ means
    variance = weights @ np.array([each for _, each in found]) + weights @ (means - mean) ** 2
    return Prediction(mean, np.sqrt(variance))


def expected_improvement(prediction: Prediction, best: float) -> Vector:
    """By how much each point is expected to fall below the best value, on average over what it may be."""
    deviation = np.maximum(prediction.deviation, 1e-9)
    gain = (best - prediction.mean) / deviation
    density = np.exp(-0.5 * gain * gain) / np.sqrt(2 * np.pi)
    found: Vector = deviation * (gain * _normal_cdf(gain) + density)
    return found


@dataclass(frozen=True, slots=True)
class Scales:
    """Choices of scales, each an element of every array.

    Args:
        reaches: Distance over which points still tell something of each other.
        noises: Share of the variance that nothing explains.
        trends: Share that is linear in the features.
        trusts: What part of the first guesses holds: bounds rank what computes much, and say little where
            all points move the same bytes.
    """

    reaches: Vector
    noises: Vector
    trends: Vector
    trusts: Vector

    def some(self, part: slice) -> "Scales":
        """Some of the choices."""
        return Scales(self.reaches[part], self.noises[part], self.trends[part], self.trusts[part])

    def covariance(self, apart: Vector, one: Vector, other: Vector) -> Vector:
        """How points vary together: a matrix for each choice.

        Args:
            apart: Distances between them.
            one: Features of the rows' points.
            other: Features of the columns' points.
        """
        reaches, trends = self.reaches[:, None, None], self.trends[:, None, None]
        linear = one @ other.T / one.shape[1]
        found: Vector = (1 - trends) * _matern(apart[None] / reaches) + trends * linear[None]
        return found

    def fitted(self, among: Vector, own: Vector, rest: Vector) -> tuple[Vector, Vector, Vector]:
        """Cholesky factors of covariances, whitened values and the variances that fit best, of each choice.

        Args:
            among: Distances between the evaluated points.
            own: Their features.
            rest: What is left of their values, a row for each choice, with a middle of 0.
        """
        count = len(own)
        covariance = self.covariance(among, own, own) + self.noises[:, None, None] * np.eye(count)
        lower = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        whitened = np.asarray(np.linalg.solve(lower, rest[:, :, None])[:, :, 0], dtype=np.float64)
        # Held away from 0 as if one more value lay a twentieth off.
        variance = (np.sum(whitened**2, axis=1) + 0.05**2) / (count + 1)
        return lower, whitened, variance


def _all_scales(typical: float) -> Scales:
    """Every choice of the grid; `typical` is the distance between two points."""
    grid = np.array(list(product(_REACHES, _NOISES, _TRENDS, _TRUSTS)))
    return Scales(typical * grid[:, 0], grid[:, 1], grid[:, 2], grid[:, 3])


def _likelihoods(scales: Scales, among: Vector, own: Vector, values: Vector, guessed: Vector) -> Vector:
    """The log likelihood of the values under each choice of scales, but for a constant."""
    count, choices = len(values), len(scales.reaches)
    rest = values[None] - scales.trusts[:, None] * guessed[None]
    rest -= np.median(rest, axis=1)[:, None]
    together = max(1, _MOST_NUMBERS // count**2)
    found = []
    for start in range(0, choices, together):
        some = slice(start, start + together)
        lower, _, variance = scales.some(some).fitted(among, own, rest[some])
        diagonal = np.diagonal(lower, axis1=1, axis2=2)
        found.append(-0.5 * count * np.log(variance) - np.sum(np.log(diagonal), axis=1))
    return np.concatenate(found)


def _extended(
    scales: Scales,
    features: Vector,
    prior: Vector,
    own: Vector,
    told: tuple[Vector, Vector],
    distances: tuple[Vector, Vector],
) -> tuple[Vector, Vector]:
    """Mean and variance of every point under one choice of scales.

    Args:
        scales: The choice.
        features: A row of each point.
        prior: What is expected of each.
        own: Features of the evaluated points.
        told: Their values, and what was expected of them.
        distances: Between the evaluated points, and from every point to them.
    """
    (trend,), (noise,), (trust,) = scales.trends, scales.noises, scales.trusts
    rest = told[0] - trust * told[1]
    middle = float(np.median(rest))
    (lower,), (whitened,), (variance,) = scales.fitted(distances[0], own, (rest - middle)[None])
    (across,) = scales.covariance(distances[1], features, own)
    solved = np.linalg.solve(lower, across.T)
    alone = (1 - trend) + trend * np.mean(features * features, axis=1)
    left = np.maximum(alone - np.sum(solved * solved, axis=0), 0.0) + noise
    return trust * prior + middle + solved.T @ whitened, variance * left


def _evenly(count: int, most: int) -> NDArray[np.intp]:
    """Places spread evenly over a list, at most so many: all of a short one."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))


def _matern(distance: Vector) -> Vector:
    """Matérn's covariance of smoothness 5/2."""
    scaled = _SQRT_5 * distance
    found: Vector = (1 + scaled + scaled * scaled / 3) * np.exp(-scaled)
    return found


def _distances(one: Vector, other: Vector) -> Vector:
    squares = np.sum(one * one, axis=1)[:, None] + np.sum(other * other, axis=1)[None, :] - 2 * one @ other.T
    found: Vector = np.sqrt(np.maximum(squares, 0.0))
    return found


def _normal_cdf(value: Vector) -> Vector:
    """The normal distribution function, to 1e-7: M. Abramowitz and I. A. Stegun, formula 26.2.17."""
    size = np.abs(value)
    t = 1 / (1 + 0.2316419 * size)
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = np.exp(-0.5 * size * size) / np.sqrt(2 * np.pi) * series
    found: Vector = np.where(value >= 0, 1 - tail, tail)
    return found
