"""Makes tests/data/kubernetes/manifests.json: the strict schema of the kinds of manifests in examples/kubernetes.

    python scripts/make_kubernetes_schemas.py DEFINITIONS RAYJOBS

DEFINITIONS is `kubernetes_validate/kubernetes-json-schema/v1.34.0-local/_definitions.json` of the package
kubernetes-validate 1.37.0 on PyPI: the schemas of Kubernetes 1.34. RAYJOBS is `config/crd/bases/ray.io_rayjobs.yaml`
of the Go module github.com/ray-project/kuberay/ray-operator v1.4.0. Both have the licence Apache-2.0.
"""

import json
import sys
from pathlib import Path
from typing import Any

import ruamel.yaml

TARGET = Path(__file__).resolve().parent.parent / "tests" / "data" / "kubernetes" / "manifests.json"
KINDS = {"Job": "io.k8s.api.batch.v1.Job", "PersistentVolumeClaim": "io.k8s.api.core.v1.PersistentVolumeClaim"}
POD = "io.k8s.api.core.v1.PodTemplateSpec"
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def strict(schema: Any) -> Any:
    """Returns a schema without descriptions, in which an object has no fields but those that are listed."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {
        name: {field: strict(each) for field, each in value.items()} if name == "properties" else strict(value)
        for name, value in schema.items()
        if name not in ("description", "default") and not name.startswith("x-kubernetes-")
    }
    if schema.get("x-kubernetes-int-or-string"):
        made = {"type": ["integer", "string"]}
    if "properties" in made:
        made.setdefault("additionalProperties", False)
    return made


def names_of(schema: Any) -> set[str]:
    """Returns the definitions that a schema refers to."""
    if isinstance(schema, list):
        return {name for each in schema for name in names_of(each)}
    if not isinstance(schema, dict):
        return set()
    reference = schema.get("$ref")
    own = {reference.rpartition("/")[2]} if isinstance(reference, str) else set()
    return own | {name for each in schema.values() for name in names_of(each)}


def with_pods(schema: Any) -> Any:
    """Returns a schema of KubeRay with a reference in place of each copy of the schema of pods."""
    if not isinstance(schema, dict):
        return schema
    fields = schema.get("properties", {})
    if "containers" in fields.get("spec", {}).get("properties", {}):
        return {"$ref": f"#/$defs/{POD}"}
    return {name: with_pods(value) for name, value in schema.items()}


def main(definitions: str, rayjobs: str) -> None:
    """Writes the schema."""
    known = json.loads(Path(definitions).read_text())
    known = known["$defs"]
    resource = ruamel.yaml.YAML(typ="safe").load(Path(rayjobs))
    (version,) = (each for each in resource["spec"]["versions"] if each["name"] == "v1")
    rayjob = with_pods(version["schema"]["openAPIV3Schema"])
    rayjob["properties"]["metadata"] = {"$ref": f"#/$defs/{META}"}
    found = {"RayJob": strict(rayjob)}
    wanted = [*KINDS.values(), *names_of(found["RayJob"])]
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = strict(known[name])
            wanted += names_of(found[name])
    kinds = {**KINDS, "RayJob": "RayJob"}
    chosen = [
        {"if": {"properties": {"kind": {"const": kind}}}, "then": {"$ref": f"#/$defs/{name}"}}
        for kind, name in kinds.items()
    ]
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {"kind": {"enum": sorted(kinds)}},
        "allOf": chosen,
        "$defs": dict(sorted(found.items())),
    }
    TARGET.write_text(json.dumps(schema, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
