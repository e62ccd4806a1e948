// @vitest-environment happy-dom
/** The portal's look in JupyterLab's settings, by JupyterLab's own registry of them. */
import path from "node:path";
import { pathToFileURL } from "node:url";
import { DefaultSchemaValidator, type ISettingRegistry, SettingRegistry } from "@jupyterlab/settingregistry";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

const FOLDER = path.resolve("native/python/data/share/jupyter/labextensions/sluice-gpu/static");
const SETTINGS = "@jupyterlab/apputils-extension:themes";

type Plugin = { activate: (app: unknown, registry: ISettingRegistry) => void };
type Access = { theme: string };
type ReadAccess = (last?: Access) => Promise<Access>;
type Theme = { makeTheme: (settingregistry: unknown, access: Access, readAccess: ReadAccess) => Plugin };

const load = async <T>(name: string) => (await import(pathToFileURL(path.join(FOLDER, name)).href)) as T;

let portal: string | undefined;
let systemIsDark: boolean;
let listeners: Map<string, () => Promise<void> | void>;
let saved: string[];

/** The person's own settings, as JSON, and what JupyterLab shows then. */
async function startLab(raw = "{}") {
  const { makeTheme } = await load<Theme>("theme.js");
  const { readAccess } = await load<{ readAccess: ReadAccess }>("session.js");
  // A class of its own: the extension changes it for good.
  class Validator extends DefaultSchemaValidator {
    override validateData(...given: Parameters<DefaultSchemaValidator["validateData"]>) {
      return super.validateData(...given);
    }
  }
  const settingregistry = { DefaultSchemaValidator: Validator, ISettingRegistry: "ISettingRegistry" };
  const plugin = makeTheme(settingregistry, await readAccess(), readAccess);
  const properties = {
    theme: { type: "string", default: "JupyterLab Light" },
    "adaptive-theme": { type: "boolean", default: false },
  };
  const schema = { type: "object", properties } as ISettingRegistry.ISchema;
  const settings = { id: SETTINGS, raw, schema, version: "1", data: { composite: {}, user: {} } };
  const connector = {
    fetch: async () => settings,
    list: async () => ({ ids: [SETTINGS], values: [settings] }),
    remove: async () => undefined,
    save: async (_: string, text: string) => void saved.push(text),
  };
  const registry = new SettingRegistry({ connector, plugins: [settings], validator: new Validator() });
  const themes: unknown[] = [];
  const loaded = await registry.load(SETTINGS);
  const note = () => themes.push(loaded.composite.theme);
  note();
  loaded.changed.connect(note);
  plugin.activate({}, registry);
  return { themes, loaded };
}

beforeEach(() => {
  [portal, systemIsDark, listeners, saved] = [
    "system",
    false,
    new Map<string, () => Promise<void> | void>(),
    [] as string[],
  ];
  const addEventListener = (name: string, listener: () => Promise<void> | void) => void listeners.set(name, listener);
  vi.spyOn(window, "addEventListener").mockImplementation(addEventListener as typeof window.addEventListener);
  const media = {
    addEventListener,
    get matches() {
      return systemIsDark;
    },
  };
  vi.spyOn(window, "matchMedia").mockReturnValue(media as unknown as MediaQueryList);
  vi.stubGlobal("fetch", async (address: string) => {
    expect(address).toBe("/_sluice/access");
    return Response.json({ refusal: null, theme: portal }, { status: portal === undefined ? 401 : 200 });
  });
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

it.each([
  ["light", true, "JupyterLab Light"],
  ["dark", false, "JupyterLab Dark"],
  ["system", true, "JupyterLab Dark"],
  ["system", false, "JupyterLab Light"],
  [undefined, true, "JupyterLab Dark"],
])("with %s in the portal and a dark system: %s, JupyterLab begins with %s", async (chosen, isDark, theme) => {
  [portal, systemIsDark] = [chosen, isDark];
  const { themes } = await startLab();
  expect(themes).toEqual([theme]);
});

it("another choice in the portal is shown when the person comes back, and is not saved as their own", async () => {
  const { themes } = await startLab();
  portal = "dark";
  await listeners.get("focus")?.();
  await expect.poll(() => themes).toEqual(["JupyterLab Light", "JupyterLab Dark"]);
  // The end of the session changes nothing.
  portal = undefined;
  await listeners.get("focus")?.();
  expect(themes.at(-1)).toBe("JupyterLab Dark");
  expect(saved).toEqual([]);
});

it("the system's change is shown at once where the portal follows the system", async () => {
  const { themes } = await startLab();
  systemIsDark = true;
  await listeners.get("change")?.();
  await expect.poll(() => themes.at(-1)).toBe("JupyterLab Dark");
  expect(saved).toEqual([]);
});

it.each(['{"theme": "JupyterLab Light"}', '{"adaptive-theme": true}'])(
  "with %s of the person's own, that wins",
  async (raw) => {
    portal = "dark";
    expect((await startLab(raw)).themes).toEqual(["JupyterLab Light"]);
  },
);

it("a theme that the person chooses in JupyterLab stays after another choice in the portal", async () => {
  const { themes, loaded } = await startLab();
  await loaded.set("theme", "JupyterLab Dark High Contrast");
  portal = "dark";
  await listeners.get("focus")?.();
  await listeners.get("change")?.();
  // The registry reads its defaults in the order in which it is asked.
  await loaded.set("adaptive-theme", false);
  expect(themes.at(-1)).toBe("JupyterLab Dark High Contrast");
});
