"""The compose file: what is published, who waits for whom, and that its parts know each other."""

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
import yaml

from consumers.topics import topics_of
from deploy.kafka.fetch import VERSION
from tests.deploy.support import (
    COMMAND,
    DEPLOY,
    PROJECT,
    ROOT,
    SERVED,
    USER,
    compose,
    configured,
    environment,
)
from tests.deploy.support import instructions as containerfile

FOLDER = DEPLOY / "compose"
FILE = compose()
SERVICES = FILE["services"]
FINAL = containerfile(DEPLOY / "container" / "Containerfile")[-1]
each_service = pytest.mark.parametrize("name", SERVICES)


@pytest.fixture
def job(tmp_path):
    return configured(tmp_path, FOLDER / "job.toml", DEPLOY / "config" / "taxonomy.tsv").config


def mounts(name):
    """Return the volumes of a service, as (what, where, how)."""
    return [(*volume.split(":"), "rw")[:3] for volume in SERVICES[name]["volumes"]]


def test_it_is_what_the_compose_specification_says():
    checker = shutil.which("check-jsonschema", path=sysconfig.get_path("scripts"))
    command = [checker, "--builtin-schema", "vendor.compose-spec", FOLDER / "compose.yml"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@each_service
def test_an_image_has_a_version(name):
    assert re.fullmatch(r"[a-z/-]+:v?\d+\.\d+\.\d+", SERVICES[name]["image"])


def test_our_image_has_the_version_of_the_package_and_the_broker_that_of_the_tests():
    assert SERVICES["stream-hc"]["image"] == f"stream-hc:{PROJECT['version']}"
    assert SERVICES["kafka"]["image"] == SERVICES["topics"]["image"] == f"apache/kafka:{VERSION}"
    build = SERVICES["stream-hc"]["build"]
    assert (FOLDER / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()
    assert {f"{key}={value}" for key, value in build["args"].items()} <= {
        rest for instruction, rest in FINAL if instruction == "ARG"
    }


@each_service
def test_ports_are_published_on_loopback_alone(name):
    for port in SERVICES[name].get("ports", []):
        assert port.startswith("127.0.0.1:")


@each_service
def test_nobody_gets_more_rights_than_the_image_gives(name):
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "user", "network_mode", "pid", "cap_add"} & service.keys()


@each_service
def test_everything_that_runs_on_is_asked_how_it_is(name):
    if name == "topics":
        assert SERVICES[name]["restart"] == "no"
    else:
        assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
        assert SERVICES[name]["restart"] in ("unless-stopped", "on-failure:3")


def test_the_daemon_waits_for_a_broker_that_is_well_and_for_its_topics():
    waits = {other: how["condition"] for other, how in SERVICES["stream-hc"]["depends_on"].items()}
    assert waits == {"kafka": "service_healthy", "topics": "service_completed_successfully"}
    assert SERVICES["topics"]["depends_on"]["kafka"]["condition"] == "service_healthy"


def test_the_daemon_has_time_to_save_and_is_not_started_again_and_again():
    service = SERVICES["stream-hc"]
    assert service["stop_grace_period"] == "60s"
    assert service["restart"] == "on-failure:3", "after code 6 it must not come back forever"
    assert service["init"] is True
    assert "command" not in service
    assert COMMAND[-1] in [where for _, where, _ in mounts("stream-hc")]
    assert service["healthcheck"]["test"][-1] in SERVED


def test_all_the_daemon_can_write_is_its_state_its_kernels_and_tmp():
    service = SERVICES["stream-hc"]
    assert service["read_only"] is True
    writable = [where for _, where, how in mounts("stream-hc") if how != "ro"]
    assert writable == [dict(FINAL)["VOLUME"]]
    tmpfs = dict(each.split(":") for each in service["tmpfs"])
    cache = tmpfs.pop(environment(FINAL)["NUMBA_CACHE_DIR"]).split(",")
    assert tmpfs.keys() == {"/tmp"}
    assert {f"uid={USER}", f"gid={USER}"} <= set(cache)


@each_service
def test_what_is_mounted_is_there_and_read_only_or_is_a_volume(name):
    for what, _, how in mounts(name):
        if not what.startswith("."):
            assert what in FILE["volumes"]
            continue
        assert how == "ro"
        path = (FOLDER / what).resolve()
        if path.is_relative_to(DEPLOY / "prometheus") or path.is_relative_to(DEPLOY / "grafana"):
            continue
        assert path.is_file(), what


def test_secrets_are_files_that_git_does_not_take():
    ignored = (FOLDER / ".gitignore").read_text().split()
    assert ignored == [".env", "secrets/"]
    for name, secret in FILE["secrets"].items():
        assert secret["file"] == f"./secrets/{name}"
    named = [name for service in SERVICES.values() for name in service.get("environment", {})]
    assert [name for name in named if re.search("PASSWORD|TOKEN", name)] == [
        "GF_SECURITY_ADMIN_PASSWORD__FILE"
    ]
    users = {secret for service in SERVICES.values() for secret in service.get("secrets", [])}
    assert users == FILE["secrets"].keys()


def test_the_example_of_variables_has_the_defaults_and_nothing_else():
    used = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", (FOLDER / "compose.yml").read_text()))
    lines = (FOLDER / ".env.example").read_text().splitlines()
    assert dict(line.split("=", 1) for line in lines if not line.startswith("#")) == used


def test_the_job_is_valid_and_finds_broker_topics_and_token(job):
    host, port = job.kafka.bootstrap.split(":")
    assert SERVICES[host]["hostname"] == host
    assert f"INSIDE://{host}:{port}" in SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert SERVICES["topics"]["environment"]["BOOTSTRAP"] == job.kafka.bootstrap
    made = re.findall(r"(?m)^make_topic (\S+)", (FOLDER / "topics.sh").read_text())
    assert sorted(made) == sorted(topics_of(job.kafka).values())
    text = (FOLDER / "job.toml").read_text()
    assert re.search(r'token_file = "/run/secrets/(.+)"', text)[1] in SERVICES["stream-hc"]["secrets"]
    assert f"127.0.0.1:9464:{re.search(r'port = (.+)', text)[1]}" in SERVICES["stream-hc"]["ports"]
    assert '[http]\nenabled = true\nhost = "0.0.0.0"' in text


def test_a_fit_leaves_room_for_the_job_itself(job):
    assert SERVICES["stream-hc"]["mem_limit"] == "3g"
    assert job.refit.max_memory <= 2**30


def test_state_is_a_folder_inside_the_volume():
    text = (FOLDER / "job.toml").read_text()
    assert Path(re.search(r'folder = "(.+)"', text)[1]).parent == Path(dict(FINAL)["VOLUME"])


def test_prometheus_and_grafana_find_what_they_are_given():
    told = (FOLDER / "prometheus.yml").read_text()
    assert "/etc/prometheus/prometheus.yml" in SERVICES["prometheus"]["command"][0]
    (scraped,) = yaml.safe_load(told)["scrape_configs"]
    assert scraped["static_configs"] == [{"targets": ["stream-hc:9464"]}], "the daemon, by its service's name"
    assert scraped["authorization"] == {"credentials_file": "/run/secrets/http_token"}
    given = {where: FOLDER / source for source, where, _ in mounts("prometheus") if source.startswith(".")}
    assert given["/etc/prometheus/prometheus.yml"].is_file()
    for file in map(Path, yaml.safe_load(told)["rule_files"]):
        assert (given[str(file.parent)] / file.name).is_file()
    (source,) = yaml.safe_load((FOLDER / "datasource.yml").read_text())["datasources"]
    own = DEPLOY / "grafana" / "provisioning" / "datasources" / "prometheus.yml"
    (usual,) = yaml.safe_load(own.read_text())["datasources"]
    assert source == usual | {"url": "http://prometheus:9090"}
    (provider,) = (DEPLOY / "grafana" / "provisioning" / "dashboards").glob("*.yml")
    (told,) = yaml.safe_load(provider.read_text())["providers"]
    assert told["options"]["path"] in [where for _, where, _ in mounts("grafana")]
