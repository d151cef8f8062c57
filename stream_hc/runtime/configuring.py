"""Now `stream_hc.runtime.config`."""

import importlib
import sys

sys.modules[__name__] = importlib.import_module("stream_hc.runtime.config")
