// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { button, field, Refusal, show } from "#components/testing.tsx";
import type { TeamPolicyView } from "#server/contracts/sharing.ts";
import PolicyForm from "./policy-form.tsx";

const refresh = vi.hoisted(() => vi.fn());
vi.mock("next/navigation", () => ({ useRouter: () => ({ refresh }) }));

const policy: TeamPolicyView = {
  ...{ maxLeaseSeconds: null, idleSeconds: null, workspaceIdleSeconds: null, minRunSeconds: null, noticeSeconds: null },
  ...{ longKernelSeconds: null, customSizes: null, maxCpuMilli: null, maxMemoryBytes: null, version: 1 },
  ...{ coTenancy: "any", computeCeiling: "none" },
  installation: {
    ...{ maxLeaseSeconds: 14_400, idleSeconds: 1200, workspaceIdleSeconds: 0, minRunSeconds: 600, noticeSeconds: 120 },
    ...{ longKernelSeconds: 60, customSizes: "nobody", maxCpuMilli: 4000, maxMemoryBytes: 16 * 2 ** 30 },
  },
};

const formOf = (own: TeamPolicyView, onClose = () => {}) => (
  <PolicyForm teamId="team-1" teamName="demo" policy={own} onClose={onClose} />
);

it("names a time that it cannot read at its field, and sends nothing", async () => {
  const { person, calls } = show(formOf(policy));
  await person.type(field("Idle limit of a GPU"), "soon");
  await person.click(button("Save policy"));
  expect(field("Idle limit of a GPU", /Write a time like 20m, 4h, 1h 30m or 7d\.$/).value).toBe("soon");
  expect(calls).toEqual([]);
});

it("says below each time what it does as it is typed, and what the installation's does while it is empty", async () => {
  const { person } = show(formOf(policy));
  expect(field("Idle limit of a GPU", /^After 20m without GPU work/)).toBeTruthy();
  await person.type(field("Idle limit of a GPU"), "45m");
  expect(field("Idle limit of a GPU", /^After 45m without GPU work/)).toBeTruthy();
  await person.type(field("Long kernel"), "0s");
  expect(field("Long kernel", "However long a kernel runs, nobody is told.")).toBeTruthy();
});

it("overwrites no policy that was changed meanwhile, keeps what was typed, and saves on the version that it then shows", async () => {
  const onClose = vi.fn();
  const stale = "Somebody else has changed the policy meanwhile; nothing of yours is saved.";
  const { person, calls, showAgain } = show(formOf(policy, onClose), ({ body }) =>
    (body as { version: number }).version === 1 ? new Refusal("conflict", stale) : policy,
  );
  await person.type(field("Notice"), "3m");
  await person.click(button("Save policy"));
  expect(screen.getByText(stale)).toBeTruthy();
  expect(refresh).toHaveBeenCalled();
  expect(onClose).not.toHaveBeenCalled();
  showAgain(formOf({ ...policy, version: 2 }, onClose));
  expect(field("Notice").value).toBe("3m");
  await person.click(button("Save policy"));
  expect(calls.map(({ body }) => body)).toMatchObject([
    { noticeSeconds: 180, version: 1 },
    { noticeSeconds: 180, version: 2 },
  ]);
  expect(onClose).toHaveBeenCalledOnce();
});
