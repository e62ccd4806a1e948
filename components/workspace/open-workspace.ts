import { api } from "#components/api.ts";
import { REACH_PATH } from "#server/contracts/gateway-paths.ts";
import type { HandoverOutput } from "#server/contracts/workspace.ts";

/**
 * Opens a workspace in a tab of its own. The tab is made within the click, else the browser holds it back;
 * the address that comes later carries the one-time code. Answers a sentence when it could not be opened.
 */
export async function openWorkspace(id: string): Promise<string | undefined> {
  const tab = window.open("about:blank", "_blank");
  if (!tab) return "The browser held the new tab back. Allow pop-ups for this page, then open again.";
  tab.document.title = "Opening the workspace";
  tab.document.documentElement.style.colorScheme = "light dark";
  tab.document.body.textContent = "Opening the workspace …";
  const answer = await api<HandoverOutput>("POST", `/workspaces/${id}/open`);
  if (!answer.ok) {
    tab.close();
    return answer.error.message;
  }
  const { url } = answer.data;
  try {
    await fetch(new URL(REACH_PATH, url), { mode: "no-cors", credentials: "omit", cache: "no-store" });
  } catch {
    tab.close();
    return cannotReach(new URL(url).hostname);
  }
  tab.opener = null;
  tab.location.replace(url);
  return undefined;
}

function cannotReach(host: string): string {
  if (!host.endsWith(".localhost")) return `This browser cannot reach ${host}. Ask an admin whether the gateway is up.`;
  return (
    `This browser cannot reach ${host}. Safari does not find names that end in .localhost: use Firefox, Chrome or Edge. ` +
    "Over SSH, forward the gateway's port too (the terminal printed the line)."
  );
}
