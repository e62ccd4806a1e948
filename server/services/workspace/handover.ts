import { createCode } from "#server/auth/one-time-code.ts";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { HANDOVER_PATH } from "#server/contracts/gateway-paths.ts";
import { type HandoverOutput, type WorkspaceInput, workspaceInput } from "#server/contracts/workspace.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { get } from "#server/services/workspace/get.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";

const HANDOVER_SECONDS = 60;

/** A way into the running workspace for this browser session: a one-time code on the workspace's hostname. */
export async function handover(ctx: Context, raw: WorkspaceInput): Promise<HandoverOutput> {
  const { id } = parse(workspaceInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const row = await loadWorkspace(tx, id, "workspace.open");
    if (row.desired !== "running" || row.observed !== "running") {
      throw new SluiceError("conflict", `"${row.name}" is not running. Start it first.`);
    }
    if (tx.principal.kind !== "user" || tx.principal.sessionId === undefined) {
      throw new SluiceError("forbidden", "A workspace is opened from a browser session.");
    }
    const { code, expiresAt } = await createCode(tx, "handover", HANDOVER_SECONDS, {
      userId: tx.principal.userId,
      sessionId: tx.principal.sessionId,
      teamId: row.teamId,
      workspaceId: id,
    });
    const { role } = await get(tx, { id });
    const detail = role === "owner" ? {} : { as: role };
    await audit(tx, { action: "workspace.open", subject: id, teamId: row.teamId, detail });
    return { url: `${workspaceOrigin(id)}${HANDOVER_PATH}?code=${code}`, expiresAt: expiresAt.toISOString() };
  });
}

/** `http://<ws-id>.localhost:3002`: the workspace's own origin. */
export function workspaceOrigin(workspaceId: string): string {
  const gateway = new URL(env().SLUICE_GATEWAY_URL);
  const port = gateway.port === "" ? "" : `:${gateway.port}`;
  return `${gateway.protocol}//${workspaceId}.${env().SLUICE_GATEWAY_HOST}${port}`;
}
