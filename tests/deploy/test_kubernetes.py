"""The manifests: rights, probes, volumes, and that they name each other rightly."""

import base64
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from consumers.settings import problems_of
from tests.deploy.support import (
    COMMAND,
    DEPLOY,
    PROJECT,
    SERVED,
    USER,
    VARIABLES,
    configured,
    documents,
    environment,
    instructions,
)

BASE = DEPLOY / "kubernetes" / "base"
STANDBY = DEPLOY / "kubernetes" / "standby"
FOUND = documents(BASE)
SET = FOUND["StatefulSet"]["spec"]
POD = SET["template"]["spec"]
(CONTAINER,) = POD["containers"]
JOB = tomllib.loads((BASE / "job.toml").read_text())
FINAL = instructions(DEPLOY / "container" / "Containerfile")[-1]
MOUNTS = {mount["name"]: mount for mount in CONTAINER["volumeMounts"]}
VOLUMES = {volume["name"]: volume for volume in POD["volumes"]}
UNITS = {"Mi": 2**20, "Gi": 2**30}


@pytest.fixture
def job(tmp_path):
    return configured(tmp_path, BASE / "job.toml", BASE / "taxonomy.tsv").config


def test_every_manifest_is_applied_but_the_example_of_a_secret():
    applied = FOUND["Kustomization"]["resources"]
    files = {path.name for path in BASE.glob("*.yaml")}
    assert files - set(applied) == {"kustomization.yaml", "secret.example.yaml"}
    assert len(FOUND) == len(files), "one object a file"


def test_the_schemas_of_kubernetes_are_kept():
    validate = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate (100 MB)")
    for kind, manifest in FOUND.items():
        if kind != "Kustomization":
            validate.validate(manifest, "1.34", strict=True)


def test_kustomize_puts_both_variants_together():
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl")
    made = {}
    for folder in (BASE, STANDBY):
        done = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        made[folder] = {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}
    config = made[BASE]["ConfigMap"]
    assert config["data"]["job.toml"] == (BASE / "job.toml").read_text()
    (volume,) = [
        each
        for each in made[BASE]["StatefulSet"]["spec"]["template"]["spec"]["volumes"]
        if "configMap" in each
    ]
    assert volume["configMap"]["name"] == config["metadata"]["name"] != "stream-hc"
    assert made[STANDBY]["StatefulSet"]["spec"]["replicas"] == 2
    assert made[STANDBY]["PersistentVolumeClaim"]["spec"]["accessModes"] == ["ReadWriteMany"]


def test_one_reads_and_its_name_in_the_group_is_that_of_the_pod():
    assert SET["replicas"] == 1
    assert "volumeClaimTemplates" not in SET, "whoever takes over needs the same state"
    variables = {each["name"]: each for each in CONTAINER["env"]}
    assert variables.keys() <= VARIABLES
    field = variables["STREAM_HC_KAFKA_INSTANCE"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert field == "metadata.name"
    assert "instance" not in JOB["kafka"]
    assert POD["enableServiceLinks"] is False


def test_it_runs_the_pinned_image_and_has_time_to_save():
    (image,) = FOUND["Kustomization"]["images"]
    assert image["newTag"] == PROJECT["version"]
    assert CONTAINER["image"] == f"{image['name']}:{PROJECT['version']}"
    assert CONTAINER["args"] == COMMAND
    assert "command" not in CONTAINER, "start.sh of the image fills the cache of kernels"
    assert POD["terminationGracePeriodSeconds"] == 60
    assert POD["shareProcessNamespace"] is True


def test_the_pod_keeps_to_the_restricted_profile():
    assert "restricted" in FOUND["Namespace"]["metadata"]["labels"].values()
    context = POD["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == context["runAsGroup"] == context["fsGroup"] == USER
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert POD["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & POD.keys()
    assert not any("hostPath" in volume for volume in VOLUMES.values())


def test_all_it_can_write_is_its_state_its_kernels_and_tmp():
    assert MOUNTS.keys() == VOLUMES.keys()
    writable = {mount["mountPath"]: name for name, mount in MOUNTS.items() if not mount.get("readOnly")}
    assert writable == {
        dict(FINAL)["VOLUME"]: "state",
        environment(FINAL)["NUMBA_CACHE_DIR"]: "kernels",
        "/tmp": "tmp",
    }
    assert all("sizeLimit" in VOLUMES[name]["emptyDir"] for name in ("kernels", "tmp"))
    claim = VOLUMES["state"]["persistentVolumeClaim"]["claimName"]
    assert FOUND["PersistentVolumeClaim"]["metadata"]["name"] == claim
    assert FOUND["PersistentVolumeClaim"]["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert Path(JOB["state"]["folder"]).parent == Path(MOUNTS["state"]["mountPath"])


def test_the_probes_ask_for_paths_that_are_served():
    asked = {}
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        *command, path = CONTAINER[name]["exec"]["command"]
        assert command == ["python", "/opt/stream-hc/health.py"]
        assert CONTAINER[name]["timeoutSeconds"] > 4, "longer than health.py itself waits"
        asked[name] = path
    assert asked == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    assert set(asked.values()) <= SERVED


def test_ports_and_labels_fit_together():
    (port,) = CONTAINER["ports"]
    assert port["containerPort"] == JOB["http"]["port"]
    service = FOUND["Service"]["spec"]
    assert service["ports"][0]["targetPort"] == port["name"]
    assert FOUND["Service"]["metadata"]["name"] == SET["serviceName"]
    labels = SET["template"]["metadata"]["labels"]
    selectors = [
        SET["selector"]["matchLabels"],
        service["selector"],
        FOUND["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        FOUND["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ]
    assert selectors == [labels] * 4
    (ingress,) = FOUND["NetworkPolicy"]["spec"]["ingress"]
    assert [each["port"] for each in ingress["ports"]] == [port["containerPort"]]
    broker = int(JOB["kafka"]["bootstrap"].rpartition(":")[2])
    ranges = [each for rule in FOUND["NetworkPolicy"]["spec"]["egress"] for each in rule["ports"]]
    assert any(each["port"] <= broker <= each.get("endPort", each["port"]) for each in ranges)


def test_a_drain_is_not_held_up_by_the_only_pod():
    assert FOUND["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1


def test_a_fit_leaves_room_for_the_job_itself(job):
    limit = CONTAINER["resources"]["limits"]["memory"]
    assert job.refit.max_memory <= int(limit[:-2]) * UNITS[limit[-2:]] / 2
    assert CONTAINER["resources"]["requests"].keys() == {"cpu", "memory"}


def test_the_job_takes_its_secrets_from_files_that_the_secret_has(job, tmp_path):
    secret = FOUND["Secret"]
    assert VOLUMES["secrets"]["secret"] == {"secretName": secret["metadata"]["name"], "defaultMode": 0o440}
    folder = MOUNTS["secrets"]["mountPath"]
    paths = re.findall(rf'"{folder}/([^"]+)"', (BASE / "job.toml").read_text())
    assert set(paths) == secret["stringData"].keys()
    assert all("change-me" in value for value in secret["stringData"].values())
    assert "data" not in secret
    assert base64.b64encode(b"change-me").decode() not in str(secret)
    (tmp_path / "password").write_text("tulip")
    there = {"kafka.password_file": str(tmp_path / "password"), "kafka.ca": "none"}
    found = configured(tmp_path, BASE / "job.toml", BASE / "taxonomy.tsv", **there)
    assert problems_of(found.config.kafka) == []
    assert job.kafka.security == "sasl_ssl"


def test_the_config_map_is_made_of_what_the_daemon_reads():
    (made,) = FOUND["Kustomization"]["configMapGenerator"]
    assert sorted(made["files"]) == ["job.toml", JOB["model"]["taxonomy"]]
    assert VOLUMES["config"]["configMap"]["name"] == made["name"]
    assert MOUNTS["config"]["mountPath"] == str(Path(COMMAND[-1]).parent)


def test_who_stands_by_shares_the_state():
    told = yaml.safe_load((STANDBY / "kustomization.yaml").read_text())
    assert told["resources"] == ["../base"]
    changes = {
        (patch["target"]["kind"], step["path"]): step["value"]
        for patch in told["patches"]
        for step in yaml.safe_load(patch["patch"])
    }
    assert changes["PersistentVolumeClaim", "/spec/accessModes"] == ["ReadWriteMany"]
    assert changes["StatefulSet", "/spec/replicas"] == 2
    for patch in told["patches"]:
        target = FOUND[patch["target"]["kind"]]
        assert target["metadata"]["name"] == patch["target"]["name"]
