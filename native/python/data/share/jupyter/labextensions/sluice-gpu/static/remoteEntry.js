/**
 * JupyterLab's status bar shows what this workspace has borrowed. Written by hand as the module-federation container
 * that JupyterLab loads, so that the wheel needs no JavaScript build: `init` receives the shared modules, `get` gives
 * the plugin.
 */
(() => {
  let shared;

  /** The one version of a module that JupyterLab itself has loaded: tokens compare by identity. */
  async function sharedModule(name) {
    const versions = Object.values(shared[name] ?? {});
    const entry = versions.find((version) => version.loaded) ?? versions[0];
    if (entry === undefined) throw new Error(`JupyterLab shares no ${name}`);
    return (await entry.get())();
  }

  function makePlugin({ IStatusBar }, { Widget }, { PageConfig, URLExt }) {
    return {
      id: "sluice-gpu:status",
      description: "Shows the borrowed GPU in the status bar.",
      autoStart: true,
      requires: [IStatusBar],
      activate: (app, statusBar) => {
        const item = new Widget();
        item.addClass("jp-StatusBar-TextItem");
        item.node.style.lineHeight = "24px";
        statusBar.registerStatusItem("sluice-gpu:status", { item, align: "right", rank: 50 });
        const source = new EventSource(URLExt.join(PageConfig.getBaseUrl(), "sluice-gpu", "status"));
        source.onmessage = (event) => {
          const { text, detail } = JSON.parse(event.data);
          item.node.textContent = text;
          item.node.title = detail;
        };
        source.onerror = () => {
          // The browser connects again by itself; until then nothing outdated stands there.
          item.node.textContent = "";
          item.node.title = "";
        };
        app.restored.catch(() => source.close());
      },
    };
  }

  async function get(module) {
    if (module !== "./extension") throw new Error(`sluice-gpu has no module ${module}`);
    const modules = await Promise.all(
      ["@jupyterlab/statusbar", "@lumino/widgets", "@jupyterlab/coreutils"].map(sharedModule),
    );
    const plugin = makePlugin(...modules);
    return () => ({ __esModule: true, default: plugin });
  }

  window._JUPYTERLAB = window._JUPYTERLAB ?? {};
  window._JUPYTERLAB["sluice-gpu"] = {
    init: (scope) => {
      shared = scope;
    },
    get,
  };
})();
