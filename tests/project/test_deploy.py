"""Tests of deploy/: ports, paths, signals and times agree with the gateway, and the commands run."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from interlingua import __version__
from interlingua.gateway.processes.worker import STREAM_STOP_TIMEOUT_SECONDS
from interlingua.gateway.settings.loader import load_settings
from interlingua.gateway.settings.schema import RequestLimits, Settings, Timeouts
from tests.support.gateway_process import START_TIMEOUT_SECONDS, run_gateway
from tests.support.paths import ROOT
from tests.support.raw_client import get

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SECRETS = {
    "INTERLINGUA_KEYS": "a-key-of-the-clients",
    "INTERLINGUA_SEAL_KEY": "the-same-for-all-replicas",
    "OPENROUTER_API_KEY": "the-upstreams-key",
}
KUBERNETES: dict[str, Any] = {
    manifest["kind"]: manifest for manifest in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8"))
}
POD = KUBERNETES["Deployment"]["spec"]["template"]["spec"]
CONTAINER = POD["containers"][0]


def time_to_stop(drain: float) -> float:
    """Return the seconds until all streams have finished or received an error."""
    return drain + STREAM_STOP_TIMEOUT_SECONDS


# ── systemd ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Unit(configparser.RawConfigParser):
    def __init__(self, path: Path) -> None:
        super().__init__(strict=False, delimiters=("=",), comment_prefixes=("#",))
        self.optionxform = str  # type: ignore[assignment,method-assign]
        self.read(path)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: str(path.stem))
def test_unit_agrees_with_the_gateway(path: Path) -> None:
    service = Unit(path)["Service"]
    assert (service["Type"], service["NotifyAccess"]) == ("notify", "all")  # workers send notifications too
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert service["KillMode"] == "mixed"  # the parent sends the signal to its workers
    assert float(service["TimeoutStopSec"]) >= time_to_stop(Settings().drain) + 5
    program, command, *options = shlex.split(service["ExecStart"])
    assert (Path(program).name, command, options[0]) == ("interlingua", "serve", "--config")
    assert service["EnvironmentFile"].startswith("-")
    assert service["NoNewPrivileges"] == "yes"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: str(path.stem))
def test_systemd_verifies_the_unit(path: Path, tmp_path: Path) -> None:
    """systemd-analyze checks that the program exists, so the test replaces it."""
    unit = tmp_path / path.name
    unit.write_text(re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={sys.executable}", path.read_text()))
    scope = ["--user"] if "user" in path.stem else []
    ran = subprocess.run(
        ["systemd-analyze", *scope, "verify", str(unit)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    if scope:
        return
    output = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", str(unit)], capture_output=True, text=True
    ).stdout
    exposure = re.search(r"exposure level .*: ([\d.]+)", output)
    assert exposure is None or float(exposure[1]) < 2, output  # older versions cannot analyse a file


# ── containers ────────────────────────────────────────────────────────────────────────────────────────────────────────


def instructions() -> list[tuple[str, str]]:
    text = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def instruction_values(name: str) -> list[str]:
    return [rest for word, rest in instructions() if word == name]


def environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for rest in instruction_values("ENV") for pair in shlex.split(rest))


def test_image_agrees_with_the_gateway() -> None:
    assert instruction_values("USER") == ["10001:10001"]
    assert instruction_values("STOPSIGNAL") == ["SIGTERM"]
    assert environment()["INTERLINGUA_PORT"] == instruction_values("EXPOSE")[0] == "8484"
    assert f"http://127.0.0.1:{instruction_values('EXPOSE')[0]}" in instruction_values("HEALTHCHECK")[0]
    copied = {name for rest in instruction_values("COPY") if "--from" not in rest for name in rest.split()[:-1]}
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert {f"!{name}" for name in copied} <= set(ignored)
    assert all((ROOT / name).exists() for name in copied)


def test_compose_agrees_with_the_image() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    service = compose["services"]["interlingua"]
    assert service["ports"] == ["127.0.0.1:8484:8484"]
    assert float(service["stop_grace_period"].removesuffix("s")) >= time_to_stop(Settings().drain) + 5
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    settings, place, _ = service["volumes"][0].split(":")
    assert (DEPLOY / settings).resolve().is_file()
    assert place == f"{instruction_values('WORKDIR')[-1]}/interlingua.yaml"
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).resolve().is_file()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the commands of the first build stage in a folder, because Docker may not be installed."""
    folder = tmp_path_factory.mktemp("image")
    for rest in instruction_values("COPY"):
        *sources, _ = rest.split()
        if "--from" not in rest:
            for source in sources:
                copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
                copy(ROOT / source, folder / source)
    opt = folder / "opt"
    known = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    env = {**known, **{name: value for name, value in environment().items() if name.startswith("PIP_")}}
    for command in instruction_values("RUN"):
        words = command.replace("/opt/interlingua", str(opt)).split()
        words[0] = sys.executable if words[0] == "python" else words[0]
        ran = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
        if "No matching distribution" in ran.stderr or "Could not find a version" in ran.stderr:
            pytest.skip(f"packages cannot be installed: {ran.stderr.strip().splitlines()[-1]}")
        assert ran.returncode == 0, ran.stderr
    return opt


def free_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


@pytest.mark.slow
@pytest.mark.parametrize("alone", ["PID 1", "a process"])
def test_image_starts_is_healthy_and_stops(image: Path, tmp_path: Path, alone: str) -> None:
    """Also as PID 1 on a read-only file system, if the system allows namespaces."""
    space: list[str] = []
    if alone == "PID 1":
        space = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
        space += ["sh", "-c", 'mount -o remount,bind,ro / && exec "$@"', "sh"]
        if not shutil.which("unshare") or subprocess.run([*space, "true"], capture_output=True).returncode:
            pytest.skip("no process namespace: `unshare` is missing or not permitted")
    port = free_port()
    env = {
        **{name: value for name, value in environment().items() if not name.startswith(("PIP_", "PATH"))},
        **SECRETS,
        "PATH": f"{image / 'bin'}:{os.environ['PATH']}",
        "HOME": "/nonexistent",
        "INTERLINGUA_PORT": port,
        "INTERLINGUA_DEMO": "true",
    }
    entry, command = (json.loads(instruction_values(word)[-1]) for word in ("ENTRYPOINT", "CMD"))
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([*space, *entry, *command], cwd=tmp_path, env=env, stdout=output, stderr=output)
    check = json.loads(instruction_values("HEALTHCHECK")[0].partition("CMD ")[2].replace("8484", port))

    def is_healthy() -> int:
        return subprocess.run(check, env=env, cwd=tmp_path, capture_output=True).returncode

    try:
        until = time.monotonic() + START_TIMEOUT_SECONDS
        while is_healthy():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
        first = process.pid if alone != "PID 1" else int(_children(process.pid)[0])
        if alone == "PID 1":
            assert re.search(r"(?m)^NSpid:.*\t1$", Path(f"/proc/{first}/status").read_text())
        os.kill(first, signal.SIGTERM)
        assert process.wait(30) == 0
        assert "stopped cut=0" in log.read_text()
        assert is_healthy() == 3
    finally:
        process.kill()
        process.wait()
    packages = {path.name.partition("-")[0].lower() for path in image.glob("lib/*/site-packages/*.dist-info")}
    assert packages >= {"interlingua", "aiohttp", "uvloop"}
    assert not packages & {"pytest", "mypy", "openai", "anthropic", "hatchling"}


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


# ── Kubernetes ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settings file of the container."""
    path = tmp_path_factory.mktemp("settings") / "interlingua.yaml"
    path.write_text(KUBERNETES["ConfigMap"]["data"]["interlingua.yaml"])
    return path


def test_manifests_agree_with_each_other(mounted: Path) -> None:
    assert set(KUBERNETES) == {"ConfigMap", "Deployment", "Service", "PodDisruptionBudget"}  # and no Secret
    loaded = load_settings(mounted, SECRETS)
    assert loaded.notes == []
    settings = loaded.settings
    assert CONTAINER["ports"] == [{"name": "http", "containerPort": settings.port}]
    assert KUBERNETES["Service"]["spec"]["ports"][0]["targetPort"] == "http"
    folder = CONTAINER["volumeMounts"][0]["mountPath"]
    assert CONTAINER["args"] == ["serve", "--config", f"{folder}/{next(iter(KUBERNETES['ConfigMap']['data']))}"]
    labels = KUBERNETES["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert KUBERNETES["Service"]["spec"]["selector"] == labels
    assert KUBERNETES["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert KUBERNETES["PodDisruptionBudget"]["spec"]["minAvailable"] < KUBERNETES["Deployment"]["spec"]["replicas"]
    waits = float(CONTAINER["lifecycle"]["preStop"]["exec"]["command"][1])
    assert POD["terminationGracePeriodSeconds"] >= waits + time_to_stop(settings.drain) + 5
    assert CONTAINER["image"].endswith(f":{__version__}")


def test_pods_have_minimal_privileges() -> None:
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert POD["securityContext"]["runAsUser"] == int(instruction_values("USER")[0].partition(":")[0])
    own = CONTAINER["securityContext"]
    assert (own["readOnlyRootFilesystem"], own["allowPrivilegeEscalation"]) == (True, False)
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert POD["enableServiceLinks"] is False  # a Service named interlingua would set INTERLINGUA_PORT
    assert POD["automountServiceAccountToken"] is False


def test_secret_has_all_variables_of_the_settings(mounted: Path) -> None:
    """Including the seal key: a replica must verify thinking that another replica signed."""
    assert CONTAINER["envFrom"] == [{"secretRef": {"name": "interlingua"}}]
    named = re.findall(r"(?m)^#   ([A-Z_]+)=", (DEPLOY / "kubernetes.yaml").read_text("utf-8"))
    assert set(named) == set(SECRETS)
    settings = load_settings(mounted, SECRETS).settings
    assert settings.seal_key == SECRETS["INTERLINGUA_SEAL_KEY"]
    assert settings.upstreams["openrouter"].key == SECRETS["OPENROUTER_API_KEY"]


def test_probes_need_no_key(mounted: Path) -> None:
    with run_gateway("--config", str(mounted), **SECRETS) as gateway:
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            probe = CONTAINER[kind]["httpGet"]
            assert probe["port"] == "http"
            assert get(gateway, probe["path"], host="10.1.2.3:8484").status == 200
        assert get(gateway, "/metrics", host="10.1.2.3:8484").status == 401
        key = SECRETS["INTERLINGUA_KEYS"]
        assert get(gateway, "/metrics", host="interlingua:8484", authorization=f"Bearer {key}").status == 200


# ── nginx ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nginx_limits_match_the_gateway() -> None:
    conf = (DEPLOY / "nginx.conf").read_text("utf-8")
    assert f"client_max_body_size {RequestLimits().body // 2**20}m;" in conf
    assert f"proxy_read_timeout {Timeouts().total}s;" in conf
    assert f"server 127.0.0.1:{Settings().port} " in conf
