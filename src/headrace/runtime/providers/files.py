"""Values in Java's properties files, and values that are whole files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headrace.runtime.providers.provider import LookupFailedError, readable_path
from headrace.runtime.settings.properties import parsed_properties


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProvider:
    """``${file:/etc/secrets.properties:password}``, as Kafka's ``FileConfigProvider``."""

    allowed: tuple[str, ...] = ()

    def value(self, path: str, key: str) -> str:
        """See :class:`~headrace.runtime.providers.provider.Provider`."""
        content = _content(readable_path(path, self.allowed), path)
        try:
            found = parsed_properties(content)
        except ValueError:
            # What is wrong with a line would show the line.
            raise LookupFailedError(f"{path} is not a properties file") from None
        if key not in found:
            raise LookupFailedError(f"there is no key {key} in {path}")
        return found[key]

    def file(self, path: str, key: str) -> Path | None:
        """See :class:`~headrace.runtime.providers.provider.Provider`."""
        return Path(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryProvider:
    """``${directory:/run/secrets:password}``: a file's whole content, as Kafka's ``DirectoryConfigProvider``."""

    allowed: tuple[str, ...] = ()

    def value(self, path: str, key: str) -> str:
        """See :class:`~headrace.runtime.providers.provider.Provider`."""
        folder = readable_path(path, self.allowed)
        if not key or key in (".", "..") or "/" in key:
            raise LookupFailedError(f"{key!r} is not the name of a file in {path}")
        # A link out of the allowed folders is no way around them.
        file = readable_path(str(folder / key), self.allowed)
        try:
            return _content(file, f"{path}/{key}").decode()
        except UnicodeDecodeError:
            raise LookupFailedError(f"{path}/{key} is not text in UTF-8") from None

    def file(self, path: str, key: str) -> Path | None:
        """See :class:`~headrace.runtime.providers.provider.Provider`."""
        return Path(path) / key


def _content(file: Path, named: str) -> bytes:
    try:
        return file.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise LookupFailedError(f"{named} cannot be read: {reason}") from error
