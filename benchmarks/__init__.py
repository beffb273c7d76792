"""How fast files get into Kafka: headrace, the client's own limit and Kafka Connect, side by side."""
