"""Settings of every Jupyter program in a workspace, such as `jupyter execute` in a terminal."""

c = get_config()  # noqa: F821 - defined by traitlets when it loads this file

# Such programs start kernels on TCP ports, to which every workspace on this machine could listen.
c.KernelManager.transport_encryption = "auto"
