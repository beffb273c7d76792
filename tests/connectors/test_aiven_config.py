"""Configurations of Aiven's S3 source, as the connector ``files`` understands them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.config.aliases import CONNECTORS, connector_path
from headrace.config.worker_config import WorkerConfig
from headrace.connect import ConfigError
from headrace.connectors.files.aiven.config import AivenS3Config, WholePrefix
from headrace.connectors.files.aiven.connector import AivenS3Connector
from headrace.connectors.files.aiven.keys import (
    OLD_NAMES,
    REFUSED,
    TRANSLATED,
    UNUSED,
    table,
)
from headrace.connectors.files.aiven.naming import regex_of
from headrace.connectors.files.aiven.peer_config import PeerConfig
from headrace.connectors.files.naming.destinations import Destinations
from headrace.plugins import validated_connector

ROOT = Path(__file__).parents[2]
# These mean the same to headrace itself.
PASSED_ON = ("errors.tolerance", "value.converter.schema.registry.url")
LEAST = {"aws.s3.bucket.name": "my-bucket", "file.name.template": ".*", "topic": "t"}
WORKER = {
    "bootstrap.servers": "localhost:1",
    "offset.storage.topic": "offsets",
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
}

# As its documentation has it: the template of a configuration file, with values filled in.
DOCUMENTED = {
    "name": "aiven-s3-source-connector",
    "connector.class": "io.aiven.kafka.connect.s3.source.S3SourceConnector",
    "aws.access.key.id": "YOUR_AWS_ACCESS_KEY_ID",
    "aws.secret.access.key": "YOUR_AWS_SECRET_ACCESS_KEY",
    "aws.s3.bucket.name": "your-s3-bucket-name",
    "aws.s3.region": "eu-west-1",
    "aws.s3.prefix": "optional/prefix/",
    "aws.credentials.provider": "software.amazon.awssdk.auth.credentials.AwsCredentialsProviderChain",
    "topic": "your-target-kafka-topic",
    "file.name.template": "{{topic}}-{{partition}}-{{start_offset}}",
    "tasks.max": 1,
    "poll.interval.ms": 10000,
    "error.tolerance": "all",
    "input.format": "jsonl",
    "file.compression.type": "none",
    "timestamp.timezone": "UTC",
    "timestamp.source": "wallclock",
}
# The one of its README, which lacks what the same README calls mandatory.
README = {
    "name": "s3",
    "connector.class": "io.aiven.kafka.connect.s3.S3SourceConnector",
    "tasks.max": "1",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "input.type": "jsonl",
    "topics": "topic1,topic2",
    "aws.access.key.id": "YOUR_AWS_KEY_ID",
    "aws.secret.access.key": "YOUR_AWS_SECRET_ACCESS_KEY",
    "aws.s3.region": "us-east-1",
    "aws.s3.bucket.name": "my-bucket",
    "aws.s3.prefix": "file-prefix",
    "errors.tolerance": "none",
    "aws.s3.fetch.buffer.size": "1000",
}
# Every key of its documented lists, of all versions.
_LISTED = """
    aws.access.key.id aws.credentials.provider aws.s3.backoff.delay.ms aws.s3.backoff.max.delay.ms
    aws.s3.backoff.max.retries aws.s3.bucket.name aws.s3.endpoint aws.s3.fetch.buffer.size
    aws.s3.fetch.page.size aws.s3.part.size.bytes aws.s3.prefix aws.s3.region aws.s3.sse.algorithm
    aws.secret.access.key aws.sts.config.endpoint aws.sts.role.arn aws.sts.role.external.id
    aws.sts.role.session.duration aws.sts.role.session.name aws_access_key_id aws_s3_bucket aws_s3_endpoint
    aws_s3_prefix aws_s3_region aws_secret_access_key distribution.type errors.tolerance
    expected.max.message.bytes file.compression.type file.max.records file.name.template
    file.name.timestamp.source file.name.timestamp.timezone file.prefix.template format.output.envelope
    format.output.fields format.output.fields.value.encoding format.output.type input.format
    kafka.retry.backoff.ms max.poll.records native.start.key output_compression output_fields
    ring.buffer.size schema.registry.url topic topic.partitions topics transformer.max.buffer.size
    value.converter.schema.registry.url value.serializer
"""
THEIRS = frozenset(_LISTED.split())


def with_(**more: str) -> dict[str, str]:
    """The least configuration, and *more*, whose names have underscores for dots."""
    return {**LEAST, **{key.replace("_", "."): value for key, value in more.items()}}


class TestDocumented:
    """What the original's documentation shows."""

    @pytest.mark.parametrize(
        "name",
        [
            "io.aiven.kafka.connect.s3.source.S3SourceConnector",
            "io.aiven.kafka.connect.s3.S3SourceConnector",
            "io.aiven.kafka.connect.s3.source.AivenKafkaConnectS3SourceConnector",
            "S3SourceConnector",
            "S3Source",
            "aiven_s3",
        ],
    )
    def test_its_class_names_are_known(self, name: str):
        """In full, as its README has it, of earlier versions, and Connect's short forms."""
        assert CONNECTORS["aiven_s3"] == connector_path(name)

    def test_the_example_runs_as_it_is(self, caplog: pytest.LogCaptureFixture):
        """It is let in with exactly-once, and each of its keys is known."""
        found = validated_connector(
            {**DOCUMENTED, "exactly.once.support": "required"}, WorkerConfig.parse(WORKER)
        )

        assert isinstance(found.connector, AivenS3Connector)
        config = AivenS3Config.parse(found.props)
        assert config.root
        assert ("s3", "your-s3-bucket-name") == (config.root.scheme, config.root.place)
        assert (WholePrefix(text="optional/prefix/"),) == config.selectors
        assert ("jsonl", "none") == (config.format, config.compression)
        assert "isn't a known config" not in caplog.text

    def test_the_example_of_the_readme_is_refused_with_advice(self):
        """It has two topics, no template, and a key that was never read."""
        with pytest.raises(ConfigError) as caught:
            validated_connector(README, WorkerConfig.parse(WORKER))
        assert {"topics", "input.type", "file.name.template"} == set(dict(caught.value.problems))

        given = {**README, "file.name.template": ".*"}
        with pytest.raises(ConfigError) as caught:
            validated_connector(given, WorkerConfig.parse(WORKER))
        told = dict(caught.value.problems)
        assert {"topics", "input.type", "topic"} == set(told)
        assert "input.format" in told["input.type"]

    @pytest.mark.parametrize(
        ("template", "key", "topic", "partition"),
        [
            (
                "{{topic}}-{{partition}}-{{start_offset}}",
                "customer-topic-1-1734445664111.txt",
                "customer-topic",
                1,
            ),
            (
                "{{topic}}-{{partition}}-{{start_offset}}",
                "22-10-12/customer-topic-1-1734445664111.txt",
                "22",
                10,
            ),
            (
                "{{topic}}/{{partition}}/{{start_offset}}",
                "customer-topic/1/1734445664111.txt",
                "customer-topic",
                1,
            ),
            (
                "topic/{{topic}}/partition/{{partition}}/startOffset/{{start_offset}}",
                "topic/customer-topic/partition/1/startOffset/1734445664111.txt",
                "customer-topic",
                1,
            ),
            (
                r"topic=(?<topic>[^/]+)/partition=(?<partition>\d+)/",
                "in/topic=orders/partition=7/x.jsonl",
                "orders",
                7,
            ),
            (r"{{topic}}_{{timestamp}}\.csv$", "a/orders_20260131.csv", "orders", None),
        ],
    )
    def test_its_templates_tell_what_they_told(
        self, template: str, key: str, topic: str, partition: int | None
    ):
        """Also where that is not what one would think: the pattern is found anywhere, regex around it."""
        props = {**LEAST, "file.name.template": template}
        del props["topic"]
        goes_to = Destinations(AivenS3Config.parse(props))

        found = goes_to.of(f"s3://my-bucket/{key}")
        assert (topic, partition) == (found.topic, found.partition)
        assert not goes_to.is_named_so("s3://my-bucket/?")

    def test_a_topic_that_is_set_goes_first(self):
        """The partition is still the key's."""
        props = with_(file_name_template="{{topic}}-{{partition}}")
        found = Destinations(AivenS3Config.parse(props)).of("s3://my-bucket/orders-3")

        assert ("t", 3) == (found.topic, found.partition)


class TestKeys:
    """Each key of theirs."""

    def test_every_one_is_translated_or_explained(self):
        """And none is told twice."""
        told = [each.name for each in (*TRANSLATED, *UNUSED, *REFUSED)] + [*OLD_NAMES, *PASSED_ON]

        assert set() == THEIRS - set(told)
        assert len(told) == len(set(told))
        assert {each.name for each in TRANSLATED} == {each.name for each in PeerConfig.settings()}
        known = [each.name for each in AivenS3Config.settings()]
        assert set() == set(told) - set(known) - set(PASSED_ON)
        assert len(known) == len(set(known))

    def test_the_documentation_has_the_same_table(self):
        """Word for word."""
        assert table() in (ROOT / "docs" / "from-aiven-s3.md").read_text()

    def test_defaults_are_theirs(self):
        """Bytes in pieces of 4096, unpacked, in us-east-1, on all levels."""
        config = AivenS3Config.parse(LEAST)

        assert ("bytes", 4096, "none") == (
            config.format,
            config.bytes_per_record,
            config.compression,
        )
        assert config.recursive
        assert "us-east-1" == config.originals["s3.region"]
        assert "s3.retries" not in config.originals
        assert config.batch_max_rows > 500

    def test_what_is_set_is_translated(self):
        """Each to the key that the table says."""
        given = with_(
            input_format="BYTES",
            transformer_max_buffer_size="7",
            file_compression_type="GZIP",
            native_start_key="in/b",
            max_poll_records="9",
            aws_s3_region="eu-north-1",
            aws_s3_endpoint="minio.example:9000",
            aws_s3_fetch_page_size="5000",
            aws_access_key_id="id",
            aws_secret_access_key="secret",
            aws_s3_backoff_delay_ms="11",
            aws_s3_backoff_max_delay_ms="12",
            aws_s3_backoff_max_retries="13",
            extractor_csv_headers_enabled="false",
            extractor_csv_headers="a,b",
        )
        made = AivenS3Config.parse(given).originals

        assert {
            "files.format": "bytes",
            "files.bytes.per.record": "7",
            "files.compression": "gzip",
            "files.start.after": "in/b",
            "files.batch.max.rows": "9",
            "files.name.regex": "(?a:.*)",
            "files.path": "s3://my-bucket/",
            "s3.region": "eu-north-1",
            "s3.endpoint": "https://minio.example:9000",
            "s3.page.size": "1000",
            "s3.access.key.id": "id",
            "s3.secret.access.key": "secret",
            "s3.retry.backoff.ms": "11",
            "s3.retry.backoff.max.ms": "12",
            "s3.retries": "13",
            "s3.anonymous": "false",
            "csv.header": "false",
            "csv.names": "a,b",
        }.items() <= made.items()
        names = {each.becomes for each in TRANSLATED if " " not in each.becomes}
        assert names <= made.keys()

    def test_old_names_are_understood(self):
        """Today's name wins where both are set."""
        old = {
            "aws_s3_bucket": "old-bucket",
            "aws_s3_region": "eu-old-1",
            "aws_s3_prefix": "old/",
            "aws.s3.region": "eu-new-1",
            "file.name.template": ".*",
            "topic": "t",
        }
        config = AivenS3Config.parse(old)

        assert config.root
        assert ("old-bucket", "eu-new-1") == (config.root.place, config.originals["s3.region"])
        assert (WholePrefix(text="old/"),) == config.selectors

    def test_a_parquet_file_is_never_packed_again(self):
        """The original ignores the packing there."""
        config = AivenS3Config.parse(with_(input_format="parquet", file_compression_type="gzip"))

        assert "none" == config.compression

    def test_own_keys_may_be_set_besides(self):
        """Where none of theirs says the same."""
        config = AivenS3Config.parse(with_(files_changed="ignore", s3_profile="other"))

        assert "ignore" == config.changed
        assert [("s3.region", "aws.s3.region says it. Remove s3.region.")] == list(
            AivenS3Config.problems(with_(s3_region="eu-west-1"))
        )

    @pytest.mark.parametrize(
        ("more", "key", "told"),
        [
            ({"aws.sts.role.arn": "arn:x"}, "aws.sts.role.arn", "s3.profile"),
            ({"topics": "a"}, "topics", "the one topic in topic"),
            ({"output_compression": "gzip"}, "output_compression", "file.compression.type"),
            ({"aws.credentials.provider": "com.mine.P"}, "aws.credentials.provider", "usual chain"),
            (
                {"aws.s3.prefix": "a/{{timestamp:unit=yyyy}}"},
                "aws.s3.prefix",
                "nothing is filled in",
            ),
            ({"distribution.type": "partition"}, "distribution.type", "{{partition}}"),
            ({"distribution.type": "all"}, "distribution.type", "one of"),
            ({"input.format": "xml"}, "input.format", "one of"),
            ({"aws.s3.bucket.name": "My"}, "aws.s3.bucket.name", "3 to 63"),
            (
                {"transformer.max.buffer.size": "999999999"},
                "transformer.max.buffer.size",
                "more than",
            ),
            ({"file.name.template": "{{key}}"}, "file.name.template", "{{topic}}"),
            ({"file.name.template": "{{ topic }}"}, "file.name.template", "without spaces"),
            (
                {"file.name.template": "{{partition:padding=true}}"},
                "file.name.template",
                "parameters",
            ),
            ({"file.name.template": "[a-z&&[^b]]"}, "file.name.template", "only Java's"),
            ({"file.name.template": r"\p{L}+"}, "file.name.template", "no regular expression"),
            ({"topic": "${filename}"}, "topic", "cannot hold"),
            ({"aws.access.key.id": "id"}, "aws.secret.access.key", "Give both"),
            ({"files.follow": "true"}, "files.follow", "do not grow"),
            (
                {"files.split.bytes": "9", "input.format": "bytes"},
                "files.split.bytes",
                "is not split",
            ),
            ({"native.start.key": "s3://my-bucket/a"}, "native.start.key", "the key alone"),
            ({"aws.s3.endpoint": "u:hush@minio"}, "aws.s3.endpoint", "no user, password"),
        ],
    )
    def test_what_cannot_run_is_refused_with_advice(
        self, more: dict[str, str], key: str, told: str
    ):
        """Under the key that the user wrote."""
        problems = dict(AivenS3Config.problems({**LEAST, **more}))

        assert [key] == list(problems)
        assert told in problems[key]

    @pytest.mark.parametrize(
        ("more", "keys"),
        [
            (
                {
                    "input.format": "xml",
                    "distribution.type": "all",
                    "aws.sts.role.arn": "arn:x",
                    "file.compression.type": "lz4",
                    "files.changed": "never",
                    "s3.region": "x",
                },
                [
                    "aws.sts.role.arn",
                    "distribution.type",
                    "file.compression.type",
                    "files.changed",
                    "input.format",
                    "s3.region",
                ],
            ),
            (
                {
                    "topics": "a",
                    "aws.sts.role.arn": "arn:x",
                    "files.tracking": "ordered",
                    "files.path": "s3://b/",
                },
                ["aws.sts.role.arn", "files.path", "files.tracking", "topics"],
            ),
            ({"topic": "a b", "input.format": "xml"}, ["input.format", "topic"]),
            (
                {"files.name.template": "{{topic}}", "distribution.type": "partition"},
                ["distribution.type", "files.name.template"],
            ),
        ],
    )
    def test_all_problems_are_told_at_once(self, more: dict[str, str], keys: list[str]):
        """Those of the original's keys, of ours, and of both together; each key once."""
        assert keys == sorted(key for key, _ in AivenS3Config.problems({**LEAST, **more}))

    def test_sentences_speak_of_the_keys_that_the_user_has(self):
        """Also of an address that another setting says."""
        lone = dict(AivenS3Config.problems({**LEAST, "aws.access.key.id": "id"}))
        doubled = dict(AivenS3Config.problems({**LEAST, "s3.bucket": "b"}))

        told = "Give both aws.access.key.id and aws.secret.access.key, or none."
        assert {"aws.secret.access.key": told} == lone
        assert "aws.s3.bucket.name says it" in doubled["s3.bucket"]

    @pytest.mark.parametrize("template", ["{{topic}}-[", "(?<x>a", "(?P<x>a)(?P<x>b)"])
    def test_a_wrong_template_is_shown_as_it_was_written(self, template: str):
        """And not as what was made of it."""
        problems = AivenS3Config.problems({**LEAST, "file.name.template": template})

        ((_, told),) = problems
        assert f"{template!r} is no regular expression: " in told
        assert "(?a:" not in told
        assert "at position" not in told

    def test_nothing_tells_the_topic(self):
        """Neither topic nor the template."""
        assert ["topic"] == [key for key, _ in AivenS3Config.problems({**LEAST, "topic": ""})]
        without = {key: value for key, value in LEAST.items() if key != "topic"}
        assert [("topic", "Set it, or tell it by a {{topic}} in file.name.template.")] == list(
            AivenS3Config.problems(without)
        )

    @pytest.mark.parametrize(
        ("provider", "anonymous"),
        [
            ("software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider", "true"),
            ("com.amazonaws.auth.DefaultAWSCredentialsProviderChain", "false"),
        ],
    )
    def test_the_sdks_own_providers_are_the_usual_chain(self, provider: str, anonymous: str):
        """But for the one that asks for none."""
        config = AivenS3Config.parse(with_(aws_credentials_provider=provider))

        assert anonymous == config.originals["s3.anonymous"]

    def test_secrets_are_not_shown(self):
        """Neither of them, neither as settings nor in problems."""
        secrets = {"aws.access.key.id": "hush", "aws.secret.access.key": "hush"}

        assert "hush" not in repr(AivenS3Config.parse({**LEAST, **secrets}).peer)
        assert "hush" not in str(AivenS3Config.problems({**LEAST, **secrets, "s3.profile": "x"}))
        assert AivenS3Config.problems({**LEAST, **secrets, "s3.profile": "x"})


def test_digits_are_those_of_ascii():
    """As in Java, where a digit is one of 0 to 9."""
    props = with_(file_name_template=r"-\d$")
    form = Destinations(AivenS3Config.parse(props))

    assert "(?a:-\\d$)" == regex_of(r"-\d$")
    assert form.is_named_so("s3://my-bucket/a-1")
    assert not form.is_named_so("s3://my-bucket/a-\u0661")
