import type { ReactNode } from "react";
import { Card, Facts } from "#components/ui/page.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import type { ImageVersionView } from "#server/contracts/image.ts";
import { sizeInWords } from "#server/contracts/size-words.ts";

type Proposed = NonNullable<ImageVersionView["proposed"]>;

/** What was proposed, by whom, for whom, and who has approved it. */
export function ProposalFacts({
  version,
  proposed,
  teams,
}: {
  version: ImageVersionView;
  proposed: Proposed;
  /** Whose names are known. */
  teams: { id: string; name: string }[];
}) {
  const { source, imports, needs, atLeast, team, by, approvedAt, approvedBy } = proposed;
  const rows: [string, ReactNode][] = [
    ["Name", <code key="name">{version.image.name}</code>],
    ["Version", <code key="version">{version.version}</code>],
    ["Proposed", <When key="when" at={version.createdAt} by={by} />],
    ["Team", team?.name ?? "gone"],
  ];
  if (source.kind === "image") rows.push(["Image", <code key="image">{source.reference}</code>]);
  else {
    rows.push(["Base", source.base]);
    if (source.python !== undefined) rows.push(["Python", source.python]);
    const packages = source.requirements.trim();
    rows.push(["Packages", packages === "" ? "those of its base" : <pre key="packages">{packages}</pre>]);
  }
  if (imports.length > 0) rows.push(["Imports", imports.join(", ")]);
  if (needs?.minCudaVersion !== undefined) rows.push(["CUDA", `${needs.minCudaVersion / 1000} and newer`]);
  rows.push(["Sizes", atLeast === undefined ? "any" : `from ${sizeInWords(atLeast)}`]);
  if (approvedAt !== null) {
    rows.push(["Approved", <When key="approved" at={approvedAt} by={approvedBy} />]);
    const names = version.teamIds?.map((id) => teams.find((each) => each.id === id)?.name ?? "another team");
    rows.push(["For", names?.join(", ") ?? "everybody"]);
  }
  return (
    <Card className="px-3.5 py-3">
      <Facts rows={rows} />
    </Card>
  );
}

function When({ at, by }: { at: string; by: string | null }) {
  return (
    <>
      <RelativeTime at={at} />
      {by !== null && ` by ${by}`}
    </>
  );
}
