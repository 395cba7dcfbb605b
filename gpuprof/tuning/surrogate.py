# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A Gaussian process over few evaluations: what the others will take, and how far that may be off.

C. E. Rasmussen and C. K. I. Williams, "Gaussian processes for machine learning" (2006), equations 2.23 to
2.30 for the prediction and 5.8 for the likelihood, by which scales are chosen from a small grid: with twenty
values a gradient would fit noise. D. R. Jones, M. Schonlau and W. J. Welch, "Efficient global optimization of
expensive black-box functions" (Journal of Global Optimization 13, 1998), for the expected improvement.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

#: Scales of distance that are tried, as a multiple of the typical distance between two points.
_REACHES = (0.35, 0.6, 1.0, 1.7, 3.0, 6.0)
#: Part of the variance that is no function of the features: how the compiler happens to order code, and
#: measuring.
_NOISES = (0.003, 0.03, 0.15)
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
    rest = values - prior[known]
    middle = float(np.median(rest))
    centred = rest - middle
    best: tuple[float, Prediction] | None = None
    apart = _distances(features, features[known])
    typical = float(np.median(apart)) or 1.0
    for reach, noise in product(_REACHES, _NOISES):
        found = _fit(apart / (reach * typical), known, centred, noise)
        if best is None or found[0] > best[0]:
            best = found
    assert best is not None
    fitted = best[1]
    return Prediction(prior + middle + fitted.mean, fitted.deviation)


def expected_improvement(prediction: Prediction, best: float) -> Vector:
    """By how much each point is expected to fall below the best value, on average over what it may be."""
    deviation = np.maximum(prediction.deviation, 1e-9)
    gain = (best - prediction.mean) / deviation
    density = np.exp(-0.5 * gain * gain) / np.sqrt(2 * np.pi)
    found: Vector = deviation * (gain * _normal_cdf(gain) + density)
    return found


def _fit(apart: Vector, known: list[int], centred: Vector, noise: float) -> tuple[float, Prediction]:
    """The log likelihood of the values under one pair of scales, and the prediction with it."""
    across = _matern(apart)
    among = across[known] + noise * np.eye(len(known))
    lower = np.linalg.cholesky(among)
    whitened = np.linalg.solve(lower, centred)
    # The variance that fits best, held away from 0 as if one more value lay a twentieth off.
    variance = (float(whitened @ whitened) + 0.05**2) / (len(known) + 1)
    likelihood = -0.5 * len(known) * np.log(variance) - float(np.sum(np.log(np.diag(lower))))
    solved = np.linalg.solve(lower, across.T)
    mean = solved.T @ whitened
    left = np.maximum(1.0 + noise - np.sum(solved * solved, axis=0), 1e-9)
    return likelihood, Prediction(mean, np.sqrt(variance * left))


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
