"""Models in files, for those that are too large for a topic: a folder, or whatever `fsspec` can reach."""

import os
from typing import Any

from consumers.errors import KafkaProblem
from consumers.models.manifest import Manifest

__all__ = ["KEPT", "ModelStore", "StoreError", "fetch"]

KEPT = 3  # versions of a shard: whoever has just been told of one needs time to read it


class StoreError(OSError):
    """A file of the store cannot be written or read; the message says which."""


def _filesystem(url: str) -> tuple[Any, str]:
    try:
        import fsspec  # noqa: PLC0415 (only where models are kept in files)
    except ImportError:
        raise KafkaProblem("kafka.model_store needs fsspec: pip install 'stream_hc[distributed]'") from None
    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise KafkaProblem(f"kafka.model_store: {url}: {error}") from None
    return system, path


class ModelStore:
    """Files of the models of one trainer: a file of its own for each version, never changed.

    Parameters
    ----------
    url
        A folder, or what `fsspec` takes, such as s3://bucket/models.
    name
        Of the trainer: its files lie in a folder of that name.
    """

    def __init__(self, url: str, name: str) -> None:
        # A path is told to processes that may run elsewhere in the tree.
        root = url if "://" in url else os.path.abspath(url)
        self._url = f"{root.rstrip('/')}/{name}"
        self._system, self._path = _filesystem(self._url)

    def put(self, manifest: Manifest, data: bytes) -> str:
        """Write a version, all or nothing as far as the store can, and return its address."""
        name = f"{round(1000 * manifest.saved):015d}-{manifest.version}.snap"  # in the order of time
        try:
            self._system.makedirs(self._path, exist_ok=True)
            # Readers are told of it after it is complete, and compare its checksum.
            self._system.pipe_file(f"{self._path}/{name}", data)
        except Exception as error:  # of whatever kind the store has
            raise StoreError(f"{self._url}/{name}: cannot write: {error}") from error
        return f"{self._url}/{name}"

    def remove_old(self) -> None:
        """Remove all but the last versions, in the order of their time."""
        try:
            self._system.invalidate_cache(self._path)
            found = self._system.ls(self._path, detail=True)
            for name in sorted(each["name"] for each in found if each["type"] == "file")[:-KEPT]:
                self._system.rm_file(name)
        except Exception as error:
            raise StoreError(f"{self._url}: cannot remove old models: {error}") from error


def fetch(url: str, most: int) -> bytes:
    """Return the bytes of a file that a manifest names, of which there are so many at most."""
    system, path = _filesystem(url)
    try:
        size = system.info(path)["size"]
        if size is not None and size > most:
            raise StoreError(f"{url}: {size} bytes, not {most}")
        data: bytes = system.cat_file(path)
    except FileNotFoundError:
        raise StoreError(f"{url}: not there") from None
    except StoreError:
        raise
    except Exception as error:  # of whatever kind the store has
        raise StoreError(f"{url}: cannot read: {error}") from error
    return data
