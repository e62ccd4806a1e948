/** The plugin of our JupyterLab extension that says when a session has ended. JupyterLab's own dialogs are stand-ins. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { constants, runInNewContext } from "node:vm";
import { beforeEach, expect, it } from "vitest";

const FILE = "native/python/data/share/jupyter/labextensions/sluice-gpu/static/remoteEntry.js";
const PORTAL = "https://portal.example.org/workspaces/ws-a";

type Plugin = { id: string; provides?: string; activate: () => ConnectionLost };
type ConnectionLost = (manager: unknown, error: unknown, translator?: unknown) => Promise<void>;
type Container = { init: (scope: unknown) => void; get: (name: string) => Promise<() => { default: Plugin[] }> };

let shown: { title: string }[];
let defaults: number;
let opened: string[];
let refreshed: number;
let focus: () => void;
let answer: boolean;
let lost: ConnectionLost;
const manager = { sessions: { refreshRunning: async () => void refreshed++ } };
const refusedWith = (headers: Record<string, string>) => ({ response: { status: 424, headers: new Headers(headers) } });
const expired = refusedWith({ "x-sluice-sign-in": PORTAL });

beforeEach(async () => {
  [shown, defaults, opened, refreshed, answer] = [[], 0, [], 0, true];
  const window = {
    _JUPYTERLAB: {} as Record<string, Container>,
    open: (url: string) => void opened.push(url),
    addEventListener: (_: string, listener: () => void) => {
      focus = listener;
    },
  };
  const document = { currentScript: { src: pathToFileURL(path.resolve(FILE)).href } };
  runInNewContext(
    readFileSync(path.resolve(FILE), "utf8"),
    { window, document, setTimeout, URL },
    // The file imports portal.js, which lies beside it.
    { importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER },
  );
  const standard: ConnectionLost = async () => void defaults++;
  const modules: Record<string, unknown> = {
    "@jupyterlab/application": { IConnectionLost: "IConnectionLost", ConnectionLost: standard },
    "@jupyterlab/apputils": {
      Dialog: { cancelButton: () => "cancel", okButton: () => "ok" },
      showDialog: async (options: { title: string }) => {
        shown.push(options);
        return { button: { accept: answer } };
      },
    },
  };
  const names = [
    "statusbar",
    "notebook",
    "apputils",
    "coreutils",
    "application",
    "mainmenu",
    "launcher",
    "ui-components",
  ];
  const scope = [...names.map((name) => `@jupyterlab/${name}`), "@lumino/widgets"].map((name) => [
    name,
    { "1.0.0": { loaded: true, get: async () => () => modules[name] ?? {} } },
  ]);
  const container = window._JUPYTERLAB["sluice-gpu"];
  container?.init(Object.fromEntries(scope));
  const plugins = (await container?.get("./extension"))?.().default ?? [];
  const plugin = plugins.find(({ provides }) => provides === "IConnectionLost");
  if (plugin === undefined) throw new Error("no plugin");
  lost = plugin.activate();
});

it("an expired session has a dialog that leads to the portal, and asks at once when the person is back", async () => {
  await lost(manager, expired);
  expect(shown).toMatchObject([{ title: "Session expired" }]);
  expect(opened).toEqual([PORTAL]);
  expect(refreshed).toBe(0);
  focus();
  expect(refreshed).toBe(1);
  expect(defaults).toBe(0);
});

it("a closed dialog does not come back with the next attempt", async () => {
  answer = false;
  for (let n = 0; n < 3; n++) await lost(manager, expired);
  expect(shown).toHaveLength(1);
  expect(opened).toEqual([]);
});

it("any other lost connection has JupyterLab's own dialog", async () => {
  await lost(manager, refusedWith({}));
  await lost(manager, new TypeError("NetworkError"));
  expect([defaults, shown.length]).toEqual([2, 0]);
});
