/**
 * JupyterLab in the look of the portal: its accent color, and light or dark as the person chose it there or as the
 * system has it. A theme that the person chooses in JupyterLab wins.
 */

const SETTINGS = "@jupyterlab/apputils-extension:themes";
/** The portal's accent in JupyterLab's own two themes (app/globals.css). Other themes stay as they are. */
const ACCENT = `
  body[data-jp-theme-name="JupyterLab Light"] { --jp-brand-color0: #084c5a; --jp-brand-color1: #0a6172;
    --jp-brand-color2: #7fb8c3; --jp-brand-color3: #dcf0f3; }
  body[data-jp-theme-name="JupyterLab Dark"] { --jp-brand-color0: #63c7d8; --jp-brand-color1: #1a8296;
    --jp-brand-color2: #155f6e; --jp-brand-color3: #10323a; }`;

/**
 * Makes the portal's look the default in JupyterLab's settings, before JupyterLab reads them, so that no other theme is
 * shown first. Writing the setting instead would make it the person's own choice. `access` is the gateway's answer that
 * `readAccess` asks for again.
 */
export function makeTheme({ DefaultSchemaValidator, ISettingRegistry }, access, readAccess) {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => access.theme === "dark" || (access.theme === "system" && dark.matches);

  const { prototype } = DefaultSchemaValidator;
  const validate = prototype.validateData;
  prototype.validateData = function (plugin, populate) {
    const errors = validate.call(this, plugin, populate);
    if (errors === null && plugin.id === SETTINGS) {
      const { user, composite } = plugin.data;
      if (user.theme === undefined && !user["adaptive-theme"]) composite.theme = `JupyterLab ${isDark() ? "Dark" : "Light"}`;
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
      // `true` validates the settings again and tells every listener.
      const apply = () => void registry.load(SETTINGS, true).catch(() => undefined);
      const ask = async () => {
        if (document.visibilityState === "hidden") return;
        const before = access.theme;
        access = await readAccess(access);
        if (access.theme !== before) apply();
      };
      dark.addEventListener("change", apply);
      // The person chooses another look in another tab.
      window.addEventListener("focus", ask);
      document.addEventListener("visibilitychange", ask);
    },
  };
}
