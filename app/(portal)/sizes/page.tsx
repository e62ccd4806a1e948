import { notFound } from "next/navigation";
import { LiveRefresh } from "#components/live/live.tsx";
import { SizePolicyForm } from "#components/size/size-policy-form.tsx";
import { SizeSection } from "#components/size/size-section.tsx";
import { Card, PageHeader, Section } from "#components/ui/page.tsx";
import { sizeInWords } from "#server/contracts/size-words.ts";
import { names as teamNames } from "#server/services/team/names.ts";
import { list as listSizes } from "#server/services/workspace-size/list.ts";
import { load, pageContext } from "../../page-context.ts";

export const metadata = { title: "Sizes" };

/** Which sizes of workspaces are offered to whom, and who may choose others. */
export default async function SizesPage() {
  const ctx = await pageContext();
  if (!ctx.principal.isAdmin) notFound();
  const [{ sizes, policy, launchers }, teams] = await load(() => Promise.all([listSizes(ctx), teamNames(ctx)]));
  return (
    <>
      <LiveRefresh topics={["size"]} />
      <PageHeader title="Sizes" detail="Cores and memory of a workspace" />
      <SizeSection sizes={sizes} teams={teams} />
      <Section title="Custom sizes" detail="Who may choose cores and memory freely. A team's own policy overrides it.">
        <Card className="px-4 py-3.5">
          <SizePolicyForm policy={policy} />
        </Card>
      </Section>
      {launchers.length > 0 && (
        <p className="text-sm text-ink-2">
          {launchers
            .map(({ launcher, maxCpuMilli: cpuMilli, maxMemoryBytes: memoryBytes }) => {
              const most = sizeInWords({ cpuMilli, memoryBytes });
              return launcher === "local"
                ? `This machine has ${most}: larger ones cannot be chosen on it. Its workspaces share it, so that a size here is told to programs (threads, MEM_LIMIT) and not enforced.`
                : `The launcher ${launcher} gives ${most} at most.`;
            })
            .join(" ")}
        </p>
      )}
    </>
  );
}
