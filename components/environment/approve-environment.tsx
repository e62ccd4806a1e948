"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { Check } from "#components/ui/field.tsx";

type Team = { id: string; name: string };

/** Approves what has passed its check, for everybody or for some teams. */
export function ApproveEnvironment({
  id,
  title,
  teams,
  chosen,
}: {
  id: string;
  title: string;
  teams: Team[];
  chosen: string[] | null;
}) {
  const router = useRouter();
  const [asking, setAsking] = useState(false);
  const [everybody, setEverybody] = useState(chosen === null);
  const [some, setSome] = useState<ReadonlySet<string>>(() => new Set(chosen ?? []));
  const act = async () => {
    const teamIds = everybody ? null : [...some];
    if (teamIds?.length === 0) return "Choose a team, or everybody.";
    const result = await api("POST", `/image-versions/${id}/approve`, { teamIds });
    router.refresh();
    return result.ok ? undefined : result.error.message;
  };
  const turn = (team: string, on: boolean) =>
    setSome((before) => new Set(on ? [...before, team] : [...before].filter((each) => each !== team)));
  return (
    <>
      <Button variant="primary" onClick={() => setAsking(true)}>
        Approve and roll out
      </Button>
      <Confirm
        open={asking}
        onOpenChange={setAsking}
        danger={false}
        title={`Roll ${title} out?`}
        loses="New launches take this version. Workspaces with an older one keep it, and are offered this one for their next restart."
        confirmLabel="Approve"
        pendingLabel="Approving"
        act={act}
      >
        <Check label="For everybody" checked={everybody} onChange={(event) => setEverybody(event.target.checked)} />
        {!everybody && (
          <fieldset className="flex flex-col gap-1.5">
            <legend className="mb-1.5 text-sm font-medium">For these teams</legend>
            {teams.map((team) => (
              <Check
                key={team.id}
                label={team.name}
                checked={some.has(team.id)}
                onChange={(event) => turn(team.id, event.target.checked)}
              />
            ))}
          </fieldset>
        )}
      </Confirm>
    </>
  );
}
