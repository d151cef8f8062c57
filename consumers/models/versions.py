"""Which versions there are, of which shards, and which of them go together."""

from collections.abc import Mapping
from typing import NamedTuple

from consumers.models.chunks import Broken, Complete, check
from consumers.models.content import Content, joined, read_content
from consumers.models.manifest import Manifest, ShardKey
from consumers.models.store import StoreError, fetch
from stream_hc.snapshot import SnapshotError

__all__ = ["Version", "Versions", "newest_set"]


class Version(NamedTuple):
    """A version of one shard that was read and found sound."""

    manifest: Manifest
    content: Content


class Versions:
    """The newest sound version of each shard.

    A version that cannot be used changes nothing: the one before goes on.
    """

    def __init__(self) -> None:
        self._found: dict[ShardKey, Version] = {}

    def add(self, complete: Complete) -> bool:
        """Read a version, every byte of it checked, and keep it in the place of the one before.

        False means that it is the one before, told of once more.

        Raises
        ------
        Broken
            It cannot be used; the message says which and why.
        """
        manifest, before = complete.manifest, self._found.get(complete.shard)
        if before is not None and before.manifest.version == manifest.version:
            self._found[complete.shard] = before._replace(manifest=manifest)
            return False
        try:
            if manifest.store is None:
                data = complete.data()
            else:
                data = fetch(manifest.store, manifest.size)
                check(data, manifest)
            content = read_content(data)
            _check_shard(complete.shard, manifest, content)
        except (Broken, SnapshotError, StoreError, ValueError, MemoryError) as error:
            problem = str(error) or type(error).__name__
            raise Broken(f"version {manifest.version} of shard {complete.shard}: {problem}") from None
        self._found[complete.shard] = Version(manifest, content)
        return True

    def manifests(self) -> list[Manifest] | None:
        """Return what is said about the shards that `whole` would join."""
        keys = newest_set({key: version.manifest for key, version in self._found.items()})
        return None if keys is None else [self._found[key].manifest for key in keys]

    def whole(self) -> tuple[list[Manifest], Content] | None:
        """Return the newest model of which all shards are there; None if there is none yet.

        Raises
        ------
        Broken
            They do not fit together.
        """
        keys = newest_set({key: version.manifest for key, version in self._found.items()})
        if keys is None:
            return None
        versions = [self._found[key] for key in keys]
        # Another cut counts only if it is on its way to replace this one.
        oldest = min(version.manifest.saved for version in versions)
        self._found = {
            key: version
            for key, version in self._found.items()
            if key in keys or version.manifest.saved > oldest
        }
        try:
            content = joined([version.content for version in versions])
        except ValueError as error:
            raise Broken(f"the models of {len(keys)} shards do not go together: {error}") from None
        return [version.manifest for version in versions], content


def newest_set(found: Mapping[ShardKey, Manifest]) -> list[ShardKey] | None:
    """Return the shards to join: of one count and one plan, all of them there.

    After a taxonomy was cut anew there are shards of both cuts: those whose oldest version is newest count.
    """
    sets = []
    for count in sorted({key.n_shards for key in found}):
        keys = [ShardKey(number, count) for number in range(count)]
        if all(key in found for key in keys) and len({found[key].plan for key in keys}) == 1:
            sets.append((min(found[key].saved for key in keys), keys))
    return max(sets)[1] if sets else None


def _check_shard(key: ShardKey, manifest: Manifest, content: Content) -> None:
    shard = content.shard
    told = (0, 1, "") if shard is None else (shard.number, shard.n_shards, shard.digest)
    if told != (*key, manifest.plan):
        raise Broken(f"it holds shard {told[0]} of {told[1]}")
