/** Whether every part of the installation works, and what to do where it does not. */
import { z } from "zod";
import { instant } from "./common.ts";

export const component = z.strictObject({
  kind: z.enum(["portal", "broker", "gateway", "database", "gpu-server"]),
  name: z.string(),
  state: z.enum(["ok", "warning", "down"]),
  /** What was seen, for a person. */
  detail: z.string(),
  version: z.string().nullable(),
  /** When it last showed a sign of life. */
  seenAt: instant.nullable(),
  /** What to do; null when nothing is wrong. */
  next: z.string().nullable(),
});
export type Component = z.infer<typeof component>;
/** What is wrong stands first. */
export const health = z.strictObject({ at: instant, components: z.array(component) });
export type Health = z.infer<typeof health>;
