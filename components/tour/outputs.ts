import type { KernelOutput } from "#server/contracts/workspace-kernel.ts";

/** An output of a cell, with its key on the page. */
export type Keyed = { key: number; output: KernelOutput };

/**
 * The outputs of a cell with one more. A block replaces the block of the same name. The reason for a wait stays on the
 * page when the wait ends: a person has little time to read it.
 */
export function joined(outputs: readonly Keyed[], output: KernelOutput): Keyed[] {
  const block = output.kind === "text" ? output.block : undefined;
  const at = outputs.findIndex((each) => block !== undefined && "block" in each.output && each.output.block === block);
  const before = outputs[at]?.output;
  if (before === undefined) return [...outputs, { key: outputs.length, output }];
  if (!isQueued(before) || isQueued(output)) return outputs.with(at, { key: at, output });
  const kept = { kind: before.kind, text: before.text };
  return [...outputs.with(at, { key: at, output: kept }), { key: outputs.length, output }];
}

const isQueued = (output: KernelOutput): output is Extract<KernelOutput, { kind: "text" }> =>
  output.kind === "text" && output.text.startsWith("Queued");
