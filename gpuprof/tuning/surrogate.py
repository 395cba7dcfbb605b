# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A Gaussian process over few evaluations: what the others will take, and how far that may be off.

C. E. Rasmussen and C. K. I. Williams, "Gaussian processes for machine learning" (2006), equations 2.23 to
2.30 for the prediction and 5.8 for the likelihood, by which the scales of a small grid are weighed: with
twenty values the single best of them would often be wrong. D. Duvenaud, H. Nickisch and C. E. Rasmussen,
"Additive Gaussian processes" (NIPS 2011), for sums of functions of one feature. D. R. Jones, M. Schonlau and
W. J. Welch, "Efficient global optimization of expensive black-box functions" (Journal of Global
Optimization 13, 1998),
for the expected improvement.
"""

from dataclasses import dataclass, fields
from itertools import product

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

#: Scales of distance that are tried, as a multiple of the typical distance between two points. A scale of
#: each feature's own finds nothing that these do not: twenty values do not tell which features count.
_REACHES = (0.4, 0.8, 1.6)
#: Part that is a sum of functions of one feature each: what a feature does wherever the others stand, which
#: few values tell sooner than what all do together. Its scale is the feature's own deviation.
_SUMS = (0.0, 0.4, 0.8)
#: Part of the variance that is no function of the features: how the compiler happens to order code, and
#: measuring.
_NOISES = (0.005, 0.05)
#: Part that is linear in the features, which carries a trend farther than distance does.
_TRENDS = (0.0, 0.3, 0.7)
#: Part of the first guesses that is believed.
_TRUSTS = (0.0, 0.5, 1.0)
#: Choices of scales that a prediction is made of; the others hardly count.
_MOST_FITS = 6
#: Evaluations that are used, at most: work grows with their cube.
_MOST_KNOWN = 600
#: Numbers of the matrices that are in memory at a time.
_MOST_NUMBERS = 2**21
#: Scale and noise by which counts of some points are carried on to the others.
_COMPLETED_REACH, _COMPLETED_NOISE = 1.5, 1e-3
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
        features: A row of each point; columns have a deviation of 1.
        prior: What is expected of each without any evaluation, up to a constant.
        known: Which points are evaluated, at least one.
        values: Their logarithms.
    """
    kept = _evenly(len(known), _MOST_KNOWN)
    told, guessed = values[kept], prior[known][kept]
    across = Kinship.of(features, features[known][kept])
    scales = _all_scales(float(np.median(across.apart)) or 1.0)
    # No scales are known for certain after few values: each counts by how well it explains them.
    among = across.rows(np.asarray(known)[kept])
    likelihoods = _likelihoods(scales, among, told, guessed)
    best = np.argsort(-likelihoods)[:_MOST_FITS]
    shares = np.exp(likelihoods[best] - likelihoods[best[0]])
    shares /= shares.sum()
    found = [
        _extended(scales.some(slice(each, each + 1)), prior, (told, guessed), (among, across))
        for each in best
    ]
    means = np.array([mean for mean, _ in found])
    mean = shares @ means
    variance = shares @ np.array([each for _, each in found]) + shares @ (means - mean) ** 2
    return Prediction(mean, np.sqrt(variance))


def completed(features: Vector, columns: Vector) -> Vector:
    """Columns of which some rows are known, with what the features let expect in the others.

    Args:
        features: A row of each point; columns have a deviation of 1.
        columns: A row of each point; rows that are not known are NaN.
    """
    missing = np.isnan(columns).any(axis=1)
    if not missing.any() or missing.all() or not columns.shape[1]:
        return columns
    known = np.flatnonzero(~missing)
    known = known[_evenly(len(known), _MOST_KNOWN)]
    apart = _distances(features, features[known])
    covariance = _matern(apart / (_COMPLETED_REACH * (float(np.median(apart)) or 1.0)))
    middle = columns[known].mean(axis=0)
    among = covariance[known] + _COMPLETED_NOISE * np.eye(len(known))
    fitted = np.linalg.solve(among, columns[known] - middle)
    found: Vector = columns.copy()
    found[missing] = middle + covariance[missing] @ fitted
    return found


def expected_improvement(prediction: Prediction, best: float) -> Vector:
    """By how much each point is expected to fall below the best value, on average over what it may be."""
    deviation = np.maximum(prediction.deviation, 1e-9)
    gain = (best - prediction.mean) / deviation
    density = np.exp(-0.5 * gain * gain) / np.sqrt(2 * np.pi)
    found: Vector = deviation * (gain * _normal_cdf(gain) + density)
    return found


@dataclass(frozen=True, slots=True)
class Kinship:
    """How near points are to some others, in the ways that a covariance is made of.

    Args:
        apart: Distances, a row for each point.
        linear: Products of their features.
        alike: The mean over features of how near they are in that one alone.
        own_linear: Of each row's point, the product with itself.
    """

    apart: Vector
    linear: Vector
    alike: Vector
    own_linear: Vector

    @classmethod
    def of(cls, one: Vector, other: Vector) -> "Kinship":
        """Of points with others, by their features.

        Args:
            one: Features of the rows' points.
            other: Features of the columns' points.
        """
        alike = np.zeros((len(one), len(other)))
        for mine, others in zip(one.T, other.T, strict=True):
            alike += _matern(np.abs(mine[:, None] - others[None]))
        linear: Vector = one @ other.T / one.shape[1]
        own: Vector = np.mean(one * one, axis=1)
        return cls(_distances(one, other), linear, alike / one.shape[1], own)

    def rows(self, numbers: NDArray[np.intp]) -> "Kinship":
        """Of some of the points."""
        return Kinship(
            self.apart[numbers], self.linear[numbers], self.alike[numbers], self.own_linear[numbers]
        )


@dataclass(frozen=True, slots=True)
class Scales:
    """Choices of scales, each an element of every array.

    Args:
        reaches: Distance over which points still tell something of each other.
        noises: Share of the variance that nothing explains.
        trends: Share that is linear in the features.
        sums: Share that is a sum of functions of one feature each.
        trusts: What part of the first guesses holds: bounds rank what computes much, and say little where
            all points move the same bytes.
    """

    reaches: Vector
    noises: Vector
    trends: Vector
    sums: Vector
    trusts: Vector

    def some(self, part: slice) -> "Scales":
        """Some of the choices."""
        return Scales(*(getattr(self, field.name)[part] for field in fields(self)))

    def covariance(self, points: Kinship) -> Vector:
        """How points vary together: a matrix for each choice."""
        reaches, trends, sums = (each[:, None, None] for each in (self.reaches, self.trends, self.sums))
        together = (1 - trends - sums) * _matern(points.apart[None] / reaches)
        found: Vector = together + trends * points.linear[None] + sums * points.alike[None]
        return found

    def fitted(self, among: Kinship, rest: Vector) -> tuple[Vector, Vector, Vector]:
        """Cholesky factors of covariances, whitened values and the variances that fit best, of each choice.

        Args:
            among: Of the evaluated points with each other.
            rest: What is left of their values, a row for each choice, with a middle of 0.
        """
        count = rest.shape[1]
        covariance = self.covariance(among) + self.noises[:, None, None] * np.eye(count)
        lower = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        whitened = np.asarray(np.linalg.solve(lower, rest[:, :, None])[:, :, 0], dtype=np.float64)
        # Held away from 0 as if one more value lay a twentieth off.
        variance = (np.sum(whitened**2, axis=1) + 0.05**2) / (count + 1)
        return lower, whitened, variance


def _all_scales(typical: float) -> Scales:
    """Every choice of the grid; `typical` is the distance between two points."""
    grid = np.array(list(product(_REACHES, _NOISES, _TRENDS, _SUMS, _TRUSTS)))
    grid = grid[grid[:, 2] + grid[:, 3] < 1]
    return Scales(typical * grid[:, 0], *grid[:, 1:].T)


def _likelihoods(scales: Scales, among: Kinship, values: Vector, guessed: Vector) -> Vector:
    """The log likelihood of the values under each choice of scales, but for a constant."""
    count, choices = len(values), len(scales.reaches)
    rest = values[None] - scales.trusts[:, None] * guessed[None]
    rest -= np.median(rest, axis=1)[:, None]
    together = max(1, _MOST_NUMBERS // count**2)
    found = []
    for start in range(0, choices, together):
        some = slice(start, start + together)
        lower, _, variance = scales.some(some).fitted(among, rest[some])
        diagonal = np.diagonal(lower, axis1=1, axis2=2)
        found.append(-0.5 * count * np.log(variance) - np.sum(np.log(diagonal), axis=1))
    return np.concatenate(found)


def _extended(
    scales: Scales, prior: Vector, told: tuple[Vector, Vector], points: tuple[Kinship, Kinship]
) -> tuple[Vector, Vector]:
    """Mean and variance of every point under one choice of scales.

    Args:
        scales: The choice.
        prior: What is expected of each.
        told: The values of the evaluated points, and what was expected of them.
        points: The evaluated points with each other, and all with them.
    """
    (trend,), (noise,), (trust,) = scales.trends, scales.noises, scales.trusts
    rest = told[0] - trust * told[1]
    middle = float(np.median(rest))
    (lower,), (whitened,), (variance,) = scales.fitted(points[0], (rest - middle)[None])
    (across,) = scales.covariance(points[1])
    solved = np.linalg.solve(lower, across.T)
    alone = (1 - trend) + trend * points[1].own_linear
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
