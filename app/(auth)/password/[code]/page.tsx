import { NewPasswordForm } from "#components/user/new-password-form.tsx";
import type { PasswordLinkView } from "#server/contracts/user.ts";
import { SluiceError } from "#server/errors.ts";
import { readPasswordLink } from "#server/services/user/read-password-link.ts";
import { anyContext } from "../../../page-context.ts";

export const metadata = { title: "New password" };

/** The page of a link for a new password: whose it is, and the form that sets it. */
export default async function PasswordPage({ params }: { params: Promise<{ code: string }> }) {
  const { code } = await params;
  const person = await readOrReason(code);
  if (typeof person === "string") {
    return (
      <div>
        <h1 className="text-xl font-semibold tracking-tight">This link is invalid or expired</h1>
        <p className="mt-1 text-ink-2">{person}</p>
      </div>
    );
  }
  return (
    <>
      <div>
        <h1 className="text-xl font-semibold tracking-tight">Choose a new password</h1>
        <p className="mt-1 text-ink-2">
          For {person.name}, {person.email}. You are signed out in every browser; workspaces and notebooks keep running.
        </p>
      </div>
      <NewPasswordForm code={code} email={person.email} />
    </>
  );
}

/** Whose link it is, or the sentence why it opens nothing. */
async function readOrReason(code: string): Promise<PasswordLinkView | string> {
  try {
    return await readPasswordLink(await anyContext(), { code });
  } catch (error) {
    if (error instanceof SluiceError) return error.message.replace(/^code: /, "");
    throw error;
  }
}
