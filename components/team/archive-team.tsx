"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { plural } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { TeamView } from "#server/contracts/team.ts";

/** Puts a team away; while it is in use the server says what there still is. */
export function ArchiveTeam({ team: { id, name, memberCount } }: { team: TeamView }) {
  const router = useRouter();
  const toast = useToast();
  const [open, setOpen] = useState(false);
  const archive = async () => {
    const result = await api("POST", `/teams/${id}/archive`);
    if (!result.ok) return result.error.message;
    toast(`Team ${name} is archived.`);
    router.push("/teams");
    return undefined;
  };
  return (
    <>
      <Button onClick={() => setOpen(true)}>Archive</Button>
      <Confirm
        open={open}
        onOpenChange={setOpen}
        title={`Archive team ${name}?`}
        loses={`Its quotas, reservations and calendar end, and ${plural(memberCount, "person leaves", "people leave")} it. What it used, its costs and the audit stay under its name, which no other team gets. You can bring it back, without people and quotas.`}
        confirmLabel="Archive"
        pendingLabel="Archiving"
        act={archive}
      />
    </>
  );
}
