/** Environment variables of a workspace. A secret's value goes in and never comes out. */
import { z } from "zod";
import { editedVersion, instant, version, workspaceId } from "./common.ts";
import { refusal } from "./typed-name.ts";

/** Set by Sluice itself, or able to change what runs before anything that the person started. */
const RESERVED =
  /^(?:SLUICE_|JUPYTER_|LD_|CUDA_INJECTION|PYTHON(?:HOME|PATH|STARTUP)$|(?:HOME|USER|SHELL|PATH|TMPDIR|VIRTUAL_ENV)$)/;

export const variableName = z
  .string()
  .max(100, "A name has at most 100 characters.")
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, {
    error: ({ input }) =>
      refusal(input, "A name has letters A to Z, digits and _, and does not begin with a digit.", {
        first: "A-Za-z_",
        more: "0-9",
      }),
  })
  .refine((name) => !RESERVED.test(name), "This name is set by Sluice. Choose another.");

export const workspaceVariable = z.strictObject({
  name: z.string(),
  secret: z.boolean(),
  /** null for a secret: its value is never shown again. */
  value: z.string().nullable(),
  updatedAt: instant,
  version,
});
export type WorkspaceVariable = z.infer<typeof workspaceVariable>;
export const workspaceVariableList = z.strictObject({
  variables: z.array(workspaceVariable),
  /** Something was changed since the workspace started: it has the new values after a restart. */
  restartNeeded: z.boolean(),
});
export type WorkspaceVariableList = z.infer<typeof workspaceVariableList>;

export const setVariableInput = z.strictObject({
  id: workspaceId,
  name: variableName,
  value: z
    .string()
    .max(32_768, "A value has at most 32,768 characters.")
    .refine((value) => !value.includes("\0"), "A value cannot hold a zero byte."),
  secret: z.boolean().default(false),
  /** 0: a new one, refused where there is one of this name. */
  version: editedVersion,
});
export type SetVariableInput = z.input<typeof setVariableInput>;
export const removeVariableInput = z.strictObject({ id: workspaceId, name: z.string().max(100) });
export type RemoveVariableInput = z.input<typeof removeVariableInput>;
