"""What the tests of egress share: rows of the audit log, attempts and fetches from inside."""
import atoll


class EgressCase(atoll.SystemTest):
    def tearDown(self):
        for sandbox in self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"]:
            self.atoll.delete(sandbox["id"])

    def rows(self, sandbox):
        rows, cursor = [], "0"
        while True:
            answer = self.atoll.request("GET", f"/v1/sandboxes/{sandbox}/egress?cursor={cursor}")
            self.assertEqual(answer.status, 200, answer.body)
            if not answer.json["rows"]:
                return rows
            rows += answer.json["rows"]
            cursor = answer.json["next_cursor"]

    def reasons(self, sandbox):
        return {row.get("reason") for row in self.rows(sandbox)}

    def run_inside(self, sandbox, code, **fields):
        """What a program of Python prints, by lines."""
        done = self.atoll.python(sandbox, code, **fields)
        self.assertEqual(done["verdict"], "ok", done)
        return done["stdout"].splitlines()

    def fetch(self, sandbox, url, more=""):
        code = ("import ssl, urllib.request; c = ssl._create_unverified_context()\n"
                f"try: print(urllib.request.urlopen('{url}', timeout=10, context=c{more})"
                ".read(200).decode())\n"
                "except OSError as e: print('FAILED', e)")
        return "\n".join(self.run_inside(sandbox, code)).strip()

    def change_network(self, sandbox, network):
        answer = self.atoll.request("PATCH", f"/v1/sandboxes/{sandbox}", {"network": network})
        self.assertEqual(answer.status, 200, answer.body)
