import { RunTable } from "#components/conformance/run-table.tsx";
import { Link } from "#components/ui/link.tsx";
import { PageHeader } from "#components/ui/page.tsx";
import { list } from "#server/services/conformance/list.ts";
import { load, pageContext } from "../../../page-context.ts";

export const metadata = { title: "Works here?" };

/** Which packages were tried on which GPU types, and what of their tests passed. */
export default async function WorksHerePage() {
  const ctx = await pageContext();
  const found = await load(() => list(ctx));
  return (
    <>
      <PageHeader
        above={
          <Link href="/gpus" className="underline underline-offset-4">
            GPUs
          </Link>
        }
        title="Works here?"
        detail="What passed of each package's tests when this version was recorded; remote is through the network, as notebooks here borrow GPUs"
      />
      <RunTable {...found} />
    </>
  );
}
