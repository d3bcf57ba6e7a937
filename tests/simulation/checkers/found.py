"""What a checker says."""


class Found(AssertionError):
    """Something that must hold does not.

    Attributes:
        checker: Which one found it.
    """

    def __init__(self, checker: str, what: str) -> None:
        super().__init__(f"{checker}: {what}")
        self.checker = checker
