"""The mirror: copies topics from one Kafka cluster to another, as MirrorMaker 2 does, but exactly once (KIP-656)."""
