"""Verifiers of formal languages, such as regular expressions and grammars."""
