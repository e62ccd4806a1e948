import { nothing } from "#server/contracts/common.ts";
import { createdReservation, createReservationInput, reservationList } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { create } from "#server/services/reservation/create.ts";
import { list } from "#server/services/reservation/list.ts";

export const GET = route(
  {
    method: "GET",
    path: "/reservations",
    summary: "Reservations that have not ended",
    action: "reservation.list",
    input: nothing,
    output: reservationList,
  },
  (ctx) => list(ctx),
);

export const POST = route(
  {
    method: "POST",
    path: "/reservations",
    summary: "Reserve a part of the pool for a team and a time, once or every week",
    action: "reservation.create",
    input: createReservationInput,
    output: createdReservation,
    status: 201,
  },
  (ctx, input) => create(ctx, input),
);
