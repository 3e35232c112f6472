"""An Atoll that E2B's clients find by their variables. The templates `base` and
`code-interpreter-v1` are the real ones if their images have been built, which takes minutes
(`make images IMAGES="base code-interpreter-v1"`, as `make test-long` does); otherwise the image of
`python` stands for them: what is tested then is the door."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "system"))
import atoll  # noqa: E402

ALIASES = ("base", "code-interpreter-v1")
IMAGES = os.path.dirname(atoll.IMAGE)
LONG = bool(os.environ.get("ATOLL_TEST_LONG"))


def has_image(name):
    return os.path.exists(os.path.join(IMAGES, name, "digest"))


class DoorTest(atoll.SystemTest):
    prepared = None  # the Atoll that has the templates and the key

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if DoorTest.prepared is not cls.atoll:
            cls.prepare()

    @classmethod
    def prepare(cls):
        DoorTest.prepared = cls.atoll
        for name in ALIASES:
            with tempfile.TemporaryDirectory() as directory:
                real = os.path.join(IMAGES, name)
                folder = real if has_image(name) else cls.renamed(directory, name)
                cls.atoll.cli("template", "add", folder)
        made = cls.atoll.request("POST", "/v1/keys", {"e2b": True}).json
        url = f"http://{cls.atoll.address}"
        variables = {"E2B_API_KEY": made["key"], "E2B_API_URL": url, "E2B_SANDBOX_URL": url,
                     "E2B_VOLUME_API_URL": url}
        if has_image("base"):
            variables["ATOLL_E2B_BASE"] = "1"
        os.environ.update(variables)

    @staticmethod
    def renamed(directory, name):
        for file in ("digest", "image.erofs"):
            os.symlink(os.path.join(atoll.IMAGE, file), os.path.join(directory, file))
        manifest = atoll.read(os.path.join(atoll.IMAGE, "template.toml"))
        assert '\nname = "python"\n' in "\n" + manifest
        with open(os.path.join(directory, "template.toml"), "w") as file:
            manifest = manifest.replace("\npids = 256\n", "\npids = 1024\n")  # as theirs have
            file.write(manifest.replace('name = "python"', f'name = "{name}"', 1))
        return directory
