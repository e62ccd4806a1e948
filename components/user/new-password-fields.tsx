import { formText } from "#components/form-text.ts";
import { Check, Field } from "#components/ui/field.tsx";
import type { Submit } from "#components/use-submit.ts";

/** The fields below that show their own sentence. */
export const NEW_PASSWORD = ["password", "again"];

/** A new password, typed twice, and whether access tokens end with the old one. */
export function NewPasswordFields({ email, errors }: { email: string; errors: Record<string, string> }) {
  return (
    <>
      {/* What a password manager keeps the new password under. */}
      <input type="email" autoComplete="username" value={email} readOnly hidden />
      <Field
        label="New password"
        name="password"
        type="password"
        autoComplete="new-password"
        required
        minLength={8}
        hint="8 characters or more"
        error={errors.password}
      />
      <Field
        label="New password again"
        name="again"
        type="password"
        autoComplete="new-password"
        required
        minLength={8}
        error={errors.again}
      />
      <Check
        name="revokeTokens"
        label="Revoke my access tokens, too"
        hint="Choose this if someone else may know the old password. Scripts that use a token then need a new one."
      />
    </>
  );
}

/** What was typed there; undefined, and refused at its field, when the two differ. */
export function readNewPassword(
  form: FormData,
  fail: Submit<unknown>["fail"],
): { password: string; revokeTokens: boolean } | undefined {
  const password = formText(form, "password");
  if (password === formText(form, "again")) return { password, revokeTokens: form.has("revokeTokens") };
  fail("The two passwords differ. Type the same one twice.", "again");
  return undefined;
}
