import { renderToStaticMarkup } from "react-dom/server";
import { expect, it, vi } from "vitest";
import type { WorkspaceKernel } from "#server/contracts/workspace-kernel.ts";
import { KernelTable } from "./kernel-table.tsx";

vi.mock("next/navigation", () => ({ useRouter: () => undefined, useSearchParams: () => new URLSearchParams() }));
vi.mock("#components/ui/toast.tsx", () => ({ useToast: () => undefined }));
vi.mock("#components/live/hydrated.ts", () => ({ useHydrated: () => true }));

it.each([
  ["idle", true],
  ["busy", true],
  ["dead", false],
] as const)("a notebook that is shown as %s, which may have changed since, can be interrupted: %s", (state, can) => {
  const kernel: WorkspaceKernel = {
    ...{ id: "k", name: "Python 3", path: "train.ipynb", state, lastActivityAt: null },
    ...{ connections: 1, gpuMilli: 0 },
  };
  const table = renderToStaticMarkup(<KernelTable workspaceId="ws-1" kernels={[kernel]} mayChange />);
  const [button = ""] = /<button[^>]*Interrupt train.ipynb[^>]*>/.exec(table) ?? [];
  expect(button).not.toBe("");
  expect(/\sdisabled=/.test(button)).toBe(!can);
});
