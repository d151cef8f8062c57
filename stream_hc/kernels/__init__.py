"""Numba functions over plain arrays: no classes, no Python objects.

Conventions shared by every file here: nodes and columns are int32, row pointers are int64, label rows are
sorted and hold each node once, parents come before children. `parent_ptr` and `parent_idx` list the parents
of every node in CSR form, so that one loop serves trees (one entry) and DAGs (several); a root has none.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Bools", "Bytes", "Doubles", "Floats", "Ints", "Longs"]

Array: TypeAlias = NDArray[Any]
Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float32]
Doubles: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
