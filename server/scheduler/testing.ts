/** Worlds for tests of the scheduler. */
import type { Device, Holding, Quota, Waiting, World } from "./types.ts";

const GIB = 1024 ** 3;

export function device(id: string, options: Partial<Device> = {}): Device {
  return {
    id,
    name: `soft-${id}`,
    serverId: "s",
    serverName: "gpu-1",
    memoryBytes: 8 * GIB,
    state: "open",
    ...options,
  };
}

export function holding(leaseId: string, gpuId: string, milli: number, options: Partial<Holding> = {}): Holding {
  const memoryBytes = Math.floor((8 * GIB * milli) / 1000);
  return {
    ...{ leaseId, gpuId, milli, memoryBytes, teamId: "vision", userId: "ada", borrowed: false, grantedAt: 0 },
    ...{ expiresAt: 3_600_000, who: "Ada", lastWorkAt: 0, ...options },
  };
}

export function waiting(requestId: string, milli: number, options: Partial<Waiting> = {}): Waiting {
  return {
    ...{ requestId, milli, memoryBytes: 0, teamId: "vision", userId: "ada", who: "Ada", guaranteedOnly: false },
    ...{ createdAt: 0, lengthMs: 3_600_000, ...options },
  };
}

export function quota(
  teamId: string,
  guaranteedMilli: number,
  limitMilli: number,
  options: Partial<Quota> = {},
): Quota {
  return { teamId, teamName: teamId, guaranteedMilli, limitMilli, ...options };
}

export function world(options: Partial<Omit<World, "quotas">> & { quotas?: Quota[] } = {}): World {
  const quotas = options.quotas ?? [quota("vision", 500, 1000), quota("nlp", 500, 1000)];
  return {
    ...{ gpuType: "soft", now: 0, devices: [device("0")], holdings: [], queue: [], ...options },
    quotas: new Map(quotas.map((one) => [one.teamId, one])),
  };
}
