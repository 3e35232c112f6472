"""Tokens and structure of each C++ file, computed once and shared by the rules."""

from functools import lru_cache

from tidy_rules.cpp_structure import Structure
from tidy_rules.cpp_tokens import tokenize


@lru_cache(maxsize=None)
def tokens_of(text):
    return tokenize(text)


@lru_cache(maxsize=None)
def structure_of(text):
    return Structure.scan(tokens_of(text))
