// @vitest-environment happy-dom
import { act, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { button, show } from "#components/testing.tsx";
import { AddGpuServer } from "./add-gpu-server.tsx";

/** The browser's end of the stream of changes. */
class Stream {
  static readonly CLOSED = 2;
  static newest: Stream | undefined;
  readyState = 1;
  onmessage: (message: { data: string }) => void = () => undefined;
  constructor() {
    Stream.newest = this;
  }
  close() {
    this.readyState = Stream.CLOSED;
  }
}

const token = {
  ...{ token: "slj_1", command: "curl | sh", downloads: true, expiresAt: "2026-01-01T10:00:00Z" },
  warning: "Only this machine reaches http://127.0.0.1:3001.",
};

async function open(made: typeof token) {
  vi.stubGlobal("EventSource", Stream);
  const servers = [{ id: "gsv-1", name: "local", state: "online" }];
  const shown = show(<AddGpuServer />, ({ method }) => (method === "POST" ? made : { servers }));
  await shown.person.click(button("Add GPU server"));
  await screen.findByRole("textbox", { name: "Command to run on the GPU host" });
  return { ...shown, servers };
}

it("shows the command and a warning, and confirms the server that joins", async () => {
  const { servers } = await open(token);
  expect(screen.getByRole("dialog").textContent).toContain("It downloads gpud and joins the pool.");
  expect(screen.getByRole("textbox").textContent).toBe("curl | sh");
  expect(screen.getByText("Only this machine reaches http://127.0.0.1:3001.")).toBeDefined();
  expect(screen.getByRole("status").textContent).toBe("Waiting for the server to join…");
  await vi.waitFor(() => expect(Stream.newest).toBeDefined());
  servers.push({ id: "gsv-2", name: "ux-server", state: "online" }, { id: "gsv-3", name: "late", state: "joining" });
  act(() => Stream.newest?.onmessage({ data: JSON.stringify({ topic: "pool", id: null }) }));
  expect(await screen.findByText("ux-server joined the pool.")).toBeDefined();
});

it("asks to build gpud where the portal has none to download", async () => {
  await open({ ...token, command: "gpud join https://broker.example.org --token slj_1", downloads: false });
  expect(screen.getByRole("dialog").textContent).toContain("Build gpud on the host that has the GPUs");
});
