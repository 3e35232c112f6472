"""An Atoll that E2B's clients find by their variables. The image of `python` stands for those of
`base` and `code-interpreter-v1`, which take minutes to build: what is tested is the door."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "system"))
import atoll  # noqa: E402

ALIASES = ("base", "code-interpreter-v1")


class DoorTest(atoll.SystemTest):
    variables: dict

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in ALIASES:
            with tempfile.TemporaryDirectory() as directory:
                cls.atoll.cli("template", "add", cls.renamed(directory, name))
        made = cls.atoll.request("POST", "/v1/keys", {"e2b": True}).json
        url = f"http://{cls.atoll.address}"
        cls.variables = {"E2B_API_KEY": made["key"], "E2B_API_URL": url, "E2B_SANDBOX_URL": url}
        os.environ.update(cls.variables)

    @staticmethod
    def renamed(directory, name):
        for file in ("digest", "image.erofs"):
            os.symlink(os.path.join(atoll.IMAGE, file), os.path.join(directory, file))
        manifest = atoll.read(os.path.join(atoll.IMAGE, "template.toml"))
        assert '\nname = "python"\n' in "\n" + manifest
        with open(os.path.join(directory, "template.toml"), "w") as file:
            file.write(manifest.replace('name = "python"', f'name = "{name}"', 1))
        return directory
