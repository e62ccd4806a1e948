/**
 * The portal in JupyterLab: the menu, the workspace's name in the browser's tab, the examples in the launcher, and the
 * read-only mode of viewers. `follow` calls back with each status of the workspace's server (see remoteEntry.js).
 */

const OPEN_EXAMPLE = "sluice:open-example";

/** Commands that open a page of the portal in a new tab. The portal confirms destructive actions itself. */
const PAGES = [
  { id: "sluice:portal", label: "Open portal", path: () => "/workspaces" },
  { id: "sluice:workspace", label: "Open this workspace's page", path: (id) => `/workspaces/${id}` },
  { id: "sluice:share", label: "Share workspace…", path: (id) => `/workspaces/${id}/people` },
  { id: "sluice:stop", label: "Stop workspace…", path: (id) => `/workspaces/${id}` },
  { id: "sluice:sign-out", label: "Sign out…", path: () => "/settings" },
];

/** JupyterLab's own *Shut Down* and *Log Out* are switched off in the server's settings: the portal has both. */
export function makeMenu({ IMainMenu }, { ICommandPalette }, { Menu }, follow, borrow) {
  return {
    id: "sluice-gpu:menu",
    description: "A menu for the portal, the GPU, and the end of the workspace.",
    autoStart: true,
    requires: [IMainMenu],
    optional: [ICommandPalette],
    activate: (app, mainMenu, palette) => {
      let portal = {};
      for (const { id, label, path } of PAGES) {
        app.commands.addCommand(id, {
          label,
          isEnabled: () => Boolean(portal.url && portal.workspaceId),
          execute: () => {
            window.open(portal.url.replace(/\/$/, "") + path(portal.workspaceId), "_blank", "noopener");
          },
        });
        palette?.addItem({ command: id, category: "Sluice" });
      }
      const menu = new Menu({ commands: app.commands });
      menu.id = "sluice-gpu-menu";
      menu.title.label = "Sluice";
      for (const command of ["sluice:portal", "sluice:workspace", "sluice:share"]) menu.addItem({ command });
      menu.addItem({ type: "separator" });
      menu.addItem({ command: borrow });
      menu.addItem({ type: "separator" });
      for (const command of ["sluice:stop", "sluice:sign-out"]) menu.addItem({ command });
      mainMenu.addMenu(menu, true, { rank: 900 });
      mainMenu.fileMenu.addGroup([{ command: "sluice:stop" }, { command: "sluice:sign-out" }], 1000);
      follow((told) => {
        if (told.portal === undefined) return;
        portal = told.portal;
        app.commands.notifyCommandChanged();
      });
    },
  };
}

/** Tab titles begin with the workspace's name, because several workspaces can be open at a time. */
export function makeTabTitle(follow) {
  return {
    id: "sluice-gpu:tab-title",
    description: "Puts the workspace's name in front of the title of the browser's tab.",
    autoStart: true,
    activate: () => {
      let shown = "";
      const draw = (name) => {
        const title = document.title.startsWith(shown) ? document.title.slice(shown.length) : document.title;
        shown = name;
        if (document.title !== shown + title) document.title = shown + title;
      };
      follow((told) => {
        // A title that is read back has single spaces.
        if (told.panel) draw(`${told.panel.workspace.replace(/\s+/g, " ").trim()}: `);
      });
      new MutationObserver(() => draw(shown)).observe(document.head, {
        ...{ subtree: true, childList: true, characterData: true },
      });
    },
  };
}

/** The example notebooks in the home. Without their folder, the launcher has no such category. */
export function makeExamples({ ILauncher }, { notebookIcon }) {
  return {
    id: "sluice-gpu:examples",
    description: "Lists the example notebooks in the launcher.",
    autoStart: true,
    requires: [ILauncher],
    activate: (app, launcher) => {
      app.commands.addCommand(OPEN_EXAMPLE, {
        label: ({ path }) => (path ? nameOf(path) : "Open example"),
        caption: ({ path }) => (path ? `Open ${path}` : "Open an example notebook"),
        icon: notebookIcon,
        execute: ({ path }) => app.commands.execute("docmanager:open", { path }),
      });
      const { contents } = app.serviceManager;
      const list = async () => {
        // To ask for a folder that does not exist leaves an error in the browser's console.
        const home = await contents.get("");
        if (!home.content.some(({ name, type }) => name === "examples" && type === "directory")) return;
        const { content } = await contents.get("examples");
        const paths = content.filter(({ type }) => type === "notebook").map(({ path }) => path);
        for (const [rank, path] of paths.sort().entries())
          launcher.add({ command: OPEN_EXAMPLE, args: { path }, category: "Examples", rank });
      };
      // Not awaited: JupyterLab can start without the examples.
      void list().catch(() => undefined);
    },
  };
}

const nameOf = (path) => path.replace(/^.*\//, "").replace(/\.ipynb$/, "");

/**
 * A viewer's documents are read-only and start no kernel, under a banner that says so. The gateway refuses all that a
 * viewer may not do; this shows it before it is tried. `refusal` is its reason, null with full access.
 */
export function makeViewer({ Widget }, refusal) {
  return {
    id: "sluice-gpu:viewer",
    description: "Shows a viewer that the workspace is read-only.",
    autoStart: true,
    activate: (app) => {
      if (refusal === null) return;
      const { contents } = app.serviceManager;
      const get = contents.get.bind(contents);
      contents.get = async (...asked) => locked(await get(...asked));
      const { docRegistry } = app;
      docRegistry.addWidgetExtension("Notebook", { createNew: (_, { model }) => lockNewCells(model) });
      docRegistry.addWidgetExtension("Editor", {
        // JupyterLab sets the options of a new editor from the person's settings, which is over when the file is read.
        createNew: ({ content }, { ready }) => void ready.then(() => content.editor.setOption("readOnly", true)),
      });
      const preference = docRegistry.getKernelPreference.bind(docRegistry);
      docRegistry.getKernelPreference = (...asked) => {
        const found = preference(...asked);
        return found && { ...found, canStart: false, shouldStart: false };
      };
      const banner = new Widget();
      banner.id = "sluice-gpu-viewer";
      banner.node.setAttribute("role", "status");
      banner.node.textContent = `Read-only. ${refusal}`;
      Object.assign(banner.node.style, {
        ...{ minHeight: "28px", lineHeight: "28px", padding: "0 12px", overflow: "hidden", textOverflow: "ellipsis" },
        ...{ whiteSpace: "nowrap", color: "var(--jp-ui-font-color1)", background: "var(--jp-layout-color2)" },
        borderBottom: "2px solid var(--jp-warn-color1)",
      });
      banner.node.title = banner.node.textContent;
      app.shell.add(banner, "header", { rank: 0 });
    },
  };
}

/** A document as it is read, with cells that cannot be edited or deleted. */
function locked(file) {
  if (file.type === "notebook" && file.content) {
    for (const cell of file.content.cells ?? [])
      cell.metadata = { ...cell.metadata, editable: false, deletable: false };
  }
  return { ...file, writable: false };
}

/** Cells that are added could not be saved. */
function lockNewCells({ cells }) {
  cells.changed.connect((_, { newValues }) => {
    for (const cell of newValues) if (cell.getMetadata("editable") !== false) cell.setMetadata("editable", false);
  });
}
