"""Connections that are inspected, against a fake internet: TLS is ended for exactly the names whose
rules say so, each request is decided by method and path, and what the sandbox trusts is its own
authority and nobody else's. Secrets arrive where they are bound, and are found nowhere else."""
import hashlib
import json
import os
import signal
import tempfile

import atoll
import egress_case
from certified_internet import CERTIFICATES, CertifiedInternet

INTERNET = CertifiedInternet()
RULES = {"rules": [
    {"allow": "api.example", "inspect": True, "methods": ["GET"], "paths": ["/v1/**"]},
    {"allow": "api.example", "inspect": True, "methods": ["POST"], "paths": ["/run"]},
    {"allow": "misnamed.example", "inspect": True}], "allow": ["plain.example"]}

FETCH = r"""
import json, ssl, sys, urllib.request, urllib.error
def fetch(url, method="GET", data=None, headers={}, context=None):
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return f"{answer.status} {answer.read(300).decode()}"
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read(300).decode().strip()}"
    except OSError as error:
        return f"FAILED {error}"
"""


class Seen(egress_case.EgressCase):
    shared = True

    def python(self, sandbox, code):
        done = self.atoll.python(sandbox, FETCH + code)
        self.assertEqual(done["verdict"], "ok", done)
        return done["stdout"].strip()


class Inspection(Seen):
    def test_requests_are_decided_one_by_one(self):
        sandbox = self.atoll.create(network=RULES)["id"]
        seen = len(INTERNET.requests)
        lines = self.python(sandbox, r"""
print(fetch("https://api.example/v1/models?key=1"))
print(fetch("https://api.example/run", "POST", b"x" * 100000))
print(fetch("https://api.example/run"))
print(fetch("https://api.example/v1/x", "DELETE"))
print(fetch("https://api.example/v1/../admin"))
print(fetch("https://api.example/v1/%2e%2e/admin"))
print(fetch("https://plain.example/anything", context=ssl._create_unverified_context()))
""").splitlines()
        self.assertEqual(lines[0], "200 20.0.0.80 api.example /v1/models?key=1")
        self.assertEqual(lines[1], "200 20.0.0.80 api.example /run")
        for line, reason in zip(lines[2:6], ["request_not_allowed"] * 2 + ["bad_path"] * 2):
            self.assertTrue(line.startswith("403 ") and reason in line, lines)
        self.assertEqual(lines[6], "200 20.0.0.80 plain.example /anything")
        self.assertEqual([request[2] for request in INTERNET.requests[seen:]],
                         ["GET /v1/models?key=1 HTTP/1.1", "POST /run HTTP/1.1",
                          "GET /anything HTTP/1.1"])
        rows = [row for row in self.rows(sandbox) if row["event"] == "request"]
        self.assertEqual([(row["decision"], row["method"], row["path"], row.get("reason"))
                          for row in rows],
                         [("allow", "GET", "/v1/models", None), ("allow", "POST", "/run", None),
                          ("deny", "GET", "/run", "request_not_allowed"),
                          ("deny", "DELETE", "/v1/x", "request_not_allowed"),
                          ("deny", "GET", "/v1/../admin", "bad_path"),
                          ("deny", "GET", "/v1/%2e%2e/admin", "bad_path")])
        self.assertEqual({row["rule"] for row in rows}, {"rules[0]", "rules[1]"})
        self.assertTrue(all(row["name"] == "api.example" and row["protocol"] == "tls"
                            for row in rows), rows)

    def test_a_connection_is_kept_and_every_request_on_it_is_looked_at(self):
        sandbox = self.atoll.create(network=RULES)["id"]
        seen = len(INTERNET.requests)
        lines = self.python(sandbox, r"""
import http.client, socket
c = http.client.HTTPSConnection("api.example", timeout=10)
for path in ("/v1/a", "/v1/b", "/admin"):
    c.request("GET", path); r = c.getresponse(); print(r.status, len(r.read()))
def say(data, name="api.example"):
    s = ssl.create_default_context().wrap_socket(
        socket.create_connection(("api.example", 443), timeout=5), server_hostname=name)
    s.sendall(data); got = b""
    try:
        while True:
            part = s.recv(4000)
            if not part: break
            got += part
    except OSError: pass
    return got.split(b"\r\n")[0].decode()
print(say(b"GET /v1/a HTTP/1.1\r\nHost: plain.example\r\n\r\n"))
print(say(b"POST /run HTTP/1.1\r\nHost: api.example\r\nContent-Length: 1\r\n"
          b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"))
print(say(b"GET /v1/a HTTP/1.1\r\nHost: api.example\r\nUpgrade: h2c\r\n\r\n"))
print(say(b"\x00\x01\x02"))
""").splitlines()
        self.assertEqual([line.split()[0] for line in lines[:3]], ["200", "200", "403"], lines)
        self.assertEqual(lines[3:], ["HTTP/1.1 403 Forbidden"] * 4, lines)
        self.assertEqual([request[2] for request in INTERNET.requests[seen:]],
                         ["GET /v1/a HTTP/1.1", "GET /v1/b HTTP/1.1"])
        reasons = {row.get("reason") for row in self.rows(sandbox) if row["event"] == "request"}
        self.assertEqual(reasons, {None, "request_not_allowed", "host_mismatch", "bad_http",
                                   "upgrade_refused"})
        closed = atoll.wait_for("the end", lambda: [row for row in self.rows(sandbox)
                                                    if row["event"] == "closed"])
        self.assertEqual((closed[0]["requests"], closed[0]["reason"]), (3, "request_not_allowed"))

    def test_a_server_is_believed_only_under_its_own_name(self):
        sandbox = self.atoll.create(network=RULES)["id"]
        seen = len(INTERNET.requests)
        answer = self.python(sandbox, 'print(fetch("https://misnamed.example/"))')
        self.assertIn("502", answer)
        self.assertIn("certificate_refused", answer)
        self.assertEqual(INTERNET.requests[seen:], [])
        self.assertIn("certificate_refused", {row.get("reason") for row in self.rows(sandbox)})

    def test_the_sandbox_trusts_its_own_authority_alone(self):
        sandbox = self.atoll.create(network=RULES)["id"]
        other = self.atoll.create(network=RULES)["id"]
        certificate = self.python(sandbox, f"print(open('{CERTIFICATES}').read())")
        foreign = self.python(other, f"print(open('{CERTIFICATES}').read())")
        self.assertNotEqual(certificate, foreign)
        self.assertNotIn("PRIVATE", certificate)
        # By every name that programs have for it, and without any.
        names = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
                 "GIT_SSL_CAINFO")
        shown = self.python(sandbox, f"import os\nfor n in {names}: print(os.environ[n])")
        self.assertEqual(shown.splitlines(), [CERTIFICATES] * len(names))
        code = ("import socket\n"
                "c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); c.load_verify_locations('{}')\n"
                "s = socket.create_connection(('api.example', 443), timeout=5)\n"
                "try: print(c.wrap_socket(s, server_hostname='api.example').getpeercert()"
                "['subjectAltName'])\nexcept ssl.SSLError as e: print('FAILED', e.reason)")
        self.assertEqual(self.python(sandbox, code.format(CERTIFICATES)),
                         "(('DNS', 'api.example'),)")
        self.atoll.execute(sandbox, ["sh", "-c", "cat > /tmp/foreign.crt"], stdin=foreign)
        self.assertIn("FAILED", self.python(sandbox, code.format("/tmp/foreign.crt")))

    def test_a_change_brings_inspection_and_trust(self):
        sandbox = self.atoll.create(network={"allow": ["api.example"]})["id"]
        unverified = "print(fetch('https://api.example/admin', context=" \
                     "ssl._create_unverified_context()))"
        self.assertIn("200", self.python(sandbox, unverified))
        answer = self.atoll.request("PATCH", f"/v1/sandboxes/{sandbox}", {"network": RULES})
        self.assertEqual((answer.status, answer.json["network"]), (200, RULES), answer.body)
        self.assertIn("403", self.python(sandbox, unverified))
        self.assertIn("200", self.python(sandbox, "print(fetch('https://api.example/v1/a'))"))

    def test_the_authority_outlives_egress(self):
        sandbox = self.atoll.create(network=RULES)["id"]
        fetch = "print(fetch('https://api.example/v1/a'))"
        self.assertIn("200", self.python(sandbox, fetch))
        lock = os.path.join(self.atoll.run_directory, "egress", "egress.lock")
        os.kill(atoll.lock_holder(lock), signal.SIGKILL)
        atoll.wait_for("egress to serve again",
                       lambda: self.python(sandbox, fetch).startswith("200"))
        directory = os.path.join(self.atoll.directory, "egress")
        self.assertIn(f"{sandbox}.ca", os.listdir(directory))
        self.atoll.delete(sandbox)
        self.assertNotIn(f"{sandbox}.ca", os.listdir(directory))

    def test_plain_http_is_held_to_the_same_rules(self):
        sandbox = self.atoll.create(network=RULES)["id"]
        seen = len(INTERNET.requests)
        lines = self.python(sandbox, r"""
print(fetch("http://api.example/v1/a"))
print(fetch("http://api.example/admin"))
""").splitlines()
        self.assertEqual(lines[0], "200 20.0.0.80 api.example /v1/a")
        self.assertIn("request_not_allowed", lines[1])
        self.assertEqual(len(INTERNET.requests), seen + 1)
        refused = [row for row in self.rows(sandbox) if row.get("decision") == "deny"]
        self.assertEqual([(row["method"], row["path"]) for row in refused], [("GET", "/admin")])


ASK = r"""
import http.client
def ask(paths, method="GET", body=None):
    c, statuses = http.client.HTTPSConnection("api.example", timeout=10), []
    try:
        for path in paths:
            c.request(method, path, body); r = c.getresponse(); r.read(); statuses.append(r.status)
            if r.status == 429: break
    except (OSError, http.client.HTTPException) as error: statuses.append(type(error).__name__)
    return statuses
"""


class Together(Seen):
    """Inspection with what else a policy can say."""

    def counted(self, budget, of_rule=True):
        rule = {"allow": "api.example", "inspect": True, "methods": ["GET", "POST"]}
        if of_rule:
            return self.atoll.create(network={"rules": [{**rule, "budget": budget}]})["id"]
        return self.atoll.create(network={"rules": [rule], "budget": budget})["id"]

    def ended(self, sandbox, reason):
        rows = atoll.wait_for(reason, lambda: [row for row in self.rows(sandbox)
                                               if row.get("reason") == reason])
        return {(row["event"], row["rule"]) for row in rows}

    def test_requests_on_one_connection_are_counted(self):
        sandbox = self.counted({"requests_per_second": 2})
        seen = len(INTERNET.requests)
        done = self.python(sandbox, ASK + "print(ask(['/'] * 50))")
        self.assertRegex(done, r"^\[(200, ){2,40}429\]$")
        self.assertEqual(len(INTERNET.requests) - seen, done.count("200"))
        self.assertEqual(self.ended(sandbox, "budget_requests"),
                         {("request", "rules[0].budget"), ("closed", "rules[0].budget")})

    def test_bytes_and_connections_are_counted(self):
        sandbox = self.counted({"bytes_out": 50_000})
        done = self.python(sandbox, ASK + "print(ask(['/'], 'POST', b'x' * 20000))\n"
                                          "print(ask(['/'], 'POST', b'x' * 100000))\n"
                                          "print(ask(['/'], 'POST', b'x' * 100000))")
        self.assertEqual(done.splitlines()[0], "[200]")
        self.assertEqual(done.count("200"), 1, done)
        self.assertLessEqual(sum(row.get("bytes_out", 0) for row in self.rows(sandbox)), 50_000)
        self.assertLessEqual({("closed", "rules[0].budget")},
                             self.ended(sandbox, "budget_bytes_out"))
        sandbox = self.counted({"bytes_in": 1_000_000}, of_rule=False)
        done = self.python(sandbox, ASK + "print(ask(['/', '/large']))")
        self.assertRegex(done, r"^\[200, '")
        self.assertEqual(self.ended(sandbox, "budget_bytes_in"), {("closed", "budget")})
        sandbox = self.counted({"connections": 2})
        done = self.python(sandbox, ASK + "for i in range(3): print(ask(['/', '/']))").splitlines()
        self.assertEqual(done[:2], ["[200, 200]"] * 2)
        self.assertNotIn("200", done[2])
        self.assertEqual(self.ended(sandbox, "budget_connections"),
                         {("connect", "rules[0].budget")})

    def test_a_budget_that_two_rules_would_share_is_refused(self):
        rules = [RULES["rules"][0], {**RULES["rules"][1], "budget": {"connections": 1}}]
        answer = self.atoll.request("POST", "/v1/sandboxes",
                                    {"template": "python", "network": {"rules": rules}})
        self.assertEqual((answer.status, answer.json["error"]["code"],
                          answer.json["error"]["field"]),
                         (400, "invalid_network_rule", "network.rules"), answer.body)

    def test_connect_is_inspected_too(self):
        sandbox = self.atoll.create(network=RULES)["id"]
        seen = len(INTERNET.requests)
        lines = self.python(sandbox, r"""
import os
os.environ["https_proxy"] = "http://198.18.0.1:3128"
print(fetch("https://api.example/v1/a"))
print(fetch("https://api.example/admin"))
""").splitlines()
        self.assertEqual(lines[0], "200 20.0.0.80 api.example /v1/a")
        self.assertIn("request_not_allowed", lines[1])
        self.assertEqual(len(INTERNET.requests), seen + 1)

    def test_learning_finds_the_requests_that_are_missing(self):
        sandbox = self.atoll.create(network={**RULES, "mode": "learn"})["id"]
        seen = len(INTERNET.requests)
        lines = self.python(sandbox, r"""
print(fetch("https://api.example/admin"))
print(fetch("https://api.example/v1/a"))
""").splitlines()
        self.assertIn("request_not_allowed", lines[0])
        self.assertIn("200", lines[1])
        self.assertEqual(len(INTERNET.requests), seen + 1)
        learned = json.loads(self.atoll.cli("egress", "learn", sandbox, "--json").stdout)
        self.assertEqual(learned, {"allow": [], "rules": [
            {"allow": "api.example", "ports": [443], "inspect": True, "methods": ["GET"],
             "paths": ["/admin"]}]})
        answer = self.atoll.request("PATCH", f"/v1/sandboxes/{sandbox}", {"network": {
            "rules": RULES["rules"] + learned["rules"]}})
        self.assertEqual(answer.status, 200, answer.body)
        self.assertIn("200", self.python(sandbox, 'print(fetch("https://api.example/admin"))'))


VALUE = "sk-7d1f0c2e-never-seen-inside"
SECRET = {"value": VALUE, "hosts": ["api.example"], "paths": ["/v1/**"],
          "header": {"name": "Authorization", "format": "Bearer {}"}}
CALL = r"""
import os
KEY = os.environ["API_KEY"]
def call(url="https://api.example/v1/a", header="Authorization", form="Bearer {}", **more):
    return fetch(url, headers={header: form.format(KEY)}, **more)
"""


class SetHeaders(Seen):
    """Fields that egress writes into requests, with secrets that the sandbox never holds."""
    network = {"allow": ["api.example", "plain.example"], "set_headers": [
        {"host": "api.example", "name": "Authorization", "value": "Bearer ${secrets.my-key}"},
        {"host": "plain.example", "name": "X-Team", "value": "blue"}]}

    def setUp(self):
        secret = {"value": VALUE, "hosts": [], "metadata": {"team": "blue"}}
        answer = self.atoll.request("PUT", "/v1/secrets/my-key", secret)
        self.assertIn(answer.status, (200, 201), answer.body)
        self.assertNotIn(VALUE.encode(), answer.body)
        self.addCleanup(self.atoll.request, "DELETE", "/v1/secrets/my-key")

    def fields_of(self, sandbox, code):
        """What each request had in its header when it arrived."""
        seen = len(INTERNET.fields)
        lines = self.python(sandbox, code).splitlines()
        return lines, INTERNET.fields[seen:]

    def test_are_written_over_what_the_program_wrote(self):
        created = self.atoll.create(network=self.network)
        self.assertEqual(created["network"], self.network)
        lines, fields = self.fields_of(created["id"], r"""
print(fetch("https://api.example/a", headers={"Authorization": "mine", "X-Team": "red"}))
print(fetch("https://plain.example/b", headers={"X-Team": "red"}))
print(fetch("http://plain.example/c"))
""")
        self.assertTrue(all(line.startswith("200 ") for line in lines), lines)
        self.assertEqual(fields[0]["authorization"], f"Bearer {VALUE}")
        self.assertEqual(fields[0]["x-team"], "red", "of another host")
        self.assertEqual([each["x-team"] for each in fields[1:]], ["blue", "blue"])
        self.assertTrue(all("authorization" not in each for each in fields[1:]))
        inside = self.atoll.execute(created["id"], ["sh", "-c", "env; cat /proc/*/environ"])
        self.assertNotIn(VALUE, inside["stdout"])

    def test_a_secret_leaves_encrypted_or_not_at_all(self):
        sandbox = self.atoll.create(network=self.network)["id"]
        lines, fields = self.fields_of(sandbox, 'print(fetch("http://api.example/a"))')
        self.assertNotIn("200", lines[0])
        self.assertEqual(fields, [])
        self.assertEqual(self.atoll.request("DELETE", "/v1/secrets/my-key").status, 204)
        lines, fields = self.fields_of(sandbox, 'print(fetch("https://api.example/a"))')
        self.assertTrue(lines[0].startswith("403") and "secret_not_bound" in lines[0], lines)
        self.assertEqual(fields, [])

    def test_a_new_value_is_used_by_the_next_request(self):
        sandbox = self.atoll.create(network=self.network)["id"]
        other = {"value": "sk-other", "hosts": []}
        shown = self.atoll.request("PUT", "/v1/secrets/my-key", other).json
        self.assertEqual(shown["version"], 2)
        _, fields = self.fields_of(sandbox, 'print(fetch("https://api.example/a"))')
        self.assertEqual(fields[0]["authorization"], "Bearer sk-other")

    def test_allow_nothing_by_themselves_and_are_taken_away_by_a_change(self):
        sandbox = self.atoll.create(network={"set_headers": self.network["set_headers"]})["id"]
        lines, fields = self.fields_of(sandbox, 'print(fetch("https://api.example/a"))')
        self.assertTrue(lines[0].startswith("FAILED"), lines)
        self.assertEqual(fields, [])
        path = f"/v1/sandboxes/{sandbox}"
        for network, wanted in ((self.network, "blue"), ({"allow": ["plain.example"]}, None)):
            self.assertEqual(self.atoll.request("PATCH", path, {"network": network}).status, 200)
            _, fields = self.fields_of(sandbox, 'print(fetch("http://plain.example/a"))')
            self.assertEqual(fields[0].get("x-team"), wanted)

    def test_what_a_server_would_send_back_is_refused(self):
        sandbox = self.atoll.create(network=self.network)["id"]
        lines, fields = self.fields_of(sandbox, r"""
for method in ("TRACE", "trace", "TRACK"): print(fetch("https://api.example/a", method=method))
print(fetch("http://plain.example/a", method="TRACE"))
""")
        for line in lines[:3]:
            self.assertTrue(line.startswith("403") and "echo_refused" in line, lines)
        self.assertTrue(lines[3].startswith("FAILED"), lines)
        self.assertEqual(fields, [])
        self.assertIn("echo_refused", self.reasons(sandbox))

    def test_what_cannot_be_is_refused(self):
        for setting, status, field in (
                ({"host": "api.example", "name": "Host", "value": "x"}, 400, "set_headers[0]"),
                ({"host": "20.0.0.80", "name": "X-A", "value": "x"}, 400, "set_headers[0]"),
                ({"host": "api.example", "name": "X-A", "value": "a\r\nb"}, 400, "set_headers[0]"),
                ({"host": "api.example", "name": "X-A", "value": "${secrets.gone}"}, 404,
                 "set_headers")):
            answer = self.atoll.request("POST", "/v1/sandboxes", {
                "template": "python", "network": {"set_headers": [setting]}})
            self.assertEqual(answer.status, status, answer.body)
            self.assertEqual(answer.json["error"]["field"], "network." + field, answer.body)


class Secrets(Seen):
    network = {"allow": ["api.example", "plain.example"], "secrets": ["API_KEY"]}

    def setUp(self):
        answer = self.atoll.request("PUT", "/v1/secrets/API_KEY", SECRET)
        self.assertIn(answer.status, (200, 201), answer.body)
        self.assertNotIn(VALUE.encode(), answer.body)

    def call(self, sandbox, code):
        return self.python(sandbox, CALL + code)

    def test_a_placeholder_becomes_the_value_on_its_way_out(self):
        created = self.atoll.create(network=self.network)
        self.assertEqual(created["network"], self.network)
        seen = len(INTERNET.fields)
        shown = self.call(created["id"], "print(call()); print(KEY)").splitlines()
        self.assertEqual(shown[0], "200 20.0.0.80 api.example /v1/a")
        self.assertRegex(shown[1], "^atoll-secret-[0-9a-f]{32}$")
        self.assertEqual([fields["authorization"] for fields in INTERNET.fields[seen:]],
                         [f"Bearer {VALUE}"])
        other = self.atoll.create(network=self.network)["id"]
        self.assertNotEqual(self.call(other, "print(KEY)"), shown[1])

    def test_anywhere_else_it_is_refused(self):
        sandbox = self.atoll.create(network=self.network)["id"]
        seen = len(INTERNET.requests)
        lines = self.call(sandbox, r"""
print(call("https://api.example/v2/a"))
print(call(header="X-Key"))
print(call(form="Token {}"))
print(fetch("https://api.example/v1/a?key=" + KEY))
print(call("http://api.example/v1/a"))
print(call("http://plain.example/v1/a"))
""").splitlines()
        for line in lines[:4]:
            self.assertTrue(line.startswith("403") and "secret_not_bound" in line, lines)
        for line in lines[4:]:
            self.assertNotIn("200", line, lines)
        self.assertEqual(INTERNET.requests[seen:], [])

        def refused():
            rows = [row for row in self.rows(sandbox) if row.get("decision") == "deny"]
            self.assertEqual({row["reason"] for row in rows}, {"secret_not_bound"})
            return sum(row["count"] for row in rows) == len(lines)
        atoll.wait_for("six rows", refused)

    def test_what_a_server_would_send_back_is_refused(self):
        sandbox = self.atoll.create(network=self.network)["id"]
        seen = len(INTERNET.requests)
        line = self.call(sandbox, 'print(call(method="TRACE"))')
        self.assertTrue(line.startswith("403") and "echo_refused" in line, line)
        self.assertEqual(INTERNET.requests[seen:], [])
        # Nothing of a secret is in it.
        self.assertIn("200", self.call(sandbox,
                                       'print(fetch("http://plain.example/a", method="TRACE"))'))

    def test_an_address_by_itself_gets_no_secret(self):
        network = {**self.network, "allow": [*self.network["allow"], "20.0.0.80"]}
        sandbox = self.atoll.create(network=network)["id"]
        seen = len(INTERNET.requests)
        self.assertNotIn("200", self.call(sandbox, 'print(call("http://20.0.0.80/v1/a"))'))
        self.assertEqual(INTERNET.requests[seen:], [])
        self.assertEqual(self.python(sandbox, 'print(fetch("http://20.0.0.80/v1/a"))'),
                         "200 20.0.0.80 20.0.0.80 /v1/a")

    def test_a_sandbox_without_it_or_of_another_tenant_gets_nothing(self):
        sandbox = self.atoll.create(network={"allow": ["api.example"]})["id"]
        self.assertEqual(self.python(sandbox, "import os; print('API_KEY' in os.environ)"), "False")
        key = self.atoll.request("POST", "/v1/keys", {"tenant": "stranger"}).json["key"]
        refused = self.atoll.request("POST", "/v1/sandboxes",
                                     {"template": "python", "network": self.network}, key=key)
        self.assertEqual((refused.status, refused.json["error"]["code"]), (404, "secret_not_found"))
        listed = self.atoll.request("GET", "/v1/secrets", key=key)
        self.assertEqual(listed.json, {"secrets": []})
        gone = self.atoll.request("DELETE", "/v1/secrets/API_KEY", key=key)
        self.assertEqual(gone.status, 404)

    def test_a_change_keeps_the_placeholder_and_a_new_value_is_used_at_once(self):
        sandbox = self.atoll.create(network=self.network)["id"]
        placeholder = self.call(sandbox, "print(KEY)")
        changed = {**self.network, "allow": ["api.example"]}
        answer = self.atoll.request("PATCH", f"/v1/sandboxes/{sandbox}", {"network": changed})
        self.assertEqual((answer.status, answer.json["network"]), (200, changed), answer.body)
        self.assertEqual(self.call(sandbox, "print(KEY)"), placeholder)
        self.atoll.request("PUT", "/v1/secrets/API_KEY", {**SECRET, "value": "another"})
        seen = len(INTERNET.fields)
        self.assertIn("200", self.call(sandbox, "print(call())"))
        self.assertEqual(INTERNET.fields[seen]["authorization"], "Bearer another")
        self.assertEqual(self.atoll.request("DELETE", "/v1/secrets/API_KEY").status, 204)
        self.assertEqual(self.atoll.request("GET", "/v1/secrets/API_KEY").status, 404)
        # It is for no host any more, so nothing of it is inspected: the server gets a placeholder.
        self.call(sandbox, "print(call())")
        self.assertNotIn(VALUE, str(INTERNET.fields[seen + 1:]))

    def test_secrets_outlive_egress_and_atolld(self):
        sandbox = self.atoll.create(network=self.network)["id"]
        lock = os.path.join(self.atoll.run_directory, "egress", "egress.lock")
        for pid in (atoll.lock_holder(lock), self.atoll.daemon_pid):
            os.kill(pid, signal.SIGKILL)
        self.atoll.close()
        atoll.wait_for("atolld", lambda: self.atoll.daemon_pid)
        self.atoll.wait_ready()
        seen = len(INTERNET.fields)
        atoll.wait_for("egress", lambda: self.call(sandbox, "print(call())").startswith("200"))
        self.assertEqual(INTERNET.fields[seen]["authorization"], f"Bearer {VALUE}")

    def test_a_value_is_found_nowhere(self):
        calls = 1000 if os.environ.get("ATOLL_TEST_LONG") else 50
        sandbox = self.atoll.create(network=self.network)["id"]
        seen = len(INTERNET.fields)
        done = self.call(sandbox, f"""
import http.client
good = 0
for part in range({calls} // 10):
    c = http.client.HTTPSConnection("api.example", timeout=10)
    for i in range(10):
        c.request("GET", "/v1/a", headers={{"Authorization": "Bearer " + KEY}})
        r = c.getresponse(); r.read(); good += r.status == 200
print(good)
call("https://api.example/v2")
""")
        self.assertEqual(done, str(calls))
        sent = [fields["authorization"] for fields in INTERNET.fields[seen:]]
        self.assertEqual(sent, [f"Bearer {VALUE}"] * calls)
        # Inside: every file that can be read, the environment and memory of the program itself,
        # which is told the second part of the value and the hash of the first.
        digest = hashlib.sha256(VALUE.split("never")[0].encode()).hexdigest()
        inside = self.call(sandbox, f"DIGEST = '{digest}'" + r"""
import hashlib
half = "never-seen-" + "inside"
found = []
for folder, names, files in os.walk("/"):
    names[:] = [n for n in names if os.path.join(folder, n) not in ("/proc", "/sys")]
    for name in files:
        path = os.path.join(folder, name)
        try:
            if os.path.isfile(path) and half.encode() in open(path, "rb").read(): found.append(path)
        except OSError: pass
call()
known = half.encode()
for line in open("/proc/self/maps"):
    first, last = (int(x, 16) for x in line.split()[0].split("-"))
    if " r" not in line[:40] or "[v" in line: continue
    try:
        with open("/proc/self/mem", "rb") as memory:
            memory.seek(first)
            data = memory.read(last - first)
        at = data.find(known)
        while at >= 0:
            if hashlib.sha256(data[max(at - 12, 0):at]).hexdigest() == DIGEST: found.append(line)
            at = data.find(known, at + 1)
    except (OSError, ValueError, OverflowError): pass
print(found, half in str(os.environ))
""")
        self.assertEqual(inside, "[] False")
        # Outside: all that Atoll has written, its logs, database and audit among it.
        files = 0
        for folder, _, names in os.walk(self.atoll.directory):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and os.path.getsize(path) < 1 << 28:
                    with open(path, "rb") as file:
                        self.assertNotIn(VALUE.encode(), file.read(), path)
                    files += 1
        self.assertGreater(files, 10)
        self.assertNotIn(VALUE, str(self.rows(sandbox)))
        print(f"{calls} calls, {files} files of Atoll looked at")

    def test_the_command_line_sets_lists_uses_and_removes(self):
        options = ("secret", "set", "TYPED_KEY", "--host", "api.example", "--path", "/v1/**",
                   "--header", "Authorization: Bearer {}")
        self.atoll.cli(*options, input=b"typed-value\r\n")
        listed = self.atoll.cli("secret", "ls").stdout.decode().splitlines()
        self.assertIn(["TYPED_KEY", "api.example"], [line.split() for line in listed])
        code = FETCH + CALL.replace("API_KEY", "TYPED_KEY") + "print(KEY[:13], call())"

        def used():
            seen = len(INTERNET.fields)
            done = self.atoll.cli("run", "--allow", "api.example", "--secret", "TYPED_KEY", "-c",
                                  code)
            self.assertIn(b"atoll-secret- 200", done.stdout)
            return INTERNET.fields[seen]["authorization"]
        self.assertEqual(used(), "Bearer typed-value")
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"value of a file")
            file.flush()
            shown = self.atoll.cli(*options, "--value-file", file.name, "--json").stdout
        self.assertEqual(json.loads(shown)["name"], "TYPED_KEY")
        self.assertNotIn(b"value of", shown)
        self.assertEqual(used(), "Bearer value of a file")
        self.atoll.cli("secret", "rm", "TYPED_KEY")
        self.assertNotIn(b"TYPED_KEY", self.atoll.cli("secret", "ls", "--json").stdout)
        gone = self.atoll.cli("run", "--secret", "TYPED_KEY", "-c", "print(1)", check=False)
        self.assertEqual((gone.returncode, gone.stdout), (125, b""), gone.stderr)

    def test_the_api_never_shows_a_value(self):
        shown = {"name": "API_KEY", **{key: SECRET[key] for key in ("hosts", "paths", "header")}}
        one = self.atoll.request("GET", "/v1/secrets/API_KEY")
        self.assertEqual(one.status, 200)
        self.assertEqual(self.atoll.request("GET", "/v1/secrets").json, {"secrets": [one.json]})
        found = one.json
        times = {key: found.pop(key) for key in ("version", "created_at", "updated_at")}
        self.assertEqual(found, shown)
        self.assertLessEqual(times["created_at"], times["updated_at"])
        for wrong in ({"value": VALUE}, {"value": VALUE + "\n", "hosts": ["a.b"]},
                      {"value": VALUE, "hosts": ["*.b.c"]}, {**SECRET, "more": 1}):
            answer = self.atoll.request("PUT", "/v1/secrets/OTHER", wrong)
            self.assertEqual(answer.status, 400, answer.body)
            self.assertNotIn(VALUE.encode(), answer.body)


if __name__ == "__main__":
    if os.geteuid() == 0:
        INTERNET.enter()
    atoll.main()
