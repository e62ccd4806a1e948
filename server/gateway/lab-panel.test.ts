// @vitest-environment happy-dom
/** The buttons of the GPU panel in JupyterLab: enabled only where a press does something. JupyterLab is a stand-in. */
import path from "node:path";
import { pathToFileURL } from "node:url";
import { beforeAll, beforeEach, expect, it, vi } from "vitest";

const FILE = pathToFileURL(
  path.resolve("native/python/data/share/jupyter/labextensions/sluice-gpu/static/remoteEntry.js"),
).href;
const ALL = ["Attach", "Detach", "Keep 1 hour longer", "Why did it wait?", "Leave the queue"];

type Plugin = { id: string; activate: (app: unknown, tracker: unknown, palette: unknown) => void };
type Container = { init: (scope: unknown) => void; get: (name: string) => Promise<() => { default: Plugin[] }> };
type Kernel = { id: string; status: string; connectionStatus: string; requestExecute: (message: unknown) => unknown };

/** The open stream of the workspace's server. */
type Source = { onmessage: (event: { data: string }) => void };
let sources: Source[];
let plugins: Plugin[];
let node: HTMLElement;
let kernel: Kernel | undefined;
/** Ends what the panel runs. */
let end: () => void;
let redraw: (name: string) => void;

beforeAll(async () => {
  Object.defineProperty(document, "currentScript", { value: { src: FILE }, configurable: true });
  vi.stubGlobal("fetch", async () => Response.json({ refusal: null, theme: "light" }));
  await import(FILE);
});

beforeEach(async () => {
  sources = [];
  class TestSource implements Source {
    onmessage = (_: { data: string }) => undefined;
    constructor() {
      sources.push(this);
    }
  }
  vi.stubGlobal("EventSource", TestSource);
  class Widget {
    node = document.createElement("div");
    title = {};
    constructor() {
      node = this.node;
    }
  }
  class DefaultSchemaValidator {
    validateData = () => null;
  }
  const modules: Record<string, unknown> = {
    "@jupyterlab/coreutils": {
      PageConfig: { getBaseUrl: () => "/" },
      URLExt: { join: (...parts: string[]) => parts.join("") },
    },
    "@jupyterlab/settingregistry": { DefaultSchemaValidator },
    "@lumino/widgets": { Widget },
  };
  const names = ["statusbar", "notebook", "apputils", "application", "mainmenu", "launcher", "ui-components"];
  const scope = [...names.map((name) => `@jupyterlab/${name}`), ...Object.keys(modules)].map((name) => [
    name,
    { "1.0.0": { loaded: true, get: async () => () => modules[name] ?? {} } },
  ]);
  const { _JUPYTERLAB } = window as unknown as { _JUPYTERLAB: Record<string, Container> };
  const container = _JUPYTERLAB["sluice-gpu"];
  container?.init(Object.fromEntries(scope));
  plugins = (await container?.get("./extension"))?.().default ?? [];
  kernel = { id: "k", status: "idle", connectionStatus: "connected", requestExecute };
  open();
});

function requestExecute() {
  return { done: new Promise<void>((resolve) => (end = resolve)) };
}

/** Shows the panel beside a notebook. */
function open(): void {
  const followers = new Map<string, () => void>();
  redraw = (name) => followers.get(name)?.();
  const signal = (name: string) => ({ connect: (follower: () => void) => void followers.set(name, follower) });
  const sessionContext = {
    get session() {
      return { kernel };
    },
    kernelChanged: signal("kernelChanged"),
    statusChanged: signal("statusChanged"),
    connectionStatusChanged: signal("connectionStatusChanged"),
  };
  const tracker = { currentWidget: { sessionContext }, currentChanged: signal("currentChanged") };
  const app = { shell: { add: () => undefined }, commands: { addCommand: () => undefined } };
  plugins.find(({ id }) => id === "sluice-gpu:panel")?.activate(app, tracker, null);
  redraw("currentChanged");
}

const HELD = { kernelId: "k", isWorkspaces: false, name: "0.5 of soft-0", label: "", usedBytes: 0, memoryBytes: 1 };

/** What the server tells: by default an own quota of one GPU, and nothing borrowed. */
function tell(panel: object = {}): void {
  const quota = { gpuType: "soft", mostMilli: 1000, atOnceMilli: 1000 };
  const own = { gpuType: "soft", typed: "0.5", milli: 500 };
  const nothing = { types: [quota], default: own, policy: "ask", held: [], waiting: [], history: [] };
  sources.at(-1)?.onmessage({ data: JSON.stringify({ text: "", detail: "told", panel: { ...nothing, ...panel } }) });
}

const buttons = () => [...node.querySelectorAll("button")];
const enabled = () => buttons().flatMap(({ disabled, textContent }) => (disabled ? [] : [textContent]));
const press = (name: string) =>
  buttons()
    .find(({ textContent }) => textContent === name)
    ?.click();

it("none before the server has told what there is", () => {
  expect(buttons().map(({ textContent }) => textContent)).toEqual(ALL);
  expect(enabled()).toEqual([]);
});

it.each([
  ["nothing borrowed: Attach", {}, ["Attach"]],
  ["no quota: none", { types: [] }, []],
  ["the GPU policy never: none", { policy: "never" }, []],
  ["attached", { held: [{ ...HELD, state: "attached", computePercent: 5 }] }, ["Detach", "Keep 1 hour longer"]],
  ["idle", { held: [{ ...HELD, state: "idle", computePercent: 0 }] }, ["Detach", "Keep 1 hour longer"]],
  ["taken back soon", { held: [{ ...HELD, state: "reclaim", computePercent: 0 }] }, ["Detach", "Keep 1 hour longer"]],
  ["waiting: Leave the queue", { waiting: [{ kernelId: "k", place: "1st" }] }, ["Leave the queue"]],
  ["another notebook waits: Attach", { waiting: [{ kernelId: "other", place: "1st" }] }, ["Attach"]],
])("with %s", (_, panel, wanted) => {
  tell(panel);
  expect(enabled()).toEqual(wanted);
});

it("Why did it wait? once the notebook has waited", () => {
  tell({ waiting: [{ kernelId: "k", place: "1st" }] });
  tell();
  expect(enabled()).toEqual(["Attach", "Why did it wait?"]);
});

it("none while a press is at work, then again", async () => {
  tell();
  press("Attach");
  expect(enabled()).toEqual([]);
  end();
  await expect.poll(enabled).toEqual(["Attach"]);
});

it.each([
  ["no kernel", undefined],
  ["a dead kernel", { status: "dead" }],
  ["a kernel that is reconnecting", { connectionStatus: "connecting" }],
  ["a disconnected kernel", { connectionStatus: "disconnected" }],
])("none with %s, whose hint says what to do", (_, state) => {
  tell({ waiting: [{ kernelId: "k", place: "1st" }] });
  if (state === undefined) kernel = undefined;
  else if (kernel !== undefined) Object.assign(kernel, state);
  redraw("connectionStatusChanged");
  expect(enabled()).toEqual([]);
  expect(node.textContent).toMatch(/Start one to borrow a GPU|Reconnect or restart it to borrow a GPU/);
});
