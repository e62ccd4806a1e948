import type { NoticeView } from "#server/contracts/notice.ts";

/** At most so many toasts at once; the bell counts them all. */
const MOST = 3;

/** Unread notices that came after the newest one seen, the oldest first. Ids sort by the time they were made. */
export function freshNotices(notices: readonly NoticeView[], newestSeen: string): NoticeView[] {
  return notices
    .filter(({ id, readAt }) => readAt === null && id > newestSeen)
    .slice(0, MOST)
    .reverse();
}
