"""What "the internet" is for E2B's clients: nothing, until the operator allows it to their tenant;
then every public name and nothing else. Against a fake internet, so nothing leaves this machine."""
import json
import os

import clients

clients.enter_python()

import door  # noqa: E402
import e2b  # noqa: E402
import fake_internet  # noqa: E402
from certified_internet import CertifiedInternet  # noqa: E402

INTERNET = CertifiedInternet()

FETCH = """
import socket, sys
def fetch(name, port):
    with socket.create_connection((name, port), 10) as s:
        s.sendall(b"GET /x HTTP/1.0\\r\\nHost: " + name.encode() + b"\\r\\n\\r\\n")
        return s.recv(1000)
for target in sys.argv[1:]:
    name, port = target.split(":")
    try:
        print(target, "reached" if fetch(name, int(port)) else "closed")
    except OSError as error:
        print(target, "refused")
"""
PUBLIC = ("allowed.example:80", "other.example:80", "allowed.example:2222")
NEVER = ("internal.example:80", "metadata.example:80", "loop.example:80", "20.0.0.80:80",
         "10.9.9.9:80", "169.254.169.254:80")


class Internet(door.DoorTest):
    def tearDown(self):
        self.allow("deny")

    def allow(self, what, *tenant):
        self.atoll.cli("tenant", "set", *tenant, "--e2b-internet", what)

    def create(self, **options):
        sandbox = e2b.Sandbox.create(timeout=120, **options)
        self.addCleanup(sandbox.kill)
        sandbox.files.write("/tmp/fetch.py", FETCH)
        return sandbox

    def reached(self, sandbox, *targets):
        said = sandbox.commands.run("python3 /tmp/fetch.py " + " ".join(targets), timeout=120)
        return [line.split()[0] for line in said.stdout.splitlines() if line.endswith(" reached")]

    def test_is_nothing_unless_the_operator_allows_it(self):
        self.assertEqual(self.reached(self.create(allow_internet_access=True), *PUBLIC), [])

    def test_is_every_public_name_once_it_is_allowed(self):
        self.allow("allow")
        listed = json.loads(self.atoll.cli("tenant", "ls", "--json").stdout)["tenants"]
        self.assertEqual(listed[0]["e2b_internet"], "allow")
        self.assertIn(b"allow", self.atoll.cli("tenant", "ls").stdout)
        sandbox = self.create(allow_internet_access=True)
        self.assertEqual(self.reached(sandbox, *PUBLIC), list(PUBLIC))
        self.assertEqual(self.reached(sandbox, *NEVER), [])
        self.assertTrue(sandbox.get_info().allow_internet_access)
        shown = self.atoll.request("GET", f"/v1/sandboxes/{sandbox.sandbox_id}").json
        self.assertTrue(shown["network"]["public_names"])

    def test_may_be_declined_and_narrowed(self):
        self.allow("allow")
        self.assertEqual(self.reached(self.create(allow_internet_access=False), *PUBLIC), [])
        narrowed = self.create(network={"deny_out": [fake_internet.OTHER]})
        self.assertEqual(self.reached(narrowed, *PUBLIC), [PUBLIC[0], PUBLIC[2]])
        named = self.create(network={"allow_out": ["other.example"], "deny_out": ["0.0.0.0/0"]})
        self.assertEqual(self.reached(named, *PUBLIC), [PUBLIC[1]])
        named.update_network({"deny_out": []})
        self.assertEqual(self.reached(named, *PUBLIC), list(PUBLIC))
        with self.assertRaisesRegex(Exception, "denyOut"):
            named.update_network({"deny_out": ["a-name.example"]})

    def test_is_taken_from_running_sandboxes_too(self):
        self.allow("allow")
        sandbox = self.create()
        self.assertEqual(self.reached(sandbox, PUBLIC[0]), [PUBLIC[0]])
        self.allow("deny")
        self.assertEqual(self.reached(sandbox, *PUBLIC), [])
        sandbox.update_network({})
        self.assertEqual(self.reached(sandbox, *PUBLIC), [])

    def test_is_what_a_build_reaches_too(self):
        fetch = f"cat >/tmp/f.py <<'EOF'\n{FETCH}EOF\npython3 /tmp/f.py {' '.join(PUBLIC + NEVER)}"
        template = e2b.Template().from_base_image().run_cmd(fetch)
        for allowed in (True, False):
            self.allow("allow" if allowed else "deny")
            logs = []
            e2b.Template.build(template, "fetched", skip_cache=True,
                               on_build_logs=lambda entry, logs=logs: logs.append(entry.message))
            reached = [line.split()[0] for line in logs if line.endswith(" reached")]
            self.assertEqual(reached, list(PUBLIC) if allowed else [])
        self.atoll.close()  # which was idle for as long as the builds took
        self.assertEqual(self.atoll.request("DELETE", "/v1/templates/fetched").status, 204)

    def test_requests_carry_headers_that_rules_set(self):
        sandbox = self.create(network={"allow_out": ["allowed.example", "other.example"], "rules": {
            "allowed.example": [{"transform": {"headers": {"X-Team": "blue"}}}]}})
        info = sandbox.get_info()
        self.assertEqual(info.network["rules"]["allowed.example"],
                         [{"transform": {"headers": {"X-Team": "blue"}}}])
        self.assertEqual(info.network["allow_out"], ["allowed.example", "other.example"])
        seen = len(INTERNET.fields)
        self.assertEqual(self.reached(sandbox, *PUBLIC[:2]), list(PUBLIC[:2]))
        self.assertEqual([fields.get("x-team") for fields in INTERNET.fields[seen:]],
                         ["blue", None])
        with self.assertRaisesRegex(Exception, "network.rules.*Host"):
            self.create(network={"rules": {"a.example": [{"transform": {
                "headers": {"Host": "b"}}}]}})

    def test_rules_carry_secrets_that_no_sandbox_sees(self):
        made = e2b.Secret.create("api-key.1", "sk-first", metadata={"team": "blue"})
        self.addCleanup(e2b.Secret.destroy, "api-key.1")
        self.assertEqual((made.name, made.version, made.metadata),
                         ("api-key.1", 1, {"team": "blue"}))
        value = f"Bearer {e2b.Secret.fill('api-key.1')}"
        sandbox = self.create(network={"allow_out": ["api.example"], "rules": {
            "api.example": [{"transform": {"headers": {"Authorization": value}}}]}})
        self.assertEqual(sandbox.get_info().network["rules"]["api.example"],
                         [{"transform": {"headers": {"Authorization": value}}}])
        fetch = "python3 -c 'import urllib.request as u; " \
                "print(u.urlopen(\"https://api.example/v1\").status)'"
        for version, secret in ((1, "sk-first"), (2, "sk-second")):
            if version == 2:
                renewed = e2b.Secret.update("api-key.1", secret)
                self.assertEqual((renewed.version, renewed.metadata), (2, {"team": "blue"}))
                self.assertGreaterEqual(renewed.updated_at, made.updated_at)
                self.assertEqual(renewed.created_at, made.created_at)
            seen = len(INTERNET.fields)
            self.assertEqual(sandbox.commands.run(fetch).stdout, "200\n")
            self.assertEqual(INTERNET.fields[seen]["authorization"], f"Bearer {secret}")
        inside = sandbox.commands.run("env; cat /proc/*/environ || true", user="root").stdout
        self.assertNotIn("sk-", inside)

    def test_secrets_are_listed_and_never_shown(self):
        names = [f"listed-{number}" for number in range(5)]
        for name in names:
            e2b.Secret.create(name, "sk-value")
            self.addCleanup(e2b.Secret.destroy, name)
        pages = e2b.Secret.list(limit=2)
        listed = []
        while pages.has_next:
            page = pages.next_items()
            self.assertLessEqual(len(page), 2)
            listed += page
        self.assertEqual([one.name for one in listed], names)
        self.assertNotIn("sk-value", repr(listed))
        self.assertEqual(e2b.Secret.get_info(listed[0].secret_id).name, names[0])
        self.assertTrue(e2b.Secret.exists(names[0]))
        with self.assertRaisesRegex(e2b.SecretException, "409"):
            e2b.Secret.create(names[0], "sk-other")
        for name, value in (("a/b", "v"), ("x" * 65, "v"), ("ok", ""), ("ok", "two\nlines")):
            with self.assertRaisesRegex(e2b.SecretException, "400"):
                e2b.Secret.create(name, value)
        self.assertTrue(e2b.Secret.destroy(names[0]))
        self.assertFalse(e2b.Secret.destroy(names[0]))
        self.assertFalse(e2b.Secret.exists(names[0]))
        with self.assertRaises(e2b.SecretNotFoundException):
            e2b.Secret.update(names[0], "sk-other")
        with self.assertRaisesRegex(Exception, "secret_not_found|no secret"):
            self.create(network={"rules": {"api.example": [{"transform": {
                "headers": {"X-Key": e2b.Secret.fill(names[0])}}}]}})
        theirs = self.atoll.request("POST", "/v1/keys", {"tenant": "acme", "e2b": True}).json["key"]
        self.assertEqual(e2b.Secret.list(api_key=theirs).next_items(), [])

    def test_is_one_tenants(self):
        acme = self.atoll.request("POST", "/v1/keys", {"tenant": "acme", "e2b": True}).json["key"]
        self.allow("allow", "acme")
        self.assertEqual(self.reached(self.create(), PUBLIC[0]), [])
        theirs = self.create(api_key=acme)
        self.assertEqual(self.reached(theirs, PUBLIC[0]), [PUBLIC[0]])
        done = self.atoll.cli("tenant", "set", "nobody", "--e2b-internet", "allow", check=False)
        self.assertIn(b"no tenant nobody", done.stderr)

    def test_is_nothing_that_a_request_of_ours_can_ask_for(self):
        self.allow("allow")
        answer = self.atoll.request("POST", "/v1/sandboxes", {
            "template": "python", "network": {"public_names": True}})
        self.assertEqual((answer.status, answer.json["error"]["code"]), (400, "invalid_field"))


if __name__ == "__main__":
    if os.geteuid() == 0:
        INTERNET.enter()
    door.atoll.main()
