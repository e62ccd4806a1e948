/** What there is to draw: every page of the portal, each as often as it has to look well, and the index of them all. */
import { readdirSync } from "node:fs";
import path from "node:path";

/** Where the pictures lie, from the repository's root. */
export const FOLDER = path.join("docs", "pages");

/** The windows that are drawn, in pixels; a long page is cut at `most`, and a wide one kept at a smaller `scale`. */
export const WINDOWS = [
  { width: 390, height: 844, most: 2000, scale: 1 },
  { width: 1440, height: 900, most: 1600, scale: 1 },
  { width: 2560, height: 1440, most: 1440, scale: 0.5 },
] as const;
export const THEMES = ["light", "dark"] as const;

export type Window = (typeof WINDOWS)[number];
export type Theme = (typeof THEMES)[number];

/** The routes of all pages, from the files themselves: `/workspaces/[id]/log`. The first page only leads on. */
export function routes(): string[] {
  return readdirSync("app", { recursive: true, encoding: "utf8" })
    .filter((file) => path.basename(file) === "page.tsx")
    .map((file) => `/${path.dirname(file).replace(/\(\w+\)\/?/g, "")}`)
    .filter((route) => route !== "/")
    .sort();
}

/** Each page by its route, in the order of the tree: its title, and what it is for. */
export const PAGES = {
  "/setup": ["Set up", "The first page of a new installation: one form makes the first admin."],
  "/sign-in": ["Sign in", "The way in, by a local account or the house's identity provider."],
  "/invite/[code]": ["Invitation", "Where the link of an invitation leads: a name, a password, and one is in."],
  "/password/[code]": ["New password", "Where an admin's link leads whoever forgot the password."],
  "/workspaces": ["Workspaces", "One's own, with what each holds and when it stops, then those that one answers for."],
  "/workspaces/new": ["Launch", "An environment, a size, a team, and what it costs, before anything is started."],
  "/workspaces/[id]": ["Workspace", "The steps of its start, what it uses, and the GPU that it holds."],
  "/workspaces/[id]/notebooks": ["Notebooks of a workspace", "The kernels that run, to interrupt and to shut down."],
  "/workspaces/[id]/gpu": ["GPUs of a workspace", "What it has borrowed, now and before."],
  "/workspaces/[id]/log": ["Log of a workspace", "What its starts and its GPUs said."],
  "/workspaces/[id]/people": ["People of a workspace", "Who may look, who may work in it, and the link for them."],
  "/workspaces/[id]/settings": ["Settings of a workspace", "Policy, limits, size, datasets, variables and secrets."],
  "/shared/[id]": ["Shared workspace", "What the link of a workspace tells those who were not invited."],
  "/tour": ["Tour", "Ninety seconds in which two notebooks share a GPU."],
  "/gpus": ["GPUs", "What one holds, what one waits for and why, and what is free."],
  "/gpus/works-here": ["Works here?", "Which packages were tried on which GPU types, and what of their tests passed."],
  "/datasets": ["Datasets", "Files that workspaces find at ~/datasets."],
  "/teams": ["Teams and quotas", "Every team's quota of every type, what is borrowed and what is lent."],
  "/teams/[name]": [
    "Team",
    "Quota, budget, calendar, reservations, policy, members and invitations; an admin archives the team.",
  ],
  "/pool": ["Pool", "Every device with its leases by team, the queue with its reasons, and who lets GPUs lie idle."],
  "/queue": ["Queue", "Who waits for GPUs of which type, at which place, and why."],
  "/health": ["Health", "Every part of the installation, what is wrong first, each with its next step."],
  "/usage": ["Usage", "GPU time in the pool, by state and by team."],
  "/what-if": ["What-if", "The demand of the log, played again on another pool."],
  "/costs": ["Costs", "What the hardware cost, and who had it."],
  "/gpu-audit": ["GPU audit", "What GPU time did nothing in a month, in hours and in money, and who held it."],
  "/people": ["People", "Everybody with an account, their teams and rights."],
  "/environments": ["Environments", "What is offered, proposed and retired."],
  "/environments/[id]": ["Environment", "What is inside, with licences, and how its test went."],
  "/sizes": ["Sizes", "What workspaces may have of processor and memory."],
  "/policies": ["Policies", "Limits of idle and lease times, and whether teams share a GPU, by team."],
  "/calendars": ["Calendars", "How quotas and kinds of work differ by weekday and hour, and what is reserved."],
  "/audit": ["Audit", "Who did what, when, and from where."],
  "/notices": ["Notices", "What one was told, and what of it is unread."],
  "/settings": ["Settings", "Tokens, browsers that are signed in, theme and time zone."],
} as const satisfies Record<string, readonly [title: string, purpose: string]>;

export type Route = keyof typeof PAGES;

/** A picture's file name, e.g. `workspaces-id-log-390-dark.webp`. */
export function fileOf(route: string, { width }: Window, theme: Theme): string {
  const words = route.split(/[/[\]]+/).filter((word) => word !== "");
  return `${[...words, width, theme].join("-")}.webp`;
}

/** How wide the index shows each window, so that the three stand beside each other. */
const SHOWN: Record<Window["width"], number> = { 390: 120, 1440: 360, 2560: 400 };

/** The README beside the pictures. */
export function index(): string {
  const picture = (route: string, title: string, window: Window, theme: Theme) => {
    const file = fileOf(route, window, theme);
    const told = `${title}, ${window.width} px, ${theme}`;
    return `<a href="${file}"><img src="${file}" width="${SHOWN[window.width]}" alt="${told}"></a>`;
  };
  const row = (cells: readonly (string | number)[]) => `| ${cells.join(" | ")} |`;
  const parts = Object.entries(PAGES).map(([route, [title, purpose]]) =>
    [
      `## ${title}`,
      `\`${route}\` ${purpose}`,
      [
        row(WINDOWS.map(({ width }) => `${width} px`)),
        row(WINDOWS.map(() => "---")),
        ...THEMES.map((theme) => row(WINDOWS.map((window) => picture(route, title, window, theme)))),
      ].join("\n"),
    ].join("\n\n"),
  );
  const head = [
    "# The pages",
    "Every page of the portal in light and dark, in a window of a phone, a laptop and a large screen. `npm run pictures` draws them anew, on an installation with a few workspaces and on the sample data of `npm start -- --demo`. Long pages are cut.",
  ];
  return `${[...head, ...parts].join("\n\n")}\n`;
}
