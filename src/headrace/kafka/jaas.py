"""Java's login line ``sasl.jaas.config``, read as Kafka's Java clients read it. Pure.

No sentence here shows a part of the line but its module and the names of options that we know: what a
misplaced quote makes of the rest may be a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

_USER: Final = {"username": "sasl.username", "password": "sasl.password"}
_MODULES: Final[Mapping[str, Mapping[str, str]]] = {
    "PlainLoginModule": _USER,
    "ScramLoginModule": _USER,
    "OAuthBearerLoginModule": {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    },
}
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""[\x00-\x20]+ | /\*.*?\*/ | /[^\n]*
    | "(?P<double>(?:\\.|[^"\\\n])*)"? | '(?P<single>(?:\\.|[^'\\\n])*)'?
    | (?P<mark>[;=]) | (?P<word>[^\x00-\x20;="'/]+)""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}

Token = tuple[str, bool]
"""A word or a quoted text; or, told by the second place, one of the marks ``;`` and ``=``."""


def jaas_settings(line: str) -> dict[str, str]:
    """The client's settings that *line* stands for; raises ``ValueError`` with a sentence."""
    module, options = _login(list(_tokens(line)))
    name = module.rpartition(".")[2]
    names = _MODULES.get(name)
    if names is None:
        raise ValueError(
            f"The login module {module} cannot be used here, only Java's PlainLoginModule, ScramLoginModule and "
            "OAuthBearerLoginModule."
        )
    if options.get("tokenauth", "").lower() == "true":
        raise ValueError("Delegation tokens (tokenauth) cannot be used here; name a user.")
    if names is not _USER:
        oauth = {"sasl.oauthbearer.method": "oidc"}
        return oauth | {names[key]: value for key, value in options.items() if key in names}
    missing = [key for key in names if not options.get(key)]
    if missing:
        raise ValueError(f"{' and '.join(missing)} must be given in JAAS config.")
    return {names[key]: options[key] for key in names}


def _login(tokens: list[Token]) -> tuple[str, dict[str, str]]:
    """The login module and its options. The sentences are those of Kafka's Java clients."""
    if not tokens or tokens[0][1]:
        raise ValueError("Login module not specified in JAAS config.")
    module, flag, rest = tokens[0][0], tokens[1:2], tokens[2:]
    if not flag:
        raise ValueError("Login module control flag not specified in JAAS config.")
    if flag[0][1] or flag[0][0].lower() not in _FLAGS:
        raise ValueError(
            f"Invalid login module control flag in JAAS config; it is one of {', '.join(_FLAGS)}."
        )
    if (";", True) not in rest:
        raise ValueError("JAAS config entry not terminated by semi-colon.")
    end = rest.index((";", True))
    if rest[end + 1 :]:
        raise ValueError("JAAS config property contains more than one login module, should be 1.")
    return module, _options(rest[:end])


def _options(tokens: list[Token]) -> dict[str, str]:
    options = dict[str, str]()
    while tokens:
        (key, is_mark), equals, value = tokens[0], tokens[1:2], tokens[2:3]
        if is_mark or equals != [("=", True)] or not value or value[0][1]:
            known = {name for names in _MODULES.values() for name in names}
            which = f"key '{key}'" if key in known else "one of the keys"
            raise ValueError(
                f"Value not specified for {which} in JAAS config. Put each value in double quotes."
            )
        options[key] = value[0][0]
        tokens = tokens[3:]
    return options


def _tokens(line: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(line):
        double, single, mark, word = found.group("double", "single", "mark", "word")
        quoted = single if double is None else double
        if quoted is not None:
            yield _ESCAPE.sub(_unescaped, quoted), False
        elif mark or word:
            yield mark or word, bool(mark)


def _unescaped(found: re.Match[str]) -> str:
    text = found[1]
    return chr(int(text, 8)) if text[0] in "01234567" else _ESCAPED.get(text, text)
