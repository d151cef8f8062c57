"""What the panels ask of Prometheus, for the stream and the models that are chosen at the top."""

from deploy.grafana.panels import Json, query

__all__ = ["JOB", "MODELS", "RATE", "SERVED", "quantiles", "rate"]

JOB = 'job="$job"'
SERVED = 'job="$job", model="served"'
MODELS = 'job="$job", model=~"$model"'
RATE = "$__rate_interval"


def rate(name: str, by: str = "", matchers: str = JOB) -> str:
    """Return how much a counter rises in a second, for all processes of the job together.

    >>> rate("streamhc_scored_total", "model")
    'sum by (model) (rate(streamhc_scored_total{job="$job"}[$__rate_interval]))'
    """
    grouped = f"sum by ({by}) " if by else "sum"
    return f"{grouped}(rate({name}{{{matchers}}}[{RATE}]))"


def quantiles(name: str) -> list[Json]:
    """Ask for what 50, 90 and 99 % of the values of a histogram stay below."""
    buckets = rate(f"{name}_bucket", "le")
    return [query(f"histogram_quantile({q / 100:g}, {buckets})", f"{q} %") for q in (50, 90, 99)]
