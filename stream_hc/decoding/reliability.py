"""Whether things happen as often as their probabilities say."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stream_hc.checks import whole_number

__all__ = ["Reliability", "reliability"]

LEAST = 1e-12  # what a wrong certainty is taken for in the logarithm


@dataclass(frozen=True)
class Reliability:
    """Forecasts in bins of equal width: what was forecast in each, and how often it came true.

    Attributes
    ----------
    counts
        Forecasts in each bin.
    forecast, observed
        Mean probability and share of true outcomes in each bin; NaN where it is empty.
    ece
        Expected calibration error: the mean of |forecast − observed|, each bin weighted by its count.
    log_loss
        Mean of −ln of the probability given to what happened.
    """

    counts: NDArray[np.int64]
    forecast: NDArray[np.float64]
    observed: NDArray[np.float64]
    ece: float
    log_loss: float


def reliability(p: ArrayLike, y: ArrayLike, n_bins: int = 15) -> Reliability:
    """Compare probabilities with what happened; both flat, of equal length.

    Examples
    --------
    >>> found = reliability([0.9, 0.9, 0.9, 0.9, 0.1], [1, 1, 1, 0, 0], n_bins=5)
    >>> found.observed[-1].item(), round(found.ece, 2)
    (0.75, 0.14)
    """
    whole_number("n_bins", n_bins, 1)
    forecasts, outcomes = np.asarray(p, np.float64), np.asarray(y, np.float64)
    if forecasts.ndim != 1 or forecasts.shape != outcomes.shape:
        raise ValueError(
            f"{forecasts.shape} probabilities do not fit {outcomes.shape} outcomes: give flat arrays"
        )
    if not ((forecasts >= 0.0) & (forecasts <= 1.0)).all():
        raise ValueError("probabilities must lie between 0 and 1")
    which = np.minimum((forecasts * n_bins).astype(np.int64), n_bins - 1)
    counts = np.bincount(which, minlength=n_bins)
    sums, hits = (np.bincount(which, weights, n_bins) for weights in (forecasts, outcomes))
    n = max(forecasts.size, 1)
    given = np.where(outcomes > 0.0, forecasts, 1.0 - forecasts)
    with np.errstate(invalid="ignore"):  # empty bins
        forecast, observed = sums / counts, hits / counts
    return Reliability(
        counts,
        forecast,
        observed,
        ece=float(np.abs(sums - hits).sum()) / n,
        log_loss=float(-np.log(np.maximum(given, LEAST)).sum()) / n,
    )
