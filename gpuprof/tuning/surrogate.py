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

#: Scales of distance that are tried, as a multiple of the typical distance between two points.
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
    own = features[known]
    among = _distances(own, own)
    apart = _distances(features, own)
    typical = float(np.median(apart)) or 1.0
    fits = [
        _fit(Scales(reach * typical, noise, trend, trust), among, own, values - trust * prior[known])
        for reach, noise, trend, trust in product(_REACHES, _NOISES, _TRENDS, _TRUSTS)
    ]
    # No scales are known for certain after few values: each counts by how well it explains them.
    likelihoods = np.array([fit.likelihood for fit in fits])
    weights = np.exp(likelihoods - likelihoods.max())
    counting = np.argsort(-weights)[:_MOST_FITS]
    weights = weights[counting] / weights[counting].sum()
    found = [fits[number].extended(features, own, apart, prior) for number in counting]
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
    """One choice of scales.

    Args:
        reach: Distance over which points still tell something of each other.
        noise: Share of the variance that nothing explains.
        trend: Share that is linear in the features.
        trust: What part of the first guesses holds: bounds rank what computes much, and say little where
            all points move the same bytes.
    """

    reach: float
    noise: float
    trend: float
    trust: float

    def covariance(self, apart: Vector, one: Vector, other: Vector) -> Vector:
        """How points vary together.

        Args:
            apart: Distances between them.
            one: Features of the rows' points.
            other: Features of the columns' points.
        """
        linear = one @ other.T / one.shape[1]
        found: Vector = (1 - self.trend) * _matern(apart / self.reach) + self.trend * linear
        return found


@dataclass(frozen=True, slots=True)
class _Fit:
    """What one choice of scales makes of the values."""

    scales: Scales
    likelihood: float
    middle: float
    variance: float
    lower: Vector
    whitened: Vector

    def extended(self, features: Vector, own: Vector, apart: Vector, prior: Vector) -> tuple[Vector, Vector]:
        """Mean and variance of every point."""
        across = self.scales.covariance(apart, features, own)
        solved = np.linalg.solve(self.lower, across.T)
        trend = self.scales.trend
        alone = (1 - trend) + trend * np.sum(features * features, axis=1) / features.shape[1]
        left = np.maximum(alone - np.sum(solved * solved, axis=0), 0.0) + self.scales.noise
        mean = self.scales.trust * prior + self.middle + solved.T @ self.whitened
        return mean, self.variance * left


def _fit(scales: Scales, among: Vector, own: Vector, rest: Vector) -> _Fit:
    """The log likelihood of the values under one choice of scales, and what predictions need."""
    count = len(rest)
    middle = float(np.median(rest))
    covariance = scales.covariance(among, own, own) + scales.noise * np.eye(count)
    lower = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    whitened = np.asarray(np.linalg.solve(lower, rest - middle), dtype=np.float64)
    # The variance that fits best, held away from 0 as if one more value lay a twentieth off.
    variance = (float(whitened @ whitened) + 0.05**2) / (count + 1)
    likelihood = -0.5 * count * np.log(variance) - float(np.sum(np.log(np.diag(lower))))
    return _Fit(scales, float(likelihood), middle, variance, lower, whitened)


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
