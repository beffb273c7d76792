"""Everything that uses Spark: the session, the engine, and the functions that Spark runs on its executors."""
