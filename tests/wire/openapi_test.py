"""api/openapi.json is true: every documented request is sent to a real Atoll, every answer is held
against its schema, and nothing is answered that is not documented."""
import base64
import json
import os
import re
import time
from urllib.parse import quote, urlencode

from contract import METHODS, PATH, Contract, shape
from peer import Peer, atoll

UNKNOWN_FIELD = "no_such_field"
WRONG_VALUES = ("text", 7, True, [], {})
JSON_TYPES = {"text": "string", "7": "integer", "True": "boolean", "[]": "array", "{}": "object"}
E2B_ROUTES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "e2b_routes.txt")
# Fields of an answer that are never twice the same.
VOLATILE_HEADERS = ("date", "x-request-id")


def variable(value, variables):
    """"$name" stands for what was captured under the name."""
    if isinstance(value, str) and value.startswith("$"):
        return variables[value[1:]]
    return json.dumps(value) if isinstance(value, bool) else value


def allowed_types(contract, schema):
    schema = contract.resolve(schema)
    if "oneOf" in schema:
        return set().union(*(allowed_types(contract, one) for one in schema["oneOf"]))
    types = schema.get("type", [])
    types = set([types] if isinstance(types, str) else types)
    return types | ({"integer"} if "number" in types else set())


def wrong_value(contract, schema):
    types = allowed_types(contract, schema)
    return next(value for value in WRONG_VALUES if JSON_TYPES[str(value)] not in types)


def bad_bodies(contract, schema, prefix=""):
    """(field, path of keys, bad value) for every field, also of objects within."""
    for name, field in schema["properties"].items():
        field = contract.resolve(field)
        yield prefix + name, [name], wrong_value(contract, field)
        if "minimum" in field:
            yield prefix + name, [name], field["minimum"] - 1
        if "maximum" in field:
            yield prefix + name, [name], field["maximum"] + 1
        if "maxLength" in field:
            yield prefix + name, [name], "x" * (field["maxLength"] + 1)
        if "enum" in field:
            yield prefix + name, [name], "no such choice"
        if "properties" in field:
            yield f"{prefix}{name}.{UNKNOWN_FIELD}", [name, UNKNOWN_FIELD], 1
            for inner, keys, value in bad_bodies(contract, field, f"{prefix}{name}."):
                yield inner, [name, *keys], value


def with_value(contract, schema, base, keys, value):
    """`base` with a value in it; an object around it that is not there is that of the schema."""
    changed = json.loads(json.dumps(base))
    outer = contract.resolve(schema["properties"].get(keys[0], {}))
    if len(keys) > 1 and "example" in outer:
        changed.setdefault(keys[0], dict(outer["example"]))
    place = changed
    for key in keys[:-1]:
        if not isinstance(place.get(key), dict):
            place[key] = {}
        place = place[key]
    place[keys[-1]] = value
    return changed


class Walk:
    """Sends requests of the contract and holds the answers against it."""

    def __init__(self, test, contract, address, keys):
        self.test, self.contract, self.keys = test, contract, keys
        self.peer = Peer(address)
        self.variables = {}
        self.seen = {operation.id: set() for operation in contract.operations()}

    def key_for(self, operation, role=None):
        if not operation.schemes and role is None:
            return None
        return self.keys[role or ("operator" if "operator" in operation.schemes else "tenant")]

    def target(self, operation, path=None, query=None):
        values = {}
        for parameter in operation.parameters_in("path"):
            value = parameter.get("x-atoll-value", parameter.get("example"))
            values[parameter["name"]] = value
        values.update(path or {})
        target = operation.path
        for name, value in values.items():
            target = target.replace("{%s}" % name, quote(str(variable(value, self.variables))))
        found = {name: variable(value, self.variables) for name, value in (query or {}).items()}
        return target + ("?" + urlencode(found, doseq=True) if found else "")

    def send(self, operation, case, role=None):
        headers = {name: variable(value, self.variables)
                   for name, value in case.get("headers", {}).items()}
        key = self.key_for(operation, case.get("as", role))
        if key and "Authorization" not in headers:
            headers["Authorization"] = f"Bearer {key}"
        headers = {name: value for name, value in headers.items() if value is not None}
        body = base64.b64decode(case["base64"]) if "base64" in case else case.get("body")
        if isinstance(body, dict):
            body = {name: self.variables.get(value[1:], value)
                    if isinstance(value, str) and value.startswith("$") else value
                    for name, value in body.items()}
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if body is not None and operation.body() and "Content-Type" not in headers:
            headers["Content-Type"] = "application/json"
        target = self.target(operation, case.get("path"), case.get("query"))
        if isinstance(body, str):
            body = body.encode()
        if "claim" in case:
            return self.peer.claim(operation.method, target, headers, case["claim"])
        return self.peer.send(operation.method, target, headers, body)

    def ask(self, operation, case):
        """One request whose answer must be as documented, and the expected one."""
        reply = self.send(operation, case)
        if reply.status == 429 and case["expect"] == 401:
            # So many wrong keys, one after the other, are slowed down: as a client does, we wait.
            time.sleep(float(reply.headers["Retry-After"]))
            reply = self.send(operation, case)
        sent = json.dumps(case, default=str)[:300]
        what = f"{operation} {sent} -> {reply.status} {reply.body[:400]}"
        self.check(operation, reply, what)
        self.test.assertEqual(reply.status, case["expect"], what)
        for name, value in case.get("reply_headers", {}).items():
            self.test.assertEqual(reply.headers.get(name), value, what)
        if operation.method == "HEAD":
            return reply
        if "code" in case:
            self.test.assertEqual(reply.code, case["code"], what)
        if "field" in case:
            self.test.assertEqual(reply.json["error"].get("field"), case["field"], what)
        if "known" in case:
            self.test.assertEqual(reply.code != "unknown_field", case["known"], what)
        if "lists" in case:
            _, _, listed = reply.json["error"]["message"].partition("; known are: ")
            self.test.assertIn(set(filter(None, listed.split(", "))), (case["lists"], set()), what)
        if "bytes" in case:
            self.test.assertEqual(reply.body, case["bytes"].encode(), what)
        for name, field in case.get("capture", {}).items():
            self.variables[name] = reply.json[field]
        for name, header in case.get("capture_headers", {}).items():
            self.variables[name] = reply.headers[header]
        return reply

    def check(self, operation, reply, what):
        self.seen[operation.id].add(str(reply.status))
        response = operation.documented(reply.status)
        self.test.assertIsNotNone(response, f"undocumented status: {what}")
        if reply.status != 101:
            ids = reply.headers.get_all("X-Request-Id", [])
            self.test.assertEqual(len(ids), 1, f"not one X-Request-Id: {what}")
        for name, header in response.get("headers", {}).items():
            header = self.contract.resolve(header)
            value = reply.headers.get(name)
            self.test.assertFalse(header.get("required") and value is None, f"no {name}: {what}")
            if value is not None and header["schema"]["type"] == "string":
                fault = self.contract.fault(header["schema"], value)
                self.test.assertIsNone(fault, f"header {name}: {what}")
        content = response.get("content")
        if content is None or operation.method == "HEAD":
            self.test.assertEqual(reply.body, b"", f"undocumented body: {what}")
            return
        if "*/*" not in content:
            self.test.assertIn(reply.media_type, content, f"undocumented type: {what}")
        if reply.media_type == "application/json":
            fault = self.contract.fault(content["application/json"]["schema"], reply.json)
            self.test.assertIsNone(fault, f"{fault}: {what}")


def documented_cases(operation):
    """What the document itself asks to be sent."""
    examples = [example for media_type in operation.spec.get("requestBody", {}).get("content", {})
                for example in operation.body(media_type).get("examples", {}).values()]
    for example in examples:
        body = ({"base64": example["x-atoll-base64"]} if "x-atoll-base64" in example
                else {"body": example["value"]})
        yield {**body, "capture": example.get("x-atoll-capture", {}),
               "path": example.get("x-atoll-path", {}), "query": example.get("x-atoll-query", {}),
               "expect": example.get("x-atoll-expect", operation.success())}
    if not examples:
        yield {"expect": operation.success()}
    for parameter in operation.parameters_in("query"):
        if "example" in parameter and not examples:
            yield {"query": {**parameter.get("x-atoll-query", {}),
                             parameter["name"]: parameter["example"]},
                   "expect": operation.success()}
    yield from operation.spec.get("x-atoll-cases", [])


def refused_for_anybody(operation, body):
    """What the router refuses before a route sees it."""
    yield {"body": body, "headers": {"Host": "attacker.example"}, "expect": 421,
           "code": "wrong_host"}
    yield {"body": body, "headers": {"Origin": "https://attacker.example"}, "expect": 403,
           "code": "cross_site"}
    if not operation.schemes:
        return
    wrong = {"expect": 401, "code": "unauthenticated", "body": body}
    for value in (None, "", "Bearer", "Bearer ", "Bearer x", "bearer atoll_", "Basic YTpi",
                  "Bearer atoll_" + "a" * 40, "Bearer " + "a" * 4000):
        yield {**wrong, "headers": {"Authorization": value}}


def refused_parameters(contract, operation, body):
    for parameter in operation.parameters_in("path"):
        values = dict.fromkeys(("no-such-thing", "%00", "e999999", "..", "0"), 404)
        for value, status in parameter.get("x-atoll-refused", values).items():
            yield {"path": {parameter["name"]: value}, "body": body, "expect": status}
    for parameter in operation.parameters_in("query"):
        schema = contract.resolve(parameter["schema"])
        values = ["x", "-1", "1.5", ""] if schema["type"] == "integer" else []
        if "minimum" in schema:
            values.append(schema["minimum"] - 1)
        if "maximum" in schema:
            values.append(schema["maximum"] + 1)
        if "enum" in schema or "pattern" in schema:
            values.append("no such choice")
        if schema["type"] == "boolean":
            values += ["", "1", "TRUE"]
        for value in values:
            query = {**parameter.get("x-atoll-query", {}), parameter["name"]: value}
            yield {"query": query, "body": body, "expect": 400,
                   "code": "invalid_field", "field": parameter["name"]}


def refused_headers(operation, body):
    names = {parameter["name"] for parameter in operation.parameters_in("header")}
    if "Atoll-Generation" in names:
        yield {"headers": {"Atoll-Generation": "77"}, "body": body, "expect": 409,
               "code": "stale_generation"}
    bad = {"Atoll-Generation": ("", "x", "-1", "1.0", "99999999999999999999"),
           "Idempotency-Key": ("", "a" * 256, "\x80")}
    for name in names & set(bad):
        for value in bad[name]:
            yield {"headers": {name: value}, "body": body, "expect": 400,
                   "code": "invalid_field", "field": name}


def refused_bodies(contract, schema, body):
    yield {"body": b"", "expect": 400, "code": "invalid_json"}
    yield {"body": b"{", "expect": 400, "code": "invalid_json"}
    yield {"body": b"[]", "expect": 400, "code": "invalid_json"}
    yield {"body": body, "headers": {"Content-Type": "text/plain"}, "expect": 415,
           "code": "unsupported_media_type"}
    yield {"claim": 1024 * 1024 + 1, "expect": 413, "code": "body_too_large"}
    # An answer that lists the fields lists those of this request.
    yield {"body": {**body, UNKNOWN_FIELD: 1}, "expect": 400, "code": "unknown_field",
           "field": UNKNOWN_FIELD, "lists": set(schema.get("properties", {}))}
    for name in schema.get("required", []):
        less = {key: value for key, value in body.items() if key != name}
        yield {"body": less, "expect": 400, "code": "missing_field", "field": name}
    for field, keys, value in bad_bodies(contract, schema):
        unknown = keys[-1] == UNKNOWN_FIELD
        yield {"body": with_value(contract, schema, body, keys, value), "expect": 400,
               "field": field, "known": not unknown}


def planned_fields(contract, operation, body):
    for name, value in contract.planned_fields(operation).items():
        yield {"body": {**body, name: value}, "expect": 400, "code": "unknown_field",
               "field": name}


def refused_cases(contract, operation):
    body = operation.body_example
    yield from refused_for_anybody(operation, body)
    yield from refused_parameters(contract, operation, body)
    yield from refused_headers(operation, body)
    for query, schema, examples in operation.bodies():
        for case in refused_bodies(contract, schema, examples[0]):
            yield {"query": query, **case}
    yield from planned_fields(contract, operation, body)


class OpenApiTest(atoll.SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Of a language that is compiled; `make test` has built it.
        cls.atoll.cli("template", "add",
                      os.path.join(os.path.dirname(atoll.IMAGE), "cpp-algorithm"))
        cls.contract = Contract(cls.atoll.request("GET", "/openapi.json").json)
        cls.keys = {"operator": cls.atoll.key}
        for tenant in ("tenant", "stranger"):
            made = cls.atoll.cli("--json", "key", "create", "--tenant", tenant)
            cls.keys[tenant] = json.loads(made.stdout)["key"]

    def tearDown(self):
        for role in ("tenant", "stranger"):
            for sandbox in self.sandboxes(role):
                answer = self.atoll.request("DELETE", f"/v1/sandboxes/{sandbox}",
                                            key=self.keys[role])
                self.assertEqual(answer.status, 204)

    def sandboxes(self, role):
        answer = self.atoll.request("GET", "/v1/sandboxes", key=self.keys[role])
        return [sandbox["id"] for sandbox in answer.json["sandboxes"]]

    def walk(self):
        walk = Walk(self, self.contract, self.atoll.address, self.keys)
        listed = self.atoll.request("GET", "/v1/keys").json["keys"]
        walk.variables["local_key"] = next(k["id"] for k in listed if k["name"] == "local")
        self.addCleanup(walk.peer.close)
        return walk

    def routes(self):
        text = atoll.read(os.path.join(self.atoll.run_directory, "daemon", "routes"))
        return {tuple(line.split(" ")) for line in text.splitlines()}

    def test_what_is_served_is_the_document_of_the_source(self):
        with open(PATH, "rb") as file:
            self.assertEqual(self.atoll.request("GET", "/openapi.json").body, file.read())

    def test_every_route_is_documented_and_every_documented_one_is_there(self):
        # The routes of E2B's clients are another's contract: each is named in a list of its own.
        theirs = {tuple(line.split(" ")) for line in atoll.read(E2B_ROUTES).split("\n")
                  if line and not line.startswith("#")}
        self.assertFalse([path for _, path in theirs if path.startswith("/v1/")])
        self.assertLessEqual(theirs, self.routes())
        served = {(method, shape(path)) for method, path in self.routes() - theirs}
        # A HEAD is answered by the route of the GET.
        documented = {(operation.method.replace("HEAD", "GET"), shape(operation.path))
                      for operation in self.contract.operations()}
        self.assertEqual(served, documented)
        ids = [operation.id for operation in self.contract.operations()]
        self.assertEqual(len(ids), len(set(ids)))

    def test_every_field_of_a_request_is_in_an_example(self):
        for operation in self.contract.operations():
            for _, schema, examples in operation.bodies():
                self.assertEqual(set().union(*examples), set(schema["properties"]), operation.id)

    def test_what_is_planned_is_not_there(self):
        sandbox = self.atoll.request("POST", "/v1/sandboxes", {"template": "python"},
                                     key=self.keys["tenant"]).json["id"]
        for method, path in self.contract.planned():
            target = re.sub(r"\{[^}]*\}", "1", path.replace("{id}", sandbox))
            answer = self.atoll.request(method, target, key=self.keys["tenant"])
            self.assertIn(answer.status, (404, 405), f"{method} {path}")
            if method != "HEAD":
                self.assertIn(answer.json["error"]["code"], ("not_found", "method_not_allowed"),
                              f"{method} {path} is there: remove its mark from api/openapi.json")

    def test_other_methods_are_refused_and_the_right_ones_named(self):
        walk = self.walk()
        for path, item in self.contract.document["paths"].items():
            there = {method.upper() for method in item if method in METHODS} - {"HEAD"}
            if not there:
                continue
            target = re.sub(r"\{[^}]*\}", "1", path)
            for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} - there:
                headers = {"Authorization": f"Bearer {self.keys['operator']}"}
                reply = walk.peer.send(method, target, headers)
                self.assertEqual(reply.status, 405, f"{method} {target}")
                self.assertEqual(set(reply.headers["Allow"].split(", ")), there)

    def test_every_operation_does_what_is_documented(self):
        walk = self.walk()
        for operation in self.contract.operations():
            with self.subTest(operation=operation.id):
                for case in documented_cases(operation):
                    walk.ask(operation, case)
        # The walk has deleted what it made, but what it forked.
        for fork in walk.variables["forked"] + walk.variables["forked_once"]:
            gone = self.atoll.request("DELETE", f"/v1/sandboxes/{fork['id']}",
                                      key=self.keys["tenant"])
            self.assertEqual(gone.status, 204)
        self.assertEqual(self.sandboxes("tenant"), [])
        smallest, background = {"template": "python"}, {"cmd": ["sleep", "3600"]}
        made = self.atoll.request("POST", "/v1/sandboxes", smallest, key=self.keys["tenant"]).json
        walk.variables["sandbox"] = made["id"]
        execs = f"/v1/sandboxes/{made['id']}/execs"
        started = self.atoll.request("POST", execs, background, key=self.keys["tenant"]).json
        walk.variables["exec"] = started["id"]
        contexts = f"/v1/sandboxes/{made['id']}/contexts"
        context = self.atoll.request("POST", contexts, {}, key=self.keys["tenant"]).json
        walk.variables["context"] = context["id"]
        for operation in self.contract.operations():
            for case in refused_cases(self.contract, operation):
                with self.subTest(operation=operation.id, case=str(case)[:200]):
                    walk.ask(operation, case)
        # Nothing that was refused has done anything.
        # A run that is refused for its exec has made a sandbox, which goes after the answer.
        atoll.wait_for("only one sandbox", lambda: self.sandboxes("tenant") == [made["id"]])
        listed = self.atoll.request("GET", execs, key=self.keys["tenant"]).json["execs"]
        self.assertEqual([(one["id"], one["state"]) for one in listed],
                         [("e1", "running"), (context["exec"], "running")])
        listed = self.atoll.request("GET", contexts, key=self.keys["tenant"]).json["contexts"]
        self.assertEqual([(one["id"], one["runs"]) for one in listed], [(context["id"], 0)])
        self.check_coverage(walk)

    def check_coverage(self, walk):
        for operation in self.contract.operations():
            for status, response in operation.responses.items():
                if status == "default" or "x-atoll-unreached" in response:
                    continue
                with self.subTest(operation=operation.id, status=status):
                    self.assertIn(status, walk.seen[operation.id], "documented, but never seen")

    def test_another_tenants_things_look_like_nothing(self):
        walk = self.walk()
        mine = self.atoll.request("POST", "/v1/sandboxes", {"template": "python"},
                                  key=self.keys["tenant"]).json["id"]
        own = self.atoll.request("POST", "/v1/sandboxes", {"template": "python"},
                                 key=self.keys["stranger"]).json["id"]
        for _ in range(2):
            started = self.atoll.request("POST", f"/v1/sandboxes/{mine}/execs",
                                         {"cmd": ["sleep", "3600"]}, key=self.keys["tenant"])
        cursor = self.atoll.request("GET", "/v1/sandboxes?limit=1",
                                    key=self.keys["tenant"]).json["next_cursor"]
        context = self.atoll.request("POST", f"/v1/sandboxes/{mine}/contexts", {},
                                     key=self.keys["tenant"]).json["id"]
        walk.variables.update(sandbox=mine, exec=started.json["id"], context=context)
        absent = mine[:-4] + "".join(reversed(mine[-4:]))
        asked = 0
        for operation in self.contract.operations():
            names = [parameter["name"] for parameter in operation.parameters_in("path")]
            if "id" not in names or "key" not in operation.schemes:
                continue
            for case in ({"id": mine}, {"id": own}):
                foreign = {"path": case, "body": operation.body_example}
                missing = {"path": {**case, "id": absent}, "body": operation.body_example}
                if case["id"] == own:
                    if "exec" not in names:
                        continue
                    missing = {"path": {**case, "exec": "e77"}, "body": operation.body_example}
                with self.subTest(operation=operation.id, case=case):
                    one = walk.send(operation, foreign, "stranger")
                    other = walk.send(operation, missing, "stranger")
                    walk.check(operation, one, str(operation))
                    self.assertEqual(one.status, 404)
                    self.assertEqual(self.essence(one), self.essence(other))
                    asked += 1
        self.assertGreater(asked, 5)
        self.assertEqual(self.sandboxes("stranger"), [own])
        page = self.atoll.request("GET", f"/v1/sandboxes?cursor={cursor}",
                                  key=self.keys["stranger"])
        self.assertNotIn(mine.encode(), page.body)
        listed = self.atoll.request("GET", f"/v1/sandboxes/{mine}/execs", key=self.keys["tenant"])
        self.assertEqual([one["state"] for one in listed.json["execs"]], ["running"] * 3)

    @staticmethod
    def essence(reply):
        headers = sorted((name.lower(), value) for name, value in reply.headers.items()
                         if name.lower() not in VOLATILE_HEADERS)
        error = reply.json["error"] if reply.body else {}
        error.pop("request_id", None)
        return reply.status, headers, error


if __name__ == "__main__":
    atoll.main()
