"""Scripts: strict mode in shell, and an executable bit exactly where there is a `#!` line."""

import re

from tidy_rules.tree import Finding

STRICT = re.compile(r"^set -E?euo pipefail$", re.MULTILINE)


def check(tree):
    for file in tree:
        has_interpreter = file.text.startswith("#!")
        is_shell = file.path.endswith(".sh") or file.is_script("sh", "bash", "dash")
        if is_shell and not STRICT.search(file.text):
            yield Finding(file.path, 1, "shell script without `set -euo pipefail`")
        if has_interpreter and not file.executable:
            yield Finding(file.path, 1, "script is not executable")
        if file.executable and not has_interpreter:
            yield Finding(file.path, 1, "executable, but no `#!` line")
