/** The gateway's own pages: what happened, and what to do, in plain HTML that needs nothing from anywhere. */

import type { ErrorCode } from "#server/errors.ts";

export type Problem = {
  /** For programs. */
  code: ErrorCode;
  status: 400 | 401 | 403 | 404 | 424 | 500 | 502 | 503;
  title: string;
  text: string;
  /** A way on. */
  link?: { href: string; text: string };
  /** Load the page again after so many seconds. */
  refreshSeconds?: number;
};

const escapes: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escapeHtml = (text: string) => text.replace(/[&<>"']/g, (character) => escapes[character] ?? "");

const style = `
:root{color-scheme:light dark;--ink:#1a1d21;--soft:#5b636d;--paper:#fafaf9;--card:#fff;--line:#e2e4e8;--accent:#0b63ce;--on:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--soft:#a2a9b3;--paper:#131518;--card:#1b1e22;--line:#30353c;--accent:#7ab5ff;--on:#0d1624}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1.5rem;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{width:100%;max-width:30rem;background:var(--card);border:1px solid var(--line);border-radius:10px;padding:2rem}
p.code{margin:0 0 .75rem;color:var(--soft);font-size:.8125rem;font-variant-numeric:tabular-nums}
h1{margin:0 0 .5rem;font-size:1.25rem;line-height:1.3;font-weight:600;text-wrap:balance}
p{margin:0 0 1.25rem;color:var(--soft)}
a{display:inline-block;padding:.5rem .9rem;border-radius:6px;background:var(--accent);color:var(--on);text-decoration:none;font-weight:500}
a:focus-visible{outline:2px solid var(--accent);outline-offset:2px}`;

export function problemPage(problem: Problem): string {
  const refresh =
    problem.refreshSeconds === undefined ? "" : `<meta http-equiv="refresh" content="${problem.refreshSeconds}">`;
  const link =
    problem.link === undefined ? "" : `<a href="${escapeHtml(problem.link.href)}">${escapeHtml(problem.link.text)}</a>`;
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">${refresh}
<title>${escapeHtml(problem.title)} · Sluice</title><style>${style}</style></head>
<body><main><p class="code">Sluice · ${problem.status}</p><h1>${escapeHtml(problem.title)}</h1><p>${escapeHtml(problem.text)}</p>${link}</main></body>
</html>
`;
}

export const problemHeaders = {
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "cache-control": "no-store",
  "referrer-policy": "same-origin",
  "x-content-type-options": "nosniff",
};
