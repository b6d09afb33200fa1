"""The manifest of a bundle: what is in it, and which manifests are valid.

``manifest.schema.json``, beside this file, is the schema (JSON Schema 2020-12) and says what each entry means.
"""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, final

SCHEMA_VERSION = 1  # raise it when a manifest means something else, or has more or less in it


@final
class ManifestError(ValueError):
    """A manifest that is not valid. ``faults``: each as ``path: what is wrong there``, all of them."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("the manifest is not valid: " + "\n  ".join(["", *faults] if len(faults) > 1 else faults))
        self.faults = tuple(faults)


def validate_manifest(manifest: object) -> None:
    """Check a manifest (a JSON object, as a dict) against the schema.

    Raises ManifestError with the path of every fault: ``exec_targets: 'host' is not of type 'array'``. A manifest
    of another schema version is refused for that alone.
    """
    if isinstance(manifest, dict):
        version = manifest.get("schema_version", SCHEMA_VERSION)
        if version != SCHEMA_VERSION:
            raise ManifestError(
                [f"schema_version: this is a manifest of version {version!r}, and version {SCHEMA_VERSION} is read "
                 "here; build the bundle again with this hawk"]
            )  # fmt: skip
    errors = sorted(_validator().iter_errors(manifest), key=lambda e: list(map(str, e.absolute_path)))
    if errors:
        raise ManifestError([_fault(e) for e in errors])


def manifest_digest(manifest: Mapping[str, Any]) -> str:
    """The sha256 that a manifest carries in its entry ``sha256``: of all its other entries, as compact JSON."""
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _fault(error: Any) -> str:
    path = list(error.absolute_path)
    message = error.message.replace(repr(error.instance), reprlib.repr(error.instance), 1)
    if error.validator == "required":  # the library puts it at the object that lacks the entry
        (missing,) = [name for name in error.validator_value if error.message.startswith(repr(name))]
        path, message = [*path, missing], "missing"
    return f"{'.'.join(map(str, path)) or 'manifest'}: {message}"


@cache
def _validator() -> Any:
    # Imported when the first bundle is: it takes as long as all of hawk.
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(files("raptor").joinpath("manifest.schema.json").read_text("utf-8")))
