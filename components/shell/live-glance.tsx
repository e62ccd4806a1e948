"use client";

import { useRouter } from "next/navigation";
import { createContext, type ReactNode, use, useCallback, useMemo, useState } from "react";
import { api } from "#components/api.ts";
import { createPace } from "#components/live/pace.ts";
import { useLive } from "#components/live/use-live.ts";
import type { Glance } from "#server/contracts/session.ts";

/** Between two readings of what is one's own, in seconds. */
const OWN_SECONDS = 1 / 3;
/** Of the place in the queue, which others move. */
const PLACE_SECONDS = 1;
/** Pace of the idle limit, which any GPU work moves. */
const WORK_SECONDS = 60;
const AGAIN_SECONDS = 5;

const Shown = createContext<{ glance: Glance; reread: () => Promise<void> } | undefined>(undefined);

/** What the frame shows: as it was rendered last or read since then, whichever is newer. */
export function useGlance(): { glance: Glance; reread: () => Promise<void> } {
  const shown = use(Shown);
  if (shown === undefined) throw new Error("Only the frame of a page shows one's own at a glance.");
  return shown;
}

type Props = { read: Glance; since: number; children: ReactNode };

/** Keeps what the frame shows up to date by a small question of its own, so that no page is rendered for it. */
export function LiveGlance({ read, since, children }: Props) {
  const router = useRouter();
  const [newest, setNewest] = useState(read);
  const glance = newest.at > read.at ? newest : read;
  const { reread, wake } = useMemo(
    () =>
      reader(
        (read) => setNewest((known) => (read.at > known.at ? read : known)),
        () => router.refresh(),
      ),
    [router],
  );
  useLive(
    "mine,notice",
    since,
    useCallback(() => wake(OWN_SECONDS), [wake]),
  );
  return (
    <Shown value={useMemo(() => ({ glance, reread }), [glance, reread])}>
      {glance.waiting !== null && <FollowOthers topic="lease" seconds={PLACE_SECONDS} read={glance} wake={wake} />}
      {glance.leases.length > 0 && <FollowOthers topic="pool" seconds={WORK_SECONDS} read={glance} wake={wake} />}
      {children}
    </Shown>
  );
}

/** Asks anew, at once or when it is due; a question that was not answered is asked again. */
function reader(onRead: (read: Glance) => void, onSignedOut: () => void) {
  const reread = async () => {
    const answer = await api<Glance>("GET", "/me/glance");
    if (answer.ok) onRead(answer.data);
    // The page goes where one signs in.
    else if (answer.error.code === "unauthenticated") onSignedOut();
    else wake(AGAIN_SECONDS);
  };
  const wake = createPace(() => void reread());
  return { reread, wake };
}

type Followed = { topic: string; seconds: number; read: Glance; wake: (seconds: number) => void };

function FollowOthers({ topic, seconds, read, wake }: Followed) {
  useLive(
    topic,
    Date.parse(read.at),
    useCallback(() => wake(seconds), [wake, seconds]),
  );
  return null;
}
