export const LAST_HOURS = ["1", "6", "24"] as const;

/** What the usage page is asked, as its address holds it; empty where all is meant. */
export type UsageQuestion = {
  from: string;
  to: string;
  /** So many hours up to now, in place of days. */
  last: "" | (typeof LAST_HOURS)[number];
  type: string;
  team: string;
  person: string;
  workspace: string;
  by: "team" | "person" | "workspace" | "type";
  order: "held" | "idle";
};

/** The page's address for a question. */
export function usageHref(question: UsageQuestion): string {
  const asked = Object.entries(question).filter(([, value]) => value !== "");
  return `/usage?${new URLSearchParams(asked).toString()}`;
}

/** The question about one row of its table alone, by what tells most of it. */
export function narrowed(question: UsageQuestion, id: string): UsageQuestion {
  const within = {
    team: { team: id, by: "person" },
    person: { person: id, by: "workspace" },
    workspace: { workspace: id, by: "person" },
    type: { type: id, by: "team" },
  } as const;
  return { ...question, ...within[question.by] };
}
