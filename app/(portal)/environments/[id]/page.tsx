import type { Metadata } from "next";
import { cache } from "react";
import { PackageTable } from "#components/environment/package-table.tsx";
import { plural } from "#components/format.ts";
import { LiveRefresh } from "#components/live/live.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader, Section } from "#components/ui/page.tsx";
import { getVersion } from "#server/services/image/get-version.ts";
import { load, pageContext } from "../../../page-context.ts";

type Props = { params: Promise<{ id: string }> };

const readVersion = cache(async (id: string) => {
  const ctx = await pageContext();
  return await load(() => getVersion(ctx, { id }));
});

export async function generateMetadata({ params }: Props): Promise<Metadata> {
  return { title: (await readVersion((await params).id)).image.title };
}

/** What is inside an environment: its packages with their versions and licences. */
export default async function EnvironmentPage({ params }: Props) {
  const { image, version, packages, buildMessage } = await readVersion((await params).id);
  const silent = packages?.filter(({ licence }) => licence === null).length ?? 0;
  return (
    <>
      <LiveRefresh topics="setup" />
      <PageHeader title={image.title} detail={image.description} />
      {buildMessage && (
        <p role="alert" className="mb-5 rounded-md bg-bad-soft px-3 py-2 text-bad">
          {buildMessage}
        </p>
      )}
      {packages === null ? (
        <EmptyState title="It has not been built here yet">
          Its packages appear when the first workspace has been launched with it.
        </EmptyState>
      ) : (
        <Section
          title="Packages"
          detail={`${plural(packages.length, "package")} in version ${version}; licences as the packages tell them${
            silent > 0 ? `, which ${silent === 1 ? "one does not" : `${silent} do not`}` : ""
          }`}
          className="max-w-4xl"
        >
          <PackageTable packages={packages} />
        </Section>
      )}
    </>
  );
}
