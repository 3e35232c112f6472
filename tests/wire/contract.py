"""api/openapi.json as the tests of tests/wire use it.

Fields of ours in it, beside those of OpenAPI:
  x-atoll-status: planned   on an operation, parameter, response, property, …: it is not there yet.
                            The tests fail when it is there after all, so that a mark stays true.
  x-atoll-order             on an operation: its turn (50 unless given; then as in the document)
  x-atoll-value             on a path parameter: "$name", a value that was captured before
  x-atoll-refused           on a path parameter: values and the status of each, if it is not that
                            most names are of nothing
  x-atoll-expect            on an operation: the status of a request without anything else
  x-atoll-expect, -capture  on an example: the status (the first 2xx unless given), and values to
                            keep: {"name": "field of the answer"}
  x-atoll-path, -base64     on an example: path parameters, and a body of bytes instead of a value
  x-atoll-query             on an example, a schema of a body, a query parameter: the parameters
                            that it belongs to
  x-atoll-cases             on an operation: further requests: path, query, headers, body, base64,
                            as ("tenant", "operator"), expect, code, field, bytes, reply_headers,
                            capture, capture_headers
  x-atoll-unreached         on a response: why the tests cannot make the server answer it
  x-atoll-statuses          on the default response: the statuses it stands for
"""
import copy
import json
import os
import re

import jsonschema

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "api", "openapi.json")
METHODS = ("get", "head", "post", "put", "patch", "delete", "options")


def shape(path):
    """A path with its parameters unnamed, so that two spellings compare."""
    return re.sub(r"\{[^}]*\}", "{}", path)


class Operation:
    def __init__(self, contract, path, method, item, spec):
        self.contract, self.path, self.method, self.spec = contract, path, method.upper(), spec
        self.id = spec["operationId"]
        self.order = spec.get("x-atoll-order", 50)
        self.parameters = [contract.resolve(parameter)
                           for parameter in item.get("parameters", []) + spec.get("parameters", [])]
        self.responses = {status: contract.resolve(response)
                          for status, response in spec["responses"].items()}

    def __repr__(self):
        return f"{self.method} {self.path}"

    @property
    def schemes(self):
        security = self.spec.get("security", self.contract.document["security"])
        return [name for requirement in security for name in requirement]

    def parameters_in(self, place):
        return [parameter for parameter in self.parameters if parameter["in"] == place]

    def body(self, media_type="application/json"):
        return self.spec.get("requestBody", {}).get("content", {}).get(media_type)

    def bodies(self):
        """(query, schema, examples) of every kind of JSON body; the query says which it is."""
        body = self.body()
        if not body:
            return []
        schema = self.contract.resolve(body["schema"])
        kinds = [self.contract.resolve(kind) for kind in schema.get("oneOf", [schema])]
        examples = list(body["examples"].values())
        return [(kind.get("x-atoll-query", {}), kind,
                 [example["value"] for example in examples
                  if example.get("x-atoll-query") == kind.get("x-atoll-query")])
                for kind in kinds]

    @property
    def body_example(self):
        bodies = self.bodies()
        return bodies[0][2][0] if bodies else None

    def success(self):
        first = next((status for status in self.responses if status.startswith("2")), None)
        return self.spec.get("x-atoll-expect") or int(first)

    def documented(self, status):
        """The response that documents a status, or None."""
        explicit = self.responses.get(str(status), self.responses.get(f"{status // 100}XX"))
        rest = self.responses["default"]
        return explicit or (rest if status in rest["x-atoll-statuses"] else None)


class Contract:
    def __init__(self, whole=None):
        if whole is None:
            with open(PATH, encoding="utf-8") as file:
                whole = json.load(file)
        self.whole = whole
        self.document = self._without_planned(copy.deepcopy(whole))

    def _find(self, reference):
        node = self.whole
        for step in reference.removeprefix("#/").split("/"):
            node = node[step]
        return node

    def is_planned(self, node):
        if not isinstance(node, dict):
            return False
        if node.get("x-atoll-status") == "planned":
            return True
        return "$ref" in node and self.is_planned(self._find(node["$ref"]))

    def _without_planned(self, node):
        if isinstance(node, dict):
            return {name: self._without_planned(value) for name, value in node.items()
                    if not self.is_planned(value)}
        if isinstance(node, list):
            return [self._without_planned(value) for value in node if not self.is_planned(value)]
        return node

    def resolve(self, node):
        while "$ref" in node:
            rest = {name: value for name, value in node.items() if name != "$ref"}
            target = self.document
            for step in node["$ref"].removeprefix("#/").split("/"):
                target = target[step]
            node = {**target, **rest}
        return node

    def operations(self):
        """What is there, in the order in which it can be asked for."""
        found = [Operation(self, path, method, item, spec)
                 for path, item in self.document["paths"].items()
                 for method, spec in item.items() if method in METHODS]
        return sorted(found, key=lambda operation: operation.order)

    def planned(self):
        """(method, path) of what is not there yet."""
        return [(method.upper(), path) for path, item in self.whole["paths"].items()
                for method, spec in item.items() if method in METHODS and self.is_planned(spec)]

    def planned_fields(self, operation):
        """{name: a value} of the fields that the body of a request will have."""
        body = self.whole["paths"][operation.path][operation.method.lower()].get("requestBody")
        if not body or "application/json" not in body["content"]:
            return {}
        schema = body["content"]["application/json"]["schema"]
        if "$ref" in schema:
            schema = self._find(schema["$ref"])
        if "oneOf" in schema:
            return {}
        return {name: field["example"] for name, field in schema["properties"].items()
                if self.is_planned(field)}

    def fault(self, schema, value):
        """What is wrong with a value, or None."""
        whole = {**schema, "components": self.document["components"]}
        found = jsonschema.Draft202012Validator(whole).iter_errors(value)
        worst = jsonschema.exceptions.best_match(found)
        return worst and f"{worst.json_path}: {worst.message}"
