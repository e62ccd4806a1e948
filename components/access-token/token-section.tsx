"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { formatCount } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { ShownOnce } from "#components/ui/copy.tsx";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Confirm, Dialog } from "#components/ui/dialog.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Check, Field, FormError, Select } from "#components/ui/field.tsx";
import { Section } from "#components/ui/page.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import { useSubmit } from "#components/use-submit.ts";
import type { AccessTokenView, CreateAccessTokenOutput } from "#server/contracts/access-token.ts";

type Scope = AccessTokenView["scopes"][number];

const MAY: Record<Scope, { label: string; hint: string }> = {
  read: { label: "Read", hint: "Everything that you can see." },
  workspaces: {
    label: "Workspaces",
    hint: "Launch, start, stop, change and delete your own, end your leases, ask for more quota.",
  },
  manage: { label: "Manage", hint: "Whatever else you may do, as a lead or an admin too." },
};

/** Personal access tokens for the API: each shown once, named, revoked here; how many calls a minute one may make. */
export function TokenSection({ tokens, callsPerMinute }: { tokens: AccessTokenView[]; callsPerMinute: number }) {
  const router = useRouter();
  const [ending, setEnding] = useState<AccessTokenView>();
  const columns: Column<AccessTokenView>[] = [
    { id: "name", header: "Name", sort: (row) => row.name, cell: (row) => row.name },
    {
      id: "scopes",
      header: "May",
      from: "md",
      cell: (row) => row.scopes.map((scope) => MAY[scope].label.toLowerCase()).join(", "),
    },
    {
      id: "made",
      header: "Made",
      align: "right",
      from: "sm",
      sort: (row) => row.createdAt,
      cell: (row) => <RelativeTime at={row.createdAt} />,
    },
    {
      id: "used",
      header: "Last used",
      align: "right",
      sort: (row) => row.lastUsedAt ?? "",
      cell: (row) =>
        row.lastUsedAt ? <RelativeTime at={row.lastUsedAt} /> : <span className="text-ink-2">never</span>,
    },
    {
      id: "ends",
      header: "Ends",
      align: "right",
      sort: (row) => row.expiresAt ?? "9999",
      cell: (row) => (row.expiresAt ? <RelativeTime at={row.expiresAt} /> : "never"),
    },
    {
      id: "revoke",
      header: "Revoke",
      quiet: true,
      align: "right",
      cell: (row) => (
        <Button size="sm" onClick={() => setEnding(row)} aria-label={`Revoke ${row.name}`}>
          Revoke
        </Button>
      ),
    },
  ];
  return (
    <Section
      title="Personal access tokens"
      detail={`For scripts that call the API in your name; each makes ${formatCount(callsPerMinute)} calls a minute at most`}
      actions={<NewToken />}
    >
      {tokens.length === 0 ? (
        <EmptyState title="No token yet">
          A token goes into the header <code>Authorization: Bearer slp_…</code> of a call to <code>/api/v1</code>.
        </EmptyState>
      ) : (
        <DataTable caption="Personal access tokens" rows={tokens} columns={columns} rowKey={(row) => row.id} />
      )}
      <Confirm
        open={ending !== undefined}
        onOpenChange={(open) => {
          if (!open) setEnding(undefined);
        }}
        title={`Revoke ${ending?.name ?? ""}?`}
        loses="Every script that uses this token is refused from now on. It cannot be brought back."
        confirmLabel="Revoke token"
        pendingLabel="Revoking"
        act={async () => {
          const result = await api("DELETE", `/access-tokens/${ending?.id}`);
          router.refresh();
          return result.ok ? undefined : result.error.message;
        }}
      />
    </Section>
  );
}

function NewToken() {
  const router = useRouter();
  const [open, setOpen] = useState(false);
  const [made, setMade] = useState<CreateAccessTokenOutput>();
  const { pending, error, fields, run } = useSubmit<CreateAccessTokenOutput>(["name", "days"]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const token = await run(() =>
      api("POST", "/access-tokens", {
        name: formText(form, "name"),
        days: Number(formText(form, "days")),
        scopes: ["read", ...form.getAll("scopes")],
      }),
    );
    if (!token) return;
    setMade(token);
    router.refresh();
  };
  return (
    <>
      <Button
        onClick={() => {
          setMade(undefined);
          setOpen(true);
        }}
      >
        New token
      </Button>
      <Dialog
        open={open}
        onOpenChange={setOpen}
        title={made ? "Your new token" : "New token"}
        description={
          made ? "Copy it now: it is not shown again." : "It calls the API in your name until it ends or is revoked."
        }
      >
        {made ? (
          <ShownOnce text={made.secret} label="Token" onDone={() => setOpen(false)} />
        ) : (
          <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
            <Field label="Name" name="name" required maxLength={100} hint="What it is for" error={fields.name} />
            <Select label="Ends after" name="days" defaultValue="90" error={fields.days}>
              <option value="7">7 days</option>
              <option value="30">30 days</option>
              <option value="90">90 days</option>
              <option value="366">a year</option>
            </Select>
            <fieldset className="flex flex-col gap-3">
              <legend className="mb-1.5 font-medium text-sm">It may</legend>
              <Check label={MAY.read.label} hint={MAY.read.hint} checked disabled />
              <Check
                label={MAY.workspaces.label}
                hint={MAY.workspaces.hint}
                name="scopes"
                value="workspaces"
                defaultChecked
              />
              <Check label={MAY.manage.label} hint={MAY.manage.hint} name="scopes" value="manage" />
            </fieldset>
            <FormError>{error}</FormError>
            <div className="flex justify-end gap-2">
              <Button onClick={() => setOpen(false)}>Cancel</Button>
              <Button type="submit" variant="primary" pending={pending} pendingLabel="Making the token">
                Make token
              </Button>
            </div>
          </form>
        )}
      </Dialog>
    </>
  );
}
