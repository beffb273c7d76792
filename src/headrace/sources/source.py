"""A data source as its author describes it: which objects there are, and what names each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, Generic

from headrace.connect.errors import TaskFailedError
from headrace.sources.item import Context, NativeItem
from headrace.sources.keys import K, KeyCodec
from headrace.sources.offset_entry import OffsetEntry, OffsetKey


class NativeSource(ABC, Generic[K]):
    """Lists the objects of a source, oldest key first, and makes their offset entries.

    One object of this class lives in each task; :meth:`items` and what it returns are used on one thread.
    """

    name: ClassVar[str]
    """What people call the source, such as "S3 bucket"."""

    item_class: ClassVar[type[NativeItem[K]]]  # pyright: ignore[reportGeneralTypeIssues]
    """What :meth:`items` yields: tells before anything runs whether items are streams of bytes."""

    starts_at_keys: ClassVar[bool] = True
    """Whether :meth:`items` can begin at a key. ``False`` where it yields all objects each time."""

    resumes: ClassVar[bool] = True
    """Whether an object can be gone on with in its middle.

    ``False`` where its records do not come in the same order each time, or :meth:`entry_from_data` gives no
    entry: an object that was half read is read from its beginning. It is then exactly-once where each object
    is a transaction of its own, which ``transaction.boundary=connector`` makes it.
    """

    @abstractmethod
    def items(self, start_from: K | None) -> Iterator[NativeItem[K]]:
        """The objects there are now, in the order of their keys, from *start_from* on (``None``: all).

        Whether *start_from* itself is among them does not matter. A source that cannot start in the middle
        yields all of them and says :attr:`starts_at_keys` ``= False``: that costs time and nothing else. A
        listing may be cut at a page, of two objects at least: it is asked again from its last key on, until
        nothing follows. Called again and again while the task runs. Raises ``OSError`` or :class:`~headrace.connect.errors.RetriableError`
        when the source does not answer: ending early says that there is no more.
        """

    def item(self, native_key: K) -> NativeItem[K]:
        """The object of *native_key*, which an earlier listing showed, maybe in another process.

        Overriding it lets the driver plan: see :class:`~headrace.sources.planned.PlannedNativeConnector`.
        Raises ``OSError`` when the source does not answer; an object that is gone raises when it is opened.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot find objects by their keys.")

    def key_codec(self) -> KeyCodec[K] | None:
        """The text form of keys; ``None`` (the default) when they have none.

        Without it there is no start key, and after a restart the first listing begins with the first
        object. A source without one must override :meth:`offset_key` and :meth:`entry_from_data`.
        """
        return None

    def offset_key(self, native_key: K) -> OffsetKey:
        """What names the object of *native_key* in the offsets topic; equal for equal keys."""
        codec = self.key_codec()
        if codec is None:
            raise TaskFailedError(
                f"{type(self).__name__} must override key_codec or offset_key: nothing names its objects."
            )
        return OffsetKey({"key": codec.encode(native_key)})

    def entry_from_context(self, context: Context[K]) -> OffsetEntry:
        """A new entry, of an object of which nothing was sent."""
        return OffsetEntry(self.offset_key(context.native_key))

    def entry_from_data(self, data: Mapping[str, object]) -> OffsetEntry | None:
        """The entry that had *data* as its properties.

        ``None`` says that an object that was half sent is read from its beginning: for a class that says
        :attr:`resumes` ``= False``, and only there.
        """
        codec = self.key_codec()
        text = data.get("key")
        if codec is None or not isinstance(text, str):
            raise TaskFailedError(
                f"{type(self).__name__} must override entry_from_data, as it names its objects by itself: "
                f"{dict(data)}"
            )
        return OffsetEntry(self.offset_key(codec.decode(text)), data)

    def acknowledge(self, read: Mapping[K, str | None]) -> None:
        """The objects *read* are done: the commit that covers their last records has happened.

        The place to acknowledge, delete or move them. Each key comes with the version that was read, if
        there is one: an object that has another one by now should be left. Told at least once for each
        object that a listing still shows, so also after a crash, and again while it raises; called on the
        task's own thread beside :meth:`items`, or on the driver where that plans.
        """

    def close(self) -> None:
        """Release what the source holds; called once, when the task ends."""
