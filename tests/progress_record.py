"""Record of reported progress."""

from ordinalq._utils.progress import ProgressHandler


class ProgressRecord(ProgressHandler):
    """Stores the reported progress and steps."""

    def __init__(self):
        super().__init__()
        self.told = []

    def emit(self, record):
        super().emit(record)
        self.told.append((self.part, self.what))
