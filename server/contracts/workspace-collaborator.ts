/** Who else may come into a workspace. */
import { z } from "zod";
import { editedVersion, instant, userId, version, workspaceId } from "./common.ts";

/** A viewer sees files and saved results and starts nothing; an editor works in the notebooks as the owner does. */
export const collaboratorRole = z.enum(["viewer", "editor"]);

export const workspaceCollaborators = z.strictObject({
  collaborators: z.array(
    z.strictObject({
      userId,
      name: z.string(),
      email: z.string(),
      role: collaboratorRole,
      since: instant,
      version,
      /** Cannot sign in any more, and so not come in. */
      disabled: z.boolean(),
    }),
  ),
  /** What to send to them: it opens the workspace to whoever was invited and has signed in. */
  link: z.url(),
});
export type WorkspaceCollaborators = z.infer<typeof workspaceCollaborators>;

export const addCollaboratorInput = z.strictObject({
  id: workspaceId,
  /** The e-mail, or the name when only one person here has it. */
  person: z.string().trim().normalize("NFC").min(1, "Enter a name or an e-mail.").max(254),
  role: collaboratorRole,
  version: editedVersion,
});
export type AddCollaboratorInput = z.input<typeof addCollaboratorInput>;

export const removeCollaboratorInput = z.strictObject({ id: workspaceId, userId });
export type RemoveCollaboratorInput = z.input<typeof removeCollaboratorInput>;

/** What the link says to whoever follows it: of a workspace that is not shared with them, only whom to ask. */
export const workspaceLink = z.strictObject({
  owner: z.strictObject({ name: z.string(), email: z.string() }),
  /** Whether whoever asks may see the workspace's page. */
  invited: z.boolean(),
});
export type WorkspaceLink = z.infer<typeof workspaceLink>;
