"""SparkSql: expressions of Spark SQL, applied between reading and writing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NoReturn

from headrace.connect.config import Config, Problem, setting
from headrace.connect.errors import TaskFailedError
from headrace.connect.record import SourceRecord

# Tokens whose commas do not separate expressions: text (with Spark's backslashes), names in backticks, comments.
_WHOLE: Final = re.compile(
    r"""[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|\w+""",
    re.DOTALL,
)
_ENDS_WITH_AS: Final = re.compile(r"\s[aA][sS]$")
_QUOTES: Final = "'\"`"
_CLOSED_BY: Final = {"(": ")", "[": "]", "{": "}"}


def sql_items(text: str) -> tuple[str, ...]:
    """The expressions of *text*, each without the blanks around it. Pure.

    Raises ``ValueError`` with a sentence for an empty expression, for ``AS`` without a name, and for unbalanced
    brackets.
    """
    items = tuple(piece.strip() for piece in _pieces(text))
    if not all(items):
        raise ValueError("An expression is missing between two commas, or at an end of the list.")
    nameless = next(filter(_ENDS_WITH_AS.search, items), None)
    if nameless is not None:
        # Spark would take AS itself for the name.
        raise ValueError(f"A name is missing after AS in {nameless}.")
    return items


def _pieces(text: str) -> Iterator[str]:
    begin = at = 0
    awaited = list[str]()
    while at < len(text):
        whole = _WHOLE.match(text, at)
        if whole is not None:
            at = whole.end()
            continue
        character = text[at]
        if character == "," and not awaited:
            yield text[begin:at]
            begin = at + 1
        _nest(character, awaited)
        at += 1
    if awaited:
        raise ValueError(f"A {awaited[-1]} is missing.")
    yield text[begin:]


def _nest(character: str, awaited: list[str]) -> None:
    """Add to *awaited* the closing bracket for *character*, or remove *character* if it closes one."""
    if character in _QUOTES or character in _CLOSED_BY.values():
        if not awaited or awaited.pop() != character:
            raise ValueError(f"A {character} stands alone.")
    elif character in _CLOSED_BY:
        awaited.append(_CLOSED_BY[character])


SPARK_SQL: Final = "headrace.transforms.SparkSql"
"""Its name in configurations."""

# A module and a name in it, with a colon or a dot in between.
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*[.:][^\W\d]\w*")


class SparkSqlConfig(Config):
    select: str | None = setting(
        default=None,
        importance="high",
        width="LONG",
        doc="A list of Spark SQL expressions, each with a name (`price * 1.2 AS gross`): the fields of the new value. "
        "They see the fields of the value, and the record's `key`, `value`, `headers`, `timestamp`, `topic` and "
        "`partition`. `*` stands for all fields. Without it the value stays as it is.",
    )
    where: str | None = setting(
        default=None,
        importance="high",
        width="LONG",
        doc="A Spark SQL expression; records of which it is not true are dropped, and their offsets move all the same.",
    )
    function: str | None = setting(
        default=None,
        importance="medium",
        width="LONG",
        doc="A Python function from DataFrame to DataFrame, `module:name`, that is called before the expressions. Row "
        "by row: it may add, change and leave out columns, and nothing else.",
    )

    def check(self) -> Iterator[Problem]:
        """Check what is possible without Spark: that a setting is given, and the form of *select* and *function*."""
        if not any(_is_given(each) for each in (self.select, self.where, self.function)):
            yield "select", "SparkSql has nothing to do: set select, where or function."
        try:
            self.items()
        except ValueError as error:
            yield "select", f"Invalid value {self.select} for configuration select: {error}"
        if self.function is not None and not _FUNCTION.fullmatch(self.function.strip()):
            message = f"Invalid value {self.function} for configuration function"
            yield (
                "function",
                f"{message}: It must be a module and a function in it, as module:name.",
            )

    def items(self) -> tuple[str, ...]:
        """The expressions of *select*; raises ``ValueError`` when they cannot be separated."""
        return sql_items(self.select) if self.select and _is_given(self.select) else ()


class SparkSql:
    """Marks the place in a chain where Spark does its work; no record goes through an instance."""

    config_class = SparkSqlConfig

    def configure(self, config: Mapping[str, str]) -> None:
        """Only check *config*; raises :class:`~headrace.connect.errors.ConfigError`."""
        SparkSqlConfig.parse(config)

    def apply(self, record: SourceRecord) -> NoReturn:
        """Raises :class:`~headrace.connect.errors.TaskFailedError`: chains are divided here before they run."""
        raise TaskFailedError(
            f"{SPARK_SQL} runs in Spark, between reading and writing, not in this data plane."
        )


def _is_given(text: str | None) -> bool:
    return text is not None and bool(text.strip())
