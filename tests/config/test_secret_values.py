"""What is hidden of a connector, and which of Spark's keys may hold secrets."""

from __future__ import annotations

from headrace.config.secret_values import connector_secrets, spark_problems
from headrace.connect.setting import Setting, SettingType


def test_placeholders_and_passwords_are_hidden():
    """Defined as passwords or called so, wherever they are; a placeholder wins over [hidden]."""
    settings = [
        Setting(name="pin", type=SettingType.PASSWORD, doc="A pin."),
        Setting(name="user", doc="A user."),
    ]
    props = {"pin": "12345678", "user": "somebody", "sasl.password": "from a file"}
    producer = {"sasl.jaas.config": 'x required username="someone-else" password="abcdefgh";'}

    secrets = connector_secrets({"from a file": "${file:f:p}"}, settings, props, producer)

    assert "[hidden] somebody ${file:f:p}" == secrets.masked("12345678 somebody from a file")
    assert "password [hidden]!" == secrets.masked("password abcdefgh!")


def test_a_short_password_is_not_looked_for():
    """It is likely to be a word of the sentence."""
    assert {} == connector_secrets({}, [], {"sasl.password": "test"}).values


def test_spark_s_keys_hold_placeholders_only_where_spark_redacts_them():
    """As it does by itself, or as it is told to."""
    given = {
        "spark.hadoop.fs.s3a.secret.key": "${env:A}",
        "spark.hadoop.pin": "${env:A}",
        "spark.app.name": "x",
        "topic": "${env:A}",
    }
    resolved = {key: value.replace("${env:A}", "hunter2") for key, value in given.items()}

    [(key, reported)] = spark_problems(given, resolved)
    assert "spark.hadoop.pin" == key
    assert "hunter2" not in reported
    redaction = {"spark.redaction.regex": "(?i)secret|pin"}
    assert [] == [*spark_problems({**given, **redaction}, {**resolved, **redaction})]
    broken = {"spark.redaction.regex": "("}
    assert 1 == len([*spark_problems({**given, **broken}, {**resolved, **broken})])
