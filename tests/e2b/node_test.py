"""E2B's npm packages, unmodified, against Atoll: clients.test.mjs under Node's own test runner."""
import os
import shutil
import subprocess

import clients

DIRECTORY = clients.node_directory()

import door  # noqa: E402


class NodeCase(door.DoorTest):
    def run_clients(self, package, code):
        # Packages are looked for beside the file that imports them.
        shutil.copy(os.path.join(clients.HERE, "clients.test.mjs"), DIRECTORY)
        command = ["node", "--test", "--test-force-exit", "clients.test.mjs"]
        variables = {**os.environ, "ATOLL_E2B": package, "ATOLL_E2B_CODE": code}
        done = subprocess.run(command, cwd=DIRECTORY, timeout=400, env=variables,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        text = done.stdout.decode(errors="replace")
        print(text, flush=True)
        self.assertEqual(done.returncode, 0, text[-4000:])
        self.assertRegex(text, r"pass [1-9]")


class Node(NodeCase):
    def test_the_newest_packages_work_unmodified(self):
        self.run_clients("e2b", "@e2b/code-interpreter")


if __name__ == "__main__":
    door.atoll.main()
