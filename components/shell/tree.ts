/** The tree of pages, and who sees which branch. */
export type Branch = { title: string; pages: { href: string; label: string }[] };

/** The branches for a person: everyone works, leads and admins see what they answer for. */
export function treeFor(person: { isAdmin: boolean; teams: { name: string; role: "lead" | "member" }[] }): Branch[] {
  const leads = person.teams.some((team) => team.role === "lead");
  return [
    {
      title: "Work",
      pages: [
        { href: "/workspaces", label: "Workspaces" },
        { href: "/gpus", label: "GPUs" },
        { href: "/datasets", label: "Datasets" },
        { href: "/teams", label: person.isAdmin ? "Teams & quotas" : "Team" },
      ],
    },
    ...(person.isAdmin || leads
      ? [
          {
            title: "Operate",
            pages: [
              { href: "/pool", label: "Pool" },
              { href: "/queue", label: "Queue" },
              ...(person.isAdmin ? [{ href: "/health", label: "Health" }] : []),
            ],
          },
        ]
      : []),
    ...(person.isAdmin || leads
      ? [
          {
            title: "Plan",
            pages: [
              { href: "/usage", label: "Usage" },
              ...(person.isAdmin ? [{ href: "/what-if", label: "What-if" }] : []),
              { href: "/costs", label: "Costs" },
              { href: "/gpu-audit", label: "GPU audit" },
            ],
          },
        ]
      : []),
    ...(person.isAdmin
      ? [
          {
            title: "Govern",
            pages: [
              { href: "/people", label: "People" },
              { href: "/environments", label: "Environments" },
              { href: "/sizes", label: "Sizes" },
              { href: "/policies", label: "Policies" },
              { href: "/calendars", label: "Calendars" },
              { href: "/audit", label: "Audit" },
            ],
          },
        ]
      : leads
        ? [
            {
              title: "Govern",
              pages: [
                { href: "/environments", label: "Environments" },
                { href: "/audit", label: "Audit" },
              ],
            },
          ]
        : []),
  ];
}
