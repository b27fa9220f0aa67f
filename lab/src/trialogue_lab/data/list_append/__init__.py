"""List-append test cases: prompts, and an evaluator that locates the first error."""
