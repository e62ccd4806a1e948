import { choicesFor, type DatasetChoice } from "#components/dataset/dataset-choice.ts";
import { LiveRefresh } from "#components/live/live.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Link } from "#components/ui/link.tsx";
import { PageHeader } from "#components/ui/page.tsx";
import { LaunchAgainCard } from "#components/workspace/launch-again.tsx";
import { LaunchForm, type LaunchTeam, type LaunchValues } from "#components/workspace/launch-form.tsx";
import type { ImageView } from "#server/contracts/image.ts";
import { launcherFor } from "#server/launchers/choice.ts";
import { quotasNow } from "#server/services/lease/quotas-now.ts";
import { list as listWorkspaces } from "#server/services/workspace/list.ts";
import { load, pageContext } from "../../../page-context.ts";
import { freeName, launchAgain } from "../launch-again.ts";
import { readLaunchable } from "../launchable.ts";

export const metadata = { title: "Launch a workspace" };

type Props = { searchParams: Promise<Record<string, string | string[] | undefined>> };

/** Choose an environment and launch. A link may fill the form in; only its button launches anything. */
export default async function LaunchPage({ searchParams }: Props) {
  const ctx = await pageContext();
  const [{ images: found, person, datasets, sizes, last }, gpus, { workspaces }] = await load(() =>
    Promise.all([readLaunchable(), quotasNow(ctx), listWorkspaces(ctx)]),
  );
  const images = found.map((image) => ({ ...image, launcher: launcherFor(image.name) ?? "" }));
  const teams = person.teams.map((team) => ({
    id: team.id,
    name: team.name,
    types: gpus.quotas
      .filter((quota) => quota.teamId === team.id)
      .map((quota) => ({ ...quota, averageMicro: gpus.averageMicro.get(quota.gpuType) ?? null })),
  }));
  const asked = readLink(await searchParams);
  const byLink = Object.keys(asked).length > 0;
  const taken = workspaces.map((each) => each.name);
  // What a link asks for stands alone.
  const again = byLink ? undefined : await launchAgain(taken);
  const teamId = teamOf(asked, teams)?.id ?? "";
  const offered = images.filter(({ teamIds }) => teamIds === null || teamIds.includes(teamId));
  const names = (all: readonly { name: string }[]) => all.map(({ name }) => name);
  const known = { images: offered, teams, datasets, sizes: names(sizes.sizes) };
  const initial = filledIn(asked, known);
  const missing = notThere(asked, known);
  return (
    <>
      <LiveRefresh topics={["dataset", "environment", "size"]} />
      <LiveRefresh topics={["lease", "pool"]} seconds={5} />
      <PageHeader
        title="Launch a workspace"
        above={
          <Link href="/workspaces" className="underline-offset-4 hover:underline">
            Workspaces
          </Link>
        }
      />
      {images.length === 0 ? (
        <EmptyState title="No environment is approved yet">
          An admin approves environments before they can be launched.
        </EmptyState>
      ) : teams.length === 0 ? (
        <EmptyState title="You belong to no team yet">
          A workspace belongs to a team. Ask a team lead or an admin to add {person.email}.
        </EmptyState>
      ) : (
        <>
          {byLink && (
            <div className="mb-5 max-w-3xl rounded-md bg-warn-soft px-3 py-2 text-warn">
              <p>A link has filled this in. Look at it: nothing is launched before you press Launch.</p>
              {missing.length > 0 && (
                <p>
                  Not as the link says, because you cannot choose it here: {missing.join(", ")}. Ask whoever gave you
                  the link, or go on with what is chosen below.
                </p>
              )}
            </div>
          )}
          {again && <LaunchAgainCard again={again} />}
          <LaunchForm
            images={images}
            teams={teams}
            datasets={datasets}
            sizes={sizes}
            currency={gpus.currency}
            initial={{ ...initial, size: asked.size ?? last?.size, name: asked.name ?? freeName("notebooks", taken) }}
          />
        </>
      )}
    </>
  );
}

const PARAMETERS = ["name", "image", "version", "team", "amount", "type", "datasets", "size"] as const;
type LaunchLink = Partial<Record<(typeof PARAMETERS)[number], string>>;

/** `/workspaces/new?image=cuda-python&version=3f2a9c01d4be&team=vision&amount=0.5&type=soft&datasets=imagenet,coco&size=Small&name=mine`. */
function readLink(given: Awaited<Props["searchParams"]>): LaunchLink {
  return Object.fromEntries(
    PARAMETERS.flatMap((name) => {
      const value = given[name];
      return typeof value === "string" ? [[name, value.slice(0, 500)]] : [];
    }),
  );
}

type Known = { images: ImageView[]; teams: LaunchTeam[]; datasets: DatasetChoice[]; sizes: string[] };

const teamOf = (link: LaunchLink, teams: LaunchTeam[]) => teams.find(({ name }) => name === link.team) ?? teams[0];
const imageOf = (link: LaunchLink, images: ImageView[]) => images.find(({ name }) => name === link.image) ?? images[0];
/** By its first digits, as pages show them. */
const versionOf = (link: LaunchLink, images: ImageView[], teamId = "") =>
  imageOf(link, images)?.versions.find(
    ({ version, teamIds }) =>
      version.slice(0, 12) === link.version?.slice(0, 12) && (teamIds === null || teamIds.includes(teamId)),
  );
const datasetsOf = (link: LaunchLink) => (link.datasets ?? "").split(",").filter((name) => name !== "");

/** What the link names and the person cannot choose, in words: another team pays, another environment starts. */
function notThere(link: LaunchLink, { images, teams, datasets, sizes }: Known): string[] {
  const team = teamOf(link, teams);
  const mounts = choicesFor(datasets, team?.id ?? "").map(({ name }) => name);
  const lacks = (what: string, wanted: string | undefined, there: string[]) =>
    wanted === undefined || there.includes(wanted) ? [] : [`${what} ${wanted}`];
  return [
    ...lacks(
      "environment",
      link.image,
      images.map(({ name }) => name),
    ),
    ...(link.version === undefined || versionOf(link, images, team?.id) ? [] : lacks("version", link.version, [])),
    ...lacks("team", link.team, [team?.name ?? ""]),
    ...lacks("GPU type", link.type, team?.types.map(({ gpuType }) => gpuType) ?? []),
    ...(sizes.some((name) => name.toLowerCase() === link.size?.toLowerCase()) ? [] : lacks("size", link.size, [])),
    ...datasetsOf(link).flatMap((name) => lacks("dataset", name, mounts)),
  ];
}

/** What the link names and is there, the first of each where it does not. */
function filledIn(link: LaunchLink, { images, teams, datasets }: Known): Omit<LaunchValues, "name" | "size"> {
  const team = teamOf(link, teams);
  const names = datasetsOf(link);
  return {
    image: imageOf(link, images)?.name ?? "",
    versionId: versionOf(link, images, team?.id)?.id,
    teamId: team?.id ?? "",
    amount: link.amount ?? "0.5",
    gpuType: team?.types.find(({ gpuType }) => gpuType === link.type)?.gpuType,
    datasets: choicesFor(datasets, team?.id ?? "").flatMap(({ id, name }) => (names.includes(name) ? [id] : [])),
  };
}
