"""The files that start a fleet: read by a parser, and every command in them by mannerly's own."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from mannerly.cli import app
from mannerly.crawler.options.table import OPTIONS

FLEET = Path(__file__).parents[2] / "ops" / "fleet"
OURS = {option.variable for option in OPTIONS.values()}
CLAIM, CLAIM_KEY = "PersistentVolumeClaim", "persistentVolumeClaim"


def compose() -> dict[str, Any]:
    """The compose file; a merge key is resolved by the parser."""
    read: dict[str, Any] = yaml.safe_load((FLEET / "compose.yaml").read_text())
    return read


def manifests() -> list[dict[str, Any]]:
    """The Kubernetes manifests."""
    return list(yaml.safe_load_all((FLEET / "kubernetes.yaml").read_text()))


def commands() -> list[list[str]]:
    """Every command of a worker."""
    services = compose()["services"].values()
    found = [each["command"] for each in services if each["command"][0] == "crawl"]
    for manifest in manifests():
        for container in manifest["spec"].get("template", {}).get("spec", {}).get("containers", []):
            if container["name"] == "worker":
                found.append(container["args"])
    unit = (FLEET / "mannerly-worker@.service").read_text()
    line = next(each for each in unit.splitlines() if each.startswith("ExecStart="))
    found.append(shlex.split(line.partition("=")[2])[1:])
    return found


@pytest.mark.parametrize("words", commands(), ids=lambda words: " ".join(words)[:60])
def test_every_command_has_options_that_exist(words: list[str]) -> None:
    """A name that was changed here would be noticed when the fleet is started, not before."""
    flags = {option.flag for option in OPTIONS.values()}

    assert words[0] in set(app.commands)
    assert {word for word in words if word.startswith("--")} <= flags


def test_variables_are_options() -> None:
    """In every file."""
    variables = set()
    for service in compose()["services"].values():
        variables |= set(service.get("environment", {}))
    for manifest in manifests():
        for container in manifest["spec"].get("template", {}).get("spec", {}).get("containers", []):
            variables |= {each["name"] for each in container.get("env", [])}

    assert {name for name in variables if name.startswith("MANNERLY_")} <= OURS


def test_the_server_keeps_what_it_is_given() -> None:
    """It writes an append-only file and evicts nothing."""
    texts = [" ".join(compose()["services"]["valkey"]["command"])]
    (server,) = [
        manifest["spec"]["template"]["spec"]["containers"][0]
        for manifest in manifests()
        if manifest["metadata"]["name"] == "valkey" and manifest["kind"] == "StatefulSet"
    ]
    texts.append(" ".join(server["args"]))

    for text in texts:
        assert "--appendonly yes" in text
        assert "--maxmemory-policy noeviction" in text


def test_manifests_fit_together() -> None:
    """Selectors find their pods, volumes that are mounted exist, no container is root."""
    claims = {each["metadata"]["name"] for each in manifests() if each["kind"] == CLAIM}
    for manifest in manifests():
        if manifest["kind"] not in ("StatefulSet", "Job"):
            continue
        spec = manifest["spec"]
        pod = spec["template"]["spec"]
        volumes = {each["name"] for each in pod.get("volumes", [])}
        volumes |= {each["metadata"]["name"] for each in spec.get("volumeClaimTemplates", [])}
        claimed = [each[CLAIM_KEY] for each in pod.get("volumes", []) if CLAIM_KEY in each]

        if manifest["kind"] == "StatefulSet":
            assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
        assert {each["claimName"] for each in claimed} <= claims
        for container in pod["containers"]:
            assert {each["name"] for each in container["volumeMounts"]} <= volumes


def test_worker_that_has_finished_is_not_started_again() -> None:
    """An end that is final ends the job; every other one is another start in the same directory."""
    (job,) = [each["spec"] for each in manifests() if each["kind"] == "Job"]
    pod = job["template"]["spec"]
    (worker,) = pod["containers"]
    final, drained = job["podFailurePolicy"]["rules"]

    assert (job["completionMode"], pod["restartPolicy"]) == ("Indexed", "Never")
    assert job["completions"] == job["parallelism"]
    assert (final["action"], final["onExitCodes"]["values"]) == ("FailJob", [2, 3, 4])
    assert drained["action"] == "Ignore"
    assert worker["volumeMounts"][0]["subPathExpr"] == "worker-$(WORKER)"
    assert "WORKER" in {each["name"] for each in worker["env"]}
    assert not [each for each in manifests() if each["kind"] == "Deployment"]
