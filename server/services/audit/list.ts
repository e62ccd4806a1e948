import { and, desc, eq, inArray, like, lt } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type AuditEvent, type AuditList, type ListAuditInput, listAuditInput } from "#server/contracts/audit.ts";
import { auditEvents, gpuServers, images, teams, users, workspaces } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";

/** Who did what, newest first. Admins read all of it, a team lead the own team's. */
export async function list(ctx: Context, raw: ListAuditInput = {}): Promise<AuditList> {
  const input = parse(listAuditInput, raw);
  authorize(ctx.principal, "audit.list", { teamId: input.teamId });
  const rows = await ctx.db
    .select()
    .from(auditEvents)
    .where(
      and(
        input.teamId === undefined ? undefined : eq(auditEvents.teamId, input.teamId),
        input.before === undefined ? undefined : lt(auditEvents.seq, input.before),
        input.subject === undefined ? undefined : eq(auditEvents.subject, input.subject),
        input.actorId === undefined ? undefined : eq(auditEvents.actorId, input.actorId),
        actionIs(input.action),
      ),
    )
    .orderBy(desc(auditEvents.seq))
    .limit(input.limit + 1);
  const page = rows.slice(0, input.limit);
  const names = await readNames(ctx, [
    ...page.map((r) => r.actorId),
    ...page.map((r) => r.subject),
    ...page.map((r) => r.teamId),
  ]);
  const events = page.map((row): AuditEvent => {
    return {
      seq: row.seq,
      at: row.at.toISOString(),
      actorKind: row.actorKind,
      actorId: row.actorId,
      actorName: row.actorId === null ? "Sluice" : (names.get(row.actorId) ?? row.actorId),
      action: row.action,
      subject: row.subject,
      subjectName: row.subject === null ? null : (names.get(row.subject) ?? null),
      teamId: row.teamId,
      teamName: row.teamId === null ? null : (names.get(row.teamId) ?? null),
      detail: row.detail as Record<string, unknown>,
      traceId: row.traceId,
    };
  });
  return { events, next: rows.length > input.limit ? (page.at(-1)?.seq ?? null) : null };
}

function actionIs(action: string | undefined) {
  if (action === undefined) return undefined;
  return action.endsWith(".")
    ? like(auditEvents.action, `${action.replace(/[\\%_]/g, "\\$&")}%`)
    : eq(auditEvents.action, action);
}

/** Names of whatever has one among these ids. */
async function readNames(ctx: Context, ids: (string | null)[]): Promise<Map<string, string>> {
  const unique = [...new Set(ids.filter((id) => id !== null))];
  const of = (prefix: string) => unique.filter((id) => id.startsWith(`${prefix}-`));
  const names = new Map<string, string>();
  const keep = (rows: { id: string; name: string }[]) => {
    for (const row of rows) names.set(row.id, row.name);
  };
  const read = async (
    table: typeof users | typeof teams | typeof workspaces | typeof gpuServers | typeof images,
    wanted: string[],
  ) => {
    if (wanted.length > 0)
      keep(await ctx.db.select({ id: table.id, name: table.name }).from(table).where(inArray(table.id, wanted)));
  };
  await read(users, of("usr"));
  await read(teams, of("team"));
  await read(workspaces, [...of("ws"), ...of("pod")]);
  await read(gpuServers, of("gsv"));
  await read(images, of("img"));
  return names;
}
