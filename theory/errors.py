"""Bad input, said in one sentence: the argument, the rule, the value, the way out."""


class InputError(ValueError):
    """What a user gave cannot be used; raised before any work is done.

    Parameters
    ----------
    argument : str
        Name of the argument, column or key, with its place where it has one ("row 3: learning_rate").
    rule : str
        What must hold, as the end of the sentence "<argument> must ...".
    value : object
        What was given.
    way_out : str
        What the user can do now, a full sentence.

    >>> str(InputError("sync_interval", "be an integer >= 1", 0, "For a fully on-policy run use 1."))
    'sync_interval must be an integer >= 1, got 0. For a fully on-policy run use 1.'
    """

    def __init__(self, argument: str, rule: str, value: object, way_out: str) -> None:
        super().__init__(f"{argument} must {rule}, got {value}. {way_out}")
        self.parts = (argument, rule, value, way_out)

    def __reduce__(self) -> tuple[type, tuple[str, str, object, str]]:
        """Let it cross from a worker process to its parent."""
        return type(self), self.parts
