"use client";

import { Button } from "#components/ui/button.tsx";
import { Field, Select } from "#components/ui/field.tsx";

export type UsageQuestion = { from: string; to: string; type: string; team: string; by: string };

/** Which time, which part of the pool, and by what. An ordinary form: the address holds the question. */
export function UsageFilter({
  question,
  types,
  teams,
  anyTeam,
}: {
  question: UsageQuestion;
  types: string[];
  teams: { id: string; name: string }[];
  /** Admins may look at all teams together. */
  anyTeam: boolean;
}) {
  return (
    <form className="mb-6 grid grid-cols-2 items-end gap-3 sm:flex sm:flex-wrap print:hidden" method="get">
      <Field label="From (UTC)" name="from" type="date" defaultValue={question.from} className="sm:w-40" />
      <Field label="To" name="to" type="date" defaultValue={question.to} className="sm:w-40" />
      <Select label="GPU type" name="type" defaultValue={question.type} className="sm:w-32">
        <option value="">all</option>
        {types.map((type) => (
          <option key={type}>{type}</option>
        ))}
      </Select>
      <Select label="Team" name="team" defaultValue={question.team} className="sm:w-40">
        {anyTeam && <option value="">all</option>}
        {teams.map((team) => (
          <option key={team.id} value={team.id}>
            {team.name}
          </option>
        ))}
      </Select>
      <Select label="By" name="by" defaultValue={question.by} className="sm:w-36">
        <option value="team">team</option>
        <option value="person">person</option>
        <option value="workspace">workspace</option>
        <option value="type">GPU type</option>
      </Select>
      <Button type="submit" className="h-9">
        Show
      </Button>
    </form>
  );
}
