"""The server's listeners, its start and end, and the address that the worker advertises."""

from __future__ import annotations

import io
import logging
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest

from headrace.config.unknown_keys import REST_KEYS
from headrace.connect.errors import ConfigError
from headrace.observe.log_format import FormHandler, LogForm, naming_in_logs
from headrace.rest.config import RestConfig
from headrace.rest.listeners import Binding
from headrace.rest.server import RestServer
from rest.conftest import Serve
from rest.fake_herder import FakeHerder
from waiting import until

FREE = "http://127.0.0.1:0"


def config(**props: str) -> RestConfig:
    """Settings, with a free port unless they say otherwise."""
    given = {name.replace("_", "."): value for name, value in props.items()}
    return RestConfig.parse({"listeners": FREE, **given})


def test_it_answers_when_start_returns(herder: FakeHerder):
    """Within a second, at the address that it advertises."""
    began = time.monotonic()
    server = RestServer(herder, config())
    server.start()
    try:
        assert 200 == httpx.get(server.url).status_code
        assert time.monotonic() - began < 1
        assert server.url == f"http://127.0.0.1:{server.ports[0]}/"
    finally:
        server.close()


def test_answers_do_not_wait_for_acknowledgements(client: httpx.Client):
    """Many requests on one connection, each of which would wait 40 ms."""
    client.get("/")
    began = time.monotonic()
    for _ in range(50):
        client.get("/connectors")

    assert time.monotonic() - began < 1.5


def test_a_taken_port_is_named(herder: FakeHerder):
    """The error names the listener and the key, and lets go of the others."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listener = f"http://127.0.0.1:{taken.getsockname()[1]}"
        server = RestServer(herder, config(listeners=f"{FREE},{listener}"))
        with pytest.raises(ConfigError, match=listener) as caught:
            server.start()

    assert ["listeners"] == [key for key, _ in caught.value.problems]
    assert "Address already in use" in str(caught.value)


def test_several_listeners(herder: FakeHerder):
    """All answer, those of admin only about loggers, and loggers only there."""
    server = RestServer(herder, config(listeners=f"{FREE},{FREE}", admin_listeners=FREE))
    server.start()
    try:
        found = [
            [
                httpx.get(f"http://127.0.0.1:{port}{path}").status_code
                for path in ("/connectors", "/admin/loggers")
            ]
            for port in server.ports
        ]
    finally:
        server.close()

    assert [[200, 404], [200, 404], [404, 200]] == found


def test_all_interfaces(herder: FakeHerder, caplog: pytest.LogCaptureFixture):
    """A listener without a host answers on each; an IPv4 client is logged by its own address."""
    server = RestServer(herder, config(listeners="http://:0"))
    server.start()
    try:
        with caplog.at_level(logging.INFO, "headrace.rest.access"):
            answer = httpx.get(f"http://127.0.0.1:{server.ports[0]}/")
            until(lambda: caplog.messages)
    finally:
        server.close()

    assert 200 == answer.status_code
    assert caplog.messages[-1].startswith("127.0.0.1 - ")


def test_lines_of_requests_say_whose_the_server_is(
    herder: FakeHerder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """In a process with several workers: the access log's, and what is logged while a request is answered."""

    def connectors() -> list[str]:
        logging.getLogger("herder").info("asked")
        return []

    monkeypatch.setattr(herder, "connectors", connectors)
    stream = io.StringIO()
    caplog.set_level(logging.INFO)
    logging.getLogger().addHandler(own := FormHandler(LogForm(), stream))
    with naming_in_logs("A->B"):
        server = RestServer(herder, config())
        server.start()
    try:
        httpx.get(f"{server.url}connectors")
        until(lambda: "rest.access" in stream.getvalue())
    finally:
        server.close()
        logging.getLogger().removeHandler(own)

    # The client of this test logs, too.
    lines = [each for each in stream.getvalue().splitlines() if "[httpx]" not in each]
    assert 2 == len(lines)
    assert all("worker=A->B" in each for each in lines)


def test_close_finishes_requests_and_frees_the_port(herder: FakeHerder):
    """A request that is being answered is; the next one finds no one."""
    server = RestServer(herder, config())
    server.start()
    reached, go_on = threading.Event(), threading.Event()

    def trouble() -> None:
        reached.set()
        go_on.wait()

    herder.trouble = trouble
    answers = list[httpx.Response]()
    asking = threading.Thread(target=lambda: answers.append(httpx.get(server.url)))
    asking.start()
    reached.wait()
    closing = threading.Thread(target=server.close)
    closing.start()
    go_on.set()
    closing.join()
    asking.join()

    assert [200] == [each.status_code for each in answers]
    with pytest.raises(httpx.ConnectError):
        httpx.get(server.url)
    server.close()


def test_the_worker_knows_its_address_before_it_answers(herder: FakeHerder):
    """Listeners may be bound first; a connection waits until the server starts."""
    binding = Binding.of(config())
    server = RestServer(herder, binding.config, binding=binding)
    answers = list[httpx.Response]()
    asking = threading.Thread(target=lambda: answers.append(httpx.get(binding.url)))
    asking.start()
    server.start()
    asking.join()
    server.close()

    assert f"127.0.0.1:{binding.main[0].port}" == binding.worker_id
    assert [200] == [each.status_code for each in answers]


def test_an_advertised_address_is_reported_beside_the_listener_s():
    """The one is where the worker listens, the other what is advertised to other workers."""
    binding = Binding.of(config(rest_advertised_host_name="a.b"))
    binding.close()

    port = binding.main[0].port
    assert binding.sentences == (
        f"Requests are answered at http://127.0.0.1:{port}/",
        f"The advertised URL is http://a.b:{port}/",
    )


@pytest.mark.parametrize(
    ("props", "worker_id", "url"),
    [
        ({"rest_advertised_host_name": "a.b"}, "a.b:{0}", "http://a.b:{0}/"),
        ({"rest_advertised_port": "99"}, "127.0.0.1:99", "http://127.0.0.1:99/"),
        ({"listeners": "https://127.0.0.1:0"}, "127.0.0.1:{0}", "https://127.0.0.1:{0}/"),
        (
            {"listeners": "https://127.0.0.1:0,http://127.0.0.2:0"},
            "127.0.0.2:{1}",
            "http://127.0.0.2:{1}/",
        ),
        (
            {"listeners": f"{FREE},HTTPS://127.0.0.2:0", "rest_advertised_listener": "HTTPS"},
            "127.0.0.2:{1}",
            "https://127.0.0.2:{1}/",
        ),
        ({"rest_advertised_host_name": "::1"}, "[::1]:{0}", "http://[::1]:{0}/"),
    ],
)
def test_advertised_address(props: dict[str, str], worker_id: str, url: str):
    """By Kafka Connect's rules: http first, settings before what was bound."""
    binding = Binding.of(config(**props))
    binding.close()

    ports = [each.port for each in binding.main]
    assert (worker_id.format(*ports), url.format(*ports)) == (binding.worker_id, binding.url)


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("listeners", "8083", "Listener doesn't have the right format (protocol://hostname:port)."),
        ("listeners", "http://a b:80", "Listener doesn't have the right format"),
        ("listeners", "http://:99999", "The port of a listener must be between 0 and 65535."),
        ("listeners", "ftp://:80", 'Listener protocol must be either "http" or "https".'),
        ("listeners", "", "expected list of URLs"),
        ("admin.listeners", "x", "Listener doesn't have the right format"),
        ("rest.advertised.host.name", "http://a", "the name or the address of a host alone"),
        ("rest.advertised.host.name", "a:8083", "the name or the address of a host alone"),
        ("rest.advertised.port", "99999", "expected 1 to 65535"),
        ("rest.advertised.port", "0", "expected 1 to 65535"),
        ("rest.advertised.listener", "ftp", "String must be one of (case insensitive): http,"),
        ("ssl.client.auth", "perhaps", "String must be one of: required, requested, none"),
        ("rest.extension.classes", "a.B", "a.B is not supported"),
        ("rest.basic.auth.credentials.file", "/x", "This setting has an effect only with"),
        ("response.http.headers.config", "set", "Expected: '[action] [header name]:[header"),
        ("response.http.headers.config", "put A:b", "Invalid header config action: 'put'"),
        ("response.http.headers.config", "set A B:c", "cannot contain whitespace"),
        ("response.http.headers.config", "setDate A:soon", "in milliseconds"),
    ],
)
def test_wrong_settings(key: str, value: str, shown: str):
    """Each is reported under its key, with Kafka Connect's words where it has them."""
    ((problem, sentence),) = RestConfig.problems({key: value})

    assert key == problem
    assert shown in sentence


def test_workers_know_these_keys():
    """A worker's configuration is not warned of keys that are read here."""
    assert REST_KEYS == {each.name for each in RestConfig.settings()}


def test_cors(serve: Serve):
    """Only when it is set, only for the sites that are named; preflights are answered."""
    site = {"Origin": "https://ui.example"}
    asking = {**site, "Access-Control-Request-Method": "POST"}
    off = serve()
    on = serve(access_control_allow_origin="https://ui.example, http://*.net")

    assert "access-control-allow-origin" not in off.get("/", headers=site).headers
    allowed = on.get("/", headers=site).headers["access-control-allow-origin"]
    assert "https://ui.example" == allowed
    assert "access-control-allow-origin" in on.get("/", headers={"Origin": "http://a.net"}).headers
    stranger = on.get("/", headers={"Origin": "https://bad.example"})
    assert "access-control-allow-origin" not in stranger.headers
    preflight = on.options("/connectors", headers=asking)
    assert "GET, POST, HEAD" == preflight.headers["access-control-allow-methods"]
    wrong = {**asking, "Access-Control-Request-Method": "DELETE"}
    assert 400 == on.options("/connectors", headers=wrong).status_code


def test_added_headers(serve: Serve):
    """In every answer, errors too; quotes hold commas; dates are written as HTTP has them."""
    rules = 'add Cache-Control: no-cache,"set X-Some: a, b: c",setDate Expires: 31540000000'
    client = serve(response_http_headers_config=rules)

    for path in ("/", "/nothing"):
        headers = client.get(path).headers
        assert ("no-cache", "a, b: c") == (headers["cache-control"], headers["x-some"])
        assert "Fri, 01 Jan 1971 01:06:40 GMT" == headers["expires"]


def test_no_jvm_and_no_spark_for_an_answer():
    """Nothing of the REST side imports Spark or Kafka's client."""
    program = (
        "import sys, headrace.rest.server; "
        "print([m for m in ('pyspark', 'confluent_kafka', 'py4j') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert ("[]", "") == (found.stdout.strip(), found.stderr)
