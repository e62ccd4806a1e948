/**
 * The portal's session in JupyterLab: what it allows, and its end, when a dialog leads to the sign-in and open notebooks
 * reconnect afterwards.
 */

/** How often an open tab asks whether the person has signed in again. */
const ASK_MS = 10_000;
/** A closed dialog is not shown again for this time, though JupyterLab goes on asking its server. */
const DIALOG_PAUSE_MS = 600_000;
/** The gateway's header with the address to sign in: server/gateway/gateway.ts. */
const SIGN_IN_HEADER = "x-sluice-sign-in";
/** The gateway's address: server/contracts/gateway-paths.ts. */
const ACCESS_PATH = "/_sluice/access";
/** JupyterLab waits for the first answer. */
const ACCESS_LIMIT_MS = 10_000;

/** What the gateway allows and how the portal looks; `last` without an answer, as after the end of the session. */
export async function readAccess(last = { refusal: null, theme: "system" }) {
  try {
    const answer = await fetch(ACCESS_PATH, { signal: AbortSignal.timeout(ACCESS_LIMIT_MS) });
    return answer.ok ? await answer.json() : last;
  } catch {
    return last;
  }
}

/** JupyterLab's dialog for a lost connection. A session that has ended has one of its own, with the way to sign in. */
export function makeConnectionLost({ IConnectionLost, ConnectionLost }, { Dialog }) {
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

      /** Asks when the person comes back to this tab, and now and then for a sign-in beside it. */
      const waitForSignIn = (manager) => {
        if (isWaiting) return;
        isWaiting = true;
        const ask = async () => {
          if (document.visibilityState === "hidden" || (await readAccess(null)) === null || !isWaiting) return;
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
