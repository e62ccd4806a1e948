/** What changes within so many milliseconds is read once. */
const TOGETHER_MS = 50;
/** By so much of its time, at most, one page is slower than another: what wakes all of them is not read by all at once. */
const SPREAD = 0.5;

/**
 * Calls `refresh` for whoever asks, that many seconds after the last time at the soonest; whoever wants it sooner than it
 * is due moves it, for all of them.
 */
export function createPace(refresh: () => void): (seconds: number) => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let due = Number.POSITIVE_INFINITY;
  let refreshedAt = 0;
  let slower = 1;
  return (seconds) => {
    const now = Date.now();
    const wanted = Math.max(now + TOGETHER_MS, refreshedAt + seconds * 1000 * slower);
    if (due <= wanted) return;
    clearTimeout(timer);
    due = wanted;
    timer = setTimeout(() => {
      due = Number.POSITIVE_INFINITY;
      refreshedAt = Date.now();
      slower = 1 + Math.random() * SPREAD;
      refresh();
    }, wanted - now);
  };
}
