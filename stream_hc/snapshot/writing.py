"""Save objects: describe their states, then write arrays and header in one pass over the data."""

import hashlib
import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import metadata
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from stream_hc.snapshot import format as layout
from stream_hc.snapshot.atomic import replacing
from stream_hc.snapshot.errors import SnapshotError, naming
from stream_hc.snapshot.format import ArrayInfo, PartInfo, Scalar
from stream_hc.snapshot.kinds import Snapshotable, kind_of

__all__ = ["created_by", "dump_bytes", "save"]

Model = Snapshotable | Mapping[str, Snapshotable]
AnyArray = npt.NDArray[Any]


def save(path: str | os.PathLike[str], model: Model, *, extra: Mapping[str, Scalar] | None = None) -> None:
    """Write a model to one file, all or nothing.

    The bytes go to a temporary file beside `path`, reach the disk and then take its place. On any failure an
    earlier file at `path` stays as it was. Its permissions are kept, a symbolic link is followed.

    Parameters
    ----------
    path
        The file; its folder must exist.
    model
        An object of a known class (`register`), or a dict of names and such objects.
    extra
        A few scalars of the caller's, such as a position in the stream; `inspect` returns them.

    Raises
    ------
    SnapshotError
        The state holds something that has no place in the format, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from stream_hc.snapshot import load, register, save
    >>> @register
    ... class Mean:
    ...     def __init__(self, total, n):
    ...         self.total, self.n = total, n
    ...     def state(self):
    ...         return {"total": self.total.copy(), "n": self.n}
    ...     @classmethod
    ...     def from_state(cls, state):
    ...         return cls(**state)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/mean.snap", {"mean": Mean(np.array([1.5, 2.0]), 2)})
    ...     parts = load(f"{folder}/mean.snap")
    >>> parts["mean"].total, parts["mean"].n
    (array([1.5, 2. ]), 2)
    """
    name = os.fspath(path)
    with naming(name, "write"):
        content = _Content(model, extra)
        with replacing(name) as stream:
            content.write(stream)


def dump_bytes(model: Model, extra: Mapping[str, Scalar] | None = None) -> bytes:
    """Return what `save` would write."""
    stream = io.BytesIO()
    with naming("snapshot bytes", "write"):
        _Content(model, extra).write(stream)
    return stream.getvalue()


def created_by() -> str:
    """Package and version, for the header."""
    try:
        return f"stream_hc {metadata.version('stream_hc')}"
    except metadata.PackageNotFoundError:  # used from a checkout
        return "stream_hc"


class _Content:
    """Checked states, ready to be written: nothing that is wrong with them is found half-way."""

    def __init__(self, model: Model, extra: Mapping[str, Scalar] | None) -> None:
        self.single = not isinstance(model, Mapping)
        models = model if isinstance(model, Mapping) else {layout.SINGLE: model}
        own = extra or {}
        self.extra = {_name(key, "extra"): _scalar(value, f"extra {key!r}") for key, value in own.items()}
        self.created_by = created_by()
        self.arrays: dict[tuple[str, str], AnyArray] = {}
        self.end = 0
        names = sorted(_name(name, "parts") for name in models)
        self.parts = tuple(self._part(name, models[name]) for name in names)
        if not 0 < len(self.parts) <= layout.MAX_PARTS:
            raise SnapshotError(f"{len(self.parts)} parts, allowed are 1 to {layout.MAX_PARTS}")
        if len(self.arrays) > layout.MAX_ARRAYS:
            raise SnapshotError(
                f"{len(self.arrays)} arrays, the limit is {layout.MAX_ARRAYS}: join some of them"
            )
        n_header = len(self._header())
        if n_header > layout.MAX_HEADER:
            raise SnapshotError(f"a header of {n_header} bytes: keep long texts in uint8 arrays")
        self.total_bytes = layout.data_start(n_header) + self.end

    def write(self, stream: BinaryIO) -> None:
        """Write everything. The header holds the digests, so its place is left free until they are known."""
        stream.write(bytes(layout.data_start(len(self._header()))))
        written = 0
        hashed: list[PartInfo] = []
        for part in self.parts:
            infos: list[ArrayInfo] = []
            for info in part.arrays:
                stream.write(bytes(info.offset - written))
                infos.append(replace(info, sha256=_write_array(stream, self.arrays[part.name, info.key])))
                written = info.offset + info.bytes
            hashed.append(replace(part, arrays=tuple(infos)))
        self.parts = tuple(hashed)
        stream.seek(0)
        stream.write(layout.file_head(self._header(), self.total_bytes))

    def _header(self) -> bytes:
        return layout.encode_header(self.created_by, self.parts, self.single, self.extra)

    def _part(self, name: str, model: Snapshotable) -> PartInfo:
        where = f"part {name!r}"
        kind = _name(kind_of(model), where)
        scalars: dict[str, Scalar] = {}
        arrays: list[ArrayInfo] = []
        for key, value in _sorted_items(model.state(), where):
            if isinstance(value, np.ndarray):
                arrays.append(self._array(name, key, value))
            else:
                scalars[key] = _scalar(value, f"{where}, {key!r}")
        return PartInfo(name, kind, scalars, tuple(arrays))

    def _array(self, part: str, key: str, values: AnyArray) -> ArrayInfo:
        where, dtype, shape = f"part {part!r}, array {key!r}", values.dtype.name, values.shape
        if type(values) is not np.ndarray:
            raise SnapshotError(f"{where}: a {type(values).__name__}, not a plain numpy array")
        if dtype not in layout.DTYPES:
            raise SnapshotError(
                f"{where}: dtype {values.dtype} cannot be saved, only {', '.join(layout.DTYPES)}"
            )
        if len(shape) > layout.MAX_RANK:
            raise SnapshotError(f"{where}: {len(shape)} dimensions, the limit is {layout.MAX_RANK}")
        # No copy of an array that is already little-endian and in C order.
        plain = self.arrays[part, key] = np.asarray(values, dtype=layout.DTYPES[dtype], order="C")
        if dtype == "bool" and plain.view(np.uint8).max(initial=0) > 1:
            raise SnapshotError(f"{where}: a bool that is neither 0 nor 1")
        offset = layout.aligned(self.end)
        self.end = offset + plain.nbytes
        return ArrayInfo(key, dtype, shape, offset, plain.nbytes, layout.UNHASHED)


def _write_array(stream: BinaryIO, values: AnyArray) -> str:
    digest = hashlib.sha256()
    view = values.reshape(-1).view(np.uint8).data
    for start in range(0, len(view), layout.CHUNK):
        block = bytes(
            view[start : start + layout.CHUNK]
        )  # hashed and written alike, whatever another thread does
        digest.update(block)
        stream.write(block)
    return digest.hexdigest()


def _sorted_items(state: Any, where: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(state, Mapping):
        raise SnapshotError(f"{where}: state() returned a {type(state).__name__}, not a dict")
    for key in sorted(_name(key, where) for key in state):
        yield key, state[key]


def _name(name: Any, where: str) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= layout.MAX_NAME:
        raise SnapshotError(
            f"{where}: a name must be a text of 1 to {layout.MAX_NAME} characters, not {name!r}"
        )
    return _text(name, where)


def _text(text: str, where: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SnapshotError(f"{where}: not valid Unicode: {error}") from error
    return text


def _scalar(value: Any, where: str) -> Scalar:
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        value = value.item()
    if isinstance(value, str):
        return _text(value, where)
    if isinstance(value, int) and value.bit_length() > layout.MAX_INT_BITS:
        raise SnapshotError(f"{where}: an integer of more than {layout.MAX_INT_BITS} bits cannot be saved")
    if value is None or isinstance(value, int | float):
        return value
    allowed = "arrays, text, numbers, bool, None"
    raise SnapshotError(f"{where}: a {type(value).__name__} cannot be saved, only {allowed}")
