class IncidenceCurves:
    causes: tuple[str, ...] = ()

    def for_cause(self, cause: int) -> object: ...
