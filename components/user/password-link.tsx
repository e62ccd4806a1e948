"use client";

import { useState } from "react";
import { api } from "#components/api.ts";
import { formatExact } from "#components/format.ts";
import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";
import { ShownOnce } from "#components/ui/copy.tsx";
import { Dialog } from "#components/ui/dialog.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useSubmit } from "#components/use-submit.ts";
import type { PasswordLink, UserView } from "#server/contracts/user.ts";

/** Makes a link for a new password; it is shown once, to be handed over by whatever way one trusts. */
export default function PasswordLinkDialog({ person, onClose }: { person: UserView; onClose: () => void }) {
  const zone = useTimeZone();
  const [made, setMade] = useState<PasswordLink>();
  const { pending, error, run } = useSubmit<PasswordLink>([]);
  const make = async () => {
    const link = await run(() => api("POST", `/users/${person.id}/password-link`));
    if (link) setMade(link);
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={made ? `Link for ${person.name}` : `New password for ${person.name}`}
      description={
        made
          ? `Give it to ${person.name} alone: whoever opens it signs in as them. It works once, until ${formatExact(made.expiresAt, zone)}, and is not shown again.`
          : "They choose a password behind a link, and are signed out in every browser then; until then the old one works. Make sure that it is they who ask. An older link of theirs opens nothing any more."
      }
    >
      {made ? (
        <ShownOnce text={made.link} label="Link for a new password" onDone={onClose} />
      ) : (
        <form
          className="flex flex-col gap-4"
          onSubmit={(event) => {
            event.preventDefault();
            void make();
          }}
        >
          <FormFooter
            error={error}
            pending={pending}
            onCancel={onClose}
            save="Make the link"
            saving="Making the link"
          />
        </form>
      )}
    </Dialog>
  );
}
