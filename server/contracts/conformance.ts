/** Which packages were run on which GPUs, and how that went. */
import { z } from "zod";
import { gpuType } from "./common.ts";

export const conformanceRun = z.strictObject({
  /** Its folder in native/conformance/suites. */
  suite: z.string(),
  title: z.string(),
  /** As people name it; several suites may be about one. */
  package: z.string(),
  version: z.string().nullable(),
  /** What to know of it. */
  note: z.string().nullable(),
  gpuType,
  /** remote: through the wire; local: on a card of the machine itself. */
  way: z.enum(["remote", "local"]),
  date: z.iso.date(),
  passed: z.int(),
  /** Tests that apply to such a GPU. */
  of: z.int(),
});
export type ConformanceRun = z.infer<typeof conformanceRun>;

export const conformanceList = z.strictObject({
  runs: z.array(conformanceRun),
  /** The pool's types, of which some may have no run. */
  gpuTypes: z.array(z.string()),
});
export type ConformanceList = z.infer<typeof conformanceList>;
