"""Now `stream_hc.runtime.report.summary`."""

import importlib
import sys

sys.modules[__name__] = importlib.import_module("stream_hc.runtime.report.summary")
