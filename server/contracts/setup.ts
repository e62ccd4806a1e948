/** Getting an installation ready: its steps, and the one form that makes the first admin. */
import { z } from "zod";
import { email, instant, oneTimeCode, password, personName, teamId, userId } from "./common.ts";

/** One step of start-up (a build, an environment). */
export const setupStep = z.strictObject({
  id: z.string(),
  title: z.string(),
  state: z.enum(["waiting", "running", "done", "failed"]),
  /** Last line of output, or what to do when it failed. */
  message: z.string().nullable(),
  startedAt: instant.nullable(),
  finishedAt: instant.nullable(),
});
export type SetupStep = z.infer<typeof setupStep>;
export const setupStepList = z.strictObject({ steps: z.array(setupStep) });
export type SetupStepList = z.infer<typeof setupStepList>;

/** The start script writes these; the portal shows them. */
export const writeSetupStepInput = z.strictObject({
  id: z.string().regex(/^[a-z][a-z0-9-]{0,31}$/),
  title: z.string().min(1).max(100),
  state: z.enum(["waiting", "running", "done", "failed"]),
  message: z.string().max(2000).optional(),
});
export type WriteSetupStepInput = z.input<typeof writeSetupStepInput>;

export const setupStatus = z.strictObject({
  /** Whether there is an admin. Until then anybody may see the steps; afterwards they need to sign in. */
  done: z.boolean(),
  steps: z.array(setupStep),
});
export type SetupStatus = z.infer<typeof setupStatus>;

/** The one form, with the code of the set-up link. */
export const completeSetupInput = z.strictObject({ code: oneTimeCode, name: personName, email, password });
export type CompleteSetupInput = z.input<typeof completeSetupInput>;
export const completeSetupOutput = z.strictObject({ userId, teamId });
export type CompleteSetupOutput = z.infer<typeof completeSetupOutput>;
