// @vitest-environment happy-dom
import { expect, it, vi } from "vitest";
import { button, field, show } from "#components/testing.tsx";
import { GpuPolicyForm } from "./gpu-policy-form.tsx";
import { aWorkspace } from "./testing-workspace.ts";

vi.mock("next/navigation", () => ({ useRouter: () => ({ refresh: () => undefined }) }));

const workspace = aWorkspace({ defaultAmount: "0.5" });

it("says what to type instead of an amount that cannot be borrowed, and sends nothing", async () => {
  const { person, calls } = show(<GpuPolicyForm workspace={workspace} />);
  await person.clear(field("Default amount"));
  await person.type(field("Default amount"), "1.5");
  await person.click(button("Save"));
  expect(field("Default amount", /use 1 or 2/).value).toBe("1.5");
  expect(calls).toEqual([]);
});

it("sends GPU memory as it is typed", async () => {
  const { person, calls } = show(<GpuPolicyForm workspace={workspace} />, () => workspace);
  await person.clear(field("Default amount"));
  await person.type(field("Default amount"), "4G{Enter}");
  expect(calls).toMatchObject([{ path: `/workspaces/${workspace.id}/gpu-policy`, body: { defaultAmount: "4G" } }]);
});
