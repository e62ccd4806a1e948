/** What amounts come to on a device, and how they are written. */
import { formatMilli, WHOLE } from "../contracts/amount.ts";

export { chargeOn, formatMilli, WHOLE } from "../contracts/amount.ts";

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;

/** The memory a lease gets on a device: what was asked for, or the part that goes with its compute. */
export function memoryOn(request: { milli: number; memoryBytes: number }, deviceMemoryBytes: number): number {
  if (request.memoryBytes > 0) return request.memoryBytes;
  const scaled = deviceMemoryBytes * Math.min(request.milli, WHOLE);
  if (!Number.isSafeInteger(scaled)) return Number((BigInt(deviceMemoryBytes) * BigInt(request.milli)) / BigInt(WHOLE));
  return (scaled - (scaled % WHOLE)) / WHOLE;
}

/** Thousandths beside others of their kind: 1000 → `1.0`, 250 → `0.25`. */
export function formatQuota(milli: number): string {
  return milli % WHOLE === 0 ? (milli / WHOLE).toFixed(1) : formatMilli(milli);
}

/** Bytes for people: `4.0 GiB`, `512 MiB`. */
export function formatBytes(bytes: number): string {
  if (bytes >= GIB) return `${(bytes / GIB).toFixed(1)} GiB`;
  return `${Math.round(bytes / MIB)} MiB`;
}
