import { and, desc, eq, gte, inArray, like, lt, or, type SQL, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type AuditEvent, type AuditList, type ListAuditInput, listAuditInput } from "#server/contracts/audit.ts";
import { accessTokens, auditEvents, gpuServers, images, teams, users, workspaces } from "#server/db/schema/index.ts";
import { hasWords } from "#server/db/search.ts";
import { parse } from "#server/parse.ts";

/** As many are read at once for a file. */
const CHUNK = 500;

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
        input.from === undefined ? undefined : gte(auditEvents.at, new Date(input.from)),
        input.to === undefined ? undefined : lt(auditEvents.at, new Date(input.to)),
        actionIs(input.action),
        ...whoHas(ctx, input.who),
        ...whatHas(ctx, input.what),
      ),
    )
    .orderBy(desc(auditEvents.seq))
    .limit(input.limit + 1);
  const page = rows.slice(0, input.limit);
  const ids = page.flatMap((row) => [row.actorId, row.subject, row.teamId, row.tokenId]);
  const names = await readNames(ctx, ids);
  const named = (id: string | null) => (id === null ? null : (names.get(id) ?? null));
  const seesAddress = ctx.principal.kind === "user" && ctx.principal.isAdmin;
  const events = page.map((row): AuditEvent => {
    return {
      seq: row.seq,
      at: row.at.toISOString(),
      actorKind: row.actorKind,
      actorId: row.actorId,
      actorName: row.actorId === null ? SELF : (names.get(row.actorId) ?? row.actorId),
      action: row.action,
      subject: row.subject,
      subjectName: named(row.subject),
      teamId: row.teamId,
      teamName: named(row.teamId),
      detail: row.detail as Record<string, unknown>,
      traceId: row.traceId,
      address: seesAddress ? row.address : null,
      tokenName: named(row.tokenId),
    };
  });
  return { events, next: rows.length > input.limit ? (page.at(-1)?.seq ?? null) : null };
}

/** All that match, newest first, read a part at a time. */
export async function* listAll(ctx: Context, input: ListAuditInput): AsyncGenerator<AuditEvent> {
  for (let before: number | null | undefined; before !== null; ) {
    const page = await list(ctx, { ...input, limit: CHUNK, before });
    yield* page.events;
    before = page.next;
  }
}

/** What the product does by itself is done by it. */
const SELF = "Sluice";

function actionIs(action: string | undefined) {
  if (action === undefined) return undefined;
  return action.endsWith(".")
    ? like(auditEvents.action, `${action.replace(/[\\%_]/g, "\\$&")}%`)
    : eq(auditEvents.action, action);
}

function whoHas({ db }: Context, words: string | undefined): SQL[] {
  const ids = (table: Named, named: SQL) =>
    inArray(auditEvents.actorId, db.select({ id: table.id }).from(table).where(named));
  return hasWords(words, (has) => [
    has(sql`coalesce(${auditEvents.actorId}, ${SELF})`),
    ids(users, or(has(users.name), has(users.email)) ?? sql`false`),
    ...[workspaces, gpuServers].map((table) => ids(table, has(table.name))),
  ]);
}

function whatHas({ db }: Context, words: string | undefined): SQL[] {
  return hasWords(words, (has) => [
    has(auditEvents.subject),
    has(refused),
    ...[users, teams, workspaces, gpuServers, images].map((table) =>
      inArray(auditEvents.subject, db.select({ id: table.id }).from(table).where(has(table.name))),
    ),
  ]);
}

/** The searchable detail of a refused sign-in: the reference and the e-mail. */
const refused = sql`case when ${auditEvents.action} = 'session.refuse' then concat_ws(' ', ${auditEvents.detail} ->> 'reference', ${auditEvents.detail} ->> 'email') end`;

/** What has a name by which people look for it. */
type Named = typeof users | typeof teams | typeof workspaces | typeof gpuServers | typeof images;

/** Names of whatever has one among these ids. */
async function readNames(ctx: Context, ids: (string | null)[]): Promise<Map<string, string>> {
  const unique = [...new Set(ids.filter((id) => id !== null))];
  const names = new Map<string, string>();
  const read = async (table: Named | typeof accessTokens, ...prefixes: string[]) => {
    const wanted = unique.filter((id) => prefixes.some((prefix) => id.startsWith(`${prefix}-`)));
    if (wanted.length === 0) return;
    const rows = await ctx.db.select({ id: table.id, name: table.name }).from(table).where(inArray(table.id, wanted));
    for (const row of rows) names.set(row.id, row.name);
  };
  await Promise.all([
    read(users, "usr"),
    read(teams, "team"),
    read(workspaces, "ws", "pod"),
    read(gpuServers, "gsv"),
    read(images, "img"),
    read(accessTokens, "pat"),
  ]);
  return names;
}
