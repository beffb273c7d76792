"""Conformance suites and doubles for those who write connectors and stores."""

import sys

if "pytest" in sys.modules:
    # So that who fails a suite sees the values that differ. The suites themselves are not imported yet.
    sys.modules["pytest"].register_assert_rewrite(
        *(
            f"{__name__}.{suite}"
            for suite in (
                "format_suite",
                "native_connector_suite",
                "native_suite",
                "storage_suites",
                "store_suite",
            )
        )
    )
