"""The server on a real socket: what it tells, whom it tells, and that nobody can change anything."""

import shutil
import socket
import ssl
import subprocess
from urllib.parse import quote

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from stream_hc.runtime.config import ConfigError, HttpConfig, load_config
from stream_hc.runtime.http import HttpError, HttpServer, TokenError
from stream_hc.runtime.telemetry import Telemetry
from stream_hc.taxonomy import Taxonomy
from tests.http.serving import ask
from tests.telemetry.watched import Watched

LOCAL = HttpConfig(enabled=True, port=0)
TOKEN = "tulips-in-a-field-of-tulips"
HOSTILE = ['<script>alert("1")</script>', "a/b?c=d&e#f%2e", "ünï \u2028\u202e😀", "'\"\\\n{}"]


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    tree = Taxonomy([(name, None) for name in HOSTILE])
    records = [{"id": f"<b>{k}</b>", "text": f"w{k % 9}", "labels": [HOSTILE[k % 4]]} for k in range(80)]
    job = Watched(tmp_path_factory.mktemp("job"), 10, records=records, taxonomy=tree)
    job.run()
    return job


@pytest.fixture(scope="module")
def url(watched):
    with HttpServer(watched.telemetry, LOCAL) as server:
        yield server.url


def test_prometheus_can_read_it(url):
    answer = ask(url + "metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    families = {family.name: family for family in text_string_to_metric_families(answer.body.decode())}
    assert families["streamhc_documents_consumed"].samples[0].value == 80
    openmetrics = ask(url + "metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text")
    assert openmetrics.body.endswith(b"# EOF\n")


def test_signs_of_life(url):
    assert ask(url + "healthz").body == b"alive\n"
    assert ask(url + "readyz").code == 200


def test_it_is_not_ready_before_the_stream_is():
    telemetry = Telemetry(CollectorRegistry())
    with HttpServer(telemetry, LOCAL) as server:
        assert ask(server.url + "healthz").code == 200
        assert ask(server.url + "readyz").code == 503
        assert ask(server.url + "api/status").json["ready"] is False
        assert ask(server.url + "api/nodes").json["nodes"] == []
        telemetry.set_ready(True)
        assert ask(server.url + "readyz").code == 200
        telemetry.set_ready(False)
        assert ask(server.url + "readyz").code == 503


def test_the_numbers_are_there_as_json(url, watched):
    status = ask(url + "api/status").json
    assert status["documents"] == 80
    assert status["served"]["mean"] == watched.job.processor.contest.standing().served.mean
    assert ask(url + "api/series").json["points"]["labelled"][-1] == 80
    assert [row["name"] for row in ask(url + "api/nodes").json["nodes"]] == list(watched.taxonomy.nodes)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_node_is_found_by_any_name(url, name):
    answer = ask(f"{url}api/node?name={quote(name, safe='')}")
    assert answer.json["node"]["name"] == name
    assert answer.headers["content-type"] == "application/json"
    assert all(mistake["id"].startswith("<b>") for mistake in answer.json["mistakes"])


def test_what_is_not_there_is_not_found(url):
    assert ask(url + "api/node?name=nothing").code == 404
    assert ask(url + "api/node").code == 404
    for path in ("nothing", "api/", "../pyproject.toml", "..%2f..%2fpyproject.toml", "page/index.html"):
        assert ask(url + path).code == 404, path


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["", "metrics", "api/status", "healthz"])
def test_nobody_can_change_anything(url, method, path):
    answer = ask(url + path, method)
    assert answer.code == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_head_has_no_body(url):
    for path in ("", "metrics", "api/status"):
        answer = ask(url + path, "HEAD")
        assert (answer.code, answer.body) == (200, b"")


@pytest.mark.parametrize("path", ["", "metrics", "api/nodes", "nothing"])
def test_every_answer_keeps_browsers_out_of_trouble(url, path):
    headers = ask(url + path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9464", "127.0.0.1.evil.example", "", "localhost."]
)
def test_another_name_for_this_machine_is_refused(url, host):
    assert ask(url + "api/status", Host=host).code == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9464", "[::1]:9464", "[::1]"])
def test_its_own_names_are_fine(url, host):
    assert ask(url + "api/status", Host=host).code == 200


def test_names_can_be_given(watched):
    config = HttpConfig(enabled=True, port=0, hosts=["Numbers.example"])
    with HttpServer(watched.telemetry, config) as server:
        assert ask(server.url + "api/status", Host="numbers.example:80").code == 200
        assert ask(server.url + "api/status").code == 421


def test_a_token_is_asked_for_where_there_is_one(watched, tmp_path):
    (tmp_path / "token").write_text(TOKEN + "\nmore lines do not count\n")
    config = HttpConfig(enabled=True, host="0.0.0.0", port=0, token_file=str(tmp_path / "token"))
    with HttpServer(watched.telemetry, config) as server:
        url = f"http://127.0.0.1:{server.port}/"
        for path in ("metrics", "api/status", "api/nodes", "api/series", "api/node?name=x"):
            answer = ask(url + path)
            assert answer.code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
            for wrong in (
                f"Bearer {TOKEN}x",
                f"Bearer {TOKEN[:-1]}",
                f"Basic {TOKEN}",
                TOKEN,
                "Bearer ",
                "Bearer é",
            ):
                assert ask(url + path, Authorization=wrong).code == 401, wrong
            assert ask(url + path, Authorization=f"Bearer {TOKEN}").code in (200, 404)
        # The page has no numbers in it, and probes have no secrets.
        for path in ("", "healthz", "readyz"):
            assert ask(url + path).code == 200
        body = ask(url + "api/status", Authorization=f"Bearer {TOKEN}").body
        assert TOKEN.encode() not in body


@pytest.mark.parametrize(
    ("content", "problem"), [("short", "at least 16"), ("ü" * 40, "ASCII"), (None, "cannot read")]
)
def test_a_bad_token_is_refused(tmp_path, content, problem):
    if content is not None:
        (tmp_path / "token").write_text(content)
    config = HttpConfig(enabled=True, port=0, token_file=str(tmp_path / "token"))
    with pytest.raises((TokenError, HttpError), match=problem):
        HttpServer(Telemetry(CollectorRegistry()), config)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
def test_it_does_not_listen_elsewhere_without_a_token(host):
    with pytest.raises(HttpError, match=r"set http\.token_file or http\.certificate"):
        HttpServer(Telemetry(CollectorRegistry()), HttpConfig(enabled=True, host=host, port=0))
    with pytest.raises(ConfigError, match=r"--host: everybody could read the numbers"):
        load_config(None, {}, {"http.enabled": True, "http.host": host})


def test_a_key_alone_is_refused():
    with pytest.raises(ConfigError, match=r"name the http\.certificate, too"):
        load_config(None, {}, {"http.key": "key.pem"})


def test_a_port_in_use_is_one_clear_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        config = HttpConfig(enabled=True, port=taken.getsockname()[1])
        with pytest.raises(
            HttpError, match=r"cannot listen at 127\.0\.0\.1, port \d+: Address already in use"
        ):
            HttpServer(Telemetry(CollectorRegistry()), config)


def test_a_host_that_is_nowhere_is_one_clear_line(tmp_path):
    (tmp_path / "token").write_text(TOKEN)
    config = HttpConfig(enabled=True, host="no.such.host.invalid", token_file=str(tmp_path / "token"))
    with pytest.raises(HttpError, match="name another address"):
        HttpServer(Telemetry(CollectorRegistry()), config)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", "key.pem", "-out", "certificate.pem"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "certificate.pem", folder / "key.pem"


def test_tls_is_enough_to_listen_elsewhere(watched, certificate):
    pem, key = map(str, certificate)
    config = HttpConfig(enabled=True, host="0.0.0.0", port=0, certificate=pem, key=key)
    with HttpServer(watched.telemetry, config) as server:
        assert server.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=pem)
        url = f"https://127.0.0.1:{server.port}/"
        assert ask(url + "api/status", context=trusting).json["documents"] == 80


def test_a_bad_certificate_is_one_clear_line(tmp_path):
    (tmp_path / "pem").write_text("no certificate")
    config = HttpConfig(enabled=True, port=0, certificate=str(tmp_path / "pem"))
    with pytest.raises(HttpError, match="cannot serve") as caught:
        HttpServer(Telemetry(CollectorRegistry()), config)
    assert "\n" not in str(caught.value)


def test_the_thread_and_the_port_are_gone_at_the_end(watched):
    with HttpServer(watched.telemetry, LOCAL) as server:
        port = server.port
        assert ask(server.url + "healthz").code == 200
        thread = server._thread
    assert not thread.is_alive()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
