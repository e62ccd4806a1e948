import { expect, it } from "vitest";
import { kindOfModel } from "./kind-of-model.ts";

it.each([
  ["NVIDIA A100-SXM4-40GB MIG 3g.20gb", "mig"],
  ["NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", "mig"],
  ["NVIDIA L40S-48C", "vgpu"],
  ["GRID A100-1-5C", "vgpu"],
  ["NVIDIA A16-4Q", "vgpu"],
  ["NVIDIA A100-SXM4-40GB", "shared"],
  ["NVIDIA H200 NVL", "shared"],
  ["Tesla V100-SXM2-32GB", "shared"],
  ["Sluice software GPU", "shared"],
])("%s is %s", (model, kind) => {
  expect(kindOfModel(model)).toBe(kind);
});
