import { expect, it } from "vitest";
import { type ClusterAccount, isGpuServer } from "./cluster-account.ts";

it("takes a pod with the GPU servers' account for one, and neither another's nor a token that was made for no pod", () => {
  const servers = { namespace: "sluice", account: "sluice-gpud", audience: "sluice", updateAfterSeconds: 0 };
  const gpud: ClusterAccount = {
    ...{ namespace: "sluice", account: "sluice-gpud", name: "system:serviceaccount:sluice:sluice-gpud" },
    ...{ pod: { name: "sluice-gpud-x", uid: "u" }, node: "node-1" },
  };
  const taken = (change: Partial<ClusterAccount>) => isGpuServer({ ...gpud, ...change }, servers);
  expect(taken({})).toBe(true);
  expect(taken({ pod: undefined, node: undefined })).toBe(false);
  expect(taken({ namespace: "elsewhere" })).toBe(false);
  expect(taken({ account: "sluice-portal" })).toBe(false);
});
