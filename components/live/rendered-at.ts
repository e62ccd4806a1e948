import { cache } from "react";

/** When the server began to read for the page that it renders: the same for all of one request. */
export const renderedAt = cache(() => Date.now());
