"""A bundle that is not whole is refused, by the name of the file."""

import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from bundled import mixed, reseal, swing

import hawk
from hawk.artifact import BundleError
from hawk.diff import vjp


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    hawk.build([swing, hawk.Kernel("mixed_vjp", vjp(mixed))], folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "bundle")


def refusal(folder: Path, name: str) -> str:
    """What is said of the file `name` when the bundle is loaded."""
    with pytest.raises(BundleError) as error:
        hawk.load(folder)
    message = str(error.value)
    assert message.startswith(f"{folder / name}: ")
    return message.removeprefix(f"{folder / name}: ")


FILES = ["swing.o", "swing.ir", "mixed_vjp.o", "mixed_vjp.ir", "mixed_vjp.primal.ir"]


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_checked(folder, name):
    path = folder / name
    content = path.read_bytes()
    for changed in (content[:-1], content[:-1] + bytes([content[-1] ^ 1]), content + b"\n", b""):
        path.write_bytes(changed)
        assert re.match(
            "it is damaged or of another bundle: its sha256 is .*; build the bundle again", refusal(folder, name)
        )
    path.unlink()
    assert refusal(folder, name).startswith("there is no such file; the manifest names it")
    path.mkdir()
    assert refusal(folder, name).startswith("it cannot be read (Is a directory)")
    path.rmdir()
    path.write_bytes(content)
    assert list(hawk.load(folder).plugins) == ["swing", "mixed_vjp"]


def test_a_file_of_another_bundle(folder, tmp_path):
    hawk.build([swing], tmp_path / "other", mode="float32")
    for name in ("swing.o", "swing.ir"):
        kept = (folder / name).read_bytes()
        shutil.copy(tmp_path / "other" / name, folder / name)
        assert "of another bundle" in refusal(folder, name)
        (folder / name).write_bytes(kept)


def test_files_of_one_bundle_in_each_others_place(folder):
    (folder / "mixed_vjp.ir").write_bytes((folder / "swing.ir").read_bytes())
    assert "of another bundle" in refusal(folder, "mixed_vjp.ir")


def test_no_bundle_at_all(tmp_path):
    assert refusal(tmp_path, "manifest.json") == "there is no such file; hawk.build makes bundles"
    assert refusal(tmp_path / "nowhere", "manifest.json").startswith("there is no such file")
    (tmp_path / "file").write_text("")
    assert refusal(tmp_path / "file", "manifest.json").startswith("it cannot be read (Not a directory)")


@pytest.mark.parametrize("content", [b"", b"{", b'{"schema_version": 1', b"\xff\xfe", b"\0" * 100])
def test_a_manifest_that_is_no_json(folder, content):
    (folder / "manifest.json").write_bytes(content)
    assert refusal(folder, "manifest.json").startswith("it is damaged, or no JSON at all (")


@pytest.mark.parametrize("content", [b"[]", b'{"name": "another tool"}', b"null"])
def test_the_manifest_of_something_else(folder, content):
    (folder / "manifest.json").write_bytes(content)
    assert "the manifest is not valid" in refusal(folder, "manifest.json")


def test_an_edited_manifest(folder):
    path = folder / "manifest.json"
    content = path.read_text()
    for old, new in (("float64", "float32"), ('"swing"', '"swung"'), ('"lanes": ', '"lanes": 1')):
        assert old in content
        path.write_text(content.replace(old, new, 1))
        assert refusal(folder, "manifest.json").startswith("it is not as it was built")
    path.write_text(json.dumps(json.loads(content)))  # laid out in another way, and as it was built
    hawk.load(folder)


def test_a_manifest_of_another_schema_version(folder):
    reseal(folder, schema_version=2)
    assert "schema_version: this is a manifest of version 2, and version 1 is read" in refusal(folder, "manifest.json")


def test_a_manifest_that_does_not_agree_with_the_ir(folder):
    kernels = json.loads((folder / "manifest.json").read_text())["kernels"]
    kernels[0]["arguments"][0]["name"] = "other"
    reseal(folder, kernels=kernels)
    assert refusal(folder, "swing.ir").startswith("its arguments are not those the manifest gives for swing")


def test_ir_that_is_none_under_a_checksum_that_fits(folder):
    kernels = json.loads((folder / "manifest.json").read_text())["kernels"]
    for content, message in (
        (b"kernel swing\n  what", "line 2: "),
        (b"kernel swing\n  mutable y: scalar f64\n", "swing: y has 1 components, 0 are written"),
        (b"\xff", "'utf-8' codec can't decode"),
    ):
        (folder / "swing.ir").write_bytes(content)
        kernels[0]["ir"]["sha256"] = hashlib.sha256(content).hexdigest()
        reseal(folder, kernels=kernels)
        assert refusal(folder, "swing.ir").startswith(message)


def test_a_derivative_of_another_kernel(folder):
    kernels = json.loads((folder / "manifest.json").read_text())["kernels"]
    kernels[1]["derivative"]["primal"]["ir"] = kernels[0]["ir"]
    reseal(folder, kernels=kernels)
    assert refusal(folder, "manifest.json").startswith("wrt='x': swing has no input of that name")
    kernels[1]["derivative"]["wrt"] = ["s"]
    reseal(folder, kernels=kernels)
    assert refusal(folder, "mixed_vjp.ir").startswith("it is the IR of mixed_vjp, not of swing_vjp")


def test_a_target_without_an_object(folder):
    kernels = json.loads((folder / "manifest.json").read_text())["kernels"]
    kernels[1]["objects"] = {}
    reseal(folder, kernels=kernels)
    assert refusal(folder, "manifest.json") == "mixed_vjp has no object for the target 'host'"


class Crash(Exception):
    pass


@pytest.mark.parametrize("written", range(5))
def test_a_folder_written_in_part_is_no_bundle(written, folder, tmp_path, monkeypatch):
    """Whether it was empty before or held a bundle, and wherever the writing stopped."""
    replace, count = os.replace, 0

    def stopping(source: Path, target: Path) -> None:
        nonlocal count
        count += 1
        if count > written:
            raise Crash
        replace(source, target)

    for place in (tmp_path / "new", folder):
        count = 0
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", stopping)
            with pytest.raises(Crash):
                hawk.build([swing, mixed], place, mode="float32")
        assert not [path for path in place.iterdir() if path.name.startswith(".")]
        if place == folder and written == 0:
            hawk.load(place)  # the bundle that was there, as it was
        else:
            with pytest.raises(BundleError):
                hawk.load(place)
