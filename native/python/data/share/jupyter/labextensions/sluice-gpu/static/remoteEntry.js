/**
 * JupyterLab's status bar shows what this workspace has borrowed; a panel at the right borrows and gives back for the
 * notebook in front, says why it waits, and lists what was borrowed before. What belongs to the portal is in portal.js,
 * the end of its session in session.js, its look in theme.js. Written by hand as the module-federation container that
 * JupyterLab loads, so that the wheel needs no JavaScript build: `init` receives the shared modules, `get` gives the
 * plugins.
 */
(() => {
  const PANEL = "sluice-gpu-panel";
  const STREAM_RETRY_MS = 15_000;
  const BORROW = "sluice-gpu:open";
  /** Modules beside this file. `currentScript` is set only while this script runs. */
  const MODULES = ["portal.js", "session.js", "theme.js"].map((name) => new URL(name, document.currentScript.src).href);
  let shared;

  /** The one version of a module that JupyterLab itself has loaded: tokens compare by identity. */
  async function sharedModule(name) {
    const versions = Object.values(shared[name] ?? {});
    const entry = versions.find((version) => version.loaded) ?? versions[0];
    if (entry === undefined) throw new Error(`JupyterLab shares no ${name}`);
    return (await entry.get())();
  }

  /** What the workspace's own server tells, to everybody who follows: one stream for status bar and panel. */
  function makeStream({ PageConfig, URLExt }) {
    const followers = [];
    let last;
    const tell = (told) => {
      last = told;
      for (const follower of followers) follower(told);
    };
    return (follower) => {
      followers.push(follower);
      if (last !== undefined) follower(last);
      if (followers.length > 1) return;
      const open = () => {
        const source = new EventSource(URLExt.join(PageConfig.getBaseUrl(), "sluice-gpu", "status"));
        source.onmessage = (event) => tell(JSON.parse(event.data));
        source.onerror = () => {
          // Clear the display until the connection is back.
          tell({ text: "", detail: "", panel: null });
          // The browser connects again by itself, but not after a refusal: the person may have to sign in first.
          if (source.readyState === EventSource.CLOSED) setTimeout(open, STREAM_RETRY_MS);
        };
      };
      open();
    };
  }

  function makeStatus({ IStatusBar }, { Widget }, follow) {
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
        follow(({ text, detail }) => {
          item.node.textContent = text;
          item.node.title = detail;
        });
      },
    };
  }

  /** Parts of a GPU that a slider goes through, thousandths. */
  const AMOUNTS = [100, 250, 500, 750, 1000, 2000, 3000, 4000, 6000, 8000];
  const WAITS = [
    ["0", "Not at all: now or never"],
    ["2m", "2 minutes"],
    ["10m", "10 minutes"],
    ["1h", "1 hour"],
  ];
  /** Display texts of lease states. */
  const STATES = { attached: "attached", idle: "idle", reclaim: "taken back soon" };
  const gpus = (milli) => String(milli / 1000);

  const STYLE = `
    #${PANEL} { padding: 12px; overflow: auto; color: var(--jp-ui-font-color1); background: var(--jp-layout-color1);
      font-size: var(--jp-ui-font-size1); min-width: 240px; }
    #${PANEL} h2 { font-size: var(--jp-ui-font-size2); margin: 0 0 8px; }
    #${PANEL} h3 { font-size: var(--jp-ui-font-size1); margin: 16px 0 6px; }
    #${PANEL} label { display: block; margin-top: 10px; }
    #${PANEL} input[type=range], #${PANEL} select { width: 100%; margin-top: 4px; box-sizing: border-box; }
    #${PANEL} select, #${PANEL} button { color: var(--jp-ui-font-color1); background: var(--jp-layout-color2);
      border: 1px solid var(--jp-border-color1); border-radius: 3px; padding: 4px 8px; font: inherit; }
    #${PANEL} button { margin: 10px 6px 0 0; cursor: pointer; }
    #${PANEL} button:disabled { opacity: 0.5; cursor: default; }
    #${PANEL} :focus-visible { outline: 2px solid var(--jp-brand-color1); outline-offset: 1px; }
    #${PANEL} pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 10px 0 0; font-size: var(--jp-code-font-size);
      font-family: var(--jp-code-font-family); color: var(--jp-ui-font-color1); }
    #${PANEL} meter { width: 100%; height: 10px; margin-top: 2px; }
    #${PANEL} [data-state=reclaim] { border-left: 3px solid var(--jp-warn-color1); padding-left: 6px; }
    #${PANEL} [data-state=idle] { border-left: 3px solid var(--jp-border-color1); padding-left: 6px; }
    #${PANEL} [data-state=attached] { border-left: 3px solid var(--jp-success-color1); padding-left: 6px; }
    #${PANEL} p { margin: 4px 0; } #${PANEL} .quiet { color: var(--jp-ui-font-color1); opacity: 0.85; }
    #${PANEL} ul { list-style: none; padding: 0; margin: 0; }
    #${PANEL} li { padding: 6px 0; border-top: 1px solid var(--jp-border-color2); }`;

  /** An element with attributes and children. */
  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  class Panel {
    constructor(node, tracker) {
      this.tracker = tracker;
      this.running = undefined;
      this.told = undefined;
      /** Kernels that have waited or were refused: `%gpu why` has something to say to them. */
      this.waited = new Set();
      this.redraw = () => this.draw();
      this.state = element("p", { role: "status" }, "");
      this.gauges = element("div");
      this.hint = element("p", { class: "quiet" });
      this.slider = element("input", { type: "range", min: "0", max: "0", step: "1", id: `${PANEL}-amount` });
      this.amount = element("output", { for: `${PANEL}-amount` });
      this.free = element("p", { class: "quiet" });
      this.type = element("select", { id: `${PANEL}-type` });
      this.wait = element("select", { id: `${PANEL}-wait` });
      for (const [value, words] of WAITS) this.wait.append(element("option", { value }, words));
      this.wait.value = "2m";
      this.said = element("pre", { role: "log", "aria-live": "polite", "aria-label": "What the notebook answered" });
      this.history = element("ul");
      this.buttons = {
        attach: this.button("Attach", () => this.attach()),
        detach: this.button("Detach", () => this.run("detach")),
        extend: this.button("Keep 1 hour longer", () => this.run("extend 1h")),
        why: this.button("Why did it wait?", () => this.run("why")),
        leave: this.button("Leave the queue", () => this.kernel()?.interrupt()),
      };
      this.slider.addEventListener("input", () => this.drawAmount());
      this.type.addEventListener("change", () => this.drawSlider());
      node.append(
        element("style", {}, STYLE),
        element("h2", {}, "GPU of this workspace"),
        this.state,
        this.gauges,
        element("label", { for: `${PANEL}-amount` }, "Amount: ", this.amount),
        this.slider,
        this.free,
        element("label", { for: `${PANEL}-type` }, "GPU type"),
        this.type,
        element("label", { for: `${PANEL}-wait` }, "Wait in the queue"),
        this.wait,
        element("div", {}, ...Object.values(this.buttons)),
        this.hint,
        this.said,
        element("h3", {}, "Borrowed before"),
        this.history,
      );
      tracker.currentChanged.connect(() => {
        const context = tracker.currentWidget?.sessionContext;
        // Connecting the same function twice has no effect.
        for (const name of ["kernelChanged", "statusChanged", "connectionStatusChanged"]) context?.[name].connect(this.redraw);
        this.draw();
      });
      this.draw();
    }

    /** The kernel of the active notebook. */
    kernel() {
      return this.tracker.currentWidget?.sessionContext.session?.kernel ?? undefined;
    }

    button(words, act) {
      const made = element("button", { type: "button" }, words);
      made.addEventListener("click", () => void act());
      return made;
    }

    show(told) {
      const before = this.offered();
      this.told = told;
      // What is being chosen stays as it is while nothing to choose from has changed.
      if (before !== this.offered()) {
        const now = this.types();
        const chosen = this.type.value;
        this.type.replaceChildren(...now.map(({ gpuType }) => element("option", { value: gpuType }, gpuType)));
        this.type.value = now.some(({ gpuType }) => gpuType === chosen) ? chosen : (now[0]?.gpuType ?? "");
        this.drawSlider();
      }
      this.draw();
    }

    types() {
      return this.told?.panel?.types ?? [];
    }

    /** What there is to choose from, in one text. */
    offered() {
      return JSON.stringify([
        this.told?.panel?.default,
        this.types().map(({ gpuType, mostMilli }) => [gpuType, mostMilli]),
      ]);
    }

    chosen() {
      return this.types().find(({ gpuType }) => gpuType === this.type.value);
    }

    /** Where the slider can stand: parts of a GPU, and the workspace's default amount as its policy has it, e.g. `2G`. */
    amounts() {
      const chosen = this.chosen();
      if (chosen === undefined) return [];
      const parts = AMOUNTS.map((milli) => ({ milli, typed: gpus(milli) }));
      const own = this.told.panel.default;
      // What memory comes to on another type is not known here.
      const all = own.gpuType === chosen.gpuType ? [...parts.filter(({ milli }) => milli !== own.milli), own] : parts;
      return all.filter(({ milli }) => milli <= chosen.mostMilli).sort((a, b) => a.milli - b.milli);
    }

    /** Where the slider stands; undefined when there is nothing to choose. */
    wanted() {
      return this.amounts()[Number(this.slider.value)];
    }

    drawSlider() {
      const amounts = this.amounts();
      const most = this.told?.panel?.default.milli ?? 0;
      this.slider.max = String(Math.max(0, amounts.length - 1));
      this.slider.value = String(Math.max(0, amounts.findLastIndex(({ milli }) => milli <= most)));
      this.drawAmount();
    }

    drawAmount() {
      const { milli, typed } = this.wanted() ?? {};
      const part = `${gpus(milli)} GPU`;
      this.amount.textContent = milli === undefined ? "none" : typed === gpus(milli) ? part : `${typed} (${part})`;
      this.slider.setAttribute("aria-valuetext", this.amount.textContent);
      const atOnce = this.chosen()?.atOnceMilli ?? 0;
      this.free.textContent =
        milli === undefined
          ? this.told?.panel == null
            ? ""
            : "The team has no GPU quota. Ask an admin to give it one."
          : milli <= atOnce
            ? "Granted at once."
            : `Waits in the queue: ${gpus(atOnce)} would be granted at once.`;
    }

    draw() {
      const panel = this.told?.panel;
      const id = this.kernel()?.id;
      for (const { kernelId } of panel?.waiting ?? []) this.waited.add(kernelId);
      const held = panel?.held ?? [];
      const owns = held.some(({ kernelId, isWorkspaces }) => isWorkspaces || kernelId === id);
      const waits = (panel?.waiting ?? []).some(({ kernelId }) => kernelId === id);
      const kernel = this.kernel();
      // A dead kernel runs nothing, and what is sent to a disconnected one waits without an end.
      const answers = kernel !== undefined && kernel.status !== "dead" && kernel.connectionStatus === "connected";
      const able = answers && panel != null && this.running === undefined;
      const mayBorrow = panel?.policy !== "never";
      this.state.textContent = this.told?.detail || "Connecting to the workspace's server.";
      this.buttons.attach.disabled = !able || owns || waits || !mayBorrow || this.amounts().length === 0;
      this.buttons.detach.disabled = !able || !owns;
      this.buttons.extend.disabled = !able || !owns;
      this.buttons.why.disabled = !able || waits || !this.waited.has(id);
      this.buttons.leave.disabled = !answers || !waits;
      this.hint.textContent =
        this.tracker.currentWidget === null
          ? "Open a notebook to borrow a GPU for it."
          : id === undefined
            ? "This notebook has no kernel. Start one to borrow a GPU."
            : !answers
              ? "This notebook's kernel does not answer. Reconnect or restart it to borrow a GPU."
              : mayBorrow
                ? ""
                : "This workspace's GPU policy is never. The portal changes it under Settings of the workspace.";
      this.gauges.replaceChildren(...held.map(gauges));
      this.drawAmount();
      const rows = this.told?.panel?.history ?? [];
      this.history.replaceChildren(
        ...rows.map(({ amount, label, from, to, end }) => {
          const until = to === null ? "until now" : `for ${duration(Date.parse(to) - Date.parse(from))}`;
          const when = new Date(from).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
          const whose = label === "" ? "" : `, ${label}`;
          return element("li", {}, `${amount}${whose}`, element("p", { class: "quiet" }, [when, until, end].filter(Boolean).join(", ")));
        }),
        ...(rows.length === 0 ? [element("li", {}, "Nothing yet.")] : []),
      );
    }

    attach() {
      return this.run(`attach ${this.wanted().typed} --type ${this.type.value} --wait ${this.wait.value}`);
    }

    /** The notebook itself does it: the GPU belongs to its kernel, and its own code speaks to the broker. */
    async run(line) {
      const kernel = this.kernel();
      if (kernel === undefined) return;
      this.said.textContent = kernel.status === "busy" ? "Waits for the running cell." : "";
      this.running = kernel.id;
      this.draw();
      const code = `get_ipython().run_line_magic("gpu", ${JSON.stringify(line)})`;
      const future = kernel.requestExecute({ code, store_history: false, allow_stdin: false });
      future.onIOPub = ({ header, content }) => this.hear(header.msg_type, content);
      try {
        await future.done;
      } catch (error) {
        this.said.textContent = `The kernel gave no answer: ${error.message}`;
      } finally {
        this.running = undefined;
        this.draw();
      }
    }

    hear(kind, content) {
      if (kind === "clear_output" || kind === "update_display_data") this.said.textContent = "";
      if (kind === "stream") this.say(content.text);
      if (kind === "display_data" || kind === "update_display_data") this.say(`${content.data["text/plain"] ?? ""}\n`);
      if (kind !== "error") return;
      if (/^Gpu(Refused|NotGranted)$/.test(content.ename)) this.waited.add(this.running);
      this.say(`${content.ename}: ${content.evalue}\n`);
    }

    say(text) {
      if (this.said.textContent === "Waits for the running cell.") this.said.textContent = "";
      this.said.textContent += text;
    }
  }

  /** Memory use and utilization of the GPU of a lease. */
  function gauges({ state, name, label, usedBytes, memoryBytes, computePercent }) {
    const gib = (bytes) => (bytes / 2 ** 30).toFixed(1);
    const whose = label === "" ? "" : ` (${label})`;
    const gauge = (title, value, max, text) => {
      const meter = element("meter", { min: "0", max: String(max), value: String(value), "aria-label": title });
      return element("p", {}, `${title}: ${text}`, meter);
    };
    return element(
      "div",
      { "data-state": state },
      element("p", {}, `${name}${whose}: ${STATES[state]}`),
      gauge("GPU memory", usedBytes, memoryBytes, `${gib(usedBytes)} of ${gib(memoryBytes)} GiB`),
      gauge("GPU compute", computePercent, 100, `${Math.round(computePercent)} % of the share, last minute`),
    );
  }

  function duration(ms) {
    const minutes = Math.floor(ms / 60_000);
    if (minutes < 1) return `${Math.max(0, Math.floor(ms / 1000))} s`;
    return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
  }

  function makePanel({ INotebookTracker }, { ICommandPalette }, { Widget }, follow) {
    return {
      id: "sluice-gpu:panel",
      description: "Borrows a GPU for the notebook in front and gives it back.",
      autoStart: true,
      requires: [INotebookTracker],
      optional: [ICommandPalette],
      activate: (app, tracker, palette) => {
        const widget = new Widget();
        widget.id = PANEL;
        widget.title.label = "GPU";
        widget.title.caption = "Borrow a GPU for the notebook in front";
        widget.node.setAttribute("role", "region");
        widget.node.setAttribute("aria-label", "GPU");
        widget.node.tabIndex = -1;
        const panel = new Panel(widget.node, tracker);
        follow((told) => panel.show(told));
        app.shell.add(widget, "right", { rank: 600 });
        app.commands.addCommand(BORROW, {
          label: "Borrow a GPU",
          execute: () => {
            app.shell.activateById(PANEL);
            // The palette gives the focus back when it closes, which is after this.
            setTimeout(() => panel.slider.focus(), 100);
          },
        });
        palette?.addItem({ command: BORROW, category: "Sluice" });
      },
    };
  }

  async function get(module) {
    if (module !== "./extension") throw new Error(`sluice-gpu has no module ${module}`);
    const [portal, session, theme] = await Promise.all(MODULES.map((url) => import(url)));
    const names = ["statusbar", "notebook", "apputils", "coreutils", "application", "mainmenu", "launcher"];
    const more = ["@jupyterlab/ui-components", "@jupyterlab/settingregistry", "@lumino/widgets"];
    const [access, ...modules] = await Promise.all([
      session.readAccess(),
      ...[...names.map((name) => `@jupyterlab/${name}`), ...more].map(sharedModule),
    ]);
    const [statusbar, notebook, apputils, coreutils, application, mainmenu, launcher, components, settings, widgets] = modules;
    // A viewer's stream is refused.
    const told = { text: "", detail: access.refusal, panel: null };
    const follow = access.refusal === null ? makeStream(coreutils) : (follower) => follower(told);
    const plugins = [
      portal.makeViewer(widgets, access.refusal),
      makeStatus(statusbar, widgets, follow),
      makePanel(notebook, apputils, widgets, follow),
      session.makeConnectionLost(application, apputils),
      portal.makeMenu(mainmenu, apputils, widgets, follow, BORROW),
      theme.makeTheme(settings, access, session.readAccess),
      portal.makeTabTitle(follow),
      portal.makeExamples(launcher, components),
    ];
    return () => ({ __esModule: true, default: plugins });
  }

  window._JUPYTERLAB = window._JUPYTERLAB ?? {};
  window._JUPYTERLAB["sluice-gpu"] = {
    init: (scope) => {
      shared = scope;
    },
    get,
  };
})();
