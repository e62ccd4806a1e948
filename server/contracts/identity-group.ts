/** What groups of the identity provider give here. */
import { z } from "zod";
import { idOf, teamId } from "./common.ts";
import { typedLine } from "./typed-name.ts";

export const identityGroupId = idOf("igr");

/** `teamId` and `teamName` are null where the group makes admins. */
export const identityGroupView = z.strictObject({
  id: identityGroupId,
  name: z.string(),
  teamId: teamId.nullable(),
  teamName: z.string().nullable(),
  role: z.enum(["admin", "lead", "member"]),
});
export type IdentityGroupView = z.infer<typeof identityGroupView>;
/** By name. `claim` of the provider's ID token lists a person's groups; null: no provider is set up. */
export const identityGroupList = z.strictObject({ groups: z.array(identityGroupView), claim: z.string().nullable() });
export type IdentityGroupList = z.infer<typeof identityGroupList>;

/** A group's role in a team; without a team, an admin's rights. One that is there gets the new role. */
export const addIdentityGroupInput = z.union([
  z.strictObject({ name: groupName(), teamId, role: z.enum(["lead", "member"]) }),
  z.strictObject({ name: groupName(), role: z.literal("admin") }),
]);
export type AddIdentityGroupInput = z.input<typeof addIdentityGroupInput>;

export const removeIdentityGroupInput = z.strictObject({ id: identityGroupId });
export type RemoveIdentityGroupInput = z.input<typeof removeIdentityGroupInput>;

/** As the provider writes it: a name, a path or an id. */
function groupName() {
  return typedLine({ max: 256, needed: "A group's name is needed." });
}
