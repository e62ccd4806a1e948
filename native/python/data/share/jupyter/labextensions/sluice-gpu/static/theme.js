/**
 * JupyterLab in the look of the portal: its accent color, and light or dark as the person chose it there or as the
 * system has it. A theme that the person chooses in JupyterLab wins.
 */

const SETTINGS = "@jupyterlab/apputils-extension:themes";
/** The gateway's address: server/contracts/gateway-paths.ts. */
const THEME_PATH = "/_sluice/theme";
/** JupyterLab waits for the first answer. */
const LIMIT_MS = 2_000;

/** The portal's accent in JupyterLab's own two themes (app/globals.css). Other themes stay as they are. */
const ACCENT = `
  body[data-jp-theme-name="JupyterLab Light"] { --jp-brand-color0: #084c5a; --jp-brand-color1: #0a6172;
    --jp-brand-color2: #7fb8c3; --jp-brand-color3: #dcf0f3; }
  body[data-jp-theme-name="JupyterLab Dark"] { --jp-brand-color0: #63c7d8; --jp-brand-color1: #1a8296;
    --jp-brand-color2: #155f6e; --jp-brand-color3: #10323a; }`;

/** The portal's choice, `last` when the gateway gives no answer, as after the end of the session. */
async function choice(last) {
  try {
    const answer = await fetch(THEME_PATH, { signal: AbortSignal.timeout(LIMIT_MS) });
    return answer.ok ? (await answer.json()).theme : last;
  } catch {
    return last;
  }
}

/**
 * Makes the portal's look the default in JupyterLab's settings. It settles before JupyterLab reads them, so that no
 * other theme is shown first. Writing the setting instead would make it the person's own choice.
 */
export async function makeTheme({ DefaultSchemaValidator, ISettingRegistry }) {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = await choice("system");
  const wanted = () => (chosen === "dark" || (chosen === "system" && dark.matches) ? "JupyterLab Dark" : "JupyterLab Light");

  const { prototype } = DefaultSchemaValidator;
  const validate = prototype.validateData;
  prototype.validateData = function (plugin, populate) {
    const errors = validate.call(this, plugin, populate);
    if (errors === null && plugin.id === SETTINGS) {
      const { user, composite } = plugin.data;
      if (user.theme === undefined && !user["adaptive-theme"]) composite.theme = wanted();
    }
    return errors;
  };

  return {
    id: "sluice-gpu:theme",
    description: "Shows JupyterLab in the portal's look.",
    autoStart: true,
    requires: [ISettingRegistry],
    activate: (_, registry) => {
      const style = document.createElement("style");
      style.textContent = ACCENT;
      document.head.append(style);
      // True: the settings are validated again, and whoever shows them is told.
      const apply = () => void registry.load(SETTINGS, true).catch(() => undefined);
      const ask = async () => {
        if (document.visibilityState === "hidden") return;
        const before = chosen;
        chosen = await choice(before);
        if (chosen !== before) apply();
      };
      dark.addEventListener("change", apply);
      // Whoever chooses another look does so in another tab.
      window.addEventListener("focus", ask);
      document.addEventListener("visibilitychange", ask);
    },
  };
}
