import { expect, it } from "vitest";
import { freshNotices } from "#components/shell/fresh-notices.ts";
import type { NoticeView } from "#server/contracts/notice.ts";

const notice = (id: string, readAt: string | null = null): NoticeView => ({
  ...{ id, kind: "granted", title: id, body: "", href: "/gpus", dueAt: null },
  ...{ createdAt: "2026-11-22T00:00:00Z", readAt },
});
const ids = (notices: readonly NoticeView[], seen: string) => freshNotices(notices, seen).map(({ id }) => id);

it("tells what came since, the oldest first, and nothing that was read elsewhere", () => {
  const list = [notice("ntc-d"), notice("ntc-c", "2026-11-22T00:00:01Z"), notice("ntc-b"), notice("ntc-a")];
  expect(ids(list, "ntc-a")).toEqual(["ntc-b", "ntc-d"]);
  expect(ids(list, "ntc-d")).toEqual([]);
});

it("shows the newest three of many, also when there was nothing before", () => {
  expect(
    ids(
      ["e", "d", "c", "b"].map((id) => notice(id)),
      "",
    ),
  ).toEqual(["c", "d", "e"]);
});
