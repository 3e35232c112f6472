"""The older ones of E2B's npm packages against Atoll, as node_test.py does with the newest. Only of
the long tests."""
import node_test


class OlderNode(node_test.NodeCase):
    def test_older_packages_work_unmodified(self):
        self.run_clients("older-e2b", "older-code-interpreter")


if __name__ == "__main__":
    node_test.door.atoll.main()
