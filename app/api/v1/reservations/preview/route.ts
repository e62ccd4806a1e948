import { createReservationInput, reservationEffects } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { preview } from "#server/services/reservation/preview.ts";

export const POST = route(
  {
    method: "POST",
    path: "/reservations/preview",
    summary: "What a reservation would do, and whom it would displace; nothing is saved",
    action: "reservation.create",
    input: createReservationInput,
    output: reservationEffects,
  },
  (ctx, input) => preview(ctx, input),
);
