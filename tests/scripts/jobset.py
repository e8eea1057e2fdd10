"""Checks the manifests that are shipped for Kubernetes, and prints what the test compares: `jobset.py FILE`.

ConfigMaps, claims and the Jobs within a JobSet are validated strictly (no unknown fields) against Kubernetes' own schemas, which the
package kubernetes-validate has. Of the JobSet around them, whose schema is not among those, the fields that its documentation names are
known here: https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2
"""

import json
import sys

import kubernetes_validate
import yaml

JOBSET = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": str},
    "spec": {
        "network": {"enableDNSHostnames": bool, "subdomain": str, "publishNotReadyAddresses": bool},
        "successPolicy": {"operator": ("All", "Any"), "targetReplicatedJobs": [str]},
        "failurePolicy": {"maxRestarts": int, "rules": list},
        "replicatedJobs": [{"name": str, "replicas": int, "template": dict, "dependsOn": list}],
        "startupPolicy": {"startupPolicyOrder": ("AnyOrder", "InOrder")},
        "suspend": bool,
        "ttlSecondsAfterFinished": int,
        "coordinator": dict,
    },
}


def check(value, known, at):
    if isinstance(known, dict):
        assert isinstance(value, dict), f"{at} is {value!r}"
        for name, inner in value.items():
            assert name in known, f"{at}.{name} is no field"
            check(inner, known[name], f"{at}.{name}")
    elif isinstance(known, list):
        assert isinstance(value, list), f"{at} is {value!r}"
        for i, inner in enumerate(value):
            check(inner, known[0], f"{at}[{i}]")
    elif isinstance(known, tuple):
        assert value in known, f"{at} is {value!r}"
    elif isinstance(known, type):
        assert isinstance(value, known), f"{at} is {value!r}"
    else:
        assert value == known, f"{at} is {value!r}"


def validate(document):
    kubernetes_validate.validate(document, "1.31", strict=True)


found = {"jobs": {}}
for document in yaml.safe_load_all(open(sys.argv[1])):
    if document["kind"] != "JobSet":
        validate(document)
        if document["kind"] == "ConfigMap":
            found["cluster"] = document["data"]["cluster.toml"]
        continue
    check(document, JOBSET, "jobset")
    spec = document["spec"]
    for job in spec["replicatedJobs"]:
        name = f"{document['metadata']['name']}-{job['name']}-0"
        validate({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": job["template"]["spec"]})
        (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
        found["jobs"][job["name"]] = {
            "command": container["command"] + container["args"],
            "hosts": [f"{name}-{i}.{spec['network']['subdomain']}" for i in range(job["template"]["spec"]["completions"])],
            "mounts": [mount["mountPath"] for mount in container["volumeMounts"]],
        }
    assert set(spec["successPolicy"]["targetReplicatedJobs"]) <= set(found["jobs"])
print(json.dumps(found))
