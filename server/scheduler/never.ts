/** Reasons for which no end of any lease would help. */
import { meets } from "./allowed.ts";
import { chargeOn, WHOLE } from "./amount.ts";
import { isSpent } from "./budget.ts";
import { aboveQuota, isSoon, moreLater } from "./later.ts";
import { devicesOf } from "./placement.ts";
import type { Device, Obstacle, Quota, Waiting, World } from "./types.ts";

/** The least that any device on which it may lie would charge for this request, thousandths. */
export function leastChargeOn(
  request: Pick<Waiting, "milli" | "memoryBytes" | "pinnedGpuId" | "needs">,
  devices: readonly Device[],
): number {
  if (request.memoryBytes === 0) return request.milli;
  let least = Number.POSITIVE_INFINITY;
  for (const device of devices) {
    if (device.state === "gone" && device.id !== request.pinnedGpuId) continue;
    if (request.pinnedGpuId !== undefined && device.id !== request.pinnedGpuId) continue;
    if (!meets(request.needs, device)) continue;
    least = Math.min(least, chargeOn(request, device.memoryBytes));
  }
  return least === Number.POSITIVE_INFINITY ? request.milli : least;
}

/**
 * Why today's rules can never grant it, as long as anybody may wait; nothing when they can. `least` is its least charge,
 * `present` counts devices.
 */
export function neverFits(
  request: Waiting,
  quota: Quota | undefined,
  world: World,
  present: number,
  least: number,
): Obstacle | undefined {
  const { devices, now } = world;
  if (quota === undefined) {
    return present === 0 ? { rule: "gpu-type" } : { rule: "team-limit", ever: true };
  }
  const pinned = request.pinnedGpuId === undefined ? undefined : pinnedNever(request, devices);
  if (pinned) return pinned;
  if (request.memoryBytes > 0 && least > WHOLE) return { rule: "amount", why: "more-memory-than-a-device" };
  const above = aboveQuota(request, quota, least);
  const more = above && moreLater(request, least, world);
  if (above && !isSoon(more, now)) return { rule: above, ever: true, ...(more && { more }) };
  if (quota.personMilli !== undefined && least > quota.personMilli) return { rule: "person-limit", ever: true };
  if (devicesOf(request) > (request.maxDevices ?? 1)) return { rule: "amount", why: "several-gpus" };
  const { needs } = request;
  const possible =
    needs === undefined ? present : devices.filter((one) => one.state !== "gone" && meets(needs, one)).length;
  if (needs !== undefined && possible === 0 && devices.length > 0) return { rule: "needs" };
  if (possible > 0 && devicesOf(request) > possible) return { rule: "amount", why: "more-than-the-pool" };
  return isSpent(quota.budget, now) ? { rule: "budget", resetsAt: quota.budget?.endsAt ?? now } : undefined;
}

function pinnedNever(request: Waiting, devices: readonly Device[]): Obstacle | undefined {
  const device = devices.find((candidate) => candidate.id === request.pinnedGpuId);
  if (device === undefined || device.state === "gone") return { rule: "pinned", why: "gone" };
  if (device.state === "draining") return { rule: "pinned", why: "draining" };
  const tooMuch = request.memoryBytes > 0 && chargeOn(request, device.memoryBytes) > WHOLE;
  return tooMuch ? { rule: "pinned", why: "memory" } : undefined;
}
