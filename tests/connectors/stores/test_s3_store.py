"""S3 as a store, against a server with good and bad moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from connectors.stores.s3_owner import S3Owner
from connectors.stores.s3_proxy import Answer, Fault, Proxy
from headrace.connect.errors import TaskFailedError
from headrace.stores.checksum import Checksum
from headrace.stores.errors import (
    ChecksumError,
    KeyNotRepresentableError,
    ObjectArchivedError,
    ObjectChangedError,
    StoreUnavailableError,
)
from headrace.stores.ranged_reader import FIRST_WINDOW
from headrace.stores.s3.config import S3Config
from headrace.stores.s3.copy import CopyLimits
from headrace.stores.s3.store import S3Store, s3_store
from headrace.testing.store_suite import DATA, OTHER_KEYS, PATH_KEYS, Put, StoreSuite, TagsOf

BIG = bytes(range(251)) * 20_000


@pytest.fixture
def put(client: S3Owner, s3_config: S3Config) -> Callable[..., None]:
    """Makes objects in the bucket."""

    def put(key: str, data: bytes, **more: object) -> None:
        client.put_object(Bucket=s3_config.bucket, Key=key, Body=data, **more)

    return put


class TestS3Store(StoreSuite):
    """A bucket, in the suite of all stores, with pages of three keys."""

    exact_keys = (*PATH_KEYS, *OTHER_KEYS)
    refused_keys = ("\ud800", "", "x" * 1025)

    @pytest.fixture
    def store(self, client: S3Owner, s3_config: S3Config) -> S3Store:
        """See the suite."""
        return S3Store(client, s3_config.bucket, page_size=3)

    @pytest.fixture
    def put(self, client: S3Owner, s3_config: S3Config) -> Put:
        """See the suite."""
        return lambda key, data: client.put_object(Bucket=s3_config.bucket, Key=key, Body=data)

    @pytest.fixture
    def tags_of(self, client: S3Owner, s3_config: S3Config) -> TagsOf:
        """See the suite."""

        def tags_of(key: str) -> Mapping[str, str]:
            found = client.get_object_tagging(Bucket=s3_config.bucket, Key=key)
            return {each["Key"]: each["Value"] for each in found["TagSet"]}

        return tags_of


class TestBadMoments:
    """What fails and may pass, and what only looks as if it went well."""

    @pytest.mark.parametrize(
        "fault",
        [
            Fault(status=500, code="InternalError"),
            Fault(status=503, code="SlowDown"),
            Fault(status=429, code="TooMany"),
            Fault(status=400, code="RequestTimeout"),
            Fault(cut_at=0),
            Fault(cut_at=40),
        ],
        ids=lambda fault: fault.code or f"cut at {fault.cut_at}",
    )
    def test_every_operation_goes_on(
        self, fault: Fault, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """Each is tried again, and a cut answer is never a shorter one."""
        for key in "abcde":
            put(key, DATA)
        version = store.head("a").version
        for method, target in (("GET", "list-type"), ("GET", "/a"), ("PUT", "/copy")):
            proxy.fail(replace(fault, method=method, target=target, times=2))

        assert [*"abcde"] == [each.key for each in store.list()]
        assert DATA == store.open("a", version).read()
        assert len(DATA) == store.copy("a", version, "copy").size
        store.delete("a", version)
        assert "b" == next(store.list()).key

    def test_what_does_not_pass_is_an_error_and_no_end(
        self, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """After the last attempt it is an OSError that tells what was asked."""
        put("a", DATA)
        version = store.head("a").version
        opened = store.open("a", version)
        for target in ("list-type", "/a"):
            proxy.fail(Fault("GET", target, times=99, status=503, code="SlowDown"))

        assert DATA == opened.read()
        with pytest.raises(StoreUnavailableError, match=r"s3://bucket.*ListObjectsV2.*503"):
            list(store.list())
        with pytest.raises(StoreUnavailableError, match=r"'a': GetObject: 503"):
            store.open("a", version)
        assert 3 + 1 + 3 == len([each for each in proxy.seen if each[0] == "GET"])

    def test_a_stream_goes_on_at_the_byte_where_it_broke(
        self, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """Each break costs one request, and no byte is read twice."""
        put("a", BIG)
        for cut_at in (1_000_000, 2_000_000, 500_000):
            proxy.fail(Fault("GET", "/a", cut_at=cut_at))

        with store.open("a", store.head("a").version) as opened:
            read = b"".join(iter(lambda: opened.read(300_000) or b"", b""))

        assert BIG == read
        assert 4 == len([each for each in proxy.seen if each[0] == "GET"])

    def test_a_body_that_always_breaks_is_an_error(
        self, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """A short body is never the end of data."""
        put("a", DATA)
        version = store.head("a").version
        proxy.fail(Fault("GET", "/a", times=99, cut_at=0))

        with pytest.raises(OSError, match="'a'"):
            store.open("a", version).read()

    @pytest.mark.parametrize("position", [0, 10])
    def test_a_short_answer_that_looks_whole_is_noticed(
        self, position: int, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """Its own length is right; the object is longer."""
        put("a", DATA)
        version = store.head("a").version
        proxy.fail(Fault("GET", "/a", times=2, change=_shortened))

        assert DATA[position:] == store.open("a", version, position, size=len(DATA)).read()

        proxy.fail(Fault("GET", "/a", times=99, change=_shortened))
        with pytest.raises(StoreUnavailableError, match=r"has 1280|gone on to byte 1280"):
            store.open("a", version, position, size=len(DATA)).read()

    def test_an_answer_that_is_longer_than_the_object_is_noticed(
        self, store: S3Store, put: Callable[..., None]
    ):
        """Which of the two lengths is right cannot be known."""
        put("a", DATA)
        with pytest.raises(StoreUnavailableError, match="speaks of 1280 bytes"):
            store.open("a", store.head("a").version, size=len(DATA) - 1)

    def test_a_server_that_ignores_ranges_is_noticed(
        self, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """Its bytes would be taken for others."""
        put("a", DATA)
        proxy.fail(Fault("GET", "/a", times=99, drop="range"))

        with pytest.raises(StoreUnavailableError, match="asked for from 10 on"):
            store.open("a", store.head("a").version, 10)

    def test_a_server_that_ignores_conditions_is_noticed(
        self, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """The answer tells which version it is."""
        put("a", b"one")
        version = store.head("a").version
        put("a", b"two")
        proxy.fail(Fault("GET", "/a", drop="if-match"))

        with pytest.raises(ObjectChangedError, match="'a'"):
            store.open("a", version)

    @pytest.mark.parametrize(
        "kind", ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256", "SHA512", "MD5"]
    )
    @pytest.mark.parametrize("cut_at", [None, 100])
    def test_flipped_bits_are_noticed_before_the_end(
        self,
        *,
        kind: str,
        cut_at: int | None,
        store: S3Store,
        put: Callable[..., None],
        proxy: Proxy,
    ):
        """Also where the body came in two answers."""
        checksum = Checksum(kind.lower(), b"")
        checksum.update(DATA)
        told = {f"x-amz-checksum-{kind.lower()}": checksum.found}
        put("a", DATA)
        version = store.head("a").version
        proxy.fail(Fault("GET", "/a", cut_at=cut_at, change=_telling(told)))
        assert DATA == store.open("a", version).read()

        change = _telling(told)
        proxy.fail(Fault("GET", "/a", cut_at=cut_at, change=lambda a: change(_flipped(a))))
        with store.open("a", version) as opened:
            assert 50 == len(opened.read(50))
            with pytest.raises(ChecksumError, match=f"{kind.lower()} checksum"):
                opened.read(len(DATA))

    @pytest.mark.parametrize(
        "told",
        [{"x-amz-checksum-crc32": "AAAAAA==-2"}, {"x-amz-checksum-type": "COMPOSITE"}],
        ids=["by its value", "by its type"],
    )
    def test_a_checksum_of_parts_is_not_compared_with_the_whole(
        self, told: dict[str, str], store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """Nobody knows any more where the parts ended."""
        put("a", DATA)
        version = store.head("a").version
        wrong = {"x-amz-checksum-crc32": "AAAAAA=="}
        proxy.fail(Fault("GET", "/a", times=2, change=_telling(wrong)))
        with pytest.raises(ChecksumError):
            store.open("a", version).read()

        proxy.fail(Fault("GET", "/a", change=_telling({**wrong, **told})))
        assert DATA == store.open("a", version).read()

    def test_an_object_that_is_replaced_while_it_is_read(
        self, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """The rest of another version is not the rest of this one."""
        put("a", BIG)
        version = store.head("a").version
        proxy.fail(Fault("GET", "/a", cut_at=1_000_000))
        with store.open("a", version) as opened:
            opened.read(1000)
            put("a", BIG[::-1])
            with pytest.raises(ObjectChangedError, match="'a'"):
                opened.read(len(BIG))

    def test_a_condition_that_the_server_does_not_know(
        self, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """Then the look just before the deletion has to do."""
        put("a", DATA)
        proxy.fail(Fault("DELETE", "/a", status=501, code="NotImplemented"))

        assert store.delete("a", store.head("a").version)
        assert [] == list(store.list())

    def test_without_conditions_each_attempt_to_delete_looks_first(
        self, store: S3Store, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ):
        """Between two of them another object may have come under the key."""
        put("a", DATA)
        client = store._client
        deletions = list[bool]()

        def delete_object(**request: object) -> dict[str, Any]:
            deletions.append("IfMatch" in request)
            if "IfMatch" not in request:
                put("a", BIG)
            status = 503 if "IfMatch" not in request else 501
            told: Any = {"Error": {}, "ResponseMetadata": {"HTTPStatusCode": status}}
            raise ClientError(told, "DeleteObject")

        monkeypatch.setattr(client, "delete_object", delete_object)

        with pytest.raises(ObjectChangedError, match="'a'"):
            store.delete("a", store.head("a").version)

        assert [True, False, True] == deletions


class TestListing:
    """Pages, and servers that do as they like."""

    def test_pages_follow_each_other_with_the_prefix(
        self, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """Each page is asked for with the prefix, not only the first."""
        for number in range(8):
            put(f"in/{number}", b"")
            put(f"out/{number}", b"")

        assert [f"in/{n}" for n in range(8)] == [each.key for each in store.list("in/")]
        pages = [target for _, target in proxy.seen if "list-type" in target]
        assert 3 == len(pages)
        assert all("prefix=in%2F" in page for page in pages)

    def test_a_page_is_asked_for_when_it_is_needed(
        self, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """Memory holds one page, however many there are."""
        for number in range(8):
            put(f"{number}", b"")
        listed = store.list()
        proxy.seen.clear()

        assert ["0", "1", "2"] == [next(listed).key for _ in range(3)]
        assert 1 == len(proxy.seen)

    @pytest.mark.parametrize("ignored", ["start-after", "prefix"])
    def test_a_server_that_ignores_a_parameter(
        self, ignored: str, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """What was not asked for is dropped here."""
        for key in ("a", "b/1", "b/2", "b/3", "c", "d"):
            put(key, b"")
        proxy.fail(Fault("GET", "list-type", times=99, drop=ignored))

        assert ["b/2", "b/3"] == [each.key for each in store.list("b", "b/1")]

    def test_a_listing_without_a_next_page_is_not_the_end(
        self, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """A server that repeats a page does not keep us for ever."""
        for key in "abcd":
            put(key, b"")
        proxy.fail(Fault("GET", "list-type", times=99, drop="continuation-token"))
        with pytest.raises(StoreUnavailableError):
            list(store.list())

    def test_a_key_that_is_not_utf8_ends_the_listing(
        self, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """It is neither made up nor left out silently."""
        for key in ("a", "b", "c", "d"):
            put(key, b"")
        proxy.fail(Fault("GET", "list-type", change=_not_utf8))

        with pytest.raises(KeyNotRepresentableError) as refused:
            list(store.list())

        assert "%FF" == refused.value.key

    def test_line_ends_and_plus_signs_in_keys(
        self, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """Keys come as in a form: a plus sign is a space."""
        put("a", b"")
        proxy.fail(
            Fault("GET", "list-type", change=lambda a: _replaced(a, b"<Key>a<", b"<Key>a+b%0A%2B<"))
        )
        assert ["a b\n+"] == [each.key for each in store.list()]


class TestRequests:
    """What is asked of the server."""

    def test_a_jump_asks_for_a_window_and_not_for_the_rest(
        self, store: S3Store, put: Callable[..., None], proxy: Proxy
    ):
        """Formats with an index jump; each window is twice the one before."""
        put("a", BIG)
        with store.open("a", store.head("a").version) as opened:
            opened.read(10)
            answers: list[int] = []
            proxy.fail(
                Fault("GET", "/a", times=9, change=lambda a: (answers.append(len(a.body)), a)[1])
            )
            opened.seek(1_000_000)
            assert BIG[1_000_000:4_500_000] == opened.read(3_500_000)

        assert [FIRST_WINDOW, 2 * FIRST_WINDOW, len(BIG) - 1_000_000 - 3 * FIRST_WINDOW] == answers

    def test_large_objects_are_copied_in_parts(
        self, client: S3Owner, s3_config: S3Config, put: Callable[..., None], proxy: Proxy
    ):
        """With metadata and tags, which S3 then does not copy by itself."""
        limits = CopyLimits(whole_bytes=1000, part_bytes=300)
        store = S3Store(client, s3_config.bucket, copy_limits=limits)
        put("a b+%/é", DATA, ContentType="text/x", Metadata={"k": "v"}, Tagging="t=u+v")
        version = store.head("a b+%/é").version
        copied = store.copy("a b+%/é", version, "target/ü")

        assert DATA == store.open("target/ü", copied.version).read()
        parts = [target for _, target in proxy.seen if "partNumber" in target]
        assert 5 == len(parts)
        head = client.head_object(Bucket=s3_config.bucket, Key="target/ü")
        assert ("text/x", {"k": "v"}) == (head["ContentType"], head["Metadata"])
        tags = client.get_object_tagging(Bucket=s3_config.bucket, Key="target/ü")["TagSet"]
        assert [{"Key": "t", "Value": "u v"}] == tags

    def test_a_copy_in_parts_that_fails_leaves_no_parts(
        self, client: S3Owner, s3_config: S3Config, put: Callable[..., None], proxy: Proxy
    ):
        """They would be paid for and never seen."""
        limits = CopyLimits(whole_bytes=1000, part_bytes=300)
        store = S3Store(client, s3_config.bucket, copy_limits=limits)
        put("a", DATA)
        proxy.fail(Fault("PUT", "partNumber=3", status=403, code="AccessDenied"))

        with pytest.raises(TaskFailedError, match="AccessDenied"):
            store.copy("a", store.head("a").version, "target")
        assert ["a"] == [each.key for each in store.list()]
        assert "Uploads" not in client.list_multipart_uploads(Bucket=s3_config.bucket)

    def test_a_bucket_with_versions_keeps_what_was_deleted(
        self, client: S3Owner, s3_config: S3Config, store: S3Store, put: Callable[..., None]
    ):
        """Only the newest is hidden; the one before it does not come up."""
        client.put_bucket_versioning(
            Bucket=s3_config.bucket, VersioningConfiguration={"Status": "Enabled"}
        )
        put("a", b"one")
        put("a", b"two")
        version = store.head("a").version
        store.tag("a", version, {"k": "v"})
        store.copy("a", version, "b")
        store.delete("a", version)
        store.delete("a", version)

        assert ["b"] == [each.key for each in store.list()]
        kept = client.list_object_versions(Bucket=s3_config.bucket, Prefix="a")
        assert (2, 1) == (len(kept["Versions"]), len(kept["DeleteMarkers"]))

    def test_an_archived_object_says_so(self, store: S3Store, put: Callable[..., None]):
        """In the listing, and when it is opened."""
        put("a", DATA, StorageClass="GLACIER")
        (found,) = store.list()

        assert "GLACIER" == found.storage_class
        with pytest.raises(ObjectArchivedError, match="Restore"):
            store.open("a", found.version)

    def test_what_a_person_has_to_mend_is_not_tried_again(
        self, s3_config: S3Config, store: S3Store, proxy: Proxy
    ):
        """A refusal or a missing bucket is no bad moment, nor a missing object."""
        proxy.fail(Fault("GET", "list-type", times=9, status=403, code="AccessDenied"))
        with pytest.raises(TaskFailedError, match="AccessDenied"):
            list(store.list())
        assert 1 == len(proxy.seen)
        proxy.forget()
        missing = s3_store(replace(s3_config, bucket="missing-bucket"))
        with pytest.raises(TaskFailedError, match="NoSuchBucket"):
            list(missing.list())
        with pytest.raises(TaskFailedError, match="NoSuchBucket"):
            missing.open("a", "x")

    def test_a_server_that_is_away_may_come_back(self, s3_config: S3Config):
        """The error names its address."""
        away = s3_store(replace(s3_config, endpoint="http://127.0.0.1:1"))
        with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1:1"):
            away.head("a")


def _shortened(answer: Answer) -> Answer:
    return replace(answer, body=answer.body[:-7])


def _flipped(answer: Answer) -> Answer:
    return replace(answer, body=bytes([answer.body[0] ^ 1]) + answer.body[1:])


def _not_utf8(answer: Answer) -> Answer:
    return _replaced(answer, b"<Key>b<", b"<Key>%FF<")


def _replaced(answer: Answer, old: bytes, new: bytes) -> Answer:
    return replace(answer, body=answer.body.replace(old, new))


def _telling(headers: dict[str, str]) -> Callable[[Answer], Answer]:
    """Adds *headers* to an answer."""
    return lambda answer: replace(answer, headers={**answer.headers, **headers})
