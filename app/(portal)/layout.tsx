import { cookies } from "next/headers";
import type { ReactNode } from "react";
import { renderedAt } from "#components/live/rendered-at.ts";
import { Me } from "#components/session/me.tsx";
import { Bell } from "#components/shell/bell.tsx";
import { CommandMenu } from "#components/shell/command-menu.tsx";
import { destinationsOf } from "#components/shell/destinations.ts";
import { GpuPill } from "#components/shell/gpu-pill.tsx";
import { LiveGlance } from "#components/shell/live-glance.tsx";
import { Mark } from "#components/shell/mark.tsx";
import { MobileNav } from "#components/shell/mobile-nav.tsx";
import { Nav } from "#components/shell/nav.tsx";
import { ProfileMenu } from "#components/shell/profile-menu.tsx";
import { SampleDataBanner } from "#components/shell/sample-data-banner.tsx";
import { StopBanner } from "#components/shell/stop-banner.tsx";
import { treeFor } from "#components/shell/tree.ts";
import { Link } from "#components/ui/link.tsx";
import { readTheme, themeCookie } from "#server/contracts/theme.ts";
import { env } from "#server/env.ts";
import { glance as readGlance } from "#server/services/session/glance.ts";
import { me } from "#server/services/session/me.ts";
import { load, pageContext } from "../page-context.ts";

/** The frame of every page behind the sign-in: top bar, tree, and the page itself. */
export default async function PortalLayout({ children }: { children: ReactNode }) {
  const ctx = await pageContext();
  const [person, glance] = await load(() => Promise.all([me(ctx), readGlance(ctx)]));
  const theme = readTheme((await cookies()).get(themeCookie)?.value);
  const tree = treeFor(person);
  return (
    <LiveGlance read={glance} since={renderedAt()}>
      <a
        href="#main"
        className="sr-only z-50 rounded-md bg-raised px-3 py-2 focus:not-sr-only focus:fixed focus:top-2 focus:left-2"
      >
        Skip to the page
      </a>
      <header className="sticky top-0 z-30 flex h-12 items-center gap-2 border-b border-line bg-ground px-3 sm:px-4">
        <MobileNav tree={tree} />
        <Link href="/workspaces" className="mr-auto rounded-md px-1" aria-label="Sluice, to the workspaces">
          <Mark />
        </Link>
        <GpuPill />
        <CommandMenu destinations={destinationsOf(tree, person.teams)} />
        <Bell />
        <ProfileMenu name={person.name} email={person.email} theme={theme} />
      </header>
      {env().SLUICE_SAMPLE_DATA && <SampleDataBanner mayRemove={ctx.principal.isAdmin} />}
      <StopBanner person={person} />
      {person.isSample && (
        <p className="border-b border-line bg-warn-soft px-4 py-1.5 text-sm text-warn">
          You are the sample user in a window of its own. What is done here is in the audit.
        </p>
      )}
      <div className="flex w-full">
        <div className="sticky top-12 hidden h-[calc(100dvh-3rem)] w-48 shrink-0 overflow-y-auto border-r border-line px-3 py-5 lg:block">
          <Nav tree={tree} />
        </div>
        <main
          id="main"
          tabIndex={-1}
          className="min-w-0 max-w-[112rem] grow px-4 pt-6 pb-20 outline-none sm:px-6 lg:px-8"
        >
          <Me id={ctx.principal.userId}>{children}</Me>
        </main>
      </div>
    </LiveGlance>
  );
}
