"""`headrace spark`: what a separate Spark session needs on this machine."""

from __future__ import annotations

import os
import shlex
import sys

import click

from headrace.jvm.cache import cache_folder
from headrace.jvm.jars import spark_jars
from headrace.jvm.java import find_java, home_for_spark, spark_python


@click.group()
def spark() -> None:
    """Use the Spark that is installed with headrace."""


@spark.command()
def env() -> None:
    """Print the environment in which PySpark and Spark's own programs start here.

    \b
    eval "$(headrace spark env)"

    JAVA_HOME is a Java that Spark runs on, PYSPARK_PYTHON the Python that has headrace, SPARK_HOME the
    installed Spark; PATH has that Python first where there is a space in its place. SPARK_LOCAL_IP, SPARK_LOG_DIR and SPARK_PID_DIR are kept if they are set.
    """  # noqa: D301 (what keeps click from joining the lines is the character itself)
    java = find_java()
    folder = str(cache_folder("spark-server"))
    needed = {
        "JAVA_HOME": str(home_for_spark(java.executable.parent.parent, java.major, apart=False)),
        **spark_python(sys.executable, os.environ.get("PATH", "")),
        "SPARK_HOME": str(spark_jars().parent),
    }
    # Spark's defaults are its program folder, which may be read-only, and /tmp.
    usual = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOG_DIR": folder, "SPARK_PID_DIR": folder}
    kept = {name: os.environ.get(name) or value for name, value in usual.items()}
    for name, value in {**needed, **kept}.items():
        click.echo(f"export {name}={shlex.quote(value)}")
