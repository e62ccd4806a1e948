/** Amounts as people type them, the same in a notebook, on a page and in the API, and what they are charged. */
import type { LeaseReason } from "./lease.ts";

/** One whole GPU in thousandths. */
export const WHOLE = 1000;
const GIB = 1024 ** 3;
const MIB = 1024 ** 2;
/** More than any device has for long: 64 TiB. Its charge on the smallest one is still a number that tables hold. */
const MOST_BYTES = 65_536 * GIB;
/** Characters of an amount at most: a message repeats what was typed. */
const LONGEST = 40;

export type Amount =
  | { kind: "compute"; milli: number }
  | { kind: "memory"; bytes: number }
  | { kind: "both"; milli: number; bytes: number };
export type ParsedAmount = { ok: true; amount: Amount } | { ok: false; reason: LeaseReason };

const refuse = (message: string, hint: string): ParsedAmount => ({
  ok: false,
  reason: { rule: "amount", message, hint },
});

/**
 * Reads `0.5` (of a GPU), `2` (GPUs) or `40G` (GPU memory, GiB). What cannot be read becomes a sentence that says what to
 * type.
 */
export const parseAmount = (text: string): ParsedAmount => read(text, { whole: true });

/** The same of what several leases have together, where `2.5` (GPUs) is an amount, too. */
export const parseTotal = (text: string): ParsedAmount => read(text, { whole: false });

/** `whole`: above one GPU only whole ones are an amount. */
function read(text: string, { whole }: { whole: boolean }): ParsedAmount {
  const typed = text.trim();
  if (typed === "")
    return refuse("An amount is needed: 0.5 (of a GPU), 2 (GPUs) or 40G (GPU memory).", "%gpu attach 0.5");
  if (typed.length > LONGEST) {
    return refuse(
      "This text is too long for an amount. Amounts look like 0.5 (of a GPU), 2 (GPUs) or 40G (GPU memory).",
      "%gpu attach 0.5",
    );
  }
  const memory = /^([+-]?(?:\d+(?:\.\d+)?|\.\d+))\s*([gm])(?:i?b)?$/i.exec(typed);
  if (memory) return memoryAmount(typed, Number(memory[1]), memory[2]?.toLowerCase() === "m" ? MIB : GIB);
  const comma = /^([+-]?\d*),(\d+)(\D*)$/.exec(typed);
  if (comma) {
    const point = `${comma[1] || "0"}.${comma[2]}${comma[3]?.trimStart()}`;
    return refuse(`"${typed}" has a comma; write amounts with a point.`, `%gpu attach ${point}`);
  }
  const percent = /^(\d+(?:\.\d+)?)\s*%$/.exec(typed);
  if (percent) {
    return refuse(
      `"${typed}" is not an amount; write it as a part of a GPU.`,
      `%gpu attach ${Number(percent[1]) / 100}`,
    );
  }
  if (!/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/.test(typed)) {
    return refuse(
      `"${typed}" is not an amount. Amounts look like 0.5 (of a GPU), 2 (GPUs) or 40G (GPU memory).`,
      "%gpu attach 0.5",
    );
  }
  return computeAmount(typed, Number(typed), whole);
}

/**
 * Reads an amount, nothing being the workspace's default, with the GPU memory that is wanted beside it; without memory,
 * that follows the compute. Memory alone replaces a default that is memory, too.
 */
export function parseAmounts(text: string, memory: string | undefined, defaultAmount: string): ParsedAmount {
  const given = text.trim() !== "";
  const parsed = parseAmount(given ? text : defaultAmount);
  if (memory === undefined || !parsed.ok) return parsed;
  if (!given && parsed.amount.kind === "memory") return parseAmount(memory);
  if (parsed.amount.kind !== "compute") {
    return refuse(`GPU memory is given twice, as ${text.trim()} and as ${memory}.`, `%gpu attach --mem ${memory}`);
  }
  const beside = parseAmount(memory);
  if (!beside.ok) return beside;
  if (beside.amount.kind !== "memory") {
    return refuse(`"${memory}" is no GPU memory. It looks like 4G.`, `%gpu attach ${text.trim()} --mem 4G`);
  }
  const { milli } = parsed.amount;
  if (milli > WHOLE) {
    return refuse(
      `Several GPUs are borrowed whole, with all of their memory; you asked for ${memory} of each.`,
      `%gpu attach ${text.trim()}`,
    );
  }
  return { ok: true, amount: { kind: "both", milli, bytes: beside.amount.bytes } };
}

function computeAmount(typed: string, gpus: number, whole: boolean): ParsedAmount {
  if (gpus <= 0) return refuse(`An amount must be more than 0; you asked for ${typed}.`, "%gpu attach 0.5");
  if (gpus > 10_000) return refuse(`${typed} GPUs is more than any pool has.`, "%gpu attach 1");
  if (whole && gpus > 1 && !Number.isInteger(gpus)) {
    const low = Math.floor(gpus);
    return refuse(
      `Above one GPU only whole GPUs can be borrowed; you asked for ${typed}: use ${low} or ${low + 1}.`,
      `%gpu attach ${low}`,
    );
  }
  const milli = Math.round(gpus * WHOLE);
  if (milli < 1 || Math.abs(milli - gpus * WHOLE) > 1e-6) {
    const near = Math.max(1, milli) / WHOLE;
    return refuse(`Amounts have at most three decimals; you asked for ${typed}.`, `%gpu attach ${near}`);
  }
  return { ok: true, amount: { kind: "compute", milli } };
}

function memoryAmount(typed: string, count: number, unit: number): ParsedAmount {
  if (count <= 0) return refuse(`GPU memory must be more than 0; you asked for ${typed}.`, "%gpu attach 4G");
  const bytes = Math.round(count * unit);
  if (bytes > MOST_BYTES) {
    return refuse(`${typed} of GPU memory is more than any device has.`, "%gpu attach 1");
  }
  return { ok: true, amount: { kind: "memory", bytes: Math.max(1, bytes) } };
}

/**
 * What a request is charged on a device: max(compute, memory / allocatable memory), rounded up to a thousandth,
 * so that charges that add up to one GPU also fit its memory.
 */
export function chargeOn(request: { milli: number; memoryBytes: number }, deviceMemoryBytes: number): number {
  if (request.memoryBytes === 0) return request.milli;
  if (deviceMemoryBytes <= 0) return Number.POSITIVE_INFINITY;
  return Math.max(request.milli, ceilDivide(request.memoryBytes, deviceMemoryBytes));
}

/** Exact ceil(bytes * 1000 / total): a remainder is exact where a quotient of doubles is rounded. */
function ceilDivide(bytes: number, total: number): number {
  const scaled = bytes * WHOLE;
  if (!Number.isSafeInteger(scaled))
    return Number((BigInt(bytes) * BigInt(WHOLE) + BigInt(total) - 1n) / BigInt(total));
  const rest = scaled % total;
  return (scaled - rest) / total + (rest > 0 ? 1 : 0);
}

/** Thousandths as people write them: 500 → `0.5`, 2000 → `2`. */
export function formatMilli(milli: number): string {
  return String(milli / WHOLE);
}
