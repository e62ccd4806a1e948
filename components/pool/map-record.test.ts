import { expect, test } from "vitest";
import { mapRecord } from "./map-record.ts";

const device = { id: "gpu-1", name: "a100-1", gpuType: "a100", kind: "shared" as const, idleHeldMilli: 0 };
const server = {
  ...{
    id: "gsv-1",
    name: "gpu-1",
    state: "online" as const,
    dataAddress: null,
    version: null,
    zone: null,
    zoneVersion: 1,
  },
  ...{ rttUs: null, lastSeenAt: null, createdAt: "2026-01-01T00:00:00Z", deviceCount: 5, leaseCount: 3 },
  teams: [],
  devices: [
    { ...device, state: "active" as const, leasedMilli: 0, computePercent: 0 },
    { ...device, state: "active" as const, leasedMilli: 125, computePercent: 100 },
    { ...device, state: "active" as const, leasedMilli: 1000, computePercent: 51 },
    { ...device, state: "draining" as const, leasedMilli: 500, computePercent: 20 },
    { ...device, state: "lost" as const, leasedMilli: 500, computePercent: 20 },
  ],
};

test("a server of the map is a character a device, by what is leased or computed", () => {
  expect(mapRecord(server, "leased")).toMatchObject({ cells: "014dl", leasedMilli: 2125 });
  expect(mapRecord(server, "compute").cells).toBe("043dl");
});
