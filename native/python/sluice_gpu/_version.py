"""The one place of the version number: the wheel builder reads it too."""

__version__ = "0.1.0"
