"""Settings of every workspace's Jupyter server; what a user sets in ~/.jupyter comes on top."""

import importlib.util
import os
import signal

from jupyter_core.paths import jupyter_runtime_dir
from jupyter_server.services.kernels.websocket import KernelWebsocketHandler
from jupyter_server_terminals.terminalmanager import TerminalManager
from jupyterlab.labapp import LabApp

c = get_config()  # noqa: F821 - defined by traitlets when it loads this file

# Out of the environment, so that the token does not travel on into kernels and terminals.
c.IdentityProvider.token = os.environ.pop("JUPYTER_TOKEN")

c.ServerApp.open_browser = False
c.ServerApp.allow_remote_access = True
# The address bar belongs to the gateway, which alone reaches this server.
c.ServerApp.custom_display_url = os.environ.get("SLUICE_PUBLIC_URL", "")
c.ServerApp.shutdown_no_activity_timeout = 0
# Messages of up to 100 MB, such as the state of a widget; Tornado's own limit is 10 MiB. A longer one ends its socket.
c.ServerApp.tornado_settings = {"websocket_max_message_size": 100 * 2**20}
# Seconds. Proxies close a connection without traffic; sockets of kernels and terminals have pings of their own.
c.ServerApp.websocket_ping_interval = 30
# The portal stops workspaces and signs people out; the menu of sluice_gpu links to it.
c.ServerApp.quit_button = False
# The environment is read-only for the server's own installer: its buttons could only fail.
c.LabApp.extension_manager = "readonly"
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.handlers.announcements.NeverCheckForUpdate"
c.FileContentsManager.delete_to_trash = False
# Seconds between two looks whether a kernel lives: who has lost one hears of it, and a broken environment gives up sooner.
c.KernelRestarter.time_to_dead = 1.0
c.TerminalManager.cull_inactive_timeout = 0
c.ServerApp.terminado_settings = {"shell_command": [os.environ.get("SHELL", "/bin/sh")]}

# A kernel sends code and outputs to whoever connects to its IOPub port, and workspaces share the machine's loopback.
# So kernels talk through sockets in the runtime folder, which is the workspace's own and short enough in a sandbox;
# where its path is longer than a socket's may be, they keep TCP with the encryption that jupyter_config.py asks for.
_LONGEST_SOCKET_NAME = len("/kernel-00000000-0000-0000-0000-000000000000-ipc-99")
if len(os.fsencode(jupyter_runtime_dir())) + _LONGEST_SOCKET_NAME <= 107:
    c.KernelManager.transport = "ipc"
    c.KernelManager.transport_encryption = "disabled"

if importlib.util.find_spec("sluice_gpu") is not None:
    c.ServerApp.jpserver_extensions = {"sluice_gpu": True}

# Without this a message waits up to 48 ms for the browser's delayed acknowledgement (Nagle's algorithm).
_open = KernelWebsocketHandler.open


async def _open_without_delay(self, *args, **kwargs):
    self.set_nodelay(True)
    return await _open(self, *args, **kwargs)


KernelWebsocketHandler.open = _open_without_delay

# The workspace's first process, a shell, starts this server in the background and with these signals ignored. What the
# server starts would ignore them too: Ctrl-C in a terminal would do nothing.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    signal.signal(_number, _handler)

# A terminal with a foreground command counts as busy, even without output. The broker reads this state like a kernel's
# before it stops an idle workspace.
_terminal_model = TerminalManager.get_terminal_model


def _terminal_model_with_state(self, name):
    model = _terminal_model(self, name)
    shell = self.terminals[name].ptyproc
    try:
        idle = os.tcgetpgrp(shell.fd) == shell.pid
    except OSError:
        # The shell has just ended.
        idle = True
    return {**model, "execution_state": "idle" if idle else "busy"}


TerminalManager.get_terminal_model = _terminal_model_with_state

# JupyterLab writes the server's token into its page. Browsers come through the gateway with a cookie and need none;
# with it, a browser on this machine could come back past the gateway after its access has ended.
_initialize_handlers = LabApp.initialize_handlers


def _initialize_handlers_without_token(self):
    _initialize_handlers(self)
    self.serverapp.web_app.settings["page_config_data"]["token"] = ""


LabApp.initialize_handlers = _initialize_handlers_without_token
