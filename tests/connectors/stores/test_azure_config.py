"""The settings of Azure Blob Storage, the logins that they make, and what Azure says."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import pytest
from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError

from headrace.connect.errors import TaskFailedError
from headrace.stores.azure.account import Account, of_connection_string
from headrace.stores.azure.config import AzureConfig
from headrace.stores.azure.errors import refusal_of
from headrace.stores.azure.listing import page_of
from headrace.stores.azure.login import KeyLogin, TokenLogin, login_of
from headrace.stores.azure.tags import tags_of, xml_of
from headrace.stores.errors import KeyNotRepresentableError, StoreUnavailableError
from headrace.stores.rest.client import Request

BASE = {"azure.container": "c", "azure.account": "acct"}
KEY = base64.b64encode(b"very-secret").decode()
REQUEST = Request(method="GET", path="/c/a")


def test_the_defaults_ask_azure_with_the_usual_chain():
    """Nothing but account and container is needed."""
    account = AzureConfig.parse(BASE).storage_account()

    assert "https://acct.blob.core.windows.net" == account.endpoint
    assert account.needs_token


@pytest.mark.parametrize(
    ("props", "key"),
    [
        ({"azure.container": ""}, "azure.container"),
        ({"azure.account": None}, "azure.account"),
        ({"azure.endpoint": "acct.example"}, "azure.endpoint"),
        ({"azure.endpoint": "https://acct.example?sig=1"}, "azure.endpoint"),
        ({"azure.endpoint": "http://127.0.0.1:9/acct"}, "azure.endpoint"),
        ({"azure.account.key": KEY, "azure.sas.token": "sig=1"}, "azure.account.key"),
        ({"azure.account.key": KEY, "azure.anonymous": "true"}, "azure.account.key"),
        ({"azure.account.key": "very-secret"}, "azure.account.key"),
        ({"azure.sas.token": "very-secret"}, "azure.sas.token"),
        ({"azure.connection.string": f"AccountName=a;AccountKey={KEY}"}, "azure.connection.string"),
        (
            {"azure.account": None, "azure.connection.string": "very-secret"},
            "azure.connection.string",
        ),
        (
            {"azure.account": None, "azure.connection.string": "AccountName=very-secret"},
            "azure.connection.string",
        ),
        ({"azure.tls.verify": "false", "azure.tls.ca.file": "/ca"}, "azure.tls.ca.file"),
        ({"azure.page.size": "5001"}, "azure.page.size"),
    ],
    ids=str,
)
def test_what_does_not_fit_together_is_told(props: dict[str, str | None], key: str):
    """At the key that a person would change, and without showing a secret."""
    merged = {name: text for name, text in {**BASE, **props}.items() if text is not None}
    problems = AzureConfig.problems(merged)

    assert [key] == [name for name, _ in problems]
    assert "very-secret" not in str(problems)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"DefaultEndpointsProtocol=https;AccountName=n;AccountKey={KEY};EndpointSuffix=core.example",
            Account(name="n", endpoint="https://n.blob.core.example", key=b"very-secret"),
        ),
        (
            "BlobEndpoint=https://n.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=a%2Bb%3D",
            Account(
                name="n",
                endpoint="https://n.blob.core.windows.net",
                sas={"sv": "1", "sig": "a+b="},
            ),
        ),
        (
            f"accountname=n;accountkey={KEY};blobendpoint=http://127.0.0.1:9/n;QueueEndpoint=http://q;",
            Account(name="n", endpoint="http://127.0.0.1:9/n", key=b"very-secret"),
        ),
    ],
    ids=["key", "signature", "emulator"],
)
def test_connection_strings_of_all_kinds(text: str, expected: Account):
    """As portals and tools show them."""
    account = of_connection_string(text)

    assert expected == account
    assert "very-secret" not in repr(account)


@pytest.mark.parametrize(
    "text",
    [
        "AccountName=n;BlobEndpoint=n.example",
        "BlobEndpoint=n.example",
        "AccountName=n;BlobEndpoint=ftp://n.example",
        "AccountName=n;BlobEndpoint=https://",
        "AccountName=n;BlobEndpoint=https://me:very-secret@n.example",
        "AccountName=n;BlobEndpoint=https://n.example/?sig=very-secret",
        "AccountName=n;DefaultEndpointsProtocol=ftp",
    ],
)
def test_a_connection_string_names_an_address(text: str):
    """Told at validation, and not by the first request; what stands there is not shown."""
    props = {"azure.container": "c", "azure.connection.string": f"{text};AccountKey={KEY}"}
    ((key, sentence),) = AzureConfig.problems(props)

    assert "azure.connection.string" == key
    assert "BlobEndpoint" in sentence
    assert "http:// or https://" in sentence
    assert "very-secret" not in sentence


def test_secrets_are_not_shown():
    """None of the three."""
    for name in ("azure.account.key", "azure.sas.token", "azure.connection.string"):
        props = {**BASE, name: f"AccountKey={KEY}&sig=very-secret"}
        assert "very-secret" not in str(AzureConfig.problems(props))
    config = AzureConfig.parse({**BASE, "azure.account.key": KEY})
    assert KEY not in repr(config)


def test_a_key_signs_what_azure_documents():
    """The text that is signed, by the example in "Authorize with Shared Key", with the account first."""
    login = KeyLogin("myaccount", b"key")
    request = Request(
        method="GET",
        path="/mycontainer",
        query={"restype": "container", "comp": "metadata", "timeout": "20"},
        headers={"x-ms-version": "2015-02-21", "x-ms-date": "Fri, 26 Jun 2015 23:39:12 GMT"},
    )

    assert (
        "GET\n\n\n\n\n\n\n\n\n\n\n\n"
        "x-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n"
        "/myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"
    ) == login.text_of(request)


def test_a_signature_is_part_of_every_address():
    """Plus signs of its base64 are kept, encoded or not."""
    for text in ("?sv=1&sig=a%2Bb%2F%3D", "sv=1&sig=a+b/="):
        login = login_of(Account.of(name="n", endpoint=None, sas=text))
        assert "/c/a?sv=1&sig=a%2Bb%2F%3D" == login(REQUEST).target


@dataclass
class FakeToken:
    """A token of the chain."""

    token: str
    expires_on: int


def test_a_token_is_kept_until_shortly_before_its_end():
    """Then a new one is fetched; the chain is made once."""
    now = [1000.0]
    made: list[str] = []

    def fetch(scope: str) -> FakeToken:
        made.append(scope)
        return FakeToken(f"token-{len(made)}", int(now[0]) + 3600)

    login = TokenLogin(lambda: fetch, now=lambda: now[0])
    shown: list[str] = []
    for moment in (1000.0, 4299.0, 4301.0):
        now[0] = moment
        shown.append(login(REQUEST).headers["Authorization"])

    assert ["Bearer token-1", "Bearer token-1", "Bearer token-2"] == shown
    assert {"https://storage.azure.com/.default"} == set(made)


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (
            ClientAuthenticationError("No login."),
            TaskFailedError,
            r"No login\. .*azure\.account\.key",
        ),
        (ServiceRequestError("Away."), StoreUnavailableError, "Away"),
    ],
    ids=["refused", "away"],
)
def test_a_login_that_failed(error: Exception, kind: type[Exception], told: str):
    """Refused is final, away is not."""

    def fetch(scope: str) -> FakeToken:
        raise error

    with pytest.raises(kind, match=told):
        TokenLogin(lambda: fetch)(REQUEST)


def test_names_that_xml_cannot_hold_come_encoded():
    """And only those."""
    names = ['<Name Encoded="true">a%EF%BF%BF%2F</Name>', "<Name>c%41</Name>"]
    page = page_of("az://c", _page(*names, marker="next"))

    assert ["a\uffff/", "c%41"] == [each.key for each in page.objects]
    assert "next" == page.marker
    assert (3, "0x1", 1445412480000) == (
        page.objects[0].size,
        page.objects[0].version,
        page.objects[0].modified_ms,
    )


def test_a_name_that_is_no_text_ends_the_listing():
    """It is not left out silently."""
    body = _page("<Name>a</Name>", '<Name Encoded="true">%FF</Name>', marker="")

    with pytest.raises(KeyNotRepresentableError) as refused:
        page_of("az://c", body)

    assert "%FF" == refused.value.key


def test_folders_of_a_hierarchical_namespace_are_no_objects():
    """Nor are they the end of the page."""
    more = "<ResourceType>directory</ResourceType>"
    body = _page("<Name>folder</Name>", marker="", more=more)

    assert [] == page_of("az://c", body).objects


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"<EnumerationResults/>", b"<R><Blobs/></R>"],
)
def test_what_is_no_page_is_not_an_empty_one(body: bytes):
    """It may come whole next time."""
    with pytest.raises(StoreUnavailableError, match="no page"):
        page_of("az://c", body)


def test_a_refusal_has_its_code_in_a_header_and_its_sentence_in_xml():
    """An answer to HEAD has no body, and a proxy's has neither."""
    body = b"<Error><Code>BlobNotFound</Code><Message>Not there.\nRequestId:1</Message></Error>"
    code = {"x-ms-error-code": "BlobNotFound"}

    for headers, text, expected in (
        (code, body, ("BlobNotFound", "Not there.")),
        (code, b"", ("BlobNotFound", "BlobNotFound")),
        ({}, b"busy", ("503", "busy")),
        ({"x-ms-error-code": "CannotVerifyCopySource"}, b"", ("CannotVerifyCopySource",) * 2),
    ):
        refusal = refusal_of(503, headers, text)
        assert expected == (refusal.code, refusal.message)
    assert (
        "BlobNotFound" == refusal_of(404, {"x-ms-error-code": "CannotVerifyCopySource"}, b"").code
    )


def test_tags_are_there_and_back():
    """Whatever is in them."""
    tags = {"a": "<&>", "é": "", "x y": "1+2=3"}

    assert tags == tags_of("here", xml_of(tags))
    with pytest.raises(StoreUnavailableError, match="here"):
        tags_of("here", b"<Tags>")


def _page(*names: str, marker: str, more: str = "") -> bytes:
    properties = (
        "<Properties><Last-Modified>Wed, 21 Oct 2015 07:28:00 GMT</Last-Modified><Etag>0x1</Etag>"
        f"<Content-Length>3</Content-Length>{more}</Properties>"
    )
    blobs = "".join(f"<Blob>{name}{properties}</Blob>" for name in names)
    return (
        f"<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>"
    ).encode()
