"""The daemon where brokers want to know who comes, and nobody may listen."""

import pytest

from tests.kafka.certificates import Authority
from tests.kafka.daemons import World

pytestmark = [pytest.mark.compiled, pytest.mark.kafka]

PASSWORD = "canary-dHVsaXBz"


def test_a_daemon_signs_in_with_scram_over_tls(make_broker, tmp_path):
    authority = Authority(tmp_path)
    broker = make_broker(tls=authority.server(), scram={"daemon": PASSWORD}, authorizer=True)
    secret = tmp_path / "password"
    secret.write_text(f"{PASSWORD}\n")
    secret.chmod(0o600)
    here = World(
        broker,
        tmp_path,
        bootstrap=broker.secure,
        security="sasl_ssl",
        ca=str(authority.certificate),
        sasl="scram-sha-512",
        username="daemon",
        password_file=str(secret),
    )
    here.produce(here.records(500))
    here.run("--limit", 1000)
    here.check(500)
    assert here.parts() == here.calm_parts()
    assert PASSWORD not in here.said("calm.log")
    secret.write_text("guessed\n")
    with here.daemon(log="wrong.log") as process:
        assert process.wait(60) == 3
    assert "error: " in here.said("wrong.log")
    assert "daemon" in here.said("wrong.log")
    assert "guessed" not in here.said("wrong.log")
