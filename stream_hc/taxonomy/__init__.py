"""Nested categories: forests and DAGs, closure and truncation, costs, files and drawings."""

from stream_hc.taxonomy.costs import CostScheme
from stream_hc.taxonomy.graph import Edge, TaxonomyError, find_problems
from stream_hc.taxonomy.rows import truncate as truncate_rows
from stream_hc.taxonomy.taxonomy import Labels, Taxonomy

__all__ = ["CostScheme", "Edge", "Labels", "Taxonomy", "TaxonomyError", "find_problems", "truncate_rows"]
