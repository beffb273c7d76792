"""Conformance suites and doubles for those who write connectors and stores."""
