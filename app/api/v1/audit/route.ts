import { type AuditEvent, auditList, listAuditInput } from "#server/contracts/audit.ts";
import { type Cell, csvStream } from "#server/http/csv.ts";
import { route } from "#server/http/route.ts";
import { list, listAll } from "#server/services/audit/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/audit",
    summary: "Who did what, newest first",
    action: "audit.list",
    input: listAuditInput,
    output: auditList,
    csv: true,
  },
  async (ctx, input) => {
    if (input.format === "json") return await list(ctx, input);
    return await csvStream(`audit-${ctx.now().toISOString().slice(0, 10)}.csv`, HEADER, rowsOf(listAll(ctx, input)));
  },
);

const HEADER = [
  ...["seq", "at", "who", "who id", "by token", "from", "action", "what", "what id", "team", "particulars", "trace"],
];

async function* rowsOf(events: AsyncIterable<AuditEvent>): AsyncGenerator<Cell[]> {
  for await (const event of events) {
    yield [
      ...[event.seq, event.at, event.actorName, event.actorId, event.tokenName, event.address, event.action],
      ...[event.subjectName, event.subject, event.teamName, JSON.stringify(event.detail), event.traceId],
    ];
  }
}
