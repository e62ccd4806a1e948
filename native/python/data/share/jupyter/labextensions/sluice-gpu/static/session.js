/**
 * The end of the portal's session in JupyterLab: a dialog leads to the sign-in, and open notebooks reconnect afterwards.
 */

/** How often an open tab asks whether the person has signed in again. */
const ASK_MS = 10_000;
/** A closed dialog is not shown again for this time, though JupyterLab goes on asking its server. */
const DIALOG_PAUSE_MS = 600_000;
/** The gateway's header with the address to sign in: server/gateway/gateway.ts. */
const SIGN_IN_HEADER = "x-sluice-sign-in";

/** JupyterLab's dialog for a lost connection. A session that has ended has one of its own, with the way to sign in. */
export function makeConnectionLost({ IConnectionLost, ConnectionLost }, { Dialog }, { PageConfig, URLExt }) {
  return {
    id: "sluice-gpu:connection-lost",
    description: "Says when the session has ended, where to sign in, and reconnects afterwards.",
    autoStart: true,
    // JupyterLab registers extensions after its own plugins: of two for one token the last one counts.
    provides: IConnectionLost,
    activate: (app) => {
      let pausedUntil = 0;
      let isWaiting = false;
      /** Closes the dialog that is open. */
      let close = () => undefined;

      const hasAccess = async () => {
        try {
          return (await fetch(URLExt.join(PageConfig.getBaseUrl(), "api", "me"))).ok;
        } catch {
          return false;
        }
      };

      /** Asks when the person comes back to this tab, and now and then for a sign-in beside it. */
      const waitForSignIn = (manager) => {
        if (isWaiting) return;
        isWaiting = true;
        const ask = async () => {
          if (document.visibilityState === "hidden" || !(await hasAccess()) || !isWaiting) return;
          isWaiting = false;
          clearInterval(timer);
          window.removeEventListener("focus", ask);
          document.removeEventListener("visibilitychange", ask);
          pausedUntil = 0;
          close();
          await reconnect(app, manager);
        };
        const timer = setInterval(ask, ASK_MS);
        window.addEventListener("focus", ask);
        document.addEventListener("visibilitychange", ask);
      };

      return async (manager, error, translator) => {
        const signIn = error.response?.headers.get(SIGN_IN_HEADER);
        if (!signIn) return await ConnectionLost(manager, error, translator);
        waitForSignIn(manager);
        if (Date.now() < pausedUntil) return;
        pausedUntil = Number.POSITIVE_INFINITY;
        const dialog = new Dialog({
          title: "Session expired",
          body: "Sign in to reconnect. Your notebooks stay open here, and their kernels keep running.",
          buttons: [Dialog.cancelButton({ label: "Close" }), Dialog.okButton({ label: "Sign in" })],
        });
        close = () => dialog.reject();
        const { button } = await dialog.launch();
        close = () => undefined;
        if (isWaiting) pausedUntil = Date.now() + DIALOG_PAUSE_MS;
        if (button.accept) window.open(signIn, "_blank", "noopener");
      };
    },
  };
}

/** JupyterLab tries seven times to connect a kernel or a terminal again, and then never. */
async function reconnect({ shell }, { sessions, kernels, terminals }) {
  const lists = [sessions, kernels, terminals].map((list) => list.refreshRunning());
  const lost = [...shell.widgets("main")]
    .flatMap((widget) => [
      // Of a notebook or a console, of a file with a kernel, of a terminal.
      widget.sessionContext?.session?.kernel,
      widget.context?.sessionContext?.session?.kernel,
      widget.content?.session,
    ])
    .filter((connection) => connection?.reconnect !== undefined && connection.connectionStatus !== "connected");
  await Promise.allSettled([...lists, ...[...new Set(lost)].map((connection) => connection.reconnect())]);
}
