import { expect, it } from "vitest";
import type { KernelOutput } from "#server/contracts/workspace-kernel.ts";
import { joined, type Keyed } from "./outputs.ts";

const text = (said: string, block?: string): KernelOutput => ({ kind: "text", text: said, ...(block && { block }) });
const after = (outputs: KernelOutput[]) =>
  outputs.reduce<Keyed[]>(joined, []).map(({ output }) => (output.kind === "text" ? output.text : output.kind));

it("replaces a block by the next one of its name", () => {
  expect(after([text("a", "one"), text("b", "two"), text("c", "one"), text("d"), text("e")])).toEqual([
    "c",
    "b",
    "d",
    "e",
  ]);
});

it("keeps the last reason for a wait when the wait ends", () => {
  expect(after([text("Queued 0:01", "one"), text("Queued 0:02", "one"), text("Attached", "one")])).toEqual([
    "Queued 0:02",
    "Attached",
  ]);
  expect(after([text("Queued", "one"), text("Attached", "one"), text("Detached", "one")])).toEqual([
    "Queued",
    "Detached",
  ]);
});
