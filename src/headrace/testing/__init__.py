"""Conformance suites and doubles for those who write connectors and stores."""

import sys

if "pytest" in sys.modules:
    # So that a failed assertion of a suite shows the values that differ. The suites are not imported before.
    sys.modules["pytest"].register_assert_rewrite(
        *(
            f"{__name__}.{suite}"
            for suite in (
                "change_suites",
                "format_suite",
                "native_connector_suite",
                "native_suite",
                "storage_suites",
                "store_suite",
            )
        )
    )
