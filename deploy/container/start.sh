#!/bin/sh
# Begins a container. Numba refuses a cache that it cannot write, so the kernels that were compiled with the
# image are copied to where it can; what an older image has left there is replaced.
set -eu

kernels=$(dirname "$0")/kernels
if ! mkdir -p "$NUMBA_CACHE_DIR" || ! cp -R "$kernels/." "$NUMBA_CACHE_DIR"; then
    echo "error: $NUMBA_CACHE_DIR cannot be written by uid $(id -u): mount a folder there that can" >&2
    exit 3
fi
exec "$@" # signals reach the daemon itself
