/** The plugin of our JupyterLab extension for an ended session. JupyterLab's own dialogs are stand-ins. */
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

const FILE = "native/python/data/share/jupyter/labextensions/sluice-gpu/static/session.js";
const PORTAL = "https://portal.example.org/workspaces/ws-a";
/** A plugin that asks every few seconds has asked by then. */
const SOON_MS = 30_000;

type ConnectionLost = (manager: unknown, error: unknown, translator?: unknown) => Promise<void>;
type Plugin = { provides: string; activate: (app: unknown) => ConnectionLost };
type Extension = { makeConnectionLost: (application: unknown, apputils: unknown) => Plugin };

class Dialog {
  static readonly cancelButton = () => ({ accept: false });
  static readonly okButton = () => ({ accept: true });
  readonly title: string;
  end: (accept: boolean) => void = () => undefined;

  constructor({ title }: { title: string }) {
    this.title = title;
  }

  async launch(): Promise<{ button: { accept: boolean } }> {
    shown.push(this);
    return await new Promise((resolve) => {
      this.end = (accept) => {
        open.delete(this);
        resolve({ button: { accept } });
      };
      open.add(this);
    });
  }

  reject(): void {
    this.end(false);
  }
}

let shown: Dialog[];
let open: Set<Dialog>;
let defaults: number;
let opened: string[];
let refreshed: string[];
let reconnected: string[];
let listeners: Map<string, () => Promise<void>>;
let hasAccess: boolean;
let isHidden: boolean;
let lost: ConnectionLost;

const refused = (headers: Record<string, string>) => ({ response: { status: 424, headers: new Headers(headers) } });
const expired = refused({ "x-sluice-sign-in": PORTAL });
const list = (name: string) => ({ refreshRunning: async () => void refreshed.push(name) });
const manager = { sessions: list("sessions"), kernels: list("kernels"), terminals: list("terminals") };
const connection = (name: string, connectionStatus: string) => ({
  connectionStatus,
  reconnect: async () => void reconnected.push(name),
});

beforeEach(async () => {
  vi.useFakeTimers();
  [shown, open, defaults, opened, refreshed, reconnected] = [[], new Set(), 0, [], [], []];
  [listeners, hasAccess, isHidden] = [new Map<string, () => Promise<void>>(), false, false];
  const addEventListener = (name: string, listener: () => Promise<void>) => void listeners.set(name, listener);
  const removeEventListener = (name: string) => void listeners.delete(name);
  const document = {
    addEventListener,
    removeEventListener,
    get visibilityState() {
      return isHidden ? "hidden" : "visible";
    },
  };
  vi.stubGlobal("document", document);
  vi.stubGlobal("window", { addEventListener, removeEventListener, open: (url: string) => void opened.push(url) });
  vi.stubGlobal("fetch", async (address: string) => {
    expect(address).toBe("/_sluice/access");
    return Response.json({ refusal: null, theme: "system" }, { status: hasAccess ? 200 : 401 });
  });
  const extension = (await import(pathToFileURL(path.resolve(FILE)).href)) as Extension;
  const standard: ConnectionLost = async () => void defaults++;
  const application = { IConnectionLost: "IConnectionLost", ConnectionLost: standard };
  const widgets = [
    { sessionContext: { session: { kernel: connection("notebook", "disconnected") } } },
    { context: { sessionContext: { session: { kernel: connection("file", "connecting") } } } },
    { content: { session: connection("terminal", "disconnected") } },
    { sessionContext: { session: { kernel: connection("connected notebook", "connected") } } },
    { sessionContext: { session: null } },
    { content: {} },
  ];
  const plugin = extension.makeConnectionLost(application, { Dialog });
  expect(plugin.provides).toBe("IConnectionLost");
  lost = plugin.activate({ shell: { widgets: () => widgets } });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("an expired session has a dialog that leads to the portal", async () => {
  const told = lost(manager, expired);
  expect(shown).toMatchObject([{ title: "Session expired" }]);
  shown[0]?.end(true);
  await told;
  expect(opened).toEqual([PORTAL]);
  expect(defaults).toBe(0);
});

it("a sign-in in another tab closes the dialog and reconnects every lost kernel and terminal", async () => {
  const told = lost(manager, expired);
  await vi.advanceTimersByTimeAsync(SOON_MS);
  expect([open.size, reconnected]).toEqual([1, []]);
  hasAccess = true;
  await vi.advanceTimersByTimeAsync(SOON_MS);
  await told;
  expect([open.size, opened]).toEqual([0, []]);
  expect(reconnected).toEqual(["notebook", "file", "terminal"]);
  expect(refreshed).toEqual(["sessions", "kernels", "terminals"]);
  // It asks no more.
  expect([vi.getTimerCount(), listeners.size]).toEqual([0, 0]);
});

it("the person who comes back to the tab does not wait for the next question", async () => {
  void lost(manager, expired);
  hasAccess = true;
  await listeners.get("focus")?.();
  expect(reconnected).toContain("notebook");
});

it("a hidden tab asks nothing", async () => {
  void lost(manager, expired);
  [hasAccess, isHidden] = [true, true];
  await vi.advanceTimersByTimeAsync(SOON_MS);
  expect(reconnected).toEqual([]);
  isHidden = false;
  await listeners.get("visibilitychange")?.();
  expect(reconnected).toContain("notebook");
});

it("a closed dialog does not come back with the next attempt, but with the next expiry", async () => {
  const told = lost(manager, expired);
  shown[0]?.end(false);
  await told;
  for (let n = 0; n < 3; n++) await lost(manager, expired);
  expect(shown).toHaveLength(1);
  expect(opened).toEqual([]);
  hasAccess = true;
  await listeners.get("focus")?.();
  void lost(manager, expired);
  expect(shown).toHaveLength(2);
});

it("any other lost connection has JupyterLab's own dialog", async () => {
  await lost(manager, refused({}));
  await lost(manager, new TypeError("NetworkError"));
  expect([defaults, shown.length]).toEqual([2, 0]);
});
