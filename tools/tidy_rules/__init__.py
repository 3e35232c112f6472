"""What tools/tidy checks: one module per kind of rule, each with check(tree) -> findings."""

from tidy_rules import budgets, dead_files, dependencies, documents, headers, scripts, words

RULES = (dependencies, budgets, headers, words, dead_files, documents, scripts)


def check(tree):
    return sorted({finding for rule in RULES for finding in rule.check(tree)})
