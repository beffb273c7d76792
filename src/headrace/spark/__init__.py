"""The only door to Spark: the session, the engine, and the function that Spark carries to its executors."""
