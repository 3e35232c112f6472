"""The same behaviours behind every wall this host offers, as a table of wall and behaviour; the
table of docs/isolation.md must say the same."""
import os
import sys
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))

import atoll
from behaviours import BEHAVIOURS, DECLARED, DECLARED_OF_DEBIAN

WALLS = ("jail", "gvisor", "microvm")
DOCUMENT = os.path.join(ROOT, "docs", "isolation.md")
HELD, FAILED, ABSENT = "yes", "NO", "not offered"
GVISOR_IS_DEBIANS = os.path.basename(atoll.MONITORS["gvisor"]) == "gvisor-debian"


def documented():
    """{behaviour: [a word per wall]} of the document's table."""
    rows = {}
    for line in atoll.read(DOCUMENT).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 1 + len(WALLS) and cells[0] in dict(BEHAVIOURS):
            rows[cells[0]] = cells[1:]
    return rows


class Conformance(atoll.SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for wall, image in atoll.MONITORS.items():
            if os.path.exists(os.path.join(image, "image.erofs")):
                cls.atoll.cli("template", "add", image)
            else:
                print(f"{wall} is not tried: make images IMAGES={wall}", flush=True)

    def offers(self, wall):
        """Whether it can be had; what cannot must be refused by name, with nothing made."""
        answer = self.atoll.request("POST", "/v1/sandboxes", {"template": "python",
                                                             "isolation": wall})
        if answer.status == 201:
            self.atoll.delete(answer.json["id"])
            return answer.json["isolation"] == wall  # it may be a stronger one
        error = answer.json["error"]
        self.assertEqual((answer.status, error["code"], error["field"]),
                         (400, "isolation_unavailable", "isolation"))
        self.assertIn(wall, error["message"])
        self.assertTrue(error["remedy"])
        self.assertEqual(self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"], [])
        return False

    def try_out(self, wall, name, function):
        declared = DECLARED.get(wall, {})
        if wall == "gvisor" and GVISOR_IS_DEBIANS:
            declared = declared | DECLARED_OF_DEBIAN
        word, check = declared.get(name, (HELD, function))
        try:
            check(self.atoll, wall)
            return word
        except Exception:
            print(f"{wall}: {name}\n{traceback.format_exc()}", flush=True)
            return FAILED

    def test_every_wall_behaves_as_documented(self):
        walls = {wall: self.offers(wall) for wall in WALLS}
        # Those whose image `make test` has built. Every host has the jail.
        for wall in os.environ.get("ATOLL_REQUIRE_ISOLATION", "jail").split(","):
            self.assertTrue(walls[wall], f"{wall} is not offered")
        table = {name: [self.try_out(wall, name, function) if walls[wall] else ABSENT
                        for wall in WALLS] for name, function in BEHAVIOURS}
        width = max(len(name) for name in table)
        print(f"\n{'behaviour':{width}}  " + "  ".join(f"{wall:11}" for wall in WALLS))
        for name, words in table.items():
            print(f"{name:{width}}  " + "  ".join(f"{word:11}" for word in words))
        written = {name: [word if walls[wall] or word == ABSENT else ABSENT
                          for wall, word in zip(WALLS, words)]
                   for name, words in documented().items()}
        if GVISOR_IS_DEBIANS and walls["gvisor"]:
            for name, (word, _) in DECLARED_OF_DEBIAN.items():
                written[name][WALLS.index("gvisor")] = word
        self.assertEqual(written, table, "docs/isolation.md says something else")


if __name__ == "__main__":
    atoll.main()
