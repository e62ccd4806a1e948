import { LiveRefresh } from "#components/live/live.tsx";
import { MarkAllRead, NoticeSection } from "#components/notice/notice-section.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader } from "#components/ui/page.tsx";
import { Paging } from "#components/ui/paging.tsx";
import { TabLinks } from "#components/ui/tabs.tsx";
import { noticeId } from "#server/contracts/common.ts";
import { list } from "#server/services/notice/list.ts";
import { loadFrom, pageContext } from "../../page-context.ts";

export const metadata = { title: "Notices" };

type Props = { searchParams: Promise<Record<string, string | string[] | undefined>> };

const PAGE = 50;

/** All that one was told in the last 60 days, or what of it is unread. */
export default async function NoticesPage({ searchParams }: Props) {
  const ctx = await pageContext();
  const asked = await searchParams;
  const show = asked.show === "unread" ? "unread" : "all";
  const after = noticeId.safeParse(asked.after).data;
  const { notices, unread, total, next } = await loadFrom(after, (from) =>
    list(ctx, { show, after: from, limit: PAGE }),
  );
  return (
    <>
      <LiveRefresh topics={["notice"]} />
      <PageHeader title="Notices" detail="Kept for 60 days" actions={<MarkAllRead unread={unread} />} />
      <TabLinks
        label="Which notices"
        current={show}
        tabs={[
          { id: "all", label: "All", href: "/notices" },
          { id: "unread", label: "Unread", href: "/notices?show=unread" },
        ]}
      />
      {notices.length > 0 ? (
        <NoticeSection notices={notices} />
      ) : show === "unread" ? (
        <EmptyState title="Nothing is unread">What you were told before stands under All.</EmptyState>
      ) : (
        <EmptyState title="Nothing yet">
          Here you are told when a GPU is about to be taken back or idles, when your turn has come, and how far a budget
          has been used.
        </EmptyState>
      )}
      <div className="max-w-3xl">
        <Paging
          path="/notices"
          question={show === "unread" ? { show } : {}}
          search=""
          label="Notices"
          {...{ total, next, shown: notices.length, first: after === undefined }}
        />
      </div>
    </>
  );
}
