"""Objects of a store: listed, opened."""
