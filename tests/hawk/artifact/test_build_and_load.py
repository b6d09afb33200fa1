"""A bundle is what was built: here, loaded again, in another process, on another CPU."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from bundled import derived, everything, mixed, reseal, swing
from running import digest, outputs

import eagle
import hawk
from hawk.artifact import Bundle, plugins
from hawk.codegen.compile import Compiler
from hawk.codegen.target import host
from hawk.diff import Jvp, Vjp, vjp
from hawk.ir.printer import text
from hawk.ir.types import Type
from raptor.schema import validate_manifest

MODES = ("float64", "float32")


@pytest.fixture(scope="module", params=MODES)
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return hawk.build(everything(), tmp_path_factory.mktemp("bundle"), mode=request.param)


@pytest.fixture(scope="module")
def expected(bundle: Bundle) -> dict[str, str]:
    """The bits of each kernel, compiled without a bundle."""
    return {k.name: digest(eagle.plan.Plan(k, bundle.manifest["mode"])) for k in everything()}


def digests(bundle: Bundle) -> dict[str, str]:
    return {name: digest(eagle.plan.plan(plugin)) for name, plugin in plugins(bundle).items()}


def test_the_manifest_describes_the_kernels(bundle):
    manifest = bundle.manifest
    validate_manifest(manifest)
    assert manifest == json.loads((bundle.directory / "manifest.json").read_text())
    assert manifest["exec_targets"] == ["host"]
    assert bundle.exec_targets == ("host",)
    assert manifest["host"]["cpu"] == host().cpu
    entries = {entry["name"]: entry for entry in manifest["kernels"]}
    real = manifest["mode"]
    assert entries["swing"]["arguments"] == [
        {"name": "s", "role": "mutable", "shape": [2], "dtype": real, "axes": [], "samples_first": False},
        {"name": "t", "role": "mutable", "shape": [], "dtype": real, "axes": [], "samples_first": False},
        {"name": "dt", "role": "param", "shape": [], "dtype": real, "axes": [], "samples_first": False},
        {"name": "force", "role": "mutable", "shape": [], "dtype": real, "axes": [], "samples_first": False},
    ]
    assert entries["mixed"]["arguments"][1] == {
        "name": "w", "role": "table", "shape": [4, 2], "dtype": real, "axes": ["row", "column"], "samples_first": False,
    }  # fmt: skip
    assert entries["swing"]["derivative"] is None
    primal = {"ir": entries["swing"]["ir"], "derivative": None}
    assert entries["swing_jvp"]["derivative"] == {"kind": "jvp", "wrt": ["s"], "primal": primal}
    assert entries["swing_vjp"]["derivative"] == {"kind": "vjp", "wrt": ["s", "t", "dt"], "primal": primal}


def test_the_folder_holds_what_the_manifest_names(bundle):
    names = {kernel.name for kernel in everything()}
    files = {path.name for path in bundle.directory.iterdir()}
    assert files == {"manifest.json", *(f"{n}.{end}" for n in names for end in ("ir", "o")), "mixed_twice.primal.ir"}
    assert (bundle.directory / "swing.ir").read_text() == text(swing.program(bundle.manifest["mode"])) + "\n"


def test_plugins_run_with_the_bits_of_kernels_compiled_without_a_bundle(bundle, expected):
    assert digests(bundle) == expected
    assert list(plugins(bundle)) == [k.name for k in everything()]
    for name, plugin in plugins(bundle).items():
        assert (plugin.name, plugin.mode, plugin.targets) == (name, bundle.manifest["mode"], ("host",))


def test_loaded_programs_are_those_that_were_built(bundle):
    mode = bundle.manifest["mode"]
    loaded = plugins(hawk.load(str(bundle.directory)))
    for kernel in everything():
        assert text(loaded[kernel.name].kernel.program(mode)) == text(kernel.program(mode))
        assert repr(loaded[kernel.name].kernel) == repr(kernel)
        assert loaded[kernel.name].kernel.stepping == kernel.stepping


def test_a_loaded_bundle_compiles_nothing_on_its_own_cpu(bundle, expected, compiled):
    assert digests(hawk.load(bundle.directory)) == expected
    assert compiled == []


def test_on_another_cpu_kernels_are_compiled_from_their_ir(bundle, expected, compiled, tmp_path):
    folder = shutil.copytree(bundle.directory, tmp_path / "moved")
    reseal(folder, host=bundle.manifest["host"] | {"cpu": "another", "features": "+none"})
    assert digests(hawk.load(folder)) == expected
    assert sorted(compiled) == sorted(expected)


def test_objects_of_another_compiler_are_not_used(bundle, expected, compiled, tmp_path):
    folder = shutil.copytree(bundle.directory, tmp_path / "old")
    kernels = json.loads((folder / "manifest.json").read_text())["kernels"]
    for entry in kernels:
        entry["objects"]["host"]["key"] = "0" * 64
    reseal(folder, kernels=kernels)
    assert digests(hawk.load(folder)) == expected
    assert sorted(compiled) == sorted(expected)


CHILD = """
import sys
import eagle, hawk
from hawk.codegen.compile import Compiler
from running import digest

def compiled(*args):
    raise AssertionError("nothing is to be compiled")

Compiler.object_code = compiled
for name, plugin in hawk.artifact.plugins(hawk.load(sys.argv[1])).items():
    print(name, digest(eagle.plan.plan(plugin)))
"""


def test_another_process_needs_neither_source_nor_compiler(bundle, expected, tmp_path):
    environment = os.environ | {"HAWK_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(bundle.directory)],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert dict(line.split() for line in done.stdout.splitlines()) == expected
    assert not (tmp_path / "cache").exists()


# loaded derivatives


def test_loaded_derivatives_are_known_as_such(bundle):
    kernels = {name: plugin.kernel for name, plugin in plugins(bundle).items()}
    vjp_, jvp_, twice = (kernels[n].definition for n in ("swing_vjp", "swing_jvp", "mixed_twice"))
    assert isinstance(vjp_, Vjp)
    assert isinstance(jvp_, Jvp)
    assert vjp_.primal is jvp_.primal is kernels["swing"].definition
    assert (vjp_.wrt, jvp_.wrt, vjp_.named("s")) == (("s", "t", "dt"), ("s",), "bar_s")
    assert isinstance(twice.primal, Vjp)
    assert twice.primal.primal is kernels["mixed"].definition
    assert isinstance(kernels["mixed_vjp"].definition, Vjp)


def test_a_derivative_is_built_without_its_primal(tmp_path):
    made = hawk.build([derived()[3]], tmp_path)
    names = {
        "manifest.json",
        "mixed_twice.ir",
        "mixed_twice.o",
        "mixed_twice.primal.ir",
        "mixed_twice.primal.primal.ir",
    }
    assert {path.name for path in tmp_path.iterdir()} == names
    definition = plugins(made)["mixed_twice"].kernel.definition
    assert text(definition.primal.primal.program(Type.F64)) == text(mixed.program())


def test_a_loaded_kernel_is_differentiated_as_the_one_built(bundle):
    mode = bundle.manifest["mode"]
    loaded, fresh = plugins(bundle)["mixed"].kernel, hawk.Kernel("d", vjp(mixed))
    again = hawk.Kernel("d", vjp(loaded))
    assert text(again.program(mode)) == text(fresh.program(mode))
    assert again.definition.wrt == fresh.definition.wrt


def test_the_other_precision_is_refused(bundle):
    mode = bundle.manifest["mode"]
    (other,) = set(MODES) - {mode}
    message = f"is from a bundle built with mode='{mode}': it has no {other} program"
    for name, plugin in plugins(bundle).items():
        assert str(plugin.kernel) == text(plugin.kernel.program(mode))
        with pytest.raises(ValueError, match=message):
            plugin.kernel.program(other)
        with pytest.raises(ValueError, match=message):
            eagle.plan.Plan(plugin.kernel, other)
        assert name in repr(plugin)


# plans of plugins


def test_a_loaded_vjp_is_no_step_but_reverses_one(bundle):
    mode = bundle.manifest["mode"]
    own = {name: eagle.plan.plan(plugin) for name, plugin in plugins(bundle).items()}
    with pytest.raises(eagle.errors.ArgumentError, match="swing_vjp is a vjp"):
        eagle.deploy([plugins(bundle)["swing_vjp"].kernel], mode=mode)
    seed = np.ones((2, 300), mode)
    found = []
    for plan in (eagle.plan.Plan(swing, mode), own["swing"]):
        for vjps in ({}, {"step": own["swing_vjp"]}):
            state = np.random.default_rng(1).normal(size=(2, 300)).astype(mode)
            bound = plan.bind(s=state, t=np.zeros(300, mode), dt=0.01, force=np.zeros(300, mode))
            graph = eagle.Graph().add(bound, name="step").build(record=True)
            reverse = eagle.diff.Reverse(graph, vjps=vjps)
            graph.launch()
            found.append(reverse(graph.record, {"s": seed})["s"].tobytes())
    assert len(set(found)) == 1
    with pytest.raises(eagle.errors.ReverseError, match="mixed_vjp is the vjp of another kernel, mixed"):
        eagle.diff.Reverse(graph, vjps={"step": own["mixed_vjp"]})


def test_plan_takes_plugins(bundle):
    plugin = plugins(bundle)["swing"]
    plan = eagle.plan.plan(plugin, structure=eagle.exec.HostTeam)
    assert (plan.name, plan.mode, plan.structure) == ("swing", plugin.mode, eagle.exec.HostTeam)
    for wrong, hint in (
        (bundle, "pick one"),
        (plugins(bundle), "pick one"),
        (swing, "eagle.deploy"),
        ("swing", "eagle"),
    ):
        with pytest.raises(eagle.errors.ArgumentError, match=rf"takes a plugin of hawk.artifact.plugins.*{hint}"):
            eagle.plan.plan(wrong)
    for structure in ("HostTeam", None, eagle.exec.HostTeam()):
        with pytest.raises(eagle.errors.ArgumentError, match=r"structure=.*eagle\.exec\.HostTeam"):
            eagle.plan.plan(plugin, structure=structure)


def test_plugins_takes_a_bundle(bundle):
    with pytest.raises(TypeError, match=r"takes a bundle, .* hawk\.load\(directory\), found"):
        plugins(bundle.directory)


def test_objects_accepted_are_of_that_very_program(compiled):
    """An object under the key of another program is not taken."""
    first, second = swing.program(), mixed.program()
    made = Compiler(host()).launch_object(first)
    fresh = Compiler(host())
    assert not fresh.accept(second, made)
    assert fresh.accept(first, made)
    fresh.launch_entry(second)
    fresh.launch_entry(first)
    assert compiled == ["swing", "mixed"]


# what build refuses


def test_building_anew_replaces_a_bundle(tmp_path):
    hawk.build([swing], tmp_path, mode="float32")
    again = hawk.build([swing, mixed], tmp_path / ".", mode="float64")
    assert list(plugins(again)) == ["swing", "mixed"]
    assert hawk.load(tmp_path).manifest == again.manifest
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert outputs(eagle.plan.plan(plugins(again)["swing"])).keys() == {"s", "t", "force"}


def renamed(name: str) -> hawk.Kernel:
    return hawk.Kernel(name, swing.definition)


@pytest.mark.parametrize(
    ("kernels", "error", "message"),
    [
        (swing, TypeError, r"takes a list of kernels: hawk\.build\(\[kernel\], directory\)"),
        ("swing", TypeError, "takes a list of kernels"),
        (3, TypeError, "takes a list of kernels"),
        ([swing, vjp], TypeError, r"takes hawk kernels, found <function vjp.*decorate"),
        ([vjp(swing)], TypeError, r"hawk\.Kernel\(name, hawk\.diff\.vjp\(kernel\)\)"),
        ([], ValueError, "no kernels"),
        ([swing, mixed, renamed("mixed")], ValueError, "two kernels are named 'mixed'; rename one"),
        ([swing, renamed("Swing")], ValueError, "two kernels are named 'swing' and 'Swing', one file name on some"),
    ],
)
def test_kernels_that_make_no_bundle(kernels, error, message, tmp_path):
    with pytest.raises(error, match=message):
        hawk.build(kernels, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "double"}, "mode='double': a kernel is built for 'float64' or 'float32'"),
        ({"targets": "host"}, r"targets='host': expected a list of targets"),
        ({"targets": ()}, r"targets=\(\): expected a list of targets"),
        ({"targets": ("host", "gpu")}, r"'gpu' is not a target; kernels are built for 'host'"),
    ],
)
def test_options_that_are_none(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        hawk.build([swing], tmp_path, **options)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot write a bundle here.*choose another directory.*file/inside") as error:
        hawk.build([swing], tmp_path / "file" / "inside")
    assert isinstance(error.value, NotADirectoryError)
    with pytest.raises(FileExistsError, match="cannot write a bundle here"):
        hawk.build([swing], tmp_path / "file")
