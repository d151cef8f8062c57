"""Kafka transports around the runtime: the only package that may import a Kafka client."""
