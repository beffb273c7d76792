"""The settings of workers and connectors, the files they come from, and what is wrong with them."""

from __future__ import annotations
