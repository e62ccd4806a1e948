import { errorBody, httpStatus, SluiceError } from "#server/errors.ts";

/** Whatever is asked of a path that is none: an error as every other, not a page. */
function noSuchPath(): Response {
  const error = new SluiceError("not-found", "There is no such path; /api/v1/openapi.json lists those that there are.");
  return Response.json(errorBody(error), {
    status: httpStatus(error.code),
    headers: { "cache-control": "no-store" },
  });
}

export { noSuchPath as DELETE, noSuchPath as GET, noSuchPath as PATCH, noSuchPath as POST, noSuchPath as PUT };
