import { type LeaseListItem, leasePage, listLeasesInput } from "#server/contracts/gpu-server.ts";
import { type Cell, csvStream } from "#server/http/csv.ts";
import { route } from "#server/http/route.ts";
import { list, listAll } from "#server/services/lease/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/leases",
    summary: "Leases one may see, latest first",
    action: "lease.list",
    input: listLeasesInput,
    output: leasePage,
    csv: true,
  },
  async (ctx, input) => {
    if (input.format === "json") return await list(ctx, input);
    return await csvStream(`leases-${ctx.now().toISOString().slice(0, 10)}.csv`, HEADER, rowsOf(listAll(ctx, input)));
  },
);

const HEADER = [
  ...["lease", "state", "GPU type", "GPUs", "memory bytes", "borrowed", "device", "server", "team", "person"],
  ...["workspace", "label", "granted", "expires", "ended", "why", "note", "GPU time, s"],
];

async function* rowsOf(leases: AsyncIterable<LeaseListItem>): AsyncGenerator<Cell[]> {
  for await (const lease of leases) {
    yield [
      ...[lease.id, lease.state, lease.gpuType, lease.milli / 1000, lease.memoryBytes, lease.borrowed ? "yes" : "no"],
      ...[lease.deviceName, lease.serverName, lease.teamName, lease.userName, lease.workspaceName],
      ...[lease.owner.label ?? null, lease.grantedAt, lease.expiresAt, lease.endedAt, lease.endReason, lease.endNote],
      lease.gpuTimeUs / 1e6,
    ];
  }
}
