"""What work tells of itself."""

from ordinalq._utils.progress import Far


class Told(Far):
    """Keeps what was told: how far the work had come, and what was done."""

    def __init__(self):
        super().__init__()
        self.told = []

    def emit(self, record):
        super().emit(record)
        self.told.append((self.part, self.what))
