"use client";

import { X } from "lucide-react";
import { useState } from "react";
import { Button } from "#components/ui/button.tsx";
import { Field, Select } from "#components/ui/field.tsx";
import { Link } from "#components/ui/link.tsx";
import { type UsageQuestion, usageHref } from "./usage-question.ts";

/** Which time, which part of the pool, and by what. An ordinary form: the address holds the question. */
export function UsageFilter({
  question,
  types,
  teams,
  anyTeam,
  names,
}: {
  question: UsageQuestion;
  types: string[];
  teams: { id: string; name: string }[];
  /** Admins may look at all teams together. */
  anyTeam: boolean;
  /** Of the one person and the one workspace that are asked for. */
  names: { person: string | null; workspace: string | null };
}) {
  // Whoever chooses a day means days.
  const [last, setLast] = useState(question.last);
  return (
    <form className="mb-3 grid grid-cols-2 items-end gap-3 sm:flex sm:flex-wrap print:hidden" method="get">
      {last !== "" && <input type="hidden" name="last" value={last} />}
      {(["from", "to"] as const).map((end) => (
        <Field
          key={end}
          label={end === "from" ? "From (UTC)" : "To"}
          name={end}
          type="date"
          defaultValue={question[end]}
          onChange={() => setLast("")}
          className="sm:w-40"
        />
      ))}
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
      <Select label="Sort by" name="order" defaultValue={question.order} className="sm:w-36">
        <option value="held">most held</option>
        <option value="idle">most idle</option>
      </Select>
      <Button type="submit" className="h-9">
        Show
      </Button>
      {(["person", "workspace"] as const)
        .filter((key) => question[key] !== "")
        .map((key) => (
          <span key={key} className="inline-flex h-9 items-center gap-1.5 rounded-md bg-accent-soft px-2.5 text-sm">
            <input type="hidden" name={key} value={question[key]} />
            Only {key} {names[key] ?? question[key]}
            <Link
              href={usageHref({ ...question, [key]: "" })}
              aria-label={`Not only ${key} ${names[key] ?? question[key]}`}
              className="rounded p-0.5 hover:bg-hover"
            >
              <X aria-hidden="true" className="size-3.5" />
            </Link>
          </span>
        ))}
    </form>
  );
}
