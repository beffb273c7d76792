"""Configurations of the files connector that speak of a store."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headrace.connect.setting import SettingType
from headrace.connectors.files.config import FilesConfig
from headrace.stores import catalogue

S3 = {"files.path": "s3://bucket/in/,s3://bucket/more", "topic": "t"}


def test_a_store_and_its_settings_are_known():
    """Validation and reference pages see them with those of the connector; secrets are marked."""
    settings = {each.name: each for each in FilesConfig.settings()}

    assert SettingType.PASSWORD == settings["s3.secret.access.key"].type
    assert {"s3.bucket", "s3.prefix"}.isdisjoint(settings)
    assert len(settings) == len(FilesConfig.settings())
    assert () == FilesConfig.problems(S3)
    config = FilesConfig.parse(S3)
    assert config.root
    assert ("s3", "bucket") == (config.root.scheme, config.root.place)
    assert ["in/", "more"] == [each.text for each in config.selectors]


def test_local_disk_has_no_store():
    """Nor anything that is selected there."""
    config = FilesConfig.parse({"files.path": "in,/other", "topic": "t"})

    assert (None, ()) == (config.root, config.selectors)


@pytest.mark.parametrize(
    ("path", "key", "told"),
    [
        ("in", "s3.page.size", "of s3://, and files.path names files on local disk. Remove s3"),
        ("s3://b/", "gcs.anonymous", "of gs://, and files.path names files in s3://."),
        ("s3://b/", "azure.container", "Remove azure.container."),
    ],
)
def test_settings_of_another_store_are_refused(path: str, key: str, told: str):
    """They would have no effect."""
    ((found, sentence),) = FilesConfig.problems({"files.path": path, "topic": "t", key: "1"})

    assert key == found
    assert told in sentence


@pytest.mark.parametrize(
    ("more", "key", "told"),
    [
        ({"files.path": "s3://a/x,s3://b/x"}, "files.path", "one store"),
        ({"files.path": "s3://a/x,in"}, "files.path", "one store"),
        ({"files.path": "file:///in"}, "files.path", "known are s3://"),
        ({"files.path": "s3a://a/x"}, "files.path", "known are s3://"),
        ({"files.path": "s3:///x"}, "files.path", "behind s3://"),
        ({"files.path": "s3://a b/x"}, "files.path", "letters, digits"),
        ({"files.path": "gs://B!"}, "files.path", "behind gs:// cannot be. A bucket's name has"),
        ({"files.path": "gs://-bucket"}, "files.path", "at both ends"),
        ({"files.path": "az://a--b", "azure.account": "acct"}, "files.path", "single '-'"),
        ({"files.path": "az://abc", "azure.account": "https://foo"}, "azure.account", "alone"),
        ({"files.follow": "true"}, "files.follow", "do not grow"),
        ({"files.split.bytes": "1"}, "files.split.bytes", "files.compression=none"),
        ({"files.start.after": "s3://bucket/in/a"}, "files.start.after", "the key alone"),
        ({"s3.bucket": "other"}, "s3.bucket", "Remove s3.bucket"),
        ({"s3.page.size": "0"}, "s3.page.size", "at least 1"),
        ({"s3.access.key.id": "id"}, "s3.secret.access.key", "Give both"),
    ],
)
def test_what_does_not_fit_is_told_at_its_key(more: dict[str, str], key: str, told: str):
    """With the reason."""
    ((found, sentence),) = FilesConfig.problems({**S3, **more})

    assert key == found
    assert told in sentence


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    """At validation, long before the first object is asked for."""
    monkeypatch.setattr(catalogue, "find_spec", lambda _: None)

    ((key, sentence),) = FilesConfig.problems(S3)

    assert ("files.path", True) == (
        key,
        "in the clone: .venv/bin/pip install -e '.[s3]'" in sentence,
    )


def test_secrets_are_not_shown():
    """Neither by the configuration nor by what it complains about."""
    secret = {"s3.secret.access.key": "very-secret", "s3.access.key.id": "id"}

    assert "very-secret" not in repr(FilesConfig.parse({**S3, **secret}))
    problems = FilesConfig.problems({**S3, **secret, "s3.profile": "p", "s3.page.size": "0"})
    assert problems
    assert "very-secret" not in str(problems)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://u:SEKRET@127.0.0.1:9",
        "https://u:SEK/RET@h",
        "https://h/?sig=SEKRET",
        "https://h#SEKRET",
        "ftp://u:SEKRET@h",
        "HTTP://SEKRET",
        "https://",
        "https://h:SEKRET",
        "u:SEKRET@h",
    ],
)
@pytest.mark.parametrize(
    ("address", "more"),
    [
        ("s3", {}),
        ("gs", {"gcs.anonymous": "true"}),
        ("az", {"azure.account": "a", "azure.anonymous": "true"}),
    ],
)
def test_an_endpoint_holds_no_secret_and_is_not_shown(
    address: str, more: dict[str, str], endpoint: str
):
    """User, query and fragment are refused, whatever the store, and nothing of them is told."""
    key = {"s3": "s3.endpoint", "gs": "gcs.endpoint", "az": "azure.endpoint"}[address]
    props = {**S3, "files.path": f"{address}://bucket/", **more}
    assert () == FilesConfig.problems({**props, key: "https://h:9/path"})

    ((found, sentence),) = FilesConfig.problems({**props, key: endpoint})

    assert key == found
    assert "no user, password, query or fragment" in sentence
    assert "SEK" not in sentence
    assert "RET" not in sentence


def test_the_connector_does_not_import_a_library_of_a_store():
    """They are extras: only who reads from a store has them, and pays for their import."""
    code = "import sys, headrace.connectors.files.connector as _; print(*sorted(sys.modules))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    libraries = {each for kind in catalogue.KINDS.values() for each in kind.libraries} | {
        "botocore"
    }
    assert libraries.isdisjoint(done.stdout.split())
    assert "headrace.stores.s3.store" not in done.stdout.split()
