"""Which wall a sandbox gets: the floor, what `auto` makes of a template's latency class, and what a
host says that has not enough."""
import os
import tempfile

import atoll

LATENCIES = ("instant", "fast", "any")
WALLS = ("jail", "gvisor", "microvm")  # in the same order


class WallChoice(atoll.SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for latency in LATENCIES:
            with tempfile.TemporaryDirectory() as directory:
                cls.atoll.cli("template", "add", cls.atoll.with_manifest(
                    directory, lambda manifest: manifest.replace(
                        'name = "python"', f'name = "python-{latency}"').replace(
                        'isolation = "jail"', f'isolation = "jail"\nlatency = "{latency}"')))
        cls.built = ["jail"]

    def add_walls(self):
        for wall, image in atoll.MONITORS.items():
            if os.path.exists(os.path.join(image, "image.erofs")):
                self.atoll.cli("template", "add", image)
                self.built.append(wall)
            else:
                print(f"{wall} is not tried: make images IMAGES={wall}", flush=True)

    def make(self, template, **fields):
        made = self.atoll.create(template=template, isolation="auto", **fields)
        self.atoll.delete(made["id"])
        return made["isolation"]

    def refusal(self, wall):
        answer = self.atoll.request("POST", "/v1/sandboxes", {"template": "python",
                                                             "isolation": wall})
        self.assertEqual((answer.status, answer.json["error"]["code"]),
                         (400, "isolation_unavailable"), answer.body)
        return answer.json["error"]

    def test_one_after_the_other(self):
        """Walls are added on the way, so it is one test."""
        listed = {each["name"]: (each["isolation"], each["latency"]) for each
                  in self.atoll.request("GET", "/v1/templates").json["templates"]}
        self.assertEqual(listed["python"], ("jail", "instant"))
        for latency in LATENCIES:
            self.assertEqual(listed[f"python-{latency}"], ("jail", latency))
            self.assertEqual(self.make(f"python-{latency}"), "jail", "there is no other")
        for wall in ("gvisor", "microvm"):
            error = self.refusal(wall)
            for each in ("jail is here", "gvisor needs the image of the template gvisor",
                         "microvm needs the image of the template microvm"):
                self.assertIn(each, error["message"])
            self.assertIn("atoll template build gvisor", error["remedy"])
        self.add_walls()
        for place, latency in enumerate(LATENCIES):
            allowed = [wall for wall in WALLS[:place + 1] if wall in self.built]
            with self.subTest(latency):
                self.assertEqual(self.make(f"python-{latency}"), allowed[-1])
        self.assertEqual(self.make("python"), "jail", "of no class: that of its floor")
        self.assertEqual(self.make("python-any", persistence="persistent"), "jail",
                         "what the others cannot do")
        made = self.atoll.create(template="python-any")
        self.assertEqual(made["isolation"], "jail", "who says nothing gets the weakest")
        self.atoll.delete(made["id"])

    def test_a_class_below_the_floor_is_refused(self):
        manifest = 'name = "torn"\n[image]\ntemplate = "python"\n[defaults]\n' \
                   'isolation = "gvisor"\nlatency = "instant"\n'
        answer = self.atoll.request("POST", "/v1/templates", {"manifest": manifest})
        self.assertEqual((answer.status, answer.json["error"]["code"]), (400, "invalid_template"))
        self.assertIn("allows no wall as strong", answer.json["error"]["message"])


if __name__ == "__main__":
    atoll.main()
