"""Which media types a request may send and wants to have: JSON, both ways."""

from __future__ import annotations

from headrace.rest.asked import JSON

_ACCEPTED = frozenset({JSON, "application/*", "*/*"})


def is_json(content_type: str) -> bool:
    """Whether a header ``Content-Type`` says that the body is JSON, whatever its parameters."""
    return content_type.partition(";")[0].strip().lower() == JSON


def accepts_json(accept: str | None) -> bool:
    """Whether a header ``Accept`` (``None`` when there is none) lets JSON be answered."""
    if accept is None or not accept.strip():
        return True
    ranges = [_range(each) for each in accept.split(",")]
    given = {media: is_wanted for media, is_wanted in ranges if media in _ACCEPTED}
    # What is said of JSON itself counts more than what is said of everything.
    return next((given[each] for each in (JSON, "application/*", "*/*") if each in given), False)


def _range(text: str) -> tuple[str, bool]:
    media, *parameters = (part.strip().lower() for part in text.split(";"))
    weight = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    return media, bool(weight.strip("0."))
