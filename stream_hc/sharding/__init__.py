"""A taxonomy cut into shards: trained apart, by trainers that exchange nothing, and joined bit for bit.

A learner that trains each node from the true labels needs, for a node, that node and those above it. So a
shard owns some groups of siblings and trains their ancestors beside them; on the same ordered stream its
nodes become what they would have become in the whole taxonomy.
"""

from stream_hc.sharding.learners import check_shardable, cut_learner, join_learners
from stream_hc.sharding.plan import Plan
from stream_hc.sharding.shard import Shard

__all__ = ["Plan", "Shard", "check_shardable", "cut_learner", "join_learners"]
