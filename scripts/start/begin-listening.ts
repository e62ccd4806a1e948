/**
 * Calls listen(2) on each of the bound sockets that it inherits, from descriptor 3 on, and ends. A program of its own,
 * because Node cannot listen without accepting: the process that holds the sockets must leave connections to others.
 * Prints the index and the code of a socket that cannot listen.
 */
import { createServer } from "node:net";

const BACKLOG = 511;
const count = Number(process.argv[2]);
for (let index = 0; index < count; index++) {
  const server = createServer();
  server.once("error", (error: NodeJS.ErrnoException) => {
    process.stdout.write(JSON.stringify({ index, code: error.code ?? error.message }));
    process.exit(1);
  });
  server.listen({ fd: 3 + index, backlog: BACKLOG });
}
// Errors come first in this queue, and no connection is accepted before its end.
process.nextTick(() => process.exit(0));
