/** Every way in which the gateway says no, as a page with the next step. */
import type { workspaces } from "#server/db/schema/index.ts";
import { SluiceError, toSluiceError } from "#server/errors.ts";
import type { Problem } from "./pages.ts";

type WorkspaceRow = typeof workspaces.$inferSelect;

/** A thrown error as a page. */
export function problemOf(thrown: unknown, portalUrl: string, workspaceId: string | undefined): Problem {
  const error: SluiceError = toSluiceError(thrown);
  const link =
    workspaceId === undefined
      ? { href: portalUrl, text: "To the portal" }
      : { href: `${portalUrl}/workspaces/${workspaceId}`, text: "To this workspace in the portal" };
  switch (error.code) {
    case "unauthenticated":
      return {
        code: "unauthenticated",
        status: 401,
        title: "Open this workspace from the portal",
        text: "This browser has no access to the workspace, or its access has ended. Press Open in the portal.",
        link,
      };
    case "forbidden":
      return { code: "forbidden", status: 403, title: "Not allowed", text: error.message, link };
    case "not-found":
      return {
        code: "not-found",
        status: 404,
        title: "There is no such workspace",
        text: "It was removed, or its address is not written correctly. The portal lists yours.",
        link: { href: `${portalUrl}/workspaces`, text: "To my workspaces" },
      };
    case "invalid":
      return { code: "invalid", status: 400, title: "This request cannot be understood", text: error.message, link };
    case "unavailable":
      return { code: "unavailable", status: 503, title: "One moment", text: error.message, link, refreshSeconds: 3 };
    default:
      return { code: "internal", status: 500, title: "Something went wrong on our side", text: error.message, link };
  }
}

/**
 * The answer to an API request of JupyterLab after its access has ended. JupyterLab retries a kernel request after 424
 * and 503. It treats every other status as a dead kernel. Undefined for any other problem.
 */
export function accessEnded(problem: Problem): Problem | undefined {
  if (problem.status === 403) return { ...problem, status: 424 };
  if (problem.status !== 401) return undefined;
  return { ...problem, status: 424, title: "Session expired", text: "Sign in to reconnect." };
}

/** A viewer asked for more than to look. */
export const onlyLooking = ({ owner, workspace }: { owner: { name: string }; workspace: { name: string } }) =>
  new SluiceError(
    "forbidden",
    `You are a viewer of ${workspace.name}: you see its files and saved results, and change and run nothing. ` +
      `To work in it, ask ${owner.name} to make you an editor.`,
  );

/** A workspace that cannot be reached because it does not run. */
export function notRunning(row: WorkspaceRow, portalUrl: string): Problem {
  const link = { href: `${portalUrl}/workspaces/${row.id}`, text: "To this workspace in the portal" };
  if (row.observed === "failed") {
    return {
      code: "conflict",
      status: 424,
      title: `${row.name} has failed`,
      text: row.message ?? "The portal shows its log.",
      link,
    };
  }
  if (row.desired === "running") {
    const text = "This page opens by itself as soon as JupyterLab answers. The portal shows the steps.";
    return { code: "conflict", status: 424, title: `${row.name} is starting`, text, link, refreshSeconds: 2 };
  }
  const text = "Nothing is lost: its files and packages are there at the next start. Start it in the portal.";
  return { code: "conflict", status: 424, title: `${row.name} is stopped`, text, link };
}

/** A workspace that should run and does not answer. */
export function notAnswering(name: string, portalUrl: string, workspaceId: string): Problem {
  return {
    code: "unavailable",
    status: 503,
    title: `${name} does not answer`,
    text: "JupyterLab may just be ending or restarting. This page tries again by itself; the portal shows the log.",
    link: { href: `${portalUrl}/workspaces/${workspaceId}`, text: "To this workspace in the portal" },
    refreshSeconds: 3,
  };
}

/** A program in the workspace answered with something that is no HTTP. */
export function badAnswer(portalUrl: string, workspaceId: string): Problem {
  return {
    code: "unavailable",
    status: 502,
    title: "The workspace's answer is not valid",
    text: "A program in the workspace broke the rules of HTTP. If it is not yours, restart the workspace in the portal.",
    link: { href: `${portalUrl}/workspaces/${workspaceId}`, text: "To this workspace in the portal" },
  };
}
