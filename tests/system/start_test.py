"""Programs that a template starts in every sandbox: what a create waits for, and what it says."""
import os
import tempfile
import threading

import atoll


class StartTest(atoll.SystemTest):
    def test_a_second_create_of_the_name_waits_for_the_program_too(self):
        self.atoll.add_starting("waiting", "test -e /home/user/ready")
        answers = []

        def create():
            client = atoll.Atoll(self.atoll.directory)
            answers.append(client.try_request("POST", "/v1/sandboxes", {
                "template": "waiting", "name": "one", "on_name_conflict": "use"}))
            client.close()

        def asked():
            shown = self.atoll.try_request("GET", "/v1/sandboxes/one/execs")
            return shown.status == 200 and len(shown.json["execs"]) == 2
        first, second = threading.Thread(target=create), threading.Thread(target=create)
        first.start()
        atoll.wait_for("its program to be asked", asked)
        second.start()
        second.join(0.5)
        self.assertEqual(answers, [], "answered before it was ready")
        self.atoll.execute("one", ["touch", "/home/user/ready"])
        first.join()
        second.join()
        self.assertEqual(sorted(one.status for one in answers), [200, 201])
        self.assertEqual(len({one.json["id"] for one in answers}), 1)
        self.atoll.delete("one")

    def test_a_program_that_fails_is_quoted_to_its_owner_alone(self):
        words = r'printf "my-own-words \377\303" >&2; exit 3'
        start = f"\n[start]\ncommand = '{words}'\nready = 'false'\nready_timeout = '1m'\n"
        with tempfile.TemporaryDirectory() as directory:
            self.atoll.cli("template", "add", self.atoll.with_manifest(
                directory, lambda manifest: manifest.replace('"python"', '"failing"', 1) + start))
        answer = self.atoll.request("POST", "/v1/sandboxes", {"template": "failing"})
        self.assertEqual((answer.status, answer.json["error"]["code"]), (400, "start_failed"))
        self.assertIn("my-own-words \ufffd\ufffd", answer.json["error"]["message"])
        self.assertEqual(self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"], [])
        log = atoll.read(os.path.join(self.atoll.directory, "logs", "atolld.log"))
        self.assertIn('"start_failed"', log)
        self.assertNotIn("my-own-words", log)


if __name__ == "__main__":
    atoll.main()
