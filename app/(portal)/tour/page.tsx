import { formatAmount } from "#components/format.ts";
import { LiveRefresh } from "#components/live/live.tsx";
import { Tour } from "#components/tour/tour.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Link } from "#components/ui/link.tsx";
import { Meter } from "#components/ui/meter.tsx";
import { Card, PageHeader } from "#components/ui/page.tsx";
import type { LeaseBoard } from "#server/contracts/lease-board.ts";
import { list as listImages } from "#server/services/image/list.ts";
import { list as listWorkspaces } from "#server/services/workspace/list.ts";
import { load, pageContext } from "../../page-context.ts";
import { readBoard } from "../gpus/my-gpus.ts";

export const metadata = { title: "Tour" };

/** The environment whose programs run on every kind of GPU, the software GPU too. */
const ENVIRONMENT = "cuda-python";

/** Ninety seconds: two notebooks on the left, the GPU that they share on the right. */
export default async function TourPage() {
  const ctx = await pageContext();
  const [{ images }, board, { workspaces }] = await load(() =>
    Promise.all([listImages(ctx), readBoard(), listWorkspaces(ctx, { scope: "mine" })]),
  );
  const quota = board.quotas.find(({ limitMilli, capacityMilli }) => limitMilli > 0 && capacityMilli > 0);
  const earlier = workspaces.find(({ name, image }) => name === "tour" && image.name === ENVIRONMENT);
  const missing = !images.some(({ name }) => name === ENVIRONMENT)
    ? "The tour runs in the environment CUDA Python, which is not approved here."
    : quota === undefined
      ? "The tour borrows a GPU: it needs a team with a quota for a GPU type, and a GPU server that is up."
      : undefined;
  return (
    <>
      <LiveRefresh topics={["mine"]} />
      <LiveRefresh topics={["lease", "pool"]} seconds={5} />
      <PageHeader
        title="Tour"
        detail="Two notebooks share a GPU. Attach, detach and attach again without losing a variable"
        above={
          <Link href="/workspaces" className="underline-offset-4 hover:underline">
            Workspaces
          </Link>
        }
      />
      {missing !== undefined || quota === undefined ? (
        <EmptyState title="Not yet">{missing}</EmptyState>
      ) : (
        <div className="grid gap-6 lg:grid-cols-[minmax(0,1fr)_20rem]">
          <Tour
            amounts={amountsFor(quota)}
            launch={{ image: ENVIRONMENT, teamId: quota.teamId, gpuType: quota.gpuType }}
            known={
              earlier && { id: earlier.id, running: earlier.desired === "running" && earlier.observed !== "failed" }
            }
          />
          <aside aria-label="The GPU" className="order-first lg:order-last">
            <Card className="flex flex-col gap-4 p-4 lg:sticky lg:top-16">
              <GpuBar quota={quota} board={board} />
              <div className="border-t border-line pt-3 text-sm text-ink-2">
                {quota.gpuType === "soft" && (
                  <p className="mb-2">The software GPU is correct, not fast; PyTorch needs a real GPU.</p>
                )}
                {ctx.principal.isAdmin ? (
                  <p>
                    Now your real GPU:{" "}
                    <Link href="/pool" className="text-accent underline underline-offset-4">
                      Pool → Add GPU server
                    </Link>{" "}
                    shows one line to paste on its host.
                  </p>
                ) : (
                  <p>
                    Now your own work:{" "}
                    <Link href="/workspaces/new" className="text-accent underline underline-offset-4">
                      launch a workspace
                    </Link>
                    .
                  </p>
                )}
              </div>
            </Card>
          </aside>
        </div>
      )}
    </>
  );
}

type Quota = LeaseBoard["quotas"][number];

/** Half of what the team may have at most, and then more than is left of it. */
function amountsFor({ limitMilli, capacityMilli }: Quota): { first: string; second: string } {
  const most = Math.min(1000, limitMilli, capacityMilli);
  return { first: formatAmount(Math.ceil(most / 2)), second: formatAmount(most) };
}

/** Who has what of the GPU type now. */
function GpuBar({ quota, board }: { quota: Quota; board: LeaseBoard }) {
  const own = board.leases.filter(({ gpuType }) => gpuType === quota.gpuType);
  const mine = own.reduce((sum, { milli }) => sum + milli, 0);
  const others = Math.max(0, quota.capacityMilli - quota.freeMilli - mine);
  const waiting = board.requests.filter(({ gpuType }) => gpuType === quota.gpuType);
  const label = `${formatAmount(mine)} of ${formatAmount(quota.capacityMilli)} ${quota.gpuType} yours, ${formatAmount(others)} others'`;
  return (
    <div>
      <p className="text-sm text-ink-2">{quota.gpuType} in the pool</p>
      <p className="figures text-2xl font-medium tracking-tight">
        {formatAmount(mine)}{" "}
        <span className="text-base font-normal text-ink-2">of {formatAmount(quota.capacityMilli)}</span>
      </p>
      <div className="my-2">
        <Meter
          size="lg"
          max={quota.capacityMilli}
          label={label}
          segments={[
            ...own.map(({ id, milli, owner }) => ({
              key: id,
              value: milli,
              look: "used" as const,
              title: owner.label,
            })),
            { key: "others", value: others, look: "held" as const, title: "others" },
          ]}
        />
      </div>
      <ul className="flex flex-col gap-1 text-sm">
        {own.map(({ id, milli, owner }) => (
          <li key={id}>
            <span className="figures">{formatAmount(milli)}</span> {owner.label ?? "a notebook"}
          </li>
        ))}
        {waiting.map(({ requestId, milli, reason }) => (
          <li key={requestId} className="text-warn">
            <span className="figures">{formatAmount(milli)}</span> waits: {reason.message}
          </li>
        ))}
        {own.length + waiting.length === 0 && (
          <li className="text-ink-2">You have no GPUs of this type. The queue is empty.</li>
        )}
      </ul>
    </div>
  );
}
