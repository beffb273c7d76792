"""Levels of loggers: Java's names, prefixes, and who was changed when."""

from __future__ import annotations

import logging

import pytest

from headrace.observe.log_levels import LEVELS, Levels, LoggerLevel, UnknownLevelError, level_name


@pytest.fixture
def root() -> logging.Logger:
    """A hierarchy of its own, with ``a``, ``a.b`` and ``ab`` in it."""
    root = logging.RootLogger(logging.WARNING)
    root.manager = logging.Manager(root)
    for name in ("a", "a.b", "ab", "other"):
        root.manager.getLogger(name)
    return root


def test_levels_have_names_both_ways():
    """A level between two is the name of what still passes."""
    assert list(LEVELS) == [level_name(LEVELS[name]) for name in LEVELS]
    assert ["ALL", "INFO", "WARN", "OFF"] == [level_name(each) for each in (0, 15, 25, 1000)]


def test_a_prefix_changes_all_below_it(root: logging.Logger):
    """And really changes what is logged."""
    changed = Levels(root).change("a", "debug")

    assert ["a", "a.b", "ab"] == changed
    assert root.manager.getLogger("ab").isEnabledFor(logging.DEBUG)
    assert not root.manager.getLogger("other").isEnabledFor(logging.INFO)


def test_only_changed_ones_are_reported(root: logging.Logger):
    """The same level again changes nothing and no one."""
    levels = Levels(root)
    levels.change("a.b", "ERROR")

    assert ["a", "ab"] == levels.change("a", "ERROR")
    assert [] == levels.change("a", "ERROR")


def test_an_unknown_logger_is_made_by_a_change_only(root: logging.Logger):
    """Asking for it makes none."""
    levels = Levels(root)
    assert levels.of("new") is None

    levels.change("new", "FATAL")

    assert "FATAL" == (levels.of("new") or LoggerLevel(level="", last_modified_ms=None)).level


def test_the_root_stands_for_all(root: logging.Logger):
    """Every logger that is there gets its level."""
    levels = Levels(root)

    assert ["a", "a.b", "ab", "other", "root"] == levels.change("ROOT", "TRACE")
    assert root.manager.getLogger("other").isEnabledFor(5)


def test_off_and_all(root: logging.Logger):
    """OFF passes not even fatal errors, ALL everything."""
    levels = Levels(root)
    levels.change("a", "OFF")
    levels.change("other", "ALL")

    assert not root.manager.getLogger("a.b").isEnabledFor(logging.CRITICAL)
    assert root.manager.getLogger("other").isEnabledFor(1)


def test_those_with_levels_are_listed(root: logging.Logger):
    """With the time of their last change, if there was any; the root always."""
    root.manager.getLogger("other").setLevel(logging.ERROR)
    levels = Levels(root, clock=lambda: 1698200000.5)
    levels.change("a.b", "INFO")

    assert {
        "a.b": LoggerLevel(level="INFO", last_modified_ms=1698200000500),
        "other": LoggerLevel(level="ERROR", last_modified_ms=None),
        "root": LoggerLevel(level="WARN", last_modified_ms=None),
    } == levels.every()


def test_unknown_levels_change_nothing(root: logging.Logger):
    """Java's names only; a number is none."""
    for word in ("LOUD", "5", "WARNING"):
        with pytest.raises(UnknownLevelError):
            Levels(root).change("new", word)

    assert "new" not in root.manager.loggerDict
