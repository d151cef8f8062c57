"""Save models to one file and load them again: no pickle, every byte checked, no partial file.

An object can be saved if it has ``state()``, which returns a dict of arrays (copies) and plain scalars, and a
classmethod ``from_state(state)``, and if its class is known here by name (`register`). The file is a JSON
header and raw arrays; ``docs/snapshot-format.md`` has the layout. Equal states give equal bytes.

Whatever is wrong with a file, with a state or with the disk, the error is a `SnapshotError` of one line.
"""

from stream_hc.snapshot.copying import copy_parts
from stream_hc.snapshot.errors import SnapshotError
from stream_hc.snapshot.format import FORMAT_VERSION, ArrayInfo, PartInfo, SnapshotInfo
from stream_hc.snapshot.kinds import Snapshotable, register
from stream_hc.snapshot.reading import inspect, load, load_bytes, verify
from stream_hc.snapshot.writing import dump_bytes, save

__all__ = [
    "FORMAT_VERSION",
    "ArrayInfo",
    "PartInfo",
    "SnapshotError",
    "SnapshotInfo",
    "Snapshotable",
    "copy_parts",
    "dump_bytes",
    "inspect",
    "load",
    "load_bytes",
    "register",
    "save",
    "verify",
]
