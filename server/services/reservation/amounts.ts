import { and, eq, ne, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { type Amount, chargeOn, parseAmount, parseTotal, WHOLE } from "#server/contracts/amount.ts";
import type { CreateReservationInput } from "#server/contracts/sharing.ts";
import { gpuServers, gpus } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { formatBytes } from "#server/scheduler/amount.ts";

type Typed = Pick<CreateReservationInput, "gpuType" | "amount" | "unit">;

/**
 * What is reserved, and the size of the leases that it is for, in thousandths of a GPU. Memory counts as on the device
 * of the type that has least of it: so much of any of them is enough.
 */
export async function inParts(
  tx: Context,
  { gpuType, amount, unit }: Typed,
): Promise<{ milli: number; unitMilli: number }> {
  const [total, each] = [amountOf(parseTotal(amount)), amountOf(parseAmount(unit))];
  if (each.kind === "compute") {
    if (each.milli > WHOLE) {
      throw new SluiceError("invalid", "unit: One GPU at most: a lease of several needs whole ones, each of them a 1.");
    }
    if (total.kind === "compute") return { milli: total.milli, unitMilli: each.milli };
    throw new SluiceError(
      "invalid",
      `amount: Where leases are parts of a GPU, so is all of it, e.g. 2 instead of ${amount}.`,
    );
  }
  const memoryBytes = await leastMemory(tx, gpuType);
  const unitMilli = chargeOn({ milli: 1, memoryBytes: each.bytes }, memoryBytes);
  if (unitMilli > WHOLE) {
    throw new SluiceError("invalid", `unit: ${unit} is more than a ${gpuType} has (${formatBytes(memoryBytes)}).`);
  }
  if (total.kind === "compute") return { milli: total.milli, unitMilli };
  const leases = total.bytes / each.bytes;
  if (!Number.isInteger(leases)) {
    throw new SluiceError("invalid", `amount: ${amount} does not go into leases of ${unit} without a rest.`);
  }
  return { milli: leases * unitMilli, unitMilli };
}

type Plain = Exclude<Amount, { kind: "both" }>;

/** The contract has read it before. */
function amountOf(parsed: ReturnType<typeof parseAmount>): Plain {
  if (!parsed.ok) throw new SluiceError("invalid", parsed.reason.message);
  if (parsed.amount.kind === "both") throw new Error("one text is one amount");
  return parsed.amount;
}

async function leastMemory(tx: Context, gpuType: string): Promise<number> {
  const [least] = await tx.db
    .select({ memoryBytes: sql<string | null>`min(${gpus.memoryBytes})` })
    .from(gpus)
    .innerJoin(gpuServers, eq(gpuServers.id, gpus.serverId))
    .where(and(eq(gpus.gpuType, gpuType), ne(gpuServers.state, "removed")));
  if (least?.memoryBytes != null) return Number(least.memoryBytes);
  const message = `No GPU server with ${gpuType} has joined yet, so memory cannot be counted in parts of a GPU.`;
  throw new SluiceError("invalid", `unit: ${message} Give a part such as 0.5.`);
}
