import { removeReservationInput, reservationList } from "#server/contracts/sharing.ts";
import { route } from "#server/http/route.ts";
import { remove } from "#server/services/reservation/remove.ts";

export const DELETE = route(
  {
    method: "DELETE",
    path: "/reservations/{id}",
    summary: "Give a reservation up, or with it all later ones of its series",
    action: "reservation.remove",
    input: removeReservationInput,
    output: reservationList,
  },
  (ctx, input) => remove(ctx, input),
);
