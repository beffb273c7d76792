"""Objects taken out of S3's listings, beside what botocore reads of the same answer."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.parsers import create_parser

from headrace.stores.s3.pages import read_objects

HEAD = '<?xml version="1.0"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
OBJECT = (
    "<Contents><Key>a&amp;%2B</Key><LastModified>2026-03-01T10:20:30.123Z</LastModified>"
    "<ETag>&quot;e&quot;</ETag><Size>12</Size>{more}</Contents>"
)
USUAL = (
    "<Contents><Key>a/b%2B</Key><LastModified>2026-03-01T10:20:30.000Z</LastModified>"
    "<ETag>&quot;e&quot;</ETag><Size>12</Size>"
    "<StorageClass>STANDARD</StorageClass></Contents>"
)
TAIL = (
    "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
    "</ListBucketResult>"
)


def parsed(body: str, *, by_us: bool, status: int = 200) -> dict[str, Any]:
    """What botocore makes of *body*, with our part in it or without."""
    client = boto3.client("s3", region_name="us-east-1")
    shape = client.meta.service_model.operation_model("ListObjectsV2").output_shape
    answer: dict[str, Any] = {"status_code": status, "headers": {}, "body": body.encode()}
    found: dict[str, Any] = {}
    if by_us:
        read_objects(answer, found)
    return {**create_parser("rest-xml").parse(answer, shape), **found}


@pytest.mark.parametrize(
    "body",
    [
        f"{HEAD}{TAIL}",
        f"{HEAD}{OBJECT.format(more='')}{TAIL}",
        f"{HEAD}{OBJECT.format(more='<StorageClass>GLACIER</StorageClass>') * 3}{TAIL}",
        f"{HEAD}<Name>b</Name>{OBJECT.format(more='')}<KeyCount>2</KeyCount>{OBJECT.format(more='')}{TAIL}",
        f"{HEAD}{USUAL * 3}{TAIL}",
        f"{HEAD}{USUAL}{OBJECT.format(more='')}{USUAL}{TAIL}",
        f"{HEAD}{USUAL}<!-- {USUAL} -->{TAIL}",
    ],
    ids=["none", "one", "three", "between others", "usual", "beside usual", "comment"],
)
def test_a_page_is_what_botocore_reads(body: str):
    """Keys, sizes, times and all that is not an object."""
    ours, theirs = parsed(body, by_us=True), parsed(body, by_us=False)
    for each in ours.get("Contents", ()):
        if each["StorageClass"] is None:
            del each["StorageClass"]

    assert theirs == ours


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (f"{HEAD}{OBJECT.format(more='')}", 200),
        ("", 200),
        ("<Error><Code>SlowDown</Code></Error>", 200),
        (f"{HEAD}{OBJECT.format(more='').replace('>12<', '>x<')}{TAIL}", 200),
        (f"{HEAD}{OBJECT.format(more='').replace('.123Z', '')}{TAIL}", 200),
        (f"{HEAD}{OBJECT.format(more='')}{TAIL}", 500),
    ],
    ids=["cut", "empty", "error", "size", "zone", "status"],
)
def test_what_is_not_as_expected_is_left_to_botocore(body: str, status: int):
    """It is as it was, for botocore to judge."""
    answer: dict[str, Any] = {"status_code": status, "headers": {}, "body": body.encode()}
    found: dict[str, Any] = {}
    read_objects(answer, found)

    assert (body.encode(), {}) == (answer["body"], found)


def test_the_store_lists_with_it(monkeypatch: pytest.MonkeyPatch):
    """Botocore calls it: it is the reason why listings are fast."""
    from headrace.stores.s3.client import client_of
    from headrace.stores.s3.config import S3Config

    props = {"s3.bucket": "b", "s3.access.key.id": "a", "s3.secret.access.key": "b"}
    client: Any = client_of(S3Config.parse(props))
    answer: dict[str, Any] = {
        "status_code": 200,
        "headers": {},
        "body": f"{HEAD}{OBJECT.format(more='')}{TAIL}".encode(),
    }
    found: dict[str, Any] = {}
    client.meta.events.emit(
        "before-parse.s3.ListObjectsV2",
        operation_model=client.meta.service_model.operation_model("ListObjectsV2"),
        response_dict=answer,
        customized_response_dict=found,
    )

    assert ["a&%2B"] == [each["Key"] for each in found["Contents"]]
    assert b"Contents" not in answer["body"]
