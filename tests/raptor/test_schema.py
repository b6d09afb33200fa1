"""Which manifests are valid, and what is said of those that are not."""

import copy
import json
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from raptor.schema import SCHEMA_VERSION, ManifestError, manifest_digest, validate_manifest

DIGEST = "0" * 64


def ir(file: str) -> dict[str, str]:
    return {"file": file, "sha256": DIGEST}


def argument(name: str, role: str) -> dict[str, Any]:
    return {"name": name, "role": role, "shape": [4], "dtype": "float32", "axes": [], "samples_first": False}


def kernel(name: str, derivative: dict[str, Any] | None) -> dict[str, Any]:
    made = {"file": f"{name}.o", "sha256": DIGEST, "symbol": "hawk_0", "lanes": 8, "key": DIGEST}
    return {
        "name": name,
        "arguments": [argument("x", "sample"), argument("y", "mutable")],
        "returns": ["y"],
        "ir": ir(f"{name}.ir"),
        "derivative": derivative,
        "stepping": {"steps": "auto", "time": None, "time_step": "dt"},
        "objects": {"host": made},
    }


def manifest() -> dict[str, Any]:
    first = {"kind": "vjp", "wrt": ["x"], "primal": {"ir": ir("f.ir"), "derivative": None}}
    second = {"kind": "jvp", "wrt": ["x"], "primal": {"ir": ir("f_vjp.ir"), "derivative": copy.deepcopy(first)}}
    made = {
        "schema_version": SCHEMA_VERSION,
        "mode": "float32",
        "exec_targets": ["host"],
        "host": {"triple": "a-b-c", "cpu": "d", "features": "", "vector_bits": 256, "llvm": "20.1.8"},
        "kernels": [kernel("f", None), kernel("f_vjp", first), kernel("f_vjp_jvp", second)],
    }
    return made | {"sha256": manifest_digest(made)}


def changed(path: str, value: object) -> dict[str, Any]:
    """The manifest with the entry at `path` set to `value`; ``...`` takes the entry away."""
    made = manifest()
    *parents, last = [int(p) if p.isdigit() else p for p in path.split(".")]
    place: Any = made
    for key in parents:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return made


def faults(made: object) -> tuple[str, ...]:
    with pytest.raises(ManifestError) as error:
        validate_manifest(made)
    for fault in error.value.faults:
        assert fault in str(error.value)
    return error.value.faults


def test_the_schema_is_one():
    Draft202012Validator.check_schema(json.loads(files("raptor").joinpath("manifest.schema.json").read_text()))


def test_a_whole_manifest():
    made = manifest()
    before = copy.deepcopy(made)
    validate_manifest(made)
    validate_manifest(json.loads(json.dumps(made)))
    assert made == before


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("exec_targets", "host", "exec_targets: 'host' is not of type 'array'"),
        ("exec_targets", [], "exec_targets: [] should be non-empty"),
        ("exec_targets", ["gpu"], "exec_targets.0: 'gpu' is not one of ['host']"),
        ("exec_targets", ["host", "host"], "exec_targets: ['host', 'host'] has non-unique elements"),
        ("mode", "float16", "mode: 'float16' is not one of ['float64', 'float32']"),
        ("host.vector_bits", "256", "host.vector_bits: '256' is not of type 'integer'"),
        ("sha256", "abc", "sha256: 'abc' does not match '^[0-9a-f]{64}$'"),
        ("kernels", {}, "kernels: {} is not of type 'array'"),
        ("kernels.0.name", 3, "kernels.0.name: 3 is not of type 'string'"),
        ("kernels.0.arguments.1.dtype", "f4", "kernels.0.arguments.1.dtype: 'f4' is not one of"),
        ("kernels.0.arguments.1.shape", [0], "kernels.0.arguments.1.shape.0: 0 is less than the minimum of 1"),
        ("kernels.1.derivative.kind", "grad", "kernels.1.derivative.kind: 'grad' is not one of ['vjp', 'jvp']"),
        ("kernels.1.derivative", "vjp", "kernels.1.derivative: 'vjp' is not of type 'object', 'null'"),
        ("kernels.2.derivative.primal.derivative.wrt", "x", "kernels.2.derivative.primal.derivative.wrt: 'x' is not"),
        ("kernels.0.ir.file", "../../f.ir", "kernels.0.ir.file: '../../f.ir' does not match"),
        ("kernels.0.objects.host.file", "f.so", "kernels.0.objects.host.file: 'f.so' does not match"),
        ("kernels.0.objects.host.lanes", True, "kernels.0.objects.host.lanes: True is not of type 'integer'"),
        ("kernels.0.stepping.steps", 0, "kernels.0.stepping.steps: 0 is not valid under any of the given schemas"),
        ("extra", 1, "manifest: Additional properties are not allowed ('extra' was unexpected)"),
        ("kernels.0.extra", 1, "kernels.0: Additional properties are not allowed ('extra' was unexpected)"),
    ],
)
def test_a_fault_is_named_by_its_path(path, value, fault):
    (found,) = faults(changed(path, value))
    assert found.startswith(fault)


@pytest.mark.parametrize(
    "path",
    ["schema_version", "mode", "exec_targets", "host", "kernels", "sha256", "host.cpu", "kernels.0.derivative",
     "kernels.2.objects.host.key", "kernels.2.derivative.primal.ir.sha256", "kernels.0.arguments.1.samples_first"],
)  # fmt: skip
def test_what_is_missing_is_named(path):
    assert faults(changed(path, ...)) == (f"{path}: missing",)


def test_all_faults_are_told_in_order_of_their_paths():
    made = changed("mode", 3)
    made["kernels"][0]["name"] = ""
    del made["exec_targets"]
    del made["host"]["llvm"]
    starts = ["exec_targets: missing", "host.llvm: missing", "kernels.0.name: ", "mode: 3 is not one of"]
    found = faults(made)
    assert len(found) == len(starts)
    for fault, start in zip(sorted(found), starts, strict=True):
        assert fault.startswith(start)


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, "1", None, 0])
def test_another_version_is_refused_for_that_alone(version):
    made = changed("mode", 3) | {"schema_version": version}
    (fault,) = faults(made)
    assert fault.startswith(f"schema_version: this is a manifest of version {version!r}, and version 1 is read here")


@pytest.mark.parametrize("made", [None, [], "manifest.json", 3])
def test_what_is_no_object(made):
    (fault,) = faults(made)
    assert fault == f"manifest: {made!r} is not of type 'object'"


def test_a_large_entry_is_not_told_in_full():
    (fault,) = faults(changed("exec_targets", {str(k): "x" * 50 for k in range(1000)}))
    assert len(fault) < 400


def test_the_digest_is_of_all_other_entries():
    made = manifest()
    assert manifest_digest(made) == made["sha256"]
    assert manifest_digest(dict(reversed(made.items()))) == made["sha256"]
    assert manifest_digest(changed("mode", "float64")) != made["sha256"]
    assert manifest_digest(changed("kernels.0.objects.host.lanes", 4)) != made["sha256"]
