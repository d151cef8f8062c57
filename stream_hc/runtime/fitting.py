"""When a model is fitted anew: by documents, by time, after a drift; and when not, after a failure."""

from stream_hc.runtime.config import RefitConfig
from stream_hc.runtime.progress import Outstanding, Progress

__all__ = ["fit_failed", "fit_reason", "request_fit"]

LONGEST_BACK_OFF = 6  # doublings


def fit_reason(progress: Progress, config: RefitConfig, now: float) -> str | None:
    """Return why a fit is due now, or None."""
    if not config.enabled or progress.outstanding is not None or progress.labelled < config.least:
        return None
    waited = progress.labelled - progress.fit_labelled
    if progress.failures:  # after each failure twice as long
        pause = (config.every or config.least) * 2 ** min(progress.failures - 1, LONGEST_BACK_OFF)
        return f"again after {progress.failures} failures" if waited >= pause else None
    if progress.drift and waited:
        return "drift"
    if progress.fits == 0 or (config.every is not None and waited >= config.every):
        return f"{waited} labelled documents"
    if config.seconds is not None and waited and now - progress.fit_time >= config.seconds:
        return f"{now - progress.fit_time:.0f} seconds"
    return None


def request_fit(progress: Progress, reason: str, now: float) -> Outstanding:
    """Write down that a fit was asked for. Writes `progress`."""
    progress.fits += 1
    progress.outstanding = Outstanding(progress.fits, progress.labelled, reason)
    progress.fit_labelled, progress.fit_time, progress.drift = progress.labelled, now, False
    return progress.outstanding


def fit_failed(progress: Progress) -> None:
    """Write down that the fit under way has failed. Writes `progress`."""
    progress.outstanding = None
    progress.failures += 1
