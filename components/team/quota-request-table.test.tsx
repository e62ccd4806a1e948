// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { button, show } from "#components/testing.tsx";
import { QuotaRequestTable } from "./quota-request-table.tsx";

vi.mock("next/navigation", () => ({
  useRouter: () => ({ refresh: () => undefined }),
  useSearchParams: () => new URLSearchParams(),
  usePathname: () => "/teams/vision",
}));

const request = {
  ...{ id: "qrq-1", teamId: "team-1", gpuType: "soft", userId: "usr-1", who: "Max" },
  ...{ guaranteedMilli: 0, limitMilli: 1000, reason: "a paper", state: "asked" as const, decidedAt: null },
  ...{ startsAt: "2026-01-01T00:00:00Z", endsAt: "2099-01-01T00:00:00Z" },
};

it("confirms an approval, and warns if the limit exceeds the pool", async () => {
  const beyondPool = "limit 2.0, the pool has 1.0";
  const { person, calls } = show(<QuotaRequestTable requests={[{ ...request, beyondPool }]} mayDecide />, () => ({}));
  expect(screen.getByText(beyondPool)).toBeDefined();
  await person.click(button("Approve the request of Max"));
  expect(await screen.findByText("The request is approved.")).toBeDefined();
  expect(calls).toMatchObject([{ path: "/quota-requests/qrq-1/decide", body: { approve: true } }]);
});

it("ends an approved increase early, only for people who may decide", async () => {
  const approved = { ...request, state: "approved" as const };
  const { person, calls, showAgain } = show(<QuotaRequestTable requests={[approved]} mayDecide />, () => ({}));
  await person.click(button("End the increase of Max"));
  await person.click(button("End increase"));
  expect(await screen.findByText("The increase of 1.0 soft has ended.")).toBeDefined();
  expect(calls).toMatchObject([{ method: "POST", path: "/quota-requests/qrq-1/end" }]);
  showAgain(<QuotaRequestTable requests={[approved]} mayDecide={false} />);
  expect(screen.queryByRole("button", { name: "End the increase of Max" })).toBeNull();
});
