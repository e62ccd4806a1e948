"use client";

import { MoreHorizontal } from "lucide-react";
import { useRouter } from "next/navigation";
import { lazy, Suspense, useState } from "react";
import { api } from "#components/api.ts";
import { plural } from "#components/format.ts";
import { IconButton } from "#components/ui/button.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { Menu, MenuItem } from "#components/ui/menu.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { UserView } from "#server/contracts/user.ts";

const PasswordLinkDialog = lazy(() => import("./password-link.tsx"));

type Deed = "admin" | "keep" | "unlink" | "password" | "deactivate";

/** An admin's actions on an account: admin rights, provider link, password link, deactivation. */
export function PersonActions({ person }: { person: UserView }) {
  const router = useRouter();
  const toast = useToast();
  const [asking, setAsking] = useState<Deed>();
  const call = async (method: "POST" | "PUT" | "DELETE", deed: string, done: string, body?: object) => {
    const result = await api(method, `/users/${person.id}/${deed}`, body);
    router.refresh();
    if (!result.ok) return result.error.message;
    toast(done);
    return undefined;
  };
  const reactivate = async () => {
    const refused = await call("POST", "reactivate", `${person.name} may sign in again.`);
    if (refused) toast(refused, "bad");
  };
  const place = (deed: Deed) => ({
    open: asking === deed,
    onOpenChange: (open: boolean) => setAsking(open ? deed : undefined),
  });
  return (
    <>
      <Menu
        trigger={
          <IconButton label={`More for ${person.name}`} className="size-7">
            <MoreHorizontal aria-hidden="true" className="size-4" />
          </IconButton>
        }
      >
        {!person.isSample && (
          <MenuItem onSelect={() => setAsking("admin")}>
            {person.isAdmin ? "Take admin rights back" : "Make an admin"}
          </MenuItem>
        )}
        {person.adminByGroup && <MenuItem onSelect={() => setAsking("keep")}>Keep as an admin</MenuItem>}
        {person.byProvider && <MenuItem onSelect={() => setAsking("unlink")}>Remove link</MenuItem>}
        {hasPassword(person) && <MenuItem onSelect={() => setAsking("password")}>New password</MenuItem>}
        {person.disabled ? (
          <MenuItem onSelect={() => void reactivate()}>Reactivate</MenuItem>
        ) : (
          <MenuItem danger onSelect={() => setAsking("deactivate")}>
            Deactivate
          </MenuItem>
        )}
      </Menu>
      <Confirm
        {...place("admin")}
        title={person.isAdmin ? `Remove admin rights of ${person.name}?` : `Make ${person.name} an admin?`}
        loses={
          person.isAdmin
            ? `They keep their teams and workspaces, and no longer see what is other people's.${person.adminByGroup ? " A group of the identity provider gives them these rights, and gives them again at their next sign-in while they are in it." : ""}`
            : "An admin sees and changes everything here: every team, workspace, GPU server and person."
        }
        confirmLabel={person.isAdmin ? "Remove admin rights" : "Make an admin"}
        pendingLabel="Saving"
        danger={person.isAdmin}
        act={() =>
          call("PUT", "admin", `${person.name} is ${person.isAdmin ? "no longer" : "now"} an admin.`, {
            isAdmin: !person.isAdmin,
          })
        }
      />
      <Confirm
        {...place("keep")}
        title={`Keep ${person.name} as an admin?`}
        loses="A group of the identity provider gives them these rights, and leaving it takes them back. Kept, they stay until an admin takes them back here."
        confirmLabel="Keep as an admin"
        pendingLabel="Saving"
        danger={false}
        act={() => call("PUT", "admin", `${person.name} stays an admin.`, { isAdmin: true })}
      />
      <Confirm
        {...place("unlink")}
        title={`Remove ${person.name}'s link to the identity provider?`}
        loses={`Use this when the provider has a new subject for this person, for example after a new app registration. The next sign-in with the verified e-mail ${person.email} is linked to this account. It ends all sign-in sessions and access tokens. Teams, workspaces and files stay.`}
        confirmLabel="Remove link"
        pendingLabel="Removing"
        act={() => call("DELETE", "oidc-link", `${person.name} is linked again at the next sign-in.`)}
      />
      {asking === "password" && (
        <Suspense>
          <PasswordLinkDialog person={person} onClose={() => setAsking(undefined)} />
        </Suspense>
      )}
      <Confirm
        {...place("deactivate")}
        title={`Deactivate ${person.name}?`}
        loses={`They are signed out everywhere and their access tokens are revoked. ${whatStops(person)} What is reserved for them alone is given up. Files, teams and what they used stay; you can reactivate the account.`}
        confirmLabel="Deactivate"
        pendingLabel="Deactivating"
        act={() => call("POST", "deactivate", `${person.name} is deactivated.`)}
      />
    </>
  );
}

/** Whose password is kept here, and who may sign in. */
const hasPassword = ({ isSample, disabled, byProvider }: UserView) => !isSample && !disabled && !byProvider;

function whatStops({ running }: UserView): string {
  if (running === 0) return "No workspace of theirs runs.";
  const stop = running === 1 ? "stops and gives its GPU back" : "stop and give their GPUs back";
  return `${plural(running, "workspace")} of theirs ${stop}, and what their notebooks hold in memory is lost.`;
}
