"""How much memory training needs, told before it is taken."""

from stream_hc.maxmargin.problem import Problem

__all__ = ["bytes_needed", "check_memory"]


def bytes_needed(problem: Problem, n_edges: int, n_jobs: int, n_shards: int = 0) -> int:
    """Return about how many bytes training needs beside the documents themselves.

    `n_shards` are those on this machine, in whichever process: each has weights and the documents of all.
    """
    table = 8 * (problem.n_rows if problem.by_kernel else problem.n_columns) * problem.n_variables
    duals = 8 * problem.n_rows * problem.n_variables
    # In the end the weights of the edges, in double and single precision, and those of the nodes.
    weights = 0 if problem.by_kernel else 44 * n_edges * problem.n_columns
    workers = 0 if n_jobs == 1 else 4 * table + 2 * duals  # several threads need copies to step back to
    documents = sum(array.nbytes for array in problem.examples[:3])
    # A blueprint and the shard built by it hold the documents of all, and once more those of the shard.
    shards = n_shards * (table + 2 * documents) + (3 * duals + 2 * documents if n_shards else 0)
    return 2 * table + 3 * duals + workers + weights + shards


def check_memory(problem: Problem, n_edges: int, n_jobs: int, most: int | None, n_shards: int = 0) -> None:
    """Raise `MemoryError` where more is needed than allowed."""
    needed = bytes_needed(problem, n_edges, n_jobs, n_shards)
    if most is not None and needed > most:
        raise MemoryError(
            f"{problem.n_rows:,} documents need about {needed / 2**20:,.0f} MiB, more than max_memory allows "
            f"({most / 2**20:,.0f} MiB): take fewer documents or features, or "
            + ("fewer workers" if n_shards else "n_jobs=1")
        )
