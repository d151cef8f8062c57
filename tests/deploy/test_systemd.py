"""The unit: how it ends and comes back, what it may do, and what systemd itself says about it."""

import re
import shutil
import subprocess
from collections import defaultdict

import pytest

from stream_hc.cli.errors import Code
from tests.deploy.support import COMMAND, DEPLOY, VARIABLES

FOLDER = DEPLOY / "systemd"
NEW_KEYS = ("RestartSteps", "RestartMaxDelaySec")  # since systemd 254; older ones pass over them


def sections(name):
    """Return the values of a unit file by section and key, in order."""
    found = defaultdict(lambda: defaultdict(list))
    for line in (FOLDER / name).read_text().splitlines():
        if heading := re.fullmatch(r"\[(\w+)\]", line):
            section = found[heading[1]]
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            section[key].append(value)
    return found


UNIT = sections("stream-hc.service")
SERVICE = UNIT["Service"]
SECRETS = sections("secrets.conf")["Service"]


def test_it_runs_the_daemon():
    (command,) = SERVICE["ExecStart"]
    assert command.split() == ["/opt/stream-hc/bin/stream-hc", *COMMAND[1:]]


def test_one_that_was_fenced_stays_down_and_others_come_back_later_and_later():
    assert SERVICE["Restart"] == ["on-failure"]
    prevented = {int(code) for code in SERVICE["RestartPreventExitStatus"][0].split()}
    assert prevented == {Code.FENCED, Code.USAGE}
    assert int(SERVICE["RestartSec"][0]) < int(SERVICE["RestartMaxDelaySec"][0])
    assert int(SERVICE["RestartSteps"][0]) > 1
    assert UNIT["Unit"]["StartLimitIntervalSec"] == ["0"], "brokers may be away for long"


def test_it_has_time_to_save_and_ends_its_children_itself():
    assert SERVICE["TimeoutStopSec"] == ["60"]
    assert SERVICE["KillMode"] == ["mixed"]
    assert SERVICE["OOMPolicy"] == ["continue"]


def test_it_has_a_user_of_its_own_and_two_folders():
    assert SERVICE["DynamicUser"] == ["yes"]
    assert SERVICE["StateDirectory"] == SERVICE["CacheDirectory"] == ["stream-hc"]
    assert "NUMBA_CACHE_DIR=%C/stream-hc" in SERVICE["Environment"]
    job = (DEPLOY / "config" / "job.toml").read_text()
    assert 'folder = "/var/lib/stream-hc/state"' in job


def test_it_may_do_little_and_make_machine_code():
    for key in ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome", "RestrictSUIDSGID"):
        assert SERVICE[key] == ["yes"]
    assert SERVICE["ProtectSystem"] == ["strict"]
    assert SERVICE["CapabilityBoundingSet"] == [""]
    assert SERVICE["SystemCallFilter"] == ["@system-service", "~@privileged"]
    assert "MemoryDenyWriteExecute" not in SERVICE, "numba could not compile"


def test_secrets_are_handed_over_as_files_that_the_program_asks_for():
    credentials = [value.partition(":")[::2] for value in SECRETS["LoadCredential"]]
    variables = dict(value.split("=", 1) for value in SECRETS["Environment"])
    assert variables.keys() <= VARIABLES
    assert sorted(variables.values()) == sorted(f"%d/{name}" for name, _ in credentials)
    assert all(path == f"/etc/stream-hc/{name}" for name, path in credentials)
    assert not any("STREAM_HC" in value for value in SERVICE["Environment"])


@pytest.fixture
def analyze(tmp_path):
    """Return a function that runs systemd-analyze on the unit with its secrets."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze: install systemd")
    unit = tmp_path / "stream-hc.service"
    unit.write_text(
        (FOLDER / "stream-hc.service").read_text().replace("/opt/stream-hc/bin/stream-hc", "/bin/true")
    )
    (tmp_path / "stream-hc.service.d").mkdir()
    shutil.copy(FOLDER / "secrets.conf", tmp_path / "stream-hc.service.d")

    def run(*arguments):
        return subprocess.run(["systemd-analyze", *arguments, unit], capture_output=True, text=True)

    return run


def test_systemd_understands_it(analyze):
    done = analyze("verify", "--man=no")
    said = [line for line in done.stderr.splitlines() if not any(f"'{key}'" in line for key in NEW_KEYS)]
    assert said == []


def test_systemd_finds_it_well_protected(analyze):
    done = analyze("security", "--offline=true", "--threshold=20")
    assert done.returncode == 0, done.stdout[-300:]
