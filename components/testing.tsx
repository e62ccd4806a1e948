/** Component tests: shows a component in a DOM, with a person who types and clicks and an API that the test answers. */
import { cleanup, configure, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ReactElement } from "react";
import { afterEach, vi } from "vitest";
import { ToastProvider } from "#components/ui/toast.tsx";

export type Call = { method: string; path: string; body: unknown };
/** What the API answers: a body, or a `Refusal`. */
export type Answer = (call: Call) => unknown;

export class Refusal {
  readonly code: string;
  readonly message: string;
  readonly detail: unknown;
  constructor(code: string, message: string, detail?: unknown) {
    this.code = code;
    this.message = message;
    this.detail = detail;
  }
}

// Messages are loaded with the first one, which takes seconds on a busy machine.
configure({ asyncUtilTimeout: 20_000 });

// happy-dom divides in floating point, in which 5 is no multiple of 0.001.
Object.defineProperty(ValidityState.prototype, "stepMismatch", { get: () => false });

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const answerNothing: Answer = ({ method, path }) => {
  throw new Error(`The test answers no ${method} ${path}.`);
};

/** Shows `element` where a page would have it. `calls` are the calls of `/api/v1` so far. */
export function show(element: ReactElement, answer: Answer = answerNothing) {
  const calls: Call[] = [];
  vi.stubGlobal("fetch", async (address: string, { method = "GET", body }: RequestInit = {}) => {
    const call = {
      method,
      path: address.replace("/api/v1", ""),
      body: body && (JSON.parse(body as string) as unknown),
    };
    calls.push(call);
    const answered = answer(call);
    if (!(answered instanceof Refusal)) return Response.json(answered);
    const { code, message, detail } = answered;
    return Response.json({ error: { code, message, detail } }, { status: 400 });
  });
  const inPage = (inner: ReactElement) => <ToastProvider>{inner}</ToastProvider>;
  const { rerender } = render(inPage(element));
  return {
    calls,
    person: userEvent.setup(),
    /** Shows it as the page would after it was read again. */
    showAgain: (again: ReactElement) => rerender(inPage(again)),
  };
}

/** A text field by its label. With `description`: one that says this below it. */
export const field = (name: string, description?: string | RegExp) =>
  screen.getByRole<HTMLInputElement>("textbox", { name, ...(description !== undefined && { description }) });
export const button = (name: string) => screen.getByRole("button", { name });
