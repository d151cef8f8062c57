"""Predicted rows -> lines of JSON, all of a batch in one buffer.

What is a string already comes as JSON: quoted and escaped, one after another in a buffer of bytes.
Small functions are inlined: a call hands over each array as seven numbers, which took half of the time.
"""

import numpy as np
from numba import njit

from stream_hc.kernels import Bools, Bytes, Ints, Longs

__all__ = ["FIXED", "LARGEST", "LONGEST_NUMBER", "prediction_lines"]

LARGEST = 10**15  # millionths: up to here all digits of a double are right
LONGEST_NUMBER = 20  # bytes: a sign, a point and the digits of LARGEST; or 19 digits of a version

ID = np.frombuffer(b'{"id":', np.uint8)
LABELS = np.frombuffer(b',"labels":[', np.uint8)
PATH_LABELS = np.frombuffer(b'],"path_labels":[', np.uint8)
SCORES = np.frombuffer(b'],"scores":{', np.uint8)
MODEL = np.frombuffer(b'},"model":', np.uint8)
VERSION = np.frombuffer(b',"model_version":', np.uint8)
TS = np.frombuffer(b',"ts":', np.uint8)
END = np.frombuffer(b"}\n", np.uint8)
FIXED = sum(part.size for part in (ID, LABELS, PATH_LABELS, SCORES, MODEL, VERSION, TS, END))

ZERO, COMMA, POINT, MINUS, COLON, NEWLINE = 0x30, 0x2C, 0x2E, 0x2D, 0x3A, 0x0A
TEN, SMALL_TEN = np.uint64(10), np.uint32(10)
NULL = 0x6E  # the n of null: no other JSON begins like it


@njit(cache=True, nogil=True, inline="always")
def put(out: Bytes, at: int, piece: Bytes, begin: int, end: int) -> int:
    """Copy a piece to `out`; return where it ends. Writes `out`."""
    for k in range(begin, end):
        out[at + k - begin] = piece[k]
    return at + end - begin


@njit(cache=True, nogil=True, inline="always")
def put_whole(out: Bytes, at: int, number: int) -> int:
    """Write a number that is not negative; return where it ends. Writes `out`."""
    digits = np.uint64(number)  # without a sign: dividing takes half the time
    end, rest = at + 1, digits
    while rest >= TEN:
        rest //= TEN
        end += 1
    for k in range(end - 1, at - 1, -1):
        out[k] = ZERO + digits % TEN
        digits //= TEN
    return end


@njit(cache=True, nogil=True, inline="always")
def put_millionths(out: Bytes, at: int, number: int) -> int:
    """Write a number of millionths with a point and no zeros behind; return where it ends. Writes `out`."""
    if number < 0:
        out[at] = MINUS
        at, number = at + 1, -number
    at = put_whole(out, at, number // 1_000_000)
    out[at] = POINT
    rest = np.uint32(number % 1_000_000)
    for k in range(at + 6, at, -1):
        out[k] = ZERO + rest % SMALL_TEN
        rest //= SMALL_TEN
    end = at + 6
    while end > at + 1 and out[end] == ZERO:
        end -= 1
    return end + 1


@njit(cache=True, nogil=True, inline="always")
def put_names(out: Bytes, at: int, nodes: Ints, wanted: Bools, names: Bytes, name_ptr: Longs) -> int:
    """Write the names of the nodes wanted, with commas between; return where they end. Writes `out`."""
    begin = at
    for k in range(nodes.size):
        if wanted[k]:
            if at > begin:
                out[at] = COMMA
                at += 1
            at = put(out, at, names, name_ptr[nodes[k]], name_ptr[nodes[k] + 1])
    return at


@njit(cache=True, nogil=True, inline="always")
def line_end(lines: Bytes, begin: int) -> int:
    """Return where the line that begins at `begin` ends: a newline inside a JSON string is escaped."""
    while lines[begin] != NEWLINE:
        begin += 1
    return begin


@njit(cache=True, nogil=True)
def prediction_lines(
    ids: Bytes,
    stamps: Bytes,
    model: Bytes,
    versions: Longs,
    indptr: Longs,
    nodes: Ints,
    millionths: Longs,
    specific: Bools,
    names: Bytes,
    name_ptr: Longs,
    out: Bytes,
) -> int:
    """Write a line for each row to `out`, which must be long enough; return the length. Writes `out`.

    `ids` and `stamps` hold a line of JSON for each row (null for no time stamp; `stamps` is empty if no row
    has one); node i is called `names[name_ptr[i]:name_ptr[i + 1]]`; `millionths` are the margins, `specific`
    marks the `labels`.
    """
    all_of_them = np.ones(nodes.size, np.bool_)
    at = id_begin = stamp_begin = 0
    for row in range(versions.size):
        at = put(out, at, ID, 0, ID.size)
        id_end = line_end(ids, id_begin)
        at = put(out, at, ids, id_begin, id_end)
        id_begin = id_end + 1
        at = put(out, at, LABELS, 0, LABELS.size)
        first, last = indptr[row], indptr[row + 1]
        at = put_names(out, at, nodes[first:last], specific[first:last], names, name_ptr)
        at = put(out, at, PATH_LABELS, 0, PATH_LABELS.size)
        at = put_names(out, at, nodes[first:last], all_of_them[first:last], names, name_ptr)
        at = put(out, at, SCORES, 0, SCORES.size)
        for k in range(first, last):
            if k > first:
                out[at] = COMMA
                at += 1
            at = put(out, at, names, name_ptr[nodes[k]], name_ptr[nodes[k] + 1])
            out[at] = COLON
            at = put_millionths(out, at + 1, millionths[k])
        at = put(out, at, MODEL, 0, MODEL.size)
        at = put(out, at, model, 0, model.size)
        at = put(out, at, VERSION, 0, VERSION.size)
        at = put_whole(out, at, versions[row])
        if stamps.size:
            stamp_end = line_end(stamps, stamp_begin)
            if stamps[stamp_begin] != NULL:
                at = put(out, at, TS, 0, TS.size)
                at = put(out, at, stamps, stamp_begin, stamp_end)
            stamp_begin = stamp_end + 1
        at = put(out, at, END, 0, END.size)
    return at
