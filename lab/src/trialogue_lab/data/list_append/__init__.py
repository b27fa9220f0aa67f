"""Test cases of list append: prompts, and an evaluator that knows where a case goes wrong."""
