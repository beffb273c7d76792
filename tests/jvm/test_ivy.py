"""What Apache Ivy has to fetch."""

from __future__ import annotations

from headrace.jvm.jars import Pin, ivy_jar, module_xml, proxy_options


def test_exactly_the_pins():
    """Each pin is one dependency that brings no others."""
    pin = Pin(organisation="org.example", name="thing", revision="1.0", sha256="")

    (line,) = [line for line in module_xml([pin]).splitlines() if "<dependency " in line]

    assert 'org="org.example" name="thing" rev="1.0" transitive="false"' in line


def test_ivy_is_found():
    """PySpark brings Ivy."""
    assert ivy_jar().is_file()


def test_proxies():
    """Java hears of the proxy that the environment names, and of the hosts that need none."""
    environment = {"https_proxy": "http://proxy.example:3128", "NO_PROXY": "localhost, .example"}

    assert [
        "-Dhttps.proxyHost=proxy.example",
        "-Dhttps.proxyPort=3128",
        "-Dhttp.nonProxyHosts=localhost|*.example",
    ] == list(proxy_options(environment))


def test_no_proxy():
    """Without one there are no options."""
    assert [] == list(proxy_options({}))
