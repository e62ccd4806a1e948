import { nothing } from "#server/contracts/common.ts";
import { leaseBoard } from "#server/contracts/lease-board.ts";
import { route } from "#server/http/route.ts";
import { board } from "#server/services/lease/board.ts";

export const GET = route(
  {
    method: "GET",
    path: "/gpus",
    summary: "One's own leases, what waits, and what one's teams may borrow now",
    action: "lease.list",
    input: nothing,
    output: leaseBoard,
  },
  (ctx) => board(ctx),
);
