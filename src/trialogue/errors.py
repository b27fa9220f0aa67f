"""The one exception that means: the input is wrong, and here is how to mend it."""


class InputError(ValueError):
    """A value that cannot be used: one line that names the field, the value and the mend.

    The command line prints the line and exits with code 2; a library user can catch it as a `ValueError`.
    """

    def __init__(self, field: str, value: object, mend: str) -> None:
        super().__init__(f"{field}={value!r}: {mend}")
        self.field = field
        self.value = value
        self.mend = mend

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, object, str]]:
        """Cross process boundaries whole: an exception is otherwise rebuilt from its message alone."""
        return InputError, (self.field, self.value, self.mend)
