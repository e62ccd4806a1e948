"""Borrow a part of a pooled remote GPU from a notebook or a script.

In IPython: `%load_ext sluice_gpu`, then `%gpu attach 0.5`. In a script: `with sluice_gpu.attach("0.5"):`.

Importing the package does nothing but define names: the start-up hook imports it in every process of a workspace.
"""

from ._version import __version__

__all__ = ["GpuError", "GpuNotGranted", "GpuRefused", "__version__", "attach", "on_reclaim"]


def __getattr__(name):
    if name in ("GpuError", "GpuNotGranted", "GpuRefused", "attach"):
        from . import _lease

        return getattr(_lease, name)
    if name == "on_reclaim":
        from . import _notice

        return _notice.on_reclaim
    raise AttributeError(f"module 'sluice_gpu' has no attribute {name!r}")


def _jupyter_server_extension_points():
    """Jupyter's way to find the server extension."""
    return [{"module": "sluice_gpu.server"}]


def load_ipython_extension(shell):
    """`%load_ext sluice_gpu`: the `%gpu` and `%%gpu` magics."""
    from ._magics import load

    load(shell)


def unload_ipython_extension(shell):
    """`%unload_ext sluice_gpu`."""
    from ._magics import unload

    unload(shell)
