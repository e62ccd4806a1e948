/** A topic that this process finds out by itself, while somebody follows it. */

/** `who` is whom it concerns; null: everybody. */
export type Tell = (who: string | null) => void;

type Follower = {
  who: string | undefined;
  onTold: (who: string | null) => void;
  /** Milliseconds since 1970: is told at once if there may have been something since then. */
  since?: number | undefined;
};

export type Found = { subscribe: (follower: Follower) => () => void };

/** `find` begins with the first follower, and what it returned is called when the last one has left. */
export function createFound(find: (tell: Tell) => () => void): Found {
  const followers = new Set<Follower>();
  const toldAt = new Map<string | null, number>();
  let stop: (() => void) | undefined;

  const tell: Tell = (who) => {
    toldAt.set(who, Date.now());
    for (const follower of followers) if (who === null || who === follower.who) follower.onTold(who);
  };

  return {
    subscribe(follower) {
      followers.add(follower);
      if (stop === undefined) {
        // Of the time when nobody followed nothing is known.
        toldAt.clear();
        toldAt.set(null, Date.now());
        stop = find(tell);
      }
      const { since = Number.POSITIVE_INFINITY, who = null, onTold } = follower;
      if (since <= Math.max(toldAt.get(null) ?? 0, toldAt.get(who) ?? 0)) onTold(null);
      return () => {
        followers.delete(follower);
        if (followers.size > 0) return;
        stop?.();
        stop = undefined;
      };
    },
  };
}
