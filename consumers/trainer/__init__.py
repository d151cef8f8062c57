"""Trainers: each learns a shard of the taxonomy, or all of it, and publishes what it has learned."""
